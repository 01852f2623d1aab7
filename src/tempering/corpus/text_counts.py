"""Counts out of text, in memory that does not grow with the number of documents.

The first pass tokenises, numbers words as they come, counts in how many documents each is, and puts
the counts aside on disk. That decides the vocabulary. The second pass reads the counts again, and
keeps the columns of the vocabulary. Texts are gone through once, so that any iterator will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from tempering.corpus.corpus import CorpusError, canonical, fail
from tempering.corpus.counting import WordCounting
from tempering.corpus.spool import Bag, Spool
from tempering.corpus.tally import Tally
from tempering.corpus.text_files import TEXT_COLUMN, Document, text_field


class TextCounts:
    """Texts as counts of words, equal to ``vectorizer.fit_transform(texts)``, read in blocks.

    Parameters
    ----------
    texts : iterable
        Strings, :class:`Document`, lists of words, or mappings with a column of text.
    vectorizer : CountVectorizer, optional
        Tokeniser, stop words, least and largest document frequency, most words; by default that of
        :class:`WordCounting`.
    column, name_column : str, optional
        Where the text, and the name, of a mapping stand.

    Attributes
    ----------
    counting : WordCounting or None
        How a text became words; None where lists of words were given, or a function of one's own
        did it.
    """

    dtype = np.dtype(np.int32)

    def __init__(
        self,
        texts: Iterable[Any],
        vectorizer: CountVectorizer | None = None,
        column: str | None = None,
        name_column: str | None = None,
    ):
        chosen: Any = WordCounting().vectorizer() if vectorizer is None else vectorizer
        if not isinstance(chosen, CountVectorizer):
            raise CorpusError(f"vectorizer must be a CountVectorizer(...); got {chosen!r:.100}.")
        chosen._validate_params()
        chosen._validate_ngram_range()
        chosen._validate_vocabulary()
        fixed = chosen.vocabulary_ if chosen.fixed_vocabulary_ else None
        tally = Tally(fixed)
        analyze = chosen.build_analyzer()
        told = Told(analyze, column or TEXT_COLUMN, name_column)
        bags = (
            # Before the tally, which ranks words by how often they count.
            Bag(name, *tally.number(dict.fromkeys(words, 1) if chosen.binary else words))
            for name, words in told.counts(texts)
        )
        self._spool = Spool(bags, self.dtype, tally.observe)
        self.vocabulary = tally.vocabulary(chosen, self._spool.n_documents)
        self.shape = (self._spool.n_documents, len(self.vocabulary))
        self.names = self._spool.names
        self._columns = tally.columns(self.vocabulary)
        self.counting = None if told.had_words else WordCounting.of(chosen)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        for rows in self._spool.blocks():
            words = rows.indices if self._columns is None else self._columns[rows.indices]
            kept = words >= 0
            ends = np.append(0, np.cumsum(kept))[rows.indptr]
            arrays = rows.data[kept], words[kept], ends
            yield canonical(sparse.csr_array(arrays, (rows.shape[0], self.shape[1])))


class Told:
    """Names and words of texts, whatever these are."""

    def __init__(
        self, analyze: Callable[[Any], Iterable[str]], column: str, name_column: str | None
    ):
        self._analyze, self._column, self._name_column = analyze, column, name_column
        #: Whether a document came as a list of words.
        self.had_words = False

    def counts(self, texts: Iterable[Any]) -> Iterator[tuple[str | None, Counter[str]]]:
        """Name and words of each text."""
        for number, item in enumerate(texts):
            place = f"document {number} (from 0)"
            name, text = None, item
            if isinstance(item, Document):
                name, text = item
            elif isinstance(item, Mapping):
                text = text_field(item, self._column, "texts", place)
                name = str(item.get(self._name_column)) if self._name_column else None
            if isinstance(text, (list, tuple)) and all(isinstance(word, str) for word in text):
                self.had_words = True
                yield name, Counter(text)
                continue
            if not isinstance(text, (str, bytes)):
                problem = f"it should be text, or a list of words; it is a {type(text).__name__}."
                fail("texts", place, problem)
            try:
                yield name, Counter(self._analyze(text))
            except UnicodeDecodeError as error:
                fail("texts", place, f"it is not {error.encoding} ({error.reason}).")
