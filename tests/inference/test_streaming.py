"""A corpus on disk: written, read once a pass in bounded memory, or refused with a reason."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from problems import tiny_mixture
from tempering.inference.fitting import fit
from tempering.inference.sources import ArraySource, Source
from tempering.inference.streaming import MappedCSR, write_csr

N_DOCUMENTS, N_WORDS = 103, 40


def make_corpus(n_documents=N_DOCUMENTS, n_words=N_WORDS, seed=0, dtype=np.int64):
    """Counts whose first column is the document's number, plus one."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.2, size=(n_documents, n_words)).astype(dtype)
    counts[:, 0] = np.arange(1, n_documents + 1)
    return sparse.csr_array(counts)


@pytest.fixture
def corpus():
    return make_corpus()


@pytest.fixture
def stored(corpus, tmp_path):
    write_csr(tmp_path / "corpus", corpus)
    return tmp_path / "corpus"


def one_pass(source, seed=0, epoch=0):
    """The batches of a pass."""
    n_batches = -(-source.size // source.batch_size)
    batches = itertools.islice(source.batches(seed), epoch * n_batches, (epoch + 1) * n_batches)
    return [batch.data for batch in batches]


def numbers(batch):
    return batch[:, [0]].toarray().ravel() - 1


def assert_same(a, b):
    assert a.shape == b.shape
    assert_array_equal(a.toarray(), b.toarray())


def test_what_is_written_is_read(corpus, stored):
    source = MappedCSR(stored, batch_size=1000)
    assert isinstance(source, Source)
    assert (source.shape, source.size) == (corpus.shape, N_DOCUMENTS)
    assert source.n_tokens == corpus.sum()
    assert source.whole
    assert_same(next(source.batches(0)).data, corpus)
    assert np.load(stored / "indptr.npy").dtype == np.int64
    assert np.load(stored / "indices.npy").dtype == np.int32
    assert_array_equal(np.load(stored / "data.npy"), corpus.data)
    assert json.loads((stored / "meta.json").read_text()) == {
        "format": 1,
        "n_documents": N_DOCUMENTS,
        "n_words": N_WORDS,
        "n_tokens": int(corpus.sum()),
    }


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.float64])
def test_blocks_are_appended(tmp_path, dtype):
    corpus = make_corpus(dtype=dtype)
    write_csr(tmp_path / "blocks", (corpus[start : start + 10] for start in range(0, 103, 10)))
    (batch,) = MappedCSR(tmp_path / "blocks", N_DOCUMENTS).sweep()
    assert batch.data.dtype == dtype
    assert_same(batch.data, corpus)


def test_empty_documents_are_kept(tmp_path):
    corpus = sparse.csr_array(np.array([[0, 0], [1, 2], [0, 0], [0, 0], [3, 0], [0, 0]]))
    write_csr(tmp_path / "corpus", corpus)
    source = MappedCSR(tmp_path / "corpus", batch_size=2, block_size=2)
    for batch, expected in zip(source.sweep(), ArraySource(corpus, 2).sweep()):
        assert_same(batch.data, expected.data)
    assert sum(batch.sum() for batch in one_pass(source)) == 6


def test_other_matrices_are_written_as_csr(tmp_path, corpus):
    write_csr(tmp_path / "columns", sparse.csc_matrix(corpus))
    twice = sparse.csr_array(([1, 2], [3, 3], [0, 2]), shape=(1, 5))
    write_csr(tmp_path / "duplicates", twice)
    write_csr(tmp_path / "truth", corpus.astype(bool))
    assert_same(next(MappedCSR(tmp_path / "columns", N_DOCUMENTS).sweep()).data, corpus)
    assert next(MappedCSR(tmp_path / "duplicates").sweep()).data[0, 3] == 3
    assert twice.nnz == 2
    assert next(MappedCSR(tmp_path / "truth", N_DOCUMENTS).sweep()).data.max() == 1


@pytest.mark.parametrize("batch_size", [1, 7, 20, 102, 103, 500])
def test_the_sweep_is_that_of_an_array(corpus, stored, batch_size):
    ours = list(MappedCSR(stored, batch_size, block_size=8).sweep())
    theirs = list(ArraySource(corpus, batch_size).sweep())
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert_same(a.data, b.data)


@pytest.mark.parametrize("batch_size", [1, 7, 20, 50, 102])
@pytest.mark.parametrize(("block_size", "window_blocks"), [(1, 1), (8, 4), (10, 3), (1000, 4)])
def test_a_pass_visits_each_document_once(corpus, stored, batch_size, block_size, window_blocks):
    source = MappedCSR(stored, batch_size, block_size, window_blocks)
    for epoch in range(2):
        batches = one_pass(source, epoch=epoch)
        sizes = [batch.shape[0] for batch in batches]
        assert sizes == [batch.shape[0] for batch in one_pass(ArraySource(corpus, batch_size))]
        assert_array_equal(np.sort(np.concatenate([numbers(b) for b in batches])), range(103))
        for batch in batches:
            assert_same(batch, corpus[numbers(batch)])


