"""Small problems that several tests share."""

import numpy as np
from scipy.special import xlogy

from tempering.families import (
    Bernoulli,
    DiagonalGaussian,
    Dirichlet,
    FixedWeights,
    FullGaussian,
    IsotropicGaussian,
    Poisson,
    SphericalGaussian,
    StickBreaking,
    TiedGaussian,
)
from tempering.models import Mixture

#: Every likelihood of the package, as (likelihood, prior's natural parameters, data).
MIXTURES = ["full", "tied", "diagonal", "spherical", "isotropic"]
MIXTURES += ["bernoulli", "poisson", "sticks"]


def tiny_mixture(name, n=6, k=3, seed=0):
    """A mixture, n data, and a posterior that is neither the prior nor an optimum."""
    rng = np.random.default_rng(seed)
    weights, weights_prior = Dirichlet(k), np.full(k, 0.9)
    if name == "full":
        likelihood, data = FullGaussian(2), rng.normal(size=(n, 2)) * 2
        prior = likelihood.conjugate.natural(np.zeros(2), 0.5, 3.0, np.eye(2))
    elif name == "tied":
        likelihood, data = TiedGaussian(2, k), rng.normal(size=(n, 2)) * 2
        prior = likelihood.conjugate.natural(np.zeros((k, 2)), 0.5, 3.0, np.eye(2))
    elif name == "spherical":
        likelihood, data = SphericalGaussian(2), rng.normal(size=(n, 2)) * 2
        prior = likelihood.conjugate.natural(np.zeros(2), 0.5, 3.0, 1.0)
    elif name == "diagonal":
        likelihood, data = DiagonalGaussian(2), rng.normal(size=(n, 2)) * 2
        prior = likelihood.conjugate.natural(np.zeros(2), 0.5, 1.5, 1.0)
    elif name == "isotropic":
        likelihood, data = IsotropicGaussian(2, 0.5), rng.normal(size=(n, 2)) * 2
        prior = likelihood.conjugate.natural(np.zeros(2), 4.0)
        weights = FixedWeights(np.arange(1, k + 1) / np.sum(np.arange(1, k + 1)))
        weights_prior = np.empty(0)
    elif name == "bernoulli":
        likelihood, data = Bernoulli(3), rng.integers(0, 2, size=(n, 3))
        prior = likelihood.conjugate.natural(0.7, 1.2)
    elif name == "poisson":
        likelihood, data = Poisson(2), rng.poisson(3.0, size=(n, 2))
        prior = likelihood.conjugate.natural(1.5, 0.5)
    elif name == "sticks":
        likelihood, data = DiagonalGaussian(1), rng.normal(size=(n, 1)) * 2
        prior = likelihood.conjugate.natural(np.zeros(1), 0.5, 1.5, 1.0)
        weights, weights_prior = StickBreaking(k), np.repeat([1.0, 0.7], k)
    model = Mixture(likelihood, weights, weights_prior, prior)
    posterior = model.prior() + model.statistics(data, rng.dirichlet(np.ones(k), size=n))
    return model, data, posterior


def bound(model, data, posterior, assigned, inverse_temperature):
    """The annealed ELBO at any q(β) and any q(z), written out: no update is hidden in it."""
    expected = model.expectations(posterior)
    log_joint = expected.log_weights + model.likelihood.expected_log_likelihood(
        data, expected.components
    )
    energies = (assigned * log_joint).sum(axis=1)
    entropy = -xlogy(assigned, assigned).sum()
    return np.sum(inverse_temperature * energies) + entropy - model.divergence(posterior)
