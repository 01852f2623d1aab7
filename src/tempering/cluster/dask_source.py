"""Documents in a Dask bag or dataframe, as batches; they stay in the memory of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.cluster.dask_connection import Client, Future, require_distributed
from tempering.inference.remote import BlockRows, Loan, Recipe, RowReference, stack
from tempering.inference.streaming import BlockSource

#: Columns of a dataframe.
IDS, COUNTS = "ids", "counts"


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
    window_blocks : int
        Partitions that are shuffled together.

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
        window_blocks: int = 4,
    ):
        files = DaskRows(documents, client, n_words)
        size = batch_size(files.shape[0]) if callable(batch_size) else batch_size
        super().__init__(files, size, files.edges, window_blocks)

    files: DaskRows

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        if n < 1:
            raise ValueError(f"n must be at least 1; got {n}.")
        everything = RowReference.to_blocks(self.files, self.files.blocks)
        if n >= self.size:
            return everything.read()
        return everything[np.sort(rng.choice(self.size, size=n, replace=False))].read()

    def by_reference(self) -> Self:
        referring = super().by_reference()
        referring.referred = self.files
        return referring


class DaskRows:
    """The partitions of a Dask collection as sparse matrices in the memory of its workers."""

    def __init__(self, documents: Any, client: Client, n_words: int | None):
        if n_words is not None and n_words < 1:
            raise ValueError(f"n_words must be at least 1; got {n_words}.")
        self.path = f"a {type(documents).__module__.split('.')[1]} of {client.scheduler.address}"
        self._client = client
        convert = bag_counts
        if hasattr(documents, "columns"):
            missing = {IDS, COUNTS} - set(documents.columns)
            if missing:
                raise ValueError(
                    f"a dataframe of documents must have the columns {IDS!r} and {COUNTS!r}; "
                    f"{', '.join(sorted(missing))} is missing."
                )
            documents, convert = documents[[IDS, COUNTS]], table_counts
        partitions = client.compute(documents.to_delayed())
        futures = [
            client.submit(convert, partition, number, pure=False)
            for number, partition in enumerate(partitions)
        ]
        totals = client.gather([client.submit(total_of, block, pure=False) for block in futures])
        filled = [number for number, total in enumerate(totals) if total.n_documents]
        largest = max((total.largest for total in totals), default=-1)
        if n_words is not None and largest >= n_words:
            raise ValueError(f"n_words={n_words}, but a document has the word {largest}.")
        self.n_tokens: int | float = sum(total.n_tokens for total in totals)
        if not self.n_tokens > 0:
            raise ValueError("documents must hold at least one word; every document is empty.")
        self._futures = [futures[number] for number in filled]
        sizes = [totals[number].n_documents for number in filled]
        self.edges = np.append(0, np.cumsum(sizes, dtype=np.int64))
        self.shape = (int(self.edges[-1]), largest + 1 if n_words is None else n_words)
        has = client.who_has(self._futures)
        self._places = [next(iter(has.get(future.key, ())), None) for future in self._futures]

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Where each block begins and ends."""
        return list(zip(self.edges[:-1].tolist(), self.edges[1:].tolist()))

    def rows(self, start: int, stop: int) -> Any:
        """The documents from ``start`` to ``stop``, fetched."""
        everything = RowReference.to_blocks(self, self.blocks)
        return everything[start:stop].read()

    def fetch(self, parts: list[BlockRows]) -> Any:
        """Some rows of some blocks: only these leave the workers."""
        loan = self.lend(parts)
        assert isinstance(loan.recipe, TakeRows)
        futures = [
            self._client.submit(TakeRows([part], self.shape[1]).make, block, pure=False)
            for part, block in zip(parts, loan.lent)
        ]
        return stack(self._client.gather(futures))

    def lend(self, parts: list[BlockRows]) -> Loan:
        """Blocks that a worker takes rows from; it is best the one that has the largest share."""
        numbers = [int(np.searchsorted(self.edges, part.start)) for part in parts]
        most = int(np.argmax([part.rows.size for part in parts]))
        lent: tuple[Future, ...] = tuple(self._futures[number] for number in numbers)
        return Loan(TakeRows(parts, self.shape[1]), lent, self._places[numbers[most]])


