"""How large the minibatches of a run should be."""

from __future__ import annotations

import numpy as np

#: Steps of a run whose minibatches are as large as it likes: fewer leave topics no time to follow
#: the temperature, more cost time and find nothing better.
STEPS = 2000

#: Smaller batches are mostly noise and overhead; larger ones are no faster on a CPU.
SMALLEST_BATCH, LARGEST_BATCH = 16, 1024

#: A GPU needs some thousand documents at a time; larger batches are no faster there either.
LARGEST_GPU_BATCH = 8192


def batch_size_for(n_visits: float, largest: int = LARGEST_BATCH) -> int:
    """Documents of a minibatch, in a run of so many visits to documents.

    >>> batch_size_for(2_000 * 10), batch_size_for(100_000 * 10), batch_size_for(10_000_000)
    (16, 500, 1024)
    >>> batch_size_for(290_000 * 10, LARGEST_GPU_BATCH), batch_size_for(36e6, LARGEST_GPU_BATCH)
    (1450, 8192)
    """
    return int(np.clip(n_visits / STEPS, SMALLEST_BATCH, largest))
