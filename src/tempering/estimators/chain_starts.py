"""Where a fit of a hidden Markov model begins: clusters, draws, or parameters set by hand."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tempering.estimators.starts import column_metric, kmeans_labels
from tempering.inference import ArraySource
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
