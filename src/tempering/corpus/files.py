"""Files of a corpus: damage that readers tell of in many ways, sizes that are allowed, and text,
plain or gzipped, read some lines at a time.
"""

import codecs
import errno
import gzip
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

VARIABLE = "TEMPERING_MAX_BYTES"
CHUNK_BYTES = 1 << 19
# A line is read in one go, but a file of one endless line is refused long before memory is full.
LINES_IN_LIMIT = 64


class CorpusError(ValueError):
    """A corpus that cannot be read or written. The message names the file and the place in it."""


def fail(path: Any, place: str, problem: str) -> NoReturn:
    """Raise a :class:`CorpusError` for a place in a file, such as "line 3"; "" for the whole."""
    raise CorpusError(f"{path}, {place}: {problem}" if place else f"{path}: {problem}")


def cut(text: Any, length: int = 80) -> str:
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
            error.filename = error.filename or str(path)  # which errors of a read do not name
            raise
        told = " ".join(f"{type(error).__name__}: {error}".split())
        what = cut(told, 240).rstrip(".")
        where = f"{path}, {place}" if place else path
        raise CorpusError(f"{where}: it is damaged, or of another format ({what}).") from error


def size_limit() -> int:
    """The most bytes that a corpus may take in memory: the environment's word, or 4 GiB."""
    told = os.environ.get(VARIABLE, str(4 << 30))
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


def open_bytes(path: Path) -> Any:
    """A file's content, unpacked if it is gzipped."""
    with open(path, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_packed else open(path, "rb")


def line_chunks(path: Path, skip: int = 0) -> Iterator[tuple[int, bytes]]:
    """Whole lines after some, about 512 kB at a time, with the number of the first (from 1)."""
    number, longest = skip + 1, size_limit() // LINES_IN_LIMIT
    with reading(path), open_bytes(path) as file:
        for _ in range(skip):
            file.readline(longest)
        while chunk := file.read(CHUNK_BYTES):
            if not chunk.endswith(b"\n"):
                rest = file.readline(longest)
                _check_length(path, number + chunk.count(b"\n"), len(rest), longest)
                chunk += rest.removesuffix(b"\n") + b"\n"
            yield number, chunk
            number += chunk.count(b"\n")


def text_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Each line without its end, with its number (from 1); what is no text is left in it."""
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    longest = size_limit() // LINES_IN_LIMIT
    with (
        reading(path),
        open_bytes(path) as file,
        # Not universal newlines: other ends of lines may be part of a document.
        io.TextIOWrapper(file, codec, "surrogateescape", newline="\n") as text,
    ):
        for number, line in enumerate(iter(partial(text.readline, longest), ""), 1):
            _check_length(path, number, len(line), longest)
            yield number, line.removesuffix("\n").removesuffix("\r")


def _check_length(path: Path, line: int, length: int, longest: int) -> None:
    if length >= longest:
        check_size(path, LINES_IN_LIMIT * (length + 1), f"line {line}, with room for its numbers,")


def check_decoded(path: Any, place: str, text: str, encoding: str = "utf-8") -> None:
    """Refuse text with bytes that are no characters of its encoding."""
    if wrong := re.search("[\udc80-\udcff]", text):  # what stands in their place
        byte = ord(wrong[0]) - 0xDC00
        problem = f"it is not {encoding.upper()} (byte 0x{byte:02x}); name another encoding."
        fail(path, place, problem)


class Lines:
    """The lines of a text file without their ends, gone through again and again, none kept."""

    def __init__(self, path: str | os.PathLike[str], encoding: str = "utf-8"):
        self.path, self.encoding = Path(path), encoding

    def __iter__(self) -> Iterator[str]:
        for number, line in text_lines(self.path, self.encoding):
            check_decoded(self.path, f"line {number}", line, self.encoding)
            yield line


def one_line(text: str) -> str:
    """A name that may hold line breaks, as one line."""
    return re.sub(r"[\r\n]+", " ", text)
