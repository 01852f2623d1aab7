"""Text files, plain or gzipped, read some lines at a time; and those beside a corpus: its words,
how text became them, and the names of its documents.

``20news.npz`` has its words in ``20news.vocab.txt`` and names in ``20news.documents.txt``, one a
line; ``docword.kos.txt.gz`` in ``vocab.kos.txt`` and ``documents.kos.txt``. Where it was made of
text, ``20news.counting.txt`` holds a :class:`WordCounting`, as JSON in one line.
"""

import codecs
import gzip
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tempering.corpus.checks import CorpusError, check_size, cut, fail, reading, size_limit
from tempering.corpus.corpus import Stored
from tempering.corpus.counting import WordCounting
from tempering.storage.atomic import atomic_file

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


UCI_NAME = re.compile(r"docword\.(.+)\.txt(\.gz)?")
WORDS, NAMES, COUNTING = "vocab", "documents", "counting"


def _sidecar(path: Path, what: str) -> Path:
    if match := UCI_NAME.fullmatch(path.name):
        return path.with_name(f"{what}.{match[1]}.txt")
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    return path.with_name(f"{bare.stem}.{what}.txt")


def read_vocabulary(path: Path, n_words: int | None) -> list[str] | None:
    """The words of the corpus at ``path``, if they are there; as many as the corpus tells of."""
    lines = Lines(_sidecar(path, WORDS))
    if not lines.path.is_file():
        return None
    vocabulary = list(lines)
    if n_words is not None and len(vocabulary) != n_words:
        problem = f"it holds {len(vocabulary)} words, but {path.name} tells of {n_words}."
        fail(lines.path, f"line {len(vocabulary)}", problem)
    return vocabulary


def read_names(path: Path, n_documents: int) -> Lines | None:
    """The names of the documents of the corpus at ``path``, if they are there."""
    lines = Lines(_sidecar(path, NAMES))
    if not lines.path.is_file():
        return None
    found = sum(1 for _ in lines)
    if found != n_documents:
        problem = f"it holds {found} names, but {path.name} has {n_documents} documents."
        fail(lines.path, f"line {found}", problem)
    return lines


def read_counting(path: Path) -> WordCounting | None:
    """How text became the words of the corpus at ``path``, if it is there."""
    lines = Lines(_sidecar(path, COUNTING))
    if not lines.path.is_file():
        return None
    try:
        return WordCounting(**json.loads("".join(lines)))
    except (TypeError, ValueError, RecursionError) as error:
        fail(lines.path, "", f"it does not say how words were counted: {error}")


def write_sidecars(
    stack: ExitStack, path: Path, corpus: Stored, with_names: bool, overwrite: bool
) -> None:
    """Write what the corpus at ``path`` needs beside it; it appears when the stack is closed."""
    counting: WordCounting | None = getattr(corpus, "counting", None)
    settings = None if counting is None else [json.dumps(counting.as_dict())]
    _write(stack, _sidecar(path, WORDS), corpus.vocabulary, "word", overwrite)
    _write(stack, _sidecar(path, COUNTING), settings, "setting", overwrite)
    if with_names:
        _write(stack, _sidecar(path, NAMES), corpus.names, "name", overwrite)


def _write(
    stack: ExitStack, path: Path, lines: Iterable[str] | None, what: str, overwrite: bool
) -> None:
    """Write the lines, or see that no others are taken for them."""
    if path.exists() and not overwrite:
        if lines is not None and all(a == b for a, b in zip_longest(Lines(path), lines)):
            return
        raise FileExistsError(
            f"{path} exists already, and would be taken for the {what}s of this corpus: remove it, "
            "or choose another path."
        )
    if lines is not None:
        _write_lines(stack.enter_context(atomic_file(path)), lines, what)
    elif path.exists():
        stack.callback(path.unlink)


def _write_lines(path: Path, lines: Iterable[Any], what: str) -> None:
    """Write lines, refusing one that would be read as two."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(lines):
            problem = "holds a line break" if "\n" in line or "\r" in line else ""
            try:
                file.write(f"{line}\n")
            except UnicodeEncodeError as error:
                problem = f"is no text: {error.reason}"
            if problem:
                raise CorpusError(f"{what} {number} (from 0), {cut(line)!r}, {problem}.")
