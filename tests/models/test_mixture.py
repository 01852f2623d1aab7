"""The mixture model against brute force on tiny problems."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import beta as beta_distribution

from problems import MIXTURES, bound, tiny_mixture
from tempering.families import (
    Bernoulli,
    Dirichlet,
    FixedWeights,
    FullGaussian,
    Poisson,
    StickBreaking,
    TiedGaussian,
)
from tempering.inference import ArraySource, evaluate_elbo, fit
from tempering.inference.executors import add_in_pairs
from tempering.models import LocalStep, Mixture, Natural


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("inverse_temperature", [1.0, 0.4, "per datum"])
def test_local_step_matches_enumeration_of_all_assignments(name, inverse_temperature):
    """q(z) over all K^N joint states factorises into what the local step gives."""
    model, data, posterior = tiny_mixture(name, n=5)
    n, k = data.shape[0], model.n_components
    s = np.linspace(0.2, 1.0, n) if inverse_temperature == "per datum" else inverse_temperature
    expected = model.expectations(posterior)
    log_joint = expected.log_weights + model.likelihood.expected_log_likelihood(
        data, expected.components
    )
    states = np.array(list(product(range(k), repeat=n)))
    energies = log_joint[np.arange(n), states]  # [states, n]
    log_q = (np.broadcast_to(s, n) * energies).sum(axis=1)
    log_q -= logsumexp(log_q)
    q = np.exp(log_q)
    marginals = np.stack([(q[:, None] * (states == j)).sum(axis=0) for j in range(k)], axis=1)

    local = model.local_step(data, expected, s)

    np.testing.assert_allclose(local.energies, q @ energies, rtol=1e-9)
    np.testing.assert_allclose(local.entropy, -(q @ log_q), rtol=1e-9, atol=1e-9)
    weighted = np.broadcast_to(s, n)[:, None] * marginals
    oracle = model.statistics(data, weighted)
    for part in oracle:
        np.testing.assert_allclose(local.statistics[part], oracle[part], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        local.tempered_energy, (np.broadcast_to(s, n) * (q @ energies)).sum(), rtol=1e-9
    )


@pytest.mark.parametrize("name", MIXTURES)
def test_one_component_gives_the_evidence(name):
    """With K = 1 nothing is latent but β, so one update makes the ELBO the log evidence."""
    model, data, _ = tiny_mixture(name, n=4, k=1)
    expected = model.expectations(model.prior())
    posterior = model.prior() + model.local_step(data, expected, 1.0).statistics
    local = model.local_step(data, model.expectations(posterior), 1.0)
    elbo = local.energy + local.entropy - model.divergence(posterior)
    family, likelihood = model.likelihood.conjugate, model.likelihood
    evidence = np.sum(likelihood.log_base_measure(data)) + float(
        np.sum(family.log_normalizer(posterior.components))
        - np.sum(family.log_normalizer(model.prior().components))
        # A truncated stick is shorter than 1, so even a single component has something to learn.
        + model.weights.log_normalizer(posterior.weights)
        - model.weights.log_normalizer(model.prior().weights)
    )
    assert elbo == pytest.approx(evidence, rel=1e-9)


def bernoulli_mixture():
    model = Mixture(Bernoulli(1), Dirichlet(2), [0.8, 1.3], [[1.5, 0.7], [0.6, 2.0]])
    data = np.array([[1], [1], [0], [1], [0]])
    posterior = Natural(weights=[2.1, 1.7], components=[[2.0, 1.1], [0.9, 1.6]])
    return model, data, posterior


def test_elbo_matches_quadrature_and_enumeration():
    """Every term of the ELBO by scipy's densities and quadrature, for a Bernoulli mixture."""
    model, data, posterior = bernoulli_mixture()
    assigned = model.assign(data, model.expectations(posterior), 0.6).probabilities

    def expect(function, a, b):
        density = beta_distribution(a, b).pdf
        return quad(lambda t: density(t) * function(t), 0, 1, epsabs=1e-12, limit=200)[0]

    alpha, prior = posterior.weights, model.prior()
    # Under a Dirichlet of two categories each weight has a beta marginal.
    log_weights = [expect(np.log, alpha[k], alpha.sum() - alpha[k]) for k in range(2)]
    log_success = [expect(np.log, *posterior.components[k]) for k in range(2)]
    log_failure = [expect(lambda t: np.log1p(-t), *posterior.components[k]) for k in range(2)]
    energy = sum(
        assigned[i, k] * (log_weights[k] + (log_success[k] if data[i, 0] else log_failure[k]))
        for i in range(len(data))
        for k in range(2)
    )
    entropy = -np.sum(assigned * np.log(assigned))

    def expected_log_ratio(one, other, *ab):
        return expect(lambda t: one.logpdf(t) - other.logpdf(t), *ab)

    # Two weights of a Dirichlet are t and 1 − t of a beta.
    pairs = [*zip(posterior.components, prior.components), (alpha, prior.weights)]
    divergence = sum(
        expected_log_ratio(beta_distribution(*ours), beta_distribution(*others), *ours)
        for ours, others in pairs
    )
    local = model.local_step(data, model.expectations(posterior), 0.6)
    assert local.energy == pytest.approx(energy, rel=1e-7)
    assert local.entropy == pytest.approx(entropy, rel=1e-9)
    assert model.divergence(posterior) == pytest.approx(divergence, rel=1e-7)
    assert bound(model, data, posterior, assigned, 1.0) == pytest.approx(
        energy + entropy - divergence, rel=1e-7
    )


