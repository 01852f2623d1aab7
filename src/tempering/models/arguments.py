"""Checks of arguments: what is no number is named, before anything is computed with it."""

import inspect
import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: More threads than any machine has cores; beyond it, starting them is all that would happen.
MOST_THREADS = 4096


def check_number(
    value: Any,
    name: str,
    expected: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    whole: bool = False,
) -> None:
    """Raise ``ValueError`` unless value is a number, from least (or above so much) to most.

    Booleans are refused.
    """
    right = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    number: Any = value if right else math.nan
    # Not a comparison holds for NaN.
    if not (least <= number <= most and (number > above or above == -math.inf)):
        raise ValueError(f"{name} must be {expected}; got {shown(value)}.")


def check_whole(least: int = 1, /, **values: Any) -> None:
    """Raise ``ValueError`` unless these are whole numbers, ``least`` or more; by their names."""
    for name, value in values.items():
        check_number(value, name, f"at least {least}, and whole", least=least, whole=True)


def check_choice(value: Any, name: str, *choices: Any) -> None:
    """Raise ``ValueError`` unless value is one of the choices."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}; got {shown(value)}.")


def as_numbers(values: Any, name: str, expected: str) -> NDArray[np.float64]:
    """Values as an array of float64; raise ``ValueError`` if they are none."""
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be {expected}; got {shown(values)}.") from error


def takes(function: Any, *arguments: Any) -> bool:
    """Whether a function can be called with these arguments; True where it does not tell."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # some that are written in C tell nothing
        return True
    return True


def shown(value: Any) -> str:
    """A value as it is written, on one line, and not at any length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else text[:97] + "..."
