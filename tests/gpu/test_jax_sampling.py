"""Gibbs chains in JAX against enumeration: plain, and the GPU kernels interpreted."""

from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import gammaln

pytest.importorskip("jax")

import jax

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.evaluation import completion_score, split_documents
from tempering.gpu.compiled_steps import group_functions
from tempering.gpu.device_data import DeviceCorpus, Group
from tempering.gpu.jax_functions import NEVER, Sweeps, draw_topic, pad_topics, uniform
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.sampling import sample_topics
from tempering.models.lda.topics import Topics

KERNELS = ["plain", "interpreted"]


def exact_counts(words, topics, alpha):
    """E[n_k] of a document with θ summed out, by enumeration of all assignments."""
    n_topics = topics.shape[0]
    expected, total = np.zeros(n_topics), 0.0
    for z in product(range(n_topics), repeat=len(words)):
        counts = np.bincount(z, minlength=n_topics)
        weight = np.exp(gammaln(alpha + counts).sum()) * np.prod(topics[list(z), words])
        expected += weight * counts
        total += weight
    return expected / total


@cache
def compiled(kernel, sweeps):
    return jax.jit(partial(group_functions(kernel)[1], sweeps=sweeps))


def sample(kernel, counts, topics, alpha, width=32, **sweeps):
    """γ [n, K] and statistics [V, K] of documents given as a table."""
    matrix = sparse.csr_matrix(counts, dtype=np.float32)
    group = Group(np.arange(len(counts)), len(counts), width)
    rectangle = DeviceCorpus(matrix, False).rectangle(group)
    table = pad_topics(np.log(topics.T), NEVER)
    solve = compiled(kernel, Sweeps(**sweeps))
    solved = solve(*rectangle, table, pad_topics(np.asarray(alpha), 1.0))
    n_topics = topics.shape[0]
    assert_allclose(np.asarray(solved[1])[:, n_topics:], 0.0)
    return tuple(np.asarray(part)[:, :n_topics] for part in solved)


TOPICS = np.random.default_rng(0).dirichlet(np.full(6, 0.5), size=3)
COUNTS = np.array([[2, 0, 1, 0, 1, 0], [0, 1, 0, 3, 0, 1], [1, 1, 1, 1, 1, 1], [0, 0, 1, 0, 0, 0]])
ALPHA = np.array([0.3, 0.5, 0.2])


@pytest.mark.parametrize(
    ("kernel", "copies", "kept", "error"),
    [
        ("plain", 400, 200, 0.025),
        # Its draws are those of the plain one, by a test below.
        pytest.param("interpreted", 30, 200, 0.08, marks=pytest.mark.slow),
    ],
)
def test_long_chains_count_as_enumeration_does(kernel, copies, kept, error):
    # Equal documents of a group make different draws, so that they are as many chains.
    tables = np.tile(COUNTS, (copies, 1))
    gamma, _ = sample(kernel, tables, TOPICS, ALPHA, burn_in=20, kept=kept)
    means = (gamma - ALPHA).reshape(copies, len(COUNTS), 3)
    for row, found in zip(COUNTS, means.swapaxes(0, 1)):
        words = np.repeat(np.arange(6), row)
        assert_allclose(found.mean(axis=0), exact_counts(words, TOPICS, ALPHA), atol=error)
        assert len(np.unique(found[:, 0])) > 10


def some_documents(n=40, n_words=50, n_topics=7, seed=0):
    """Documents of 0, 1, few and many tokens, with topics and a prior."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), n_topics) + 1e-6
    lengths = np.append([0, 1, 1, 2, 120], rng.integers(3, 60, n - 5))
    theta = rng.dirichlet(np.full(n_topics, 0.3), n)
    counts = np.array([rng.multinomial(m, p @ topics / (p @ topics).sum()) for m, p in
                       zip(lengths, theta)])  # fmt: skip
    return counts, topics / topics.sum(axis=1, keepdims=True), rng.uniform(0.05, 1.0, n_topics)


def expected_statistics(counts, topics, alpha, gamma):
    """Σ_d n_dv φ_dvk, φ with the token's own share taken out of γ: entry by entry."""
    statistics = np.zeros(topics.T.shape)
    for d, v in zip(*np.nonzero(counts)):
        own = gamma[d] * topics[:, v]
        others = np.maximum(gamma[d] - own / own.sum(), 0.5 * alpha) * topics[:, v]
        statistics[v] += counts[d, v] * others / others.sum()
    return statistics


