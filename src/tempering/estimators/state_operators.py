"""Search operators for hidden Markov models, which know the rows of each state.

The operators of :mod:`tempering.search` draw whole data. Here a datum is a sequence, maybe the only
one, and most sequences have rows of all states: so these operators draw rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tempering.models import HiddenMarkov, Sequences
from tempering.models.base import Array
from tempering.search.operators import OPERATORS, Operator, Swap
from tempering.search.runs import Candidate
from tempering.search.situation import Situation

#: Share of the splits that put visits of a state apart by the states before or after them.
CONTEXT = 0.3
#: Rows before and after a drawn row whose statistics stand for half of a state.
NEIGHBOURS = 3
#: Share of the swaps that split what they have just merged.
RESPLIT = 0.3


@dataclass(frozen=True)
class JoinStates(Operator):
    """The rows of one state given to others, which leaves it empty.

    Where fewer states than ``n_components`` explain the data, the ELBO is higher with empty ones.
    """

    name: ClassVar[str] = "join"

    def applies(self, situation: Situation) -> bool:
        return situation.components is not None

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate | None:
        return _start(situation, _without_one(situation, rng)[0])


@dataclass(frozen=True)
class SwapStates(JoinStates):
    """The rows of one state given to others, and the rows of another one divided between both."""

    name: ClassVar[str] = Swap.name

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate | None:
        shares, out, into = _without_one(situation, rng)
        if into is not None and rng.random() < RESPLIT:
            split = into
        else:
            weights = shares.sum(axis=0) if rng.random() < 0.7 else np.ones(shares.shape[1])
            weights[out] = 0.0
            split = int(rng.choice(len(weights), p=weights / weights.sum()))
        mine = shares[:, split].copy()
        if mine.sum() < 2.0:
            return None
        if rng.random() < CONTEXT:
            first = _by_context(situation, shares, rng)
        else:
            first = _by_rows(situation, mine, rng)
        shares[:, split], shares[:, out] = mine * first, mine * ~first
        return _start(situation, shares)


def _emptied(situation: Situation, rng: np.random.Generator) -> tuple[int, int | None]:
    """Return a state to empty, and the one that has its rows, or None for whichever may."""
    masses, kind = situation.masses, rng.integers(3)
    k = len(masses)
    if kind == 0:  # a small one
        weights = 1.0 / (masses + 1e-3)
        return int(rng.choice(k, p=weights / weights.sum())), None
    first = int(rng.integers(k))
    if kind == 1:
        return first, None
    second = int(situation.apart[first].argmin())
    return (first, second) if masses[first] < masses[second] else (second, first)


def _whole(situation: Situation) -> Sequences:
    """Return the rows of the data, each once; pieces are sequences by themselves."""
    data = situation.runs.batch.data
    return Sequences(data.table, data.inner_lengths)


def _start(situation: Situation, shares: Array) -> Candidate:
    """Return a start from probabilities of the states at each row, [rows, K]."""
    model: HiddenMarkov = situation.runs.model  # pyright: ignore[reportAssignmentType]
    return Candidate(model.prior() + model.statistics(_whole(situation), shares))


def _without_one(situation: Situation, rng: np.random.Generator) -> tuple[Array, int, int | None]:
    """Return q(z) of each row with one state emptied, that state, and the one that has its rows.

    The last is None where each row goes to the states that explain it best.
    """
    runs, held = situation.runs, vars(situation)
    model: HiddenMarkov = runs.model  # pyright: ignore[reportAssignmentType]
    data = runs.batch.data
    if "shares_of_rows" not in held:  # one pass for all tries of a round
        expected = model.expectations(situation.best.posterior)
        held["shares_of_rows"] = model.local_variables(data, expected)
        runs.spent += 1.0
    shares = held["shares_of_rows"].copy()
    out, into = _emptied(situation, rng)
    taken = shares[:, out].copy()
    shares[:, out] = 0.0
    if into is not None:
        shares[:, into] += taken
        return shares, out, into
    rows = np.flatnonzero(taken > 1e-3)
    expected = model.likelihood.conjugate.expected_statistics(situation.best.posterior.emissions)
    logs = model.likelihood.expected_log_likelihood(data.table[rows], expected)
    logs = logs + np.log(shares.sum(axis=0) + 1e-9)
    logs[:, out] = -np.inf
    shares[rows] += taken[rows, None] * softmax(logs, axis=1)
    return shares / shares.sum(axis=1, keepdims=True), out, into


def _by_rows(situation: Situation, mine: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return for each row whether it is more like the first than the second of two drawn rows."""
    model: HiddenMarkov = situation.runs.model  # pyright: ignore[reportAssignmentType]
    data = _whole(situation)
    weights = np.zeros((len(mine), 2))
    for half, row in enumerate(rng.choice(len(mine), size=2, p=mine / mine.sum())):
        near = slice(max(0, row - NEIGHBOURS), row + NEIGHBOURS + 1)
        weights[near, half] = mine[near]
    halves = model.prior().emissions[:2] + model.likelihood.weighted_statistics(data.rows, weights)
    expected = model.likelihood.conjugate.expected_statistics(halves)
    logs = model.likelihood.expected_log_likelihood(data.rows, expected)
    return logs[:, 0] > logs[:, 1]


def _by_context(situation: Situation, shares: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return for each row whether the state before its visit, or after it, is in a random half."""
    data = _whole(situation)
    labels = shares.argmax(axis=1)
    change = labels[1:] != labels[:-1]
    change[data.bounds[1:-1] - 1] = True
    visit = np.concatenate([[0], np.cumsum(change)])
    of_visit = labels[np.concatenate([[True], change])]
    beside = np.roll(of_visit, 1 if rng.random() < 0.5 else -1)
    return (rng.random(shares.shape[1]) < 0.5)[beside][visit]


#: The operators of a search for hidden Markov models.
STATE_OPERATORS: tuple[Operator, ...] = (
    *(SwapStates() if isinstance(operator, Swap) else operator for operator in OPERATORS),
    JoinStates(),
)
