"""A corpus as the device reads it: kept in its memory, or sent group by group."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tempering.scale.groups import Group, Rectangle, fill_rectangle

#: The part of the device's memory that a corpus may fill.
MEMORY_SHARE = 0.4

#: Bytes of one entry: its word and its count.
ENTRY_BYTES = 8


class ResidentCorpus:
    """All documents in the memory of the device; a group is gathered there."""

    def __init__(self, data: Any):
        self.n_words = data.shape[1]
        self._indptr = np.asarray(data.indptr, np.int64)
        self._indices = on_device(np.ascontiguousarray(data.indices, np.int32))
        # Counts in a small type are sent as they are, and widened on the device.
        small = data.data.dtype.itemsize < 4
        self._counts = on_device(
            np.ascontiguousarray(data.data, data.data.dtype if small else np.float32)
        )

    def rectangle(self, group: Group) -> Any:
        """The group's words and counts, as arrays on the device."""
        extent = np.zeros((2, group.size), np.int32)
        extent[0, : group.rows.size] = self._indptr[group.rows]
        extent[1, : group.rows.size] = self._indptr[group.rows + 1] - self._indptr[group.rows]
        gather = _compiled_gather(group.width, self.n_words)
        return gather(self._indices, self._counts, extent)


class HostCorpus:
    """Documents in the memory of the host; a group is sent while the device still computes."""

    def __init__(self, data: Any):
        self.n_words = data.shape[1]
        self._matrix = (data.indptr, data.indices, data.data)

    def rectangle(self, group: Group) -> Any:
        """The group's words and counts, as arrays on the device."""
        return Rectangle(*map(on_device, fill_rectangle(*self._matrix, group, self.n_words)))


def place_corpus(data: Any, resident: bool | None = None) -> ResidentCorpus | HostCorpus:
    """The corpus on the device if it fits there, or as ``resident`` says."""
    if resident is None:
        fits = data.nnz * ENTRY_BYTES <= MEMORY_SHARE * _device_memory()
        resident = fits and data.nnz < np.iinfo(np.int32).max
    return ResidentCorpus(data) if resident else HostCorpus(data)


def _device_memory() -> float:
    """Bytes that the device may use; as many as one likes where it does not say."""
    import jax

    statistics = jax.devices()[0].memory_stats()
    return float(statistics["bytes_limit"]) if statistics else float("inf")


def on_device(array: np.ndarray) -> Any:
    """The array in the memory of the device."""
    import jax

    return jax.device_put(array)


@cache
def _compiled_gather(width: int, n_words: int) -> Any:
    import jax
    import jax.numpy as jnp

    @jax.jit
    def gather(indices, counts, extent):
        starts, lengths = extent
        places = jnp.arange(width)
        held = places < lengths[:, None]
        positions = jnp.where(held, starts[:, None] + places, 0)
        return Rectangle(
            jnp.where(held, indices[positions], n_words),
            jnp.where(held, counts[positions].astype(jnp.float32), 0.0),
            lengths,
        )

    return gather
