"""A Parquet file as a source of batches: each document once a pass, from any step, in a window."""

import itertools
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from on_disk import on_disk
from tempering.corpus import Corpus, CorpusError, open_source, write
from tempering.corpus import parquet as parquet_module
from tempering.inference import ArraySource, BlockSource, Source

N_DOCUMENTS, N_WORDS = 103, 40


@pytest.fixture
def counts():
    """Counts whose first column is the document's number, plus one."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.2, size=(N_DOCUMENTS, N_WORDS))
    counts[:, 0] = np.arange(1, N_DOCUMENTS + 1)
    return sparse.csr_array(counts)


@pytest.fixture
def path(counts, tmp_path, monkeypatch):
    """Ten documents a row group."""
    monkeypatch.setattr(parquet_module, "BLOCK_SIZE", 10)
    write(tmp_path / "a.parquet", Corpus(counts, [f"w{i}" for i in range(N_WORDS)]))
    return tmp_path / "a.parquet"


def one_pass(source, seed=0, epoch=0):
    n_batches = -(-source.size // source.batch_size)
    batches = itertools.islice(source.batches(seed), epoch * n_batches, (epoch + 1) * n_batches)
    return [batch.data for batch in batches]


def numbers(batch):
    return batch[:, [0]].toarray().ravel() - 1


def test_what_it_tells_of_itself(path, counts):
    source = open_source(path, batch_size=20)
    assert isinstance(source, BlockSource)
    assert isinstance(source, Source)
    assert source.shape == counts.shape
    assert source.n_tokens == counts.sum()
    assert source.vocabulary[:2] == ["w0", "w1"]
    assert source.edges.tolist() == [*range(0, 101, 10), 103]
    assert repr(source).startswith("BlockSource(")


@pytest.mark.parametrize("batch_size", [1, 7, 20, 50, 102])
@pytest.mark.parametrize("window_blocks", [1, 3, 100])
def test_a_pass_visits_each_document_once(path, counts, batch_size, window_blocks):
    source = open_source(path, batch_size, window_blocks)
    for epoch in range(2):
        batches = one_pass(source, epoch=epoch)
        sizes = [batch.shape[0] for batch in batches]
        assert sizes == [batch.shape[0] for batch in one_pass(ArraySource(counts, batch_size))]
        assert_array_equal(np.sort(np.concatenate([numbers(b) for b in batches])), range(103))
        for batch in batches:
            assert_array_equal(batch.toarray(), counts[numbers(batch)].toarray())


@pytest.mark.parametrize("batch_size", [7, 20, 103, 500])
def test_the_sweep_is_that_of_an_array(path, counts, batch_size):
    for ours, theirs in zip(
        open_source(path, batch_size).sweep(), ArraySource(counts, batch_size).sweep()
    ):
        assert_array_equal(ours.data.toarray(), theirs.data.toarray())


def test_the_order_depends_on_seed_and_pass_alone(path):
    def order(seed, epoch, source=None):
        batches = one_pass(source or open_source(path, 20), seed, epoch)
        return np.concatenate([numbers(batch) for batch in batches]).tolist()

    used = open_source(path, 20)
    used.sample(5, np.random.default_rng(0))
    assert order(1, 2) == order(1, 2, used)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


@pytest.mark.parametrize("first_step", [0, 1, 5, 6, 17])
def test_a_run_is_taken_up_at_any_step(path, first_step, monkeypatch):
    source = open_source(path, 20, window_blocks=2)
    expected = list(itertools.islice(source.batches(3), first_step, first_step + 8))
    read = []
    group = source.files._group
    monkeypatch.setattr(source.files, "_group", lambda i: read.append(i) or group(i))
    resumed = source.batches(3, first_step)
    for i, batch in enumerate(expected):
        assert_array_equal(next(resumed).data.toarray(), batch.data.toarray())
        assert i > 0 or len(read) <= 2 * 2


@pytest.mark.parametrize("n", [1, 5, 60, 103, 1000])
def test_a_sample_is_that_of_an_array(path, counts, n):
    ours = open_source(path, 20).sample(n, np.random.default_rng(0))
    theirs = ArraySource(counts).sample(n, np.random.default_rng(0))
    assert_array_equal(ours.toarray(), theirs.toarray())


def test_it_goes_to_another_process(path):
    source = open_source(path, 20)
    one_pass(source)
    copy = pickle.loads(pickle.dumps(source))
    for ours, theirs in zip(one_pass(copy), one_pass(source)):
        assert_array_equal(ours.toarray(), theirs.toarray())


def test_sources_that_cannot_be_are_refused(tmp_path, counts):
    write(tmp_path / "empty.parquet", Corpus(sparse.csr_array((3, 4), dtype=np.int32)))
    with pytest.raises(CorpusError, match="not one word in its 3 documents"):
        open_source(tmp_path / "empty.parquet")
    write(tmp_path / "a.npz", Corpus(counts, [f"w{i}" for i in range(N_WORDS)]))
    with pytest.raises(CorpusError, match="format npz does not stream"):
        open_source(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["batch_size", "window_blocks"])
def test_sizes_are_positive(path, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, and whole; got 0"):
        open_source(path, **{name: 0})
    with pytest.raises(ValueError, match="n must be at least 1, and whole; got 0"):
        open_source(path).sample(0, np.random.default_rng(0))


def test_a_batch_mixes_blocks(path):
    batches = one_pass(open_source(path, 16, window_blocks=4))
    assert np.mean([np.unique(numbers(batch) // 10).size for batch in batches]) > 3


def test_a_sample_is_uniform(counts, tmp_path):
    source, rng = on_disk(tmp_path, counts), np.random.default_rng(0)
    drawn = np.concatenate([numbers(source.sample(40, rng)) for _ in range(100)])
    frequency = np.bincount(drawn, minlength=N_DOCUMENTS) / 100
    expected = 40 / N_DOCUMENTS
    assert np.abs(frequency - expected).max() < 5 * np.sqrt(expected / 100)


def test_empty_documents_are_kept(tmp_path):
    counts = sparse.csr_array(np.array([[0, 0], [1, 2], [0, 0], [0, 0], [3, 0], [0, 0]]))
    source = on_disk(tmp_path, counts, batch_size=2, block_size=2)
    for batch, expected in zip(source.sweep(), ArraySource(counts, 2).sweep()):
        assert_array_equal(batch.data.toarray(), expected.data.toarray())
    assert sum(batch.sum() for batch in one_pass(source)) == 6


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_counts_keep_their_kind(counts, tmp_path, dtype):
    (batch,) = on_disk(tmp_path, counts.astype(dtype), N_DOCUMENTS).sweep()
    assert batch.data.dtype == (dtype if np.dtype(dtype).kind == "f" else np.int32)
    assert_array_equal(batch.data.toarray(), counts.toarray())


def test_threads_may_share_a_source(path, counts):
    """Each gets its own row groups, whichever of them was read last."""
    source = open_source(path, 20)

    def right(group):
        rows = source.files.rows(10 * group, 10 * group + 10)
        return np.array_equal(numbers(rows), np.arange(10 * group, 10 * group + 10))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, [i % 10 for i in range(400)]))


def test_a_file_cut_short_after_opening_is_refused(path):
    source = open_source(path, 20)
    with open(path, "r+b") as file:
        file.truncate(200)
    with pytest.raises(CorpusError, match=r"a\.parquet, row group .*damaged"):
        list(source.sweep())


MEASURE = """
import itertools, sys
import numpy as np
from tempering.corpus import open_source, write
from tempering.datasets import LDAStream

path, n_documents = sys.argv[1], int(sys.argv[2])
write(path, LDAStream(n_documents, n_topics=5, n_words=2000, document_length=50))
source = open_source(path, 500)
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
    def peak(n_documents):
        path = tmp_path / f"{n_documents}.parquet"
        command = [sys.executable, "-c", MEASURE, str(path), str(n_documents)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    small, large = peak(50_000), peak(500_000)
    print(f"peak memory: {small} kB for 50,000 documents, {large} kB for 500,000")
    assert large < 1.15 * small
