"""How much larger than its file the content of a compressed file may be.

Counts of words unpack to 3 to 12 times their file, text to 3 to 8 times. A file that unpacks to far
more was made to fill the memory, or holds the same thing over and over; it is refused before memory
is taken for it. ``TEMPERING_LARGEST_EXPANSION``, a variable of the environment, allows more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from tempering.corpus.corpus import CorpusError, fail

LARGEST_EXPANSION = 20.0
VARIABLE = "TEMPERING_LARGEST_EXPANSION"
#: Bytes that any file may unpack to, however small it is.
SPARE_BYTES = 1 << 21


def largest_expansion() -> float:
    """How many times its size a file may unpack to: the environment's word, or 20."""
    told = os.environ.get(VARIABLE)
    if told is None:
        return LARGEST_EXPANSION
    try:
        value = float(told)
    except ValueError:
        value = 0.0
    if not 1 <= value < 1e9:
        raise CorpusError(f"{VARIABLE} must be a number from 1 on; got {told!r}.")
    return value


def expansion_limit(path: Path) -> int:
    """The most bytes that a compressed file may stand for."""
    return SPARE_BYTES + int(largest_expansion() * path.stat().st_size)


def refuse_expansion(path: Path) -> NoReturn:
    """Say that a file is refused for what it unpacks to, and how to have it read all the same."""
    times = largest_expansion()
    fail(
        path,
        "",
        f"it unpacks to more than {times:g} times its size, where corpora do to 3 to 12 times. If "
        f"you trust it, allow more in the environment, say {VARIABLE}={50 * times:g}.",
    )
