"""A fit that is killed at random moments, and taken up each time, ends in the same bits.

It writes a checkpoint after each step, so that many of the moments are within a write.
"""

import io
import os
import shutil
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest

import tempering

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is for POSIX")

FIT = """
import sys, time
from tempering import Checkpoint, LatentDirichletAllocation
from scipy import sparse
import numpy as np

folder, n_passes, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(400, 0.05), size=8)
theta = rng.dirichlet(np.full(8, 0.2), size=300)
X = sparse.csr_matrix(np.array([rng.multinomial(60, row @ topics) for row in theta]))
model = LatentDirichletAllocation(
    8, batch_size=10, max_iter=n_passes, n_init=2, doc_topic_prior="auto", topic_word_prior="auto",
    random_state=0, n_jobs=1,
)
# Compiling takes seconds, and would swallow all moments.
model.fit(X[:20])
if limit:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
print("begin", flush=True)
began = time.perf_counter()
model.fit(X, checkpoint=Checkpoint(folder + "/kept", every_steps=1))
print("seconds", time.perf_counter() - began, flush=True)
model.save(folder + "/model")
"""


def start(folder, n_passes, limit=0):
    """A process that fits, and saves the model; with a limit on the size of its files."""
    arguments = [str(folder), str(n_passes), str(limit)]
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FIT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


def assert_same_model(one, other):
    """Every array of the two, and all else that is saved but the clock."""
    first, second = tempering.load(one), tempering.load(other)
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.doc_topic_prior_, second.doc_topic_prior_)
    assert first.topic_word_prior_ == second.topic_word_prior_
    assert first._state.step == second._state.step
    for column in set(first.history_[0]._fields) - {"seconds", "weights"}:
        np.testing.assert_array_equal(first.history_[column], second.history_[column])
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()


def run_here(folder, n_passes):
    """The same fit in this process, which has all that it needs; how long it took."""
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(told), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(sys, "argv", ["-c", str(folder), str(n_passes), "0"])
        exec(FIT, {"__name__": "__main__"})
    return float(told.getvalue().split()[-1])


def uninterrupted(folder, n_passes):
    """Where a fit went that nothing happened to, and how long it took."""
    return folder, run_here(folder, n_passes)


@pytest.fixture(scope="module")
def short_fit(tmp_path_factory):
    return uninterrupted(tmp_path_factory.mktemp("uninterrupted"), 1)


def kill_and_resume(tmp_path, n_passes, reference, n_kills, seed):
    """Kill n times, then let it end. Returns how many kills fell within a write."""
    folder, seconds = reference
    rng = np.random.default_rng(seed)
    within_a_write = 0
    for _ in range(n_kills):
        process = start(tmp_path, n_passes)
        assert process.stdout.readline() == "begin\n", process.stderr.read()
        # On average this takes 60% of the way, so that it is killed at every stage.
        time.sleep(rng.exponential(0.6 * seconds / n_kills))
        process.kill()
        process.communicate()
        within_a_write += any((tmp_path / "kept").glob(".partial-*"))
    run_here(tmp_path, n_passes)
    assert_same_model(folder / "model", tmp_path / "model")
    return within_a_write


def test_a_killed_fit_ends_in_the_same_bits(tmp_path, short_fit):
    kill_and_resume(tmp_path, 1, short_fit, 1, seed=0)


@pytest.mark.slow
def test_a_fit_that_is_killed_thirty_times_ends_in_the_same_bits(tmp_path):
    reference = uninterrupted(tmp_path / "uninterrupted", 12)
    within_a_write = kill_and_resume(tmp_path, 12, reference, 30, seed=1)
    print(f"{within_a_write} of 30 kills fell within the write of a checkpoint")
    assert within_a_write > 0


@pytest.mark.slow
def test_without_room_for_checkpoints_the_fit_ends_and_the_last_checkpoint_loads(
    tmp_path, short_fit
):
    """Files grow with the history, until they meet a limit on their size."""
    folder, _ = short_fit
    final = max(path.stat().st_size for path in (folder / "kept").glob("*/*"))
    code, _, errors = finish(start(tmp_path, 1, limit=int(0.9 * final)))
    assert code == 0, errors
    assert_same_model(folder / "model", tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert len(kept) == 2
    assert all(name.startswith("checkpoint-") for name in kept)
    run_here(tmp_path, 1)
    assert_same_model(folder / "model", tmp_path / "model")
