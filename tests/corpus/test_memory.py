"""Readers take a small multiple of the file, whatever it claims, and however it is packed."""

import gzip
import json
import re
import zipfile

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import sparse

from memory import assert_modest, measured
from tempering.corpus import Corpus, CorpusError, ParquetSource, read, write
from tempering.corpus.expansion import expansion_limit
from tempering.corpus.parquet_pages import HEADER as PAGE
from tempering.corpus.parquet_pages import (
    PACKED_SIZE,
    UNPACKED_SIZE,
    read_chunks,
    unpacked_size,
)
from tempering.corpus.thrift import BYTE, DOUBLE, I32, I64, LIST, STRUCT, Compact, field

#: A file that unpacks to just what is allowed is 20 times as large in memory as others are.
BOMB_MULTIPLE = 100
TOO_MUCH = "unpacks to more than 20 times its size"


def take(path, reader=read, multiple=20):
    """Read, and hold the memory against the file; the error, if it was refused."""
    n_bytes = path.stat().st_size
    error = ""
    with measured() as peak:
        try:
            reader(path)
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


def check_formats(folder, corpus):
    for name in NAMES:
        write(folder / name, corpus, overwrite=True)
        assert take(folder / name) == ""
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
        # The first half of these is a corpus too, but not one of so many documents.
        assert take(folder / name) != "" or name.startswith(("a.ldac", "a.svm"))