def test_global_update_matches_the_normalised_product():
    """q*(β) ∝ p(β) exp{s E_q(z) log p(x, z | β)}, normalised by quadrature."""
    model, data, posterior = bernoulli_mixture()
    s = 0.6
    local = model.local_step(data, model.expectations(posterior), s)
    updated = model.prior() + local.statistics
    assigned = model.assign(data, model.expectations(posterior), s).probabilities

    for k in range(2):

        def unnormalised(t, k=k):
            log_likelihood = np.where(data[:, 0] == 1, np.log(t), np.log1p(-t))
            prior = beta_distribution(*model.prior().components[k]).pdf(t)
            return prior * np.exp(s * assigned[:, k] @ log_likelihood)

        total = quad(unnormalised, 0, 1, limit=200)[0]
        for t in (0.2, 0.5, 0.9):
            assert beta_distribution(*updated.components[k]).pdf(t) == pytest.approx(
                unnormalised(t) / total, rel=1e-6
            )


def test_elbo_is_below_the_exact_evidence():
    """The evidence by enumeration of all assignments, with conjugate marginals."""
    model, data, posterior = bernoulli_mixture()
    family, weights, prior = model.likelihood.conjugate, model.weights, model.prior()
    terms = []
    for state in product(range(2), repeat=len(data)):
        one_hot = np.eye(2)[list(state)]
        statistics = model.statistics(data, one_hot)
        terms.append(
            float(
                np.sum(
                    family.log_normalizer(prior.components + statistics.components)
                    - family.log_normalizer(prior.components)
                )
                + weights.log_normalizer(prior.weights + statistics.weights)
                - weights.log_normalizer(prior.weights)
            )
        )
    evidence = logsumexp(terms)
    for _ in range(100):
        local = model.local_step(data, model.expectations(posterior), 1.0)
        elbo = local.energy + local.entropy - model.divergence(posterior)
        assert elbo < evidence
        posterior = model.prior() + local.statistics
    assert evidence - elbo < 1.0


@pytest.mark.parametrize("name", MIXTURES)
def test_shards_add_up_to_the_whole(name):
    model, data, posterior = tiny_mixture(name, n=6)
    expected = model.expectations(posterior)
    s = np.linspace(0.3, 1.0, 6)
    whole = model.local_step(data, expected, s)
    parts = add_in_pairs(
        [model.local_step(data[rows], expected, s[rows]) for rows in (slice(0, 2), slice(2, 6))]
    )
    np.testing.assert_allclose(parts.energies, whole.energies, rtol=1e-12)
    np.testing.assert_array_equal(parts.inverse_temperature, s)
    assert parts.entropy == pytest.approx(whole.entropy)
    np.testing.assert_allclose(
        parts.statistics.components, whole.statistics.components, rtol=1e-10, atol=1e-12
    )


def test_a_start_from_a_sample_is_as_sure_as_all_data_make_it():
    model, _, _ = tiny_mixture("full")
    source = ArraySource(np.random.default_rng(0).normal(size=(25_000, 2)))
    posterior = model.initialize(source, np.random.default_rng(1))
    assert np.sum(posterior.weights - model.prior().weights) == pytest.approx(25_000)


def test_reweighting_needs_one_temperature():
    local = LocalStep(Natural(a=[2.0]), np.zeros(2), 0.0, 0.5)
    assert local.reweighted(1.0).statistics.a == pytest.approx(4.0)
    with pytest.raises(ValueError, match="temperatures of their own"):
        LocalStep(Natural(a=[2.0]), np.zeros(2), 0.0, np.ones(2)).reweighted(1.0)


