"""What a push is taken for, by what becomes of it: the ELBOs of a run are given."""

from types import SimpleNamespace

import numpy as np
import pytest

from tempering import AdaptiveTempering, Checkpoint, LocalStep, Mixture, Untempered, fit
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.inference import Constant, History, engine
from tempering.inference.run import Run, State
from tempering.inference.saddle import leave_saddle
from tempering.temperature import Heat


def end_of(elbos):
    """The state to which a push leads that first costs 1,000 nats."""
    state, elbos = State(None, Heat()), iter([-1000.0, -2000.0, *elbos])

    def advance(policy, trial):
        return SimpleNamespace(elbo=next(elbos), state=trial)

    trial = leave_saddle(advance, state, 1e-3, seed=0)
    while True:
        try:
            next(trial)
        except StopIteration as end:
            return end.value


def test_gains_that_grow_leave_a_saddle_however_small_they_are():
    gains = 1e-4 * 1.3 ** np.arange(60)
    assert end_of(-1000.5 + np.cumsum(gains)) is not None


def test_gains_that_fade_end_at_the_optimum():
    assert end_of(-1000.0 - 0.5 ** np.arange(1, 60)) is None


@pytest.mark.parametrize(
    ("keeps", "returns", "escapes"),
    [(False, False, 3), (False, True, 0), (True, False, 0), (True, True, 2)],
)
def test_pushes_that_led_elsewhere_are_not_counted(keeps, returns, escapes):
    """Of a fit that goes back, or that keeps where it is and looks for something better; but a
    state that changes places with another goes on with its own."""
    algorithm = engine.Algorithm(None, Untempered(), Constant(), None, 1, planned_passes=10)
    before = State(None, Heat())
    run = Run(None, before, Heat(), History(), kept=before, kept_escapes=2)
    run = run._replace(escapes=3, at_saddle=True)
    state = State(None, Heat(keeps=keeps, returns=returns), step=1, data_seen=1)
    step = engine.Step(state, LocalStep(None, np.zeros(1), 0.0, 1.0), -1.0, -1.0)
    after = engine._recorded(algorithm, run, step, evaluated=True, settled=False, started=0.0)
    assert after.escapes == escapes
    assert after.kept_escapes == (3 if keeps else 2)
    assert after.at_saddle == (escapes == 3)


def test_steps_of_a_trial_count_as_passes(monkeypatch):
    """Each call of the local step is a pass, whether or not the run stays where it was."""
    made = []
    original = Mixture.local_step

    def counted(self, data, *arguments):
        made.append(data.shape[0])
        return original(self, data, *arguments)

    monkeypatch.setattr(Mixture, "local_step", counted)
    monkeypatch.setattr("tempering.inference.saddle.ROWS", 60)  # a perturbation looks at them too
    data = np.random.default_rng(0).normal(np.repeat([-4.0, 4.0], 30))[:, None]
    model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    result = fit(model, data, final_elbo=False, n_threads=1)
    assert result.converged
    assert result.history[-1].passes == len(made) - 1 > len(result.history)


def test_a_trial_can_be_stopped_and_resumed(tmp_path):
    data = np.random.default_rng(0).normal(np.repeat([-4.0, 4.0], 30))[:, None]
    model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    whole = fit(model, data)
    steps, passes = len(whole.history), whole.history[-1].passes
    reports = []

    def interrupt(report):
        reports.append(report.record.passes)
        if len(reports) == steps + 2:
            raise KeyboardInterrupt

    checkpoint = Checkpoint(tmp_path, every_steps=1)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data, callbacks=[interrupt], checkpoint=checkpoint)
    assert reports[-1] == steps + 2
    resumed = fit(model, data, checkpoint=checkpoint)
    assert resumed.elbo == whole.elbo
    assert resumed.history[-1].passes == passes


def test_a_callback_that_stops_a_search_gets_the_best_so_far():
    """Adaptive tempering had found a better state before it was stopped while hot."""
    rng = np.random.default_rng(0)
    centres = np.array([(x, y) for x in range(3) for y in range(3)])
    data = np.repeat(centres, 40, axis=0) + rng.normal(scale=0.1, size=(360, 2))
    likelihood = IsotropicGaussian(2, 0.01)
    prior = likelihood.conjugate.natural(np.zeros(2), 0.1)
    model = Mixture(likelihood, Dirichlet(9), np.ones(9), prior)
    seen = []

    def stop(report):
        seen.append(report.record.elbo)
        return report.record.phase == "tempered" and report.record.elbo < max(seen) - 300

    result = fit(model, data, temperature=AdaptiveTempering(), callbacks=[stop], seed=1)
    assert seen[-1] < max(seen) - 300
    assert result.elbo > max(seen) - 1.0
