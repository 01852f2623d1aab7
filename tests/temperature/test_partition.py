"""log C(s) against quadrature, exact sums, and its own error."""

from itertools import product
from math import lgamma

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

from problems import tiny_mixture
from reproduction.landscape import PRIOR_VARIANCE, WEIGHTS, two_gaussians
from tempering.families import Bernoulli, Dirichlet, IsotropicGaussian
from tempering.models import Mixture, UnsupportedTemperature
from tempering.temperature import log_partition

GRID = np.array([1.0, 0.7, 0.35, 0.1])


def trapezoid(values, points):
    """Spectrally accurate for smooth functions that vanish at both ends."""
    return np.sum(values, axis=-1) * (points[1] - points[0])


@pytest.mark.parametrize("s", GRID)
def test_closed_form_matches_quadrature(s):
    """C(s) = ∫ p(μ) Π_i Σ_z ∫ p(x_i, z | μ)^s dx_i dμ, by quadrature, for one and two data."""
    model, spread = two_gaussians(), np.sqrt(PRIOR_VARIANCE)
    means = np.linspace(-10 * spread, 10 * spread, 401)
    x = means[:, None] + np.linspace(-12, 12, 1001) / np.sqrt(s)
    tempered = norm.pdf(x, loc=means[:, None]) ** s
    prior = norm.pdf(means, scale=spread)
    # ∫ p(x, z = k | μ_k)^s dx, at each value of μ_k
    first, second = (w**s * trapezoid(tempered, x[0]) for w in WEIGHTS)

    def average(values):
        return trapezoid(prior * values, means)

    one = average(first) + average(second)
    # Two data share the means: the product stands inside the integral over both of them.
    two = average(first**2) + average(second**2) + 2 * average(first) * average(second)
    for n, integral in ((1, one), (2, two)):
        closed = log_partition(model, [s], n, method="closed-form").values[0]
        assert closed == pytest.approx(np.log(integral), abs=1e-9)


def bernoulli_mixture(k=2):
    return Mixture(Bernoulli(1), Dirichlet(k), np.full(k, 0.9), [1.2, 0.8])


def exact_log_partition(s, n):
    """Expand (Σ_k π_k^s (β_k^s + (1−β_k)^s))^n and take every expectation in closed form."""
    a, b, alpha = 1.2, 0.8, np.full(2, 0.9)
    terms = []
    for states in product(range(4), repeat=n):  # (component, outcome) of each datum
        components, outcomes = np.divmod(states, 2)
        log_moment = gammaln(alpha.sum()) - gammaln(alpha.sum() + s * n)
        for k in range(2):
            counts = np.bincount(outcomes[components == k], minlength=2)
            log_moment += gammaln(alpha[k] + s * counts.sum()) - gammaln(alpha[k])
            log_moment += lgamma(a + b) - lgamma(a) - lgamma(b)
            log_moment += lgamma(a + s * counts[1]) + lgamma(b + s * counts[0])
            log_moment -= lgamma(a + b + s * counts.sum())
        terms.append(log_moment)
    return logsumexp(terms)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_monte_carlo_is_right_within_its_own_error(n):
    estimate = log_partition(
        bernoulli_mixture(), GRID, n, method="monte-carlo", n_samples=20_000, rng=1
    )
    exact = np.array([exact_log_partition(s, n) for s in GRID])
    assert exact[0] == pytest.approx(0.0, abs=1e-12)
    assert np.all(np.abs(estimate.values - exact) <= 4 * estimate.spread + 1e-12)
    assert np.all(estimate.spread < 0.05)
    assert estimate.reliable


@pytest.mark.parametrize("s", [1.0, 0.95, 0.7])
@pytest.mark.slow
def test_the_spread_is_that_of_repeated_estimates(s):
    """Nearly nothing where all draws of the prior say the same, as they do near T = 1."""
    estimates = [
        log_partition(bernoulli_mixture(), [s], 3, method="monte-carlo", n_samples=400, rng=seed)
        for seed in range(200)
    ]
    spread = np.mean([estimate.spread for estimate in estimates])
    assert np.std([estimate.values for estimate in estimates]) == pytest.approx(
        spread, rel=0.2, abs=1e-8
    )


def test_monte_carlo_says_when_it_is_useless():
    """With many data a single draw of the prior decides the average."""
    estimate = log_partition(bernoulli_mixture(), GRID, 100_000, n_samples=100)
    assert estimate.method == "monte-carlo"
    assert estimate.effective_sample_size.min() < 3
    assert not estimate.reliable


@pytest.mark.parametrize("name", ["full", "diagonal", "bernoulli", "poisson"])
@pytest.mark.parametrize("method", ["monte-carlo", "map"])
def test_it_vanishes_at_temperature_one(name, method):
    model, _, _ = tiny_mixture(name)
    assert log_partition(model, [1.0], 7, method=method).values == pytest.approx(0.0, abs=1e-8)


def test_map_is_n_times_the_integral_at_the_prior_mode():
    model, n = bernoulli_mixture(), 50
    values = log_partition(model, GRID, n, method="map").values
    mode = 1.2 / 2.0
    oracle = n * np.log(2 * 0.5**GRID * (mode**GRID + (1 - mode) ** GRID))
    np.testing.assert_allclose(values, oracle, rtol=1e-10, atol=1e-12)


def test_learned_covariances_have_no_partition_function():
    """E|Σ|^{N(1−s)/2} under a vague prior is infinite: the estimate grows with the draws."""
    model, _, _ = tiny_mixture("full")
    few, many = (
        log_partition(model, [0.5], 1000, method="monte-carlo", n_samples=n, rng=0)
        for n in (100, 100_000)
    )
    assert many.values[0] > few.values[0] + 100
    assert many.effective_sample_size[0] < 3


def test_closed_form_is_refused_where_there_is_none():
    learned_weights = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 1.0])
    for model in (bernoulli_mixture(), learned_weights):
        with pytest.raises(UnsupportedTemperature, match="log_partition"):
            log_partition(model, GRID, 3, method="closed-form")


@pytest.mark.parametrize(
    ("grid", "method", "message"),
    [
        ([0.0, 1.0], "auto", r"array of values in \(0, 1\]"),
        ([], "auto", r"array of values in \(0, 1\]"),
        ([1.0], "guess", "method must be"),
    ],
)
def test_bad_arguments(grid, method, message):
    with pytest.raises(ValueError, match=message):
        log_partition(bernoulli_mixture(), grid, 3, method=method)
