"""The factorial mixture in plain NumPy, feature by feature: slow, and easy to compare with a book.

Each coordinate is updated by itself with the residuals of all data (MATH: Doshi-Velez et al., 2009,
tempered). Benchmarks take it as what one would write without this package.
"""

import numpy as np
from scipy.special import expit, xlogy


def update_activations(X, means, variances, z, s, noise, probability):
    """One sweep over z_nk, k = 1 … K, in place."""
    d = X.shape[1]
    for k in range(len(means)):
        z[:, k] = 0.0
        residual = X - z @ means
        odds = (residual @ means[k] - 0.5 * (means[k] @ means[k] + d * variances[k])) / noise
        z[:, k] = expit(s * (odds + np.log(probability / (1 - probability))))
    return z


def update_features(X, means, variances, z, s, noise, feature_variance):
    """One sweep over q(μ_k), k = 1 … K, in place."""
    s = np.broadcast_to(s, len(X))
    for k in range(len(means)):
        others = z.copy()
        others[:, k] = 0.0
        weights = s * z[:, k]
        variances[k] = 1 / (1 / feature_variance + weights.sum() / noise)
        means[k] = variances[k] / noise * (weights @ (X - others @ means))
    return means, variances


def energies(X, means, variances, z, noise, probability):
    """E_q[log p(x_n, z_n | μ)]."""
    d = X.shape[1]
    errors = np.square(X - z @ means).sum(axis=1)
    errors += (z * (1 - z)) @ np.square(means).sum(axis=1) + d * z @ variances
    log_prior = z * np.log(probability) + (1 - z) * np.log(1 - probability)
    return -d / 2 * np.log(2 * np.pi * noise) - errors / (2 * noise) + log_prior.sum(axis=1)


def divergence(means, variances, feature_variance):
    """KL(q(μ) ‖ p(μ))."""
    d = means.shape[1]
    ratio = variances / feature_variance
    lengths = np.square(means).sum(axis=1) / feature_variance
    return 0.5 * np.sum(lengths + d * (ratio - 1 - np.log(ratio)))


def elbo(X, means, variances, z, s, noise, feature_variance, probability):
    """The annealed ELBO at any q(z) and q(μ)."""
    entropy = -np.sum(xlogy(z, z) + xlogy(1 - z, 1 - z))
    energy = np.sum(s * energies(X, means, variances, z, noise, probability))
    return energy + entropy - divergence(means, variances, feature_variance)
