"""Adaptive tempering: what it finds, that it ends at T = 1, and that it goes on from anywhere."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from itertools import chain, cycle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.datasets import load_breast_cancer

from tempering import (
    AdaptiveTempering,
    Annealing,
    LocalStep,
    Mixture,
    Model,
    Natural,
    fit,
    schedules,
)
from tempering.families import (
    Bernoulli,
    Beta,
    DiagonalGaussian,
    Dirichlet,
    FixedWeights,
    FullGaussian,
    IsotropicGaussian,
    Poisson,
    StickBreaking,
    TiedGaussian,
)
from tempering.inference import Checkpoint, RobbinsMonro, SaddleWarning
from tempering.inference.saddle import MOST_ESCAPES
from tempering.models.factorial_mixture import FactorialModel
from tempering.temperature import Progress, TemperingWarning, adaptive, adaptive_ramp
from tempering.temperature.adaptive import AdaptiveHeat
from tempering.temperature.adaptive_heat import WARM, Look
from tempering.temperature.probes import critical_inverse_temperature, pushed
from tempering.testing import check_model


def two_gaussians(seed: int, n: int = 300) -> tuple[Mixture, np.ndarray]:
    rng = np.random.default_rng(seed)
    data = rng.normal(np.where(rng.random(n) < 0.3, -3.2, 3.2))[:, None]
    likelihood = IsotropicGaussian(1, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(1), 10.0)
    return Mixture(likelihood, Dirichlet(2), np.ones(2), prior), data


def clusters(seed: int, n: int = 600) -> tuple[Mixture, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = np.array([(i, j) for i in range(3) for j in range(3)], float)
    data = centres[rng.integers(9, size=n)] + 0.1 * rng.normal(size=(n, 2))
    likelihood = IsotropicGaussian(2, 0.01)
    prior = likelihood.conjugate.natural(np.zeros(2), 10.0)
    return Mixture(likelihood, Dirichlet(9), np.ones(9), prior), data


def cells() -> tuple[Mixture, np.ndarray]:
    data = load_breast_cancer().data
    data = (data - data.mean(axis=0)) / data.std(axis=0)
    likelihood = DiagonalGaussian(30)
    prior = likelihood.conjugate.natural(np.zeros(30), 0.1, 2.0, 1.0)
    return Mixture(likelihood, Dirichlet(6), np.ones(6), prior), data


def blobs() -> tuple[Mixture, np.ndarray]:
    rng = np.random.default_rng(55)
    centres = rng.normal(size=(12, 4))
    data = centres[rng.integers(12, size=400)] + 0.3 * rng.normal(size=(400, 4))
    likelihood = IsotropicGaussian(4, 0.09)
    prior = likelihood.conjugate.natural(np.zeros(4), 10.0)
    return Mixture(likelihood, Dirichlet(12), np.ones(12), prior), data


def answers() -> tuple[Mixture, np.ndarray]:
    rng = np.random.default_rng(43)
    p = rng.beta(0.5, 0.5, size=(6, 10))
    data = (rng.random((200, 10)) < p[rng.integers(6, size=200)]).astype(float)
    likelihood = Bernoulli(10)
    return Mixture(likelihood, Dirichlet(6), np.ones(6), np.ones(likelihood.conjugate.size)), data


def one_covariance(n: int, k: int, rng: np.random.Generator) -> tuple[Mixture, np.ndarray]:
    z = rng.integers(k, size=n)
    data = 3.0 * rng.normal(size=(k, 2))[z] + 0.7 * rng.normal(size=(n, 2))
    likelihood = TiedGaussian(2, k)
    prior = likelihood.conjugate.natural(np.zeros((k, 2)), 0.5, 3.0, np.eye(2))
    return Mixture(likelihood, Dirichlet(k), np.full(k, 0.9), prior), data


def alike() -> tuple[Mixture, np.ndarray]:
    """Components start so much alike that plain inference rests there, and has to be pushed."""
    rng = np.random.default_rng([39, 1])
    n, k = int(rng.integers(25, 200)), int(rng.integers(2, 8))
    return one_covariance(n, k, rng)


def sticks() -> tuple[Mixture, np.ndarray]:
    rng = np.random.default_rng(1)
    centres = 3.0 * rng.normal(size=(7, 1))
    data = centres[rng.integers(7, size=150)] + 0.5 * rng.normal(size=(150, 1))
    likelihood = DiagonalGaussian(1)
    prior = likelihood.conjugate.natural(np.zeros(1), 0.5, 1.5, 1.0)
    return Mixture(likelihood, StickBreaking(7), np.repeat([1.0, 0.7], 7), prior), data


def run(model, data, policy, seed=0, **options):
    options = {"max_passes": 600, "tolerance": 1e-4, "progress": False, "n_threads": 1, **options}
    return fit(model, data, temperature=policy, seed=seed, **options)


def run_and_tell_phases(model, data, seed=0, **options):
    """An adaptive fit, and the phase of each step."""
    phases = ["plain"]  # which is what the step before has chosen
    note = [lambda report: phases.append("" if report.heat.finished else report.heat.phase)]
    result = run(model, data, AdaptiveTempering(), seed, callbacks=note, **options)
    return result, np.array(phases[: len(result.history)])


def test_finds_the_global_optimum_of_two_gaussians_from_every_start():
    model, data = two_gaussians(0)
    elbos = [run(model, data, AdaptiveTempering(), seed).elbo for seed in range(4)]
    best = max(run(model, data, None, seed).elbo for seed in range(8))
    assert min(elbos) > best - 0.01


def test_finds_clusters_that_plain_inference_misses():
    gaps = []
    for seed in range(3):
        model, data = clusters(seed)
        plain, adaptive = (run(model, data, p, seed).elbo for p in (None, AdaptiveTempering()))
        gaps.append(adaptive - plain)
    assert min(gaps) > -0.01
    assert sum(gap > 10 for gap in gaps) >= 2


@pytest.mark.parametrize(("way", "seed"), [("plain", 2), ("heated", 0), ("fresh", 22)])
def test_each_way_to_look_again_finds_what_one_cooling_missed(way, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(16, 5))
    data = centres[rng.integers(16, size=600)] + 0.3 * rng.normal(size=(600, 5))
    likelihood = IsotropicGaussian(5, 0.09)
    prior = likelihood.conjugate.natural(np.zeros(5), 10.0)
    model = Mixture(likelihood, Dirichlet(16), np.ones(16), prior)
    elbos = []
    for ways in ((way,), ()):
        monkeypatch.setattr(adaptive, "AGAIN", ways)
        elbos.append(run(model, data, AdaptiveTempering(), seed, max_passes=1000).elbo)
    assert elbos[0] > elbos[1] + 50


class Blocks(Model):
    """Binary cells, with clusters of rows (local variables) and of columns (global ones)."""

    def __init__(self, k, n_columns):
        self.k, self.n_columns, self.cell = k, n_columns, Beta(1)
        self.weights, self.uniform = Dirichlet(k), np.ones(k)

    def prior(self):
        empty = np.zeros((self.k, self.n_columns))
        return Natural(rows=self.uniform, ones=empty, zeros=empty)

    def statistics(self, x, q):
        return Natural(rows=q.sum(axis=0), ones=q.T @ x, zeros=q.T @ (1 - x))

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        sums = source.size / len(x) * self.statistics(x, rng.dirichlet(self.uniform, len(x)))
        columns = np.log(rng.dirichlet(self.uniform, self.n_columns))
        return self.with_cells(self.prior() + sums, columns)

    def with_cells(self, target, columns):
        counts = np.stack([target.ones, target.zeros], axis=-1)
        cells = 0.5 + np.einsum("kdv,dl->klv", counts, softmax(columns, axis=1))
        return Natural(rows=target.rows, columns=log_softmax(columns, axis=1), cells=cells)

    def expectations(self, posterior):
        cells = self.cell.expected_statistics(posterior.cells)
        cells = np.einsum("klv,dl->vdk", cells, softmax(posterior.columns, axis=1))
        return self.weights.expected_log_weights(posterior.rows), *cells

    def local_step(self, x, expectations, inverse_temperature):
        log_rows, one, zero = expectations
        s = np.reshape(inverse_temperature, (-1, 1))
        log_joint = log_rows + x @ one + (1 - x) @ zero
        q = softmax(s * log_joint, axis=1)
        energies = (q * log_joint).sum(axis=1)
        entropy = np.sum(logsumexp(s * log_joint, axis=1) - s[:, 0] * energies)
        return LocalStep(self.statistics(x, s * q), energies, entropy, inverse_temperature)

    def global_step(self, posterior, target, rate):
        """Columns given the cells of λ, which no sum of data tells, and then the cells."""
        cells = self.cell.expected_statistics(posterior.cells)
        columns = target.ones.T @ cells[..., 0] + target.zeros.T @ cells[..., 1]
        return super().global_step(posterior, self.with_cells(target, columns), rate)

    def divergence(self, posterior, prior_weight=1.0):
        columns = log_softmax(posterior.columns, axis=1)
        parts = (
            self.weights.divergence(posterior.rows, self.uniform, prior_weight),
            self.cell.divergence(posterior.cells, np.full(2, 0.5), prior_weight).sum(),
            np.sum(np.exp(columns) * (columns + prior_weight * np.log(self.k))),
        )
        return float(sum(parts))


def test_a_sample_hands_over_what_sums_of_data_do_not_tell(monkeypatch):
    """Sums over the columns of a fresh start mean nothing beside clusters of the old columns."""
    rng = np.random.default_rng(5)
    rows, columns = rng.integers(5, size=100), rng.integers(5, size=40)
    data = (rng.random((100, 40)) < rng.beta(0.6, 0.9, (5, 5))[rows][:, columns]).astype(float)
    model, sampled = Blocks(5, 40), []
    check_model(model, data)
    monkeypatch.setattr(adaptive, "AGAIN", ("plain",))
    note = [lambda report: sampled.append(getattr(report.heat, "samples_next", False))]
    result = run(model, data, AdaptiveTempering(), 1, callbacks=note)
    first = result.history["elbo"][sampled.index(True) + 2]  # of all data
    assert first > result.elbo - 100  # 440 below it with the old columns, which it cannot leave
    assert result.elbo > run(model, data, None, 1).elbo + 100


class Blurred(Mixture):
    """It starts with components that are nearly alike."""

    def initialize(self, source, rng):
        data = source.sample(10_000, rng)
        assignment = rng.dirichlet(np.full(self.n_components, 1e3), size=len(data))
        return self._prior + source.size / len(data) * self.statistics(data, assignment)


def test_a_fresh_start_is_not_left_on_the_plateau_where_components_are_alike(monkeypatch):
    """There a fit gains as little in each step as at rest, but more from step to step."""
    rng = np.random.default_rng(0)
    data = rng.beta(0.5, 0.5, size=(5, 10))[rng.integers(5, size=100)]
    data = (rng.random(data.shape) < data).astype(float)
    model, sampled = Blurred(Bernoulli(10), Dirichlet(5), np.ones(5), np.ones(20)), []
    monkeypatch.setattr(adaptive, "AGAIN", ("plain",))
    note = [lambda report: sampled.append(getattr(report.heat, "samples_next", False))]
    history = run(model, data, AdaptiveTempering(), callbacks=note).history
    start, first = history["elbo"][[0, sampled.index(True) + 2]]  # of all data
    assert first > 0.5 * (start + history["elbo"].max())


def test_the_best_is_heated_a_little_where_the_cooling_ended_far_below_it(monkeypatch):
    """All share a covariance, which grew with the heat: so they are alike at T = 1, too."""
    model, data = one_covariance(150, 5, np.random.default_rng(3))
    monkeypatch.setattr(adaptive, "AGAIN", ("heated", "quiet"))
    result, phases = run_and_tell_phases(model, data)
    again = phases == "cooling again"
    assert again.sum() > 2
    assert np.isclose(result.history["temperature"][again].max(), 1 / WARM)


def test_cooling_again_without_pushes_finds_what_they_missed(monkeypatch):
    """Where data are few, pushes and samples decide between optima that are nearly as good."""
    model, data = cells()
    elbos = []
    for ways in (("quiet",), ()):
        monkeypatch.setattr(adaptive, "AGAIN", ways)
        elbos.append(run(model, data, AdaptiveTempering(), max_passes=1000).elbo)
    assert elbos[0] > elbos[1] + 50


def test_nothing_better_is_lost_while_plain_inference_is_run_to_its_end():
    """A cooling ends above plain inference, which was paused and might still end above it."""
    model, data = cells()
    told = []
    tell = [lambda run: told.append(run.heat.telling)]
    result = run(model, data, AdaptiveTempering(), 1302, max_passes=1000, callbacks=tell)
    assert "plain inference to its end" in told
    seen = result.history["elbo"][result.history["temperature"] == 1.0]
    assert result.elbo >= seen.max()


@pytest.mark.parametrize("seed", [1302, 55, 43])
def test_no_fit_ends_below_plain_inference(seed):
    """Which was paused, may rise for long after that, and is pushed off saddles at its end."""
    model, data = {1302: cells, 55: blobs, 43: answers}[seed]()
    plain, adaptive = (
        run(model, data, policy, seed, max_passes=1000) for policy in (None, AdaptiveTempering())
    )
    assert adaptive.elbo > plain.elbo - 1e-3


@pytest.mark.parametrize(
    ("waited", "excess", "best", "phase"),
    [
        (60, 1e-6, -90.0, "settling again"),
        (40, 1e-6, -90.0, "plain to the end"),
        (60, 1e-6, -99.0, "plain to the end"),
        (60, 3e-5, -90.0, "plain to the end"),  # it rises faster and faster: nobody knows how far
    ],
)
def test_plain_inference_that_is_slow_and_far_below_is_given_up(waited, excess, best, phase):
    heat = AdaptiveHeat(
        phase="plain to the end",
        waited=waited,
        first_passes=100.0,
        excess_before=2e-5,
        best=best,
        plain_ended=True,
        path=np.array([[0.5, -90.0], [1.0, -80.0]]),
    )
    left = np.inf if excess > heat.excess_before else excess**2 / (heat.excess_before - excess)
    look = Look(bound=-100.0, energy=-80.0, unit=100.0, excess=excess, left=left)
    surroundings = SimpleNamespace(progress=Progress(200, 1, 1000), tolerance=1e-9)
    assert AdaptiveTempering()._settle(heat, look, surroundings).phase == phase


def test_what_had_come_to_rest_is_the_end_of_the_fit():
    """Else steps that are inexact, as of many models, might lead down from there."""
    model, data = answers()
    result = run(model, data, AdaptiveTempering(), max_passes=1000, tolerance=1e-3)
    assert result.converged
    assert list(result.history["phase"]).count("final") == 2  # the step that returns, and one more
    assert result.history[-1].elbo == pytest.approx(result.elbo, abs=1e-3)
    endless = run(model, data, AdaptiveTempering(), max_passes=200, tolerance=0.0)
    assert not endless.converged


@pytest.mark.parametrize(("problem", "seed"), [(alike, 39), (sticks, 1), (sticks, 10)])
def test_plain_inference_is_the_same_with_and_without_a_policy(problem, seed):
    """Step by step, off saddles too, and where the model revises what a step has found."""
    model, data = problem()
    options = {"seed": seed, "max_passes": 1000, "tolerance": 1e-3}
    plain = run(model, data, None, **options)
    adaptive, phases = run_and_tell_phases(model, data, **options)
    elbos = adaptive.history["elbo"][np.char.startswith(phases, "plain")]
    n_both = min(len(elbos), len(plain.history))
    assert n_both > 20
    np.testing.assert_array_equal(elbos[:n_both], plain.history["elbo"][:n_both])
    assert adaptive.elbo > plain.elbo - 1e-3


def test_minibatches_race_with_plain_inference_that_revises(monkeypatch):
    """Plain inference wins here, and is what it would have been alone."""
    model, data = sticks()
    options = {"batch_size": 50, "max_passes": 20, "learning_rate": RobbinsMonro(4.0)}
    bounds = chain([0.0], cycle([-1.0, 0.0]))  # of the start; then of the ramp and of the other
    monkeypatch.setattr(adaptive_ramp, "_bound", lambda *_: next(bounds))
    plain, adaptive = (
        run(model, data, policy, **options) for policy in (None, AdaptiveTempering())
    )
    assert adaptive.elbo == plain.elbo


def test_passes_count_what_samples_took():
    """A pass is as many data as there are, whoever solves them."""
    model, data = clusters(0)
    history = run(model, data, AdaptiveTempering(), 0).history
    extra = np.diff(history["passes"]) - 1.0
    assert extra.min() == pytest.approx(0.0)
    assert history[-1].passes == pytest.approx(len(history) + extra.sum())
    # The search for the critical temperature, and two ways to cool again at least.
    assert np.sum(extra > 1.0) >= 3


def test_a_sample_leaves_passes_for_the_end(monkeypatch):
    """Here 100 restarts of all data would take more passes than are left."""
    model, data = clusters(0, n=60)
    elbos = []
    for ways in ((), ("plain",)):
        monkeypatch.setattr(adaptive, "AGAIN", ways)
        monkeypatch.setattr(adaptive, "PLAIN_STARTS", 100)
        result = run(model, data, AdaptiveTempering(), max_passes=400)
        elbos.append(result.elbo)
    assert result.history[-1].passes <= 400
    assert elbos[1] > elbos[0] - 0.01


def test_components_that_known_weights_tell_apart_are_not_swapped():
    """Pushes drown the small difference that unequal weights make where components separate."""
    rng = np.random.default_rng(3)
    data = rng.normal(np.where(np.arange(300) < 90, -3.2, 3.2))[:, None]
    likelihood = IsotropicGaussian(1, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(1), 10.0)
    model = Mixture(likelihood, FixedWeights([0.3, 0.7]), np.empty(0), prior)
    swapped = likelihood.conjugate.natural(np.array([[3.0], [-3.0]]), np.ones(2))
    start = Natural(weights=np.empty(0), components=swapped)
    for seed in range(5):
        found = run(model, data, AdaptiveTempering(), seed, initial=start).posterior
        light, heavy = likelihood.conjugate.point(found.components).ravel()
        assert light < heavy


def test_the_search_leaves_passes_to_cool_in():
    """Of twenty data it looks at all of them, each time."""
    model, data = two_gaussians(0, n=20)
    found = run(model, data, AdaptiveTempering(), max_passes=60)
    assert found.history["temperature"].max() > 1.0
    assert found.history[-1].passes <= 60


@pytest.mark.parametrize(("planned", "taken"), [(10, 6), (5, 2), (3, 1)])
def test_a_run_too_short_for_plain_inference_stays_plain_and_warns(planned, taken):
    model, data = clusters(0)
    with pytest.warns(TemperingWarning, match="has tempered nothing") as caught:
        short = run(model, data, AdaptiveTempering(), max_passes=planned)
    assert len(caught) == 1
    assert short.warnings == (str(caught[0].message),)
    assert f"took {taken} of {planned} planned passes" in short.warnings[0]
    assert short.elbo == run(model, data, None, max_passes=planned).elbo
    assert np.all(short.history["temperature"] == 1.0)


def test_warnings_of_a_policy_survive_a_checkpoint(tmp_path):
    model, data = clusters(0)

    def stop(report):
        if report.heat.finished:
            raise KeyboardInterrupt

    options = {"max_passes": 10, "checkpoint": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        run(model, data, AdaptiveTempering(), callbacks=[stop], **options)
    for _ in ("resumed", "over"):
        with pytest.warns(TemperingWarning, match="has tempered nothing"):
            result = run(model, data, AdaptiveTempering(), **options)
        assert len(result.warnings) == 1


def test_a_result_prints_as_a_small_table():
    model, data = two_gaussians(0)
    shown = repr(run(model, data, AdaptiveTempering(), max_passes=300)).splitlines()
    names = ["model", "ELBO", "passes", "temperature", "converged", "warnings"]
    assert [line.split()[0] for line in shown] == names
    assert shown[0].split()[1:] == ["Mixture"]
    assert re.search(r"AdaptiveTempering, T from \d+(\.\d+)? to 1$", shown[3])
    assert shown[4].split()[1:] == ["yes"]
    assert shown[5].split()[1:] == ["none"]
    with pytest.warns(TemperingWarning):
        short = repr(run(model, data, AdaptiveTempering(), max_passes=3))
    assert "AdaptiveTempering, T = 1 throughout" in short
    assert "warnings     AdaptiveTempering has tempered nothing" in short
    minibatches = run(model, data, None, batch_size=100, max_passes=1, final_elbo=False)
    assert "not computed" in repr(minibatches)
    assert "not tested (minibatches)" in repr(minibatches)
    assert "temperature  T = 1 throughout" in repr(minibatches)


@pytest.mark.parametrize(("best", "returns"), [(-130.0, False), (-120.0, True)])
def test_a_cooling_that_is_cut_short_is_kept_if_it_is_better_at_one(best, returns):
    """The bound at s = 0.5 is −100 with an energy of −50: at T = 1 it is −125."""
    heat = AdaptiveHeat(
        0.5,
        phase="cooling",
        bound_before=-100.0,
        energy_before=-50.0,
        inverse_temperature_before=0.5,
        best=best,
    )
    policy = AdaptiveTempering()
    ended = policy.cool(heat, Progress(99.0, 1.0, 100.0))  # no step is left to look at it there
    assert ended.finished
    assert ended.returns == returns
    looks = policy.cool(heat, Progress(80.0, 1.0, 100.0))
    assert (looks.inverse_temperature, looks.finished) == (1.0, False)


def test_a_cooling_that_is_cut_short_is_judged_at_one():
    """By its q(z) while it was hot it was below plain inference; at T = 1 it is far above."""
    rng = np.random.default_rng(302)
    means, active = rng.normal(size=(3, 5)), rng.random((60, 3)) < 0.4
    data = active @ means + 0.3 * rng.normal(size=(60, 5))
    model = FactorialModel(3, 5, 0.1, 1.0, 0.3, local="exact")
    plain, adaptive = (
        run(model, data, policy, 302, max_passes=41) for policy in (None, AdaptiveTempering())
    )
    assert adaptive.history["phase"][-1] == "final"
    assert adaptive.elbo > plain.elbo + 100


@pytest.mark.parametrize("max_passes", [5, 20, 60, 400])
def test_ends_at_one_within_any_budget(max_passes):
    model, data = clusters(0)
    result = run(model, data, AdaptiveTempering(), max_passes=max_passes)
    temperatures = result.history["temperature"]
    assert temperatures[-1] == 1.0
    assert len(temperatures) <= max_passes
    if max_passes >= 60:
        assert temperatures.max() > 2


def test_holds_where_components_separate():
    model, data = two_gaussians(0)
    told = []
    run(model, data, AdaptiveTempering(), callbacks=[lambda r: told.append(r.heat.telling)])
    assert any(text.startswith("holding at T = ") for text in told)
    assert told[0] == "plain inference first"
    assert told[-1] == ""


def test_units_of_the_data_do_not_matter():
    """Neither the origin nor the scale: both go into the prior and into the ELBO alone."""
    model, data = clusters(1)
    likelihood = IsotropicGaussian(2, 1.0)
    prior = likelihood.conjugate.natural(np.full(2, 1000.0), 1000.0)
    moved = Mixture(likelihood, Dirichlet(9), np.ones(9), prior)
    paths = [
        run(m, x, AdaptiveTempering()).history["temperature"]
        for m, x in ((model, data), (moved, 1000.0 + 10 * data))
    ]
    assert len(paths[0]) == len(paths[1])
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-3)


def test_minibatches_start_hot_and_end_at_one():
    model, data = clusters(0)
    told = []
    watch = [lambda report: told.append(report.heat.telling)]
    result = run(model, data, AdaptiveTempering(), batch_size=50, max_passes=40, callbacks=watch)
    assert set(told) == {"cooling", ""}
    temperatures = result.history["temperature"]
    assert temperatures[5] > 3
    assert np.all(np.diff(temperatures[2:]) <= 0)
    assert temperatures[-1] == 1.0
    plain = [run(*clusters(n), None, batch_size=50, max_passes=40).elbo for n in range(2)]
    other = run(*clusters(1), AdaptiveTempering(), batch_size=50, max_passes=40)
    assert np.mean([result.elbo, other.elbo]) > np.mean(plain) + 10


def unequal_groups() -> tuple[Mixture, np.ndarray]:
    """Small groups beside large ones: heat makes one of them, and minibatches do not part them."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(1.0, 4.0, size=(8, 20)) + 0.05
    z = rng.choice(8, p=0.5 ** np.minimum(np.arange(1, 9), 7), size=1500)
    prior = np.r_[np.ones(20), np.full(20, 0.2)]
    return Mixture(Poisson(20), Dirichlet(8), np.ones(8), prior), rng.poisson(rates[z]).astype(
        float
    )


