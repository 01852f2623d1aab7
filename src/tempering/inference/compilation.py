"""Compilation, which happens once: told while it lasts, and no part of the time of a fit.

Numba compiles a kernel when it is first called, and keeps it on disk (see ``NUMBA_CACHE_DIR``).
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event

#: What is said; that of the next fit is on disk by then.
COMPILING = "compiling, once"


class _Compilation(event.Listener):
    """The time that this process has spent compiling, and who is to be told when it begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._began, self._seconds = 0, 0.0, 0.0
        self._tell: Callable[[], None] | None = None

    def on_start(self, event: event.Event) -> None:
        """A kernel begins to be compiled, perhaps as a part of another."""
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            self._began = time.perf_counter()
        self.tell()

    def on_end(self, event: event.Event) -> None:
        """It is compiled."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._seconds += time.perf_counter() - self._began

    def add(self, seconds: float) -> None:
        """Something else was compiled, in so many seconds."""
        with self._lock:
            self._seconds += seconds

    def seconds(self) -> float:
        """All seconds so far."""
        with self._lock:
            now = time.perf_counter() - self._began if self._depth else 0.0
            return self._seconds + now

    def tell(self) -> None:
        """Tell who wants to be told, and only once."""
        with self._lock:
            tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    @contextmanager
    def telling(self, tell: Callable[[], None]) -> Iterator[None]:
        """Tell, unless somebody is to be told already."""
        with self._lock:
            mine = self._tell is None
            if mine:
                self._tell = tell
        try:
            yield
        finally:
            with self._lock:
                if mine and self._tell is tell:
                    self._tell = None


_compilation = _Compilation()
event.register("numba:compile", _compilation)

#: ``with telling(tell)``: ``tell()`` is called when compilation begins, if it does, and once.
telling = _compilation.telling

#: Another compiler than Numba tells by these that it is at work, and how long it took.
begin_compilation, add_compilation = _compilation.tell, _compilation.add


def say_compiling() -> None:
    """Tell it on standard error."""
    print(COMPILING, file=sys.stderr, flush=True)


def working_seconds() -> float:
    """A clock that stands still during compilation, for differences."""
    return time.perf_counter() - _compilation.seconds()
