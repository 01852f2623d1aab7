"""Learning the Dirichlet priors: the concentration that makes given mean logarithms most likely."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, polygamma

from tempering.models.base import Array

#: Priors are kept within this range; below it float32 could not hold what it does to a document.
SMALLEST, LARGEST = 1e-4, 1e3


def inverse_digamma(y: Array, n_steps: int = 5) -> Array:
    """x with ψ(x) = y, by Newton's method from Minka's start."""
    small = -1.0 / (np.minimum(y, -2.22) - digamma(1.0))
    x = np.where(y >= -2.22, np.exp(y) + 0.5, small)
    for _ in range(n_steps):
        x = x - (digamma(x) - y) / polygamma(1, x)
    return x


def fit_concentration(mean_log: Array, start: Array, n_steps: int = 10) -> Array:
    """α with ψ(α_k) − ψ(Σ_k α_k) = E log θ_k, by Minka's fixed point (2000), each step an ascent.

    Parameters
    ----------
    mean_log : array [K]
        Mean of E log θ_dk over documents.
    start : array [K]
        Where to begin.
    n_steps : int
        Steps; the next batch goes on from where they end.
    """
    alpha = np.asarray(start, float)
    for _ in range(n_steps):
        alpha = np.clip(inverse_digamma(mean_log + digamma(alpha.sum())), SMALLEST, LARGEST)
    return alpha


def fit_symmetric_concentration(
    mean_log: float, dimension: int, start: float, n_steps: int = 20
) -> float:
    """η with ψ(η) − ψ(V η) = mean of E log β, for a symmetric Dirichlet over V words."""
    eta = float(start)
    for _ in range(n_steps):
        gap = digamma(eta) - digamma(dimension * eta) - mean_log
        slope = polygamma(1, eta) - dimension * polygamma(1, dimension * eta)
        # In log η Newton's step cannot leave the positive numbers.
        eta = float(np.clip(eta * np.exp(-gap / (slope * eta)), SMALLEST, LARGEST))
    return eta