def test_the_order_depends_on_seed_and_pass(stored):
    source = MappedCSR(stored, 20, block_size=8)

    def order(seed, epoch):
        return np.concatenate([numbers(batch) for batch in one_pass(source, seed, epoch)])

    assert_array_equal(order(1, 0), order(1, 0))
    assert_array_equal(order(1, 2), order(1, 2))
    assert np.any(order(1, 0) != order(1, 1))
    assert np.any(order(1, 0) != order(2, 0))


def test_a_batch_mixes_blocks(stored):
    batches = one_pass(MappedCSR(stored, 16, block_size=8, window_blocks=4))
    assert np.mean([np.unique(numbers(batch) // 8).size for batch in batches]) > 3


@pytest.mark.parametrize("first_step", [0, 1, 5, 6, 7, 17])
def test_a_run_is_taken_up_at_any_step(stored, first_step, monkeypatch):
    source = MappedCSR(stored, 20, block_size=8, window_blocks=2)
    expected = list(itertools.islice(source.batches(3), first_step, first_step + 8))
    read = []
    rows = source.files.rows
    monkeypatch.setattr(source.files, "rows", lambda *ends: read.append(ends) or rows(*ends))
    resumed = source.batches(3, first_step)
    for i, batch in enumerate(expected):
        assert_same(next(resumed).data, batch.data)
        assert i > 0 or len(read) <= 3 * 2


@pytest.mark.parametrize("n", [1, 5, 60, 102, 103, 1000])
def test_a_sample_has_n_documents(corpus, stored, n):
    source = MappedCSR(stored, 20, block_size=8)
    drawn = source.sample(n, np.random.default_rng(0))
    assert drawn.shape[0] == min(n, N_DOCUMENTS)
    assert np.unique(numbers(drawn)).size == drawn.shape[0]
    assert_same(drawn, corpus[numbers(drawn)])
    assert_same(drawn, ArraySource(corpus).sample(n, np.random.default_rng(0)))


def test_a_sample_is_uniform(stored):
    source, rng = MappedCSR(stored, 20), np.random.default_rng(0)
    drawn = np.concatenate([numbers(source.sample(10, rng)) for _ in range(400)])
    frequency = np.bincount(drawn, minlength=N_DOCUMENTS) / 400
    expected = 10 / N_DOCUMENTS
    assert np.abs(frequency - expected).max() < 5 * np.sqrt(expected / 400)


def test_the_engine_fits_from_disk(tmp_path):
    model, data, _ = tiny_mixture("multinomial", n=60)
    data = sparse.csr_array(data)
    write_csr(tmp_path / "corpus", data)
    settings = {"max_passes": 5, "seed": 1, "progress": False}
    in_memory = fit(model, data, **settings)
    from_disk = fit(model, MappedCSR(tmp_path / "corpus", 60), **settings)
    assert from_disk.elbo == pytest.approx(in_memory.elbo, rel=1e-12)
    batches = fit(model, MappedCSR(tmp_path / "corpus", 16, block_size=8), **settings)
    assert np.isfinite(batches.elbo)


MEASURE = """
import itertools, sys
import numpy as np
from scipy import sparse
from tempering.inference.streaming import MappedCSR, write_csr

path, n_documents = sys.argv[1], int(sys.argv[2])

def blocks():
    rng = np.random.default_rng(0)
    for start in range(0, n_documents, 2000):
        indices = np.sort(rng.integers(0, 5000, size=(2000, 50)), axis=1).ravel()
        yield sparse.csr_array((np.ones(100_000), indices, np.arange(0, 100_001, 50)), (2000, 5000))

write_csr(path, blocks())
source = MappedCSR(path, batch_size=500, block_size=2000)
seen = sum(batch.size for batch in source.sweep())
seen += sum(batch.size for batch in itertools.islice(source.batches(0), n_documents // 500))
source.sample(2000, np.random.default_rng(0))
assert seen == 2 * n_documents
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    # Not ru_maxrss, which a child inherits from the process that started it.
    def peak(n_documents):
        command = [
            sys.executable,
            "-c",
            MEASURE,
            str(tmp_path / str(n_documents)),
            str(n_documents),
        ]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    small, large = peak(20_000), peak(200_000)
    print(f"peak memory: {small} kB for 20,000 documents, {large} kB for 200,000")
    assert large < 1.15 * small


@pytest.mark.parametrize("name", ["indptr.npy", "indices.npy", "data.npy", "meta.json"])
def test_a_missing_file_is_named(stored, name):
    (stored / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name} is missing"):
        MappedCSR(stored)


@pytest.mark.parametrize("name", ["indptr.npy", "indices.npy", "data.npy"])
def test_a_damaged_file_is_named(stored, name):
    whole = (stored / name).read_bytes()
    for damaged in (whole[:-3], whole + b"x", b"something else", b""):
        (stored / name).write_bytes(damaged)
        with pytest.raises(ValueError, match=name):
            MappedCSR(stored)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "must say format 1; got 2"),
        ({"n_documents": 102}, "indptr.npy has length 104, but meta.json gives 102"),
        ({"n_documents": -1}, "positive n_documents; got -1"),
        ({"n_words": None}, "positive n_words; got None"),
        ({"n_tokens": "many"}, "positive n_tokens; got 'many'"),
    ],
)
def test_a_wrong_description_is_refused(stored, change, message):
    meta = json.loads((stored / "meta.json").read_text())
    (stored / "meta.json").write_text(json.dumps(meta | change))
    with pytest.raises(ValueError, match=message):
        MappedCSR(stored)


@pytest.mark.parametrize("text", ["{", "[1]", "\xff"])
def test_a_description_that_is_none_is_refused(stored, text):
    (stored / "meta.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"meta\.json"):
        MappedCSR(stored)


def test_arrays_that_do_not_belong_together_are_refused(stored, corpus):
    np.save(stored / "data.npy", corpus.data[:-1])
    with pytest.raises(ValueError, match=r"indices\.npy has length"):
        MappedCSR(stored)
    np.save(stored / "data.npy", corpus.data.astype(complex))
    with pytest.raises(ValueError, match=r"data\.npy must hold real numbers"):
        MappedCSR(stored)
    np.save(stored / "data.npy", corpus.data)
    np.save(stored / "indptr.npy", corpus.indptr.astype(np.int64) + 1)
    with pytest.raises(ValueError, match=r"indptr\.npy must rise from 0"):
        MappedCSR(stored)
    np.save(stored / "indptr.npy", corpus.indptr.astype(np.int16))
    with pytest.raises(ValueError, match=r"indptr\.npy must be of type int64"):
        MappedCSR(stored)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("indices", N_WORDS, r"indices\.npy is damaged: row 70 has word 40"),
        ("indices", -1, r"indices\.npy is damaged: row 70 has word -1"),
        ("data", -2.0, r"data\.npy must hold finite counts .* row 70 holds -2"),
        ("data", np.nan, r"data\.npy must hold finite counts .* row 70 holds nan"),
        ("data", np.inf, r"data\.npy must hold finite counts .* row 70 holds inf"),
    ],
)
def test_damaged_rows_are_named_when_they_are_read(tmp_path, name, value, message):
    corpus = make_corpus(dtype=np.float64)
    write_csr(tmp_path / "corpus", corpus)
    array = getattr(corpus, name).copy()
    array[corpus.indptr[70]] = value
    np.save(tmp_path / "corpus" / f"{name}.npy", array)
    source = MappedCSR(tmp_path / "corpus", 20, block_size=8)
    assert next(source.sweep()).size == 20
    for read in (lambda: list(source.sweep()), lambda: one_pass(source)):
        with pytest.raises(ValueError, match=message):
            read()


@pytest.mark.parametrize("value", [-5, 0, 10**9])
def test_damaged_row_ends_are_named(stored, corpus, value):
    indptr = corpus.indptr.astype(np.int64)
    indptr[70] = value
    np.save(stored / "indptr.npy", indptr)
    with pytest.raises(ValueError, match=r"indptr\.npy is damaged: row (69|70)"):
        list(MappedCSR(stored, 20).sweep())


def test_a_file_cut_short_after_opening_is_refused(stored):
    source = MappedCSR(stored, 20)
    with open(stored / "data.npy", "r+b") as file:
        file.truncate(200)
    with pytest.raises(ValueError, match=r"data\.npy has become shorter"):
        list(source.sweep())


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "at least one document"),
        ([sparse.csr_array((3, 4))], "at least one document with a word"),
        ([make_corpus(5) * 0], "at least one document with a word"),
        ([make_corpus(5), make_corpus(5, 41)], "the first has 40, block 1 has 41"),
        ([make_corpus(5, dtype=np.int32), make_corpus(5, dtype=float)], "block 1 has float64"),
        ([make_corpus(5), -make_corpus(5)], r"block 1.* row 5 holds -1"),
        ([make_corpus(5).toarray()], "block 0: ndarray of type int64"),
        ([make_corpus(5).astype(complex)], "block 0: csr_array of type complex128"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(tmp_path, blocks, message):
    with pytest.raises(ValueError, match=message):
        write_csr(tmp_path / "corpus", blocks)
    assert list(tmp_path.iterdir()) == []


def test_an_iterator_that_fails_leaves_nothing(tmp_path):
    def blocks():
        yield make_corpus(5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_csr(tmp_path / "corpus", blocks())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(stored, corpus):
    before = (stored / "data.npy").read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        write_csr(stored, corpus[:5])
    assert (stored / "data.npy").read_bytes() == before
    assert list(stored.parent.iterdir()) == [stored]


@pytest.mark.parametrize("name", ["batch_size", "block_size", "window_blocks"])
def test_sizes_are_positive(stored, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1; got 0"):
        MappedCSR(stored, **{name: 0})


def test_a_sample_of_nothing_is_refused(stored):
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        MappedCSR(stored).sample(0, np.random.default_rng(0))
