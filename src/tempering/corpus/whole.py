"""Real counts for formats that hold whole ones alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tempering.corpus.corpus import LARGEST_COUNT, Stored, fail


class WholeCounts:
    """A corpus of real counts as one of whole counts, refused where they are not.

    Parameters
    ----------
    path : Path
        Where it is to be written, for messages.
    stored : Stored
        The corpus.
    """

    dtype = np.dtype(np.int32)

    def __init__(self, path: Path, stored: Stored):
        self.path = path
        self.stored = stored
        self.shape = stored.shape
        self.vocabulary = stored.vocabulary
        self.names = stored.names

    def blocks(self) -> Iterator[Any]:
        """Some documents at a time, in order."""
        first = 0
        for block in self.stored.blocks():
            wrong = (block.data != np.floor(block.data)) | (block.data > LARGEST_COUNT)
            if wrong.any():
                entry = int(np.argmax(wrong))
                row = first + int(np.searchsorted(block.indptr, entry, side="right")) - 1
                fail(
                    self.path,
                    f"document {row} (from 0)",
                    f"this format holds whole counts; got {block.data[entry]}. Write .npz, "
                    ".parquet, .mtx or .svmlight instead.",
                )
            yield block.astype(self.dtype)
            first += block.shape[0]
