"""Compilation: kept on disk, told while it lasts, and no part of the time of a fit."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from numba import njit

from tempering.cli.validation import shown
from tempering.gpu import jax_device
from tempering.models.compilation import on_compilation, working_seconds
from tempering.models.hmm.chains import Chain, forward_backward, solve_paths
from tempering.models.lda.sampling import Words, as_tokens, run_chains, sample_documents
from tempering.models.lda.topics import compact_words

FIT = """
import hashlib, json, sys, time
from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.models.compilation import working_seconds

X = make_lda(300, 8, n_words=500, document_length=60, seed=0).counts
model = LatentDirichletAllocation(8, max_iter=2, random_state=0, verbose=1, backend=sys.argv[1])
began, worked = time.perf_counter(), working_seconds()
model.fit(X)
whole, worked = time.perf_counter() - began, working_seconds() - worked
told = {"whole": whole, "worked": worked, "history": model.history_[-1].seconds}
print(json.dumps({**told, "bits": hashlib.sha256(model.components_.tobytes()).hexdigest()}))
"""


def fits(backend, n_processes=1, **environment):
    """Results of fits that run in processes of their own, at once, and what they said."""
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
    return [(json.loads(out.splitlines()[-1]), err) for out, err in said]


@pytest.mark.slow  # all kernels, compiled anew
def test_the_first_fit_says_that_it_compiles_and_does_not_count_it(tmp_path):
    [(cold, said)] = fits("cpu", NUMBA_CACHE_DIR=tmp_path)
    assert said.count("compiling, once") == 1
    assert cold["history"] <= cold["worked"] < 0.5 * cold["whole"]
    [(warm, said)] = fits("cpu", NUMBA_CACHE_DIR=tmp_path)
    assert "compiling" not in said
    assert warm["bits"] == cold["bits"]  # whether compiled in this process or loaded from disk


@pytest.mark.slow  # all kernels
def test_the_command_line_compiles_all_kernels_beforehand(tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "tempering", "info", "--warm", "--json"]
    seconds = [
        json.loads(subprocess.check_output(command, env={**os.environ, **place}))["compiled_in_s"]
        for _ in range(2)
    ]
    assert seconds[0] > 1.0
    assert seconds[1] == 0.0
    [(_, said)] = fits("cpu", **place)
    assert "compiling" not in said


@pytest.mark.slow
def test_two_first_fits_at_once(tmp_path):
    first, second = fits("cpu", 2, NUMBA_CACHE_DIR=tmp_path)
    assert first[0]["bits"] == second[0]["bits"]
    [(warm, said)] = fits("cpu", NUMBA_CACHE_DIR=tmp_path)
    assert "compiling" not in said
    assert warm["bits"] == first[0]["bits"]


def test_a_kernel_is_compiled_once_for_any_numbers():
    """Seconds each: not again for wide indices, nor for memory that cannot be written to."""
    fixed = np.array([3, 1, 3], np.int32)
    fixed.flags.writeable = False
    signatures = set()
    for indices in (np.array([3, 1, 3], np.int64), np.array([3, 1, 3], np.int32), fixed):
        assert compact_words(indices, 5)[1].tolist() == [1, 0, 1]
        tokens = as_tokens(np.array([0, 3], indices.dtype), indices, np.array([1.0, 2.0, 1.0]))
        assert [part.dtype for part in tokens] == [np.int64, np.int32, np.int64, np.int64]
        words = Words(np.ones((4, 2), np.float32), np.ones(4), np.full(2, 0.5))
        assert run_chains(tokens, words, 0, 1, 1, 1).sum() == 4
        signatures.add(len(sample_documents.signatures))
    assert len(signatures) == 1
    chain = Chain(np.log([0.5, 0.5]), np.log(np.full((2, 2), 0.5)))
    bounds = np.array([0, 2, 3])
    one, each = (
        solve_paths(chain, np.zeros((3, 2)), bounds, s, n_rows=10**6)
        for s in (0.5, np.full(2, 0.5))
    )
    np.testing.assert_array_equal(one.marginals, each.marginals)
    assert len(forward_backward.signatures) == 1


def test_kernels_are_not_kept_where_there_is_no_place_for_them(tmp_path):
    """Neither beside the package nor in the user's directory."""
    closed = tmp_path / "file"
    closed.write_text("no directory")
    code = "from tempering.models.compilation import can_be_kept; print(can_be_kept())"
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
    [(cold, _)] = fits("jax", **place_and_flags)
    files = {file.name for file in place.iterdir() if file.name.endswith("-cache")}
    assert files
    assert cold["worked"] < 0.8 * cold["whole"]
    [(warm, _)] = fits("jax", **place_and_flags)
    # On a busy machine a small function may take long enough to be kept the second time.
    assert {file.name for file in place.iterdir() if file.name.endswith("-cache")} >= files
    assert warm["bits"] == cold["bits"]


def test_jax_keeps_it_where_its_user_says(tmp_path, monkeypatch):
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(jax.monitoring, "register_event_duration_secs_listener", lambda call: None)
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


def test_the_command_line_says_it(capsys):
    with shown(None):
        njit(lambda x: x)(1)
        njit(lambda x: x)(1)
    assert capsys.readouterr().err == "compiling, once\n"


def test_the_clock_stands_still_and_who_waits_is_told_once():
    told = []

    def slow(x):
        return x + 1

    began, worked = time.perf_counter(), working_seconds()
    with on_compilation(lambda: told.append("outer")), on_compilation(lambda: told.append("inner")):
        assert njit(slow)(1) == 2
        njit(slow)(1)
    whole, worked = time.perf_counter() - began, working_seconds() - worked
    assert told == ["outer"]
    assert worked < 0.5 * whole
    njit(slow)(1.0)
    assert told == ["outer"]
