"""Adaptive tempering: what one run finds, that it ends at T = 1, and that it goes on from anywhere;
and what a fit that rests is perturbed for."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from tempering import AdaptiveTempering, Annealing, Mixture, Natural, fit, schedules
from tempering.families import (
    Bernoulli,
    Dirichlet,
    FullGaussian,
    IsotropicGaussian,
    Poisson,
)
from tempering.inference import ArraySource, Checkpoint, SaddleWarning
from tempering.inference.saddle import MOST_ESCAPES
from tempering.temperature import Perturbation
from tempering.temperature.adaptive import HOTTEST
from tempering.temperature.perturbation import perturbed


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


def run(model, data, policy, seed=0, **options):
    options = {"max_passes": 600, "tolerance": 1e-4, "progress": False, "n_threads": 1, **options}
    return fit(model, data, temperature=policy, seed=seed, **options)


def test_finds_the_global_optimum_of_two_gaussians_from_every_start():
    model, data = two_gaussians(0)
    elbos = [run(model, data, AdaptiveTempering(), seed).elbo for seed in range(4)]
    best = max(run(model, data, None, seed).elbo for seed in range(8))
    assert min(elbos) > best - 0.01


def test_finds_clusters_that_plain_inference_misses():
    gains = []
    for seed in range(6):
        model, data = clusters(seed)
        plain, adaptive = (run(model, data, p, seed).elbo for p in (None, AdaptiveTempering()))
        gains.append(adaptive - plain)
    assert sum(gain > 10 for gain in gains) >= 3
    assert sum(gain < -10 for gain in gains) <= 1


@pytest.mark.parametrize("max_passes", [2, 5, 20, 60, 400])
def test_ends_at_one_within_any_number_of_passes(max_passes):
    model, data = clusters(0)
    result = run(model, data, AdaptiveTempering(), max_passes=max_passes)
    temperatures = result.history["temperature"]
    assert temperatures[0] == pytest.approx(1 / HOTTEST)
    assert np.all(np.diff(temperatures) <= 0)
    assert temperatures[-1] == 1.0
    assert result.history[-1].passes <= max_passes
    if max_passes >= 20:  # and does not jump there
        assert temperatures[temperatures > 1.0].min() < 5.0


def test_holds_where_components_separate():
    model, data = two_gaussians(0)
    phases = []
    watch = [lambda report: phases.append(report.heat.phase)]
    result = run(model, data, AdaptiveTempering(), callbacks=watch)
    held = np.array([phase.startswith("holding") for phase in phases[: len(result.history)]])
    temperatures = result.history["temperature"]
    # All data have the variance 10.4, and so the critical temperature is 10.4.
    assert held[:-1][temperatures[1:] > 100].mean() < 0.2
    assert held[:-1][(temperatures[1:] > 2) & (temperatures[1:] < 20)].mean() > 0.3
    assert phases[-1] == ""


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


def test_rejects_minibatches_and_names_what_to_take():
    model, data = clusters(0)
    with pytest.raises(
        ValueError, match=r"take all data at each step.*Annealing.*tempering\.search"
    ):
        run(model, data, AdaptiveTempering(), batch_size=50)


class Interrupted(Exception):
    pass


def test_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path):
    model, data = clusters(3, n=200)
    whole = run(model, data, AdaptiveTempering(), max_passes=300)
    n_steps = len(whole.history)
    for stop in (3, n_steps // 2, n_steps - 3):
        checkpoint = Checkpoint(tmp_path / str(stop), every_steps=1)

        def interrupt(report, stop=stop):
            if report.record.step == stop:
                raise Interrupted

        options = {"max_passes": 300, "checkpoint": checkpoint}
        with pytest.raises(Interrupted):
            run(model, data, AdaptiveTempering(), callbacks=[interrupt], **options)
        resumed = run(model, data, AdaptiveTempering(), **options)
        assert resumed.elbo == whole.elbo
        assert len(resumed.history) == n_steps


def test_threads_do_not_change_a_bit():
    model, data = clusters(4, n=400)
    model.shard_size = 64
    one, three = (run(model, data, AdaptiveTempering(), n_threads=n, max_passes=60) for n in (1, 3))
    assert one.elbo == three.elbo
    np.testing.assert_array_equal(one.posterior.components, three.posterior.components)


def test_a_result_prints_as_a_small_table():
    model, data = two_gaussians(0)
    shown = repr(run(model, data, AdaptiveTempering(), max_passes=300)).splitlines()
    names = ["model", "ELBO", "passes", "temperature", "converged", "warnings"]
    assert [line.split()[0] for line in shown] == names
    assert shown[0].split()[1:] == ["Mixture"]
    assert re.search(r"AdaptiveTempering, T from 1e\+05 to 1$", shown[3])
    assert shown[4].split()[1:] == ["yes"]
    assert shown[5].split()[1:] == ["none"]
    minibatches = run(model, data, None, batch_size=100, max_passes=1, final_elbo=False)
    assert "not computed" in repr(minibatches)
    assert "not tested (minibatches)" in repr(minibatches)
    assert "temperature  T = 1 throughout" in repr(minibatches)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_perturbed_statistics_stay_valid(share):
    rng = np.random.default_rng(0)
    data = 1e3 + rng.normal(size=(200, 3))
    likelihood = FullGaussian(3)
    prior = likelihood.conjugate.natural(data.mean(0), 0.1, 5.0, np.eye(3))
    model = Mixture(likelihood, Dirichlet(4), np.ones(4), prior)
    start = model.initialize(ArraySource(data), rng)
    local = model.local_step(data, model.expectations(start), 0.3)
    step = perturbed(local, model, data, Perturbation(share, 20), rng)
    posterior = model.prior() + step.statistics
    assert likelihood.conjugate.is_valid(posterior.components).all()
    assert model.counts(posterior).sum() == pytest.approx(0.3 * 200)


def test_plain_inference_leaves_a_saddle():
    """Components that start alike have equal updates for ever, unless they are perturbed."""
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
    """Falls back to the saddle however it is perturbed, for a fit that cannot leave."""

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
        if self.stuck is None:  # perturbations start from here too
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


class Runaway(Mixture):
    """Its energies are no numbers where it is hot, as where p(x, z | β)^s is no distribution."""

    def local_step(self, data, expectations, inverse_temperature, *others):
        local = super().local_step(data, expectations, inverse_temperature, *others)
        if np.any(np.asarray(inverse_temperature) < 0.95):
            local.energies[:] = np.nan
        return local


def test_a_model_that_cannot_be_heated_is_told_why():
    data = np.random.default_rng(0).poisson(9, size=300)[:, None].astype(float)
    model = Runaway(Poisson(1), Dirichlet(3), np.ones(3), [1.0, 0.1])
    with pytest.raises(ValueError, match=r"at T = 1e.05 is not a number.* is an augmentation"):
        run(model, data, AdaptiveTempering())


@pytest.mark.parametrize(
    ("name", "value"),
    [("pace", 0), ("rest", -1), ("perturbation", 2), ("fraction", None), ("pace", "x")],
)
def test_refuses_odd_settings_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        AdaptiveTempering(**{name: value})


def test_perturbations_differ_from_step_to_step_and_seed_to_seed(monkeypatch):
    drawn = []

    def noted(local, model, data, by, rng):
        drawn.append(rng.random())
        return local

    monkeypatch.setattr("tempering.inference.engine.perturbed", noted)
    model, data = two_gaussians(0)
    for seed in (0, 1):
        run(model, data, AdaptiveTempering(), seed, max_passes=10)
    assert len(drawn) > 10
    assert len(set(drawn)) == len(drawn)
