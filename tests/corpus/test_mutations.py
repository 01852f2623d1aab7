"""Damaged files of any kind: read, or refused with the package's error; never wrong, no hang."""

import io
import json
import shutil
import time
import warnings

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import sparse

from mutations import mutate
from tempering.corpus import Corpus, CorpusError, open_source, read, write

LONGEST_SECONDS = 5.0
#: What to put in the place of a number.
STRANGE = [b"-1", b"0", b"", b"9" * 12, b"9" * 30, b"1e308", b"nan", b"1.5", b":", b"\xff", b"\0"]
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
TABLES = ["t.csv", "t.jsonl", "t.parquet", "t.txt"]


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
    if name == "t.txt":
        return "\n".join(texts).encode()
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": range(20), "text": texts}), file, row_group_size=8)
    return file.getvalue()


def read_sound(path, **options):
    """Read; what comes must be finite counts, in bounds, that add up."""
    counts = read(path, **options).counts
    counts.check_format(full_check=True)
    assert np.all(np.isfinite(counts.data) & (counts.data > 0))


def read_source(path):
    source = open_source(path, 10)
    list(source.sweep())
    next(source.batches(0))


def damaged(content, rng):
    """Bytes damaged anywhere, or a number replaced by something strange."""
    digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if rng.random() < 0.5 or not digits:
        return mutate(content, rng)
    start = end = digits[int(rng.integers(len(digits)))]
    while end < len(content) and 48 <= content[end] <= 57:
        end += 1
    return content[:start] + STRANGE[int(rng.integers(len(STRANGE)))] + content[end:]


def run_all(folder, n_each, seed):
    """Damage every kind of file ``n_each`` times; how many were tried, and how many refused."""
    tried, messages = 0, []

    def attack(path, reader):
        nonlocal tried
        content = path.read_bytes()
        rng = np.random.default_rng([seed, tried])
        reader(path)
        for _ in range(n_each):
            path.write_bytes(damaged(content, rng))
            start = time.process_time()
            try:
                reader(path)
            except CorpusError as error:
                messages.append(str(error).replace(str(folder), ""))
            assert time.process_time() - start < LONGEST_SECONDS
        tried += n_each
        path.write_bytes(content)

    for name in [*COUNTED, "s.parquet"]:
        write(folder / name, example(), overwrite=True)
        attack(folder / name, read_source if name == "s.parquet" else read_sound)
    for beside in ("a.vocab.txt", "a.documents.txt", "vocab.a.txt"):
        corpus = folder / ("docword.a.txt" if beside.startswith("vocab") else "a.npz")
        attack(folder / beside, lambda _, corpus=corpus: read_sound(corpus))
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_bytes("wörds in a file\n".encode() * 5)
    attack(folder / "texts" / "a.txt", lambda path: read_sound(path.parent))
    for name in TABLES:
        (folder / name).write_bytes(table(name))
        for on_error in ("fail", "skip"):
            attack(folder / name, lambda path, how=on_error: read_sound(path, on_error=how))
    assert max(map(len, messages)) < 600
    return tried, len(messages)


@pytest.mark.filterwarnings("ignore:.*bad records were skipped")
def test_some_damaged_files(tmp_path):
    tried, refused = run_all(tmp_path, 12, seed=0)
    assert tried > 250
    assert refused > tried / 3


@pytest.mark.slow
def test_many_damaged_files(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried, refused = run_all(tmp_path, 500, seed=1)
    print(f"{tried} damaged files, of which {refused} were refused and the rest read")
    assert tried >= 10_000
    shutil.rmtree(tmp_path)
