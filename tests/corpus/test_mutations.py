"""Damaged files of any kind: read, or refused with the package's error; no hang, little memory."""

import bz2
import io
import json
import shutil
import time
import zipfile

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import sparse

from memory import assert_modest, measured, tracing
from mutations import mutate
from tempering.corpus import Corpus, CorpusError, ParquetSource, gather, read, write
from tempering.datasets import load_yale_faces, read_arxiv, read_wikipedia

LONGEST_SECONDS = 5.0
#: What to put in the place of a number.
STRANGE = [
    b"-1",
    b"0",
    b"",
    b"9" * 12,
    b"9" * 30,
    b"1e308",
    b"nan",
    b"1.5",
    b"2147483648",
    b":",
    b"\xff",
]

COUNTED = [
    "a.npz",
    "a.parquet",
    "a.mtx",
    "a.mtx.gz",
    "docword.a.txt",
    "docword.a.txt.gz",
    "a.ldac",
    "a.svmlight",
]
TABLES = ["t.csv", "t.jsonl", "t.parquet"]


def example():
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(rng.poisson(0.7, size=(25, 12)).astype(np.int32))
    return Corpus(counts, [f"wörd{i}" for i in range(12)], [f"document {i}" for i in range(25)])


def table(name):
    texts = ["red, green", 'a "quoted"\nline', "ünïcode words", "four five six"] * 5
    if name == "t.csv":
        rows = [f'{i},"{text.replace(chr(34), chr(34) * 2)}"' for i, text in enumerate(texts)]
        return "\n".join(["id,text", *rows]).encode()
    if name == "t.jsonl":
        rows = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(texts)]
        return "\n".join(rows).encode()
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": range(20), "text": texts}), file, row_group_size=8)
    return file.getvalue()


def wikipedia():
    text = "<revision><text>A [[b|c]] {{{{d}}}}</text></revision>"
    page = f"<page><title>T{{0}}</title><ns>0</ns>{text}</page>"
    pages = "".join(page.format(i) for i in range(20))
    return f"<mediawiki><siteinfo/>{pages}</mediawiki>".encode()


def faces():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for azimuth in range(4):
            pixels = np.random.default_rng(azimuth).bytes(48)
            archive.writestr(f"yaleB01_P00A+00{azimuth}E+00.pgm", b"P5\n8 6\n255\n" + pixels)
    return file.getvalue()


def arxiv():
    row = {"id": "1", "title": "On x", "abstract": "We show.", "categories": "stat.ML cs.LG"}
    return "\n".join([json.dumps(row)] * 10).encode()


def read_source(path):
    source = ParquetSource(path, 10)
    list(source.sweep())
    next(source.batches(0))
    return source


#: For each name, its content and how it is read.
OTHERS = {
    "dump.xml": (wikipedia(), lambda path: list(read_wikipedia(path))),
    "dump.xml.bz2": (bz2.compress(wikipedia()), lambda path: list(read_wikipedia(path))),
    "faces.zip": (faces(), load_yale_faces),
    "arxiv.json": (arxiv(), lambda path: list(read_arxiv(path, ["stat"]))),
}


def damaged(content, rng):
    """Bytes damaged anywhere, or a number replaced by something strange."""
    if rng.random() < 0.5:
        return mutate(content, rng)
    digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if not digits:
        return mutate(content, rng)
    start = end = digits[int(rng.integers(len(digits)))]
    while end < len(content) and 48 <= content[end] <= 57:
        end += 1
    return content[:start] + STRANGE[int(rng.integers(len(STRANGE)))] + content[end:]


def survive(path, content, reader, n, seed):
    """Read n damaged files; how many were refused."""
    rng = np.random.default_rng(seed)
    refused = 0
    path.write_bytes(content)
    # What is loaded or compiled for the first file is not memory of the next.
    reader(path)
    with tracing():
        for _ in range(n):
            changed = damaged(content, rng)
            path.write_bytes(changed)
            start = time.process_time()
            with measured() as peak:
                try:
                    reader(path)
                except CorpusError:
                    refused += 1
            assert time.process_time() - start < LONGEST_SECONDS
            assert_modest(peak, len(changed))
    return refused


def run_all(folder, n_each, seed):
    """Damage every kind of file ``n_each`` times; files read, and files refused."""
    tried = refused = 0

    def attack(path, content, reader, n=n_each):
        nonlocal tried, refused
        refused += survive(path, content, reader, n, [seed, tried])
        tried += n

    for name in COUNTED:
        write(folder / name, example(), overwrite=True)
        path = folder / name
        content = path.read_bytes()
        attack(path, content, read)
        path.write_bytes(content)
    write(folder / "s.parquet", example())
    attack(folder / "s.parquet", (folder / "s.parquet").read_bytes(), read_source)
    for beside in ("a.vocab.txt", "a.documents.txt", "vocab.a.txt"):
        path = folder / beside
        corpus = folder / ("docword.a.txt" if beside.startswith("vocab") else "a.npz")
        content = path.read_bytes()
        attack(path, content, lambda _, corpus=corpus: read(corpus))
        path.write_bytes(content)
    write(folder / "a.csr", example())
    for path in sorted((folder / "a.csr").iterdir()):
        content = path.read_bytes()
        attack(path, content, lambda path: read(path.parent, "csr"), n_each // 2)
        path.write_bytes(content)
    for name in TABLES:
        attack(folder / name, table(name), lambda path: read(path, name_column="id"), n_each // 2)
    (folder / "texts").mkdir()
    attack(folder / "texts" / "a.txt", "wörds in a file\n".encode() * 5, lambda p: read(p.parent))
    for name, (content, reader) in OTHERS.items():
        attack(folder / name, content, reader)
    return tried, refused


def test_some_damaged_files(tmp_path):
    tried, refused = run_all(tmp_path, 20, seed=0)
    assert tried > 300
    assert refused > tried / 3


@pytest.mark.slow
def test_many_damaged_files(tmp_path):
    tried, refused = run_all(tmp_path, 650, seed=1)
    print(f"{tried} damaged files, of which {refused} were refused and the rest read")
    assert tried >= 10_000
    shutil.rmtree(tmp_path)


def test_what_is_read_is_sound(tmp_path):
    # A damaged file that is read must give a corpus that can be written.
    rng = np.random.default_rng(2)
    for name in COUNTED:
        write(tmp_path / name, example(), overwrite=True)
        path = tmp_path / name
        content = path.read_bytes()
        for _ in range(15):
            path.write_bytes(damaged(content, rng))
            try:
                corpus = gather(read(path))
            except CorpusError:
                continue
            write(tmp_path / "copy.npz", corpus, overwrite=True)
            assert read(tmp_path / "copy.npz").n_tokens == corpus.n_tokens
        path.write_bytes(content)
