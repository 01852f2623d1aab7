"""What a push is taken for, by what becomes of it: the ELBOs of a run are given."""

from types import SimpleNamespace

import numpy as np
import pytest

from tempering import Checkpoint, Mixture, fit
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.inference.run import State
from tempering.inference.saddle import leave_saddle
from tempering.temperature import Heat


def end_of(elbos):
    """The state to which a push leads that first costs 1,000 nats."""
    state, elbos = State(None, Heat()), iter([-1000.0, -2000.0, *elbos])

    def advance(policy, trial):
        return SimpleNamespace(elbo=next(elbos), state=trial)

    trial = leave_saddle(advance, state, 1e-3)
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
