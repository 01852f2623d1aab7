"""Batches of a sparse matrix on disk, in memory that does not grow with the number of documents."""

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from copy import copy
from itertools import count, pairwise
from typing import Any, Protocol, Self
from weakref import WeakValueDictionary

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray
from scipy import sparse

from tempering.inference.sources import Batch, Block, RowReference, stack
from tempering.models.arguments import check_whole

#: Threads that read blocks side by side, each of which it holds in memory.
MOST_READERS = 8


class StoredRows(Protocol):
    """A matrix on disk, of which blocks of rows, between ``edges``, are best read together."""

    path: Any
    shape: tuple[int, int]
    n_tokens: int | float
    edges: NDArray[np.int64]

    def rows(self, start: int, stop: int) -> sparse.csr_array:
        """The documents from ``start`` to ``stop``."""
        ...


class BlockSource:
    """A source of batches of a matrix on disk, whatever its format.

    Each pass visits every document once. It takes blocks of consecutive documents in random order
    and shuffles the documents of several blocks, a window, together; batches are cut from that,
    as many and as large as with :class:`ArraySource`. This is no uniform permutation: a corpus that
    is sorted, by topic or by date, wants smaller blocks or a larger window. Memory holds a window
    and a batch.

    Parameters
    ----------
    files : StoredRows
        The matrix.
    batch_size : int
        Documents in a minibatch, at most; with as many as there are, each batch is the whole data,
        read once and kept.
    window_blocks : int
        Blocks that are shuffled together.

    Examples
    --------
    What :func:`tempering.corpus.open_source` opens is one:

    >>> import tempfile
    >>> from tempering.corpus import open_source, write
    >>> from tempering.datasets import LDAStream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/big.parquet", LDAStream(n_documents=30, n_words=50))
    ...     [batch.size for batch in open_source(f"{folder}/big.parquet", batch_size=20).sweep()]
    [20, 10]
    """

    #: The words, one a column, where they are known.
    vocabulary: Sequence[str] | None = None
    #: How text became these words, where it did: a ``tempering.corpus.WordCounting``.
    counting: Any = None

    #: Where batches name their rows: the blocks that are in use, by number.
    named: MutableMapping[int, Block] | None = None

    def __init__(self, files: StoredRows, batch_size: int, window_blocks: int = 4):
        check_whole(batch_size=batch_size)
        check_whole(window_blocks=window_blocks)
        self.files = files
        self.shape = files.shape
        self.n_tokens = files.n_tokens
        self.batch_size = min(batch_size, self.size)
        self.edges = files.edges
        self.window_blocks = window_blocks

    @property
    def size(self) -> int:
        """Number of documents."""
        return self.shape[0]

    @property
    def whole(self) -> bool:
        """Whether each batch is the whole data."""
        return self.batch_size == self.size

    def sample(self, n: int, rng: np.random.Generator) -> sparse.csr_array:
        """At most n documents, drawn without replacement: the same as from :class:`ArraySource`."""
        check_whole(n=n)
        if n >= self.size:
            return self.files.rows(0, self.size)
        # `choice` makes an array of all numbers only when n is more than a 50th of them, so its
        # memory is in proportion to n, not to the corpus.
        return self._read(np.sort(rng.choice(self.size, size=n, replace=False)))

    def batches(self, seed: int, first_step: int = 0) -> Iterator[Batch]:
        """Batches for ever, pass after pass; of those before ``first_step`` nothing is read."""
        if self.whole:
            everything = Batch(self._rows(0, self.size))
            while True:
                yield everything
        n_batches = -(-self.size // self.batch_size)
        first_pass, skipped = divmod(first_step, n_batches)
        for epoch in count(first_pass):
            yield from self._pass(seed, epoch, n_batches, skipped if epoch == first_pass else 0)

    def sweep(self) -> Iterator[Batch]:
        """All documents once, in order."""
        for start in range(0, self.size, self.batch_size):
            yield Batch(self._rows(start, min(start + self.batch_size, self.size)))

    def by_reference(self) -> Self:
        """The same batches, of documents that are read where they are solved."""
        referring = copy(self)
        referring.named = WeakValueDictionary()
        return referring

    def _rows(self, start: int, stop: int) -> Any:
        """The documents from ``start`` to ``stop``."""
        if self.named is None:
            return self.files.rows(start, stop)
        first = int(np.searchsorted(self.edges, start, side="right")) - 1
        last = int(np.searchsorted(self.edges, stop))
        inside = self._blocks(range(first, last))
        begin = start - int(self.edges[first])
        return inside[begin : begin + stop - start]

    def _blocks(self, numbers: Iterable[int]) -> Any:
        """All documents of some blocks."""
        if self.named is None:
            return stack([self._block(number).read() for number in numbers])
        return RowReference.to_blocks(
            [self.named.setdefault(number, self._block(number)) for number in numbers]
        )

    def _block(self, number: int) -> Block:
        return Block(self.files, int(self.edges[number]), int(self.edges[number + 1]))

    def _read(self, chosen: NDArray[np.int64]) -> Any:
        """Some documents, in ascending order; those of a block in one go, blocks side by side."""
        ends = np.searchsorted(chosen, self.edges)
        parts = Parallel(min(cpu_count(), MOST_READERS), require="sharedmem")(
            delayed(self._block(number).take)(chosen[first:last] - self.edges[number])
            for number, (first, last) in enumerate(pairwise(ends))
            if last > first
        )
        return stack(parts)

    def _pass(self, seed: int, epoch: int, n_batches: int, skipped: int) -> Iterator[Batch]:
        """The batches of one pass but for the first ones."""
        least, n_larger = divmod(self.size, n_batches)
        number = skipped
        to_skip = skipped * least + min(skipped, n_larger)
        parts: list[sparse.csr_array] = []
        missing = least + (number < n_larger)
        for blocks, order in self._windows(seed, epoch):
            used = min(to_skip, order.size)
            to_skip -= used
            if used == order.size:
                continue
            documents = self._blocks(blocks)
            while used < order.size:
                chosen = order[used : used + missing]
                parts.append(documents[np.sort(chosen)])
                used += chosen.size
                missing -= chosen.size
                if missing == 0:
                    yield Batch(stack(parts))
                    number += 1
                    parts, missing = [], least + (number < n_larger)
            # Before the next window is read, lest memory holds two.
            del documents

    def _windows(
        self, seed: int, epoch: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The windows of one pass: the numbers of their blocks, and an order of their documents."""
        numbers = np.random.default_rng([seed, epoch]).permutation(self.edges.size - 1)
        for number, first in enumerate(range(0, numbers.size, self.window_blocks)):
            blocks = numbers[first : first + self.window_blocks]
            n_documents = int(np.sum(self.edges[blocks + 1] - self.edges[blocks]))
            # A stream for each window, so that one can be skipped. The last entry is never 0:
            # [seed, epoch, 0] would be the stream of the blocks' order again.
            rng = np.random.default_rng([seed, epoch, number + 1])
            yield blocks, rng.permutation(n_documents)

    def __repr__(self) -> str:
        name, path = type(self).__name__, str(self.files.path)
        return f"{name}({path!r}, shape={self.shape}, batch_size={self.batch_size})"
