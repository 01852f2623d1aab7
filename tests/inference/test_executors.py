"""Sums that do not depend on who adds them up."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from problems import tiny_mixture
from tempering.inference import fit
from tempering.inference.executors import Serial, add_in_pairs


class Named(str):
    """A sum that shows how it was made."""

    def __add__(self, other):
        return Named(f"({self}{other})")


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        ("ab", "(ab)"),
        ("abc", "((ab)c)"),
        ("abcd", "((ab)(cd))"),
        ("abcdefg", "(((ab)(cd))((ef)g))"),
    ],
)
def test_parts_are_added_in_pairs_of_neighbours(parts, total):
    parts = [Named(part) for part in parts]
    assert add_in_pairs(parts) == Serial().add_up(lambda part: part, parts) == total


def test_blas_has_one_thread_inside_a_fit():
    """How many it has would decide how it rounds."""
    model, data, _ = tiny_mixture("full", n=20)
    seen = []

    def look(report):
        blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
        seen.extend(library["num_threads"] for library in blas)

    with threadpool_limits(limits=2, user_api="blas"):
        np.ones((2, 2)) @ np.ones((2, 2))
        fit(model, data, max_passes=1, callbacks=[look], progress=False)
    if not seen:
        pytest.skip("the threads of this BLAS cannot be counted")
    assert set(seen) == {1}
