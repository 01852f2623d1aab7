"""What a push is taken for, by what becomes of it: the ELBOs of a run are given."""

from types import SimpleNamespace

import numpy as np
import pytest

from tempering import LocalStep, Untempered
from tempering.inference import Constant, History, engine
from tempering.inference.run import Run, State
from tempering.inference.saddle import leave_saddle
from tempering.temperature import Heat


def end_of(elbos):
    """The state to which a push leads that first costs 1,000 nats."""
    state, elbos = State(None, Heat()), iter([-1000.0, -2000.0, *elbos])

    def advance(policy, trial):
        return SimpleNamespace(elbo=next(elbos), state=trial)

    return leave_saddle(advance, state, 1e-3, seed=0)


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
