"""A run that was interrupted ends in the bits of one that was not."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property

import numba
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from mutations import mutate
from on_disk import on_disk
from problems import tiny_mixture
from raw_trees import contents_of, put_contents, read_raw, write_raw
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.inference import (
    ArraySource,
    Checkpoint,
    CheckpointWarning,
    RobbinsMonro,
    fit,
    stored,
)
from tempering.inference.checkpoint import KIND, remembered_seed
from tempering.inference.fingerprint import describe
from tempering.models import LocalStep, Mixture
from tempering.models.factorial_mixture import FactorialModel
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.storage.atomic import postponed_interrupt
from tempering.storage.state import ARRAYS, CONFIG, StorageError, read_tree
from tempering.temperature import (
    Annealing,
    Heat,
    LocalTempering,
    Untempered,
    VariationalTempering,
    schedules,
)

POLICIES = {
    "VI": Untempered(),
    "AVI": Annealing(schedules.linear(5.0), passes=8),
    "found": Annealing(passes=6, start="auto"),
    "VT": VariationalTempering(),
    "LVT": LocalTempering(),
}


class Killed(Exception):
    """What ends a run in these tests."""


def blobs(n=200, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    return centres[rng.integers(0, 3, size=n)] + rng.normal(size=(n, 2))


def gaussian_mixture(k=3):
    likelihood = IsotropicGaussian(2, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(2), 20.0)
    return Mixture(likelihood, Dirichlet(k), np.full(k, 1.0), prior)


def kill_after(n_steps):
    """A callback that kills the run after so many steps of this process."""
    seen = []

    def callback(report):
        seen.append(report)
        if len(seen) == n_steps:
            raise Killed

    return callback


def fit_in_pieces(make_model, data, path, lengths, every_steps=2, **options):
    """A run that is killed after each of some numbers of steps, then left alone."""
    checkpoint = Checkpoint(path, every_minutes=None, every_steps=every_steps)
    options = {"progress": False, "checkpoint": checkpoint, **options}
    for length in lengths:
        with pytest.raises(Killed):
            fit(make_model(), data, callbacks=[kill_after(length)], **options)
    return fit(make_model(), data, **options)


def parts_of(posterior):
    """The arrays of a posterior, of any kind."""
    if hasattr(posterior, "keys"):
        return list(posterior.values())
    return [posterior.parameters(), posterior.totals(), posterior.offset, posterior.factor]


def assert_same_bits(one, other):
    for a, b in zip(parts_of(one.posterior), parts_of(other.posterior), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.elbo, other.elbo)
    np.testing.assert_array_equal(one.restart_elbos, other.restart_elbos)
    assert one.converged == other.converged
    np.testing.assert_array_equal(one.heat.inverse_temperature, other.heat.inverse_temperature)
    for column in set(one.history[0]._fields) - {"seconds", "weights"}:
        np.testing.assert_array_equal(one.history[column], other.history[column])
    for a, b in zip(one.history, other.history, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch_size", [None, 60])
def test_a_resumed_run_has_the_same_bits(tmp_path, policy, batch_size):
    options = {
        "temperature": POLICIES[policy],
        "batch_size": batch_size,
        "max_passes": 12,
        "n_init": 2,
        "seed": 3,
        "elbo_every": 2,
        "tolerance": 1e-2,
    }
    whole = fit(gaussian_mixture(), blobs(), progress=False, **options)
    resumed = fit_in_pieces(gaussian_mixture, blobs(), tmp_path, (3, 4, 2, 5), **options)
    assert_same_bits(whole, resumed)


@dataclass(frozen=True)
class CountedHeat(Heat):
    n_steps: int = 0


class Counted(Annealing):
    """A policy of one's own, with more to remember than a temperature."""

    def begin(self, model, n_data, rng):
        return CountedHeat(0.125)

    def cool(self, heat, progress):
        n = heat.n_steps + 1
        return CountedHeat(min(1.0, (n + 1) / 8), finished=n >= 8, n_steps=n)

    def update(self, heat, local, surroundings):
        return local, heat


