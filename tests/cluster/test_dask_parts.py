"""What a fit on a cluster is made of, without one: sums, places, references."""

import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from on_disk import on_disk
from tempering.datasets import make_lda
from tempering.inference import ArraySource, fit
from tempering.inference.executors import Executor, Serial, SolveShard, add_in_pairs
from tempering.inference.sources import RowReference
from tempering.models.lda.model import LatentDirichlet
from tempering.temperature import (
    COLD,
    Annealing,
    LocalTempering,
    TemperaturePolicy,
    Untempered,
    VariationalTempering,
)

pytest.importorskip("distributed")

from tempering.cluster.dask_executor import cut_into_runs
from tempering.cluster.dask_source import count_words, with_width


def test_without_dask_it_is_said_what_to_install():
    code = "import sys; sys.modules['distributed'] = None; import tempering.cluster"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: a fit on a cluster needs Dask: pip install" in done.stderr


class Tree(tuple):
    """A sum that remembers how it was made."""

    def __add__(self, other):
        return Tree((self, other))


def level_by_level(parts):
    """The definition: neighbours in pairs, then their sums in pairs, and so on."""
    while len(parts) > 1:
        pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
        parts = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


@given(st.integers(1, 70))
def test_parts_are_added_in_pairs(n):
    parts = [Tree((number,)) for number in range(n)]
    assert add_in_pairs(parts) == level_by_level(parts)


@given(st.integers(1, 70), st.integers(0, 6))
def test_runs_can_be_added_up_elsewhere(n, power):
    parts = [Tree((number,)) for number in range(n)]
    size = 2**power
    runs = [add_in_pairs(parts[start : start + size]) for start in range(0, n, size)]
    assert add_in_pairs(runs) == add_in_pairs(parts)


