"""Every format holds what is written to it, and is told by name and content."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import io as scipy_io
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from tempering.corpus import (
    FORMATS,
    Corpus,
    CorpusError,
    Stored,
    open_corpus,
    read,
    write,
)
from tempering.corpus import files as corpus_files
from tempering.corpus.corpus import gather

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
WHOLE = ("docword", "ldac")

settings.register_profile(
    "files",
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

line = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x00"), max_size=6)


@st.composite
def corpora(draw, whole=False):
    """Corpora with a word at least; documents and words may be empty."""
    n_documents, n_words = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    if whole:
        numbers = st.integers(0, 2**31 - 1)
    else:
        numbers = st.one_of(st.integers(0, 9).map(float), st.floats(0, 1e300, allow_subnormal=True))
    mostly_zero = st.one_of(st.just(0), numbers)
    row = st.lists(mostly_zero, min_size=n_words, max_size=n_words)
    counts = draw(st.lists(row, min_size=n_documents, max_size=n_documents))
    counts[0][0] = counts[0][0] or 1
    vocabulary = draw(st.lists(line, min_size=n_words, max_size=n_words))
    names = draw(st.none() | st.lists(line, min_size=n_documents, max_size=n_documents))
    kind = np.int64 if whole else np.float64
    return Corpus(sparse.csr_array(np.array(counts, kind)), vocabulary, names)


def assert_same(a, b):
    assert a.shape == b.shape
    assert_array_equal(a.counts.toarray(), b.counts.toarray())
    assert a.vocabulary == b.vocabulary
    assert a.names == b.names


def example(n_documents=30, n_words=12, seed=0, names=True):
    rng = np.random.default_rng(seed)
    counts = sparse.csr_array(rng.poisson(0.5, size=(n_documents, n_words)).astype(np.int32))
    vocabulary = [f"word-{i}" for i in range(n_words)]
    return Corpus(counts, vocabulary, [f"doc {i}" for i in range(n_documents)] if names else None)


@pytest.mark.parametrize("name", NAMES)
@settings(settings.get_profile("files"))
@given(data=st.data())
def test_round_trip(name, data, tmp_path_factory):
    corpus = data.draw(corpora(whole=data.draw(st.booleans()) or any(w in name for w in WHOLE)))
    folder = tmp_path_factory.mktemp("round-trip")
    write(folder / name, corpus)
    assert_same(read(folder / name), corpus)
    stored = open_corpus(folder / name)
    assert isinstance(stored, Stored)
    assert_same(gather(stored), corpus)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", ["a.npz", "a.parquet", "docword.a.txt", "a.ldac"])
def test_any_format_converts_to_any(source, target, tmp_path):
    corpus = example()
    write(tmp_path / "from" / source, corpus)
    write(tmp_path / "to" / target, open_corpus(tmp_path / "from" / source))
    assert_same(read(tmp_path / "to" / target), corpus)


@pytest.mark.parametrize("name", NAMES)
def test_small_chunks_give_the_same(name, tmp_path, monkeypatch):
    # Documents and numbers are cut at every possible place.
    corpus = example()
    write(tmp_path / name, corpus)
    for size in (1, 7, 64):
        monkeypatch.setattr(corpus_files, "CHUNK_BYTES", size)
        assert_same(read(tmp_path / name), corpus)


@pytest.mark.parametrize("name", [n for n in NAMES if not n.endswith(".parquet")])
def test_the_format_is_told_by_content(name, tmp_path):
    corpus = example(names=False)
    write(tmp_path / name, corpus)
    (tmp_path / name).rename(tmp_path / "mystery")
    found = read(tmp_path / "mystery").counts.toarray()
    assert_array_equal(found, corpus.counts.toarray()[:, : found.shape[1]])


def test_what_scipy_and_sklearn_write_is_read(tmp_path):
    counts = example().counts
    for kind in ("csr", "csc", "coo"):
        sparse.save_npz(tmp_path / f"{kind}.npz", counts.asformat(kind), compressed=kind == "csr")
        assert_array_equal(read(tmp_path / f"{kind}.npz").counts.toarray(), counts.toarray())
    scipy_io.mmwrite(tmp_path / "scipy.mtx", counts.tocsc(), comment="two\nlines")
    assert_array_equal(read(tmp_path / "scipy.mtx").counts.toarray(), counts.toarray())
    labels = np.linspace(-1, 1, counts.shape[0])
    for zero_based in (True, False):
        dump_svmlight_file(
            counts,
            labels,
            str(tmp_path / "x.svm"),
            zero_based=zero_based,
            comment="hello: 3",
            query_id=np.arange(counts.shape[0]),
        )
        assert_array_equal(read(tmp_path / "x.svm").counts.toarray(), counts.toarray())


def test_scipy_and_sklearn_read_what_is_written(tmp_path):
    corpus = example()
    for name in ("a.npz", "a.mtx", "a.svmlight"):
        write(tmp_path / name, corpus)
    expected = corpus.counts.toarray()
    assert_array_equal(sparse.load_npz(tmp_path / "a.npz").toarray(), expected)
    assert_array_equal(scipy_io.mmread(tmp_path / "a.mtx").toarray(), expected)
    counts, _ = load_svmlight_file(str(tmp_path / "a.svmlight"), n_features=expected.shape[1])
    assert_array_equal(counts.toarray(), expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_corpus_gives_the_same_bytes(name, tmp_path):
    for folder in ("one", "two"):
        write(tmp_path / folder / name, example())
    one, two = ((tmp_path / folder / name).read_bytes() for folder in ("one", "two"))
    if not name.endswith(".npz"):  # which hold the time
        assert one == two


def test_matrix_market_patterns_and_duplicates(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n% x\n\n2 3 2\n2 1\n1 3\n")
    assert_array_equal(read(path).counts.toarray(), [[0, 0, 1], [1, 0, 0]])
    path.write_text(
        "%%MatrixMarket matrix coordinate integer general\n1 2 3\n1 1 2\n1 1 3\n1 2 0\n"
    )
    counts = read(path).counts
    assert counts.nnz == 1
    assert_array_equal(counts.toarray(), [[5, 0]])


def test_windows_line_ends_and_blank_lines_are_read(tmp_path):
    (tmp_path / "docword.a.txt").write_bytes(b"2\r\n3\r\n2\r\n\r\n1 1 4\r\n2 3 5\r\n\r\n")
    (tmp_path / "vocab.a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    corpus = read(tmp_path / "docword.a.txt")
    assert_array_equal(corpus.counts.toarray(), [[4, 0, 0], [0, 0, 5]])
    assert corpus.vocabulary == ["one", "two", "three"]


def test_real_counts_go_to_formats_of_whole_counts_if_they_are_whole(tmp_path):
    whole = Corpus(sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])))
    parts = Corpus(sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.5]])))
    for name in ("docword.a.txt", "b.ldac"):
        write(tmp_path / name, whole)
        assert_array_equal(read(tmp_path / name).counts.toarray(), whole.counts.toarray())
        with pytest.raises(CorpusError, match=r"document 1 \(from 0\): .* whole counts; got 3.5"):
            write(tmp_path / "no" / name, parts)
    assert list((tmp_path / "no").iterdir()) == []


@pytest.mark.parametrize("name", ["a.npz", "a.parquet"])
def test_numbers_that_are_names_are_written_as_text(name, tmp_path):
    counts = example().counts[:3, :2]
    for _ in range(2):  # over those of the first time, which are the same
        write(tmp_path / name, Corpus(counts, [7, 8], [1, 2, 3]))
        found = read(tmp_path / name)
        assert (found.vocabulary, found.names) == (["7", "8"], ["1", "2", "3"])
        (tmp_path / name).unlink()


def test_nothing_is_overwritten_unless_told(tmp_path):
    path = tmp_path / "a.npz"
    write(path, example())
    with pytest.raises(FileExistsError, match=r"exists already: .*overwrite=True \(--overwrite\)"):
        write(path, example(seed=1))
    assert_same(read(path), example())
    write(path, example(n_words=5, names=False), overwrite=True)
    assert_same(read(path), example(n_words=5, names=False))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "a.vocab.txt"]


def test_a_corpus_that_cannot_be_written_leaves_the_one_before_it_whole(tmp_path):
    path = tmp_path / "a.docword"
    write(path, example())
    parts = Corpus(sparse.csr_array([[0.5]]))
    with pytest.raises(CorpusError, match="whole counts"):
        write(path, parts, overwrite=True)
    assert_same(read(path), example())
    write(path, Corpus(example().counts), overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["a.docword"]


def test_files_beside_are_shared_only_if_they_fit(tmp_path):
    write(tmp_path / "a.npz", example())
    write(tmp_path / "a.ldac", example())
    with pytest.raises(FileExistsError, match=r"a\.vocab\.txt exists already, and would be taken"):
        write(tmp_path / "a.mtx", example(n_words=5))
    with pytest.raises(FileExistsError, match=r"a\.documents\.txt"):
        write(tmp_path / "a.mtx", example(names=False))
    assert not (tmp_path / "a.mtx").exists()


@pytest.mark.parametrize("target", NAMES)
def test_a_source_that_breaks_midway_leaves_nothing(target, tmp_path):
    good = example(n_documents=2000)
    write(tmp_path / "docword.a.txt", good)
    text = (tmp_path / "docword.a.txt").read_text()
    (tmp_path / "docword.a.txt").write_text(text[: len(text) * 3 // 4])
    with pytest.raises(CorpusError, match=r"docword\.a\.txt"):
        write(tmp_path / "to" / target, open_corpus(tmp_path / "docword.a.txt"))
    assert list((tmp_path / "to").rglob("*")) == []


def test_unknown_formats_are_refused(tmp_path):
    with pytest.raises(CorpusError, match="the name tells no format"):
        write(tmp_path / "a.xyz", example())
    with pytest.raises(CorpusError, match="format must be one of npz"):
        read(tmp_path, format="word")
    (tmp_path / "a.xyz").write_text("Once upon a time.\n")
    with pytest.raises(CorpusError, match="neither name nor content"):
        read(tmp_path / "a.xyz")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read(tmp_path / "nothing.npz")
    assert set(FORMATS) == {"npz", "parquet", "mtx", "uci", "lda-c", "svmlight"}


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_the_format_may_be_named(format, tmp_path):
    write(tmp_path / f"plain{FORMATS[format].suffixes[0]}", example())
    (tmp_path / f"plain{FORMATS[format].suffixes[0]}").rename(tmp_path / "plain")
    assert_same(read(tmp_path / "plain", format=format), example())


def test_a_matrix_is_not_written_as_a_corpus(tmp_path):
    with pytest.raises(CorpusError, match=r"must be a Corpus.* got csr_matrix.*Corpus\(counts"):
        write(tmp_path / "a.npz", sparse.csr_matrix(np.eye(3)))
    assert not list(tmp_path.iterdir())


def test_a_corpus_checks_itself():
    counts = example().counts
    with pytest.raises(CorpusError, match="vocabulary has 1 entries"):
        Corpus(counts, ["one"])
    with pytest.raises(CorpusError, match="names has 1 entries"):
        Corpus(counts, None, ["one"])
    for unlisted in (dict.fromkeys("dcba"), set("abcd")):  # in another order than the columns
        with pytest.raises(CorpusError, match="vocabulary must be a list, in the order"):
            Corpus(counts[:, :4], unlisted)
    with pytest.raises(CorpusError, match=r"document 0 .*got -1"):
        Corpus(-counts)
    with pytest.raises(CorpusError, match="sparse matrix of real numbers; got ndarray"):
        Corpus(counts.toarray())
    with pytest.raises(CorpusError, match="holds a line break"):
        write("unused.npz", Corpus(counts[:, :1], ["a\nb"]))
    twice = sparse.csr_array((np.full(4, 200, np.uint8), [1, 1, 0, 0], [0, 4]), shape=(1, 2))
    assert_array_equal(Corpus(twice).counts.toarray(), [[400, 400]])
    assert twice.nnz == 4


def test_packed_files_are_gzip(tmp_path):
    write(tmp_path / "docword.a.txt.gz", example())
    content = gzip.decompress((tmp_path / "docword.a.txt.gz").read_bytes())
    assert io.BytesIO(content).readline() == b"30\n"
