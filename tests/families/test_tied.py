"""Gaussians that share their precision matrix, against the family of one and by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from family_cases import parameter_statistics
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tempering.families import (
    FullGaussian,
    GaussianParameters,
    NormalWishart,
    TiedGaussian,
    TiedNormalWishart,
)

quick = settings(max_examples=10, deadline=None, derandomize=True)
# Monte Carlo: no shrinking, which would only search for the worst rounding.
few = settings(
    max_examples=4, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
FAMILY = TiedNormalWishart(2, 3)


def numbers(length, low, high):
    return st.lists(st.floats(low, high), min_size=length, max_size=length).map(np.array)


def build(means, log_kappa, excess, root):
    root = root.reshape(2, 2)
    scale = root @ root.T + 0.2 * np.eye(2)
    return FAMILY.natural(means.reshape(3, 2), np.exp(log_kappa), 1 + excess, scale)


naturals = st.builds(
    build, numbers(6, -3, 3), numbers(3, -1, 2), st.floats(1.0, 20.0), numbers(4, -2, 2)
)


def log_density(natural, parameters):
    """Of one draw, by SciPy."""
    mean, kappa, degrees, scale = FAMILY.standard(natural)
    precision = parameters.precision[0]
    total = stats.wishart.logpdf(precision, float(degrees), np.linalg.inv(scale))
    for k in range(3):
        covariance = np.linalg.inv(kappa[k] * precision)
        total += stats.multivariate_normal.logpdf(parameters.mean[k], mean[k], covariance)
    return total


def draw(natural, n, seed=0):
    return FAMILY.sample(natural, np.random.default_rng(seed), n)


@quick
@given(naturals)
def test_gradient_of_the_log_normalizer_is_the_expected_statistics(natural):
    steps = 1e-5 * np.eye(natural.size).reshape(-1, *natural.shape)
    slope = FAMILY.log_normalizer(natural + steps) - FAMILY.log_normalizer(natural - steps)
    expected = FAMILY.expected_statistics(natural)
    np.testing.assert_allclose(slope.reshape(natural.shape) / 2e-5, expected, rtol=1e-5, atol=1e-5)


@quick
@given(naturals, naturals)
def test_how_the_sums_are_spread_over_the_rows_changes_nothing(natural, other):
    moved = natural.copy()
    moved[0, 2:6] += 0.1
    moved[1, 2:6] -= 0.1
    moved[2, -1] += 0.3
    moved[0, -1] -= 0.3
    np.testing.assert_allclose(
        FAMILY.expected_statistics(moved), FAMILY.expected_statistics(natural), rtol=1e-6, atol=1e-9
    )
    divergence = pytest.approx(FAMILY.divergence(natural, other), abs=1e-9)
    assert FAMILY.divergence(moved, other) == divergence


@few
@given(naturals, naturals)
def test_divergence_is_the_expected_log_ratio_of_scipy_densities(q, p):
    parameters = draw(q, 100)
    several = [GaussianParameters(*(part[i] for part in parameters)) for i in range(100)]
    ratios = np.array([log_density(q, value) - log_density(p, value) for value in several])
    error = ratios.std() / np.sqrt(100)
    assert abs(ratios.mean() - FAMILY.divergence(q, p)) < 5 * error + 1e-9
    assert FAMILY.divergence(q, q) == pytest.approx(0, abs=1e-9)


@few
@given(naturals)
def test_samples_have_the_expected_statistics_and_share_their_precision(natural):
    parameters = draw(natural, 20_000)
    np.testing.assert_array_equal(parameters.precision[:, 0], parameters.precision[:, 2])
    statistics = parameter_statistics(FAMILY, parameters)
    error = statistics.std(0) / np.sqrt(20_000)
    expected = FAMILY.expected_statistics(natural)
    assert np.all(np.abs(statistics.mean(0) - expected) < 5 * error + 1e-9)


@quick
@given(naturals)
def test_point_is_the_mode_in_the_likelihoods_coordinates(natural):
    best = np.sum(parameter_statistics(FAMILY, FAMILY.point(natural)) * natural)
    others = parameter_statistics(FAMILY, draw(natural, 200))
    assert np.all((others * natural).sum((1, 2)) <= best + 1e-9 * (1 + abs(best)))


@quick
@given(naturals, numbers(10, -4, 4))
def test_posterior_is_prior_plus_statistics(prior, values):
    """prior × likelihood / posterior is the evidence, the same for every draw."""
    x, labels = values.reshape(5, 2), np.array([0, 1, 1, 2, 0])
    likelihood = TiedGaussian(2, 3)
    posterior = prior + np.eye(3)[labels].T @ likelihood.statistics(x)
    assert FAMILY.is_valid(posterior)
    evidence = FAMILY.log_normalizer(posterior) - FAMILY.log_normalizer(prior)
    evidence += likelihood.log_base_measure(x).sum()
    for seed in range(3):
        value = GaussianParameters(*(part[0] for part in draw(posterior, 1, seed)))
        logs = likelihood.log_likelihood(x, value)[labels, np.arange(5)]
        total = log_density(prior, value) + logs.sum() - log_density(posterior, value)
        assert total == pytest.approx(evidence, rel=1e-7, abs=1e-6)


def test_evidence_by_quadrature():
    """One dimension, two components: ∫ Gamma(τ) Π_k ∫ N(μ_k) Π_i N(x_i | μ_k, 1/τ) dμ_k dτ."""
    likelihood = TiedGaussian(1, 2)
    family = likelihood.conjugate
    prior = family.natural([[0.5], [-1.0]], [0.7, 2.0], 3.0, [[4.0]])
    groups = [np.array([0.2, 1.4, 2.0]), np.array([-3.0])]

    def given_precision(precision):
        value = stats.gamma.pdf(precision, 1.5, scale=0.5)
        for mean, kappa, x in zip([0.5, -1.0], [0.7, 2.0], groups):
            covariance = (np.eye(len(x)) + 1 / kappa) / precision
            value *= stats.multivariate_normal.pdf(x, np.full(len(x), mean), covariance)
        return value

    evidence = integrate.quad(given_precision, 0, 60, epsabs=0, epsrel=1e-10, limit=300)[0]
    sums = np.stack([likelihood.statistics(x[:, None]).sum(0) for x in groups])
    closed = family.log_normalizer(prior + sums) - family.log_normalizer(prior)
    closed += 4 * likelihood.log_base_measure([[0.0]])[0]
    assert np.log(evidence) == pytest.approx(closed, abs=1e-8)


def test_one_component_is_a_normal_wishart():
    one, tied = NormalWishart(2), TiedNormalWishart(2, 1)
    q = one.natural([1.0, 2.0], 1.5, 4.0, [[2.0, 0.3], [0.3, 1.0]])
    p = one.natural([0.0, 1.0], 0.5, 3.0, np.eye(2))
    assert tied.log_normalizer(q[None]) == pytest.approx(one.log_normalizer(q))
    assert tied.divergence(q[None], p[None]) == pytest.approx(one.divergence(q, p))
    np.testing.assert_allclose(tied.marginals(q[None])[0], q)


@pytest.mark.parametrize("s", [0.3, 0.7])
def test_expected_power_integral_by_monte_carlo(s):
    natural = FAMILY.natural(np.zeros((3, 2)), np.ones(3), 8.0, np.eye(2))
    likelihood = TiedGaussian(2, 3)
    values = np.exp(likelihood.log_power_integral(draw(natural, 20_000), s))
    expected = np.exp(likelihood.log_expected_power_integral(natural, s))
    assert expected.shape == (3,)
    assert np.all(np.abs(values.mean(0) - expected) < 5 * values.std(0) / np.sqrt(20_000))


def test_a_component_by_itself_predicts_students_t():
    natural = FAMILY.natural([[0, 0], [1, 2], [3, 4]], [1, 2, 3], 4.2, [[2.0, 0.3], [0.3, 1.0]])
    family, alone = TiedGaussian(2, 3).components_alone(natural)
    x = np.array([[0.0, 1.0], [3.0, -2.0]])
    logs = family.log_normalizer(alone[1] + FullGaussian(2).statistics(x))
    logs = logs - family.log_normalizer(alone[1]) + FullGaussian(2).log_base_measure(x)
    shape = np.array([[2.0, 0.3], [0.3, 1.0]]) * (1 + 1 / 2) / 3.2
    np.testing.assert_allclose(logs, stats.multivariate_t.logpdf(x, [1, 2], shape, 3.2))


def test_leading_axes_are_a_loop_and_improper_ones_are_found():
    good = FAMILY.natural([[0, 0], [1, 2], [3, 4]], [1, 2, 3], 4.2, [[2.0, 0.3], [0.3, 1.0]])
    batch = np.stack([good, 2 * good])
    np.testing.assert_allclose(FAMILY.log_normalizer(batch)[1], FAMILY.log_normalizer(2 * good))
    np.testing.assert_allclose(
        FAMILY.expected_statistics(batch)[1], FAMILY.expected_statistics(2 * good)
    )
    assert draw(batch, 5).precision.shape == (5, 2, 3, 2, 2)
    broken = np.stack([good] * 5)
    broken[0, 0, 0] = np.nan
    broken[1, 1, -2] = -1.0  # κ
    broken[2, :, -1] = 0.3  # ν = 0.9 ≤ D − 1
    broken[3, 0, 2:6] -= 10.0  # Ψ
    np.testing.assert_array_equal(FAMILY.is_valid(broken), [False] * 4 + [True])
