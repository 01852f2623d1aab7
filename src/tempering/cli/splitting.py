"""A corpus in two parts: documents to fit, and some to be scored that the fit never sees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.cli.corpora import Reading, drawn, streams
from tempering.corpus import CorpusError, Stored, gather, open_source
from tempering.inference import BlockSource
from tempering.inference.streaming import StoredRows

#: Documents kept for validation unless told otherwise: this share, and never more than that many.
SHARE, MOST = 0.05, 1000


class Parts(NamedTuple):
    """A corpus as ``fit`` takes it."""

    training: Any  # a CSR matrix in memory, or a source that streams from the disk
    validation: Any  # a CSR matrix of documents that are not in it, or None
    n_documents: int  # of both


def split_corpus(
    reading: Reading, stored: Stored, validation: float | None, batch_size: int, seed: int
) -> Parts:
    """Keep some documents for validation, drawn by the seed; ``batch_size`` is for streams."""
    n_documents = stored.shape[0]
    n_kept = n_validation(n_documents, validation)
    places = drawn(n_documents, n_kept, seed)
    if not streams(stored):
        counts: Any = gather(stored).counts
        if not n_kept:
            return Parts(counts, None, n_documents)
        others = np.setdiff1d(np.arange(n_documents), places)
        return Parts(counts[others], counts[places], n_documents)
    source = open_source(reading.path, batch_size)
    if not n_kept:
        return Parts(source, None, n_documents)
    kept = source.sample(n_kept, np.random.default_rng(seed))
    return Parts(Remaining(source, places, kept.sum().item()), kept, n_documents)


def n_validation(n_documents: int, validation: float | None) -> int:
    """The number of documents that are kept for validation."""
    if validation is None:
        return min(int(SHARE * n_documents), MOST)
    n = validation * n_documents if validation < 1 else validation
    if not n < n_documents:  # so is NaN, and infinity
        raise CorpusError(
            f"--validation {validation:g} leaves nothing to fit: there are {n_documents} documents."
        )
    return int(n)


class RemainingRows:
    """A matrix on disk but for some rows, given in rising order; n_tokens is what remains."""

    def __init__(self, files: StoredRows, left_out: NDArray[np.int64], n_tokens: int | float):
        self.path = files.path
        self.shape = (files.shape[0] - left_out.size, files.shape[1])
        self.n_tokens = n_tokens
        self._files, self._left_out = files, left_out
        self._remaining_before = left_out - np.arange(left_out.size)

    def rows(self, start: int, stop: int) -> Any:
        """The remaining documents from ``start`` to ``stop``."""
        if start >= stop:
            return self._files.rows(0, 0)
        first, last = self._place(start), self._place(stop - 1) + 1
        rows: Any = self._files.rows(first, last)
        here = slice(*np.searchsorted(self._left_out, [first, last]))
        gone = self._left_out[here] - first
        return rows[np.setdiff1d(np.arange(last - first), gone)] if gone.size else rows

    def _place(self, row: int) -> int:
        """Where a remaining row stands in the file."""
        return row + int(np.searchsorted(self._remaining_before, row, side="right"))


class Remaining(BlockSource):
    """A source of batches of a corpus on disk, but for documents at rising places."""

    def __init__(self, source: BlockSource, left_out: NDArray[np.int64], n_tokens: int | float):
        files = RemainingRows(source.files, left_out, source.n_tokens - n_tokens)
        edges = np.unique(source.edges - np.searchsorted(left_out, source.edges))
        super().__init__(files, source.batch_size, edges, source.window_blocks)
        self.counting = source.counting
