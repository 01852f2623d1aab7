"""What goes wrong with a corpus: damage that readers tell of in many ways, sizes that it claims."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

#: The most bytes that a corpus may take in memory, or a part of it that is read in one go.
MAX_BYTES = 4 << 30
VARIABLE = "TEMPERING_MAX_BYTES"
LONGEST_QUOTE = 80


class CorpusError(ValueError):
    """A corpus that cannot be read or written. The message names the file and the place in it."""


def fail(path: Any, place: str, problem: str) -> NoReturn:
    """Raise a :class:`CorpusError` for a place in a file, such as "line 3"; "" for the whole."""
    raise CorpusError(f"{path}, {place}: {problem}" if place else f"{path}: {problem}")


def cut(text: Any, length: int = LONGEST_QUOTE) -> str:
    """The beginning of a text, for messages: a document may have thousands of characters."""
    text = str(text)
    return text if len(text) <= length else f"{text[:length]}…"


@contextmanager
def reading(path: Any, place: str = "") -> Iterator[None]:
    """Whatever a library says of a file that it cannot read becomes a :class:`CorpusError`."""
    try:
        yield
    except (CorpusError, ImportError):
        raise
    # Damaged files raise nearly everything: struct.error, zlib.error, BadZipFile, KeyError, …
    except Exception as error:
        # What the system says, such as that a file may not be read, is no damage; unless it is that
        # a place which the file tells of cannot be.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        told = " ".join(f"{type(error).__name__}: {error}".split())
        what = cut(told, 3 * LONGEST_QUOTE).rstrip(".")
        where = f"{path}, {place}" if place else path
        raise CorpusError(f"{where}: it is damaged, or of another format ({what}).") from error


def size_limit() -> int:
    """The most bytes to take for a corpus: the environment's word, or 4 GiB."""
    told = os.environ.get(VARIABLE, str(MAX_BYTES))
    if not (told.isascii() and told.isdigit() and 0 < int(told[:20]) < 2**63):
        raise CorpusError(f"{VARIABLE} must be a number of bytes; got {cut(told)!r}.")
    return int(told)


def check_size(path: Any, n_bytes: int, what: str = "it") -> None:
    """Refuse what would take too much memory, before it is taken."""
    limit = size_limit()
    if n_bytes > limit:
        problem = f"{what} takes {n_bytes} bytes, more than the {limit} that are allowed."
        remedy = f"If you trust the file, allow more in the environment: {VARIABLE}={2 * n_bytes}."
        fail(path, "", f"{problem} {remedy}")


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device, which would be waited for, and cannot be read twice."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if not (path.is_file() or path.is_dir()):
        fail(path, "", "it is a pipe, socket or device; write what it gives to a file first.")
