"""Stability: whether two fits find the same topics, whatever their order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from tempering.evaluation.checks import as_nonnegative


class Matching(NamedTuple):
    """For each topic of a first fit, the number of its partner in a second, and their cosine.

    Examples
    --------
    >>> from tempering.evaluation import match_topics
    >>> match_topics([[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [3.0, 0.0]]).similarities
    array([1., 1.])
    """

    indices: NDArray[np.intp]
    similarities: NDArray[np.float64]


def match_topics(a: ArrayLike, b: ArrayLike) -> Matching:
    """Pair the topics of two fits, one to one, so that the sum of their cosines is largest.

    Parameters
    ----------
    a, b : arrays [K, V]
        Weights or probabilities of the words, over the same vocabulary. ``b[indices]`` stands in
        the order of ``a``.

    Examples
    --------
    >>> match_topics([[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [3.0, 0.0]]).indices
    array([1, 0])
    """
    a, b = as_nonnegative(a, "a"), as_nonnegative(b, "b")
    if a.shape != b.shape:
        raise ValueError(
            f"a and b must have the same number of topics and the same vocabulary; got shapes "
            f"{a.shape} and {b.shape}."
        )
    cosines = _unit_rows(a) @ _unit_rows(b).T
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    return Matching(columns, np.minimum(cosines[rows, columns], 1.0))


def topic_stability(a: ArrayLike, b: ArrayLike) -> float:
    """Mean cosine of the matched topics of two fits, from 0 to 1: 1 if they are the same.

    Parameters
    ----------
    a, b
        As in :func:`match_topics`.

    Examples
    --------
    >>> from tempering.evaluation import topic_stability
    >>> topic_stability([[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [3.0, 0.0]])
    1.0
    """
    return float(match_topics(a, b).similarities.mean())


def _unit_rows(table: NDArray) -> NDArray[np.float64]:
    """Rows of length 1; by their maximum first, as squares of small weights would vanish."""
    rows = table.astype(np.float64)
    rows /= rows.max(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
