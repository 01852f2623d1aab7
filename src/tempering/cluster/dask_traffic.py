"""How much a cluster was sent, and how long it was busy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Traffic:
    """Counts since the executor was made, or since :meth:`reset`.

    Attributes
    ----------
    steps : int
        Times that shards were sent out.
    bytes_sent, bytes_received : int
        By the client. What workers send each other is not in it.
    seconds : float
        From sending to having the result.
    busy_seconds : float
        That the busiest worker of each step computed.
    repeats : int
        Steps that were made again, because workers were lost.
    """

    steps: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    seconds: float = 0.0
    busy_seconds: float = 0.0
    repeats: int = 0

    @property
    def communication(self) -> float:
        """The share of the time in which no worker had to compute."""
        return 1.0 - self.busy_seconds / self.seconds if self.seconds else 0.0

    def reset(self) -> None:
        """Count from here."""
        self.__init__()


def n_bytes(thing: Any) -> int:
    """The size of something as it is sent, without copying its arrays."""
    from distributed.protocol import pickle

    buffers: list[Any] = []
    head = pickle.dumps(thing, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)