def test_a_state_of_one_s_own_needs_no_more_than_to_be_a_child_of_heat(tmp_path):
    options = {"temperature": Counted(), "max_passes": 12, "tolerance": 0.0}
    resumed = fit_in_pieces(gaussian_mixture, blobs(), tmp_path, (3, 4), **options)
    whole = fit(gaussian_mixture(), blobs(), progress=False, **options)
    assert resumed.heat == whole.heat == CountedHeat(1.0, n_steps=7)
    np.testing.assert_array_equal(resumed.history["temperature"], whole.history["temperature"])


def test_a_finished_run_is_not_made_again(tmp_path):
    options = {"progress": False, "checkpoint": tmp_path, "n_init": 2, "max_passes": 5}
    first = fit(gaussian_mixture(), blobs(), **options)
    again = fit(gaussian_mixture(), blobs(), callbacks=[kill_after(1)], **options)
    assert_same_bits(first, again)


def learning_lda():
    return LatentDirichlet(
        4, 30, 0.25, 0.1, learn_doc_topic_prior=True, learn_topic_word_prior=True, n_threads=1
    )


def documents(n=120):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.1), size=4)
    theta = rng.dirichlet([1.0, 0.5, 0.2, 0.1], size=n)
    return sparse.csr_matrix([rng.multinomial(50, row @ topics) for row in theta])


@pytest.mark.parametrize("stored", [False, True])
def test_learned_priors_and_lazy_topics_survive(tmp_path, stored):
    data = documents()
    if stored:
        data = on_disk(tmp_path, data, batch_size=16, block_size=20, window_blocks=2)
    options = {
        "temperature": LocalTempering(max_alternations=2, damping=1.0, fraction=0.5),
        "learning_rate": RobbinsMonro(4.0, 0.7),
        "batch_size": 16,
        "max_passes": 4,
        "n_init": 2,
    }
    whole = fit(learning_lda(), data, progress=False, **options)
    resumed = fit_in_pieces(learning_lda, data, tmp_path / "kept", (9, 14, 10), **options)
    assert_same_bits(whole, resumed)
    for name in ("doc_topic_prior", "topic_word_prior", "_mean_prior_statistics"):
        np.testing.assert_array_equal(getattr(whole.model, name), getattr(resumed.model, name))
    assert whole.model.topic_word_prior != learning_lda().topic_word_prior  # it was learned


def test_topics_that_were_given_topic_by_topic_survive(tmp_path):
    """Their order in memory is kept: sums depend on it."""
    rows = np.random.default_rng(1).gamma(100.0, 0.01, size=(4, 30))
    options = {"learning_rate": RobbinsMonro(4.0, 0.7), "batch_size": 16, "max_passes": 4}
    whole = fit(learning_lda(), documents(), initial=Topics(rows.T, 0.1), **options)
    resumed = fit_in_pieces(
        learning_lda, documents(), tmp_path, (9, 14), initial=Topics(rows.T, 0.1), **options
    )
    assert_same_bits(whole, resumed)


def test_alpha_that_follows_the_documents_survives(tmp_path):
    def sampled_lda():
        return LatentDirichlet(4, 30, 0.25, 0.1, update="sampled", adapted_part=0.9, n_threads=1)

    options = {"learning_rate": RobbinsMonro(4.0, 0.7), "batch_size": 16, "max_passes": 4}
    options["final_elbo"] = False
    whole = fit(sampled_lda(), documents(), progress=False, **options)
    resumed = fit_in_pieces(sampled_lda, documents(), tmp_path, (9, 14), **options)
    for name in ("doc_topic_prior", "_mean_prior_statistics"):
        np.testing.assert_array_equal(getattr(whole.model, name), getattr(resumed.model, name))
    np.testing.assert_array_equal(whole.posterior.parameters(), resumed.posterior.parameters())
    assert np.ptp(whole.model.doc_topic_prior) > 0.01


