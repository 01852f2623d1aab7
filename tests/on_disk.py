"""Counts in a Parquet file of small row groups, as a source of batches."""

from unittest import mock

from tempering.corpus import Corpus, open_source, parquet, write


def on_disk(folder, counts, batch_size=1024, block_size=parquet.BLOCK_SIZE, window_blocks=4):
    """The counts, written into a folder unless they are there, in blocks of so many documents."""
    path = folder / f"corpus-{block_size}.parquet"
    if not path.exists():
        with mock.patch.object(parquet, "BLOCK_SIZE", block_size):
            write(path, Corpus(counts))
    return open_source(path, batch_size, window_blocks)
