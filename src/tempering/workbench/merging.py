"""Which topics to make one of: those whose words lose least by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy


def merged_topics(counts: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """Topics with one less at a time, down to one; two become one where that costs least.

    The cost is what the log probability of their words falls by, if they must share one topic:
    Σ_v c_v log(c_v / c) of each, less that of their sum. So twins are merged first, and topics of
    few words.

    Parameters
    ----------
    counts : array [K, V]
        How often each topic has each word.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 9.0], [5.0, 5.0, 0.0]])
    >>> next(merged_topics(counts))
    array([[9., 9., 0.],
           [0., 0., 9.]])
    """
    topics = np.array(counts, np.float64)
    own = _fit(topics)
    costs = np.full((len(topics), len(topics)), np.inf)
    for i in range(1, len(topics)):
        costs[i, :i] = own[i] + own[:i] - _fit(topics[i] + topics[:i])
    while len(topics) > 1:
        gone, kept = np.unravel_index(np.argmin(costs), costs.shape)
        topics[kept] += topics[gone]
        topics, own = np.delete(topics, gone, 0), np.delete(own, gone)
        costs = np.delete(np.delete(costs, gone, 0), gone, 1)
        own[kept] = _fit(topics[kept])
        new = own[kept] + own - _fit(topics[kept] + topics)
        costs[kept, :kept], costs[kept + 1 :, kept] = new[:kept], new[kept + 1 :]
        yield topics.copy()


def _fit(topics: NDArray[np.float64]) -> Any:
    """The log probability of a topic's words under the topic: Σ_v c_v log(c_v / c)."""
    totals = topics.sum(axis=-1)
    return xlogy(topics, topics).sum(axis=-1) - xlogy(totals, totals)
