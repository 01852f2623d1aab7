"""Predictive densities of the factorial mixture at T = 1, the features integrated out under q(μ).

With few features they are exact sums over all activations; with many, mean-field lower bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from tempering.models.base import Array
from tempering.models.factorial.enumeration import MAX_ENUMERATED, TABLE_SIZE, all_states
from tempering.models.factorial.mean_field import SettledActivations
from tempering.models.factorial_mixture import FactorialModel, FeatureExpectations


class Products(NamedTuple):
    """Inner products over some columns of the data."""

    projections: Array  # x_n · m_k, [n, K]
    squares: Array  # |x_n|², [n]
    features: Array  # m_j · m_k, [K, K]
    dimension: int

    @classmethod
    def over(cls, columns: Any, data: Array, means: Array) -> Products:
        """The products over these columns alone."""
        data, means = np.asarray(data, float)[:, columns], means[:, columns]
        squares = np.einsum("nd,nd->n", data, data)
        return cls(data @ means.T, squares, means @ means.T, data.shape[1])


def log_density(model: FactorialModel, data: Array, expectations: FeatureExpectations) -> Array:
    """log E_q[p(x_n | μ)], [n], or its mean-field bound."""
    everything = Products.over(slice(None), data, expectations.means)
    if model.n_features <= MAX_ENUMERATED:
        return _log_evidence(model, everything, expectations.variances)
    settled = _settle(model, everything, expectations.variances)
    return _expected_log_density(model, everything, expectations.variances, settled) + (
        settled.activations @ model.log_odds
        + np.log1p(-model.activation_probability).sum()
        + settled.entropies
    )


def log_hidden_density(
    model: FactorialModel,
    data: Array,
    expectations: FeatureExpectations,
    hidden: NDArray[np.bool_],
) -> Array:
    """log E_q[p(x_hidden | x_visible, μ)], [n], or its mean-field bound."""
    seen = Products.over(~hidden, data, expectations.means)
    if model.n_features <= MAX_ENUMERATED:
        everything = Products.over(slice(None), data, expectations.means)
        both = _log_evidence(model, everything, expectations.variances)
        return both - _log_evidence(model, seen, expectations.variances)
    settled = _settle(model, seen, expectations.variances)
    unseen = Products.over(hidden, data, expectations.means)
    return _expected_log_density(model, unseen, expectations.variances, settled)


def _settle(model: FactorialModel, products: Products, variances: Array) -> SettledActivations:
    """q(z_n) from these columns alone."""
    offsets, couplings = model.interactions(products.features, variances, products.dimension)
    return model.settle(products.projections / model.noise_variance + offsets, couplings)


def _expected_log_density(
    model: FactorialModel, products: Products, variances: Array, settled: SettledActivations
) -> Array:
    """E_q[log N(x_n | Σ_k z_nk μ_k, σ²·1)] over z and μ."""
    z, d = settled.activations, products.dimension
    lengths = np.diag(products.features)
    errors = products.squares - 2 * np.einsum("nk,nk->n", z, products.projections)
    errors += np.einsum("nj,jk,nk->n", z, products.features, z, optimize=True)
    errors += (z * (1 - z)) @ lengths + d * z @ variances
    peak = -d / 2 * np.log(2 * np.pi * model.noise_variance)
    return peak - errors / (2 * model.noise_variance)


def _log_evidence(model: FactorialModel, products: Products, variances: Array) -> Array:
    """log Σ_S p(S) N(x_n | S M, (σ² + Σ_k S_k v_k)·1)."""
    states, d = all_states(model.n_features), products.dimension
    spread = model.noise_variance + states @ variances
    log_prior = states @ model.log_odds + np.log1p(-model.activation_probability).sum()
    constant = log_prior - d / 2 * np.log(2 * np.pi * spread)
    lengths = np.einsum("sj,jk,sk->s", states, products.features, states, optimize=True)
    result = np.empty(len(products.squares))
    step = max(1, TABLE_SIZE // len(states))
    for rows in (slice(start, start + step) for start in range(0, len(result), step)):
        distances = products.squares[rows, None] + lengths
        distances -= 2 * products.projections[rows] @ states.T
        result[rows] = logsumexp(constant - 0.5 * distances / spread, axis=1)
    return result
