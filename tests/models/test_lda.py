"""LDA on the engine's contract: exactness on tiny corpora, the lazy posterior, temperatures."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, gammaln, logsumexp, softmax

from reproduction.partition_numbers import partition_bounds
from tempering.families import Dirichlet
from tempering.inference import Algorithm, ArraySource, Constant, RobbinsMonro, fit
from tempering.inference.executors import Serial
from tempering.models import Natural, UnsupportedTemperature
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.priors import (
    fit_concentration,
    fit_symmetric_concentration,
    inverse_digamma,
    prior_draws,
    share_out,
)
from tempering.models.lda.steps import Interpolation, TopicDraws
from tempering.models.lda.topics import TopicPrior, Topics, WordStatistics
from tempering.temperature import (
    Annealing,
    LocalTempering,
    VariationalTempering,
    log_partition,
    schedules,
)

K, V = 3, 6


def corpus(n=8, v=V, seed=0, mean=1.0):
    rng = np.random.default_rng(seed)
    return sparse.csr_matrix(rng.poisson(mean, size=(n, v)).astype(np.int16))


def model_and_topics(k=K, v=V, alpha=0.4, eta=0.3, seed=1, **options):
    model = LatentDirichlet(k, v, alpha, eta, tolerance=1e-7, max_iterations=5000, **options)
    rng = np.random.default_rng(seed)
    return model, Topics(rng.gamma(2.0, size=(v, k)), eta)


def expected_log_topics(topics):
    parameters = topics.parameters().astype(float)
    return digamma(parameters) - digamma(parameters.sum(axis=0))


@pytest.mark.parametrize("s", [1.0, 0.5])
def test_assignments_match_enumeration(s):
    """Given q(θ), q(z) over all K^N joint states of a document has the kernel's marginals."""
    model, topics = model_and_topics()
    words = np.array([0, 2, 2, 5])
    counts = np.bincount(words, minlength=V)
    step = model.local_step(sparse.csr_matrix(counts[None]), model.expectations(topics), s)
    gamma = step.gamma[0].astype(float)
    log_theta = digamma(gamma) - digamma(gamma.sum())
    log_joint = log_theta + expected_log_topics(topics)[words]  # [N, K]
    states = np.array(list(product(range(K), repeat=len(words))))
    energies = log_joint[np.arange(len(words)), states].sum(axis=1)
    q = softmax(s * energies)
    marginals = np.stack([(q[:, None] * (states == k)).sum(axis=0) for k in range(K)], axis=1)

    statistics = np.zeros((V, K))
    np.add.at(statistics, words, s * marginals)
    used = step.statistics.words
    np.testing.assert_allclose(step.statistics.values, statistics[used], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(gamma, 0.4 + s * marginals.sum(axis=0), rtol=1e-4)
    assert step.energies[0] == pytest.approx(q @ energies, rel=1e-5)


@pytest.mark.parametrize("s", [1.0, 0.5])
def test_the_elbo_is_written_out_right(s):
    """Every term of the (annealed) ELBO, from its definition, for whole corpora."""
    model, topics = model_and_topics()
    data = corpus()
    step = model.local_step(data, model.expectations(topics), s)
    gamma, parameters = step.gamma.astype(float), topics.parameters().astype(float)
    log_topics = expected_log_topics(topics)
    energy = entropy = divergence = 0.0
    for d, row in enumerate(data.toarray()):
        log_theta = digamma(gamma[d]) - digamma(gamma[d].sum())
        for v in np.flatnonzero(row):
            log_joint = log_theta + log_topics[v]
            phi = softmax(s * log_joint)
            energy += row[v] * phi @ log_joint
            entropy -= row[v] * phi @ np.log(phi)
        divergence += Dirichlet(K).divergence(gamma[d], np.full(K, 0.4))
    assert step.energy == pytest.approx(energy, rel=1e-4)
    assert step.tempered_energy == pytest.approx(s * energy, rel=1e-4)
    assert step.entropy == pytest.approx(entropy - divergence, rel=1e-4)
    oracle = Dirichlet(V).divergence(parameters.T, np.full(V, 0.3)).sum()
    assert model.divergence(topics) == pytest.approx(oracle, rel=1e-5)


def test_the_elbo_is_below_the_exact_evidence():
    """The evidence of two documents, by enumeration of all topic assignments."""
    model, topics = model_and_topics(k=2, v=3)
    documents = [[0, 1], [2, 2, 1]]
    data = sparse.csr_matrix([[1, 1, 0], [0, 1, 2]])
    terms = []
    for state in product(range(2), repeat=5):
        parts = np.split(np.array(state), [2])
        words = np.zeros((2, 3))
        log_p = 0.0
        for topics_of_document, tokens in zip(parts, documents):
            counts = np.bincount(topics_of_document, minlength=2)
            log_p += np.sum(gammaln(0.4 + counts) - gammaln(0.4))
            log_p += gammaln(0.8) - gammaln(0.8 + len(tokens))
            np.add.at(words, (topics_of_document, tokens), 1)
        log_p += np.sum(gammaln(0.3 + words) - gammaln(0.3))
        log_p += np.sum(gammaln(0.9) - gammaln(0.9 + words.sum(axis=1)))
        terms.append(log_p)
    evidence = logsumexp(terms)
    result = fit(model, data, initial=topics, max_passes=200, progress=False)
    assert result.elbo < evidence
    # Mean field pays a few nats on so few words.
    assert evidence - result.elbo < 4.0


@pytest.mark.parametrize(
    "temperature",
    [None, Annealing(schedules.constant(2.0), fraction=1.0)],
    ids=["VI", "AVI"],
)
def test_batch_inference_never_lowers_its_bound(temperature):
    model, topics = model_and_topics()
    result = fit(
        model,
        corpus(30, seed=2),
        temperature=temperature,
        initial=topics,
        max_passes=30,
        finish=False,
        tolerance=0.0,
        progress=False,
    )
    bounds = result.history["tempered_elbo"]
    assert np.all(np.diff(bounds) > -1e-4 * np.abs(bounds).max() / 30)
    assert bounds[-1] > bounds[0] + 1


class Dense:
    """λ as a whole matrix in float64, updated in the plain way."""

    def __init__(self, topics):
        self.parameters = topics.parameters().astype(float)

    def blend(self, prior, words, values, scale, rate):
        target = np.full_like(self.parameters, prior)
        target[words] += scale * values
        self.parameters = (1 - rate) * self.parameters + rate * target


@pytest.mark.parametrize("rates", ["robbins-monro", "large", "one"])
def test_lazy_and_dense_global_steps_agree(rates):
    rng = np.random.default_rng(0)
    topics = Topics(rng.gamma(2.0, size=(40, 4)), 0.3)
    dense = Dense(topics)
    for t in range(1, 300):
        words = np.sort(rng.choice(40, size=10, replace=False))
        values = rng.gamma(0.5, size=(10, 4)).astype(np.float32)
        rate = {"robbins-monro": RobbinsMonro(1.0, 0.7)(t), "large": 0.9, "one": 1.0}[rates]
        prior = rng.uniform(0.1, 0.3)  # as where the joint is annealed, or η is learned
        target = TopicPrior(prior) + 7.0 * WordStatistics(words, values)
        topics = topics.blend(target, rate)
        dense.blend(prior, words, values, 7.0, rate)
    np.testing.assert_allclose(topics.parameters(), dense.parameters, rtol=2e-5)
    np.testing.assert_allclose(topics.totals(), dense.parameters.sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(
        topics.project(np.eye(4, 2, dtype=np.float32)), dense.parameters[:, :2], rtol=2e-5
    )


def test_mean_rows_are_rows_of_the_mean():
    rng = np.random.default_rng(0)
    topics = Topics(rng.gamma(2.0, size=(40, 4)), 0.3)
    target = TopicPrior(0.3) + 7.0 * WordStatistics(np.arange(3), np.ones((3, 4), np.float32))
    expected = LatentDirichlet(4, 40, 0.1, 0.3, n_threads=2).expectations(topics.blend(target, 0.4))
    means = topics.parameters() / topics.totals()
    words = np.array([0, 2, 17, 30])
    np.testing.assert_allclose(expected.mean_rows(words), means[words], rtol=1e-6)


def test_statistics_of_shards_add_up():
    model, topics = model_and_topics()
    data, expected = corpus(10), model.expectations(topics)
    whole = model.local_step(data, expected, 0.7)
    parts = model.local_step(data[:4], expected, 0.7) + model.local_step(data[4:], expected, 0.7)
    np.testing.assert_array_equal(parts.statistics.words, whole.statistics.words)
    np.testing.assert_allclose(
        parts.statistics.values, whole.statistics.values, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(parts.energies, whole.energies, rtol=1e-5)
    assert parts.entropy == pytest.approx(whole.entropy, rel=1e-5)


def test_scaled_statistics_add_up():
    rows = np.ones((2, 3), np.float32)
    both = 2.0 * WordStatistics(np.array([0, 2]), rows) + 3.0 * WordStatistics(
        np.array([1, 2]), rows
    )
    np.testing.assert_array_equal(both.words, [0, 1, 2])
    np.testing.assert_allclose(both.factor * both.values[:, 0], [2.0, 3.0, 5.0])


def test_a_document_goes_on_from_its_proportions():
    """With one sweep a step, many steps come to where many sweeps do."""
    model, topics = model_and_topics()
    short = LatentDirichlet(K, V, 0.4, 0.3, tolerance=0.0, min_iterations=1, max_iterations=1)
    data, expected = corpus(), model.expectations(topics)
    step = short.local_step(data, expected, 1.0)
    for _ in range(300):
        step = short.continue_local_step(step, data, expected, 1.0)
    np.testing.assert_allclose(step.gamma, model.local_step(data, expected, 1.0).gamma, rtol=1e-3)


def test_the_joint_may_be_annealed_too():
    """p(β)^s has the prior s η, and the lazy posterior follows it."""
    model, topics = model_and_topics()
    result = fit(
        model,
        corpus(20),
        initial=topics,
        temperature=Annealing(schedules.constant(2.0), fraction=1.0, temper="joint"),
        max_passes=3,
        finish=False,
        progress=False,
    )
    assert result.posterior.offset == pytest.approx(0.15)


# Temperatures


def predictive(model, topics, gamma):
    """p̄ over the vocabulary for each document, [n, V]."""
    parameters = topics.parameters().astype(float)
    theta = gamma / gamma.sum(axis=1, keepdims=True)
    return theta @ (parameters / parameters.sum(axis=0)).T


GRID = np.linspace(0.1, 1.0, 19)


def test_calibrated_tempering_matches_a_slow_computation():
    model, topics = model_and_topics()
    data = corpus(5, mean=2.0)
    expected = model.expectations(topics)
    step = model.local_step(data, expected, 0.8)
    terms = model.temperature_terms(step, expected, GRID, data, "calibrated", shared=True)
    p = predictive(model, topics, step.gamma.astype(float))
    counts = data.toarray()
    np.testing.assert_allclose(terms.energies, (counts * np.log(p)).sum(axis=1), rtol=1e-5)
    oracle = counts.sum(axis=1)[:, None] * np.log(
        np.stack([(p**s).sum(axis=1) for s in GRID], axis=1)
    )
    np.testing.assert_allclose(terms.log_normalizers, oracle, atol=1e-4)
    assert terms.share == pytest.approx(1.0)


def test_calibrated_tempering_scales_a_sample_to_the_batch():
    model, topics = model_and_topics()
    data, expected = corpus(40, mean=2.0), model.expectations(topics)
    step = model.local_step(data, expected, 1.0)
    terms = model.temperature_terms(step, expected, GRID, data, "calibrated", shared=True)
    lengths = data.toarray().sum(axis=1)
    assert len(terms.energies) == 10
    assert terms.share == pytest.approx(lengths[:10].sum() / lengths.sum())


def test_local_formulas_match_slow_computations():
    model, topics = model_and_topics()
    data, expected = corpus(5, mean=2.0), model.expectations(topics)
    step = model.local_step(data, expected, np.linspace(0.4, 1.0, 5))
    gamma, parameters = step.gamma.astype(float), topics.parameters().astype(float)
    counts, lengths = data.toarray(), data.toarray().sum(axis=1)
    z = np.exp(Dirichlet(V).log_moment(parameters.T, GRID)).sum(axis=-1)  # [K, M]
    theta = gamma / gamma.sum(axis=1, keepdims=True)

    calibrated = model.temperature_terms(step, expected, GRID, data, "calibrated", shared=False)
    p = predictive(model, topics, gamma)
    np.testing.assert_allclose(calibrated.energies, (counts * np.log(p)).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(
        calibrated.log_normalizers, lengths[:, None] * np.log(theta @ z), atol=1e-4
    )

    paper = model.temperature_terms(step, expected, GRID, data, "paper", shared=False)
    np.testing.assert_allclose(paper.energies, step.energies)
    moments = np.exp(Dirichlet(K).log_moment(gamma, GRID))  # [n, M, K]
    oracle = lengths[:, None] * np.log(np.einsum("nmk,km->nm", moments, z))
    np.testing.assert_allclose(paper.log_normalizers, oracle, atol=1e-3)


def test_the_paper_s_energy_is_with_assignments_and_the_integrated_one_without():
    model, topics = model_and_topics()
    data, expected = corpus(20, mean=2.0), model.expectations(topics)
    step = model.local_step(data, expected, 1.0)
    integrated = model.temperature_terms(step, expected, GRID, data, "z-integrated", shared=True)
    assert integrated.energies.sum() > step.energy
    with pytest.raises(UnsupportedTemperature, match="no temperature formula 'guess'"):
        model.temperature_terms(step, expected, GRID, data, "guess", shared=True)


@pytest.mark.parametrize(
    ("formula", "ends_hot"), [("calibrated", False), ("z-integrated", False), ("paper", True)]
)
def test_only_the_paper_s_mixed_formula_sends_the_temperature_to_its_maximum(formula, ends_hot):
    """z-integrated C with an energy that holds z: T = 10, and for ever."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.1), size=4)
    theta = rng.dirichlet(np.full(4, 0.2), size=200)
    data = sparse.csr_matrix([rng.multinomial(60, row @ topics) for row in theta])
    model = LatentDirichlet(4, 30, 0.25, 0.25, mean_length=60.0)
    result = fit(
        model,
        data,
        temperature=VariationalTempering(formula=formula, n_samples=50, fraction=None),
        max_passes=20,
        finish=False,
        progress=False,
    )
    temperature = result.history["temperature"][-1]
    assert (temperature > 9) == ends_hot


def test_temperatures_of_local_tempering_mark_the_odd_document():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.1), size=4)
    theta = rng.dirichlet(np.full(4, 0.2), size=300)
    counts = [rng.multinomial(60, row @ topics) for row in theta]
    odd = rng.multinomial(60, np.full(30, 1 / 30))
    data = sparse.csr_matrix([*counts, odd])
    model = LatentDirichlet(4, 30, 0.25, 0.25)
    result = fit(
        model,
        data,
        temperature=LocalTempering(fraction=None),
        max_passes=20,
        finish=False,
        progress=False,
    )
    inverse = result.heat.inverse_temperature
    assert inverse.shape == (301,)
    assert inverse[-1] < np.quantile(inverse, 0.05)


# The tempered partition function


def test_the_partition_function_matches_a_direct_sum():
    """Nested Monte Carlo against the same draws, without the interpolation in s."""
    model = LatentDirichlet(2, 5, 0.5, 0.7, mean_length=3.0)
    values = model.log_local_integral(TopicDraws(3, 11), GRID)
    for i in range(3):
        rng = np.random.default_rng([11, i])
        topics = Dirichlet(5).sample(np.full(5, 0.7), rng, 2)
        theta = Dirichlet(2).sample(np.full(2, 0.5), rng, 100)
        sums = np.stack([((theta @ topics) ** s).sum(axis=1) for s in GRID], axis=1)
        np.testing.assert_allclose(values[i], np.log(np.mean(sums**3.0, axis=0)), atol=1e-4)


def test_the_partition_function_lies_between_its_bounds():
    model = LatentDirichlet(2, 5, 0.5, 0.1, mean_length=6.0)
    estimate = log_partition(model, GRID, 3, method="monte-carlo", n_samples=1000)
    bounds = partition_bounds(model, GRID, 3, n_samples=1000)
    slack = 5 * estimate.spread + 0.02
    assert estimate.reliable
    assert np.all(bounds.log_outside <= bounds.log_inside + 1e-9)
    assert np.all(bounds.log_inside <= estimate.values + slack)
    assert np.all(estimate.values <= bounds.upper + slack)
    assert np.all(bounds.upper <= bounds.upper_assignments + 1e-9)
    # The supplement calls the second one an upper bound; it is not.
    assert np.any(estimate.values > bounds.log_inside + slack)
    assert estimate.values[-1] == pytest.approx(0.0, abs=1e-4)


def test_interpolation_in_s():
    to_grid = Interpolation(GRID)
    np.testing.assert_allclose(
        to_grid(np.log(1 + to_grid.nodes**2)), np.log(1 + GRID**2), atol=1e-6
    )


def test_power_sums_of_the_topics():
    """log Σ_v E[β_kv^s], from background words to heavy ones, fresh and after enough steps."""
    rng = np.random.default_rng(0)
    topics = Topics(0.02 + rng.gamma(0.05, size=(500, 4)) * 1e4, 0.02)
    nodes = np.array([0.05, 0.3, 0.7, 1.0])

    def oracle():
        log_moments = Dirichlet(500).log_moment(topics.parameters().T.astype(float), nodes)
        return logsumexp(log_moments, axis=-1)

    fresh = oracle()
    np.testing.assert_allclose(topics.log_power_sums(nodes), fresh, atol=2e-5)
    statistics = WordStatistics(np.arange(5), np.full((5, 4), 1e4, np.float32))
    topics.blend(TopicPrior(0.02) + statistics, 0.04)
    np.testing.assert_allclose(topics.log_power_sums(nodes), fresh, atol=2e-5)
    topics.blend(TopicPrior(0.02) + statistics, 0.04)
    np.testing.assert_allclose(topics.log_power_sums(nodes), oracle(), atol=2e-5)
    assert np.abs(oracle() - fresh).max() > 1e-3


# Learned priors


def test_inverse_digamma():
    x = np.array([1e-3, 0.1, 1.0, 50.0])
    np.testing.assert_allclose(inverse_digamma(digamma(x)), x, rtol=1e-8)


def test_concentrations_are_recovered_from_mean_logarithms():
    alpha = np.array([0.05, 0.4, 2.0])
    mean_log = digamma(alpha) - digamma(alpha.sum())
    np.testing.assert_allclose(fit_concentration(mean_log, np.ones(3), 500), alpha, rtol=1e-4)
    symmetric = digamma(0.03) - digamma(50 * 0.03)
    assert fit_symmetric_concentration(symmetric, 50, 1.0) == pytest.approx(0.03, rel=1e-4)


def test_the_document_prior_is_learned_at_temperature_one():
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(3), np.full(4, 0.25))
    theta = rng.dirichlet([1.0, 0.3, 0.05], size=800)
    data = sparse.csr_matrix([rng.multinomial(100, row @ topics) for row in theta])
    model = LatentDirichlet(
        3, 12, 1 / 3, 0.1, learn_doc_topic_prior=True, learn_topic_word_prior=True
    )
    initial = Topics(800.0 * topics.T + 0.1, 0.1)
    model = fit(model, data, initial=initial, max_passes=40, progress=False).model
    np.testing.assert_allclose(model.doc_topic_prior, [1.0, 0.3, 0.05], rtol=0.35)
    assert model.topic_word_prior != 0.1


def test_draws_from_the_prior_are_those_of_an_urn():
    counts, alpha = np.array([[3, 0], [1, 2], [0, 5]]), np.array([0.05, 1.5])
    expected = [
        sum(own / (own + i) for row in counts for i in range(row[k])) for k, own in enumerate(alpha)
    ]
    np.testing.assert_allclose(prior_draws(counts, alpha), expected)


def test_shares_of_alpha_become_the_most_likely_ones():
    """Against the likelihood of counts (Dirichlet-multinomial) on a grid of shares."""
    rng = np.random.default_rng(0)
    theta = rng.dirichlet([0.3, 0.2], size=200)
    counts = np.array([rng.multinomial(20, row) for row in theta])
    total = 0.5

    def log_likelihood(alpha):
        return (gammaln(counts + alpha) - gammaln(alpha)).sum()

    alpha = np.full(2, total / 2)
    for _ in range(200):
        alpha = share_out(total, prior_draws(counts, alpha), 1.0)
    assert alpha.sum() == pytest.approx(total)
    grid = np.linspace(0.01, 0.49, 481)
    best = grid[np.argmax([log_likelihood(np.array([a, total - a])) for a in grid])]
    assert alpha[0] == pytest.approx(best, abs=1e-3)
    assert alpha[0] > alpha[1]


@pytest.mark.parametrize("part", [-0.1, 1.0])
def test_a_part_that_leaves_nothing_for_small_topics_is_refused(part):
    with pytest.raises(ValueError, match=r"adapted_part must be from 0 to below 1; got"):
        LatentDirichlet(3, 12, 0.2, 0.1, adapted_part=part)


def adapted_fit(data, initial, adapted_part, shard_size=1024):
    model = LatentDirichlet(
        3, 12, 0.2, 0.1, update="sampled", adapted_part=adapted_part, n_threads=1
    )
    model.shard_size = shard_size
    options = {"batch_size": 200, "max_passes": 10, "final_elbo": False, "progress": False}
    options["learning_rate"] = RobbinsMonro(4.0, 0.7)
    return fit(model, data, initial=initial, **options).model.doc_topic_prior


def test_alpha_adapts_to_the_documents_and_keeps_its_sum():
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(3), np.full(4, 0.25))
    # The first topic is in most documents, the third in few but for all of their words.
    theta = np.vstack([np.tile([0.5, 0.5, 0.0], (700, 1)), np.tile([0.0, 0.0, 1.0], (100, 1))])
    theta[350:700] = [0.9, 0.1, 0.0]
    data = sparse.csr_matrix([rng.multinomial(40, row @ topics) for row in rng.permutation(theta)])
    initial = Topics(800.0 * topics.T + 0.1, 0.1)
    alpha = adapted_fit(data, initial, 0.9)
    assert alpha.sum() == pytest.approx(0.6)
    assert alpha[0] > alpha[1] > 2 * alpha[2]
    assert alpha.min() > 0.1 * 0.2
    half = adapted_fit(data, initial, 0.45)
    np.testing.assert_allclose(half - 0.2, 0.5 * (alpha - 0.2), atol=0.01)
    np.testing.assert_array_equal(adapted_fit(data, initial, 0.0), np.full(3, 0.2))
    np.testing.assert_allclose(adapted_fit(data, initial, 0.9, shard_size=64), alpha, rtol=0.02)


def test_a_user_posterior_without_blend_is_blended_by_arithmetic():
    one, other = Natural(a=[1.0]), Natural(a=[3.0])
    model, _ = model_and_topics()
    assert model.global_step(one, other, 0.5).a == pytest.approx(2.0)
    assert model.global_step(one, other, 1.0).a == pytest.approx(3.0)


def test_updates_without_a_bound_report_none():
    model, topics = model_and_topics(update="mean")
    algorithm = Algorithm(model, Annealing(), Constant(), Serial(), 8, 10)
    (batch,) = ArraySource(corpus()).sweep()
    step = algorithm.advance(algorithm.start(topics, np.random.default_rng(0)), batch)
    assert np.isnan(step.elbo)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.ones((2, V)), "must be a CSR matrix"),
        (sparse.csr_matrix(np.ones((2, V + 1))), "7 words, the model 6"),
        (sparse.csr_matrix(np.full((2, V), np.nan)), "documents must hold counts.*holds nan"),
        (sparse.csr_matrix(np.full((2, V), -1.0)), "documents must hold counts.*holds -1"),
    ],
)
def test_wrong_documents_are_named(data, message):
    model, _ = model_and_topics()
    with pytest.raises(ValueError, match=message):
        fit(model, data, progress=False)
