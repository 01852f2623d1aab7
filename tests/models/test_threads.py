"""Blocks of a batch on threads: all of them once, and errors where they are asked for."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tempering.models import threads
from tempering.models.threads import in_blocks


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_items", [0, 1, 3, 1000])
def test_each_item_is_worked_on_once(n_items, n_threads):
    counts = np.zeros(n_items, int)

    def work(start, stop):
        counts[start:stop] += 1

    in_blocks(work, n_items, n_threads, fewest=7)
    assert np.all(counts == 1)


def test_threads_share_the_blocks():
    names = set()

    def work(start, stop):
        names.add(threading.current_thread().name)
        time.sleep(0.05)

    in_blocks(work, 8, 2, fewest=1)
    assert len(names) == 2


def test_many_callers_at_a_time():
    def total(n):
        sums = np.zeros(n)

        def work(start, stop):
            sums[start:stop] = np.arange(start, stop)

        in_blocks(work, n, 3, fewest=10)
        return sums.sum()

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(total, range(100, 200)))
    assert found == [n * (n - 1) / 2 for n in range(100, 200)]


@pytest.mark.parametrize("bad", [0, 7])
def test_an_error_reaches_the_caller_when_all_have_ended(bad):
    working = []

    def work(start, stop):
        working.append(start)
        time.sleep(0.01)
        if start == bad:
            raise ValueError(f"block {start}")
        working.remove(start)

    with pytest.raises(ValueError, match=f"block {bad}"):
        in_blocks(work, 8, 4, fewest=1)
    assert working == [bad]
    in_blocks(lambda start, stop: None, 8, 4, fewest=1)  # the threads are still there


def test_a_call_does_not_wait_for_threads_that_have_other_work():
    done, free = [], threading.Event()
    with ThreadPoolExecutor(1) as busy:
        busy.submit(free.wait)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threads, "_pool", lambda process: busy)
            in_blocks(lambda start, stop: done.append(start), 4, 2, fewest=1)
        free.set()
    assert done == [0, 1, 2, 3]


def test_threads_must_be_one_or_more():
    with pytest.raises(ValueError, match="n_threads must be at least 1, got 0"):
        in_blocks(lambda start, stop: None, 3, 0)
