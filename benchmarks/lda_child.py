"""Fits that need a fresh process, for lda_speed.py: `lda_child.py start` or `memory CORPUS`."""

import single_thread  # noqa: F401, I001  before numpy

import json
import os
import re
import resource
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from tempering import LatentDirichletAllocation


def measure_start() -> dict[str, float]:
    """What a user waits for after opening Python: interpreter, imports and a first small fit."""
    counts = np.random.default_rng(0).poisson(0.2, size=(500, 200))
    imported = seconds_since_birth()
    LatentDirichletAllocation(10, max_iter=2, random_state=0).fit(sparse.csr_matrix(counts))
    return {
        "imports, wall s": imported,
        "all, wall s": seconds_since_birth(),
        "all, cpu s": time.process_time(),
    }


def measure_memory(path: str) -> dict[str, float]:
    """Peak memory of one pass over a corpus with 100 topics."""
    imports = peak_megabytes()
    corpus = sparse.csr_matrix(sparse.load_npz(path))
    start = time.process_time()
    LatentDirichletAllocation(100, max_iter=1, n_jobs=1, random_state=0).fit(corpus)
    return {
        "peak MB": peak_megabytes(),
        "imports MB": imports,
        "cpu s": time.process_time() - start,
    }


def seconds_since_birth() -> float:
    """Age of this process, from what its parent noted."""
    return time.time() - float(os.environ["BENCHMARK_BIRTH"])


def peak_megabytes() -> float:
    """The most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss: on Linux that counts what the parent held when it forked.
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes, on macOS


if __name__ == "__main__":
    task, *paths = sys.argv[1:]
    print(json.dumps(measure_start() if task == "start" else measure_memory(*paths)))