class Tabulated(Mixture):
    """Learns its prior, and keeps what it has made of it until it changes."""

    power = 1.0

    @cached_property
    def table(self):
        prior = super().prior()
        return prior.replace(weights=prior.weights**self.power)

    @cached_property
    def untouched(self):
        return lambda data: data  # which cannot be stored

    def prior(self):
        return self.table

    def local_step(self, data, expectations, inverse_temperature):
        return super().local_step(self.untouched(data), expectations, inverse_temperature)

    def learn_hyperparameters(self, local, posterior, rate):
        self.power += rate
        del self.table


def test_what_follows_from_learned_priors_is_made_anew(tmp_path):
    """A model that was used before has a table of its own, which is not that of the run."""
    likelihood = IsotropicGaussian(2, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(2), 20.0)
    model = Tabulated(likelihood, Dirichlet(3), np.full(3, 0.9), prior)
    options = {"max_passes": 12, "tolerance": 0.0, "progress": False}
    whole = fit(model, blobs(), **options)
    model.prior()
    kept = Checkpoint(tmp_path, every_steps=3)
    with pytest.raises(Killed):
        fit(model, blobs(), **options, checkpoint=kept, callbacks=[kill_after(7)])
    resumed = fit(model, blobs(), **options, checkpoint=kept)
    assert_same_bits(whole, resumed)


def test_steps_that_continue_local_variables_survive(tmp_path):
    rng = np.random.default_rng(0)
    data = (rng.random((150, 4)) < 0.4) @ rng.normal(size=(4, 6)) + 0.3 * rng.normal(size=(150, 6))

    def make_model():
        learn = ("noise_variance", "activation_probability")
        model = FactorialModel(4, 6, 0.2, 1.0, 0.4, local_restarts=1, learn=learn)
        model.shard_size = 64
        return model

    options = {"temperature": LocalTempering(), "max_passes": 20, "tolerance": 0.0}
    whole = fit(make_model(), data, progress=False, **options)
    resumed = fit_in_pieces(make_model, data, tmp_path, (4, 11), **options)
    assert_same_bits(whole, resumed)
    assert whole.model.noise_variance == resumed.model.noise_variance != 0.2


class Remembering(Mixture):
    """A model of one's own, whose steps continue: half of q(z) is that of the step before."""

    continues_steps = True

    def continue_local_step(self, local, data, expectations, inverse_temperature):
        step = self.local_step(data, expectations, inverse_temperature)
        half = (step.local + local.local) / 2
        statistics = self.statistics(data, inverse_temperature * half)
        return LocalStep(statistics, step.energies, step.entropy, inverse_temperature, local=half)


def test_plain_steps_that_are_continued_survive(tmp_path):
    def new():
        given = gaussian_mixture()
        return Remembering(given.likelihood, given.weights, *given.prior().values())

    options = {"temperature": POLICIES["AVI"], "max_passes": 12, "seed": 3}
    whole = fit(new(), blobs(), progress=False, **options)
    assert_same_bits(whole, fit_in_pieces(new, blobs(), tmp_path, (3, 4), **options))


def test_restarts_do_not_share_what_they_learn():
    """With the best of several restarts comes the model that it learned, and no other's."""
    data = documents()
    given = learning_lda()
    options = {"max_passes": 6, "tolerance": 0.0, "progress": False}
    both = fit(given, data, n_init=2, **options)
    assert given.topic_word_prior == 0.1
    np.testing.assert_array_equal(given.doc_topic_prior, 0.25)
    alone = [fit_one_restart(data, number, options) for number in range(2)]
    assert both.restart_elbos == [result.elbo for result in alone]
    best = alone[int(np.argmax(both.restart_elbos))]
    np.testing.assert_array_equal(both.posterior.parameters(), best.posterior.parameters())
    np.testing.assert_array_equal(both.model.doc_topic_prior, best.model.doc_topic_prior)


