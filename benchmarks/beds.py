"""Test beds for temperature policies: small fits that plain variational inference gets stuck in.

Each is a function of a policy and a seed, and gives the ELBO at T = 1 and the passes it took. The
seed draws the data (where they are drawn) and the start, the same for every policy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from fresh_models import BEDS as FRESH
from own_models import CategoricalHMM, ExponentialMixture, MixedRegressions, PoissonFactors
from strangers_models import BEDS as STRANGERS
from tempering import Annealing, FactorialMixture, LatentDirichletAllocation, Mixture, families, fit
from tempering.datasets import make_lda, make_toy_images
from tempering.families import Dirichlet
from tempering.inference import ArraySource, evaluate_elbo

Outcome = tuple[float, float]
Bed = Callable[..., Outcome]

#: Batch fits may take so many passes, and end when a step gains this many nats a datum.
MAX_PASSES, TOLERANCE = 1000, 1e-6


def batch(model: Any, data: Any, policy: Any, seed: int, n_init: int = 1) -> Outcome:
    """A fit on the whole data."""
    result = fit(
        model,
        data,
        temperature=policy,
        max_passes=MAX_PASSES,
        tolerance=TOLERANCE * len(data),
        seed=seed,
        n_init=n_init,
        n_threads=1,
        progress=False,
    )
    return result.elbo, n_init * result.history[-1].passes


def stochastic(
    model: Any, data: Any, policy: Any, seed: int, n_init: int = 1, passes: int = 60
) -> Outcome:
    """A fit in minibatches of 100; the length of a schedule is a part of the run."""
    result = fit(
        model,
        data,
        temperature=shortened(policy, passes),
        batch_size=100,
        max_passes=passes,
        seed=seed,
        n_init=n_init,
        n_threads=1,
        progress=False,
    )
    return result.elbo, n_init * passes


def shortened(policy: Any, passes: float) -> Any:
    """A schedule of a batch fit for a run of so many passes."""
    if isinstance(policy, Annealing) and policy.passes:
        return Annealing(policy.schedule, passes=policy.passes / 200 * passes)
    return policy


def clusters(centres: Any, n: int, deviation: float, seed: int) -> tuple[Mixture, Any]:
    """A Gaussian mixture of which only the means are unknown, and data."""
    rng = np.random.default_rng(seed)
    centres = np.asarray(centres(rng))
    k, d = centres.shape
    data = centres[rng.integers(k, size=n)] + deviation * rng.normal(size=(n, d))
    likelihood = families.IsotropicGaussian(d, deviation**2)
    prior = likelihood.conjugate.natural(np.zeros(d), 10.0)
    return Mixture(likelihood, Dirichlet(k), np.ones(k), prior), data


def known_variance(centres: Any, n: int, deviation: float, run: Any, policy, seed, **options):
    """A Gaussian mixture of which only the means are unknown."""
    return run(*clusters(centres, n, deviation, seed), policy, seed, **options)


def mixture(likelihood: Any, prior: Any, k: int, data: Any, policy, seed, **options) -> Outcome:
    """k components with learned weights, in batch."""
    return batch(
        Mixture(likelihood, Dirichlet(k), np.ones(k), prior), data, policy, seed, **options
    )


def grid_of_centres(rng: Any) -> Any:
    return [(i, j) for i in range(5) for j in range(5)]


def centres_in_ten_dimensions(rng: Any) -> Any:
    return rng.normal(size=(20, 10))


def two_gaussians(policy, seed, **options):
    """Figure 1 of the paper."""
    rng = np.random.default_rng(seed)
    data = rng.normal(np.where(rng.random(400) < 0.3, -3.2, 3.2))[:, None]
    likelihood = families.IsotropicGaussian(1, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(1), 10.0)
    return mixture(likelihood, prior, 2, data, policy, seed, **options)


def digits(policy, seed, **options):
    """Forty Bernoulli components of binarised digits."""
    data = (load_digits().data > 7).astype(float)
    likelihood = families.Bernoulli(64)
    prior = np.ones(likelihood.conjugate.size)
    return mixture(likelihood, prior, 40, data, policy, seed, **options)


def counts(policy, seed, **options):
    """Twelve components of six Poisson counts."""
    rng = np.random.default_rng(seed)
    data = rng.poisson(rng.gamma(1.0, 5.0, size=(12, 6))[rng.integers(12, size=1500)]).astype(float)
    likelihood = families.Poisson(6)
    prior = np.r_[np.ones(likelihood.conjugate.size - 1), 0.2]
    return mixture(likelihood, prior, 12, data, policy, seed, **options)


def learned_covariances(policy, seed, **options):
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
    return mixture(likelihood, prior, k, data, policy, seed, **options)


def hidden_markov(policy, seed, **options):
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
    return batch(CategoricalHMM(k, v), data, policy, seed, **options)


def poisson_factors(policy, seed, **options):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, 1 / 0.3, (100, 5)) @ rng.gamma(0.3, 1 / 0.3, (5, 25))
    return batch(PoissonFactors(5, 25), rng.poisson(rates).astype(float), policy, seed, **options)


def regressions(policy, seed, **options):
    """Eight lines in three dimensions."""
    rng = np.random.default_rng(seed)
    weights = 2 * rng.normal(size=(8, 3))
    x = np.c_[rng.normal(size=(800, 2)), np.ones(800)]
    y = (weights[rng.integers(8, size=800)] * x).sum(1) + 0.3 * rng.normal(size=800)
    return batch(MixedRegressions(8, 3), np.c_[x, y], policy, seed, **options)


def waiting_times(policy, seed, **options):
    """The model of docs/own-model.md."""
    rng = np.random.default_rng(seed)
    data = rng.exponential(np.repeat(np.exp(rng.normal(0, 2.5, 5)), 300))
    return batch(ExponentialMixture(5), data, policy, seed, **options)


def features(data: Any, k: int, variances: Any, policy: Any, seed: int, n_init: int) -> Outcome:
    """A factorial mixture, mean-field, without the moves of the estimator."""
    noise, feature = variances
    model = FactorialMixture(
        k,
        noise_variance=noise,
        feature_variance=feature,
        activation_probability=0.3,
        max_iter=MAX_PASSES,
        tol=TOLERANCE * len(data),
        random_state=seed,
        n_jobs=1,
        n_init=n_init,
        tempering=policy,
        local="mean-field",
        local_restarts=0,
        moves=False,
    ).fit(data)
    return model.elbo_, n_init * model.history_[-1].passes


def toy_images(policy, seed, n_init=1):
    """The paper's toy images."""
    images = make_toy_images(2000, 0.1, 0.3, seed=seed)
    return features(images.X, 8, (0.1, 0.35), policy, seed, n_init)