class TakeRows(Recipe):
    """Rows of blocks in the memory of workers."""

    def __init__(self, parts: list[BlockRows], n_words: int):
        self.parts = parts
        self.n_words = n_words

    def make(self, *lent: Any) -> Any:
        return stack(
            [part.take(block.matrix(self.n_words)) for part, block in zip(self.parts, lent)]
        )


class Counts(NamedTuple):
    """A partition as a sparse matrix of as many columns as will be told."""

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[Any]

    def matrix(self, n_words: int) -> Any:
        """The matrix."""
        shape = (self.indptr.size - 1, n_words)
        return sparse.csr_array((self.counts, self.ids, self.indptr), shape=shape)


class Total(NamedTuple):
    """What a partition is, in numbers."""

    n_documents: int
    largest: int
    n_tokens: int | float


def total_of(block: Counts) -> Total:
    """The size of a partition."""
    return Total(block.indptr.size - 1, int(block.ids.max(initial=-1)), block.counts.sum().item())


def bag_counts(documents: Iterable[Any], partition: int) -> Counts:
    """A partition of a bag."""
    ids, counts = [], []
    for document in documents:
        pairs = document.items() if isinstance(document, Mapping) else document
        both = np.array([tuple(pair) for pair in pairs], dtype=object).reshape(-1, 2)
        ids.append(both[:, 0])
        counts.append(both[:, 1])
    return checked_counts(ids, counts, partition)


def table_counts(table: Any, partition: int) -> Counts:
    """A partition of a dataframe."""
    return checked_counts(list(table[IDS]), list(table[COUNTS]), partition)


def checked_counts(ids: list[Any], counts: list[Any], partition: int) -> Counts:
    """Lists of words and of counts as arrays; what cannot be a document is refused, by its place.

    Words of a document are sorted, and none stands twice.
    """
    sizes = [len(row) for row in ids]
    for row, (n_ids, n_counts) in enumerate(zip(sizes, map(len, counts))):
        if n_ids != n_counts:
            _refuse(partition, row, f"it has {n_ids} ids, but {n_counts} counts")
    indptr = np.append(0, np.cumsum(sizes, dtype=np.int64))
    words, values = _numbers(ids, partition, "ids"), _numbers(counts, partition, "counts")
    bad = ~((words == np.floor(words)) & (words >= 0) & (words < np.iinfo(np.int32).max))
    _refuse_first(bad, indptr, words, partition, "a word must be a whole number from 0; it has")
    bad = ~(np.isfinite(values) & (values >= 0))
    _refuse_first(bad, indptr, values, partition, "a count must be finite and not negative; it has")
    n_columns = int(words.max(initial=-1)) + 1
    if np.all((values == np.floor(values)) & (values <= np.iinfo(np.int32).max)):
        values = values.astype(np.int32)
    arrays = values, words.astype(np.int32), indptr
    matrix: Any = sparse.csr_array(arrays, shape=(len(ids), n_columns))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return Counts(matrix.indptr.astype(np.int64), matrix.indices, matrix.data)


def _numbers(rows: list[Any], partition: int, name: str) -> NDArray[Any]:
    try:
        return np.concatenate([np.empty(0), *(np.asarray(row, np.float64) for row in rows)])
    except (TypeError, ValueError) as error:
        raise ValueError(f"partition {partition}: {name} must be numbers: {error}.") from None


def _refuse_first(
    bad: NDArray[np.bool_], indptr: NDArray[np.int64], values: Any, partition: int, problem: str
) -> None:
    if bad.any():
        entry = int(np.argmax(bad))
        row = int(np.searchsorted(indptr, entry, side="right")) - 1
        _refuse(partition, row, f"{problem} {values[entry]:g}")


def _refuse(partition: int, row: int, problem: str) -> None:
    raise ValueError(f"partition {partition}, document {row} (from 0): {problem}.")


def is_dask_collection(data: Any) -> bool:
    """Whether data are a Dask bag or dataframe."""
    if type(data).__module__.split(".")[0] not in ("dask", "dask_expr"):
        return False
    require_distributed()
    from dask.base import is_dask_collection

    return is_dask_collection(data)
