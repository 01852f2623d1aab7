"""The interface of mixing weights: Dirichlet, stick-breaking and fixed."""

from __future__ import annotations

import numpy as np
import pytest
from family_cases import positives
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.mixture import BayesianGaussianMixture

from tempering.families import Dirichlet, FixedWeights, StickBreaking

WEIGHTS = {
    "Dirichlet": (Dirichlet(3), positives(3, 0.3, 20.0)),
    "StickBreaking": (StickBreaking(3), positives(6, 0.3, 20.0)),
    "FixedWeights": (FixedWeights([0.2, 0.5, 0.3]), st.just(np.empty(0))),
}
EVERY = pytest.mark.parametrize("name", WEIGHTS)
quick = settings(max_examples=10, deadline=None, derandomize=True)
# Monte Carlo: no shrinking, which would only search for the worst rounding.
few = settings(
    max_examples=4, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)


@EVERY
@few
@given(data=st.data())
def test_expectations_are_those_of_the_draws(name, data):
    weights, naturals = WEIGHTS[name]
    natural = data.draw(naturals)
    logs = weights.sample_log_weights(natural, np.random.default_rng(0), 20_000)
    assert logs.shape == (20_000, 3)
    values = np.exp(logs)
    for draws, expected in (
        (logs, weights.expected_log_weights(natural)),
        (values, weights.mean_weights(natural)),
        (values**0.4, np.exp(weights.log_moment(natural, 0.4))),
    ):
        error = 5 * draws.std(0) / np.sqrt(20_000) + 1e-12
        assert np.all(np.abs(draws.mean(0) - expected) < error)
    np.testing.assert_array_equal(
        values, np.exp(weights.sample_log_weights(natural, np.random.default_rng(0), 20_000))
    )
    assert np.all(values.sum(-1) <= 1 + 1e-12)


@EVERY
@quick
@given(data=st.data())
def test_counts_enter_as_statistics(name, data):
    """Σ_k N_k E[log π_k] = statistics · E[t(β)] (for fixed weights the latter is empty)."""
    weights, naturals = WEIGHTS[name]
    natural, counts = data.draw(naturals), data.draw(positives(3))
    statistics = weights.statistics_from_counts(counts)
    assert statistics.shape == (weights.size,)
    if name != "FixedWeights":
        ours = np.sum(statistics * weights.expected_statistics(natural))
        expected = np.sum(counts * weights.expected_log_weights(natural))
        assert ours == pytest.approx(expected, rel=1e-10)
    batch = weights.statistics_from_counts(np.stack([counts, 2 * counts])[:, None])
    np.testing.assert_allclose(batch[1, 0], 2 * statistics)


@EVERY
@quick
@given(data=st.data())
def test_moments_at_zero_and_one_and_shapes(name, data):
    weights, naturals = WEIGHTS[name]
    natural = data.draw(naturals)
    np.testing.assert_allclose(weights.log_moment(natural, 0.0), 0, atol=1e-12)
    np.testing.assert_allclose(
        weights.log_moment(natural, 1.0), np.log(weights.mean_weights(natural)), atol=1e-10
    )
    batch = np.stack([np.stack([natural] * 4)] * 2)
    s = np.array([[0.2, 0.4, 0.9]])
    assert weights.log_moment(batch, s).shape == (2, 4, 1, 3, 3)
    assert weights.expected_log_weights(batch).shape == (2, 4, 3)
    assert weights.mean_weights(batch).shape == (2, 4, 3)
    rng = np.random.default_rng(0)
    assert np.exp(weights.sample_log_weights(batch, rng, 5)).shape == (5, 2, 4, 3)
    # d/ds log E[π^s] at s = 0 is E[log π].
    slope = (weights.log_moment(natural, 1e-5) - weights.log_moment(natural, -1e-5)) / 2e-5
    np.testing.assert_allclose(slope, weights.expected_log_weights(natural), rtol=1e-5, atol=1e-5)


def test_moments_of_large_concentrations_keep_their_digits():
    # E[β_v^s] of a symmetric Dirichlet tends to V^{−s} exp{−s(1−s)(V−1)/(2A)}.
    total, s = 1e9, 0.3
    ours = Dirichlet(2).log_moment(np.full(2, total / 2), s)
    expected = -s * np.log(2) - s * (1 - s) / (2 * total)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", ["dirichlet_process", "dirichlet_distribution"])
def test_same_as_scikit_learn(kind):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(mean, 1.0, (60, 2)) for mean in (-4, 0, 5)])
    mixture = BayesianGaussianMixture(
        n_components=3,
        weight_concentration_prior_type=kind,
        weight_concentration_prior=0.7,
        random_state=0,
    ).fit(x)
    if kind == "dirichlet_process":
        weights = StickBreaking(3)
        natural = weights.natural(*mixture.weight_concentration_)
    else:
        weights, natural = Dirichlet(3), np.asarray(mixture.weight_concentration_)
    np.testing.assert_allclose(
        weights.expected_log_weights(natural), mixture._estimate_log_weights()
    )
    mean = weights.mean_weights(natural)
    np.testing.assert_allclose(mean / mean.sum(), mixture.weights_)
    counts = np.array([10.0, 3.0, 5.0])
    mixture._estimate_weights(counts)
    prior = weights.natural(1.0, 0.7) if kind == "dirichlet_process" else np.full(3, 0.7)
    np.testing.assert_allclose(
        prior + weights.statistics_from_counts(counts), np.ravel(mixture.weight_concentration_)
    )


def test_fixed_weights_are_checked_and_have_no_divergence():
    weights = FixedWeights([0.0, 1.0])
    assert weights.divergence(np.empty((2, 0)), np.empty(0)).shape == (2,)
    np.testing.assert_array_equal(weights.divergence(np.empty((2, 0)), np.empty(0)), 0)
    np.testing.assert_array_equal(weights.expected_log_weights(np.empty(0)), [-np.inf, 0])
    for bad, message in (
        ([0.5, 0.6], "sum to 1"),
        ([-0.5, 1.5], "not negative"),
        ([np.nan, 1.0], "finite"),
        ([[1.0]], "vector"),
        ([], "vector"),
    ):
        with pytest.raises(ValueError, match=message):
            FixedWeights(bad)
