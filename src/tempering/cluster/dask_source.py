"""What workers of a cluster run, and the rows that they keep; Dask bags and dataframes."""

import ctypes
import sys
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import get_worker
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from tempering.inference.executors import SolveShard, add_in_pairs
from tempering.inference.sources import (
    ArraySource,
    Block,
    BlockSource,
    RowReference,
    stack,
    take_rows,
)

# Dask's own types have each result of a client also as a coroutine, for asynchronous clients.
Client = Any
Future = Any

#: Rows of an array that workers are sent as one.
ROWS_OF_A_BLOCK = 4096


def solve_run(function: Any, items: list[Any], blocks: list[Any], add: bool) -> Any:
    """Apply a function to each item of a run; with ``add``, only their sum leaves the worker."""
    set_up_process()
    if hasattr(function, "on_threads"):
        function = function.on_threads(get_worker().state.nthreads)
    solved = (function(with_rows(item, blocks) if blocks else item) for item in items)
    return add_in_pairs(solved) if add else list(solved)


def name_blocks(function: Any, items: list[Any]) -> tuple[list[Any], list[Block]]:
    """Items as they are sent, and the blocks in which they name their rows, if they do."""
    if not isinstance(function, SolveShard) or not isinstance(items[0][0][1], RowReference):
        return items, []
    seen: dict[Block, int] = {}
    shards = []
    for (place, data), before in items:
        parts = [(seen.setdefault(block, len(seen)), rows) for block, rows in data.parts]
        shards.append(((place, parts), before))
    return shards, list(seen)


def with_rows(shard: Any, blocks: list[Any]) -> Any:
    """A shard with its rows, which it named."""
    (place, parts), before = shard
    return (place, stack([take_rows(blocks[number], rows) for number, rows in parts])), before


def read_block(block: Block) -> Any:
    """A block of a corpus on disk."""
    try:
        return block.read()
    except OSError as error:
        raise OSError(
            f"{error} This was on the worker {get_worker().address}: each worker must see the "
            "corpus at the same path."
        ) from error


@cache
def set_up_process() -> None:
    """Have BLAS on one thread, as in each fit, and keep memory that was freed.

    Dask's workers give it back to the system, and making it anew took a fifth of each step.
    """
    threadpool_limits(limits=1, user_api="blas")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(-3, 2**25)  # M_MMAP_THRESHOLD, the largest that glibc takes
        mallopt(-1, 2**28)  # M_TRIM_THRESHOLD, what a step of large topics needs


class ArrayBlock(Block):
    """Rows of an array in the memory of this process."""

    def read(self) -> Any:
        return self.files[self.start : self.stop]


class DaskBlock(Block):
    """Rows that are in the memory of the workers, and are made again there if they are lost."""

    def __init__(self, client: Client, future: Future, shape: tuple[int, int]):
        self.client, self.future, self.shape = client, future, shape

    def read(self) -> Any:
        return self.future.result()

    def take(self, rows: NDArray[np.int32]) -> Any:
        """Some of the rows: only these leave the worker."""
        return self.client.submit(take_rows, self.future, rows, pure=False).result()


def by_reference(source: ArraySource) -> ArraySource:
    """An array that is the batch of every step, in blocks that workers can keep."""
    ends = [*range(0, source.size, ROWS_OF_A_BLOCK), source.size]
    blocks = [ArrayBlock(source.data, start, stop) for start, stop in pairwise(ends)]
    source = copy(source)
    source.named = RowReference.to_blocks(blocks)
    return source


class DaskSource(BlockSource):
    """A source of batches of a Dask collection of documents.

    Its partitions are computed once, and kept in the memory of the workers as sparse matrices. They
    are the blocks that batches are drawn from; see :class:`tempering.inference.BlockSource`. A
    partition that is lost with its worker is computed again.

    Parameters
    ----------
    documents : dask.bag.Bag or dask.dataframe.DataFrame
        A bag of documents, each a mapping from the numbers of words (from 0) to their counts, or
        an iterable of pairs of both; or a dataframe with columns ``ids`` and ``counts``, which hold
        lists of equal lengths.
    client : dask.distributed.Client
        Of the cluster.
    batch_size : int or callable
        Documents in a minibatch, at most; or a function from the number of documents to it.
    n_words : int, optional
        Size of the vocabulary; by default, one more than the largest number of a word.

    Examples
    --------
    >>> import dask.bag as bag
    >>> from distributed import Client
    >>> from tempering.cluster import DaskSource
    >>> documents = bag.from_sequence([{0: 3, 1: 1}, {2: 2}, {0: 1}], npartitions=2)
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     source = DaskSource(documents, client, batch_size=2)
    >>> source.shape, source.n_tokens
    ((3, 3), 7)
    """

    def __init__(
        self,
        documents: Any,
        client: Client,
        batch_size: int | Callable[[int], int] = 1024,
        *,
        n_words: int | None = None,
    ):
        files = DaskRows(documents, client, n_words)
        size = batch_size(files.shape[0]) if callable(batch_size) else batch_size
        super().__init__(files, size)
        self._held = files.blocks

    def _block(self, number: int) -> Block:
        return self._held[number]