@pytest.mark.parametrize("kernel", KERNELS)
def test_statistics_are_conditional_expectations_and_nothing_is_lost(kernel):
    counts, topics, alpha = some_documents()
    gamma, statistics = sample(kernel, counts, topics, alpha, width=128)
    assert_allclose(gamma.sum(axis=1), alpha.sum() + counts.sum(axis=1), rtol=1e-5)
    assert_allclose(gamma[0], alpha, rtol=1e-6)
    assert np.all(gamma > 0.999 * alpha)
    assert_allclose(statistics.sum(axis=1), counts.sum(axis=0), rtol=1e-4)
    expected = expected_statistics(counts, topics, alpha, gamma)
    assert_allclose(statistics, expected, rtol=1e-3, atol=1e-4)


def test_the_gpu_kernels_make_the_draws_of_plain_jax():
    counts, topics, alpha = some_documents()
    plain, kernel = (sample(name, counts, topics, alpha, width=128)[0] for name in KERNELS)
    # Sums may be rounded otherwise, which a draw in some millions feels.
    assert np.mean(np.abs(plain - kernel).max(axis=1) < 1e-4) > 0.9


@pytest.mark.parametrize("n_topics", [32, 512, 1024])
def test_the_kernels_are_made_of_what_gpus_can(n_topics):
    shapes = [((8, 32), "int32"), ((8, 32), "float32"), ((8,), "int32")]
    shapes += [((50, n_topics), "float32"), ((n_topics,), "float32")]
    arguments = [jax.ShapeDtypeStruct(shape, np.dtype(kind)) for shape, kind in shapes]
    lowered = (
        jax.jit(group_functions("pallas")[1]).trace(*arguments).lower(lowering_platforms=("cuda",))
    )
    assert lowered.as_text().count("stablehlo.custom_call @__gpu$xla.gpu.triton") == 2


@given(
    weights=st.lists(st.sampled_from([0.0, 1e-30, 1e-3, 0.3, 1.0, 77.0]), min_size=1, max_size=40),
    bits=st.integers(0, 2**24 - 1) | st.sampled_from([0, 2**24 - 1]),
)
@settings(max_examples=60, deadline=None)
def test_a_topic_is_drawn_where_its_share_is(weights, bits):
    weights, share = np.pad(np.array(weights, np.float32), (0, 40 - len(weights))), bits / 2**24
    if not weights.any():
        return
    topic = int(DRAW(weights, np.float32(share)))
    assert weights[topic] > 0
    shares = np.append(0, np.cumsum(weights, dtype=float)) / weights.sum(dtype=float)
    assert shares[topic] - 1e-5 <= share <= shares[topic + 1] + 1e-5


DRAW = jax.jit(draw_topic)


def test_random_numbers_are_uniform_and_unlike():
    streams, numbers = np.arange(2000, dtype=np.uint32)[:, None], np.arange(200)[None, :]
    found = np.asarray(uniform(streams, streams, numbers))
    assert found.min() >= 0
    assert found.max() < 1
    table = np.histogram(found, bins=100, range=(0, 1))[0]
    assert np.sum((table - 4000) ** 2 / 4000) < 160  # χ² with 99 degrees of freedom
    beside = [(found[:, 1:], found[:, :-1]), (found[1:], found[:-1])]
    for one, other in beside:
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.01


CORPUS = sparse.csr_matrix(make_lda(300, 8, n_words=200, document_length=40, seed=3).counts)
ROWS = np.random.default_rng(0).gamma(0.5, size=(200, 8)) + 0.1


@pytest.mark.parametrize("power", [1.0, 0.6])
def test_a_step_is_one_of_those_that_the_cpu_could_make(power):
    model = LatentDirichlet(8, 200, 0.1, 0.1, update="sampled")
    documents = model.documents(CORPUS)
    rows = model.expectations(Topics(ROWS, 0.1)).mean_rows(documents.words, power)
    topics = (ROWS / ROWS.sum(axis=0)) ** power
    gamma, statistics = sample("plain", CORPUS.toarray(), topics.T, np.full(8, 0.1), width=128)
    samples = [sample_topics(documents, rows, model.doc_topic_prior, bytes([i])) for i in range(40)]
    for name, found in (("gamma", gamma), ("statistics", statistics[documents.words])):
        all_found = np.array([getattr(one, name) for one in samples])
        center = all_found.mean(axis=0)
        distances = np.abs(all_found - center).sum(axis=(1, 2))
        assert np.abs(found - center).sum() < distances.mean() + 5 * distances.std()


@pytest.mark.slow
def test_the_estimator_scores_as_on_the_cpu():
    data = sparse.csr_matrix(make_lda(700, 6, n_words=150, document_length=50, seed=5).counts)
    train, test = data[:500], split_documents(data[500:], seed=0)
    scores = {}
    for backend in ("cpu", "jax"):
        lda = LatentDirichletAllocation(
            6, max_iter=8, batch_size=100, random_state=0, backend=backend
        ).fit(train)
        topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
        scores[backend] = completion_score(*test, topics, 0.1, "vi")
    assert abs(scores["jax"] - scores["cpu"]) < 0.02, scores
