"""How the fit went, with as many points of a curve and digits of a number as a page needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tempering.evaluation.checks import as_numbers
from tempering.inference import History

#: Points of a curve; a screen shows no more.
POINTS = 400

Curve = list[tuple[float, float]]


def short(value: Any, digits: int = 5) -> float:
    """A number with that many significant digits: a page of full doubles is three times as big."""
    return float(f"{value:.{digits}g}")


def shorts(values: ArrayLike) -> list[float]:
    """Each number of a row, shortened."""
    return [short(value) for value in np.asarray(values, float)]


def fit_curves(
    history: History | None, validation: Sequence[tuple[float, float]] | None = None
) -> dict[str, Any]:
    """Curves of (documents seen, value), each of at most :data:`POINTS` points.

    A value that was not computed at a step (NaN) is no point. ``validation`` are held-out scores
    that were taken during the fit; ``final_start`` is None, or the documents seen when the final
    phase at T = 1 began.
    """
    records = history or History()
    seen = records["data_seen"].astype(float)
    final = next((each.data_seen for each in records if each.phase == "final"), None)
    pairs = "pairs (documents seen, score) of numbers"
    scores = as_numbers([] if validation is None else validation, "validation", pairs)
    if scores.size and (scores.ndim != 2 or scores.shape[1] != 2):
        raise ValueError(f"validation must be {pairs}; got shape {scores.shape}.")
    scores = scores.reshape(-1, 2)
    return {
        "temperature": _thin(seen, records["temperature"]),
        "elbo": _thin(seen, records["elbo"]),
        "validation": _thin(scores[:, 0], scores[:, 1]),
        "final_start": final,
    }


def _thin(places: np.ndarray, values: np.ndarray) -> Curve:
    """Finite points, evenly chosen, with the first and the last."""
    finite = np.flatnonzero(np.isfinite(values))
    chosen = np.linspace(0, finite.size - 1, min(POINTS, finite.size)).round().astype(int)
    # An ELBO of millions differs from step to step in its last digits.
    return [(short(places[i], 9), short(values[i], 9)) for i in finite[chosen]]
