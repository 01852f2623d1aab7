"""Damaged files, and files that claim too much, get an error that names them."""

import gzip
import os
import pickle
import time
import zipfile

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import sparse

from tempering.corpus import Corpus, CorpusError, open_source, read, read_texts, write

HEADER = "%%MatrixMarket matrix coordinate integer general\n"
REAL = HEADER.replace("integer", "real")
#: For each file, what is wrong with it as a part of the message.
CASES = {
    "docword.a.txt": {
        "": "line 1: it should be the number of documents",
        "2\n": "line 2: it should be the number of words",
        "2\n3\n": "line 3: it should be the number of entries",
        "2\nx\n1\n1 1 1\n": "line 2: it should be the number of words; got b'x'",
        "-2\n3\n1\n1 1 1\n": "line 1",
        "2\n3\n2\n1 1 1\n": "it holds 1 entries, but its header promises 2",
        "2\n3\n1\n1 1 1\n2 1 1\n": "it holds 2 entries, but its header promises 1",
        "2\n3\n1\n3 1 1\n": "a document must be a number from 1 to 2; got 3",
        "2\n3\n1\n0 1 1\n": "a document must be a number from 1 to 2; got 0",
        "2\n3\n1\n1 4 1\n": r"document 0 \(from 0\): word 4 is out of range: there are 3",
        "2\n3\n1\n1 0 1\n": "word 0 is out of range: there are 3, numbered from 1",
        "2\n3\n1\n1 1 -1\n": "a count must be finite, not negative",
        "2\n3\n2\n1 1 1\n1 1 1.5\n": "lines from 4 on: each should be three whole numbers",
        "2\n3\n1\n1 1 9999999999\n": "a count must be finite",
        "2\n3\n1\n1 1 99999999999999999999\n": "lines from 4 on: each should be",
        "2\n3\n2\n1 1\n1 2 3 4\n": "lines from 4 on: each should be",
        "2\n3\n1\n1 1 1\0\n": "lines from 4 on: each should be",
        "2\n3\n2\n2 1 1\n1 1 1\n": "document 1 comes after document 2: sort",
        "1000000000000\n3\n1\n1 1 1\n": "1000000000000 documents are claimed",
        "2\n1000000000000\n1\n1 1 1\n": "words; got 1000000000000",
    },
    "a.mtx": {
        "": "line 1",
        "%%MatrixMarket matrix array real general\n2 2\n": "line 1: it should be",
        "%%MatrixMarket matrix coordinate complex general\n1 1 1\n": "line 1: it should be",
        "%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n": "line 1: it should be",
        HEADER: "Premature EOF",
        HEADER + "2 3\n": "a.mtx",
        HEADER + "%\n2 -3 1\n": "a.mtx",
        HEADER + "2 3 1\n1 4 1\n": "line 3: Column index out of bounds",
        HEADER + "2 3 2\n1 1 1\n": "Truncated",
        HEADER + "1000000000000 3 1\n1 1 1\n": "1000000000000 documents are claimed",
        HEADER + "3 3 1000000000000\n1 1 1\n": "24000000000024 bytes, .*TEMPERING_MAX_BYTES=",
        HEADER + "1 1 1\n1 1 -1\n": "a count must be finite, not negative",
        # These end the process where scipy reads them unguarded.
        HEADER + "1 1 1\n1 1 2000000000000x": "a count must be finite",
        HEADER + "1 1 1\n1 1 1\0 1\n": "it holds a byte 0",
        REAL + "2 2 2\n1 1 1\n2 2 \0\n": "it holds a byte 0",
        REAL + "1 1 1\n1 1 nan\n": "a count must be finite",
        REAL + "1 1 1\n1 1 1e999\n": "a.mtx",
    },
    "a.ldac": {
        "1 0:1\n2 0:1\n": "line 2: it should be the number of its pairs",
        "1 0:1\n2 0:1 1:": "line 2: it should be the number of its pairs",
        "1 0:1\n1 0:-1\n": r"document 1 \(from 0\): a count must be finite, not negative",
        "1 0:1\n1 0:1.5\n": "line 2: it should be",
        "1 0:1\n1 -1:1\n": r"document 1 \(from 0\): word -1 is out of range",
        "1 0:1\n1 99999999999:1\n": "words; got 100000000000",
        "1 0:1\n\n1 0 1\n": "line 3: it should be",
        "1 0:1\n1 0: 1\n": "line 2: it should be",
        "1 0:1\n1 0::1\n": "line 2: it should be",
        "1 0:1\nx 0:1\n": "line 2: it should be",
        "once upon a time\n": "line 1: it should be",
    },
    "a.svmlight": {
        "1 1:1\nx 1:1\n": "a.svmlight.*: it is damaged",
        "1 1:1\n1 1:x\n": "a.svmlight.*: it is damaged",
        "1 1:1\n1 1:-0.5\n": "not negative, .* got -0.5",
        "1 1:1 # fine\n1 1:nan\n": "a count must be finite.* got nan",
        "1 1:1\n1 -1:2\n": "a.svmlight.*: it is damaged",
        "1 1:1\n1 1\n": "a.svmlight.*: it is damaged",
    },
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [(name, text, message) for name in CASES for text, message in CASES[name].items()],
)
def test_a_broken_text_file_is_named(tmp_path, name, text, message, packed):
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(CorpusError, match=message) as raised:
        read(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("name", ["docword.a.txt.gz", "a.mtx.gz", "a.ldac.gz", "t.csv.gz"])
def test_a_cut_gzip_file_is_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"1\n1\n1\n1 1 1\n")[:-6])
    for on_error in ("fail", "skip"):
        with pytest.raises(CorpusError, match=name):
            read(path, on_error=on_error)


