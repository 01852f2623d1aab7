"""How large the minibatches of a run should be."""

from __future__ import annotations

import numpy as np

#: Steps of a run whose minibatches are as large as it likes: fewer leave topics no time to follow
#: the temperature, more cost time and find nothing better in a small corpus.
STEPS = 2000

#: Beyond this size batches grow with the square root of the visits alone, and steps become more:
#: there is more to find in a large corpus.
ENOUGH_DOCUMENTS = 100

#: Smaller batches are mostly noise and overhead; larger ones are no faster on a CPU.
SMALLEST_BATCH, LARGEST_BATCH = 16, 1024

#: A GPU needs some thousand documents at a time; larger batches are no faster there either.
LARGEST_GPU_BATCH = 8192


def batch_size_for(n_visits: float, on_gpu: bool = False) -> int:
    """Documents of a minibatch, in a run of so many visits to documents.

    >>> [batch_size_for(n * 10) for n in (2_000, 20_000, 100_000, 290_000, 10_000_000)]
    [16, 100, 223, 380, 1024]
    >>> batch_size_for(290_000 * 10, on_gpu=True), batch_size_for(36e6, on_gpu=True)
    (1450, 8192)
    """
    size = n_visits / STEPS
    if on_gpu:
        return int(np.clip(size, SMALLEST_BATCH, LARGEST_GPU_BATCH))
    if size > ENOUGH_DOCUMENTS:
        size = np.sqrt(ENOUGH_DOCUMENTS * size)
    return int(np.clip(size, SMALLEST_BATCH, LARGEST_BATCH))
