"""Broken input gets an error that names the file and the place, and takes no memory for claims."""

import gzip
import io
import zipfile

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import sparse

from tempering.corpus import Corpus, CorpusError, read, write

HEADER = "%%MatrixMarket matrix coordinate integer general\n"

UCI = [
    ("", "line 1: it should be the number of documents; got b''"),
    ("2\n", "line 2: it should be the number of words"),
    ("2\n3\n", "line 3: it should be the number of entries"),
    ("2\nx\n1\n1 1 1\n", "line 2: it should be the number of words; got b'x'"),
    ("-2\n3\n1\n1 1 1\n", "line 1: it should be the number of documents; got b'-2'"),
    ("2\n3\n2\n1 1 1\n", "it ends after 1 of the 2 entries"),
    ("2\n3\n1\n1 1 1\n2 1 1\n", "line 5: there are more than the 1 entries"),
    ("2\n3\n1\n3 1 1\n", "line 4: a document must be a number from 1 to 2; got '3'"),
    ("2\n3\n1\n0 1 1\n", "line 4: a document must be a number from 1 to 2; got '0'"),
    ("2\n3\n1\n1 4 1\n", "line 4: a word must be a number from 1 to 3; got '4'"),
    ("2\n3\n1\n1 1 -1\n", "line 4: a count must be a whole number .* got '-1'"),
    ("2\n3\n1\n1 1 1.5\n", "line 4: a count must be a whole number .* got '1.5'"),
    ("2\n3\n1\n1 1 9999999999\n", "line 4: a count must be .* got '9999999999'"),
    ("2\n3\n1\n1 1\n", "line 4: it should hold 3 numbers; it holds 2"),
    ("2\n3\n2\n1 1 1\n1 2 3 4\n", "line 5: it should hold 3 numbers; it holds 4"),
    ("2\n3\n1\n1 1 \xff\n", "line 4: a count must be"),
    ("2\n3\n2\n2 1 1\n1 1 1\n", "line 5: document 1 comes after document 2: sort"),
    ("1000000000000\n3\n1\n1 1 1\n", "1000000000000 documents are claimed, too many"),
    ("2\n1000000000000\n1\n1 1 1\n", "0 to 2147483647 words; got 1000000000000"),
    ("2\n3\n1000000000000\n1 1 1\n", "it ends after 1 of the 1000000000000 entries"),
]
MTX = [
    ("", "line 1: it should be"),
    ("%%MatrixMarket matrix array real general\n2 2\n", "line 1: it should be"),
    ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n", "line 1: it should be"),
    ("%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n", "line 1: it should be"),
    (HEADER, "line 2: the line of sizes is missing"),
    (HEADER + "% only this", "line 3: the line of sizes is missing"),
    (HEADER + "2 3\n", "line 2: it should be three sizes"),
    (HEADER + "%\n2 -3 1\n", "line 3: it should be three sizes"),
    (HEADER + "2 3 1\n1 4 1\n", "line 3: a word must be a number from 1 to 3; got '4'"),
    (HEADER + "2 3 2\n1 1 1\n", "it ends after 1 of the 2 entries"),
    (HEADER + "1000000000000 3 1\n1 1 1\n", "1000000000000 documents are claimed"),
    (HEADER.replace("integer", "real") + "1 1 1\n1 1 nan\n", "line 3: a count must be finite"),
    (HEADER.replace("integer", "real") + "1 1 1\n1 1 1e999\n", "line 3: a count must be finite"),
]
LDA_C = [
    ("1 0:1\n2 0:1\n", "line 2: it should begin with the number of its pairs, 1; got '2'"),
    ("1 0:1\n2 0:1 1:", "line 2: it should be a number and then pairs"),
    ("1 0:1\n1 0:-1\n", "line 2: a count must be a whole number"),
    ("1 0:1\n1 0:1.5\n", "line 2: a count must be a whole number"),
    ("1 0:1\n1 -1:1\n", "line 2: a word must be a number"),
    ("1 0:1\n1 99999999999:1\n", "line 2: a word must be a number"),
    ("1 0:1\n1 0 1\n", "line 2: it should be a number and then pairs"),
    ("1 0:1\n1 0: 1\n", "line 2: it should be a number and then pairs"),
    ("1 0:1\n:1 0:1\n", "line 2: it should be a number and then pairs"),
    ("1 0:1\n1 0::1\n", "line 2: it should be a number and then pairs"),
    ("1 0:1\nx 0:1\n", "line 2: it should begin with the number of its pairs"),
    ("once upon a time\n", "line 1: it should be a number and then pairs"),
]
SVMLIGHT = [
    ("1 1:1\nx 1:1\n", "line 2: a label must be a number; got 'x'"),
    ("1 1:1\n1 1:x\n", "line 2: a count must be finite"),
    ("1 1:1\n1 1:-0.5\n", "line 2: a count must be finite and not negative; got '-0.5'"),
    ("1 1:1 # fine\n1 1:nan\n", "line 2: a count must be finite"),
    ("1 1:1\n1 -1:2\n", "line 2: a word must be a number"),
    ("1 1:1\n1 1\n", "line 2: it should be a number and then pairs"),
]
CASES = [
    *(("docword.a.txt", text, message) for text, message in UCI),
    *(("a.mtx", text, message) for text, message in MTX),
    *(("a.ldac", text, message) for text, message in LDA_C),
    *(("a.svmlight", text, message) for text, message in SVMLIGHT),
]


