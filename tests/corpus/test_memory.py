"""Readers take a small multiple of the file, whatever it claims."""

import numpy as np
import pytest
from scipy import sparse

from memory import assert_modest, measured, tracing
from tempering.corpus import Corpus, CorpusError, read, write

NAMES = [
    "a.npz",
    "a.parquet",
    "a.mtx",
    "a.mtx.gz",
    "docword.a.txt",
    "docword.a.txt.gz",
    "a.ldac",
    "a.ldac.gz",
    "a.svmlight",
    "a.svmlight.gz",
]


def take(path, multiple=20):
    """Read, and hold the memory against the file; the error, if it was refused."""
    n_bytes = path.stat().st_size
    error = ""
    with measured() as peak:
        try:
            read(path)
        except CorpusError as refused:
            error = str(refused)
    assert_modest(peak, n_bytes, multiple)
    return error


def realistic(n_documents):
    """Documents of about 70 distinct words, the frequent ones far more frequent than the rest."""
    rng = np.random.default_rng(0)
    weights = 1.0 / (np.arange(5000) + 10.0)
    words = rng.choice(5000, size=(n_documents, 100), p=weights / weights.sum())
    rows = np.repeat(np.arange(n_documents), 100)
    ones = np.ones(rows.size, np.int32)
    counts = sparse.csr_array((ones, (rows, words.ravel())), (n_documents, 5000))
    names = [f"document {i}" for i in range(n_documents)]
    return Corpus(counts, [f"word{i}" for i in range(5000)], names)


def check_formats(folder, corpus):
    for name in NAMES:
        write(folder / name, corpus, overwrite=True)
        assert take(folder / name) == ""
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
        # The first half of these is a corpus too, but not one of so many documents.
        assert take(folder / name) != "" or name.startswith(("a.ldac", "a.svm"))


@pytest.mark.slow
def test_corpora_and_halves_of_them(tmp_path):
    with tracing():
        check_formats(tmp_path, realistic(60))


@pytest.mark.slow
def test_large_corpora_and_halves_of_them(tmp_path):
    """Here the allowance is small beside the file."""
    check_formats(tmp_path, realistic(40_000))


HEADER = b"%%MatrixMarket matrix coordinate integer general\n"
ENTRIES = b"1 1 1\n" * 200_000


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("docword.a.txt", b"1000000000000\n3\n1\n1 1 1\n"),
        ("docword.a.txt", b"3\n2147483647\n1000000000000\n1 1 1\n"),
        # As many documents as are believed, all but one of them empty.
        ("docword.a.txt", b"65000\n2147483647\n1\n1 1 1\n"),
        ("docword.a.txt", b"665000\n1\n200000\n" + ENTRIES),
        ("a.mtx", HEADER + b"1000000000000 3 1\n1 1 1\n"),
        ("a.mtx", HEADER + b"3 3 1000000000000\n1 1 1\n"),
        ("a.mtx", HEADER + b"665000 1 200000\n" + ENTRIES),
        ("a.ldac", b"1000000000000 0:1\n"),
        ("a.ldac", b"1 2147483646:1\n"),
        ("a.ldac", b"400000 " + b" ".join([b"1:1"] * 400_000)),
        ("a.svmlight", b"1 2147483646:1\n"),
        ("a.svmlight", b"#" * 3_000_000),
        ("a.jsonl", b'{"text": "two words", "more": ' + b"[" * 500_000 + b"]" * 500_000 + b"}"),
        ("a.jsonl", b'{"text": "two words", "n": ' + b"9" * 1_000_000 + b"}"),
        ("a.csv", b"text" + b",a" * 300_000 + b"\ntwo words" + b",b" * 300_000),
        ("a.csv", b'text\n"two words' + b"\n" * 200_000),
    ],
    ids=range(16),
)
def test_what_text_files_claim(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    take(tmp_path / name)
