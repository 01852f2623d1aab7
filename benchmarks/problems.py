"""Test problems as data: functions of a seed that return a model and data.

The seed draws the data, where they are drawn. Plain variational inference gets stuck in nearly all
of them. Models declare their components, where these are exchangeable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from docs_models import BEDS as DOCS
from fresh_models import BEDS as FRESH
from own_models import CategoricalHMM, ExponentialMixture, MixedRegressions, PoissonFactors
from strangers_models import BEDS as INDEPENDENT
from tempering import Mixture, families
from tempering.families import Dirichlet

#: A model and its data.
Problem = tuple[Any, Any]


def clusters(centres: Any, n: int, deviation: float, seed: int) -> tuple[Mixture, Any]:
    """A Gaussian mixture of which only the means are unknown, and data."""
    rng = np.random.default_rng(seed)
    centres = np.asarray(centres(rng))
    k, d = centres.shape
    data = centres[rng.integers(k, size=n)] + deviation * rng.normal(size=(n, d))
    likelihood = families.IsotropicGaussian(d, deviation**2)
    prior = likelihood.conjugate.natural(np.zeros(d), 10.0)
    return Mixture(likelihood, Dirichlet(k), np.ones(k), prior), data


def mixture(likelihood: Any, prior: Any, k: int, data: Any) -> Problem:
    """Return a mixture of k components with learned weights."""
    return Mixture(likelihood, Dirichlet(k), np.ones(k), prior), data


def grid_of_centres(rng: Any) -> Any:
    return [(i, j) for i in range(5) for j in range(5)]


def centres_in_ten_dimensions(rng: Any) -> Any:
    return rng.normal(size=(20, 10))


def two_gaussians(seed: int) -> Problem:
    """Figure 1 of the paper."""
    rng = np.random.default_rng(seed)
    data = rng.normal(np.where(rng.random(400) < 0.3, -3.2, 3.2))[:, None]
    likelihood = families.IsotropicGaussian(1, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(1), 10.0)
    return mixture(likelihood, prior, 2, data)


def digits(seed: int) -> Problem:
    """Forty Bernoulli components of binarised digits."""
    data = (load_digits().data > 7).astype(float)
    likelihood = families.Bernoulli(64)
    prior = np.ones(likelihood.conjugate.size)
    return mixture(likelihood, prior, 40, data)


def counts(seed: int) -> Problem:
    """Twelve components of six Poisson counts."""
    rng = np.random.default_rng(seed)
    data = rng.poisson(rng.gamma(1.0, 5.0, size=(12, 6))[rng.integers(12, size=1500)]).astype(float)
    likelihood = families.Poisson(6)
    prior = np.r_[np.ones(likelihood.conjugate.size - 1), 0.2]
    return mixture(likelihood, prior, 12, data)


def learned_covariances(seed: int) -> Problem:
    """Eight Gaussians of their own covariances in three dimensions."""
    rng = np.random.default_rng(seed)
    k, d, n = 8, 3, 1500
    centres, factors = 3 * rng.normal(size=(k, d)), 0.6 * rng.normal(size=(k, d, d))
    z = rng.integers(k, size=n)
    data = centres[z] + np.einsum("nij,nj->ni", factors[z], rng.normal(size=(n, d)))
    data += 0.1 * rng.normal(size=(n, d))
    likelihood = families.FullGaussian(d)
    scale = np.cov(data.T) / k * (d + 2)
    prior = likelihood.conjugate.natural(data.mean(0), 0.1, d + 2.0, scale)
    return mixture(likelihood, prior, k, data)


def hidden_markov(seed: int) -> Problem:
    """Six states, twelve symbols, thirty sequences of forty steps."""
    rng = np.random.default_rng(seed)
    k, v = 6, 12
    transition = 0.7 * np.eye(k) + 0.3 * rng.dirichlet(np.full(k, 0.5), k)
    emission = rng.dirichlet(np.full(v, 0.3), k)
    data = np.empty((30, 40), int)
    for row in data:
        z = rng.integers(k)
        for t in range(row.size):
            row[t] = rng.choice(v, p=emission[z])
            z = rng.choice(k, p=transition[z])
    return CategoricalHMM(k, v), data


def poisson_factors(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, 1 / 0.3, (100, 5)) @ rng.gamma(0.3, 1 / 0.3, (5, 25))
    return PoissonFactors(5, 25), rng.poisson(rates).astype(float)


def regressions(seed: int) -> Problem:
    """Eight lines in three dimensions."""
    rng = np.random.default_rng(seed)
    weights = 2 * rng.normal(size=(8, 3))
    x = np.c_[rng.normal(size=(800, 2)), np.ones(800)]
    y = (weights[rng.integers(8, size=800)] * x).sum(1) + 0.3 * rng.normal(size=800)
    return MixedRegressions(8, 3), np.c_[x, y]


def waiting_times(seed: int) -> Problem:
    """The model of docs/own-model.md."""
    rng = np.random.default_rng(seed)
    data = rng.exponential(np.repeat(np.exp(rng.normal(0, 2.5, 5)), 300))
    return ExponentialMixture(5), data


def cells(seed: int) -> Problem:
    """Six diagonal Gaussians of 569 cell measurements (not looked at while designing)."""
    data = load_breast_cancer().data
    data = (data - data.mean(0)) / data.std(0)
    d, k = data.shape[1], 6
    likelihood = families.DiagonalGaussian(d)
    prior = likelihood.conjugate.natural(np.zeros(d), 0.1, 2.0, 1.0)
    return mixture(likelihood, prior, k, data)


def answers(seed: int) -> Problem:
    """Seven classes of people who answer twenty questions (not looked at while designing)."""
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(4, 0.7), size=(7, 20))
    z = rng.integers(7, size=600)
    chosen = np.array([[rng.choice(4, p=p) for p in tables[c]] for c in z])
    data = np.eye(4)[chosen].reshape(600, 80)
    likelihood = families.Bernoulli(80)
    prior = np.ones(likelihood.conjugate.size)
    return mixture(likelihood, prior, 7, data)


def wine(seed: int) -> Problem:
    """Five diagonal Gaussians of 178 wines."""
    data = load_wine().data
    data = (data - data.mean(0)) / data.std(0)
    likelihood = families.DiagonalGaussian(13)
    prior = likelihood.conjugate.natural(np.zeros(13), 0.1, 2.0, 1.0)
    return mixture(likelihood, prior, 5, data)


def iris(seed: int) -> Problem:
    """Six Gaussians of 150 flowers."""
    data = load_iris().data
    data = (data - data.mean(0)) / data.std(0)
    likelihood = families.FullGaussian(4)
    prior = likelihood.conjugate.natural(np.zeros(4), 0.1, 6.0, np.eye(4))
    return mixture(likelihood, prior, 6, data)


def rings(seed: int) -> Problem:
    """Thirty clusters of learned variances on three rings."""
    rng = np.random.default_rng(seed)
    place = rng.integers(30, size=1000)
    radius, angle = 1 + place // 10, 2 * np.pi * (place % 10) / 10
    data = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    data += 0.07 * rng.normal(size=data.shape)
    likelihood = families.DiagonalGaussian(2)
    prior = likelihood.conjugate.natural(np.zeros(2), 0.1, 2.0, 0.02)
    return mixture(likelihood, prior, 30, data)


def bits(seed: int) -> Problem:
    """Twelve groups of unequal size, of 30 bits."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(0.5, 0.5, size=(12, 30))
    z = rng.choice(12, p=rng.dirichlet(np.full(12, 2.0)), size=500)
    data = (rng.random((500, 30)) < rates[z]).astype(float)
    likelihood = families.Bernoulli(30)
    prior = np.ones(likelihood.conjugate.size)
    return mixture(likelihood, prior, 12, data)