@pytest.mark.parametrize(("name", "text", "message"), CASES)
@pytest.mark.parametrize("packed", [False, True])
def test_a_broken_text_file_is_named_with_its_line(tmp_path, name, text, message, packed):
    content = text.encode("latin-1")
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(CorpusError, match=message) as raised:
        read(path)
    assert str(path) in str(raised.value)


def test_words_out_of_the_vocabulary_are_named(tmp_path):
    (tmp_path / "a.vocab.txt").write_text("one\ntwo\n")
    (tmp_path / "a.ldac").write_text("1 0:1\n1 2:1\n")
    with pytest.raises(CorpusError, match=r"a\.ldac, line 2: word 2 is out of range: there are 2"):
        read(tmp_path / "a.ldac")
    (tmp_path / "a.svmlight").write_text("1 1:1\n1 3:1\n")
    with pytest.raises(CorpusError, match=r"a\.svmlight, line 2: word 3 is out of range"):
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


def test_a_gzip_bomb_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "docword.a.txt.gz"
    path.write_bytes(gzip.compress(b"1\n1\n500000\n" + b"1 1 1\n" * 500_000))
    with pytest.raises(CorpusError, match="unpacks to more than 20 times its size"):
        read(path)
    # Whoever trusts it can have it read.
    monkeypatch.setenv("TEMPERING_LARGEST_EXPANSION", "1000")
    assert read(path).n_tokens == 500_000
    monkeypatch.setenv("TEMPERING_LARGEST_EXPANSION", "much")
    with pytest.raises(CorpusError, match="must be a number from 1 on; got 'much'"):
        read(path)


def test_a_cut_gzip_file_is_refused(tmp_path):
    path = tmp_path / "docword.a.txt.gz"
    path.write_bytes(gzip.compress(b"1\n1\n1\n1 1 1\n")[:-6])
    with pytest.raises(CorpusError, match="damaged or cut short"):
        read(path)