def test_words_out_of_the_vocabulary_are_named(tmp_path):
    (tmp_path / "a.vocab.txt").write_text("one\ntwo\n")
    (tmp_path / "a.ldac").write_text("1 0:1\n1 2:1\n")
    with pytest.raises(
        CorpusError, match=r"a\.ldac, document 1 \(from 0\): word 2 is out of range"
    ):
        read(tmp_path / "a.ldac")
    (tmp_path / "a.svmlight").write_text("1 1:1\n1 3:1\n")
    with pytest.raises(CorpusError, match=r"word 3 is out of range: there are 2, numbered from 1"):
        read(tmp_path / "a.svmlight")


def test_a_broken_vocabulary_is_named(tmp_path):
    (tmp_path / "docword.a.txt").write_text("1\n2\n1\n1 2 3\n")
    vocabulary = tmp_path / "vocab.a.txt"
    vocabulary.write_bytes(b"one\ntw\xff\n")
    with pytest.raises(CorpusError, match=r"vocab\.a\.txt, line 2: it is not UTF-8"):
        read(tmp_path / "docword.a.txt")
    vocabulary.write_bytes(b"one\n")
    with pytest.raises(CorpusError, match=r"vocab\.a\.txt, line 1: it holds 1 words, but .* of 2"):
        read(tmp_path / "docword.a.txt")
    vocabulary.write_bytes(b"one\ntwo\n")
    (tmp_path / "documents.a.txt").write_bytes(b"a\nb\n")
    with pytest.raises(CorpusError, match=r"documents\.a\.txt, line 2: it holds 2 names"):
        read(tmp_path / "docword.a.txt")


