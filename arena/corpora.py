"""Documents to learn from and to score on: drawn ones of many shapes, and files by path.

short, few        a drawn corpus, by its name; "drawn" stands for all, "eight" for eight of them
news.npz:5000     counts in any format that `tempering.corpus` reads, the first 5,000 to learn
                  from; with NAME.labels.txt, a label a line, topics are compared with labels
BBC_News.tsv.gz   text, part (train, val, test) and label, tab-separated, as OCTIS keeps its
                  corpora; a folder stands for all such files in it
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tempering import corpus as formats
from tempering.corpus.files import Lines
from tempering.datasets import make_lda
from tempering.evaluation import Split, split_documents

TEST_DOCUMENTS = 2000

#: Documents and their mean length: five sizes, each drawn plain, mixed (documents that use many
#: topics) and blurred (topics that share their words).
SIZES = {
    "short, few": (1_000, 15),
    "short, many": (10_000, 15),
    "medium": (3_000, 60),
    "long, few": (500, 300),
    "long, many": (3_000, 300),
}
KINDS: dict[str, dict[str, Any]] = {"": {}, "mixed, ": {"alpha": 1.0}, "blurred, ": {"eta": 0.5}}
PLAIN = {"n_topics": 20, "n_words": 2_000, "alpha": 0.1, "eta": 0.05}
DRAWN: dict[str, dict[str, Any]] = {
    f"{kind}{size}": {**PLAIN, "n_documents": n, "document_length": length, **settings}
    for kind, settings in KINDS.items()
    for size, (n, length) in SIZES.items()
}
DRAWN["large vocabulary"] = {**DRAWN["medium"], "n_words": 20_000}
DRAWN["many topics"] = {**DRAWN["medium"], "n_topics": 100, "alpha": 0.05}

#: One of each shape.
EIGHT = [
    *("short, few", "short, many", "long, few", "long, many"),
    *("mixed, medium", "blurred, medium", "large vocabulary", "many topics"),
]


class Corpus(NamedTuple):
    """What all programs learn from, and what their topics are scored on."""

    name: str
    train: sparse.csr_array
    test: sparse.csr_array
    split: Split  # of the test documents
    labels: np.ndarray | None  # of the test documents
    texts: list[list[int]] | None = None  # of all documents, columns in the order of the text
    truth: np.ndarray | None = None  # the topics that it was drawn from


def named(given: list[str]) -> list[str]:
    """The corpora that are meant; an error for one that cannot be, or has the name of another."""
    found = list(_each(given))
    paths: dict[str, Path] = {}
    for path in (Path(name.partition(":")[0]) for name in found):
        other = paths.setdefault(_name(path), path)
        if other != path:
            raise SystemExit(
                "--corpora must hold corpora of different names, by which results are kept; got "
                f"{other} and {path}: rename one of them."
            )
    return found


def _each(given: list[str]) -> Iterator[str]:
    for name in given:
        path, _, documents = name.partition(":")
        if name in ("drawn", "eight"):
            yield from DRAWN if name == "drawn" else EIGHT
        elif Path(name).is_dir() and (found := sorted(Path(name).glob("*.tsv.gz"))):
            yield from map(str, found)
        elif name in DRAWN or (Path(path).is_file() and (documents or "0").isdecimal()):
            yield name
        else:
            known = ", ".join(f'"{own}"' for own in ["eight", "drawn", *DRAWN])
            raise SystemExit(
                "--corpora must hold files (or file:documents, a number), folders with files "
                f"*.tsv.gz, or names of {known}; got {name!r}."
            )


def _name(path: Path) -> str:
    """What a corpus is called in the results."""
    if str(path) in DRAWN:
        return str(path)
    return path.name.partition(".")[0] if path.name.endswith(".tsv.gz") else path.stem


def open_corpus(name: str, smaller: int = 1) -> Corpus:
    """A corpus by its name or path; drawn ones have so many times fewer documents."""
    if name in DRAWN:
        n = DRAWN[name]["n_documents"] // smaller
        n_test = min(TEST_DOCUMENTS, max(n // 2, 1))
        seed = list(DRAWN).index(name)
        made = make_lda(**{**DRAWN[name], "n_documents": n + n_test, "seed": seed})
        return corpus_of(name, made.counts, n)._replace(truth=made.topics)
    path, _, documents = name.partition(":")
    read = read_octis if path.endswith(".tsv.gz") else read_counts
    return read(Path(path), int(documents or 0))


def read_counts(path: Path, n: int) -> Corpus:
    """Counts from a file: the first documents to learn from, those that follow to score on."""
    counts = formats.read(path).counts
    beside = path.with_suffix(".labels.txt")
    labels = list(Lines(beside)) if beside.is_file() else None
    if labels is not None and len(labels) != counts.shape[0]:
        raise SystemExit(f"{beside} has {len(labels)} lines for {counts.shape[0]} documents.")
    n = n or counts.shape[0] - min(TEST_DOCUMENTS, counts.shape[0] // 5)
    return corpus_of(_name(path), counts, n, labels)


def read_octis(path: Path, n: int) -> Corpus:
    """A corpus of OCTIS: its own parts, and its order of words for what looks at windows."""
    parts: dict[str, list[tuple[list[int], str]]] = {"train": [], "val": [], "test": []}
    words: dict[str, int] = {}
    for text, part, label in (line.split("\t") for line in Lines(path)):
        columns = [words.setdefault(word, len(words)) for word in text.split()]
        parts[part].append((columns, label))
    train = parts["train"][: n or None]
    columns, labels = zip(*train, *parts["test"])
    rows = np.repeat(np.arange(len(columns)), [len(own) for own in columns])
    entries = np.ones(rows.size), (rows, np.concatenate(columns).astype(int))
    counts = sparse.coo_array(entries, (len(columns), len(words)))
    texts = [own for part in parts.values() for own, _ in part]
    return corpus_of(_name(path), counts, len(train), labels)._replace(texts=texts)


def corpus_of(name: str, counts: Any, n: int, labels: Any = None) -> Corpus:
    """The first n documents to learn from, the next ones to score on."""
    if np.any(counts.data != np.floor(counts.data)):
        raise SystemExit(f"{name} has counts that are not whole, which most programs do not take.")
    counts = sparse.csr_array(counts, dtype=np.int32)
    scored = slice(n, n + TEST_DOCUMENTS)
    if n >= counts.shape[0]:
        raise SystemExit(f"{name} has {counts.shape[0]} documents: learn from fewer than {n}.")
    labels = None if labels is None else np.array(labels)[scored]
    return Corpus(name, counts[:n], counts[scored], split_documents(counts[scored]), labels)
