"""What must hold for every exponential family, checked on all of them."""

from __future__ import annotations

import numpy as np
import pytest
from family_cases import FAMILIES, MODERATE, log_density, parameter_statistics
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import stats

from tempering.families import (
    Beta,
    Choice,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    MultivariateNormalGamma,
    Normal,
    NormalGamma,
    NormalWishart,
    SphericalNormalGamma,
    StickBreaking,
    Wishart,
)

EVERY = pytest.mark.parametrize("name", FAMILIES)
DENSITIES = pytest.mark.parametrize("name", [name for name in FAMILIES if name != "FixedWeights"])
quick = settings(max_examples=10, deadline=None, derandomize=True)
# Monte Carlo: no shrinking, which would only search for the worst rounding.
few = settings(
    max_examples=5, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)


def draws(family, natural, n, seed=0):
    return family.sample(natural, np.random.default_rng(seed), n)


def assert_mean(values, expected, n_errors=5.0):
    """The mean over the first axis is the expected one, within standard errors."""
    error = values.std(0, ddof=1) / np.sqrt(len(values))
    np.testing.assert_array_less(
        np.abs(values.mean(0) - expected), n_errors * error + 1e-12 * (1 + np.abs(expected))
    )


@EVERY
@quick
@given(data=st.data())
def test_gradient_of_the_log_normalizer_is_the_expected_statistics(name, data):
    family, naturals = FAMILIES[name]
    start, end = data.draw(naturals), data.draw(naturals)
    # The natural parameter space is convex: every point between the two is proper.
    middle, direction = (start + end) / 2, (end - start) / 2
    step = 0.02
    offsets = step * np.arange(1, 5)[:, None]
    odd = family.log_normalizer(middle + offsets * direction)
    odd = odd - family.log_normalizer(middle - offsets * direction)
    slope = np.dot([4 / 5, -1 / 5, 4 / 105, -1 / 280], odd) / step
    expected = np.sum(family.expected_statistics(middle) * direction)
    assert slope == pytest.approx(expected, rel=1e-8, abs=1e-8)


@quick
@given(data=st.data())
def test_gradient_of_the_normal_wishart_in_each_entry_of_the_matrix(data):
    # Also in directions that are not symmetric, which two natural parameters never span.
    family, naturals = FAMILIES["NormalWishart3"]
    natural = data.draw(naturals)
    steps = 1e-5 * np.eye(family.size)
    slope = family.log_normalizer(natural + steps) - family.log_normalizer(natural - steps)
    np.testing.assert_allclose(
        slope / 2e-5, family.expected_statistics(natural), rtol=1e-5, atol=1e-5
    )


@EVERY
@quick
@given(data=st.data())
def test_divergence_is_a_divergence(name, data):
    family, naturals = FAMILIES[name]
    q, p = data.draw(naturals), data.draw(naturals)
    scale = 1 + np.abs(q * family.expected_statistics(q)).sum()
    scale += np.abs(p * family.expected_statistics(q)).sum()
    assert family.divergence(q, p) >= -1e-12 * scale
    assert family.divergence(q, q) == pytest.approx(0, abs=1e-12 * scale)
    if np.abs(q - p).sum() > 0.1:
        assert family.divergence(q, p) > 1e-8


@DENSITIES
@few
@given(data=st.data())
def test_divergence_is_the_expected_log_ratio_of_scipy_densities(name, data):
    family, naturals = MODERATE[name]
    q, p = data.draw(naturals), data.draw(naturals)
    n = 200 if isinstance(family, NormalWishart) else 2000  # SciPy takes these one by one
    parameters = draws(family, q, n)
    ratios = log_density(family, q, parameters) - log_density(family, p, parameters)
    assert ratios.shape == (n,)
    assert_mean(ratios, family.divergence(q, p))


@DENSITIES
@quick
@given(data=st.data(), weight=st.floats(0.1, 1.0))
def test_divergence_with_a_tempered_prior(name, data, weight):
    """KL to p^w, unnormalised: w KL(q ‖ p) − (1 − w) H(q), where H is relative to h dβ."""
    family, naturals = FAMILIES[name]
    q, p = data.draw(naturals), data.draw(naturals)
    entropy = family.log_normalizer(q) - np.sum(q * family.expected_statistics(q))
    expected = weight * family.divergence(q, p) - (1 - weight) * entropy
    assert family.divergence(q, p, weight) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@DENSITIES
