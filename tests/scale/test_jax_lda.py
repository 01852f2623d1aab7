"""The E-step in JAX against the CPU kernels: plain, and the GPU kernels interpreted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, special

pytest.importorskip("jax")

from tempering import Annealing, LocalTempering, VariationalTempering, schedules
from tempering.inference import RobbinsMonro, fit
from tempering.inference.portable_classes import pack, unpack
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.scale import jax_functions
from tempering.scale.groups import cut_into_groups, fill_rectangle, ladder_step
from tempering.scale.jax_lda import JaxLatentDirichlet
from tempering.scale.solver import compiled_solver, settings_of

N_WORDS, N_TOPICS = 300, 7
LENGTHS = [1, 2, 0, 3, 17, 60, 120, 5000, 0, 40, 40, 40]
TIGHT = {"tolerance": 1e-6, "max_iterations": 1000}
UPDATES = ["variational", "mean", "collapsed"]
KERNELS = ["plain", "interpreted"]


def make_documents(lengths=LENGTHS, seed=0):
    """Documents of these lengths in words: ragged, empty and very long ones among them."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS)
    theta = rng.dirichlet(np.full(N_TOPICS, 0.3), len(lengths))
    counts = [rng.multinomial(n, p @ topics) for n, p in zip(lengths, theta)]
    return sparse.csr_matrix(np.array(counts))


def make_topics(seed=1, smallest=0.05):
    rng = np.random.default_rng(seed)
    parameters = smallest + rng.gamma(0.2, 20.0, (N_WORDS, N_TOPICS))
    return Topics(parameters, smallest)


def models(kernel, update="variational", alpha=0.1, **options):
    """The model on the CPU, and in JAX."""
    arguments = (N_TOPICS, N_WORDS, alpha, 0.05)
    in_jax = JaxLatentDirichlet(*arguments, update=update, **{**TIGHT, **options})
    in_jax.kernel = kernel
    return LatentDirichlet(*arguments, update=update, **{**TIGHT, **options}), in_jax


def relative_l1(actual, expected):
    return np.abs(actual - expected).sum() / np.abs(expected).sum()


