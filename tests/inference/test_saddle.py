"""What a push is taken for, by what becomes of it: the ELBOs of a run are given."""

from types import SimpleNamespace

import numpy as np

from tempering.inference.run import State
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
