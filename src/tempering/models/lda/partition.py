"""The tempered partition function of LDA, as in the paper's supplement, and bounds of it.

With topic assignments summed out, D documents of N words each,

    C(s) = ∫ p(β) [ ∫ p(θ) ( Σ_v (Σ_k θ_k β_kv)^s )^N dθ ]^D dβ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import logsumexp

from tempering.families import Dirichlet
from tempering.models.base import Array

if TYPE_CHECKING:
    from tempering.models.lda.model import LatentDirichlet

#: log Σ_v p_v^s is smooth in s: it is computed at so many nodes, and interpolated to the grid.
NODES = 12

#: Draws of θ for each draw of the topics.
PROPORTION_DRAWS = 100


class TopicDraws(NamedTuple):
    """n draws of all topics from their prior, made one at a time from a seed: they are large."""

    n: int
    seed: int


class Interpolation:
    """Smooth functions of s, known at Chebyshev nodes, on a grid of inverse temperatures."""

    def __init__(self, inverse_temperatures: Array, n_nodes: int = NODES):
        grid = np.asarray(inverse_temperatures, float)
        low = min(float(grid.min()), 0.99)
        unit_nodes = chebyshev.chebpts1(n_nodes)
        self.nodes = low + (1.0 - low) * (unit_nodes + 1) / 2
        position = 2 * (grid - low) / (1.0 - low) - 1
        at_nodes = chebyshev.chebvander(unit_nodes, n_nodes - 1)
        self._matrix = chebyshev.chebvander(position, n_nodes - 1) @ np.linalg.inv(at_nodes)

    def __call__(self, values: Array) -> Array:
        """Values at the nodes [..., n_nodes] to values on the grid [..., M]."""
        return values @ self._matrix.T


def log_power_sums(log_probabilities: Array, powers: Array) -> Array:
    """log Σ_v p_v^s for distributions [n, V] and powers [M]: [n, M]."""
    largest = log_probabilities.max(axis=1, keepdims=True)
    shifted = log_probabilities - largest
    sums = [np.exp(s * shifted).sum(axis=1) for s in powers.astype(shifted.dtype)]
    return np.log(np.stack(sums, axis=1)) + largest * powers


def log_document_integral(
    model: LatentDirichlet, draws: TopicDraws, inverse_temperatures: Array
) -> Array:
    """log ∫ p(θ) (Σ_v (Σ_k θ_k β_kv)^s)^N dθ by Monte Carlo over θ, for draws of β: [n, M]."""
    power_sums = _log_power_sums_of_draws(model, draws, inverse_temperatures)
    exponent = model.mean_length * power_sums
    return logsumexp(exponent, axis=1) - np.log(PROPORTION_DRAWS)


def _log_power_sums_of_draws(
    model: LatentDirichlet, draws: TopicDraws, inverse_temperatures: Array
) -> Array:
    """log Σ_v (Σ_k θ_k β_kv)^s for draws of β and θ: [n, PROPORTION_DRAWS, M]."""
    to_grid = Interpolation(inverse_temperatures)
    topic_prior = np.full(model.n_words, model.topic_word_prior)
    proportions_prior = np.asarray(model.doc_topic_prior)
    values = np.empty((draws.n, PROPORTION_DRAWS, np.size(inverse_temperatures)))
    for i in range(draws.n):
        rng = np.random.default_rng([draws.seed, i])
        topics = Dirichlet(model.n_words).sample(topic_prior, rng, model.n_topics)
        theta = Dirichlet(model.n_topics).sample(proportions_prior, rng, PROPORTION_DRAWS)
        with np.errstate(divide="ignore"):
            log_mixed = np.log((theta @ topics).astype(np.float32))
        values[i] = to_grid(log_power_sums(log_mixed, to_grid.nodes))
    return values


@dataclass(frozen=True)
class PartitionBounds:
    """Bounds of log C(s) for D documents, each [M].

    Attributes
    ----------
    log_outside : array
        D N E[log Σ_v p_v^s], the supplement's lower bound (log is concave).
    log_inside : array
        D N log E[Σ_v p_v^s], which the supplement calls an upper bound; it is a second, better
        lower bound, since x^D and x^N are convex.
    upper : array
        D N (1 − s) log V: the sum is largest for a uniform distribution over words.
    upper_assignments : array
        D N (1 − s) log(K V): the same with topic assignments, for p(w, z).
    """

    log_outside: Array
    log_inside: Array
    upper: Array
    upper_assignments: Array


def partition_bounds(
    model: LatentDirichlet,
    inverse_temperatures: Array,
    n_documents: int,
    n_samples: int = 20,
    seed: int = 0,
) -> PartitionBounds:
    """Both Jensen bounds of the supplement, by Monte Carlo, and valid upper bounds."""
    s = np.asarray(inverse_temperatures, float)
    power_sums = _log_power_sums_of_draws(model, TopicDraws(n_samples, seed), s)
    power_sums = power_sums.reshape(-1, s.size)
    n_tokens = n_documents * model.mean_length
    return PartitionBounds(
        log_outside=n_tokens * power_sums.mean(axis=0),
        log_inside=n_tokens * (logsumexp(power_sums, axis=0) - np.log(len(power_sums))),
        upper=n_tokens * (1 - s) * np.log(model.n_words),
        upper_assignments=n_tokens * (1 - s) * np.log(model.n_words * model.n_topics),
    )
