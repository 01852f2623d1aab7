"""Search operators for the factorial mixture.

Two features span four sums, 0, m_j, m_k, m_j + m_k. A pair such as a + b/3 and 2b/3 − a spans
nearly those of the true a and b, and coordinate ascent cannot leave it; other generators of the
same sums, m_j and m_j + m_k for instance, can. The activations of such a pair depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from tempering.models.base import Array
from tempering.models.factorial_mixture import FactorialModel
from tempering.search.operators import Operator, Reheat, Restart
from tempering.search.runs import Candidate
from tempering.search.situation import Situation

#: Share of the proposals that change a pair of features, where two depend on each other.
PAIRS = 0.7
#: Rows whose remainders decide what a feature is replaced with.
ROWS = 250
#: Inverse temperatures to reheat to: with little noise, features only merge at great heat.
HOTTEST, COOLEST = 0.01, 0.5


@dataclass(frozen=True)
class Features(Operator):
    """Other generators of what two features span, or one feature replaced by what all leave over.

    The pair is one whose activations depend on each other; the feature that is replaced explains
    little, and what takes its place is the mean remainder on one side of some direction.
    """

    name: ClassVar[str] = "features"

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate | None:
        runs, posterior = situation.runs, situation.best.posterior
        model: FactorialModel = runs.model  # pyright: ignore[reportAssignmentType]
        n, means = runs.batch.size, model.expectations(posterior).means
        moments = np.asarray(situation.best.statistics["precision"]) / n
        pairs = dependent_pairs(moments, n)
        if pairs and rng.random() < PAIRS:
            j, k = pairs[rng.integers(len(pairs))]
            a, b = means[j], means[k]
            spans = [(a, a + b), (b, a + b), (a, b - a), (b, a - b), (a + b, -a), (a + b, -b)]
            means = _replaced(means, [j, k], spans[rng.integers(len(spans))])
        else:
            explained = np.diag(moments) * np.square(means).sum(axis=1)
            weights = 1.0 / (explained + 1e-3 * explained.max() + 1e-300)
            out = int(rng.choice(len(means), p=weights / weights.sum()))
            feature = _left_over(situation, means, out, rng)
            if feature is None:
                return None
            means = _replaced(means, [out], feature)
        return Candidate(model.features_at(means, n * model.activation_probability))


def _left_over(
    situation: Situation, means: Array, out: int, rng: np.random.Generator
) -> Array | None:
    """Return the mean of what the features but one do not explain, on one side of a direction."""
    runs = situation.runs
    model: FactorialModel = runs.model  # pyright: ignore[reportAssignmentType]
    rows = np.asarray(runs.source.sample(ROWS, rng), float)
    activations = model.local_step(rows, model.expectations(situation.best.posterior), 1.0).local
    runs.spent += len(rows) / runs.batch.size
    remainders = rows - activations @ means + np.outer(activations[:, out], means[out])
    lengths = np.einsum("nd,nd->n", remainders, remainders)
    if not lengths.any():
        return None
    direction = remainders[rng.choice(len(rows), p=lengths / lengths.sum())]
    for _ in range(int(rng.integers(4))):  # the power method: from a row to the widest direction
        direction = remainders.T @ (remainders @ direction)
        direction = direction / max(np.linalg.norm(direction), 1e-300)
    side = np.maximum(remainders @ direction, 0.0)
    return side @ remainders / side.sum() if side.any() else None


def dependent_pairs(moments: Array, n_data: int) -> list[tuple[int, int]]:
    """Return pairs of features with dependent activations, by N times their mutual information."""
    both, rates = moments, np.diag(moments)
    one = np.broadcast_to(rates[:, None], both.shape)
    tables = [
        (both, one * one.T),
        (one - both, one * (1 - one.T)),
        (one.T - both, (1 - one) * one.T),
        (1 - one - one.T + both, (1 - one) * (1 - one.T)),
    ]
    information = np.zeros(both.shape)
    for joint, apart in tables:
        joint, apart = np.maximum(joint, 0.0), np.maximum(apart, 1e-300)
        information += xlogy(joint, joint) - xlogy(joint, apart)
    j, k = np.triu_indices(len(rates), 1)
    found = n_data * information[j, k]
    order = np.argsort(-found, kind="stable")[:6]
    # By fewer nats chance alone makes them dependent.
    return [(int(j[i]), int(k[i])) for i in order if found[i] > 10.0]


def _replaced(means: Array, rows: list[int], features: ArrayLike) -> Array:
    changed = means.copy()
    changed[rows] = features
    return changed


@dataclass(frozen=True)
class ReheatFeatures(Reheat):
    """The best solution, heated far and cooled again."""

    def propose(self, situation: Situation, rng: np.random.Generator) -> Candidate:
        s = float(np.exp(rng.uniform(np.log(HOTTEST), np.log(COOLEST))))
        return Candidate(situation.best.posterior, inverse_temperature=s)


#: The operators of a search for the factorial mixture. Half of a feature is not a feature, so that
#: nothing is split.
FEATURE_OPERATORS: tuple[Operator, ...] = (Restart(), ReheatFeatures(), Features())
