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
        return ResampledSource(documents, int(rng.integers(2**31)))
    return documents[np.sort(rng.integers(documents.shape[0], size=documents.shape[0]))]


class ResampledRows:
    """A matrix on disk whose documents are drawn anew within each block: only blocks are read."""

    def __init__(self, files: StoredRows, edges: Any, seed: int):
        self.path, self.shape, self.n_tokens = files.path, files.shape, files.n_tokens
        self._files, self._edges, self._seed = files, edges, seed

    def rows(self, start: int, stop: int) -> Any:
        """The drawn documents from ``start`` to ``stop``."""
        first = int(np.searchsorted(self._edges, start, side="right")) - 1
        last = max(int(np.searchsorted(self._edges, stop)), first + 1)
        drawn = stack([self._block(number) for number in range(first, last)])
        begin = start - int(self._edges[first])
        return drawn[begin : begin + stop - start]

    def _block(self, number: int) -> Any:
        start, stop = (int(edge) for edge in self._edges[number : number + 2])
        # A stream for each block, so that a block is the same whenever it is read.
        chosen = np.random.default_rng([self._seed, number]).integers(
            stop - start, size=stop - start
        )
        return self._files.rows(start, stop)[np.sort(chosen)]


class ResampledSource(BlockSource):
    """A source of batches of the documents that were drawn."""

    def __init__(self, source: BlockSource, seed: int):
        files = ResampledRows(source.files, source.edges, seed)
        super().__init__(files, source.batch_size, source.edges, source.window_blocks)
