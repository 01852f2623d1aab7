"""What a call takes at its peak: memory that Python, NumPy and Arrow ask for, and that is resident.

What is asked for counts whether it is touched or not; what other libraries take shows as resident.
"""

import tracemalloc
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow

#: Decoders and their buffers; text while it is taken apart; what small files unpack to.
ALLOWANCE = 24 << 20
#: So many times its file may a reader take beyond that.
MULTIPLE = 20
#: Resident memory is counted in pages, and comes and goes with much else in a process.
RESIDENT_ALLOWANCE = 2 * ALLOWANCE

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Arrow keeps a pointer to the pool that was set last.
_pools = []


class Peak:
    """Bytes at the peak of a block."""

    asked = resident = 0


@contextmanager
def tracing():
    """Follow what Python asks for; to stand around many ``measured``, as it takes time to begin."""
    begun = not tracemalloc.is_tracing()
    if begun:
        tracemalloc.start()
    try:
        yield
    finally:
        if begun:
            tracemalloc.stop()


@contextmanager
def measured():
    """The peak of the block, which is told when it ends, also with an error."""
    peak = Peak()
    with tracing(), _arrow_pool() as pool:
        before = _resident("VmRSS")
        with suppress(OSError):
            CLEAR.write_text("5")
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        try:
            yield peak
        finally:
            asked = tracemalloc.get_traced_memory()[1] - start
            peak.asked = asked + pool.max_memory()
            peak.resident = _resident("VmHWM") - before


@contextmanager
def _arrow_pool():
    """A pool of its own, since Arrow's peak is that of a pool's whole life."""
    before = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(before)
    _pools.append(pool)
    pyarrow.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pyarrow.set_memory_pool(before)


def _resident(what):
    """Resident bytes as the system tells them, or 0 where it does not."""
    with suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) * 1024
    return 0


def assert_modest(peak, n_bytes, multiple=MULTIPLE, allowance=ALLOWANCE):
    """A reader of ``n_bytes`` took no more than a small multiple of them."""
    assert peak.asked <= allowance + multiple * n_bytes, (peak.asked, n_bytes)
    assert peak.resident <= RESIDENT_ALLOWANCE + multiple * n_bytes, (peak.resident, n_bytes)
