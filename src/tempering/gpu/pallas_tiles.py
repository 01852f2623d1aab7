"""How much of a table a program of a GPU kernel takes at a time."""

from __future__ import annotations

from typing import Any, NamedTuple


class Tile(NamedTuple):
    """How much a program takes at a time; measured on an H200, and not critical."""

    numbers: int  # of log β or log θ
    numbers_a_thread: int

    def shape(self, n_topics: int, n_places: int) -> tuple[int, int]:
        """Places (at most as many as there are) and topics, both powers of two."""
        lanes = 1 << (n_topics - 1).bit_length()
        places = max(1, min(self.numbers // lanes, 64))
        return min(places, 1 << (n_places.bit_length() - 1)), lanes

    def compiler_params(self, shape: tuple[int, int]) -> Any:
        """Threads for a tile of this shape."""
        n_warps = shape[0] * shape[1] // (32 * self.numbers_a_thread)
        return triton().CompilerParams(num_warps=max(1, min(16, n_warps)), num_stages=2)


def triton() -> Any:
    """The part of Pallas that is for GPUs: masked loads and stores, and compiler parameters."""
    from jax.experimental.pallas import triton

    return triton