def fit_one_restart(data, number, options):
    """What restart ``number`` of two does, with its seed and its start but without the other."""
    seed = int(np.random.SeedSequence(0).generate_state(2)[number])
    model = learning_lda()
    start = model.initialize(ArraySource(data), np.random.default_rng(seed))
    return fit(model, data, initial=start, **options)


def test_batches_can_begin_at_any_step():
    data = np.arange(10)[:, None]
    for batch_size in (3, 10):
        source = ArraySource(data, batch_size)
        stream = source.batches(5)
        expected = [next(stream).data for _ in range(12)]
        for first in range(12):
            np.testing.assert_array_equal(next(source.batches(5, first)).data, expected[first])


def read_checkpoint(path):
    return read_tree(path, KIND)


def checkpoints(path):
    return sorted(name for name in os.listdir(path) if name.startswith("checkpoint-"))


def test_the_last_two_are_kept(tmp_path):
    fit_in_pieces(gaussian_mixture, blobs(), tmp_path, (5,), every_steps=1, max_passes=9)
    names = checkpoints(tmp_path)
    assert len(names) == 2
    assert sorted(os.listdir(tmp_path)) == names
    contents = [read_checkpoint(tmp_path / name) for name in names]
    assert [content["run"] is None for content in contents] == [False, True]
    assert contents[0]["run"]["state"].step == len(contents[1]["best"]["history"])


def test_leftovers_of_killed_processes_are_removed(tmp_path):
    leftover = tmp_path / ".partial-0123abcd-checkpoint-00000001"
    leftover.mkdir()
    (leftover / CONFIG).write_text("half")
    mine = tmp_path / "notes.txt"
    mine.write_text("mine")
    fit(gaussian_mixture(), blobs(), progress=False, checkpoint=tmp_path, max_passes=3)
    assert not leftover.exists()
    assert mine.exists()


def test_a_damaged_newest_falls_back_and_says_so(tmp_path):
    options = {"max_passes": 12, "tolerance": 0.0, "progress": False}
    whole = fit(gaussian_mixture(), blobs(), **options)
    checkpoint = Checkpoint(tmp_path, every_steps=2)
    with pytest.raises(Killed):
        fit(
            gaussian_mixture(),
            blobs(),
            checkpoint=checkpoint,
            callbacks=[kill_after(7)],
            **options,
        )
    older, newest = checkpoints(tmp_path)
    content = (tmp_path / newest / ARRAYS).read_bytes()
    (tmp_path / newest / ARRAYS).write_bytes(content[:-20])
    with pytest.warns(CheckpointWarning, match=rf"{newest}.* goes on from the one before.*{older}"):
        resumed = fit(gaussian_mixture(), blobs(), checkpoint=checkpoint, **options)
    assert_same_bits(whole, resumed)
    for name in checkpoints(tmp_path):
        put_contents(tmp_path / name, {ARRAYS: b"nothing"})
    with pytest.raises(StorageError, match=r"no checkpoint in .* can be read.*resume=False"):
        fit(gaussian_mixture(), blobs(), checkpoint=checkpoint, **options)
    assert_same_bits(
        whole, fit(gaussian_mixture(), blobs(), checkpoint=checkpoint, resume=False, **options)
    )


