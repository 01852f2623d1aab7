"""Functions that Numba compiles when they are first called, and a clock that leaves that time out.

Numba is imported with the first kernel that runs: its import takes as long as that of NumPy and
SciPy together, and many a fit needs no kernel. It keeps what it compiles on disk: in
``__pycache__`` beside the package, in the user's cache directory if that cannot be written to, or
in ``NUMBA_CACHE_DIR``.
"""

import gc
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

logger = logging.getLogger("tempering")

# Sums may be reordered (needed to vectorise a sum) and multiply-adds fused. Not "nnan" or "ninf":
# with these LLVM may assume that there are no NaNs, and remove every check for one.
# A loop that adds up stores nothing: LLVM asks before a loop with both whether its arrays lie well
# apart in memory, and where they do not it adds one number at a time, in another order. The bits
# would depend on where memory happens to be free.
# Without reference counts: the kernels allocate nothing and keep no arrays, so there is nothing to
# count, while an atomic increment for each view of a row would take up to half of the time.
# Called from Python alone, so without the wrapper for calls from C.
# Compiled entries are kept on disk. Numba compiles one again when its own file has changed, not
# when a kernel in another file has: after such a change, delete the *.nbi in __pycache__.
ENTRY: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "nogil": True,
    "cache": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
}
# Kernels that only other kernels call need no place of their own on disk (those that call them
# hold them) and no wrapper for calls from Python, which saves a quarter of the compilation: from
# Python they cannot be called. They are inlined always: a call to one would go to the kernel as
# compiled by itself in the process that compiles, and to the copy inside of its caller in one that
# loads it from disk. These round differently, and fits would not be bit-identical.
KERNEL: dict[str, Any] = {
    **ENTRY,
    "cache": False,
    "forceinline": True,
    "no_cpython_wrapper": True,
}
# Kernels with one caller are pasted into it and compiled there. Else Numba compiles them by
# themselves first, with all that they call, and then once more within the caller: a third of the
# time of `fit_documents`. Only the order of sums may change, and with it the last digits.
PASTED: dict[str, Any] = {**KERNEL, "inline": "always"}
# Elementwise functions need fused multiply-adds alone; reordering would cost them accuracy.
ELEMENTWISE: dict[str, Any] = {**KERNEL, "fastmath": {"contract"}}

#: Options that Numba does not document: they are used only where they exist.
UNDOCUMENTED = {"_nrt", "no_cfunc_wrapper", "no_cpython_wrapper"}

_lock = RLock()


class Lazy:
    """An object of Numba's that is made when it is first used, by another kernel or by a call."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make

    @property
    def made(self) -> Any:
        """The object."""
        if "_made" not in self.__dict__:
            with _lock:  # two threads may call a kernel for the first time at once
                if "_made" not in self.__dict__:
                    self._made = self._make()
        return self._made

    def __call__(self, *arguments: Any) -> Any:
        return self.made(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        context: Any = cpu_target.typing_context
        return context.resolve_value_type(self.made)


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function by ``numba.njit`` with these options, when it is first called."""

    def decorate(function: Callable[..., Any]) -> Any:
        def make() -> Any:
            import numba

            watch_numba()
            for name in function.__code__.co_names:
                if isinstance(part := function.__globals__.get(name), Lazy):
                    _ = part.made  # what Numba does not know when it begins, it does not find
            known = _known_options() | (options.keys() - UNDOCUMENTED)
            used: dict[str, Any] = {name: options[name] for name in options if name in known}
            used["cache"] = used["cache"] and can_be_kept()
            return numba.njit(**used)(function)

        return Lazy(make)

    return decorate


@cache
def _known_options() -> set[str]:
    """Return the names of the options of this version of Numba."""
    from numba import njit

    return set(dir(njit(lambda: None).targetdescr.options))  # pyright: ignore


@cache
def can_be_kept() -> bool:
    """Return whether there is a place on disk for compiled kernels."""
    from numba import njit

    try:
        njit(cache=True)(can_be_kept.__wrapped__)
    except RuntimeError:  # so says Numba: neither beside this file nor in the user's directory
        logger.info("compiled kernels are not kept: set NUMBA_CACHE_DIR to where they can be.")
        return False
    return True


#: What is said; that of the next fit is on disk by then.
COMPILING = "compiling, once"


class _Clock:
    """The time that this process spends in compilers; one thread compiles at a time."""

    depth, began, seconds, collects = 0, 0.0, 0.0, True
    notify: Callable[[], None] | None = None  # whom to notify when compilation begins

    def begin(self) -> None:
        """Note that a kernel begins to be compiled, perhaps as a part of another."""
        self.depth += 1
        if self.depth == 1:
            self.began, self.collects = time.perf_counter(), gc.isenabled()
            gc.disable()  # the compiler makes many objects, and no cycles: 0.15 of its time
            begin_compilation()

    def end(self) -> None:
        """Note that it is compiled."""
        self.depth -= 1
        if self.depth == 0:
            if self.collects:
                gc.enable()
            add_compilation(time.perf_counter() - self.began)


_clock = _Clock()


@cache
def _listen() -> None:
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:
            _clock.begin()

        def on_end(self, event: event.Event) -> None:
            _clock.end()

    event.register("numba:compile", Listener())


def watch_numba() -> None:
    """Count the compilations of Numba, if it is loaded, from now on."""
    if "numba" in sys.modules:
        _listen()


def begin_compilation() -> None:
    """Notify the listener that a compiler is at work, once."""
    notify, _clock.notify = _clock.notify, None
    if notify is not None:
        notify()


def add_compilation(seconds: float) -> None:
    """Add the seconds of a compilation."""
    _clock.seconds += seconds


@contextmanager
def on_compilation(notify: Callable[[], None]) -> Iterator[None]:
    """Call ``notify`` once if compilation begins, unless another listener waits already."""
    watch_numba()
    mine = _clock.notify is None
    _clock.notify = _clock.notify or notify
    try:
        yield
    finally:
        if mine:
            _clock.notify = None


def say_compiling() -> None:
    """Print that kernels are compiled, on standard error."""
    print(COMPILING, file=sys.stderr, flush=True)


def working_seconds() -> float:
    """Return the time of a clock that stands still during compilation, for differences."""
    watch_numba()
    now = _clock.began if _clock.depth else time.perf_counter()
    return now - _clock.seconds
