"""Where a fit of a hidden Markov model begins: clusters, draws, or parameters set by hand; or the
states of a fit before it, two of them joined: so the number of states can be learned.

Coordinate ascent does not empty a state that has rows of its own, even where the ELBO would be
higher without it. So pairs are joined, and stay joined if the ELBO rises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tempering.estimators.starts import column_metric, kmeans_labels
from tempering.inference import ArraySource, Result, fit
from tempering.inference.checkpoint import keeping
from tempering.inference.fitting import FitOptions
from tempering.models import HiddenMarkov, Natural, Sequences
from tempering.models.base import Array
from tempering.models.hmm.chains import Chain, solve_paths

#: Passes of a chain without forbidden moves that say which state is which.
FREE_PASSES = 20

#: Rows that k-means looks at; more would change its centres little.
MOST_KMEANS_ROWS = 20_000


def cold_start(
    model: HiddenMarkov, data: Sequences, init: str, rng: np.random.RandomState
) -> Natural:
    """λ at step 0: clusters of the observations for states, or states drawn at random.

    Where moves are forbidden, states come from a few passes in which none is: clusters in a wrong
    order would have to become other ones, past all that lie between.
    """
    n_few = max(1, len(data) * MOST_KMEANS_ROWS // len(data.rows))
    if not model.allows_all:
        free, few = model.without_zeros(), data[:n_few]
        posterior = cold_start(free, data, init, rng)
        for _ in range(FREE_PASSES):
            found = free.local_step(few, free.expectations(posterior), 1.0).statistics
            posterior = free.prior() + len(data) / len(few) * found
        return model.prior() + model.restricted(posterior - free.prior())
    source, generator = ArraySource(data), np.random.default_rng(rng.randint(2**31))
    if init == "random" or len(data.rows) < model.n_components:
        return model.initialize(source, generator)
    sample = source.sample(n_few, generator)
    labels = kmeans_labels(sample.rows @ column_metric(sample.rows), model.n_components, rng)
    assignment = np.eye(model.n_components)[labels]
    return model.prior() + len(data) / len(sample) * model.statistics(sample, assignment)


def start_at(
    model: HiddenMarkov,
    chain: Chain,
    blocks: Iterable[tuple[NDArray[np.int64], Array]],
    data: Sequences,
) -> Natural:
    """λ after one pass at known parameters: the chain, and log p(x_t | z_t) of blocks of the data,
    each after the bounds of its sequences.

    Parameters that are points have no posterior to begin from; the states that they give the data
    do.
    """
    posterior, first = model.prior(), 0
    for bounds, log_emissions in blocks:
        block = data[first : first + len(bounds) - 1]
        paths = solve_paths(chain, log_emissions, bounds)
        posterior = posterior + model.path_statistics(block, paths)
        first += len(block)
    return posterior


#: Pairs that are tried, those first whose rows either state explains, and passes for each.
TRIALS, PASSES = 5, 20

#: Rows by which pairs are compared.
COMPARED_ROWS = 5000


def fit_with_joins(model: HiddenMarkov, data: Sequences, options: FitOptions) -> Result:
    """A fit, and others from joined states as long as the ELBO rises. No random number is drawn."""
    checkpoint, resume = options.pop("checkpoint", None), options.pop("resume", True)
    options = {**options, "temperature": options.get("temperature")}
    number, limit = 0, options.get("max_passes")

    def run(**changes: Any) -> Result:
        nonlocal number
        kept = cast(FitOptions, keeping(checkpoint, resume, f"join-{number}"))
        number += 1
        return fit(model, data, **{**options, **kept, **changes})

    best, rises = run(), True
    while rises:
        tried = (
            run(initial=start, temperature=None, max_passes=PASSES)
            for start in joined(model, data, best.posterior)
        )
        higher = next((each for each in tried if each.elbo > best.elbo), None)
        rises = higher is not None
        if higher is not None:
            best = run(initial=higher.posterior, temperature=None, max_passes=limit)
    return best


def joined(model: HiddenMarkov, data: Sequences, posterior: Natural) -> Iterator[Natural]:
    """λ with two states made one and the other left empty, for the pairs most worth it."""
    if model.fixed or not model.allows_all:  # states that are not alike to begin with
        return
    prior = model.prior()
    counts = {name: part - prior[name] for name, part in posterior.items()}
    visits = counts["start"] + counts["transitions"].sum(axis=0)
    used = np.flatnonzero(visits > 0.5)
    rows = data.table[:: -(-len(data.table) // COMPARED_ROWS)]
    expected = model.expectations(posterior)
    logs = model.likelihood.expected_log_likelihood(rows, expected.emissions)
    shares = softmax(logs[:, used] + np.log(visits[used]), axis=1)
    overlap = shares.T @ shares
    size = np.sqrt(overlap.diagonal())
    first, second = np.triu_indices(len(used), 1)
    order = np.argsort(-(overlap / np.outer(size, size))[first, second], kind="stable")
    for pair in order[:TRIALS]:
        a, b = int(used[first[pair]]), int(used[second[pair]])
        yield prior + Natural(
            start=_add(counts["start"], a, b),
            transitions=_add(_add(counts["transitions"], a, b).T, a, b).T,
            emissions=_add(counts["emissions"], a, b),
        )


def _add(counts: np.ndarray, a: int, b: int) -> np.ndarray:
    """Counts whose row b is added to row a."""
    moved = counts.copy()
    moved[a] += moved[b]
    moved[b] = 0.0
    return moved
