"""Bins of time: of one length, of the calendar, or by their edges."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tempering.evaluation.checks import as_labels
from tempering.models.arguments import check_number

#: Bins of time, at most.
MOST_BINS = 10**6

#: Units of the calendar, longest first, as numpy calls them.
UNITS = {"year": "Y", "month": "M", "day": "D"}
#: About as many bins as "auto" makes where the calendar does not tell.
USUAL = 12


def time_bins(times: ArrayLike, bins: Any, n_documents: int) -> tuple[list[Any], NDArray[np.intp]]:
    """The (start, end) of each bin that holds a document, and the bin of each document."""
    as_labels(times, "times", "X", n_documents)
    times = as_times(times)
    if times.dtype.kind == "f" and not np.isfinite(times).all():
        raise ValueError(f"times must be finite; got {times[~np.isfinite(times)][0]}.")
    if isinstance(bins, str):
        bins = _named(times, bins)
    try:
        edges = np.asarray(bins)
    except ValueError as error:
        raise ValueError(f"bins must be a number, or rising edges: {error}") from error
    if edges.ndim == 1:
        with suppress(ValueError):  # what they are then is refused below
            edges = as_times(edges)
    if edges.ndim == 0:
        expected = f"a whole number from 1 to {MOST_BINS}, or edges"
        check_number(bins, "bins", expected, least=1, most=MOST_BINS, whole=True)
        first, last, n = times.min(), times.max(), int(bins)
        if times.dtype.kind == "f":
            edges = first + (last - first) * (np.arange(n + 1) / n)
            edges[-1] = last
        else:
            # Rounded up, so that whole times lie between them as they would between fractions.
            length = int((last - first).astype(np.uint64))
            steps = [-(-length * k // n) for k in range(n + 1)]
            edges = first + np.array(steps, (last - first).dtype)
    kinds = "M" if times.dtype.kind == "M" else "iuf"
    right = edges.ndim == 1 and edges.size >= 2 and edges.dtype.kind in kinds
    if not right or not np.all(edges[1:] >= edges[:-1]):
        raise ValueError(
            f"bins must be a number, or rising edges, dates if times are dates; got {bins!r:.100}."
        )
    outside = int(np.sum((times < edges[0]) | (times > edges[-1])))
    if outside:
        raise ValueError(
            f"bins must hold all times, but {outside} document(s) lie outside of {edges[0]} to "
            f"{edges[-1]}: add edges, or leave these documents out."
        )
    bin_of = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, edges.size - 2)
    used, places = np.unique(bin_of, return_inverse=True)
    listed = edges.tolist() if edges.dtype.kind != "M" else list(edges)
    return [(listed[place], listed[place + 1]) for place in used], places


def as_times(values: ArrayLike) -> NDArray[Any]:
    """Numbers, or dates without a zone: those with one are told in that of Greenwich."""
    told = np.asarray(values)
    if told.dtype.kind == "i":
        return told.astype(np.int64)  # the difference of two small ones may be a larger one
    if told.dtype.kind in "ufM":
        return told
    numbers = [_number(value) for value in told]
    # Eight digits each, all of which are a day, as 20240131 is, are no numbers.
    if all(number is not None for number in numbers) and not all(map(_is_compact_date, told)):
        return np.array(numbers)
    return np.array([_date(value) for value in told], dtype="datetime64[s]")


def _is_compact_date(value: Any) -> bool:
    if not (isinstance(value, str) and re.fullmatch(r"\s*(1[5-9]|20|21)\d{6}\s*", value)):
        return False
    with suppress(ValueError):
        return bool(date.fromisoformat(value.strip()))
    return False


def _number(value: Any) -> int | float | None:
    text = str(value).strip()
    if "_" in text:  # which Python reads as part of a number; 2024_01 is none
        return None
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if abs(number) < 2.0**63 else None  # nor NaN
    return None


def _date(value: Any) -> Any:
    if isinstance(value, date) and not isinstance(value, datetime):
        return np.datetime64(value)
    text = str(value).strip()
    # Of a year or a month alone, its first day.
    if re.fullmatch(r"\d{4}", text):
        text += "-01"
    if re.fullmatch(r"\d{4}-\d{2}", text):
        text += "-01"
    try:
        told = value if isinstance(value, datetime) else datetime.fromisoformat(text)
        return told.astimezone(UTC).replace(tzinfo=None) if told.tzinfo else told
    except (ValueError, OverflowError):
        raise ValueError(
            f"times must be numbers or dates, but {str(value)!r:.60} is neither: begin with the "
            "year, as in 2024-01-31 or 2024-01-31T12:00."
        ) from None


def _named(times: NDArray[Any], bins: str) -> Any:
    """The edges that the calendar has, or whole numbers; or a number of bins of one length."""
    if bins not in ("auto", *UNITS):
        known = ", ".join(map(repr, ("auto", *UNITS)))
        raise ValueError(f"bins must be a number, rising edges, or one of {known}; got {bins!r}.")
    if times.dtype.kind == "M":
        if bins != "auto":
            return _calendar(times, UNITS[bins])
        for unit in ("Y", "M"):
            if (edges := _calendar(times, unit)).size > 6:
                return edges
        n_days = _calendar(times, "D").size - 1
        return _calendar(times, "D", step=-(-n_days // USUAL))
    if bins != "auto":
        raise ValueError(f"bins={bins!r} is for dates, but times are numbers: give a number.")
    first, last = times.min(), times.max()
    # From a table in which some are missing, years are read as floats.
    whole = -(2**53) < last < 2**53 and np.all(times == np.floor(times))
    if whole and last - first < 2 * USUAL:
        return np.arange(int(first), int(last) + 2)
    return USUAL


def _calendar(times: NDArray[Any], unit: str, step: int = 1) -> NDArray[Any]:
    """Edges of years, months or days, from the one that holds the first time."""
    kind = f"datetime64[{unit}]"
    first, last = times.min().astype(kind), times.max().astype(kind)
    if (last - first).astype(int) >= MOST_BINS:
        raise ValueError(f"bins: from {first} to {last} there are more than {MOST_BINS}.")
    return np.arange(first, last + 1 + step, step)