def npz(path, kind="csr", **changes):
    """A matrix with some of its arrays replaced, or left out."""
    counts = sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], np.int32)).asformat(kind)
    places = {name: getattr(counts, name) for name in ("indices", "indptr") if kind != "coo"}
    places |= {name: getattr(counts, name) for name in ("row", "col") if kind == "coo"}
    arrays = {"format": np.array(kind.encode()), "shape": np.array([2, 3]), "data": counts.data}
    arrays = {**places, **arrays, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("csr", {"data": None}),
        ("csr", {"format": np.array(b"dia")}),
        ("csr", {"shape": np.array([2])}),
        ("csr", {"shape": np.array([10**12, 3])}),
        ("csr", {"shape": np.array([3, 3])}),
        ("csr", {"shape": np.array([2, 2])}),
        ("csr", {"indices": np.array([0, -1, 1])}),
        ("csr", {"indices": np.array([0, 2**40, 1])}),
        ("csr", {"indptr": np.array([0, 3, 2])}),
        ("csr", {"indptr": np.array([1, 2, 3])}),
        ("csr", {"data": np.array([1, 2])}),
        ("csr", {"data": np.array([1, 2, -3])}),
        ("csr", {"data": np.array([1, 2, 2**31])}),
        ("csr", {"data": np.array([1, np.nan, 3])}),
        ("csr", {"data": np.array(["a", "b", "c"])}),
        ("csr", {"data": np.array([1j, 2, 3])}),
        ("csr", {"data": np.eye(3)}),
        ("csc", {"indices": np.array([0, 9, 0])}),
        ("csc", {"indptr": np.array([0, 9, 2, 3])}),
        ("coo", {"row": np.array([0, 10**9, 1])}),
        ("coo", {"col": np.array([0, -1, 1])}),
        ("coo", {"shape": np.array([10**12, 3])}),
    ],
)
def test_a_broken_npz_file_is_named(tmp_path, kind, changes):
    npz(tmp_path / "a.npz", kind)
    assert read(tmp_path / "a.npz").counts.toarray().tolist() == [[1, 0, 2], [0, 3, 0]]
    npz(tmp_path / "a.npz", kind, **changes)
    with pytest.raises(CorpusError, match=r"a\.npz"):
        read(tmp_path / "a.npz")


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_nothing_in_a_file_is_run(tmp_path):
    sprung = tmp_path / "sprung"
    npz(tmp_path / "a.npz", data=np.array([Trap(sprung)] * 3, object))
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Trap(sprung)))
    for name in ("a.npz", "b.npz"):
        with pytest.raises(CorpusError, match=name):
            read(tmp_path / name)
    assert not sprung.exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip file at all", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_npz_file_is_refused(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(CorpusError, match=r"a\.npz"):
        read(tmp_path / "a.npz")


def parquet_file(path, ids, counts, **columns):
    parquet.write_table(pyarrow.table({"ids": ids, "counts": counts, **columns}), path)


@pytest.mark.parametrize(
    ("ids", "counts", "message"),
    [
        ([[0, 1], [-1]], [[1, 1], [1]], r"row group 0, document 1 \(from 0\): word -1 is out"),
        ([[0, 1], [2]], [[1, 1], [1, 2]], r"row group 0, row 1 \(from 0\): it has lists of diff"),
        ([[0, 1], [2]], [[1, 1], [-1]], r"row group 0, document 1 \(from 0\): a count"),
        ([[0, 1], [2]], [[1.0, 1.0], [float("nan")]], r"document 1 \(from 0\): a count"),
        ([[0, 1], None], [[1, 1], [1]], "column 'ids': a value is missing"),
        ([[0, None], [2]], [[1, 1], [1]], "column 'ids': a value is missing"),
        ([[0.0, 1.0], [2.0]], [[1, 1], [1]], "column 'ids': words should be whole numbers"),
        ([[0, 1], [2]], [["a", "b"], ["c"]], "column 'counts': counts should be numbers"),
        ([0, 1], [1, 1], "column 'ids': it should be a list"),
        ([[0, 10**12], [2]], [[1, 1], [1]], "words; got 1000000000001"),
    ],
)
def test_a_broken_parquet_file_is_named_with_its_row_group(tmp_path, ids, counts, message):
    parquet_file(tmp_path / "a.parquet", ids, counts)
    with pytest.raises(CorpusError, match=message):
        read(tmp_path / "a.parquet")


