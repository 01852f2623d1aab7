"""Predictive densities of the factorial mixture at T = 1, the features integrated out under q(μ).

With few features they are exact sums over all activations; with many, mean-field lower bounds.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from tempering.models.base import Array
from tempering.models.factorial.enumeration import MAX_ENUMERATED, TABLE_SIZE, all_states
from tempering.models.factorial.mean_field import SettledActivations
from tempering.models.factorial_mixture import FactorialModel, FeatureExpectations


class Products(NamedTuple):
    """Inner products of data and features."""

    projections: Array  # x_n · m_k, [n, K]
    squares: Array  # |x_n|², [n]
    features: Array  # m_j · m_k, [K, K]


def log_density(model: FactorialModel, data: Array, expectations: FeatureExpectations) -> Array:
    """log E_q[p(x_n | μ)], [n], or its mean-field bound."""
    data, means, variances = np.asarray(data, float), expectations.means, expectations.variances
    squares = np.einsum("nd,nd->n", data, data)
    products = Products(data @ means.T, squares, means @ means.T)
    if model.n_features <= MAX_ENUMERATED:
        return _log_evidence(model, products, variances)
    offsets, couplings = model.interactions(products.features, variances)
    settled = model.settle(products.projections / model.noise_variance + offsets, couplings)
    return _expected_log_density(model, products, variances, settled) + (
        settled.activations @ model.log_odds
        + np.log1p(-model.activation_probability).sum()
        + settled.entropies
    )


def _expected_log_density(
    model: FactorialModel, products: Products, variances: Array, settled: SettledActivations
) -> Array:
    """E_q[log N(x_n | Σ_k z_nk μ_k, σ²·1)] over z and μ."""
    z, d = settled.activations, model.dimension
    lengths = np.diag(products.features)
    errors = products.squares - 2 * np.einsum("nk,nk->n", z, products.projections)
    errors += np.einsum("nj,jk,nk->n", z, products.features, z, optimize=True)
    errors += (z * (1 - z)) @ lengths + d * z @ variances
    peak = -d / 2 * np.log(2 * np.pi * model.noise_variance)
    return peak - errors / (2 * model.noise_variance)


def _log_evidence(model: FactorialModel, products: Products, variances: Array) -> Array:
    """log Σ_S p(S) N(x_n | S M, (σ² + Σ_k S_k v_k)·1)."""
    states, d = all_states(model.n_features), model.dimension
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