def test_improper_priors_are_refused():
    with pytest.raises(ValueError, match="component_prior is not a proper Beta"):
        Mixture(Bernoulli(1), Dirichlet(2), [1.0, 1.0], [-1.0, 1.0])
    with pytest.raises(ValueError, match="weights_prior is not a proper Dirichlet"):
        Mixture(Bernoulli(1), Dirichlet(2), [0.0, 1.0], [1.0, 1.0])


def test_a_component_of_weight_zero_is_as_if_it_were_not_there():
    data = np.random.default_rng(0).poisson([[2.0], [20.0]], size=(2, 50)).reshape(-1, 1)
    without, with_one = (
        Mixture(Poisson(1), FixedWeights(weights), [], [1.0, 0.1])
        for weights in ([0.5, 0.5], [0.5, 0.5, 0.0])
    )
    posterior = without.prior() + without.statistics(data, np.repeat(np.eye(2), 50, axis=0))
    wider = posterior.replace(components=np.vstack([posterior.components, [1.0, 0.1]]))
    source = ArraySource(data)
    expected = evaluate_elbo(without, posterior, source)
    assert evaluate_elbo(with_one, wider, source) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(
        with_one.predictive(data, wider), without.predictive(data, posterior), rtol=1e-12
    )


def test_no_order_of_the_sticks_is_better_than_that_of_size():
    rng = np.random.default_rng(0)
    data = rng.poisson(rng.choice([1.0, 9.0, 40.0, 150.0], p=[0.1, 0.2, 0.3, 0.4], size=200))
    model = Mixture(Poisson(1), StickBreaking(5), np.repeat([1.0, 0.3], 5), [1.0, 0.1])
    model.sorts = False
    source = ArraySource(data[:, None])
    unsorted = fit(model, data[:, None], seed=1, tolerance=1e-9, progress=False).posterior
    counts = model.counts(unsorted)
    assert counts.sum() == pytest.approx(200)
    elbos = {}
    for order in map(list, permutations(range(5))):
        statistics = model.weights.statistics_from_counts(counts[order])
        moved = Natural(
            weights=model.prior().weights + statistics, components=unsorted.components[order]
        )
        elbos[tuple(order)] = evaluate_elbo(model, moved, source)
    in_order = evaluate_elbo(model, model.in_order_of_size(unsorted), source)
    assert in_order == pytest.approx(max(elbos.values()), abs=1e-3)
    assert in_order > elbos[0, 1, 2, 3, 4] + 1.0, "the start should not be in order already"


def test_components_with_priors_of_their_own_keep_their_places():
    own = Mixture(Poisson(1), StickBreaking(2), [1, 1, 1, 1], [[1.0, 1.0], [9.0, 1.0]])
    alike = Mixture(Poisson(1), StickBreaking(2), [1, 1, 1, 1], [1.0, 1.0])
    statistics = own.statistics(np.full((6, 1), 3.0), np.eye(2)[[0, 1, 1, 1, 1, 1]])
    for model, places in ((own, [0, 1]), (alike, [1, 0])):
        posterior = model.prior() + statistics
        revised = model.revise(posterior)
        np.testing.assert_array_equal(revised.components, posterior.components[places])


@pytest.mark.parametrize("kind", ["full", "tied"])
@pytest.mark.parametrize("tempered", [False, True])
def test_the_packed_step_is_that_of_the_statistics(kind, tempered, monkeypatch):
    """In blocks, from half of each symmetric matrix; against the step by whole statistics."""
    monkeypatch.setattr("tempering.models.mixture.CACHED", 700)
    rng, d, k = np.random.default_rng(0), 3, 4
    likelihood = FullGaussian(d) if kind == "full" else TiedGaussian(d, k)
    prior = likelihood.conjugate.natural(np.zeros(d), 0.1, d + 1.0, np.eye(d))
    prior = prior if kind == "full" else prior[0]
    model = Mixture(likelihood, Dirichlet(k), np.ones(k), prior)
    X, s = rng.normal(size=(300, d)), rng.uniform(0.2, 1.0, size=300) if tempered else 1.0
    posterior = model.prior() + model.statistics(X, rng.dirichlet(np.ones(k), size=300))
    expected = model.expectations(posterior)
    step, whole = model.local_step(X, expected, s), model.assign(X, expected, s)
    weighted = np.reshape(s, (-1, 1)) * whole.probabilities
    np.testing.assert_allclose(step.local, whole.probabilities, atol=1e-12)
    np.testing.assert_allclose(step.energies, whole.energies, rtol=1e-10)
    assert step.entropy == pytest.approx(whole.entropies.sum())
    for name, part in model.statistics(X, weighted).items():
        np.testing.assert_allclose(step.statistics[name], part, rtol=1e-9, atol=1e-9)
