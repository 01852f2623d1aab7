"""What the two experiments with the factorial mixture share: methods, and comparing features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reproduction.features import match_features
from tempering.models.base import Array
from tempering.temperature import LocalTempering, VariationalTempering, even_inverse_temperatures

#: Plain coordinate ascent, as in the paper; with hot starts of each datum; with a joint q(z_n).
MEAN_FIELD = {"local": "mean-field", "local_restarts": 0, "n_init": 1}
RESTARTED = {"local": "mean-field", "local_restarts": 2, "n_init": 1}
EXACT = {"local": "exact", "n_init": 1}

#: Colours that mean the same method in every figure.
COLOURS = {
    "VI": "#444444",
    "AVI fast": "#e69f00",
    "AVI slow": "#d55e00",
    "VT": "#0072b2",
    "VT, printed log C": "#56b4e9",
    "LVT": "#009e73",
    "default": "#cc79a7",
}


def global_tempering(**options: Any) -> VariationalTempering:
    """VT as in the paper: 100 temperatures from 1 to 10 on an exponential scale."""
    return VariationalTempering(**options)


def local_tempering(**options: Any) -> LocalTempering:
    """LVT with 50 values of 1/T; q(z_n) and q(T_n) are updated twice in turn in each iteration."""
    return LocalTempering(even_inverse_temperatures(50), max_alternations=2, **options)


class Agreement(NamedTuple):
    """How features agree with the true ones."""

    found: int
    error: float


def agreement(true: Array, features: Array) -> Agreement:
    """Match features to the true ones, one to one.

    Returns
    -------
    Agreement
        ``found``: true features whose partner is at a squared distance under a quarter of their
        length; ``error``: the sum of squared distances over the sum of squared lengths.
    """
    true = np.asarray(true, float)
    distances = np.square(true - np.asarray(features)[match_features(features, true)]).sum(axis=1)
    lengths = np.square(true).sum(axis=1)
    found = int(np.count_nonzero(distances < 0.25 * lengths))
    return Agreement(found, float(distances.sum() / lengths.sum()))


def mean_curve(curves: Sequence[Sequence[float]]) -> Array:
    """The mean of curves by iteration; one that has converged stays where it ended."""
    longest = max(len(curve) for curve in curves)
    padded = [np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves]
    return np.mean(padded, axis=0)
