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


def cpu_seconds() -> float:
    """Of this process, all of its threads, and of processes that it has started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_megabytes() -> float:
    """The most memory that this process has held, or one that it has started."""
    own, children = (
        resource.getrusage(who).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    if (status := Path("/proc/self/status")).exists():
        # On Linux ru_maxrss counts what the parent held when it forked.
        own = int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 1e3
    return max(own, children)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    program, counts, *numbers, out = sys.argv[1:]
    with TemporaryDirectory() as room:
        task = Task(sparse.load_npz(counts), *map(int, numbers), Path(room))
        run = PROGRAMS[program].run(task)
        next(run)
        start, before = time.perf_counter(), cpu_seconds()
        topics = np.asarray(next(run), np.float64)
        taken = {"cpu s": cpu_seconds() - before, "wall s": time.perf_counter() - start}
    shares = topics / topics.sum(axis=1, keepdims=True)
    if not np.all(shares >= 0):
        sys.exit("its topics have weights that are negative, no numbers, or all 0")
    np.save(out, shares.astype(np.float32))
    print(json.dumps({**taken, "start s": before, "peak MB": peak_megabytes()}))
