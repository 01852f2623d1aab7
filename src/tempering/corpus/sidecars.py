"""Files beside a corpus: its words, how text became them, and the names of its documents.

``20news.npz`` has its words in ``20news.vocab.txt`` and names in ``20news.documents.txt``, one a
line; ``docword.kos.txt.gz`` in ``vocab.kos.txt`` and ``documents.kos.txt``. Where it was made of
text, ``20news.counting.txt`` holds a :class:`WordCounting`, as JSON in one line.
"""

import json
import re
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tempering.corpus.checks import CorpusError, cut, fail
from tempering.corpus.corpus import Stored
from tempering.corpus.counting import WordCounting
from tempering.corpus.lines import Lines
from tempering.storage.atomic import atomic_file

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
