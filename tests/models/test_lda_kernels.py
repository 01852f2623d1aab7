"""The LDA kernels against the plain float64 reference."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, special

from reproduction import lda_reference as reference
from tempering.models import fastmath
from tempering.models.compilation import ENTRY, njit
from tempering.models.lda import e_step as kernels
from tempering.models.lda.steps import TopicExpectations
from tempering.models.lda.topics import Topics

LENGTHS = [1, 2, 0, 3, 17, 60, 120, 2000, *[40] * 12]
TIGHT = {"tolerance": 1e-7, "max_iterations": 2000}


class Corpus(NamedTuple):
    """A batch with topics that fit it."""

    indptr: np.ndarray
    columns: np.ndarray
    counts: np.ndarray
    posterior_rows: np.ndarray
    topic_totals: np.ndarray
    log_rows: np.ndarray

    @property
    def batch(self):
        return self.indptr, self.columns, self.counts

    @property
    def n_documents(self):
        return self.indptr.size - 1


def log_word_rows(rows, totals, form="variational"):
    """The log rows of topics with these parameters and totals."""
    return TopicExpectations(Topics(rows, 0.0), totals, form).log_rows(np.arange(len(rows)))


def make_corpus(n_topics, lengths=LENGTHS, vocabulary=1500, seed=0):
    """Documents drawn from LDA, and topics near the true ones that have not seen every word."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(vocabulary, 0.05), n_topics)
    counts = np.zeros((len(lengths), vocabulary))
    for d, length in enumerate(lengths):
        proportions = rng.dirichlet(np.full(n_topics, 3 / n_topics))
        counts[d] = rng.multinomial(length, proportions @ topics)
    words = np.flatnonzero(counts.sum(0))
    batch = sparse.csr_array(counts[:, words])
    posterior = 0.05 + 2000 * topics * rng.uniform(0.5, 1.5, topics.shape)
    posterior[:, words[::50]] = 0.05
    rows = np.ascontiguousarray(posterior.T[words]).astype(np.float32)
    totals = posterior.sum(1)
    log_rows = log_word_rows(rows, totals)
    return Corpus(batch.indptr, batch.indices, batch.data, rows, totals, log_rows)


@pytest.fixture(scope="module")
def corpora():
    """Corpora by their number of topics, made once."""
    return {n_topics: make_corpus(n_topics) for n_topics in (5, 50, 500)}


def relative_l1(actual, expected):
    """Total absolute error over the total."""
    return np.abs(actual - expected).sum() / np.abs(expected).sum()


def assert_matches_reference(result, expected):
    assert relative_l1(result.statistics, expected.statistics) < 1e-4
    assert relative_l1(result.gamma, expected.gamma) < 1e-4


# --------------------------------------------------------------------------- the float32 functions


def elementwise(function):
    @njit(**{**ENTRY, "cache": False})
    def apply(values, out):
        for i in range(values.size):
            out[i] = function(values[i])

    def call(values):
        values = np.asarray(values, dtype=np.float32)
        out = np.empty_like(values)
        apply(values, out)
        return out

    return call


def test_float32_functions_are_accurate_and_keep_nan():
    rng = np.random.default_rng(0)
    exponents = rng.uniform(-43, 5, 20_000).astype(np.float32)
    positive = np.exp(rng.uniform(-20, 15, 20_000)).astype(np.float32)
    exp, log = elementwise(fastmath.exp_or_zero), elementwise(fastmath.log)
    digamma = elementwise(fastmath.digamma)
    assert_allclose(exp(exponents), np.exp(exponents.astype(float)), rtol=3e-6)
    assert_allclose(log(positive), np.log(positive.astype(float)), rtol=2e-7, atol=2e-7)
    expected = special.digamma(positive.astype(float))
    assert_allclose(digamma(positive), expected, rtol=1e-6, atol=1e-6)
    assert_array_equal(exp([0, -44, -1e30, -np.inf]), [1, 0, 0, 0])
    for function in (exp, log, digamma):
        assert np.isnan(function([np.nan])[0])


@pytest.mark.parametrize("exponent", [0.5, 0.87, 0.999, 1.0])
def test_powers_are_accurate_and_keep_nan(exponent):
    power = elementwise(numba.njit(lambda x: fastmath.power(x, np.float32(exponent))))
    bases = np.exp(np.random.default_rng(0).uniform(-86, 86, 20_000)).astype(np.float32)
    assert_allclose(power(bases), bases.astype(float) ** np.float32(exponent), rtol=1e-5)
    assert np.isnan(power([np.nan])[0])