@given(st.integers(1, 300), st.integers(1, 40))
def test_runs_cover_all_shards_and_keep_workers_busy(n_shards, n_workers):
    threads = {f"{number:02}": 1 for number in range(n_workers)}
    runs = cut_into_runs(n_shards, threads)
    assert [shard for run, _ in runs for shard in range(n_shards)[run]] == list(range(n_shards))
    size = runs[0][0].stop
    assert size & (size - 1) == 0
    assert all(run.start % size == 0 for run, _ in runs)
    load = Counter()
    for run, worker in runs:
        load[worker] += len(range(n_shards)[run])
    assert max(load.values()) <= 1.1 * -(-n_shards // n_workers)


def test_workers_have_a_fixed_order_and_runs_for_each_thread():
    runs = cut_into_runs(6, {"b": 1, "a": 2})
    assert [(run.start, worker) for run, worker in runs] == [(0, "a"), (2, "a"), (4, "b")]


def corpus(n=3000, n_words=300):
    return make_lda(n, 5, n_words=n_words, document_length=30, seed=1).counts


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A corpus on disk, to be opened with batches of any size."""
    folder, counts = tmp_path_factory.mktemp("corpus"), corpus()
    return lambda batch_size: on_disk(folder, counts, batch_size, 400, window_blocks=3)


@pytest.mark.parametrize("batch_size", [700, 1100, 3000])
def test_references_name_the_rows_of_the_same_batches(stored, batch_size):
    source = stored(batch_size)
    referring = source.by_reference()
    for first_step in (0, 3):
        named, held = (s.batches(5, first_step) for s in (referring, source))
        for _ in range(7):
            batch, expected = next(named), next(held)
            assert isinstance(batch.data, RowReference)
            assert batch.size == expected.size
            for (rows, part), (other, data) in zip(batch.shards(256), expected.shards(256)):
                assert rows == other
                part = pickle.loads(pickle.dumps(part))
                assert part.shape == data.shape
                assert (part.read() != data).nnz == 0
    for batch, expected in zip(referring.sweep(), source.sweep()):
        assert (batch.data.read() != expected.data).nnz == 0
    assert batch.data.indices.size == expected.data.indices.size  # looked into, it is read


def test_a_referring_source_makes_the_same_fit(stored):
    source = stored(1500)
    model = LatentDirichlet(5, 300, 0.2, 0.2)
    results = [
        fit(model, s, max_passes=2, progress=False, n_threads=1)
        for s in (source, source.by_reference())
    ]
    assert_array_equal(results[0].posterior.parameters(), results[1].posterior.parameters())
    assert results[0].elbo == results[1].elbo


@pytest.mark.parametrize(
    "policy",
    [
        Untempered(),
        Annealing(),
        LocalTempering(max_alternations=2),
        VariationalTempering(formula="calibrated"),
        VariationalTempering(formula="monte-carlo", n_samples=5),
        VariationalTempering(formula="z-integrated", n_samples=5),
    ],
    ids=["SVI", "AVI", "LVT", "calibrated", "monte-carlo", "z-integrated"],
)
def test_policies_find_what_they_need_in_sums_of_shards(policy):
    """Learned priors and temperatures, in batches of several shards, with no bound evaluated."""
    model = LatentDirichlet(5, 300, 0.2, 0.2, learn_doc_topic_prior=True)
    model.shard_size = 256
    result = fit(
        model,
        corpus(1500),
        temperature=policy,
        batch_size=750,
        max_passes=4,
        elbo_every=1000,
        progress=False,
    )
    assert np.isfinite(result.posterior.parameters()).all()
    assert np.ptp(result.model.doc_topic_prior) > 0


def test_sums_of_shards_are_those_of_the_whole_batch():
    """The learned prior and the temperature hardly notice how the batch was cut."""
    policy = VariationalTempering(formula="calibrated")
    fits = []
    for shard_size in (4096, 256):
        model = LatentDirichlet(5, 300, 0.2, 0.2, learn_doc_topic_prior=True)
        model.shard_size = shard_size
        fits.append(
            fit(
                model,
                corpus(1500),
                temperature=policy,
                batch_size=750,
                max_passes=4,
                progress=False,
            )
        )
    whole, cut = fits
    np.testing.assert_allclose(whole.history["temperature"], cut.history["temperature"], rtol=1e-3)
    np.testing.assert_allclose(whole.model.doc_topic_prior, cut.model.doc_topic_prior, rtol=1e-2)
    assert whole.elbo == pytest.approx(cut.elbo, rel=1e-4)


def test_energies_are_computed_only_where_somebody_reads_them():
    model, rng = LatentDirichlet(5, 300, 0.2, 0.2), np.random.default_rng(0)

    def reads(policy):
        return policy.reads_energies(policy.begin(model, 100, rng))

    assert not reads(Untempered())
    assert not reads(Annealing())
    assert not reads(LocalTempering())
    assert not reads(VariationalTempering(formula="calibrated"))
    assert reads(VariationalTempering(formula="monte-carlo", n_samples=2))

    class OfOnesOwn(TemperaturePolicy):
        def begin(self, model, n_data, rng):
            return COLD

    assert reads(OfOnesOwn())


def test_an_executor_needs_no_more_than_map():
    class Backwards(Executor):
        def map(self, function, items):
            return [function(item) for item in reversed(list(items))][::-1]

    model = LatentDirichlet(5, 300, 0.2, 0.2)
    model.shard_size = 256
    results = [
        fit(model, corpus(), batch_size=1500, max_passes=1, progress=False, executor=executor)
        for executor in (None, Backwards())
    ]
    assert_array_equal(results[0].posterior.parameters(), results[1].posterior.parameters())


def test_the_bound_of_a_shard_is_a_number():
    model = LatentDirichlet(5, 300, 0.2, 0.2)
    expected = model.expectations(model.initialize(None, np.random.default_rng(0)))
    bound = SolveShard(Untempered(), COLD, model, expected, wanted="bound")
    source = ArraySource(corpus(100))
    (value,) = Serial().map(bound, [(shard, None) for shard in next(source.sweep()).shards(1000)])
    local = model.local_step(source.data, expected, 1.0)
    assert value == local.energy + local.entropy


class Table(dict):
    """Columns by name, as a dataframe has them."""

    columns = ("ids", "counts")


def test_bags_and_tables_become_counts():
    block = count_words([{3: 2, 1: 1}, [(0, 1), (0, 4), (2, 0)], {}], 0)
    assert_array_equal(block.toarray(), [[0, 1, 0, 2], [5, 0, 0, 0], [0, 0, 0, 0]])
    assert_array_equal(with_width(block, 5).toarray()[:, 4], 0)
    assert block.dtype == np.int32
    assert count_words(Table(ids=[[0]], counts=[[0.5]]), 0).dtype == np.float64
    largest = np.iinfo(np.int32).max
    assert count_words([[(0, largest), (0, 1)]], 0).toarray().tolist() == [[largest + 1]]


@pytest.mark.parametrize(
    ("ids", "counts", "problem"),
    [
        (
            [[0], [1, 2]],
            [[1], [1]],
            r"partition 7, document 1 .from 0.: .* got \[1. 2.\] and \[1.\]",
        ),
        ([[0], [-1]], [[1], [1]], r"document 1 .from 0.: it must be whole .* from 0.* got \[-1.\]"),
        ([[0.5]], [[1]], r"whole numbers of words.* got \[0.5\]"),
        (
            [[0], [], [1]],
            [[1], [], [np.nan]],
            r"document 2 .from 0.: .* finite .* \[1.\] and \[nan\]",
        ),
        ([[0]], [[-3]], r"not negative: got \[0.\] and \[-3.\]"),
        ([["house"]], [[1]], "partition 7, document 0 .from 0.: .* could not convert string"),
        ([3, 4], [1, 1], "partition 7, document 0 .from 0.: .* got 3.0 and 1.0"),
    ],
)
def test_what_cannot_be_a_document_is_refused_by_its_place(ids, counts, problem):
    with pytest.raises(ValueError, match=problem):
        count_words(Table(ids=ids, counts=counts), 7)


@pytest.mark.parametrize("document", ["words", [3, 4], [(0, 1, 2), (3, 4, 5)]])
def test_what_is_no_list_of_pairs_is_refused_by_its_place(document):
    with pytest.raises(ValueError, match=r"partition 7, document 1 .from 0.: .* unpack"):
        count_words([{0: 1}, document], 7)
