"""Numbers with as many digits as a page needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def short(value: Any, digits: int = 5) -> float:
    """A number with that many significant digits: a page of full doubles is three times as big."""
    return float(f"{value:.{digits}g}")


def shorts(values: ArrayLike, digits: int = 5) -> list[float]:
    """Each number of a row, shortened."""
    return [short(value, digits) for value in np.asarray(values, float)]