@pytest.mark.parametrize(
    ("step", "planned", "hot"),
    [(1.0, 1000, 800), (1.0, 20, 16), (1.0, 5, 2), (1.0, 2, 0.5), (0.001, 5, 4), (0.002, 2, 0.8)],
)
def test_short_runs_are_cooled_earlier(step, planned, hot):
    """But not where a few passes are many steps."""
    length = AdaptiveTempering().length(Progress(0.0, step, planned))
    assert length == pytest.approx(hot)


def test_minibatches_lose_nothing_where_heat_does_harm(monkeypatch):
    model, data = unequal_groups()
    options = {"seed": 1, "batch_size": 100, "max_passes": 20}
    plain = run(model, data, None, **options).elbo
    assert run(model, data, AdaptiveTempering(), **options).elbo > plain - 1.0
    monkeypatch.setattr(adaptive_ramp, "_bound", lambda *_: 0.0)  # the ramp alone
    assert run(model, data, AdaptiveTempering(), **options).elbo < plain - 1000.0


def interrupted(model, data, stop, place, **options):
    """A fit that was interrupted at a step, and went on from its checkpoint."""
    callbacks, kept = [lambda report: _stop(report, stop)], Checkpoint(place, every_steps=1)
    with pytest.raises(Interrupted):
        run(model, data, AdaptiveTempering(), callbacks=callbacks, checkpoint=kept, **options)
    return run(model, data, AdaptiveTempering(), checkpoint=place, **options)