def npz(path, **changes):
    """A CSR matrix with some of its arrays replaced, or left out."""
    counts = sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], np.int32))
    arrays = {
        "indices": counts.indices,
        "indptr": counts.indptr,
        "format": np.array(b"csr"),
        "shape": np.array(counts.shape),
        "data": counts.data,
        **changes,
    }
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": None}, "the array 'data' is missing"),
        ({"format": np.array(b"dia")}, "format.npy: the matrix must be of kind csr, csc, coo"),
        ({"shape": np.array([2])}, "shape.npy: it should be two whole numbers"),
        ({"shape": np.array([10**12, 3])}, "shape.npy: 1000000000000 documents are claimed"),
        ({"shape": np.array([3, 3])}, "indptr.npy: it should have 4 entries"),
        ({"shape": np.array([2, 2])}, "indices.npy: entry 1 is 2, out of range"),
        ({"indices": np.array([0, -1, 1])}, "indices.npy: entry 1 is -1, out of range"),
        ({"indices": np.array([0.0, 1.0, 1.0])}, "indices.npy: it should hold whole numbers"),
        ({"indptr": np.array([0, 3, 2])}, "indptr.npy: it should rise from 0 to 3"),
        ({"data": np.array([1, 2])}, "indices.npy: it should have 2 entries"),
        ({"data": np.array([1, 2, -3])}, r"document 1 \(from 0\): a count .* got -3"),
        ({"data": np.array([1, np.nan, 3])}, r"document 0 \(from 0\): a count .* got nan"),
        ({"data": np.array(["a", "b", "c"])}, "data.npy: it should hold numbers"),
        ({"data": np.array([1j, 2, 3])}, "data.npy: it should be a row of numbers"),
        ({"data": np.eye(3)}, "data.npy: it should be a row of numbers"),
        ({"data": np.array([object()] * 3)}, "data.npy: it should be a row of numbers"),
    ],
)
def test_a_broken_npz_file_is_named_with_its_array(tmp_path, changes, message):
    npz(tmp_path / "a.npz", **changes)
    with pytest.raises(CorpusError, match=message):
        read(tmp_path / "a.npz")


def test_an_npz_file_that_claims_more_than_it_holds_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    npz(path)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    claims = members["data.npy"].replace(b"(3,)", b"(3000000000,)")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (members | {"data.npy": claims}).items():
            archive.writestr(name, content)
    with pytest.raises(CorpusError, match=r"data\.npy: its header tells of"):
        read(path)


def test_a_zip_bomb_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        zeros = io.BytesIO()
        np.save(zeros, np.zeros(400_000))
        archive.writestr("data.npy", zeros.getvalue())
    with pytest.raises(CorpusError, match="allow more in the environment, say TEMP"):
        read(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"not a zip file at all", b"PK\x05\x06" + bytes(18)]
)
def test_what_is_no_npz_file_is_refused(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(CorpusError, match=r"a\.npz"):
        read(tmp_path / "a.npz")


def parquet_file(path, ids, counts, **columns):
    parquet.write_table(pyarrow.table({"ids": ids, "counts": counts, **columns}), path)


@pytest.mark.parametrize(
    ("ids", "counts", "message"),
    [
        ([[0, 1], [-1]], [[1, 1], [1]], r"row group 0, row 1 \(from 0\): word -1 is out of range"),
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


def test_parquet_words_out_of_the_vocabulary_are_named(tmp_path):
    parquet_file(tmp_path / "a.parquet", [[0, 1], [2]], [[1, 1], [1]])
    (tmp_path / "a.vocab.txt").write_text("one\ntwo\n")
    with pytest.raises(CorpusError, match=r"row 1 \(from 0\): word 2 is out of range. There are 2"):
        read(tmp_path / "a.parquet")


def test_parquet_of_others_is_read(tmp_path):
    parquet_file(
        tmp_path / "a.parquet",
        pyarrow.array([[3, 1], [], [0]], pyarrow.large_list(pyarrow.int64())),
        pyarrow.array([[1, 2], [], [5]], pyarrow.list_(pyarrow.uint8())),
        doc_id=["x", "y", "z"],
    )
    corpus = read(tmp_path / "a.parquet")
    assert corpus.names == ["x", "y", "z"]
    assert corpus.counts.toarray().tolist() == [[0, 2, 0, 1], [0, 0, 0, 0], [5, 0, 0, 0]]


def test_damaged_pages_are_found(tmp_path):
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(rng.poisson(1.0, size=(500, 20)))
    write(tmp_path / "a.parquet", Corpus(counts))
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(CorpusError, match="damaged"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["indptr.npy", "data.npy", "meta.json"])
def test_a_broken_directory_is_named(tmp_path, name):
    write(tmp_path / "a.csr", Corpus(sparse.csr_array(np.eye(3))))
    content = (tmp_path / "a.csr" / name).read_bytes()
    (tmp_path / "a.csr" / name).write_bytes(content[:-3])
    with pytest.raises(CorpusError, match=name):
        read(tmp_path / "a.csr", format="csr")
