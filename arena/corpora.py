"""Documents to learn from and to score on: drawn ones of many shapes, and files by path.

short, few        a drawn corpus, by its name; "drawn" stands for all, "eight" for eight of them
news.npz:5000     counts in any format that `tempering.corpus` reads, the first 5,000 to learn
                  from; with NAME.labels.txt, a label a line, topics are compared with labels
BBC_News.tsv.gz   text, part (train, val, test) and label, tab-separated, as OCTIS keeps its
                  corpora; a folder stands for all such files in it
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tempering import corpus as formats
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
    split: Split
    labels: np.ndarray | None = None  # of the test documents
    texts: list[list[int]] | None = None  # columns in the order of the text, of all documents
    truth: np.ndarray | None = None  # the topics that it was drawn from


def named(given: list[str]) -> Iterator[str]:
    """The corpora that are meant, one by one; an error for one that cannot be."""
    for name in given:
        if name in ("drawn", "eight"):
            yield from DRAWN if name == "drawn" else EIGHT
        elif name in DRAWN:
            yield name
        elif Path(name).is_dir():
            found = sorted(str(path) for path in Path(name).glob("*.tsv.gz"))
            if not found:
                raise SystemExit(f"--corpora: no file *.tsv.gz is in the folder {name}.")
            yield from found
        elif Path(name.partition(":")[0]).is_file():
            yield name
        else:
            known = ", ".join(f'"{own}"' for own in ["eight", "drawn", *DRAWN])
            raise SystemExit(f"--corpora: {name!r} is neither a file nor a folder nor of {known}.")


def open_corpus(name: str, smaller: int = 1) -> Corpus:
    """A corpus by its name or path; drawn ones have so many times fewer documents."""
    if name in DRAWN:
        return draw(name, smaller)
    path, _, documents = name.partition(":")
    read = read_octis if path.endswith(".tsv.gz") else read_counts
    return read(Path(path), int(documents or 0))


def draw(name: str, smaller: int) -> Corpus:
    """A corpus from the model, with the topics that made it."""
    settings = dict(DRAWN[name])
    n = settings.pop("n_documents") // smaller
    n_test = min(TEST_DOCUMENTS, max(n // 2, 1))
    made = make_lda(n + n_test, seed=list(DRAWN).index(name), **settings)
    return corpus_of(name, made.counts, n, n_test, truth=made.topics)


def read_counts(path: Path, n: int) -> Corpus:
    """Counts from a file: the first documents to learn from, those that follow to score on."""
    counts = formats.read(path).counts
    n = n or counts.shape[0] - min(TEST_DOCUMENTS, counts.shape[0] // 5)
    n_test = min(TEST_DOCUMENTS, counts.shape[0] - n)
    if n_test < 1:
        raise SystemExit(
            f"{path.name} has {counts.shape[0]} documents: none is left to score on after "
            f"{n} to learn from."
        )
    beside = path.with_suffix(".labels.txt")
    labels = beside.read_text(encoding="utf-8").splitlines() if beside.is_file() else None
    if labels is not None and len(labels) != counts.shape[0]:
        raise SystemExit(f"{beside} has {len(labels)} lines for {counts.shape[0]} documents.")
    return corpus_of(path.name.split(".")[0], counts, n, n_test, labels)


def read_octis(path: Path, n: int) -> Corpus:
    """A corpus of OCTIS: its own parts, its order of words."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    train = [row for row in rows if row[1] == "train"][: n or None]
    test = [row for row in rows if row[1] == "test"][:TEST_DOCUMENTS]
    words: dict[str, int] = {}
    texts = [[words.setdefault(word, len(words)) for word in row[0].split()] for row in rows]
    place = {id(row): text for row, text in zip(rows, texts)}
    chosen = [np.array(place[id(row)], int) for row in (*train, *test)]
    ends = np.cumsum([0, *map(len, chosen)])
    tokens = np.concatenate(chosen), np.ones(ends[-1], np.int32)
    counts = sparse.csr_array((tokens[1], tokens[0], ends), shape=(len(chosen), len(words)))
    counts.sum_duplicates()
    labels = [row[2] for row in (*train, *test)]
    made = corpus_of(path.name.split(".")[0], counts, len(train), len(test), labels)
    return made._replace(texts=texts)


def corpus_of(
    name: str, counts: Any, n: int, n_test: int, labels: Any = None, truth: Any = None
) -> Corpus:
    """The first n documents to learn from, the next ones to score on."""
    counts = sparse.csr_array(counts, dtype=np.int32)
    test = counts[n : n + n_test]
    tested = None if labels is None else np.array(labels)[n : n + n_test]
    return Corpus(name, counts[:n], test, split_documents(test, seed=0), tested, truth=truth)
