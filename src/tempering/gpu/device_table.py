"""A table of data as the device reads it: kept in its memory, or sent when it is needed.

In double precision, unlike topics: mixtures compare bounds, and second moments lose digits.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tempering.gpu.device_corpus import MEMORY_SHARE, device_memory
from tempering.gpu.jax_device import LazyModule, compiled, jax
from tempering.inference import ArraySource, Batch

#: Numbers of a table, or of one that is made of it, that are worked on at a time.
NUMBERS_AT_ONCE = 1 << 25

#: Numbers of a table that make a shard.
SHARD_NUMBERS = 1 << 27


def double_precision() -> AbstractContextManager[Any]:
    """Within it, JAX computes in float64."""
    home: Any = jax if hasattr(jax, "enable_x64") else LazyModule("jax.experimental")
    return home.enable_x64(True)


@dataclass(frozen=True)
class TableRows:
    """Some rows of a table on the device; those beyond the first n only fill up."""

    values: Any  # [at least n, D]
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n, self.values.shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The rows on the host, for what is done with few of them, or once in a fit."""
        return np.array(self.values[: self.n], dtype)

    def __getitem__(self, rows: Any) -> Any:
        if not isinstance(rows, slice):
            return np.asarray(self)[rows]
        start, stop, _ = rows.indices(self.n)
        if (start, stop) == (0, self.n):
            return self
        with double_precision():
            return TableRows(self.values[start:stop], stop - start)


class TableSource(ArraySource):
    """A table as :class:`tempering.inference.ArraySource`, its batches on the device."""

    def __init__(self, data: Any, batch_size: int | None = None, resident: bool | None = None):
        super().__init__(np.ascontiguousarray(data, dtype=np.float64), batch_size)
        if resident is None:
            resident = self.data.nbytes <= MEMORY_SHARE * device_memory()
        self._rows = ArraySource(np.arange(self.size), batch_size)
        self._table = None
        if resident:
            with double_precision():
                self._table = jax.device_put(self.data)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.data.shape

    def batches(self, seed: int, first_step: int = 0) -> Iterator[Batch]:
        if self._table is None:
            return super().batches(seed, first_step)
        return map(self._batch, self._rows.batches(seed, first_step))

    def sweep(self) -> Iterator[Batch]:
        return super().sweep() if self._table is None else map(self._batch, self._rows.sweep())

    def _batch(self, rows: Batch) -> Batch:
        if rows.size == self.size:
            return Batch(TableRows(self._table, self.size))
        # All batches have one shape, that of the largest.
        places = np.zeros(self.batch_size, np.int64)
        places[: rows.size] = rows.data
        with double_precision():
            return Batch(TableRows(_take(self._table, places), rows.size))


def as_rows(data: Any) -> TableRows:
    """A table of the host, sent to the device and filled up to one of few shapes."""
    if isinstance(data, TableRows):
        return data
    values = np.asarray(data, np.float64)
    n = len(values)
    step = 1 << max(0, n.bit_length() - 4)
    padded = np.zeros((-(-n // step) * step, values.shape[1]))
    padded[:n] = values
    with double_precision():
        return TableRows(jax.device_put(padded), n)


def one_for_each(value: Any, rows: TableRows) -> np.ndarray:
    """A number, or one for each row, as one for each row that is on the device."""
    spread = np.ones(rows.values.shape[0])
    spread[: rows.n] = value
    return spread


def shard_rows(n_columns: int) -> int:
    """Rows of a shard of a table with so many columns."""
    return max(1, SHARD_NUMBERS // n_columns)


@compiled
def _take(table, places):
    return table[places]
