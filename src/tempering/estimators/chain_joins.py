"""States that share the work of one, joined: so the number of states can be learned.

Coordinate ascent does not empty a state that has rows of its own, even where the ELBO would be
higher without it. So pairs are joined, and stay joined if the ELBO rises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from scipy.special import softmax

from tempering.inference import Result, fit
from tempering.inference.checkpoint import keeping
from tempering.inference.fitting import FitOptions
from tempering.models import HiddenMarkov, Natural, Sequences

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
