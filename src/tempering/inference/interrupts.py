"""Ctrl-C and SIGTERM during a fit that is kept: they wait for the end of a step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: What a shell reports of a process that SIGTERM has ended.
TERMINATED = 128 + signal.SIGTERM


class Terminated(SystemExit):
    """SIGTERM has ended a fit; the message tells what is kept of it.

    Where nobody catches it, the process ends with status 143.
    """

    def __init__(self, message: str = "terminated."):
        super().__init__(TERMINATED)
        self.message = message

    def __str__(self) -> str:
        return self.message


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def catching_sigterm() -> Iterator[None]:
    """Have SIGTERM raise :class:`Terminated`, unless the program has a way of its own with it.

    Only the main thread can do that.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def postponed_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM wait until the block is done; the second acts at once."""
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        handlers = {number: handler for number, handler in found.items() if callable(handler)}
    waiting: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            handlers[number](number, frame)
        waiting.append((number, frame))

    for number in handlers:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if waiting:
        number, frame = waiting[0]
        handlers[number](number, frame)