def test_minibatches_go_on_from_a_checkpoint_to_the_same_bits(tmp_path):
    model, data = unequal_groups()
    options = {"batch_size": 300, "max_passes": 20}
    whole = run(model, data, AdaptiveTempering(), **options)
    for stop in (40, 83, 95):  # of 100: while it cools, beside plain inference, and alone
        assert interrupted(model, data, stop, tmp_path / str(stop), **options).elbo == whole.elbo


def test_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path):
    model, data = clusters(3, n=200)
    whole = run(model, data, AdaptiveTempering(), max_passes=300)
    n_steps = len(whole.history)
    # The search for the critical temperature, and samples that were cooled.
    assert np.sum(np.diff(whole.history["passes"]) > 1.5) >= 2
    for stop in (3, n_steps // 2, n_steps - 3):
        resumed = interrupted(model, data, stop, tmp_path / str(stop), max_passes=300)
        assert resumed.elbo == whole.elbo
        assert len(resumed.history) == n_steps


def _stop(report, step):
    if report.record.step == step:
        raise Interrupted


class Interrupted(Exception):
    pass


def test_threads_do_not_change_a_bit():
    model, data = clusters(4, n=400)
    model.shard_size = 64
    one, three = (run(model, data, AdaptiveTempering(), n_threads=n, max_passes=60) for n in (1, 3))
    assert one.elbo == three.elbo
    np.testing.assert_array_equal(one.posterior.components, three.posterior.components)


def test_the_critical_temperature_of_a_gaussian_mixture_is_the_variance_of_the_data():
    for scale in (1.0, 5.0):
        rng = np.random.default_rng(0)
        data = scale * rng.normal(size=(800, 1))
        likelihood = IsotropicGaussian(1, 0.01)
        prior = likelihood.conjugate.natural(np.zeros(1), 100.0)
        model = Mixture(likelihood, Dirichlet(3), np.ones(3), prior)
        s, _ = critical_inverse_temperature(model, data, rng)
        expected = 0.01 / scale**2
        assert expected / 2 < s < 1.1 * expected


@pytest.mark.parametrize("variance", [1e-4, 2e-5])
def test_the_critical_temperature_is_found_where_the_first_trial_is_too_cold(variance):
    rng = np.random.default_rng(0)
    data = rng.choice([-1.0, 1.0], size=(200, 1)) + 0.1 * rng.normal(size=(200, 1))
    likelihood = IsotropicGaussian(1, variance)
    prior = likelihood.conjugate.natural(np.zeros(1), 100.0)
    model = Mixture(likelihood, Dirichlet(3), np.ones(3), prior)
    s, _ = critical_inverse_temperature(model, data, rng)
    assert variance / 2.5 < s < 1.2 * variance


@pytest.mark.parametrize(("batch_size", "hottest"), [(50, 2.0), (None, 300.0)])
def test_a_model_without_a_critical_temperature_starts_at_a_usual_one_and_warns(
    batch_size, hottest, monkeypatch
):
    monkeypatch.setattr(adaptive, "critical_inverse_temperature", lambda *_: (None, 5))
    model, data = two_gaussians(0)
    with pytest.warns(TemperingWarning, match="found no critical temperature") as caught:
        result = run(model, data, AdaptiveTempering(), batch_size=batch_size, max_passes=100)
    assert len(caught) == 1
    assert result.warnings == (str(caught[0].message),)
    assert result.history["temperature"].max() == pytest.approx(hottest, rel=0.05)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_pushed_statistics_stay_valid(share):
    rng = np.random.default_rng(0)
    data = 1e3 + rng.normal(size=(200, 3))
    likelihood = FullGaussian(3)
    prior = likelihood.conjugate.natural(data.mean(0), 0.1, 5.0, np.eye(3))
    model = Mixture(likelihood, Dirichlet(4), np.ones(4), prior)
    start = model.initialize(_Source(data), rng)
    local = model.local_step(data, model.expectations(start), 0.3)
    posterior = model.prior() + pushed(local, model, data, share, 20, rng).statistics
    assert likelihood.conjugate.is_valid(posterior.components).all()
    assert model.counts(posterior).sum() == pytest.approx(0.3 * 200)


class _Source:
    def __init__(self, data):
        self.data, self.size = data, len(data)

    def sample(self, n, rng):
        return self.data[:n]


def test_plain_inference_leaves_a_saddle():
    """Components that start alike have equal updates for ever, unless they are pushed."""
    rng = np.random.default_rng(0)
    data = (rng.random((300, 12)) < np.repeat([[0.1], [0.9]], 150, axis=0)).astype(float)
    likelihood = Bernoulli(12)
    model = Mixture(likelihood, Dirichlet(2), np.ones(2), np.ones(likelihood.conjugate.size))
    for policy in (None, Annealing(schedules.linear(5.0), passes=20)):
        result = run(model, data, policy, initial=model.prior())
        means = likelihood.conjugate.point(result.posterior.components)
        assert np.ptp(np.asarray(means).reshape(2, -1).mean(axis=1)) > 0.5
        assert result.converged


class Stubborn(Mixture):
    """Falls back to the saddle whatever it is pushed to, for a fit that cannot leave."""

    def revise(self, posterior, before=0.0, after=1.0):
        return Natural(
            **{
                name: np.broadcast_to(part.mean(axis=0), part.shape)
                for name, part in posterior.items()
            }
        )


def test_a_saddle_that_cannot_be_left_is_told():
    data = np.repeat([[2], [20]], 100, axis=0)
    model = Stubborn(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    with pytest.warns(SaddleWarning, match=f"pushed off {MOST_ESCAPES} saddles"):
        result = run(model, data, None)
    assert result.at_saddle
    assert "saddle" in result.warnings[0]


class Moody(Stubborn):
    """Cannot leave its saddle in some restarts."""

    stuck = None

    def initialize(self, source, rng):
        if self.stuck is None:  # pushes start from here too
            self.stuck = bool(rng.integers(2))
        return super().initialize(source, rng)

    def revise(self, posterior, before=0.0, after=1.0):
        return super().revise(posterior) if self.stuck else posterior


def test_the_saddle_of_a_restart_that_is_given_up_is_not_told():
    data = np.repeat([[2], [20]], 100, axis=0)
    model = Moody(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SaddleWarning)
        result = run(model, data, None, n_init=4)
    assert np.ptp(result.restart_elbos) > 100


class Broken(Mixture):
    """One of its energies is not a number."""

    def local_step(self, *arguments):
        local = super().local_step(*arguments)
        local.energies[3] = np.nan
        return local


def test_energies_that_are_not_numbers_are_told():
    model = Broken(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    data = np.repeat([[2], [20]], 100, axis=0)
    with pytest.warns(RuntimeWarning, match="check_model"):
        result = run(model, data, None, max_passes=5)
    assert "not a number" in result.warnings[0]
    with pytest.raises(ValueError, match="check_model"):
        run(model, data, AdaptiveTempering(), max_passes=5)
    with pytest.raises(ValueError, match="check_model"):
        run(model, data, AdaptiveTempering(), max_passes=20, batch_size=100)


class Runaway(Mixture):
    """Its energies are no numbers where it is hot, as where p(x, z | β)^s is no distribution."""

    def local_step(self, data, expectations, inverse_temperature, *others):
        local = super().local_step(data, expectations, inverse_temperature, *others)
        if np.any(np.asarray(inverse_temperature) < 0.95):
            local.energies[:] = np.nan
            local.statistics = np.nan * local.statistics
        return local


@pytest.mark.parametrize("batch_size", [None, 50])
def test_a_model_that_cannot_be_heated_keeps_what_plain_inference_found(batch_size):
    rng = np.random.default_rng(0)
    data = rng.poisson(rng.choice([1, 9, 40], size=300))[:, None].astype(float)
    model = Runaway(Poisson(1), Dirichlet(3), np.ones(3), [1.0, 0.1])
    options = {"batch_size": batch_size, "max_passes": 100, "seed": 1}
    plain = run(model, data, None, **options).elbo
    with pytest.warns(TemperingWarning, match="abandoned heating"):
        result = run(model, data, AdaptiveTempering(), **options)
    assert result.elbo == pytest.approx(plain, abs=1.0)


@pytest.mark.parametrize(
    ("name", "value"), [("pace", 0), ("rest", -1), ("push", 2), ("fraction", None), ("pace", "x")]
)
def test_refuses_odd_settings_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        AdaptiveTempering(**{name: value})


def test_a_heat_tells_what_it_does():
    heat = AdaptiveHeat(0.25, phase="cooling", waited=2)
    assert heat.telling == "holding at T = 4: components are separating"
    assert replace(heat, waited=0).telling == "cooling"