@quick
@given(data=st.data())
def test_entropy_is_scipys(name, data):
    """a(η) − η·E[t] − E[log h] is the differential entropy."""
    family, naturals = FAMILIES[name]
    natural = data.draw(naturals)
    statistics = family.expected_statistics(natural)
    match family:
        case Dirichlet():
            entropy, log_h = stats.dirichlet.entropy(natural), -statistics.sum()
        case Beta() | StickBreaking():
            entropy = stats.beta.entropy(*family.standard(natural)).sum()
            log_h = -statistics.sum()
        case Gamma():
            shape, rate = family.standard(natural)
            entropy = stats.gamma.entropy(shape, scale=1 / rate).sum()
            log_h = -statistics[: family.dimension].sum()
        case Normal():
            _, variance = family.standard(natural)
            entropy, log_h = family.dimension * stats.norm.entropy(0, np.sqrt(variance)), 0.0
        case NormalGamma():
            _, kappa, shape, rate = family.standard(natural)
            log_precision = 2 * statistics[-family.dimension :]
            given_precision = 0.5 * (np.log(2 * np.pi * np.e / kappa) - log_precision)
            entropy = (stats.gamma.entropy(shape, scale=1 / rate) + given_precision).sum()
            log_h = -0.5 * log_precision.sum()
        case SphericalNormalGamma():
            _, kappa, shape, rate = family.standard(natural)
            d, log_precision = family.dimension, 2 / family.dimension * statistics[-1]
            given_precision = d / 2 * (np.log(2 * np.pi * np.e / kappa) - log_precision)
            entropy = stats.gamma.entropy(shape, scale=1 / rate) + given_precision
            log_h = (d / 2 - 1) * log_precision
        case MultivariateNormalGamma():
            _, matrix, shape, rate = family.standard(natural)
            d, log_precision = family.dimension, 2 * statistics[-1]
            given_precision = stats.multivariate_normal.entropy(cov=np.linalg.inv(matrix))
            entropy = stats.gamma.entropy(shape, scale=1 / rate) + given_precision
            entropy -= d / 2 * log_precision
            log_h = (d / 2 - 1) * log_precision
        case MultivariateNormal():
            _, covariance = family.standard(natural)
            entropy, log_h = stats.multivariate_normal.entropy(cov=covariance), 0.0
        case Wishart():
            degrees, scale = family.standard(natural)
            entropy = stats.wishart.entropy(float(degrees), np.linalg.inv(scale))
            log_h = -(family.dimension + 1) * statistics[-1]
        case NormalWishart():
            _, kappa, degrees, scale = family.standard(natural)
            d, log_precision = family.dimension, 2 * statistics[-1]
            given_precision = 0.5 * (d * np.log(2 * np.pi * np.e / kappa) - log_precision)
            wishart = stats.wishart.entropy(float(degrees), np.linalg.inv(scale))
            entropy, log_h = wishart + given_precision, -0.5 * d * log_precision
        case _:
            raise AssertionError(f"no case for {name}")
    ours = family.log_normalizer(natural) - np.sum(natural * statistics) - log_h
    assert ours == pytest.approx(float(entropy), rel=1e-7, abs=1e-7)


@EVERY
@few
@given(data=st.data())
def test_samples_have_the_expected_statistics(name, data):
    family, naturals = MODERATE[name]
    natural = data.draw(naturals)
    statistics = parameter_statistics(family, draws(family, natural, 20_000))
    assert statistics.shape == (20_000, family.size)
    assert_mean(statistics, family.expected_statistics(natural))


@pytest.mark.parametrize("name", [n for n in FAMILIES if hasattr(FAMILIES[n][0], "natural")])
@quick
@given(data=st.data())
def test_usual_parameters_and_back(name, data):
    family, naturals = FAMILIES[name]
    natural = data.draw(naturals)
    again = family.natural(*family.standard(natural))
    np.testing.assert_allclose(again, natural, rtol=1e-12, atol=1e-12)
    batch = np.stack([natural, again])[:, None]
    np.testing.assert_allclose(family.natural(*family.standard(batch)), batch, atol=1e-12)