def test_parquet_of_others_is_read(tmp_path):
    parquet_file(
        tmp_path / "a.parquet",
        pyarrow.array([[3, 1], [], [0]], pyarrow.large_list(pyarrow.int64())),
        pyarrow.array([[1, 2], [], [5]], pyarrow.list_(pyarrow.uint8())),
        doc_id=["x", None, "z"],
    )
    corpus = read(tmp_path / "a.parquet")
    assert corpus.names == ["x", "1", "z"]
    assert corpus.counts.toarray().tolist() == [[0, 2, 0, 1], [0, 0, 0, 0], [5, 0, 0, 0]]
    (tmp_path / "a.vocab.txt").write_text("one\ntwo\n")
    with pytest.raises(CorpusError, match=r"document 0 \(from 0\): word 3 is out of range: there"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_parquet_with_words_of_unsigned_types_is_read(tmp_path, bits):
    kind = pyarrow.list_(getattr(pyarrow, f"uint{bits}")())
    ids = pyarrow.array([[], [3, 1], [0]], kind)
    parquet_file(tmp_path / "a.parquet", ids, pyarrow.array([[], [1, 2], [5]], kind))
    assert read(tmp_path / "a.parquet").counts.toarray().tolist() == [
        [0, 0, 0, 0],
        [0, 2, 0, 1],
        [5, 0, 0, 0],
    ]


def test_damaged_pages_are_found(tmp_path):
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(rng.poisson(1.0, size=(500, 20)))
    write(tmp_path / "a.parquet", Corpus(counts))
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(CorpusError, match="damaged"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.npz", "a.mtx", "a.mtx.gz", "a.parquet"])
def test_one_number_limits_the_memory_and_can_be_raised(tmp_path, monkeypatch, name):
    counts = sparse.csr_array(np.random.default_rng(0).poisson(1.0, size=(50, 40)))
    write(tmp_path / name, Corpus(counts))
    monkeypatch.setenv("TEMPERING_MAX_BYTES", "1000")
    with pytest.raises(CorpusError, match=f"{name}: .* more than the 1000 .* TEMPERING_MAX_BYTES="):
        read(tmp_path / name)
    monkeypatch.setenv("TEMPERING_MAX_BYTES", "1000000")
    assert read(tmp_path / name).n_tokens == counts.sum()
    for wrong in ("much", "-1", "0", "9" * 30):
        monkeypatch.setenv("TEMPERING_MAX_BYTES", wrong)
        with pytest.raises(CorpusError, match="must be a number of bytes"):
            read(tmp_path / name)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TEMPERING_MAX_BYTES", str(64 * 10_000))
    for name in ("t.jsonl.gz", "t.txt.gz", "t.csv.gz", "docword.a.txt.gz", "a.ldac.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"1" * 1_000_000))
        with pytest.raises(CorpusError, match=rf"{name}: line 1.* TEMPERING_MAX_BYTES="):
            read(tmp_path / name)


def test_a_zip_file_that_claims_too_much_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", b"0")
    content = path.read_bytes()
    entry = content.index(b"PK\x01\x02") + 24
    path.write_bytes(content[:entry] + b"\xfe\xff\xff\xff" + content[entry + 4 :])
    with pytest.raises(CorpusError, match=r"a\.npz"):
        read(path)


def test_blank_lines_take_little_time(tmp_path):
    blank = b"\n" * 3_000_000
    for name, begin, end in [
        ("a.mtx.gz", HEADER.encode() + b"1 1 1\n", b"1 1 7\n"),
        ("docword.a.txt.gz", b"1\n1\n1\n", b"1 1 7\n"),
        ("a.ldac.gz", b"1 0:7\n", b""),
    ]:
        (tmp_path / name).write_bytes(gzip.compress(begin + blank + end))
        start = time.process_time()
        assert read(tmp_path / name).n_tokens == 7
        assert time.process_time() - start < 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    for name in ("a.npz", "a.parquet", "a.mtx", "t.csv", "t.txt", "nameless"):
        os.mkfifo(tmp_path / name)
        for reader in (read, read_texts, open_source):
            with pytest.raises(CorpusError, match="pipe, socket or device"):
                reader(tmp_path / name)
