"""The docstrings of installed packages as a corpus."""

import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tempering.corpus import CorpusError
from tempering.datasets import cache_directory, corpora, load_docstrings
from tempering.datasets.corpora import docstrings

LONG = " ".join(f"word{chr(97 + i)}" for i in range(25))


def test_docstrings_are_found_without_running_code(tmp_path):
    files = {
        "__init__.py": f'"""Package {LONG}"""\nraise RuntimeError("must not run")\n',
        "part.py": f'''
            import nothing_of_this_name
            class Thing:
                """Thing {LONG}"""
                def method(self):
                    """Method {LONG}"""
                    def inner():
                        """Inner {LONG}"""
            if True:
                async def branch():
                    """Branch {LONG}"""
            def short():
                """Too short."""
            def none():
                return """Not a docstring {LONG}"""
            add_newdoc("pack.core", "compiled", ("one", """Compiled {LONG}"""))
            add_newdoc("bare", """Bare {LONG}""")
            ''',
        "broken.py": f'"""Broken {LONG}"""\ndef (:\n',
        "tests/test_part.py": f'"""Test {LONG}"""\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    found = {name: text.split()[0] for name, text in docstrings("pack", tmp_path, 20)}
    assert found == {
        "pack": "Package",
        "pack.part.Thing": "Thing",
        "pack.part.Thing.method": "Method",
        "pack.part.branch": "Branch",
        "pack.core.compiled.one": "Compiled",
        "pack.bare": "Bare",
    }


def test_the_corpus_of_one_package(tmp_path):
    corpus = load_docstrings(["joblib"], folder=str(tmp_path))
    n_documents, n_words = corpus.shape
    assert n_documents > 50
    assert n_words > 100
    assert corpus.vocabulary == sorted(corpus.vocabulary)
    assert corpus.counts.sum(axis=1).min() >= 10
    assert len(corpus.names) == len(corpus.texts) == n_documents
    assert all(name.startswith("joblib") for name in corpus.names)
    word = corpus.vocabulary.index("memory")
    documents = np.flatnonzero(corpus.counts[:, [word]].toarray())
    assert documents.size >= 5
    assert all("memory" in corpus.texts[document].lower() for document in documents)


def assert_same(a, b):
    assert_array_equal(a.counts.toarray(), b.counts.toarray())
    assert (a.vocabulary, a.names, a.texts) == (b.vocabulary, b.names, b.texts)


def test_the_cache_is_used_checked_and_made_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("TEMPERING_CACHE", str(tmp_path))
    made = load_docstrings(["joblib"])
    (kept,) = tmp_path.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(corpora, "_build", None)
        assert_same(load_docstrings(["joblib"]), made)
    content = (kept / "corpus.npz").read_bytes()
    (kept / "corpus.npz").write_bytes(content[: len(content) // 2])
    assert_same(load_docstrings(["joblib"]), made)
    assert (kept / "corpus.npz").read_bytes()[:100] == content[:100]
    assert_same(load_docstrings(["joblib"], cache=False), made)
    monkeypatch.setattr(corpora, "EDITION", 99)
    load_docstrings(["joblib"])
    assert len(list(tmp_path.iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="could not be kept"):
        assert load_docstrings(["joblib"], folder=tmp_path / "file").shape[0] > 50


def test_packages_that_are_not_there():
    with pytest.raises(CorpusError, match="none of these packages is installed: nothing_like_it"):
        load_docstrings(["nothing_like_it"])


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/tempering"),
        ("linux", {"HOME": "/h"}, "/h/.cache/tempering"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/tempering"),
        ("win32", {"LOCALAPPDATA": "/w"}, "/w/tempering"),
        ("linux", {"TEMPERING_CACHE": "/t", "XDG_CACHE_HOME": "/x"}, "/t"),
    ],
)
def test_where_the_cache_is(monkeypatch, platform, variables, expected):
    for name in ("TEMPERING_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_directory().as_posix() == expected


@pytest.mark.slow
def test_the_whole_corpus(tmp_path):
    corpus = load_docstrings(["numpy", "scipy", "sklearn"], folder=tmp_path)
    words = sum(len(text.split()) for text in corpus.texts)
    print(f"{corpus.shape} documents and words, {corpus.n_tokens} tokens, {words} words of text")
    assert corpus.shape[0] > 5000
    assert words > 1_000_000