def test_corpora_and_halves_of_them(tmp_path):
    check_formats(tmp_path, realistic(1500))


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
        ("docword.a.txt", b"3\n1000000000000\n1\n1 1 1\n"),
        ("docword.a.txt", b"3\n2147483647\n1000000000000\n1 1 1\n"),
        # As many documents as are believed, all but one of them empty.
        ("docword.a.txt", b"65000\n2147483647\n1\n1 1 1\n"),
        ("docword.a.txt", b"665000\n1\n200000\n" + ENTRIES),
        ("docword.a.txt", b"9" * 3_000_000),
        ("a.mtx", HEADER + b"1000000000000 3 1\n1 1 1\n"),
        ("a.mtx", HEADER + b"3 1000000000000 1\n1 1 1\n"),
        ("a.mtx", HEADER + b"3 3 1000000000000\n1 1 1\n"),
        ("a.mtx", HEADER + b"665000 1 200000\n" + ENTRIES),
        ("a.mtx", HEADER + b"%" * 3_000_000),
        ("a.ldac", b"1000000000000 0:1\n"),
        ("a.ldac", b"1 2147483646:1\n"),
        ("a.ldac", b"400000 " + b" ".join([b"1:1"] * 400_000)),
        ("a.ldac", b"0\n" * 500_000),
        ("a.svmlight", b"1 2147483646:1\n"),
        ("a.svmlight", b"1 " + b" ".join([b"1:1"] * 400_000)),
        ("a.svmlight", b"#" * 3_000_000),
        ("a.jsonl", b'{"text": "two words", "more": ' + b"[" * 500_000 + b"]" * 500_000 + b"}"),
        ("a.jsonl", b'{"text": "two words", "more": [' + b",".join([b"{}"] * 300_000) + b"]}"),
        ("a.jsonl", b'{"text": "two words", "n": ' + b"9" * 1_000_000 + b"}"),
        ("a.csv", b"text" + b",a" * 300_000 + b"\ntwo words" + b",b" * 300_000),
        ("a.csv", b'text\n"two words' + b"\n" * 200_000),
        ("a.csv", b"text\n" + b"word " * 200_000),
    ],
    ids=range(24),
)
def test_what_text_files_claim(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    take(tmp_path / name)


def uci(noise, n):
    """Lines of noise, then n that are all alike."""
    lines = noise + b"100000 1 1\n" * n
    return b"100000\n1\n%d\n" % lines.count(b"\n") + lines


@pytest.mark.parametrize("share", [0.9, 1.1, 5.0])
def test_a_gzip_file_at_the_limit(tmp_path, share):
    path = tmp_path / "docword.a.txt.gz"
    rng = np.random.default_rng(0)
    # Noise makes the file large enough for 20 times its size to matter.
    noise = b"".join(b"%d 1 1\n" % n for n in np.sort(rng.integers(1, 10**5, size=60_000)))
    path.write_bytes(gzip.compress(noise))
    n = int(share * expansion_limit(path)) // 11
    path.write_bytes(gzip.compress(uci(noise, n)))
    error = take(path, multiple=BOMB_MULTIPLE)
    assert (TOO_MUCH in error) == (share > 1), error


def npz(path, **arrays):
    arrays = {
        "format": np.array(b"csr"),
        "shape": np.array([1, 1]),
        "indptr": np.array([0, 3]),
        "indices": np.zeros(3, np.int32),
        "data": np.ones(3, np.int32),
        **arrays,
    }
    np.savez_compressed(path, **arrays)


@pytest.mark.parametrize("n", [10**5, 10**6, 3 * 10**6])
@pytest.mark.parametrize("kind", ["int8", "int32", "float64"])
def test_zip_bombs(tmp_path, n, kind):
    path = tmp_path / "a.npz"
    npz(path, indptr=np.array([0, n]), indices=np.zeros(n, kind), data=np.ones(n, kind))
    error = take(path)
    assert (error == "") == (n == 10**5 and kind != "float64"), error
    places = {"row": np.zeros(n, kind), "col": np.zeros(n, kind), "data": np.ones(n, kind)}
    npz(path, format=np.array(b"coo"), **places)
    take(path)


def test_an_archive_whose_members_share_their_bytes(tmp_path):
    """Each member of the directory points to the same bytes, so that a small file has many."""
    path = tmp_path / "a.npz"
    npz(path)
    with zipfile.ZipFile(path, "a") as archive:
        first = archive.infolist()[0]
        archive.filelist.extend([first] * 5_000)
        archive._didModify = True
    assert "its members claim more bytes than the file has" in take(path)


def test_a_member_that_claims_to_be_long(tmp_path):
    """In the directory of the archive, before and after it is unpacked."""
    path = tmp_path / "a.npz"
    npz(path)
    content = path.read_bytes()
    entry = content.index(b"PK\x01\x02")
    for place in (entry + 20, entry + 24):
        claimed = (2**31).to_bytes(4, "little")
        path.write_bytes(content[:place] + claimed + content[place + 4 :])
        error = take(path)
        assert "claim more bytes" in error or TOO_MUCH in error


def claiming(content, shape):
    """An array in NumPy's format with another shape in its header."""
    end = 10 + int.from_bytes(content[8:10], "little")
    header = re.sub(rb"\(.*\)", shape, content[10:end]).rstrip()
    return content[:10] + header.ljust(end - 11) + b"\n" + content[end:]


def test_an_npz_header_that_claims_a_lot(tmp_path):
    npz(tmp_path / "small.npz")
    with zipfile.ZipFile(tmp_path / "small.npz") as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    for name in ("indptr.npy", "indices.npy", "data.npy", "shape.npy"):
        for shape in (b"(1000000000000,)", b"(1000000, 1000000)", b"(0, 1000000000000)"):
            changed = {**members, name: claiming(members[name], shape)}
            with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
                for member, content in changed.items():
                    archive.writestr(member, content)
            assert name in take(tmp_path / "a.npz")


# Parquet.


def varint(number, length=0):
    """A whole number as Thrift's compact protocol writes it, in at least so many bytes."""
    number <<= 1
    parts = []
    while number or len(parts) < max(length, 1):
        parts.append(number & 127 | 128)
        number >>= 7
    parts[-1] &= 127
    return bytes(parts)


def table(path, **options):
    """A corpus that no one could have written by hand: one document of a million times word 0."""
    zeros = pyarrow.array(np.zeros(10**7, np.int32))
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, 10**7], pyarrow.int32()), zeros)
    parquet.write_table(pyarrow.table({"ids": lists, "counts": lists}), path, **options)


