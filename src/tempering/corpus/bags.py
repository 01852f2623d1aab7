"""Documents that are lists of pairs (word number, count) already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from tempering.corpus.corpus import MOST_WORDS, CorpusError, canonical, fail
from tempering.corpus.spool import Bag, Spool


class BagCounts:
    """Documents that are lists of (word number, count), as gensim has them, read in blocks.

    Parameters
    ----------
    bags : iterable of lists of pairs
        The documents.
    dictionary : mapping from number to word, optional
        The words, such as a gensim ``Dictionary``; its numbers go from 0.
    """

    def __init__(self, bags: Iterable[Any], dictionary: Mapping[int, str] | None = None):
        self._largest = -1
        self._whole = True
        self._spool = Spool(self._checked(bags), np.float64)
        self.dtype = np.dtype(np.int32 if self._whole else np.float64)
        self.names = None
        self.vocabulary = None if dictionary is None else _words_in_order(dictionary)
        n_words = self._largest + 1 if self.vocabulary is None else len(self.vocabulary)
        if n_words <= self._largest:
            problem = f"word {self._largest} is out of range: the dictionary has {n_words} words."
            fail("bags", "", problem)
        self.shape = (self._spool.n_documents, n_words)

    def _checked(self, bags: Iterable[Any]) -> Iterator[Bag]:
        for number, bag in enumerate(bags):
            try:
                words = [int(word) for word, _ in bag]
                counts = [float(times) for _, times in bag]
            except (TypeError, ValueError) as error:
                place = f"document {number} (from 0)"
                fail("bags", place, f"it should be a list of pairs (word, count): {error}.")
            if words and not 0 <= min(words) <= max(words) < MOST_WORDS:
                fail("bags", f"document {number} (from 0)", "a word is out of range.")
            self._largest = max([self._largest, *words])
            self._whole = self._whole and all(times == int(times) for times in counts)
            yield Bag(None, words, counts)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        for rows in self._spool.blocks():
            arrays = rows.data.astype(self.dtype), rows.indices, rows.indptr
            yield canonical(sparse.csr_array(arrays, (rows.shape[0], self.shape[1])), "bags")


def _words_in_order(dictionary: Mapping[int, str]) -> list[str]:
    """The words by number."""
    try:
        return [dictionary[number] for number in range(len(dictionary))]
    except KeyError as error:
        raise CorpusError(
            f"dictionary must have the numbers 0 to {len(dictionary) - 1}; {error} is missing."
        ) from None
