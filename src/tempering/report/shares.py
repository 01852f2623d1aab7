"""Shares of topics over time and in groups, as the page shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempering.report.topics import short
from tempering.workbench import TopicShares

#: Shares are stored in parts of this, as whole numbers: half the room of fractions.
WHOLE = 10_000


def share_table(shares: Any, argument: str, n_topics: int, *, in_order: bool) -> dict[str, Any]:
    """Names, sizes, and for each topic its shares, their intervals and its clearest contrast."""
    if not isinstance(shares, TopicShares):
        wanted = "topics_over_time" if in_order else "topics_by_group"
        raise ValueError(
            f"{argument} must be what tempering.workbench.{wanted} gives; got {shares!r:.80}."
        )
    if shares.draws.shape[2] != n_topics:
        raise ValueError(
            f"{argument} has shares of {shares.draws.shape[2]} topics, but the model has "
            f"{n_topics}: compute them of this model."
        )
    means, ends = shares.mean(), shares.interval()
    last = len(shares.names) - 1
    contrasts = []
    for topic in range(n_topics):
        one, other = last, 0
        if not in_order:
            one, other = int(means[:, topic].argmax()), int(means[:, topic].argmin())
        low, high = shares.ratio(shares.names[one], shares.names[other])[topic]
        contrasts.append((one, other, short(low, 3), short(high, 3)))
    return {
        "names": [_called(name) for name in shares.names],
        "documents": np.asarray(shares.n_documents).tolist(),
        "whole": WHOLE,
        "mean": _parts(means.T),
        "low": _parts(ends[:, :, 0].T),
        "high": _parts(ends[:, :, 1].T),
        "contrasts": contrasts,
    }


def _called(name: Any) -> str:
    """What a group is called, or a bin of time: when it begins."""
    start = name[0] if isinstance(name, tuple) else name
    # Of a bin of one length between two numbers, digits that say nothing.
    return f"{start:.6g}" if isinstance(start, float) else str(start)


def _parts(shares: Any) -> list[list[int]]:
    return np.rint(WHOLE * shares).astype(int).tolist()