def test_digamma_floor_is_below_and_near():
    floor = elementwise(fastmath.digamma_floor)
    y = -np.geomspace(2.01, 1e4, 2_000).astype(np.float32)
    below = special.digamma(floor(y).astype(float))
    assert np.all(below <= y * (1 - 1e-6))
    assert_allclose(below, y, rtol=0.1)
    assert_allclose(below[y < -8], y[y < -8], rtol=2e-6)
    assert_array_equal(floor([-1.9, 0.0, 3.0]), 0)


@pytest.mark.parametrize("form", ["variational", "mean"])
def test_log_word_rows(corpora, form):
    corpus = corpora[50]
    rows = log_word_rows(corpus.posterior_rows, corpus.topic_totals, form)
    expected = reference.log_word_rows(corpus.posterior_rows, corpus.topic_totals, form)
    assert rows.dtype == np.float32
    assert_allclose(rows, expected, rtol=1e-6, atol=2e-6)


# --------------------------------------------------------------------------- the fixed point


@pytest.mark.parametrize("n_topics", [5, 50, 500])
@pytest.mark.parametrize("inverse_temperature", [0.1, 0.5, 1.0, "per document"])
def test_matches_reference(corpora, n_topics, inverse_temperature):
    corpus = corpora[n_topics]
    if inverse_temperature == "per document":
        inverse_temperature = np.linspace(0.2, 1, corpus.n_documents)
    args = (*corpus.batch, corpus.log_rows, 0.1, inverse_temperature)
    result = kernels.e_step(*args, **TIGHT)
    expected = reference.e_step(*args, tolerance=1e-8)
    assert_matches_reference(result, expected)
    energy, entropy = kernels.document_energy(
        *corpus.batch, corpus.log_rows, result.gamma, inverse_temperature
    )
    assert_allclose(energy, expected.energy, rtol=1e-5, atol=1e-4)
    assert_allclose(entropy, expected.entropy, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("inverse_temperature", [0.5, 1.0])
def test_asymmetric_alpha(corpora, inverse_temperature):
    corpus = corpora[50]
    alpha = np.random.default_rng(1).gamma(1.0, 0.2, 50) + 0.01
    args = (*corpus.batch, corpus.log_rows, alpha, inverse_temperature)
    expected = reference.e_step(*args, tolerance=1e-8)
    assert_matches_reference(kernels.e_step(*args, **TIGHT), expected)


def test_starts_from_a_given_gamma(corpora):
    corpus = corpora[50]
    gamma = np.random.default_rng(2).gamma(0.3, 5.0, (corpus.n_documents, 50)) + 0.01
    args = (*corpus.batch, corpus.log_rows, 0.05, 1.0)
    result = kernels.e_step(*args, gamma=gamma, **TIGHT)
    assert_matches_reference(result, reference.e_step(*args, gamma=gamma, tolerance=1e-8))
    at_rest = kernels.e_step(*args, gamma=result.gamma, tolerance=1e-3, min_iterations=1)
    assert at_rest.iterations.max() == 1


def test_mass_is_conserved_and_empty_documents_keep_their_prior(corpora):
    corpus = corpora[500]
    inverse_temperature = np.linspace(0.2, 1, corpus.n_documents)
    result = kernels.e_step(*corpus.batch, corpus.log_rows, 0.1, inverse_temperature)
    lengths = np.array(LENGTHS)
    assert_allclose(result.gamma.sum(1), 50 + inverse_temperature * lengths, rtol=1e-5)
    assert_allclose(result.statistics.sum(), inverse_temperature @ lengths, rtol=1e-5)
    empty = LENGTHS.index(0)
    assert_array_equal(result.gamma[empty], np.full(500, 0.1, np.float32))
    assert result.iterations[empty] == 0


def test_one_temperature_for_all_or_for_each_is_the_same(corpora):
    corpus = corpora[50]
    args = (*corpus.batch, corpus.log_rows, 0.1)
    shared = kernels.e_step(*args, 0.7, **TIGHT)
    separate = kernels.e_step(*args, np.full(corpus.n_documents, 0.7), **TIGHT)
    assert relative_l1(separate.statistics, shared.statistics) < 1e-5


# --------------------------------------------------------------------------- numbers out of range


@pytest.mark.parametrize("inverse_temperature", [1.0, 0.5, "per document"])
@pytest.mark.parametrize("last_row", [[-500, -2000, 0], [-1900, -2000, 0]])
def test_words_that_underflow_are_not_dropped(inverse_temperature, last_row):
    # The start rules the third topic out, whose word the first topic explains badly: all of its
    # exponentials vanish in float32. With the first row it stays, with the second it moves back.
    log_rows = np.array([[0, -600, -600], [-600, 0, -600], last_row], dtype=np.float32)
    indptr, columns, counts = [0, 2, 4], [0, 2, 1, 2], [50, 1, 30, 2]
    gamma = [[50.0, 0.002, 0.002], [0.002, 30.0, 0.002]]
    if inverse_temperature == "per document":
        inverse_temperature = np.array([1.0, 0.8])
    args = (indptr, columns, counts, log_rows, 0.002, inverse_temperature)
    result = kernels.e_step(*args, gamma=gamma, **TIGHT)
    expected = reference.e_step(*args, gamma=gamma)
    assert_matches_reference(result, expected)
    energy, entropy = kernels.document_energy(
        indptr, columns, counts, log_rows, result.gamma, inverse_temperature
    )
    assert_allclose(energy, expected.energy, rtol=1e-5)
    assert_allclose(entropy, expected.entropy, atol=1e-2)


def test_a_word_whose_topics_were_all_left_out_gets_them_back():
    # Sixty topics share the last word: none has any weight after the first sweep. It has no other.
    log_rows = np.full((11, 100), -300, dtype=np.float32)
    log_rows[:10, 0] = -1
    log_rows[10, 20:80] = -2 - 0.01 * np.arange(60)
    counts = np.append(np.full(10, 6.0), 1.0)
    args = ([0, 11], np.arange(11), counts, log_rows, 0.002)
    result = kernels.e_step(*args, **TIGHT)
    expected = reference.e_step(*args, tolerance=1e-7)
    assert_matches_reference(result, expected)
    assert_allclose(result.gamma, expected.gamma, rtol=1e-4)


def test_rows_far_apart_still_give_a_fixed_point():
    corpus = make_corpus(40, lengths=[1, 30, 80, 200])
    rng = np.random.default_rng(3)
    log_rows = (300 * rng.normal(size=corpus.log_rows.shape)).astype(np.float32)
    args = (*corpus.batch, log_rows, 0.01)
    result = kernels.e_step(*args, **TIGHT)
    again = reference.e_step(*args, gamma=result.gamma)
    assert np.all(np.isfinite(result.statistics))
    assert_matches_reference(result, again)


@pytest.mark.parametrize("inverse_temperature", [1.0, np.array([0.3, 0.9])])
def test_topics_that_cannot_make_a_word(inverse_temperature):
    rng = np.random.default_rng(5)
    log_rows = rng.normal(size=(30, 8)).astype(np.float32)
    log_rows[:, 1:][rng.random((30, 7)) < 0.4] = -np.inf
    args = ([0, 10, 30], np.arange(30), np.ones(30), log_rows, 0.1, inverse_temperature)
    result = kernels.e_step(*args, **TIGHT)
    expected = reference.e_step(*args)
    assert_matches_reference(result, expected)
    energy, _ = kernels.document_energy(*args[:4], result.gamma, inverse_temperature)
    assert_allclose(energy, expected.energy, rtol=1e-5)


def test_words_unseen_by_the_topics():
    corpus = make_corpus(20, lengths=[10, 10])
    totals = corpus.topic_totals
    unseen = log_word_rows(np.full((3, 20), 0.01, np.float32), totals)
    args = ([0, 2, 3], [0, 1, 2], [1, 4, 2], unseen, 0.1)
    assert_matches_reference(kernels.e_step(*args, **TIGHT), reference.e_step(*args))


# --------------------------------------------------------------------------- threads and stopping


@pytest.mark.parametrize("inverse_temperature", [1.0, "per document"])
def test_the_number_of_threads_changes_no_bit(inverse_temperature):
    corpus = make_corpus(50, lengths=[*LENGTHS, *[30] * 60])
    if inverse_temperature == "per document":
        inverse_temperature = np.linspace(0.3, 1, corpus.n_documents)
    args = (*corpus.batch, corpus.log_rows, 0.1, inverse_temperature)
    results = [kernels.e_step(*args, n_threads=n) for n in (1, 2, 3)]
    for other in results[1:]:
        for one_thread, more_threads in zip(results[0], other, strict=True):
            assert_array_equal(one_thread, more_threads)
    energies = [
        kernels.document_energy(*args[:4], results[0].gamma, inverse_temperature, n_threads=n)
        for n in (1, 3)
    ]
    assert_array_equal(energies[0], energies[1])


def test_stopping_rule(corpora):
    corpus = corpora[50]
    args = (*corpus.batch, corpus.log_rows, 0.1)
    loose = kernels.e_step(*args, tolerance=1e-1, min_iterations=3).iterations
    tight = kernels.e_step(*args, tolerance=1e-4, min_iterations=3).iterations
    not_empty = np.array(LENGTHS) > 0
    assert np.all(loose[not_empty] >= 3)
    assert np.all(tight >= loose)
    assert kernels.e_step(*args, tolerance=0, max_iterations=17).iterations.max() == 17
    assert kernels.e_step(*args, max_iterations=1).iterations.max() == 1


def test_the_last_sweep_moves_less_than_the_tolerance(corpora):
    corpus = corpora[500]
    args = (*corpus.batch, corpus.log_rows, 0.01)
    result = kernels.e_step(*args, tolerance=1e-2)
    next_step = reference.e_step(*args, gamma=result.gamma, max_iterations=1)
    moved = np.abs(next_step.gamma - result.gamma).sum(1)
    assert np.all(moved <= 1.01e-2 * np.array(LENGTHS) + 1e-6)


# --------------------------------------------------------------------------- scores and arguments


def test_log_predictive(corpora):
    corpus = corpora[50]
    topic_rows = corpus.posterior_rows / corpus.topic_totals
    proportions = np.random.default_rng(4).dirichlet(np.ones(50), corpus.n_documents)
    args = (*corpus.batch, topic_rows, proportions)
    assert_allclose(kernels.log_predictive(*args), reference.log_predictive(*args), rtol=1e-6)


def test_without_statistics_and_without_documents(corpora):
    corpus = corpora[5]
    args = (*corpus.batch, corpus.log_rows, 0.1)
    with_them = kernels.e_step(*args)
    without = kernels.e_step(*args, return_statistics=False)
    assert without.statistics is None
    assert_array_equal(with_them.gamma, without.gamma)
    none = kernels.e_step([0], [], [], corpus.log_rows, 0.1)
    assert none.gamma.shape == (0, 5)
    assert not none.statistics.any()


@settings(max_examples=40, deadline=None)
@given(
    n_topics=st.integers(1, 20),
    lengths=st.lists(st.integers(0, 50), min_size=1, max_size=5),
    inverse_temperature=st.floats(0.05, 1),
    alpha=st.floats(0.01, 2),
    seed=st.integers(0, 1000),
)
def test_any_batch_ends_at_a_fixed_point(n_topics, lengths, inverse_temperature, alpha, seed):
    corpus = make_corpus(n_topics, lengths, vocabulary=60, seed=seed)
    args = (*corpus.batch, corpus.log_rows, alpha, inverse_temperature)
    result = kernels.e_step(*args, **TIGHT)
    next_step = reference.e_step(*args, gamma=result.gamma, max_iterations=1)
    moved = np.abs(next_step.gamma - result.gamma).sum(1)
    assert np.all(moved <= 3e-6 * (np.array(lengths) + alpha * n_topics))
    assert_allclose(result.statistics.sum(), inverse_temperature * sum(lengths), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_rows", np.array([[0.0, np.nan], [0.0, 0.0]])),
        ("log_rows", np.array([[0.0, np.inf], [0.0, 0.0]])),
        ("n_threads", 0),
    ],
)
def test_bad_arguments_are_named(name, value):
    arguments = {
        "indptr": [0, 2],
        "columns": [0, 1],
        "counts": [1.0, 2.0],
        "log_rows": np.zeros((2, 2)),
        "alpha": 0.1,
        name: value,
    }
    with pytest.raises(ValueError, match=name):
        kernels.e_step(**arguments)