def test_usual_parameters_may_be_numbers():
    np.testing.assert_array_equal(Beta(2).natural(1, 3), [1, 1, 3, 3])
    np.testing.assert_array_equal(Gamma(2).natural([1, 2], 3), [1, 2, 3, 3])
    np.testing.assert_array_equal(Normal(2).natural(3.0, 0.5), [6, 6, 2])
    np.testing.assert_array_equal(NormalGamma(2).natural(1, 2, 3, 4), np.repeat([2, 10, 2, 6], 2))
    np.testing.assert_array_equal(
        NormalWishart(2).natural([1, 2], 3, 4, np.eye(2)), [3, 6, 4, 6, 6, 13, 3, 4]
    )


@EVERY
@few
@given(data=st.data())
def test_leading_axes_are_a_loop(name, data):
    family, naturals = FAMILIES[name]
    batch = np.array([[data.draw(naturals) for _ in range(3)] for _ in range(2)])
    prior = data.draw(naturals)
    methods = {
        "log_normalizer": family.log_normalizer,
        "expected_statistics": family.expected_statistics,
        "is_valid": family.is_valid,
        "divergence": lambda natural: family.divergence(natural, prior),
        "point": lambda natural: parameter_statistics(family, family.point(natural)),
    }
    for method, call in methods.items():
        together = call(batch)
        assert np.shape(together)[:2] == (2, 3), method
        for i, j in np.ndindex(2, 3):
            np.testing.assert_allclose(together[i, j], call(batch[i, j]), rtol=1e-10, atol=1e-10)
    sample = parameter_statistics(family, draws(family, batch, 5))
    assert sample.shape == (5, 2, 3, family.size)


@EVERY
@few
@given(data=st.data())
def test_samples_of_a_batch_belong_to_their_own_row(name, data):
    family, naturals = MODERATE[name]
    batch = np.array([data.draw(naturals) for _ in range(2)])
    statistics = parameter_statistics(family, draws(family, batch, 5000, seed=1))
    assert_mean(statistics, family.expected_statistics(batch))


@DENSITIES
@quick
@given(data=st.data())
def test_point_is_the_mode_in_the_likelihoods_coordinates(name, data):
    """η · t(β), the density without h, is largest there among the draws."""
    family, naturals = MODERATE[name]
    natural = data.draw(naturals)
    best = np.sum(parameter_statistics(family, family.point(natural)) * natural)
    others = parameter_statistics(family, draws(family, natural, 200)) @ natural
    assert np.all(others <= best + 1e-9 * (1 + abs(best)))


@DENSITIES
@quick
@given(data=st.data())
def test_improper_natural_parameters_are_found(name, data):
    family, naturals = FAMILIES[name]
    natural = data.draw(naturals)
    assert family.is_valid(natural)
    broken = np.stack([natural] * 4)
    broken[0, 0] = np.nan
    broken[1, -1] = np.inf
    broken[2, -1] = -1.0
    np.testing.assert_array_equal(family.is_valid(broken), [False, False, False, True])


def test_improper_scale_and_degrees_of_freedom():
    family = NormalWishart(2)
    assert family.is_valid(family.natural([1, 1], 1, 1.01, np.eye(2)))
    assert not family.is_valid(family.natural([1, 1], 1, 0.99, np.eye(2)))
    assert not family.is_valid(family.natural([1, 1], 1, 3, [[1, 2], [2, 1]]))
    assert not family.is_valid(family.natural([1, 1], -1, 3, np.eye(2)))
    assert not NormalGamma(1).is_valid(NormalGamma(1).natural(1, 1, 1, -0.1))


def test_one_dimension_is_a_sphere():
    one, sphere = NormalGamma(1), SphericalNormalGamma(1)
    q, p = one.natural(0.7, 1.5, 2.5, 0.4), one.natural(-0.2, 0.5, 1.5, 3.0)
    np.testing.assert_allclose(sphere.natural([0.7], 1.5, 2.5, 0.4), q)
    np.testing.assert_allclose(sphere.expected_statistics(q), one.expected_statistics(q))
    assert sphere.divergence(q, p) == pytest.approx(one.divergence(q, p))


