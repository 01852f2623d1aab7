"""Text files, plain or gzipped, read some lines at a time."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tempering.corpus.corpus import CorpusError, fail
from tempering.corpus.expansion import expansion_limit, refuse_expansion

# Numbers take about 30 times the room of their text while it is taken apart.
CHUNK_BYTES = 1 << 18
LONGEST_LINE = 1 << 26
LINE_BREAKS = re.compile(r"[\r\n]+")
GZIP_MAGIC = b"\x1f\x8b"


class Bytes:
    """A file's content, unpacked if it is gzipped, with a limit to what it may unpack to."""

    def __init__(self, path: Path):
        self.path = path
        with open(path, "rb") as file:
            self.is_packed = file.read(2) == GZIP_MAGIC
        self.left = expansion_limit(path) if self.is_packed else None

    def __enter__(self) -> Bytes:
        self.file: Any = gzip.open(self.path) if self.is_packed else open(self.path, "rb")
        return self

    def __exit__(self, *_: Any) -> None:
        self.file.close()

    def read(self, n: int) -> bytes:
        """At most n bytes; none at the end."""
        try:
            got = self.file.read(n)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            fail(self.path, "", f"the gzip file is damaged or cut short ({error}).")
        if self.left is not None:
            self.left -= len(got)
            if self.left < 0:
                refuse_expansion(self.path)
        return got


def line_chunks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about 256 kB of them at a time, with the number of the first (from 1).

    Every line ends in a line feed, also the last one.
    """
    number, rest = 1, []
    length = 0
    with Bytes(path) as file:
        while got := file.read(CHUNK_BYTES):
            end = got.rfind(b"\n") + 1
            if end == 0:
                rest.append(got)
                length += len(got)
                if length > LONGEST_LINE:
                    fail(path, f"line {number}", f"it is longer than {LONGEST_LINE} bytes.")
                continue
            chunk = b"".join([*rest, got[:end]])
            yield number, chunk
            number += chunk.count(b"\n")
            rest, length = [got[end:]], len(got) - end
    if last := b"".join(rest):
        yield number, last + b"\n"


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line without its end, as text, with its number (from 1)."""
    for first, chunk in line_chunks(path):
        try:
            text = chunk.decode("utf-8")
        except UnicodeDecodeError as error:
            line = first + chunk.count(b"\n", 0, error.start)
            fail(path, f"line {line}", f"it is not UTF-8 ({error.reason}).")
        if first == 1:
            text = text.removeprefix("\ufeff")
        # Not splitlines(): it also splits at characters that may be part of a word.
        for number, line in enumerate(text.split("\n")[:-1], first):
            yield number, line.removesuffix("\r")


class Lines:
    """The lines of a text file, gone through again and again without keeping them."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    def __iter__(self) -> Iterator[str]:
        return (line for _, line in text_lines(self.path))


def write_lines(path: Path, lines: Any, what: str) -> None:
    """Write lines, refusing one that would be read as two."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(lines):
            if "\n" in line or "\r" in line:
                raise CorpusError(f"{what} {number} (from 0), {line!r}, holds a line break.")
            try:
                file.write(f"{line}\n")
            except UnicodeEncodeError as error:
                raise CorpusError(
                    f"{what} {number} (from 0), {line!r}, is no text: {error.reason}."
                ) from None


def one_line(text: str) -> str:
    """A name that may hold line breaks, as one line."""
    return LINE_BREAKS.sub(" ", text)