def test_runs_of_equal_values_are_counted(tmp_path):
    """A kilobyte for ten million values; and again with a footer that tells of one of them."""
    path = tmp_path / "a.parquet"
    table(path, compression="zstd")
    assert path.stat().st_size < 10_000
    assert TOO_MUCH in take(path)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    told = varint(10**7)
    forged = content[footer:].replace(told, varint(1, len(told)))
    assert forged != content[footer:]
    path.write_bytes(content[:footer] + forged)
    assert "values instead of 1." in take(path)
    # A page that claims to unpack to two gigabytes.
    parquet.write_table(pyarrow.table({"ids": [[1]] * 9, "counts": [[1]] * 9}), path)
    column = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    content = path.read_bytes()
    place = column.data_page_offset
    header = Compact(content[place:])
    fields = header.struct(PAGE)
    packed = b"\x15" + varint(fields[PACKED_SIZE])
    old = b"\x15" + varint(fields[UNPACKED_SIZE]) + packed
    new = b"\x15" + varint(2**31 - 1) + packed
    assert content[place:].startswith(b"\x15\x00" + old)
    # The bytes that are put in are taken from the page itself.
    page = place + header.place
    moved = content[:place] + content[place:page].replace(old, new)
    path.write_bytes(moved + content[page + len(new) - len(old) :])
    assert TOO_MUCH in take(path)


def test_a_text_that_is_repeated_is_held_once(tmp_path):
    path = tmp_path / "a.parquet"
    rng = np.random.default_rng(0)
    # Of letters alone: a token pattern would else find thousands of words in it.
    text = rng.bytes(100_000).hex().translate(str.maketrans("0123456789", "ghijklmnop"))
    parquet.write_table(pyarrow.table({"text": [text] * 200}), path)
    assert path.stat().st_size < 2 * len(text)
    assert TOO_MUCH in take(path)
    texts = [f"{text}{i}" for i in range(100)]
    parquet.write_table(
        pyarrow.table({"text": texts}),
        path,
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
    )
    assert path.stat().st_size < 2 * len(text)
    assert TOO_MUCH in take(path)


@pytest.mark.parametrize("n", [10**4, 10**6])
def test_rows_without_a_word(tmp_path, n):
    path = tmp_path / "a.parquet"
    empty = pyarrow.array([[]] * n, pyarrow.list_(pyarrow.int32()))
    parquet.write_table(pyarrow.table({"ids": empty, "counts": empty}), path, compression="zstd")
    assert (take(path) == "") == (n == 10**4)


def claim_in_footer(path, n_places):
    """Numbers of it, one after another, are made large ones."""
    write(path, realistic(30))
    content = path.read_bytes()
    read(path)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    places = [i for i in range(footer, len(content) - 12) if content[i] in (0x15, 0x16, 0x19)]
    rng = np.random.default_rng(0)
    for place in rng.choice(places, min(n_places, len(places)), replace=False):
        for bits in (b"\xfe\xff\xff\xff\x0f", b"\xfc\xff\xff\xff\xff\xff\x3f"):
            changed = content[: place + 1] + bits + content[place + 2 : -8]
            length = (len(changed) - footer).to_bytes(4, "little")
            path.write_bytes(changed + length + b"PAR1")
            take(path)
            take(path, lambda path: ParquetSource(path, 10))


def test_claims_of_a_footer(tmp_path):
    claim_in_footer(tmp_path / "a.parquet", 25)


@pytest.mark.slow
def test_all_claims_of_a_footer(tmp_path):
    claim_in_footer(tmp_path / "a.parquet", 10**6)


