"""Batches of a corpus in a Parquet file, a few row groups in memory at a time."""

from __future__ import annotations

import os
from pathlib import Path

from tempering.corpus.corpus import CorpusError
from tempering.corpus.parquet import ParquetRows
from tempering.inference.streaming import BlockSource


class ParquetSource(BlockSource):
    """A source of batches of a Parquet file with columns ``doc_id``, ``ids`` and ``counts``.

    How batches are drawn is told at :class:`BlockSource`; the blocks are the row groups of the
    file. :func:`tempering.corpus.write` makes them of 8,192 documents. A file of larger ones takes
    more memory; ``convert`` it to make them smaller.

    Parameters
    ----------
    path : path
        The file.
    batch_size : int
        Documents in a minibatch, at most.
    window_blocks : int
        Row groups that are shuffled together.

    Attributes
    ----------
    vocabulary : list of str or None
        The words, if they stand beside the file.

    Examples
    --------
    >>> import tempfile
    >>> from tempering.corpus import ParquetSource, write
    >>> from tempering.datasets import LDAStream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/big.parquet", LDAStream(n_documents=100, n_words=50))
    ...     ParquetSource(f"{folder}/big.parquet", batch_size=10).shape
    (100, 50)
    """

    files: ParquetRows

    def __init__(
        self, path: str | os.PathLike[str], batch_size: int = 1024, window_blocks: int = 4
    ):
        files = ParquetRows(Path(path))
        if not files.n_tokens > 0:
            raise CorpusError(f"{path}: there is not one word in its {files.shape[0]} documents.")
        super().__init__(files, batch_size, files.edges, window_blocks)
        self.vocabulary = files.vocabulary
