"""One fit in a process of its own: ``python -m arena.worker PROGRAM COUNTS K SEED THREADS TOPICS``.

Prints what the fit took, as JSON. What a program keeps in memory is not to be mixed with what its
judge does, so that nothing else is imported here.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import sparse

from arena.programs import PROGRAMS, Task


def fit_once(program: str, counts: str, k: int, seed: int, threads: int, topics: str) -> dict:
    """Fit, write the topics to a file, and say what it took."""
    documents = sparse.csr_array(sparse.load_npz(counts))
    with TemporaryDirectory() as room, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = PROGRAMS[program].prepare(Task(documents, k, seed, threads, Path(room)))
        before, start = cpu_seconds(), time.perf_counter()
        weights = np.asarray(fit(), np.float64)
        taken = {"cpu s": cpu_seconds() - before, "wall s": time.perf_counter() - start}
    taken |= {"start s": before, "peak MB": peak_megabytes()}
    np.save(topics, (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32))
    return taken


def cpu_seconds() -> float:
    """Of this process, all of its threads, and of processes that it has started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_megabytes() -> float:
    """The most memory that this process has held, or one that it has started."""
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / unit
    status = Path("/proc/self/status")
    if not status.exists():
        return max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, children)
    # Not ru_maxrss: on Linux that counts what the parent held when it forked.
    own = int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 1e3
    return max(own, children)


if __name__ == "__main__":
    name, path, k, seed, threads, out = sys.argv[1:]
    print(json.dumps(fit_once(name, path, int(k), int(seed), int(threads), out)))
