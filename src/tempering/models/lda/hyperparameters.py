"""Learning the Dirichlet priors: the concentration that makes given mean logarithms most likely;
and, of a concentration whose sum is given, how topics share it.
"""

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


def prior_draws(counts: Array, alpha: Array) -> Array:
    """How many tokens of each topic got it from the prior of their document, Σ_d, [K].

    The first token of a topic in a document has it from there; the i-th after it with probability
    α_k / (α_k + i), else from a token before it. The sum over i is α_k (ψ(n_dk + α_k) − ψ(α_k)).

    Parameters
    ----------
    counts : array [D, K]
        n_dk, most of them 0.
    alpha : array [K]
        α.
    """
    documents, topics = np.nonzero(counts)
    own = alpha[topics]
    draws = own * (digamma(counts[documents, topics] + own) - digamma(own))
    return np.bincount(topics, draws, minlength=alpha.size).astype(float)


def share_out(total: float, draws: Array, followed: float) -> Array:
    """α of a given sum, of which a part follows the draws of topics, and the rest is shared evenly.

    Repeated with new draws, and where all of it follows them, this is Minka's fixed point (2000)
    for the most likely α of that sum.

    >>> share_out(2.0, np.array([3.0, 1.0]), followed=0.5)
    array([1.25, 0.75])
    """
    return total * ((1.0 - followed) / draws.size + followed * draws / draws.sum())


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