def test_a_checkpoint_of_a_later_format_is_told(tmp_path):
    options = {"checkpoint": tmp_path, "progress": False, "max_passes": 3}
    fit(gaussian_mixture(), blobs(), **options)
    for name in checkpoints(tmp_path):
        whole = read_raw(tmp_path / name)
        write_raw(tmp_path / name, {**whole, "format": 2, "package": "9.0"})
    with pytest.raises(StorageError, match=r"format 2, .* reads format 1.*wrote it, 9\.0"):
        fit(gaussian_mixture(), blobs(), **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": blobs(199)}, "other data: rows"),
        ({"data": blobs() + 1e-9}, "other data: rows"),
        ({"batch_size": 100}, "other data: batch_size .it was 60, and is 100"),
        ({"max_passes": 13}, "max_passes .it was 12, and is 13"),
        ({"seed": 1}, "other parameters: seed"),
        ({"model": gaussian_mixture(4)}, "other parameters: model"),
        ({"temperature": Annealing(schedules.linear(6.0))}, "other parameters: temperature"),
        ({"learning_rate": RobbinsMonro(5.0)}, "other parameters: learning_rate"),
        ({"n_init": 2}, "other parameters: n_init"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, change, message):
    options = {
        "model": gaussian_mixture(),
        "data": blobs(),
        "batch_size": 60,
        "max_passes": 12,
        "temperature": Annealing(schedules.linear(5.0)),
        "progress": False,
    }
    checkpoint = Checkpoint(tmp_path, every_steps=3)
    with pytest.raises(Killed):
        fit(**options, checkpoint=checkpoint, callbacks=[kill_after(10)])
    before = checkpoints(tmp_path)
    with pytest.raises(StorageError, match=message):
        fit(**{**options, **change}, checkpoint=checkpoint)
    assert checkpoints(tmp_path) == before
    fit(**{**options, **change}, checkpoint=checkpoint, resume=False)


HOTTEST = 5.0


def from_the_hottest(progress):
    return 1.0 + (HOTTEST - 1.0) * (1.0 - progress)


def from_its_own(hottest):
    def cooling(progress, *, hottest=hottest):
        return 1.0 + (hottest - 1.0) * (1.0 - progress)

    return cooling


def from_the_hottest_of_some(progress):
    return 1.0 + max((HOTTEST - 1.0) * (1.0 - power * progress) for power in (0.5, 1.0))


@pytest.mark.parametrize(
    "made_by",
    [lambda hottest: from_the_hottest, lambda hottest: from_the_hottest_of_some, from_its_own],
)
def test_a_schedule_with_other_numbers_is_another_one(tmp_path, monkeypatch, made_by):
    """Numbers that a function takes from where it stands, or has as defaults of keywords."""

    def start(hottest, **options):
        monkeypatch.setitem(globals(), "HOTTEST", hottest)
        options |= {"temperature": Annealing(made_by(hottest)), "progress": False}
        fit(gaussian_mixture(), blobs(), max_passes=12, checkpoint=tmp_path, **options)

    start(5.0)
    with pytest.raises(StorageError, match=r"other parameters: temperature\.schedule"):
        start(6.0)
    start(5.0)


def test_functions_of_libraries_are_told_by_their_names():
    """What a library keeps for itself changes while it works, and is long."""

    def cooling(progress):
        return 1.0 + minimize(from_the_hottest, progress).fun

    told = str(describe(cooling))
    assert "minimize" in told
    assert "from_the_hottest" in told
    assert len(told) < 3000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (range(3), range(4)),
        (slice(3), slice(4)),
        (deque([1, 2]), deque([1, 3])),
        (Decimal("0.1"), Decimal("0.2")),
        (date(2020, 1, 1), date(2020, 1, 2)),
        (1j, 2j),
        ("low".upper, "high".upper),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_without_attributes_are_told_apart(one, other):
    assert describe(one) != describe(other)
    assert describe(one) == describe(deepcopy(one))


def test_the_methods_of_two_objects_are_told_apart():
    five, six = (Annealing(schedules.linear(hottest)).length for hottest in (5.0, 6.0))
    assert describe(five) != describe(six)


def test_a_compiled_function_is_told_by_its_source():
    """Not by what its compiler keeps, which changes when it is called."""
    doubled, halved = numba.njit(lambda x: 2.0 * x), numba.njit(lambda x: 0.5 * x)
    before = describe(doubled)
    assert before != describe(halved)
    doubled(1.0)
    assert describe(doubled) == before


def test_what_cannot_be_made_again_is_told_by_its_class():
    assert describe(ctypes.pointer(ctypes.c_int(3))) == describe(ctypes.pointer(ctypes.c_int(3)))


def test_a_model_may_refer_to_itself(tmp_path):
    model = gaussian_mixture()
    model.own = lambda: model
    options = {"max_passes": 6, "progress": False}
    kept = Checkpoint(tmp_path, every_steps=2)
    with pytest.raises(Killed):
        fit(model, blobs(), **options, checkpoint=kept, callbacks=[kill_after(3)])
    resumed = fit(model, blobs(), **options, checkpoint=kept)
    assert resumed.elbo == fit(gaussian_mixture(), blobs(), **options).elbo


def test_a_model_with_a_generator_is_told_what_to_keep_instead(tmp_path):
    model = gaussian_mixture()
    model.rng = np.random.default_rng(0)
    with pytest.raises(TypeError, match=r"a part of the model or .* keep a seed"):
        fit(model, blobs(), checkpoint=tmp_path, progress=False)


def test_threads_are_no_parameter_of_the_result(tmp_path):
    options = {"progress": False, "max_passes": 4}
    whole = fit(learning_lda(), documents(), **options)

    def two_threads():
        model = learning_lda()
        model.n_threads = 2
        return model

    with pytest.raises(Killed):
        fit(
            two_threads(),
            documents(),
            checkpoint=Checkpoint(tmp_path, every_steps=1),
            callbacks=[kill_after(2)],
            n_threads=2,
            **options,
        )
    resumed = fit(learning_lda(), documents(), checkpoint=tmp_path, n_threads=1, **options)
    assert_same_bits(whole, resumed)


class Interrupted(Mixture):
    """Ctrl-C comes in the middle of its sixth step."""

    countdown = 5

    def local_step(self, *arguments):
        if self.countdown == 0:
            os.kill(os.getpid(), signal.SIGINT)
        self.countdown -= 1
        return super().local_step(*arguments)


@pytest.mark.skipif(os.name != "posix", reason="signals are for POSIX")
def test_ctrl_c_waits_for_the_step_and_keeps_it(tmp_path):
    options = {"max_passes": 12, "tolerance": 0.0, "progress": False, "checkpoint": tmp_path}
    model = gaussian_mixture()
    model.__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt) as interrupt:
        fit(model, blobs(), **options)
    assert f"call fit again with checkpoint={str(tmp_path)!r}" in str(interrupt.value)
    (name,) = checkpoints(tmp_path)
    assert name in str(interrupt.value)
    assert read_checkpoint(tmp_path / name)["run"]["state"].step == 6