def assert_same_step(data, topics, pair, s, **options):
    on_cpu, in_jax = (
        model.local_step(data, model.expectations(topics), s, **options) for model in pair
    )
    assert_array_equal(in_jax.statistics.words, on_cpu.statistics.words)
    assert relative_l1(in_jax.statistics.values, on_cpu.statistics.values) < 1e-4
    assert relative_l1(in_jax.gamma, on_cpu.gamma) < 1e-4
    return on_cpu, in_jax


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("s", [1.0, "one for each"])
def test_the_step_equals_that_of_the_cpu(kernel, update, s):
    data = make_documents()
    if isinstance(s, str):
        s = np.linspace(0.1, 1.0, data.shape[0])
    on_cpu, in_jax = assert_same_step(data, make_topics(), models(kernel, update), s)
    assert_allclose(in_jax.gamma[np.diff(data.indptr) == 0], 0.1, rtol=1e-6)
    if update == "variational":
        assert_allclose(in_jax.energies, on_cpu.energies, rtol=1e-4, atol=1e-3)
        assert_allclose(in_jax.entropy, on_cpu.entropy, rtol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_topics_out_of_the_range_of_float32(kernel):
    # E log β and E log θ of a topic that has not seen a word are near −1000 with these priors.
    data, topics = make_documents([30, 80, 200]), make_topics(smallest=1e-3)
    assert_same_step(data, topics, models(kernel, alpha=1e-3), 1.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_prior_for_each_topic_and_a_given_start(kernel):
    data, topics = make_documents(), make_topics()
    pair = models(kernel, alpha=np.linspace(0.05, 1.0, N_TOPICS))
    on_cpu, _ = assert_same_step(data, topics, pair, 0.7)
    assert_same_step(data, topics, pair, 0.7, gamma=on_cpu.gamma + np.float32(0.01))


@pytest.mark.parametrize("kernel", KERNELS)
def test_documents_stop_when_those_of_the_cpu_do(kernel):
    pair = models(kernel, tolerance=1e-2, max_iterations=3)
    data = make_documents([200] * 20)
    assert_same_step(data, make_topics(), pair, 1.0)


@given(
    lengths=st.lists(st.integers(0, 90), min_size=1, max_size=8),
    s=st.floats(0.05, 1.0),
    update=st.sampled_from(UPDATES),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=5, deadline=None)
def test_any_documents(lengths, s, update, seed):
    data = make_documents(lengths, seed)
    if data.nnz == 0:
        return
    pair = models("plain", update)
    on_cpu, in_jax = (
        model.local_step(data, model.expectations(make_topics(seed)), s) for model in pair
    )
    # Each document is at a fixed point, where a short one has several; sums hold anyhow.
    assert_allclose(in_jax.statistics.values.sum(), s * data.sum(), rtol=1e-5)
    assert_allclose(
        in_jax.statistics.values.sum(axis=1), on_cpu.statistics.values.sum(axis=1), rtol=1e-4
    )
    assert_allclose(in_jax.gamma.sum(axis=1), on_cpu.gamma.sum(axis=1), rtol=1e-4)


POLICIES = {
    "none": None,
    "annealing": Annealing(schedules.linear_inverse(3.0), fraction=0.5),
    "variational": VariationalTempering(formula="calibrated", damping=1.0),
    "local": LocalTempering(max_alternations=2, tolerance=0.02, damping=1.0),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_fit_equals_that_of_the_cpu(policy):
    data = make_documents([50] * 40, seed=3)
    posteriors = [
        fit(
            model,
            data,
            temperature=POLICIES[policy],
            learning_rate=RobbinsMonro(16.0, 0.7),
            batch_size=20,
            max_passes=2,
            seed=5,
            n_threads=1,
            progress=False,
            final_elbo=False,
        ).posterior.parameters()
        for model in models("plain")
    ]
    assert relative_l1(posteriors[1], posteriors[0]) < 1e-3


def test_shapes_are_compiled_once():
    _, model = models("plain", tolerance=3e-3)
    topics, data = make_topics(), make_documents([50] * 90, seed=4)
    solve = compiled_solver("plain", settings_of(model))
    for rows in (slice(0, 30), slice(30, 60), slice(60, 90)):
        model.local_step(data[rows], model.expectations(topics), 1.0)
        assert solve._cache_size() == 1


def test_the_model_can_be_stored_and_goes_back_to_the_cpu():
    _, model = models("plain")
    again = unpack(pack(model))
    assert type(again) is JaxLatentDirichlet
    assert again.tolerance == model.tolerance
    plain = model.on_cpu()
    assert type(plain) is LatentDirichlet
    assert plain.doc_topic_prior is model.doc_topic_prior


def test_digamma():
    x = np.exp(np.random.default_rng(0).uniform(-20, 15, 20_000)).astype(np.float32)
    expected = special.digamma(x.astype(float))
    assert_allclose(jax_functions.digamma(x), expected, rtol=2e-6, atol=2e-6)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.integers(1, 8))
def test_groups_hold_every_document_once(lengths, size):
    lengths = np.array(lengths)
    data = sparse.csr_matrix(np.arange(300) < lengths[:, None], dtype=np.float32)
    seen = []
    for group in cut_into_groups(lengths, np.arange(lengths.size), size):
        seen.extend(group.rows)
        words = fill_rectangle(data.indptr, data.indices, data.data, group, 300)
        assert words.columns.shape == (group.size, group.width)
        assert group.width == ladder_step(int(lengths[group.rows].max()))
        for row, own, counts in zip(group.rows, words.columns, words.counts):
            n = lengths[row]
            assert_array_equal(own[:n], data[row].indices)
            assert_array_equal(own[n:], 300)
            assert_array_equal(counts, own < 300)
        assert words.lengths.sum() == lengths[group.rows].sum()
    assert sorted(seen) == list(range(lengths.size))
