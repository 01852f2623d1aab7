"""Corpora as the commands take them: any format, text too, with the words of a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from tempering.cli.options import as_frequency
from tempering.corpus import CorpusError, Stored, gather, open_corpus, open_source, read_texts
from tempering.corpus.directory import CSRDirectory
from tempering.corpus.lines import Lines
from tempering.corpus.parquet import ParquetRows
from tempering.corpus.text_counts import TextCounts

#: Characters of a text that are kept to be quoted.
QUOTED = 2000


class Reading(NamedTuple):
    """How a corpus is to be read."""

    path: Path
    format: str | None = None
    column: str | None = None
    name_column: str | None = None

    def open(self, vectorizer: CountVectorizer | None = None) -> Stored:
        """The corpus, to be read in blocks."""
        return open_corpus(
            self.path,
            self.format,
            column=self.column,
            name_column=self.name_column,
            vectorizer=vectorizer,
        )

    def texts(self) -> list[str]:
        """The beginnings of the texts, where the corpus is text."""
        documents = read_texts(self.path, self.column, self.name_column)
        return [document.text[:QUOTED] for document in documents]


def streams(stored: Stored) -> bool:
    """Whether batches can be read from the disk."""
    return isinstance(stored, ParquetRows | CSRDirectory)


def read_words(path: Path | None) -> list[str] | None:
    """A file of words, one a line."""
    if path is None:
        return None
    words = list(Lines(path))
    if not words:
        raise CorpusError(f"{path}: it holds no word.")
    return words


def word_counter(
    words: Any, stop_words: bool, min_df: str, max_df: str, max_words: int | None
) -> CountVectorizer:
    """How text is counted: these words, or all but the rare and the common ones."""
    if words is not None:
        return CountVectorizer(vocabulary=words)
    return CountVectorizer(
        stop_words="english" if stop_words else None,
        min_df=as_frequency(min_df),
        max_df=as_frequency(max_df),
        max_features=max_words,
    )


class ModelCorpus:
    """Documents over the words of a model, read in blocks.

    Parameters
    ----------
    reading : Reading
        The corpus. Text is counted with the words of the model.
    model : LatentDirichletAllocation
        Fitted.
    """

    def __init__(self, reading: Reading, model: Any):
        words = getattr(model, "vocabulary_", None)
        counter = None if words is None else CountVectorizer(vocabulary=list(words))
        self.reading = reading
        self.stored = reading.open(counter)
        self.is_text = isinstance(self.stored, TextCounts)
        if self.is_text and words is None:
            raise CorpusError(
                f"{reading.path} is text, but the model was saved without its words, and cannot "
                "count it. Fit with words beside the corpus, or with --vocabulary."
            )
        self.n_words = model.n_features_in_
        _check_words(reading.path, self.stored, words, self.n_words)

    @property
    def names(self) -> list[str] | None:
        """Names of the documents."""
        return None if self.stored.names is None else list(self.stored.names)

    def blocks(self) -> Iterator[Any]:
        """Some documents at a time, in order."""
        return (self._widened(block) for block in self.stored.blocks())

    def counts(self) -> Any:
        """All documents."""
        return self._widened(gather(self.stored).counts)

    def sample(self, limit: int, seed: int = 0) -> Any:
        """At most so many documents, drawn evenly, in the order of the corpus."""
        n_documents = self.stored.shape[0]
        if n_documents <= limit:
            return self.counts()
        if streams(self.stored):
            source = open_source(self.reading.path)
            return self._widened(source.sample(limit, np.random.default_rng(seed)))
        return self.counts()[drawn(n_documents, limit, seed)]

    def _widened(self, counts: Any) -> Any:
        """With a column for each word of the model: some formats end at the last word they use."""
        arrays = counts.data, counts.indices, counts.indptr
        return sparse.csr_array(arrays, (counts.shape[0], self.n_words))


def drawn(n_documents: int, n: int, seed: int) -> Any:
    """The places that every source draws: n without replacement, in order."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n_documents, size=n, replace=False))


def _check_words(path: Path, stored: Stored, words: Any, n_words: int) -> None:
    """Columns must stand for the same words as in the model."""
    found = stored.shape[1]
    if found > n_words or (stored.vocabulary is not None and found != n_words):
        raise CorpusError(
            f"{path} has {found} words, but the model {n_words}: it was fitted to another corpus."
        )
    if words is None or stored.vocabulary is None:
        return
    for column, (ours, theirs) in enumerate(zip(stored.vocabulary, words)):
        if ours != theirs:
            raise CorpusError(
                f"{path}: column {column} is {ours!r}, but {theirs!r} in the model: it was fitted "
                "to a corpus with other words."
            )