def diabetes(seed: int) -> Problem:
    """Five Gaussians of 442 patients."""
    data = load_diabetes(scaled=False).data
    data = (data - data.mean(0)) / data.std(0)
    likelihood = families.FullGaussian(10)
    prior = likelihood.conjugate.natural(np.zeros(10), 0.1, 12.0, np.eye(10))
    return mixture(likelihood, prior, 5, data)


def spiral(seed: int) -> Problem:
    """Data along a spiral, cut by 25 round Gaussians: there are no true ones."""
    rng = np.random.default_rng(seed)
    angle = 4 * np.pi * np.sqrt(rng.random(1200))
    data = angle[:, None] * np.c_[np.cos(angle), np.sin(angle)] + 0.4 * rng.normal(size=(1200, 2))
    likelihood = families.IsotropicGaussian(2, 0.5)
    prior = likelihood.conjugate.natural(np.zeros(2), 0.01)
    return mixture(likelihood, prior, 25, data)


def baskets(seed: int) -> Problem:
    """Fifteen kinds of customers, some of them rare, who buy few of forty goods."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, 1.0, size=(15, 40))
    z = rng.choice(15, p=rng.dirichlet(np.ones(15)), size=900)
    data = rng.poisson(rates[z]).astype(float)
    likelihood = families.Poisson(40)
    prior = np.r_[np.ones(likelihood.conjugate.size - 1), 1.0]
    return mixture(likelihood, prior, 15, data)


def directions(seed: int) -> Problem:
    """Ten flat Gaussians through one point, which differ in direction alone."""
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(10, 4))
    z = rng.integers(10, size=1000)
    data = rng.normal(size=(1000, 1)) * axes[z] + 0.1 * rng.normal(size=(1000, 4))
    likelihood = families.FullGaussian(4)
    prior = likelihood.conjugate.natural(np.zeros(4), 0.1, 6.0, 0.1 * np.eye(4))
    return mixture(likelihood, prior, 10, data)


#: Problems by name.
PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "two Gaussians": two_gaussians,
    "25 on a grid": lambda seed: clusters(grid_of_centres, 2500, 0.12, seed),
    "20 in 10-D": lambda seed: clusters(centres_in_ten_dimensions, 2000, 0.4, seed),
    "counts": counts,
    "regressions": regressions,
    "waiting times": waiting_times,
    "covariances": learned_covariances,
    "HMM": hidden_markov,
    "digits": digits,
    "Poisson factors": poisson_factors,
    "cells": cells,
    "answers": answers,
    "wine": wine,
    "iris": iris,
    "rings": rings,
    "bits": bits,
    "diabetes": diabetes,
    "spiral": spiral,
    "baskets": baskets,
    "directions": directions,
    **INDEPENDENT,
    **FRESH,
    **DOCS,
}