TERMINATED = """
import os, signal, sys, threading
from test_checkpoint import blobs, gaussian_mixture
from tempering.inference import fit

def strike(report):
    if report.record.step == 5:
        os.kill(os.getpid(), signal.SIGTERM)

def run(callbacks=[strike], **options):
    options = {"max_passes": 12, "tolerance": 0.0, "progress": False, **options}
    return fit(gaussian_mixture(), blobs(), callbacks=callbacks, **options)

path = sys.argv[1]
"""


def run_script(code, path):
    """A script in a process of its own, with what is above at hand."""
    here = os.path.dirname(__file__)
    paths = [os.path.dirname(here), here, os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-c", TERMINATED + code, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


@pytest.mark.skipif(os.name != "posix", reason="signals are for POSIX")
def test_sigterm_keeps_the_fit_and_ends_the_process_with_143(tmp_path):
    def strike(report):
        if report.record.step == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    options = {"max_passes": 12, "tolerance": 0.0, "progress": False}
    with pytest.raises(SystemExit) as ended:
        fit(gaussian_mixture(), blobs(), checkpoint=tmp_path, callbacks=[strike], **options)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    (name,) = checkpoints(tmp_path)
    assert os.listdir(tmp_path) == [name]
    assert read_checkpoint(tmp_path / name)["run"]["state"].step == 6
    resumed = fit(gaussian_mixture(), blobs(), checkpoint=tmp_path, **options)
    assert_same_bits(fit(gaussian_mixture(), blobs(), **options), resumed)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are for POSIX")
def test_sigterm_is_as_it_was_after_a_fit_and_without_a_checkpoint(tmp_path):
    done = run_script(
        "run([], checkpoint=path); print(signal.getsignal(signal.SIGTERM).name); run()", tmp_path
    )
    assert done.returncode == -signal.SIGTERM
    assert done.stdout == "SIG_DFL\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are for POSIX")