def faces(path, k, policy, seed, n_init=1):
    """Photographs of faces at a quarter of their height and width."""
    with np.load(path) as archive:
        images = archive["images"][~archive["bad"]].astype(float)
    n, height, width = images.shape
    blocks = images.reshape(n, height // 4, 4, width // 4, 4)
    data = blocks.mean((2, 4)).reshape(n, -1)
    return features((data - data.mean()) / data.std(), k, (0.5, 0.5), policy, seed, n_init)


def cells(policy, seed, **options):
    """Six diagonal Gaussians of 569 cell measurements (not looked at while designing)."""
    data = load_breast_cancer().data
    data = (data - data.mean(0)) / data.std(0)
    d, k = data.shape[1], 6
    likelihood = families.DiagonalGaussian(d)
    prior = likelihood.conjugate.natural(np.zeros(d), 0.1, 2.0, 1.0)
    return mixture(likelihood, prior, k, data, policy, seed, **options)


def answers(policy, seed, **options):
    """Seven classes of people who answer twenty questions (not looked at while designing)."""
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(4, 0.7), size=(7, 20))
    z = rng.integers(7, size=600)
    chosen = np.array([[rng.choice(4, p=p) for p in tables[c]] for c in z])
    data = np.eye(4)[chosen].reshape(600, 80)
    likelihood = families.Bernoulli(80)
    prior = np.ones(likelihood.conjugate.size)
    return mixture(likelihood, prior, 7, data, policy, seed, **options)


def wine(policy, seed, **options):
    """Five diagonal Gaussians of 178 wines."""
    data = load_wine().data
    data = (data - data.mean(0)) / data.std(0)
    likelihood = families.DiagonalGaussian(13)
    prior = likelihood.conjugate.natural(np.zeros(13), 0.1, 2.0, 1.0)
    return mixture(likelihood, prior, 5, data, policy, seed, **options)


def iris(policy, seed, **options):
    """Six Gaussians of 150 flowers."""
    data = load_iris().data
    data = (data - data.mean(0)) / data.std(0)
    likelihood = families.FullGaussian(4)
    prior = likelihood.conjugate.natural(np.zeros(4), 0.1, 6.0, np.eye(4))
    return mixture(likelihood, prior, 6, data, policy, seed, **options)


def rings(policy, seed, **options):
    """Thirty clusters of learned variances on three rings."""
    rng = np.random.default_rng(seed)
    place = rng.integers(30, size=1000)
    radius, angle = 1 + place // 10, 2 * np.pi * (place % 10) / 10
    data = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    data += 0.07 * rng.normal(size=data.shape)
    likelihood = families.DiagonalGaussian(2)
    prior = likelihood.conjugate.natural(np.zeros(2), 0.1, 2.0, 0.02)
    return mixture(likelihood, prior, 30, data, policy, seed, **options)


