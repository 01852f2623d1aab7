"""Texts, files of corpora, saved models, and the command line."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from typer.testing import CliRunner

import tempering
from oddities import Case, tables
from oddities.estimators import fitted
from tempering import corpus
from tempering.cli.app import app

WORDS = ["apple", "pear", "plum", "grape", "lemon", "melon", "cherry", "peach"]
TEXTS = [" ".join(WORDS[i % 5 : i % 5 + 4]) for i in range(20)]


def cases() -> Iterator[Case]:
    """All of them, part by part."""
    yield from _texts()
    yield from _corpora()
    yield from _files()
    yield from _saved()
    yield from _commands()


def _seen(found: Any) -> Any:
    assert found.counts.shape[0] == found.shape[0]
    return found.counts


def _texts() -> Iterator[Case]:
    told = ("text", "word", "document", "column", "vocabulary", "table")
    odd: dict[str, Any] = {
        "none": None,
        "a number": 3,
        "a text": "apple pear",
        "bytes": b"apple pear",
        "an empty list": [],
        "empty texts": ["", "", ""],
        "blank texts": [" ", "\n", "\t"],
        "stop words alone": ["the and of", "a the"],
        "numbers alone": ["1 2 3", "4 5 6"],
        "numbers for texts": [1, 2, 3],
        "None inside": [*TEXTS, None],
        "NaN inside": [*TEXTS, np.nan],
        "bytes inside": [*TEXTS, b"apple"],
        "invalid bytes": [b"\xff\xfe\xfa"] * 3,
        "lists of words": [text.split() for text in TEXTS],
        "lists of numbers": [[1, 2], [3]],
        "lists of None": [[None], [None]],
        "nested lists": [[["apple"]]],
        "dicts": [{"apple": 2}, {"pear": 1}],
        "dicts with NaN": [{"apple": np.nan}],
        "dicts with -1": [{"apple": -1}],
        "dicts with text": [{"apple": "many"}],
        "bags": [[(0, 1), (1, 2)], [(2, 1)]],
        "bags with a negative word": [[(-1, 1)]],
        "bags with a negative count": [[(0, -1)]],
        "bags with NaN": [[(0, np.nan)]],
        "bags with a huge word": [[(10**18, 1)]],
        "bags with a triple": [[(0, 1, 2)]],
        "mixed": ["apple", ["pear"], {"plum": 1}],
        "an array": np.array(TEXTS),
        "an array of objects": np.array(TEXTS, object),
        "a 2-d array": np.array(TEXTS).reshape(10, 2),
        "a table of numbers": tables.honest("counts"),
        "a sparse matrix": sparse.csr_matrix(tables.honest("counts")),
        "a series": pd.Series(TEXTS),
        "a series with NaN": pd.Series([*TEXTS, None]),
        "a frame": pd.DataFrame({"text": TEXTS}),
        "a frame without text": pd.DataFrame({"body": TEXTS}),
        "a frame of numbers": pd.DataFrame({"text": [1, 2]}),
        "an empty frame": pd.DataFrame(),
        "a frame with two texts": pd.DataFrame([["a b", "c d"]], columns=["text", "text"]),
        "a dict": {"a": "apple pear"},
        "a set": set(TEXTS),
        "surrogates": ["\ud800 apple pear", "\udfff apple pear"],
        "zeros": ["apple\0pear", "apple\0pear"],
        "a long word": ["a" * 10**6, "b" * 10**6],
        "astral": ["😀😀 😀😀", "𝒳𝒴 𝒳𝒴"],
        "a path": Path("no-such-file"),
        "a function": len,
        "a function of nothing": lambda: TEXTS,
        "a class": int,
        "a class that takes texts": list,
    }
    for name, texts in odd.items():
        yield Case(f"from_texts, {name}", lambda t=texts: _seen(corpus.from_texts(t)), told)
    yield Case("from_texts, a generator", lambda: _seen(corpus.from_texts(iter(TEXTS))), told)
    for options in (
        {"stop_words": 3},
        {"stop_words": "klingon"},
        {"stop_words": ""},
        {"stop_words": [1, 2]},
        {"stop_words": []},
        {"stop_words": None},
        {"stop_words": WORDS},
        {"keep_numbers": "odd"},
        {"vectorizer": "odd"},
        {"vectorizer": CountVectorizer},
        {"vectorizer": CountVectorizer(min_df=100)},
        {"vectorizer": CountVectorizer(token_pattern="(")},
        {"vectorizer": CountVectorizer(ngram_range=(3, 1))},
        {"vectorizer": CountVectorizer(vocabulary=[])},
        {"vectorizer": CountVectorizer(vocabulary=["zebra"])},
        {"vectorizer": CountVectorizer(), "stop_words": None},
        {"column": "odd"},
        {"column": 3},
        {"name_column": "odd"},
        {"dictionary": {}},
        {"dictionary": "odd"},
        {"out": ""},
        {"out": "\0"},
        {"out": 3},
        {"out": "no/such/folder/c.parquet"},
        {"out": "c.odd"},
    ):
        yield Case(
            f"from_texts({' '.join(str(options).split())})",
            lambda o=options: corpus.from_texts(TEXTS, **o) and None,
            (
                *options,
                "words",
                "folder",
                "directory",
                "format",
                "token",
                "ngram",
                "df",
                "vocabulary",
            ),
        )
    for options in (
        {"stop_words": 3},
        {"token_pattern": "("},
        {"token_pattern": None},
        {"token_pattern": "(a)(b)"},
        {"ngrams": (0, 1)},
        {"ngrams": (2, 1)},
        {"ngrams": 3},
        {"ngrams": "odd"},
        {"ngrams": (1.5, 2)},
        {"lowercase": "odd"},
        {"strip_accents": "odd"},
        {"analyzer": "odd"},
        {"binary": "odd"},
    ):
        yield Case(
            f"WordCounting({options})",
            lambda o=options: corpus.WordCounting(**o) and None,
            (*options, "pattern", "ngram"),
        )


def _corpora() -> Iterator[Case]:
    counts = tables.honest("counts")
    told = (
        "counts",
        "vocabulary",
        "names",
        "texts",
        "word",
        "row",
        "matrix",
        "document",
        "X",
        "feature",
    )
    for odd, change in tables.ALL.items():
        yield Case(f"Corpus, {odd}", lambda g=change: _used(corpus.Corpus(g(counts))), told)
    for option in ("vocabulary", "names", "texts"):
        for value in (
            [],
            ["a"],
            "abcd",
            3,
            [None] * 4,
            [1, 2, 3, 4],
            ["a"] * 4,
            {},
            ["\ud800"] * 4,
        ):
            yield Case(
                f"Corpus({option}={value!r})",
                lambda o=option, v=value: _used(corpus.Corpus(sparse.csr_array(counts), **{o: v})),
                told,
            )
    yield Case(
        "Corpus(counting=3)",
        lambda: _used(corpus.Corpus(sparse.csr_array(counts), counting=3)),
        ("counting",),
    )


def _used(made: Any) -> Any:
    repr(made)
    model = tempering.LatentDirichletAllocation(2, max_iter=2, random_state=0, n_jobs=1).fit(made)
    return model, model.transform(made), model.topics(1) and None


#: Files by name: what is in them.
CONTENTS: dict[str, bytes] = {
    name + ending: content
    for ending, honest in {
        ".csv": b"text,id\napple pear,1\nplum grape,2\n",
        ".tsv": b"text\tid\napple pear\t1\n",
        ".jsonl": b'{"text": "apple pear"}\n{"text": "plum"}\n',
        ".npz": b"PK\x03\x04",
        ".mtx": b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 3\n",
        ".ldac": b"2 0:1 1:2\n1 0:1\n",
        ".svmlight": b"0 1:2\n0 2:1\n",
        ".parquet": b"PAR1",
        ".txt": b"apple pear plum\n",
        ".docword.odd.txt": b"2\n2\n2\n1 1 1\n2 2 1\n",
        ".odd": b"odd",
        "": b"odd",
    }.items()
    for name, content in {
        "honest": honest,
        "empty": b"",
        "newline": b"\n",
        "zeros": b"\0" * 64,
        "no-utf8": honest + b"\xff\xfe\n",
        "cut": honest[: len(honest) // 2],
        "twice": honest + honest,
        "numbers": b"1 2 3\n" * 3,
        "negative": b"-1 0:-1\n" * 3,
        "huge": b"99999999999999999999 1:99999999999999999999\n",
        "quotes": b'"\n"text"\n"a\n',
        "bom": b"\xef\xbb\xbf" + honest,
        "gz": gzip.compress(honest),
    }.items()
}
CONTENTS |= {f"{n}.gz": gzip.compress(c) for n, c in CONTENTS.items() if n.startswith("honest.")}
CONTENTS |= {f"broken-{n}.gz": gzip.compress(c)[:-6] for n, c in [*CONTENTS.items()][:8]}


@cache
def folder() -> Path:
    """A folder with these files, a saved model, and counts that fit it."""
    here = Path.cwd() / "odd"
    here.mkdir()
    for name, content in CONTENTS.items():
        (here / name).write_bytes(content)
    (here / "empty-folder").mkdir()
    (here / "texts").mkdir()
    for i, text in enumerate(TEXTS):
        (here / "texts" / f"{i}.txt").write_text(text)
    made = corpus.from_texts(TEXTS)
    corpus.write(here / "counts.npz", made)
    model = tempering.LatentDirichletAllocation(2, max_iter=2, random_state=0, n_jobs=1).fit(made)
    model.save(here / "model")
    (here / "locked.npz").write_bytes((here / "counts.npz").read_bytes())
    (here / "not-a-model").mkdir()
    (here / "not-a-model" / "model.json").write_text("{}")
    return here


def _files() -> Iterator[Case]:
    for name in (*CONTENTS, "missing", "missing.npz", "empty-folder", "model", "texts"):
        yield Case(f"read {name}", lambda n=name: _seen(corpus.read(folder() / n)), (name, "word"))
        yield Case(
            f"read_texts {name}",
            lambda n=name: list(corpus.read_texts(folder() / n)) and None,
            (name, "text"),
        )
    for name in ("honest.csv", "counts.npz", "texts", "honest.jsonl"):
        for options in (
            {"format": "odd"},
            {"format": 3},
            {"format": "npz"},
            {"format": "mtx"},
            {"column": "odd"},
            {"column": 3},
            {"name_column": "odd"},
            {"encoding": "odd"},
            {"encoding": 3},
            {"encoding": "utf-16"},
            {"on_error": "odd"},
            {"on_error": None},
            {"delimiter": ""},
            {"delimiter": "ab"},
            {"delimiter": 3},
            {"delimiter": "\n"},
            {"stop_words": 3},
        ):
            yield Case(
                f"read {name}, {options}",
                lambda n=name, o=options: _seen(corpus.read(folder() / n, **o)),
                (*options, name, "word"),
            )
    for path in (None, 3, "", "\0", b"odd", [], "a" * 5000):
        for name in ("read", "read_texts", "open_corpus", "open_source"):
            yield Case(
                f"corpus.{name}({str(path)[:10]!r} of {type(path).__name__})",
                lambda p=path, n=name: getattr(corpus, n)(p),
                ("path", "file", "a" * 20),
            )


def _saved() -> Iterator[Case]:
    told = ("path", "model", "folder", "directory", "file", "odd", "a" * 20)
    for path in (None, 3, "", "\0", "missing", ".", "a" * 5000, b"odd", []):
        yield Case(
            f"load({str(path)[:10]!r} of {type(path).__name__})",
            lambda p=path: tempering.load(p),
            told,
        )
        yield Case(
            f"save({str(path)[:10]!r} of {type(path).__name__})",
            lambda p=path: fitted("topics").save(p),
            (*told, "exists"),
        )
    for name in ("not-a-model", "empty-folder", "counts.npz", "honest.csv"):
        yield Case(f"load {name}", lambda n=name: tempering.load(folder() / n), told)


def _run(arguments: tuple[Any, ...]) -> Any:
    """The command; a known error becomes the error that it is."""
    result = CliRunner().invoke(app, [str(a).replace("@", f"{folder()}/") for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code == 1:
        raise ValueError(result.output)
    if result.exit_code == 2:
        raise ValueError(f"usage: {result.output}")
    assert result.exit_code == 0, result.exit_code
    # Where one may be printed, a number that is none would be.
    return [float(word) for word in result.output.split() if word.lower() in {"nan", "inf", "-inf"}]


def _commands() -> Iterator[Case]:
    fit = ("fit", "@counts.npz", "--jobs", 1, "--overwrite", "--out", "@out", "--topics")
    text = (
        "fit",
        "@texts",
        "--jobs",
        1,
        "--overwrite",
        "--out",
        "@out",
        "--topics",
        2,
        "--min-df",
        1,
    )
    use = ("@model", "@counts.npz")
    odd: list[tuple[Any, ...]] = [
        (),
        ("odd",),
        ("--odd",),
        ("fit",),
        ("fit", "@counts.npz"),
        *((*fit, k) for k in (0, -1, 1, 2, 10**6, 10**12, "odd", "", "1.5", "nan", 10**30)),
        *((*fit, 2, "--passes", v) for v in (0, -1, "odd", "1e3")),
        *((*fit, 2, "--tempering", v) for v in ("odd", "", "none", "variational", "local")),
        *((*fit, 2, "--seed", v) for v in (-1, 2**31, 2**32, 2**70, "odd", 1.5)),
        *((*fit, 2, "--jobs", v) for v in (0, -1, "odd")),
        *((*fit, 2, "--batch-size", v) for v in (0, -1, 10**15, "odd", 1)),
        *((*fit, 2, "--validation", v) for v in (-1, 0, 1, 19, 20, 21, 0.5, 0.999, "nan", "inf")),
        *((*fit, 2, "--scheduler", v) for v in ("", "odd", "tcp://", "tcp://127.0.0.1:1")),
        *((*fit, 2, "--checkpoint-minutes", v) for v in (-1, 0, "nan", "inf", "odd")),
        *((*fit, 2, "--min-df", v) for v in (2, "odd")),
        *((*text, "--min-df", v) for v in (0, -1, 100, 1.5, "nan", "inf", "odd", "1e300", "")),
        *((*text, "--max-df", v) for v in (0, -1, 100, 1.5, "nan", "inf", "odd", 1)),
        *((*text, "--max-words", v) for v in (0, -1, 1, 10**12, "odd")),
        *((*text, "--ngrams", v) for v in (0, -1, "2,1", "1,2,3", "odd", "", 50, "1.5", "nan")),
        *((*text, "--token-pattern", v) for v in ("(", "", ".*", "(a)(b)", "[", "zzz")),
        *((*text, "--stop-words", v) for v in ("odd", "", "@missing", "@texts", "@zeros.npz")),
        *((*text, "--encoding", v) for v in ("odd", "", "utf-16", "base64", "latin-1")),
        *((*text, "--column", v) for v in ("odd", "")),
        *((*text, "--delimiter", v) for v in ("", "ab")),
        *((*text, "--on-error", v) for v in ("odd", "")),
        *(("fit", f"@{n}", "--topics", 2, "--out", "@out", "--overwrite") for n in CONTENTS),
        ("fit", "@missing.npz", "--topics", 2, "--out", "@out2"),
        ("fit", "", "--topics", 2, "--out", "@out2"),
        *(("fit", "@counts.npz", "--topics", 2, "--out", v) for v in ("", ".", "/")),
        ("fit", "@counts.npz", "--topics", 2, "--out", "@honest.csv"),
        ("fit", "@counts.npz", "--topics", 2, "--out", "@honest.csv", "--overwrite"),
        ("fit", "@counts.npz", "--topics", 2, "--out", "@no/such/folder"),
        *(("topics", "@model", "--words", v) for v in (0, -1, 1, 10**9, "odd")),
        *(("topics", v) for v in ("@missing", "@not-a-model", "@counts.npz", "", "@empty-folder")),
        *(("evaluate", *use, "--words", v) for v in (0, 1, 2, 10**9, "odd")),
        *(("evaluate", *use, "--alpha", v) for v in (0, -1, "nan", "inf", 1e300, "odd")),
        *(("evaluate", *use, "--documents", v) for v in (0, 1, -1, 10**12)),
        *(("evaluate", "@model", f"@{n}") for n in ("missing", "honest.mtx", "model", "empty.csv")),
        *(("transform", *use, "--out", v) for v in ("", "@t", "@t.odd", "@no/t.csv", "@texts")),
        *(("transform", "@model", f"@{n}", "--out", "@t.csv", "--overwrite") for n in CONTENTS),
        *(
            ("report", *use, "--overwrite", "--out", v)
            for v in ("", "@r.html", "@no/r.html", "@texts")
        ),
        *(
            ("report", *use, "--overwrite", "--out", "@r.html", "--documents", v)
            for v in (0, 1, "x")
        ),
        ("report", *use, "--overwrite", "--out", "@r.html", "--title", "</script>\x1b[31m"),
        *(("report", f"@{n}", "--out", "@r2.html") for n in ("missing", "not-a-model", "texts")),
        *(("info", f"@{n}") for n in ("missing", "not-a-model", "empty-folder", *CONTENTS)),
        *(("convert", f"@{n}", "@c.npz", "--overwrite") for n in ("missing", "", *CONTENTS)),
        *(
            ("convert", "@counts.npz", f"@{n}")
            for n in ("", "c.odd", "no/c.npz", "counts.npz", "c.parquet")
        ),
        *(("convert", "@counts.npz", "@e.npz", "--format", v) for v in ("odd", "", "mtx")),
        *(("demo", "--out", v) for v in ("", "@honest.csv")),
        ("demo", "--seed", -1),
    ]
    for arguments in odd:
        # What is wrong is the last of them, or the file.
        told = tuple(str(a).lstrip("@-") for a in arguments if str(a).strip("@-.0123456789"))
        yield Case(
            f"tempering {' '.join(map(str, arguments))!r}",
            lambda a=arguments: _run(a),
            (*told, "usage", "word", "_df", "document", "row")
            # What the argument of the command is called.
            + (("model",) if arguments[:1] == ("topics",) else ()),
        )
