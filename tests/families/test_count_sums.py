"""The sums over all counts, against sums in extended precision and known limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from tempering.families.base import log_rising, stirling_error
from tempering.families.poisson import log_expected_poisson_power_sum, log_poisson_power_sum


def brute(rate: float, s: float) -> float:
    """log Σ_x Pois(x | λ)^s by recurrence from the mode, in extended precision."""
    low = max(0, int(rate - 12 * np.sqrt(rate / s) - 10))
    high = int(rate + 40 * np.sqrt(rate / s) + 60 / s + 200)
    x = np.arange(low + 1, high, dtype=np.longdouble)
    logs = np.concatenate([[0], np.cumsum(np.log(np.longdouble(rate)) - np.log(x))])
    logs = logs - logs[int(rate) - low]
    logs = logs - np.log(np.exp(logs).sum())
    return float(np.log(np.exp(s * logs).sum()))


# Both sides of the change between the two methods, at λ s = 40.
@pytest.mark.parametrize("rate", [1e-8, 1e-3, 0.3, 1, 7, 39, 41, 79, 81, 399, 401, 3e3, 1e5])
@pytest.mark.parametrize("s", [0.02, 0.1, 0.5, 0.99])
def test_poisson_power_sum_to_double_precision(rate, s):
    assert log_poisson_power_sum(rate, s) == pytest.approx(brute(rate, s), rel=1e-13, abs=1e-13)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(log_rate=st.floats(-5, np.log(1e4)), s=st.floats(0.05, 1))
def test_poisson_power_sum_anywhere(log_rate, s):
    rate = float(np.exp(log_rate))
    assert log_poisson_power_sum(rate, s) == pytest.approx(brute(rate, s), rel=1e-13, abs=1e-13)


def test_poisson_power_sum_limits():
    assert log_poisson_power_sum(0.0, 0.3) == 0
    assert np.isnan(log_poisson_power_sum(np.nan, 0.3))
    np.testing.assert_array_equal(log_poisson_power_sum([0, 1e-300, 1, 1e5, 1e12], 1.0), 0)
    # For large λ that of a Gaussian, up to terms in 1/λ.
    rate, s = 1e9, 0.25
    gauss = (1 - s) / 2 * np.log(2 * np.pi * rate) - np.log(s) / 2
    assert log_poisson_power_sum(rate, s) == pytest.approx(gauss, abs=2e-9)
    # Cold to hot it only grows, also at temperatures of a million.
    s = np.geomspace(1e-6, 1, 60)
    assert np.all(np.diff(log_poisson_power_sum(3.0, s)) < 0)
    # Many at once, over several chunks, is one at a time.
    rates = np.geomspace(1e-3, 1e5, 20_000)
    together = log_poisson_power_sum(rates, 0.4)
    for index in (0, 8191, 8192, 12_345, 19_999):
        assert together[index] == pytest.approx(log_poisson_power_sum(rates[index], 0.4), abs=1e-14)


# Relative variance 1/a + 1/(λ s) on both sides of 1/40.
@pytest.mark.parametrize("shape", [1e-3, 0.4, 5.0, 39.0, 41.0, 500.0])
@pytest.mark.parametrize("mean", [1e-3, 1.0, 30.0, 500.0])
@pytest.mark.parametrize("s", [0.1, 0.5, 0.9])
def test_expected_poisson_power_sum(shape, mean, s):
    rate = max(shape / mean, 1e-3)
    x = np.arange(100_000.0)
    logs = gammaln(shape + s * x) - gammaln(shape) - shape * np.log1p(s / rate)
    logs = logs - s * x * np.log(rate + s) - s * gammaln(x + 1)
    ours = log_expected_poisson_power_sum(shape, rate, s)
    assert ours == pytest.approx(logsumexp(logs), abs=1e-10)


def test_expected_poisson_power_sum_limits():
    # A gamma of vanishing variance is its mean.
    for mean in (0.5, 100.0, 1e5):
        ours = log_expected_poisson_power_sum(1e14 * mean, 1e14, 0.3)
        assert ours == pytest.approx(log_poisson_power_sum(mean, 0.3), abs=1e-12)
    # At s → 1 it tends to 0, from both methods and over fourteen orders of magnitude.
    shapes, rates = np.meshgrid(np.geomspace(1e-3, 1e4, 8), np.geomspace(1e-10, 1e4, 8))
    ours = log_expected_poisson_power_sum(shapes, rates, 1 - 1e-14)
    np.testing.assert_allclose(ours, 0, atol=1e-11)
    np.testing.assert_array_equal(log_expected_poisson_power_sum(shapes, rates, 1.0), 0)


def test_log_rising_and_stirling_error():
    x = np.array([0.01, 0.5, 3.0, 15.9, 16.1, 100.0])
    np.testing.assert_allclose(log_rising(x, 1.0), np.log(x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(log_rising(x, 2.0), np.log(x * (x + 1)), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(log_rising(x, 0.3), gammaln(x + 0.3) - gammaln(x), atol=1e-12)
    assert log_rising(1e12, 0.5) == pytest.approx(0.5 * np.log(1e12), rel=1e-13)
    np.testing.assert_array_equal(log_rising([0.2, 0.3], [-0.2, -0.5]), np.inf)
    known = gammaln(x) - ((x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi))
    np.testing.assert_allclose(stirling_error(x), known, atol=1e-13)