def test_a_program_with_its_own_way_with_sigterm_keeps_it(tmp_path):
    code = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
try:
    run(checkpoint=path)
finally:
    print(len(os.listdir(path)))
"""
    done = run_script(code, tmp_path)
    assert (done.returncode, done.stdout) == (7, "1\n"), done.stderr
    assert read_checkpoint(tmp_path / checkpoints(tmp_path)[0])["run"]["state"].step == 6


def test_an_interrupt_between_steps_keeps_the_run(tmp_path):
    def interrupt(report):
        if report.record.step == 4:
            raise KeyboardInterrupt

    options = {"max_passes": 12, "tolerance": 0.0, "progress": False}
    with pytest.raises(KeyboardInterrupt, match="To go on from there"):
        fit(gaussian_mixture(), blobs(), checkpoint=tmp_path, callbacks=[interrupt], **options)
    assert len(checkpoints(tmp_path)) == 1
    resumed = fit(gaussian_mixture(), blobs(), checkpoint=tmp_path, **options)
    assert_same_bits(fit(gaussian_mixture(), blobs(), **options), resumed)


@pytest.mark.skipif(os.name != "posix", reason="signals are for POSIX")
def test_the_second_interrupt_acts_at_once():
    reached = []

    def impatient():
        with postponed_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("after the first")
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("after the second")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        impatient()
    assert reached == ["after the first"]
    assert signal.getsignal(signal.SIGINT) is before


def test_fits_on_other_threads_can_be_kept_too(tmp_path):
    results = []

    def work():
        options = {"max_passes": 4, "progress": False}
        results.append(fit(gaussian_mixture(), blobs(), checkpoint=tmp_path, **options))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert_same_bits(results[0], fit(gaussian_mixture(), blobs(), max_passes=4, progress=False))


class Corner:
    """A posterior of one's own."""

    def __init__(self, natural):
        self.natural = natural

    def blend(self, target, rate):
        return Corner((1 - rate) * self.natural + rate * target)


class CornerMixture(Mixture):
    """A mixture with such a posterior."""

    def initialize(self, source, rng):
        return Corner(super().initialize(source, rng))

    def expectations(self, posterior):
        return super().expectations(posterior.natural)

    def divergence(self, posterior, prior_weight=1.0):
        return super().divergence(posterior.natural, prior_weight)


def test_a_posterior_of_one_s_own_must_be_declared(tmp_path):
    mixture, data, _ = tiny_mixture("bernoulli", n=20)

    def make_model():
        prior = mixture.prior()
        return CornerMixture(mixture.likelihood, mixture.weights, prior.weights, prior.components)

    options = {"max_passes": 6, "tolerance": 0.0}
    with pytest.raises(
        StorageError,
        match=r"posterior cannot be stored: Corner.*stored\(.a name.\) before its class",
    ):
        fit(make_model(), data, checkpoint=tmp_path, progress=False, **options)
    stored("corner")(Corner)
    resumed = fit_in_pieces(make_model, data, tmp_path, (4,), **options)
    whole = fit(make_model(), data, progress=False, **options)
    for name, part in whole.posterior.natural.items():
        np.testing.assert_array_equal(part, resumed.posterior.natural[name])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: Checkpoint(path, every_minutes=-1), "every_minutes must be 0 or more"),
        (lambda path: Checkpoint(path, every_steps=0), "every_steps must be at least 1"),
        (lambda path: Checkpoint(path / "file"), "must be a directory"),
    ],
)
def test_bad_checkpoints_are_refused_when_made(tmp_path, make, message):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=message):
        make(tmp_path)


