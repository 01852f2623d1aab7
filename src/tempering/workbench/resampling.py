"""Documents drawn anew, with replacement: of a matrix, or of a corpus on disk block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempering.inference import BlockSource
from tempering.inference.sources import stack
from tempering.inference.streaming import StoredRows


def resampled(documents: Any, rng: np.random.Generator) -> Any:
    """As many documents as there are, each drawn from all; of a source, from those of its block."""
    if isinstance(documents, BlockSource):
        files = ResampledRows(documents.files, int(rng.integers(2**31)))
        return BlockSource(files, documents.batch_size, documents.window_blocks)
    return documents[np.sort(rng.integers(documents.shape[0], size=documents.shape[0]))]


class ResampledRows:
    """A matrix on disk whose documents are drawn anew within each block: only blocks are read."""

    def __init__(self, files: StoredRows, seed: int):
        self.path, self.shape, self.n_tokens = files.path, files.shape, files.n_tokens
        self.edges = files.edges
        self._files, self._seed = files, seed

    def rows(self, start: int, stop: int) -> Any:
        """The drawn documents from ``start`` to ``stop``."""
        first = int(np.searchsorted(self.edges, start, side="right")) - 1
        last = max(int(np.searchsorted(self.edges, stop)), first + 1)
        drawn = stack([self._block(number) for number in range(first, last)])
        begin = start - int(self.edges[first])
        return drawn[begin : begin + stop - start]

    def _block(self, number: int) -> Any:
        start, stop = (int(edge) for edge in self.edges[number : number + 2])
        # A stream for each block, so that a block is the same whenever it is read.
        chosen = np.random.default_rng([self._seed, number]).integers(
            stop - start, size=stop - start
        )
        return self._files.rows(start, stop)[np.sort(chosen)]
