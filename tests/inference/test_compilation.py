"""Compilation: once, and kept on disk."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tempering.gpu import jax_device
from tempering.models.hmm.chains import Chain, forward_backward, solve_paths
from tempering.models.lda.sampling import as_tokens
from tempering.models.lda.topics import compact_words, fill_columns

FIT = """
import hashlib, sys
from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda

X = make_lda(300, 8, n_words=500, document_length=60, seed=0).counts
model = LatentDirichletAllocation(8, max_iter=2, random_state=0, backend=sys.argv[1])
print(hashlib.sha256(model.fit(X).components_.tobytes()).hexdigest())
"""


def fits(backend, n_processes=1, **environment):
    """Bits of fits that run in processes of their own, at once."""
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", FIT, backend],
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(n_processes)
    ]
    said = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * n_processes, said
    return [out.split()[-1] for out, _ in said]


@pytest.mark.slow  # all kernels, compiled anew
def test_two_first_fits_at_once_and_a_later_one(tmp_path):
    first, second = fits("cpu", 2, NUMBA_CACHE_DIR=tmp_path)
    kernels = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")}
    assert kernels
    [later] = fits("cpu", NUMBA_CACHE_DIR=tmp_path)
    assert first == second == later  # whether compiled in this process or loaded from disk
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")} == kernels


def test_a_kernel_is_compiled_once_for_any_numbers():
    """Seconds each: not again for wide indices, nor for memory that cannot be written to."""
    fixed = np.array([3, 1, 3], np.int32)
    fixed.flags.writeable = False
    for indices in (np.array([3, 1, 3], np.int64), np.array([3, 1, 3], np.int32), fixed):
        assert compact_words(indices, 5)[1].tolist() == [1, 0, 1]
        tokens = as_tokens(np.array([0, 3], indices.dtype), indices, np.array([1.0, 2.0, 1.0]))
        assert [part.dtype for part in tokens] == [np.int64, np.int32, np.int64, np.int64]
    assert len(fill_columns.signatures) == 1
    chain = Chain(np.log([0.5, 0.5]), np.log(np.full((2, 2), 0.5)))
    bounds = np.array([0, 2, 3])
    one, each = (solve_paths(chain, np.zeros((3, 2)), bounds, s) for s in (0.5, np.full(2, 0.5)))
    np.testing.assert_array_equal(one.marginals, each.marginals)
    assert len(forward_backward.signatures) == 1


def test_kernels_are_not_kept_where_there_is_no_place_for_them(tmp_path):
    """Neither beside the package nor in the user's directory."""
    closed = tmp_path / "file"
    closed.write_text("no directory")
    code = "from tempering.models.fastmath import ENTRY; print(ENTRY['cache'])"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "NUMBA_CACHE_LOCATOR_CLASSES": "UserWideCacheLocator",
            "HOME": str(closed),
            "XDG_CACHE_HOME": str(closed),
        },
        capture_output=True,
        text=True,
    )
    assert said.stdout.strip() == "False", said.stderr


@pytest.mark.slow
def test_jax_keeps_what_it_compiles(tmp_path):
    pytest.importorskip("jax")
    place = tmp_path / "jax"
    # Compiled as it is for users: what takes less time than that is not kept.
    place_and_flags = {"TEMPERING_CACHE": tmp_path, "XLA_FLAGS": ""}
    [cold] = fits("jax", **place_and_flags)
    files = {file.name for file in place.iterdir() if file.name.endswith("-cache")}
    assert files
    [warm] = fits("jax", **place_and_flags)
    assert {file.name for file in place.iterdir() if file.name.endswith("-cache")} == files
    assert warm == cold


def test_jax_keeps_it_where_its_user_says(tmp_path, monkeypatch):
    jax = pytest.importorskip("jax")
    monkeypatch.setenv("TEMPERING_CACHE", str(tmp_path))
    before = jax.config.jax_compilation_cache_dir
    own = str(tmp_path / "own")
    try:
        jax.config.update("jax_compilation_cache_dir", own)
        jax_device.keep_compiled.__wrapped__()
        assert jax.config.jax_compilation_cache_dir == own
        assert not (tmp_path / "jax").exists()
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
