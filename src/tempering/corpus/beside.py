"""Files beside a corpus: its words, how text became them, and the names of its documents.

``20news.npz`` has its words in ``20news.vocab.txt`` and names in ``20news.documents.txt``, one a
line; ``docword.kos.txt.gz`` in ``vocab.kos.txt`` and ``documents.kos.txt``. Where it was made of
text, ``20news.counting.txt`` holds a :class:`WordCounting`, as JSON in one line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tempering.corpus.corpus import fail
from tempering.corpus.counting import WordCounting
from tempering.corpus.lines import Lines

UCI_NAME = re.compile(r"docword\.(.+)\.txt(\.gz)?")


def vocabulary_path(path: Path) -> Path:
    """Where the words of a corpus stand."""
    return _beside(path, "vocab")


def names_path(path: Path) -> Path:
    """Where the names of a corpus's documents stand."""
    return _beside(path, "documents")


def counting_path(path: Path) -> Path:
    """Where it stands how text became the words of a corpus."""
    return _beside(path, "counting")


def _beside(path: Path, what: str) -> Path:
    if match := UCI_NAME.fullmatch(path.name):
        return path.with_name(f"{what}.{match[1]}.txt")
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    return path.with_name(f"{bare.stem}.{what}.txt")


def read_vocabulary(path: Path, n_words: int | None) -> list[str] | None:
    """The words of the corpus at ``path``, if they are there; as many as the corpus tells of."""
    words_path = vocabulary_path(path)
    if not words_path.is_file():
        return None
    vocabulary = list(Lines(words_path))
    if n_words is not None and len(vocabulary) != n_words:
        problem = f"it holds {len(vocabulary)} words, but {path.name} tells of {n_words}."
        fail(words_path, f"line {len(vocabulary)}", problem)
    return vocabulary


def read_names(path: Path, n_documents: int) -> Lines | None:
    """The names of the documents of the corpus at ``path``, if they are there."""
    lines = Lines(names_path(path))
    if not lines.path.is_file():
        return None
    found = sum(1 for _ in lines)
    if found != n_documents:
        problem = f"it holds {found} names, but {path.name} has {n_documents} documents."
        fail(lines.path, f"line {found}", problem)
    return lines


def read_counting(path: Path) -> WordCounting | None:
    """How text became the words of the corpus at ``path``, if it is there."""
    lines = Lines(counting_path(path))
    if not lines.path.is_file():
        return None
    try:
        return WordCounting(**json.loads("".join(lines)))
    except (TypeError, ValueError, RecursionError) as error:
        fail(lines.path, "", f"it does not say how words were counted: {error}")


def counting_lines(corpus: Any) -> list[str] | None:
    """What :func:`read_counting` reads, if the corpus knows it."""
    counting = getattr(corpus, "counting", None)
    return None if counting is None else [json.dumps(counting.as_dict())]
