"""Adaptive tempering in minibatches: a ramp of the temperature, in a race with plain inference.

Bounds of minibatches are too noisy to say when to wait, and heat may do harm that nothing at the
start tells. So T falls on a path that the first minibatch showed, plain inference runs beside it on
the same batches, and the better of the two goes on alone.
"""

from __future__ import annotations

import math
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from tempering.models.base import LocalStep
from tempering.temperature.adaptive_heat import NO_BOUND, TOO_HOT, AdaptiveHeat
from tempering.temperature.policy import Surroundings
from tempering.temperature.probes import find_ramp

#: Taken for the critical s of a model whose components differ however hot it is: a ramp is the only
#: attempt of its fit, and what it loses while hot is lost.
RAMP_NEVER_ALIKE = 1 / 8
#: Small steps separate components slowly near the critical temperature: a ramp starts below it.
RAMP_START, RAMP_COLDEST = 4.0, 0.75
#: Temperatures at which a ramp is measured; the part of the time at T = 1 after which the better of
#: the ramp and of plain inference goes on alone; and the looks at both until then, as a bound may
#: take as long as many steps.
RAMP_NODES, RACE, RACE_LOOKS = 40, 0.5, 20


def start_ramp(
    heat: AdaptiveHeat,
    local: LocalStep,
    surroundings: Surroundings,
    critical: float,
    length: float,
) -> AdaptiveHeat:
    """The first minibatch says where to start, and how fast to cool."""
    if math.isnan(_bound(local, surroundings.posterior, surroundings)):
        raise ValueError(NO_BOUND)
    first = min(RAMP_START * critical, RAMP_COLDEST)
    rng = np.random.default_rng([heat.seed, heat.step])
    progress = surroundings.progress
    nodes = int(min(max(progress.planned / progress.step / 50, 8), RAMP_NODES))
    path = find_ramp(surroundings.model, surroundings.data, first, nodes, rng)
    if not np.isfinite(path).all():
        return AdaptiveHeat(finished=True, warnings=(TOO_HOT.format(1.0 / first),))
    plain = deepcopy(surroundings.posterior)
    times = np.stack([path[:, 0], length * path[:, 1]], axis=1)
    return replace(heat, phase="ramp", path=times, plain=plain, inverse_temperature=first)


def race(
    heat: AdaptiveHeat, local: LocalStep, surroundings: Surroundings
) -> tuple[LocalStep, AdaptiveHeat]:
    """A step of plain inference beside that of the ramp, and at the end the better of them."""
    if heat.finished:
        return local, heat
    model, scale, progress = surroundings.model, surroundings.scale, surroundings.progress
    plain = local  # of the first step, which both begin with
    if heat.step:
        plain = model.local_step(surroundings.data, model.expectations(heat.plain), 1.0)
    assert heat.path is not None
    length = float(heat.path[-1, 1])
    if progress.passes >= length:
        span = RACE * (progress.planned - length)
        if heat.step % max(1, int(span / progress.step / RACE_LOOKS)) == 0:
            ahead = _bound(local, surroundings.posterior, surroundings)
            ahead -= _bound(plain, heat.plain, surroundings)
            heat = replace(heat, lead=heat.lead + ahead)
        if progress.passes + progress.step >= length + span:
            if not heat.lead >= 0.0:  # nor where heat has led to what is no number
                local = copy(local)
                local.statistics, local.found_at = plain.statistics, heat.plain
            return local, AdaptiveHeat(finished=True, path=heat.path)
    target = model.prior() + scale * plain.statistics
    after = model.global_step(heat.plain, target, surroundings.rate)
    after = model.revise(after, *progress.parts)
    return local, replace(heat, plain=after, step=heat.step + 1)


def _bound(local: LocalStep, posterior: Any, surroundings: Surroundings) -> float:
    """The ELBO of a step at T = 1, estimated from its batch."""
    bound = surroundings.scale * (local.energy + local.entropy)
    return float(bound - surroundings.model.divergence(posterior))