def test_one_coefficient_is_a_mean():
    """Of a column of ones; the natural parameters are the same numbers in another order."""
    one, line = NormalGamma(1), MultivariateNormalGamma(1)
    q, p = one.natural(0.7, 1.5, 2.5, 0.4), one.natural(-0.2, 0.5, 1.5, 3.0)
    order = [0, 2, 1, 3]
    np.testing.assert_allclose(line.natural([0.7], [[1.5]], 2.5, 0.4), q[order])
    statistics = one.expected_statistics(q)[order]
    np.testing.assert_allclose(line.expected_statistics(q[order]), statistics)
    assert line.divergence(q[order], p[order]) == pytest.approx(one.divergence(q, p))


def test_an_improper_matrix_of_coefficients_is_found():
    family = MultivariateNormalGamma(2)
    assert not family.is_valid(family.natural([1, 1], [[1, 2], [2, 1]], 1, 1))
    assert not family.is_valid(family.natural([1, 1], np.eye(2), 1, -0.1))
    assert not family.is_valid(family.natural([1, 1], np.eye(2), -0.1, 1))


def test_a_choice_has_the_probabilities_of_its_values():
    family = Choice(3)
    natural = 2.5 + np.log([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]])  # up to a constant
    probabilities = np.exp(natural - 2.5)
    np.testing.assert_allclose(family.standard(natural)[0], probabilities)
    assert_mean(draws(family, natural, 20_000), probabilities)
    np.testing.assert_array_equal(family.point(natural), [[0, 1, 0], [1, 0, 0]])
    q, p = probabilities
    assert family.divergence(*natural) == pytest.approx(np.sum(q * np.log(q / p)))
    slopes = family.log_normalizer(natural[0] + 1e-6 * np.eye(3)) - family.log_normalizer(
        natural[0]
    )
    np.testing.assert_allclose(slopes / 1e-6, q, rtol=1e-5)
    np.testing.assert_array_equal(family.is_valid([[0.0, -50.0], [0.0, -np.inf]]), [True, False])


def test_a_linear_map_of_a_normal_vector_is_learned():
    """x = Aμ + noise: the statistics that the docstring names, against the normal equations."""
    rng = np.random.default_rng(0)
    a, noise = rng.normal(size=(50, 2)), 0.3
    x = a @ [1.0, -2.0] + noise * rng.normal(size=50)
    family = MultivariateNormal(2)
    added = np.r_[a.T @ x, (a.T @ a).ravel()] / noise**2
    mean, covariance = family.standard(family.natural(np.zeros(2), np.eye(2)) + added)
    precision = np.eye(2) + a.T @ a / noise**2
    np.testing.assert_allclose(covariance, np.linalg.inv(precision))
    np.testing.assert_allclose(mean, np.linalg.solve(precision, a.T @ x / noise**2))


def test_small_concentrations_do_not_underflow_in_logarithms():
    rng = np.random.default_rng(0)
    logs = Dirichlet(3).sample_log(np.full(3, 1e-4), rng, 20_000)
    assert np.isfinite(logs).all()
    assert logs.min() < -1000  # β itself would be 0
    assert_mean(logs, Dirichlet(3).expected_statistics(np.full(3, 1e-4)))
    np.testing.assert_allclose(np.exp(logs).sum(-1), 1)
    both = np.concatenate(Beta(1).sample_log([1e-3, 1e-3], rng, 20_000), axis=-1)
    assert np.isfinite(both).all()
    assert_mean(both, Beta(1).expected_statistics([1e-3, 1e-3]))


def test_draws_depend_on_the_generator_alone():
    for family, _ in FAMILIES.values():
        natural = np.ones(family.size) if not isinstance(family, NormalWishart) else None
        if isinstance(family, NormalGamma | SphericalNormalGamma):
            natural = family.natural(np.zeros(family.dimension), 1, 1, 1)
        if isinstance(family, MultivariateNormalGamma):
            natural = family.natural(np.zeros(2), np.eye(2), 1, 1)
        if isinstance(family, MultivariateNormal):
            natural = family.natural(np.zeros(2), np.eye(2))
        if isinstance(family, Wishart):
            natural = family.natural(5, np.eye(2))
        if natural is None:
            natural = family.natural(np.zeros(family.dimension), 1, 5, np.eye(family.dimension))
        first, second = (
            parameter_statistics(family, draws(family, natural, 3, seed=7)) for _ in range(2)
        )
        np.testing.assert_array_equal(first, second)
