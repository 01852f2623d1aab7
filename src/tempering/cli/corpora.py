"""Corpora and models as the commands take them: any format, text too."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from tempering.cli.options import Counting, TextOptions, as_frequency, as_range
from tempering.cli.printing import say
from tempering.corpus import (
    CorpusError,
    Stored,
    WordCounting,
    model_vectorizer,
    open_corpus,
    open_source,
    read_texts,
)
from tempering.corpus.corpus import gather
from tempering.corpus.counting import WORDS, WORDS_AND_NUMBERS
from tempering.corpus.files import Lines
from tempering.corpus.parquet import ParquetRows
from tempering.corpus.text_counts import TextCounts
from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.saving import load
from tempering.estimators.words import check_words, words_of
from tempering.inference import ArraySource, BlockSource
from tempering.storage.state import StorageError


class Reading(NamedTuple):
    """A corpus, and how it is to be read."""

    path: Path
    how: TextOptions = TextOptions()

    def open(
        self,
        vectorizer: CountVectorizer | None = None,
        *,
        phrases: bool = False,
        jobs: int | None = None,
    ) -> Stored:
        """The corpus, to be read in blocks; text is counted by a process a core."""
        options = {"vectorizer": vectorizer, "phrases": phrases, "n_jobs": jobs or -1}
        return open_corpus(self.path, **options, **self._told())

    def texts(self, others: Sequence[str] = ()) -> tuple[list[str], list[list[Any]]]:
        """The beginnings of the texts, to be quoted, where it is text; and other columns."""
        with warnings.catch_warnings():
            # They were told when the texts were counted.
            warnings.simplefilter("ignore")
            told = self._told()
            if told.get("format") != "lines":  # others are told by the name of the file
                told.pop("format", None)
            read = read_texts(self.path, **told, others=others).records
            texts, values = [], []
            for document, beside in read:
                texts.append(document.text[:2000])
                values.append(beside)
        return texts, [list(column) for column in zip(*values)] or [[] for _ in others]

    def _told(self) -> dict[str, Any]:
        """The options that were given, as readers call them."""
        named = self.how._asdict()
        named["name_column"] = named.pop("id")
        return {name: value for name, value in named.items() if value is not None}

    def options(self) -> list[str]:
        """The options that another command needs to read the same."""
        given = self.how._asdict()
        pairs = [(option(name), value) for name, value in given.items() if value is not None]
        return [word for pair in pairs for word in pair]


def load_topics(path: Path) -> LatentDirichletAllocation:
    """A saved topic model."""
    model = load(path)
    if not isinstance(model, LatentDirichletAllocation):
        raise StorageError(f"{path} is a {type(model).__name__}; this command is for topic models.")
    return model


def counter(counting: Counting) -> CountVectorizer:
    """What counts all words but the rare and the common ones."""
    if counting.token_pattern is not None and counting.keep_numbers:
        raise typer.BadParameter("--token-pattern says itself whether numbers are words.")
    ngrams = as_range(counting.ngrams or ("2" if counting.phrases else "1"))
    if counting.phrases and ngrams[1] < 2:
        raise typer.BadParameter(
            "--phrases are of two words and more: say --ngrams 2, or leave out --ngrams; got "
            f"--ngrams {counting.ngrams}."
        )
    how = WordCounting(
        read_stop_words(counting.stop_words or "english"),
        counting.token_pattern or (WORDS_AND_NUMBERS if counting.keep_numbers else WORDS),
        ngrams,
    )
    return how.vectorizer(
        min_df=as_frequency(counting.min_df or "2", "--min-df"),
        max_df=as_frequency(counting.max_df or "0.5", "--max-df"),
        max_features=counting.max_words,
    )


def option(field: str) -> str:
    """What sets a field on the command line."""
    return f"--{field.replace('_', '-')}"


def say_if_counted(stored: Stored, reading: Reading, counting: Counting | None = None) -> None:
    """Tell of options for text that were given for counts."""
    if isinstance(stored, TextCounts):
        return
    given = {**reading.how._asdict(), **({} if counting is None else counting._asdict())}
    fields = [name for name, value in given.items() if value and name != "format"]
    if fields:
        named = f"{', '.join(map(option, fields))} {'has' if len(fields) == 1 else 'have'}"
        say(f"warning: {named} no effect: {reading.path} holds counts, not text.")


def read_stop_words(given: str) -> Any:
    """ "english", or the words of a file, or None for none."""
    if given == "english":
        return given
    if given == "none":
        return None
    if not Path(given).is_file():
        raise CorpusError(f"--stop-words must be english, none, or a file of words; got {given}.")
    # Text is counted in lower case.
    return [word.strip().lower() for word in Lines(given) if word.strip()]


def streams(stored: Stored) -> bool:
    """Whether batches can be read from the disk."""
    return isinstance(stored, ParquetRows)


class ModelCorpus:
    """Documents over the words of a model, read in blocks; text is counted as that of its fit."""

    def __init__(self, reading: Reading, model: Any):
        words = words_of(model)
        self.reading = reading
        self.stored = reading.open(None if words is None else model_vectorizer(model))
        self.is_text = isinstance(self.stored, TextCounts)
        say_if_counted(self.stored, reading)
        if self.is_text and words is None:
            raise CorpusError(
                f"{reading.path} is text, but the model was saved without its words, and cannot "
                "count it. Fit with words beside the corpus (NAME.vocab.txt)."
            )
        if self.is_text and not hasattr(model, "counting_"):
            say(
                "warning: the model does not know how its words were counted (it was fitted to "
                "counts): the text is taken in lower case, as words of two letters and more."
            )
        self.n_words = model.n_features_in_
        # Without names of words, some formats end at the last one that they use.
        if self.stored.vocabulary is not None or self.stored.shape[1] > self.n_words:
            check_words(model, self.stored, reading.path)

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
        source = self.source() if streams(self.stored) else ArraySource(self.counts())
        return source.sample(limit, np.random.default_rng(seed))

    def source(self) -> BlockSource:
        """Batches of what streams."""
        source = open_source(self.reading.path)
        # The files give their rows as many columns as this says.
        source.shape = source.files.shape = (source.size, self.n_words)
        return source

    def _widened(self, counts: Any) -> Any:
        """With a column for each word of the model: some formats end at the last word they use."""
        arrays = counts.data, counts.indices, counts.indptr
        return sparse.csr_array(arrays, (counts.shape[0], self.n_words))


def drawn(n_documents: int, n: int, seed: int) -> Any:
    """The places that every source draws: n without replacement, in order."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n_documents, size=n, replace=False))