BUSY = """
def wait(report):
    if report.record.step == 2:
        print("fitting", flush=True)
        sys.stdin.read()

run([wait], checkpoint=path)
print("done", flush=True)
"""


@pytest.mark.slow
def test_two_fits_in_one_directory_do_not_meet(tmp_path):
    from tempering import BayesianGaussianMixture

    here = os.path.dirname(__file__)
    paths = [os.path.dirname(here), here, os.environ.get("PYTHONPATH", "")]
    first = subprocess.Popen(
        [sys.executable, "-c", TERMINATED + BUSY, str(tmp_path / "kept")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert first.stdout.readline() == "fitting\n"
    options = {"max_passes": 12, "tolerance": 0.0, "progress": False}
    before = os.listdir(tmp_path / "kept")
    for resume in (True, False):
        with pytest.raises(OSError, match=rf"in use by process {first.pid} on .*wait until"):
            fit(
                gaussian_mixture(),
                blobs(),
                checkpoint=tmp_path / "kept",
                resume=resume,
                callbacks=[kill_after(1)],
                **options,
            )
        mixture = BayesianGaussianMixture(3, max_iter=5)
        with pytest.raises(OSError, match=f"in use by process {first.pid}"):
            mixture.fit(blobs(), checkpoint=tmp_path / "kept", resume=resume)
    assert os.listdir(tmp_path / "kept") == before
    output, _ = first.communicate()
    assert output == "done\n"
    resumed = fit(gaussian_mixture(), blobs(), checkpoint=tmp_path / "kept", **options)
    assert_same_bits(fit(gaussian_mixture(), blobs(), **options), resumed)


def test_seeds_are_remembered(tmp_path):
    seed = remembered_seed(None, tmp_path, resume=True)
    assert remembered_seed(None, Checkpoint(tmp_path), resume=True) == seed
    assert remembered_seed(None, tmp_path, resume=False) != seed
    assert remembered_seed(7, tmp_path, resume=True) == 7


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, where the system lets one be made."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_told_once_and_the_fit_goes_on(small_disk):
    filler = small_disk / "filler"

    def fill_the_disk(report):
        if report.record.step == 5:
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(1000))

    options = {"max_passes": 12, "tolerance": 0.0, "progress": False}
    whole = fit(gaussian_mixture(), blobs(), **options)
    checkpoint = Checkpoint(small_disk / "kept", every_steps=1)
    with pytest.warns(CheckpointWarning) as told:
        result = fit(
            gaussian_mixture(), blobs(), checkpoint=checkpoint, callbacks=[fill_the_disk], **options
        )
    assert_same_bits(whole, result)
    (warning,) = told
    assert "no room to write" in str(warning.message)
    assert "checkpoint-00000007" in str(warning.message)
    assert "checkpoint-00000006 is the last" in str(warning.message)
    assert sorted(os.listdir(small_disk / "kept")) == checkpoints(small_disk / "kept")
    filler.unlink()
    steps = []
    resumed = fit(
        gaussian_mixture(),
        blobs(),
        checkpoint=checkpoint,
        callbacks=[lambda report: steps.append(report.record.step)],
        **options,
    )
    assert steps == list(range(6, 12))
    assert_same_bits(whole, resumed)


def fuzz(tmp_path, n):
    fit(learning_lda(), documents(40), max_passes=2, checkpoint=tmp_path, progress=False)
    path = tmp_path / checkpoints(tmp_path)[-1]
    contents = contents_of(path)
    rng = np.random.default_rng(1)
    refused = 0
    for number in range(n):
        name = sorted(contents)[number % 2]
        put_contents(path, {**contents, name: mutate(contents[name], rng)})
        try:
            read_checkpoint(path)
        except StorageError:
            refused += 1
    assert refused > 0.9 * n


def test_damaged_checkpoints_are_told(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fuzz(tmp_path, 100)


@pytest.mark.slow
def test_many_damaged_checkpoints_are_told(tmp_path):
    fuzz(tmp_path, 3000)