def bits(policy, seed, **options):
    """Twelve groups of unequal size, of 30 bits."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(0.5, 0.5, size=(12, 30))
    z = rng.choice(12, p=rng.dirichlet(np.full(12, 2.0)), size=500)
    data = (rng.random((500, 30)) < rates[z]).astype(float)
    likelihood = families.Bernoulli(30)
    prior = np.ones(likelihood.conjugate.size)
    return mixture(likelihood, prior, 12, data, policy, seed, **options)


def diabetes(policy, seed, **options):
    """Five Gaussians of 442 patients."""
    data = load_diabetes(scaled=False).data
    data = (data - data.mean(0)) / data.std(0)
    likelihood = families.FullGaussian(10)
    prior = likelihood.conjugate.natural(np.zeros(10), 0.1, 12.0, np.eye(10))
    return mixture(likelihood, prior, 5, data, policy, seed, **options)


def spiral(policy, seed, **options):
    """Data along a spiral, cut by 25 round Gaussians: there are no true ones."""
    rng = np.random.default_rng(seed)
    angle = 4 * np.pi * np.sqrt(rng.random(1200))
    data = angle[:, None] * np.c_[np.cos(angle), np.sin(angle)] + 0.4 * rng.normal(size=(1200, 2))
    likelihood = families.IsotropicGaussian(2, 0.5)
    prior = likelihood.conjugate.natural(np.zeros(2), 0.01)
    return mixture(likelihood, prior, 25, data, policy, seed, **options)


def baskets(policy, seed, **options):
    """Fifteen kinds of customers, some of them rare, who buy few of forty goods."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, 1.0, size=(15, 40))
    z = rng.choice(15, p=rng.dirichlet(np.ones(15)), size=900)
    data = rng.poisson(rates[z]).astype(float)
    likelihood = families.Poisson(40)
    prior = np.r_[np.ones(likelihood.conjugate.size - 1), 1.0]
    return mixture(likelihood, prior, 15, data, policy, seed, **options)


def directions(policy, seed, **options):
    """Ten flat Gaussians through one point, which differ in direction alone."""
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(10, 4))
    z = rng.integers(10, size=1000)
    data = rng.normal(size=(1000, 1)) * axes[z] + 0.1 * rng.normal(size=(1000, 4))
    likelihood = families.FullGaussian(4)
    prior = likelihood.conjugate.natural(np.zeros(4), 0.1, 6.0, 0.1 * np.eye(4))
    return mixture(likelihood, prior, 10, data, policy, seed, **options)


def stranger(name, policy, seed, **options):
    """A model that its author wrote without having seen a policy."""
    return batch(*{**STRANGERS, **FRESH}[name](seed), policy, seed, **options)


def topics(policy, seed, counts=None, k=20, passes=400, batch_size=None, n_init=1):
    """LDA in the paper's bound: drawn documents in batch, or a corpus in minibatches."""
    if counts is None:
        counts = make_lda(
            1000, k, n_words=500, document_length=60, alpha=0.1, eta=0.05, seed=100 + seed
        ).counts
    online = batch_size is not None
    model = LatentDirichletAllocation(
        k,
        tempering=shortened(policy, passes) if online else policy,
        update="variational",
        learning_method="online" if online else "batch",
        batch_size=batch_size or "auto",
        learning_offset=16.0 if online else "auto",
        max_iter=passes,
        evaluate_every=0 if online else 1,
        doc_topic_prior=0.1,
        topic_word_prior=0.05,
        doc_update_tol=1e-3,
        init="random",
        random_state=seed,
        n_init=n_init,
        n_jobs=1,
        backend="cpu",
    ).fit(counts)
    if online:
        return evaluate_elbo(model._model, model._state.posterior, ArraySource(counts)), passes
    passes = n_init * model.history_[-1].passes
    return float(np.asarray(model.history_["elbo"])[-1]), passes


def corpus(path: str, documents: int, k: int, policy: Any, seed: int) -> Outcome:
    """Some documents of a corpus, in minibatches, four passes."""
    counts = sparse.load_npz(path).tocsr()
    rows = np.random.default_rng(0).permutation(counts.shape[0])[:documents]
    counts = counts[rows]
    counts = counts[:, np.asarray((counts > 0).sum(0)).ravel() >= 5]
    return topics(policy, seed, counts.astype(np.float32), k, passes=4, batch_size=100)


def of_file(path: str, documents: int) -> dict[str, Bed]:
    """Faces, where the archive has images; else topics of a corpus."""
    name = Path(path).stem
    with np.load(path) as archive:
        if "images" in archive.files:
            return {f"{name}, K = {k}": partial(faces, path, k) for k in (30, 60)}
    return {f"{name}, K = {k}": partial(corpus, path, documents, k) for k in (50, 100)}


def beds(files: list[str], documents: int = 5000) -> dict[str, Bed]:
    """All of them by name; those of a corpus or of faces by path."""
    grid = partial(known_variance, grid_of_centres, 2500, 0.12)
    ten = partial(known_variance, centres_in_ten_dimensions, 2000, 0.4)
    return {
        "two Gaussians": two_gaussians,
        "25 on a grid": partial(grid, batch),
        "20 in 10-D": partial(ten, batch),
        "counts": counts,
        "regressions": regressions,
        "waiting times": waiting_times,
        "toy images": toy_images,
        "covariances": learned_covariances,
        "HMM": hidden_markov,
        "digits": digits,
        "Poisson factors": poisson_factors,
        "topics": topics,
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
        **{name: partial(stranger, name) for name in (*STRANGERS, *FRESH)},
        "25, stochastic": partial(grid, stochastic),
        "20, stochastic": partial(ten, stochastic),
        **{name: bed for path in files for name, bed in of_file(path, documents).items()},
    }
