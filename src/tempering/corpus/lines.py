"""Text files, plain or gzipped, read some lines at a time."""

import codecs
import gzip
import io
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tempering.corpus.checks import check_size, fail, reading, size_limit

CHUNK_BYTES = 1 << 19
# A line is read in one go, but a file of one endless line is refused long before memory is full.
LINES_IN_LIMIT = 64
LINE_BREAKS = re.compile(r"[\r\n]+")
#: What takes the place of bytes that are no characters of the encoding.
UNDECODED = re.compile("[\udc80-\udcff]")
GZIP_MAGIC = b"\x1f\x8b"


def open_bytes(path: Path) -> Any:
    """A file's content, unpacked if it is gzipped."""
    with open(path, "rb") as file:
        is_packed = file.read(2) == GZIP_MAGIC
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


def check_lines(
    path: Path, first_line: int, text: bytes, pattern: re.Pattern[bytes], wanted: str
) -> None:
    """Refuse lines that are not as a pattern of good ones has it."""
    found = pattern.match(text)
    end = found.end() if found else 0
    if end < len(text):
        line = text[end : end + 40].split(b"\n")[0]
        number = first_line + text.count(b"\n", 0, end)
        fail(path, f"line {number}", f"it should be {wanted}; it begins with {line!r}.")


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
    if wrong := UNDECODED.search(text):
        byte = ord(wrong[0]) - 0xDC00
        problem = f"it is not {encoding.upper()} (byte 0x{byte:02x}); name another encoding."
        fail(path, place, problem)


def decoded_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """Each line without its end; refused where it is not in the encoding."""
    for number, line in text_lines(path, encoding):
        check_decoded(path, f"line {number}", line, encoding)
        yield line


class Lines:
    """The lines of a text file, gone through again and again without keeping them."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    def __iter__(self) -> Iterator[str]:
        return decoded_lines(self.path)


def one_line(text: str) -> str:
    """A name that may hold line breaks, as one line."""
    return LINE_BREAKS.sub(" ", text)
