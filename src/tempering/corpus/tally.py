"""Which words make the vocabulary."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping
from itertools import count
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempering.corpus.checks import CorpusError

#: Different words that are held in memory; with more, the rarest are given up.
MOST_DISTINCT = 5_000_000


class Tally:
    """Numbers words as they come, and counts in how many documents they are, and how often.

    Beyond ``MOST_DISTINCT`` words, those in the fewest documents so far are given up, so that
    memory does not grow with the corpus; a warning says so. With a ``fixed`` vocabulary, words to
    columns, other words are passed over.
    """

    def __init__(self, fixed: Mapping[str, int] | None = None):
        self.fixed = fixed
        numbers = count()
        self._numbers: dict[str, int] = defaultdict(numbers.__next__)
        #: For each number, the documents it is in, and how often it occurs.
        self._documents, self._tokens = np.zeros((2, 1024), np.int64)
        self._given_up = 0

    def number(self, bag: Mapping[str, int]) -> tuple[list[int], list[int]]:
        """The words of a document as numbers, and their counts."""
        if self.fixed is not None:
            bag = {word: times for word, times in bag.items() if word in self.fixed}
            return [self.fixed[word] for word in bag], list(bag.values())
        return [self._numbers[word] for word in bag], list(bag.values())

    def observe(self, block: Any) -> None:
        """Count some documents."""
        if self.fixed is not None or block.nnz == 0:
            return
        n = int(block.indices.max()) + 1
        if n > self._documents.size:
            more = max(self._documents.size, n - self._documents.size)
            self._documents = np.pad(self._documents, (0, more))
            self._tokens = np.pad(self._tokens, (0, more))
        np.add.at(self._documents, block.indices, 1)
        np.add.at(self._tokens, block.indices, block.data)
        if len(self._numbers) > MOST_DISTINCT:
            self._give_up_rare()

    def _give_up_rare(self) -> None:
        """Forget the words in the fewest documents, until half as many may come again."""
        numbers = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        frequency = np.sort(self._documents[numbers])
        least = int(frequency[-MOST_DISTINCT // 2])
        rare = [word for word, i in self._numbers.items() if self._documents[i] <= least]
        for word in rare:
            del self._numbers[word]
        self._given_up += least

    def vocabulary(self, vectorizer: Any, n_documents: int) -> list[str]:
        """The words that a ``CountVectorizer`` chooses, in its order."""
        if self.fixed is not None:
            return sorted(self.fixed, key=self.fixed.__getitem__)
        if self._given_up:
            warnings.warn(
                f"there are more than {MOST_DISTINCT} different words; words in at most "
                f"{self._given_up} documents may be missing, or counted too low. Set min_df above "
                "that to be sure.",
                stacklevel=4,
            )
        words = sorted(self._numbers)
        numbers = np.array([self._numbers[word] for word in words], np.int64)
        documents, tokens = self._documents[numbers], self._tokens[numbers]
        least = _documents_meant(vectorizer.min_df, n_documents)
        most = _documents_meant(vectorizer.max_df, n_documents)
        if most < least:
            raise CorpusError(
                f"max_df={vectorizer.max_df!r} means fewer documents than "
                f"min_df={vectorizer.min_df!r}: {most} < {least}."
            )
        chosen = np.flatnonzero((documents >= least) & (documents <= most))
        if vectorizer.max_features is not None:
            # As scikit-learn does it, so that ties fall the same way.
            frequent = (-tokens[chosen]).argsort()[: vectorizer.max_features]
            chosen = np.sort(chosen[frequent])
        if chosen.size == 0:
            raise CorpusError(
                f"none of the {len(words)} words is left: lower min_df, raise max_df, or use fewer "
                "stop words."
            )
        return [words[i] for i in chosen]

    def columns(self, vocabulary: list[str]) -> NDArray[np.int32] | None:
        """The column of each number, -1 for none; None where the numbers are the columns."""
        if self.fixed is not None:
            return None
        columns = np.full(self._documents.size, -1, np.int32)
        columns[[self._numbers[word] for word in vocabulary]] = np.arange(len(vocabulary))
        return columns


def _documents_meant(frequency: Any, n_documents: int) -> float:
    """A document frequency as a number of documents."""
    return int(frequency) if isinstance(frequency, Integral) else frequency * n_documents