def test_a_description_of_a_directory_that_claims_a_lot(tmp_path):
    write(tmp_path / "a.csr", realistic(30))
    description = tmp_path / "a.csr" / "meta.json"
    told = json.loads(description.read_text())
    for name in ("n_documents", "n_words", "n_tokens"):
        description.write_text(json.dumps({**told, name: 10**12}))
        error = take(description, lambda path: read(path.parent, "csr"))
        assert error or name != "n_documents"
    description.write_text(json.dumps(told))
    for array in ("indptr", "indices", "data"):
        path = tmp_path / "a.csr" / f"{array}.npy"
        content = path.read_bytes()
        path.write_bytes(claiming(content, b"(1000000000000,)"))
        assert path.name in take(path, lambda path: read(path.parent, "csr"))
        # The second version of the format has four bytes for the length of the header.
        path.write_bytes(content[:6] + b"\x02\x00\xff\xff\xff\x7f" + content[12:])
        assert path.name in take(path, lambda path: read(path.parent, "csr"))
        path.write_bytes(content)


def test_structures_that_end_too_early_or_cannot_be_right():
    for text in (b"", b"\x15", b"\x15\x80", b"\x18\x05ab", b"\x19\xf5\xff\xff\x7f\x02"):
        with pytest.raises(IndexError):
            Compact(text).struct({})
    for text in (b"\x1c" * 40, b"\x19\x19" * 40, b"\x1b\x00\x00", b"\x15" + b"\xff" * 11):
        with pytest.raises(ValueError, match=r"deep|type|long"):
            Compact(text).struct({})
    with pytest.raises(ValueError, match="twice"):
        Compact(b"\x15\x02\x05\x02\x02\x00").struct({field(1, I32): None})


def test_structures_are_read_as_they_are_told():
    text = b"".join(
        [
            b"\x16" + varint(2**62),
            b"\x18\x02ab",
            b"\x1c\x15\x06\x00",
            b"\x13\x01",
            b"\x17" + bytes(8),
            b"\x11\x12",
            b"\x19\x2c\x15\x02\x00\x15\x03\x00",
            b"\x19\x31\x01\x02\x01",
            b"\x00",
        ]
    )
    inner = {field(1, I32): None}
    wanted = {field(1, I64): None, field(3, STRUCT): inner, field(8, LIST): inner}
    compact = Compact(text + b"more")
    found = compact.struct({**wanted, field(4, BYTE): None, field(1, DOUBLE): None})
    inside = [{field(1, I32): 1}, {field(1, I32): -2}]
    expected = {field(1, I64): 2**62, field(3, STRUCT): {field(1, I32): 3}, field(8, LIST): inside}
    assert found == {**expected, field(4, BYTE): None}
    assert compact.place == len(text)


def test_the_sizes_of_pages_are_those_that_were_written(tmp_path):
    """Against what pyarrow tells, for both kinds of pages, texts and numbers."""
    path = tmp_path / "a.parquet"
    rng = np.random.default_rng(0)
    lists = [rng.integers(0, 10**6, size=n).tolist() for n in rng.integers(0, 50, size=4000)]
    columns = {"a": lists, "b": [f"text {i % 700}" for i in range(4000)], "c": [0.5] * 4000}
    for version in ("1.0", "2.0"):
        options = {"data_page_version": version, "data_page_size": 5000, "row_group_size": 1500}
        parquet.write_table(pyarrow.table(columns), path, **options)
        metadata = parquet.ParquetFile(path).metadata
        told = [metadata.row_group(i).column(j) for i in range(3) for j in range(3)]
        with open(path, "rb") as file:
            chunks = read_chunks(path, file)
            sizes = [unpacked_size(path, file, chunk) for chunk in chunks]
        assert [chunk.n_values for chunk in chunks] == [column.num_values for column in told]
        for chunk, size, column in zip(chunks, sizes, told, strict=True):
            assert chunk.end - chunk.start == column.total_compressed_size
            # That total counts headers too.
            total = max(column.total_uncompressed_size, 8 * column.num_values)
            assert 0.8 * total <= size.n_bytes <= total
            assert 0 < size.largest_page <= size.n_bytes