class DaskRows:
    """The partitions of a Dask collection as sparse matrices in the memory of its workers."""

    def __init__(self, documents: Any, client: Client, n_words: int | None):
        if n_words is not None and n_words < 1:
            raise ValueError(f"n_words must be at least 1; got {n_words}.")
        if type(documents).__name__ not in ("Bag", "DataFrame"):  # a Delayed has any attribute
            raise ValueError(
                "documents must be a Dask bag or dataframe, or in the memory of this process; got "
                f"{type(documents).__name__}."
            )
        if client.status != "running":
            raise ValueError(f"client must be running; it is {client.status}.")
        self.path = f"a {type(documents).__module__.split('.')[1]} of {client.scheduler.address}"
        if hasattr(documents, "columns"):
            if missing := {"ids", "counts"} - set(documents.columns):
                raise ValueError(
                    "a dataframe of documents must have the columns 'ids' and 'counts'; "
                    f"{', '.join(sorted(missing))} is missing."
                )
            documents = documents[["ids", "counts"]]
            if any(str(dtype).startswith("string") for dtype in documents.dtypes):
                raise ValueError(
                    "the columns 'ids' and 'counts' must hold lists, of which Dask has made text: "
                    "say dask.config.set({'dataframe.convert-string': False}) before it is made."
                )
        partitions = client.compute(documents.to_delayed())
        made = client.map(count_words, partitions, range(len(partitions)), pure=False)
        measures = client.gather(client.map(measure, made, pure=False))
        largest = max((word for _, word, _ in measures), default=-1)
        if n_words is not None and largest >= n_words:
            raise ValueError(f"n_words={n_words}, but a document has the word {largest}.")
        self.n_tokens: int | float = sum(n_tokens for _, _, n_tokens in measures)
        if not self.n_tokens > 0:
            raise ValueError("documents must hold at least one word; every document is empty.")
        width = n_words or largest + 1
        blocks = client.map(with_width, made, n_words=width, pure=False)
        self.blocks = [
            DaskBlock(client, block, (n_documents, width))
            for block, (n_documents, _, _) in zip(blocks, measures)
            if n_documents
        ]
        self.edges = np.cumsum([0, *(block.shape[0] for block in self.blocks)])
        self.shape = (int(self.edges[-1]), width)

    def rows(self, start: int, stop: int) -> Any:
        """The documents from ``start`` to ``stop``, fetched."""
        return RowReference.to_blocks(self.blocks)[start:stop].read()


def measure(block: Any) -> tuple[int, int, int | float]:
    """The number of documents in a block, the largest of a word, and the sum of counts."""
    return block.shape[0], int(block.indices.max(initial=-1)), block.data.sum().item()


def with_width(block: Any, n_words: int) -> Any:
    """A block with as many columns as the vocabulary has words."""
    shape = (block.shape[0], n_words)
    return sparse.csr_array((block.data, block.indices, block.indptr), shape=shape)


def count_words(documents: Any, partition: int) -> Any:
    """A partition of a bag or of a dataframe as a matrix; what is no document is refused."""
    framed = hasattr(documents, "columns")
    rows = zip(documents["ids"], documents["counts"]) if framed else documents
    largest = np.iinfo(np.int32).max
    words, values, ends = [np.empty(0)], [np.empty(0)], [0]
    for number, row in enumerate(rows):
        try:
            lists = row if framed else _lists(row)
            own, times = (np.asarray(each, np.float64) for each in lists)
            right = own.ndim == 1 and own.shape == times.shape
            right = right and np.all((own >= 0) & (own < largest))
            if not right or np.any(own % 1) or not np.all((times >= 0) & np.isfinite(times)):
                raise ValueError(f"got {own} and {times}")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"partition {partition}, document {number} (from 0): it must be whole numbers of "
                f"words, from 0, and as many counts, finite and not negative: {error!s:.200}."
            ) from None
        words.append(own)
        values.append(times)
        ends.append(ends[-1] + own.size)
    columns, numbers = np.concatenate(words), np.concatenate(values)
    shape = (len(ends) - 1, int(columns.max(initial=-1)) + 1)
    matrix: Any = sparse.csr_array((numbers, columns.astype(np.int32), ends), shape=shape)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    # Not before: sums of whole numbers may be too large for int32.
    whole = not np.any(matrix.data % 1) and matrix.data.max(initial=0) <= largest
    return matrix.astype(np.int32) if whole else matrix


def _lists(document: Any) -> list[Any]:
    """Words and counts of a document that is a mapping, or pairs of both."""
    pairs = document.items() if isinstance(document, Mapping) else document
    return [*zip(*[(word, times) for word, times in pairs])] or [(), ()]
