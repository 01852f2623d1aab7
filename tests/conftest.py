"""What all tests need."""

import gc
import os
import signal
from pathlib import Path

from hypothesis import settings

from quick_jax import ask_for_quick_compilation, without_optimizations

__all__ = ["without_optimizations"]

# A shell starts what runs in its background with Ctrl-C ignored, and so do its children. Tests send
# that signal, so it must mean what it means in a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is no matter of correctness, and the first one may compile.
settings.register_profile("tempering", deadline=None)
settings.load_profile("tempering")

# Before JAX is imported, and for the processes that tests start too.
ask_for_quick_compilation()

# No test cuts the power, which is all that this is for: what a killed process wrote stays anyway.
# A disk takes milliseconds for each of the thousands that tests ask for.
os.fsync = lambda descriptor: None

#: Each of these compiles other kernels for seconds, and takes long: if they come first, processes
#: that share the files out neither compile the same at once nor wait for one of them at the end.
FIRST = (
    "cli/test_commands.py",
    "estimators/test_factorial_mixture.py",
    "estimators/test_hmm.py",
    "test_docs.py",
)


def pytest_collection_modifyitems(items):
    places = {Path(__file__).parent / file: place for place, file in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(FIRST)))


def pytest_collection_finish():
    """What was imported stays: each search for garbage may leave it out."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    """Nothing is told any more, but pytest and Python would look for garbage for ten seconds."""
    gc.freeze()
