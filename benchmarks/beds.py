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

from problems import PROBLEMS, centres_in_ten_dimensions, clusters, grid_of_centres
from tempering import Annealing, FactorialMixture, LatentDirichletAllocation, fit
from tempering.datasets import make_lda, make_toy_images
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


def known_variance(centres: Any, n: int, deviation: float, policy, seed, **options):
    """A Gaussian mixture of which only the means are unknown, in minibatches."""
    return stochastic(*clusters(centres, n, deviation, seed), policy, seed, **options)


def problem(name, policy, seed, **options) -> Outcome:
    """A problem of the list, in batch."""
    return batch(*PROBLEMS[name](seed), policy, seed, **options)


def features(data: Any, k: int, variances: Any, policy: Any, seed: int, n_init: int) -> Outcome:
    """A factorial mixture, mean-field; at T = 1 a search with `n_init` > 1."""
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
        **{name: partial(problem, name) for name in PROBLEMS},
        "toy images": toy_images,
        "topics": topics,
        "25, stochastic": grid,
        "20, stochastic": ten,
        **{name: bed for path in files for name, bed in of_file(path, documents).items()},
    }
