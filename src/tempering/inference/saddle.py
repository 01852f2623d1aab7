"""Whether a fit that came to rest stands at an optimum, or at a saddle.

At a saddle (all components alike, say) every update leaves λ where it is, and a fit looks
converged. A push tells: from near an optimum the bound comes back to where it was from below, by
less from step to step; from near a saddle its gains grow, and it rises beyond.
"""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from tempering.inference.run import State
from tempering.models.base import LocalStep
from tempering.temperature import Heat, Surroundings, TemperaturePolicy, Untempered
from tempering.temperature.probes import pushed

#: Two data make components that differ much; a tenth of the weight does not leave an optimum.
SHARE, ROWS = 0.1, 2
#: A push has died out when it costs this part of what it did, and gains fall by this factor a step.
GONE, FADING = 1e-3, 0.8
#: Steps until it is clear whether gains grow, and steps that growing gains have to show something.
MOST, LONGEST = 30, 150
#: Gains below this part of the bound are rounding.
ROUNDING = 1e-12
#: A fit leaves so many saddles at most.
MOST_ESCAPES = 3


class SaddleWarning(UserWarning):
    """A fit has come to rest where its updates lead no further, but where no optimum is."""


def warn_of_saddle(stacklevel: int = 3) -> None:
    """Say that a fit, the best of its restarts, ends where no optimum is."""
    warnings.warn(
        "The fit has come to rest at a saddle: after a small push its ELBO rises beyond where it "
        f"stands. It was pushed off {MOST_ESCAPES} saddles before. Try n_init=10, another seed, or "
        "temperature=AdaptiveTempering(), and compare the ELBOs.",
        SaddleWarning,
        stacklevel=stacklevel,  # by default whoever called fit
    )


@dataclass(frozen=True)
class Pushed(TemperaturePolicy[Heat]):
    """T = 1, and one push of the statistics."""

    seed: int = 0

    def begin(self, model: Any, n_data: int, rng: np.random.Generator) -> Heat:
        return Heat()

    def update(
        self, heat: Heat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, Heat]:
        rng = np.random.default_rng(self.seed)
        return pushed(local, surroundings.model, surroundings.data, SHARE, ROWS, rng), heat


def leave_saddle(
    advance: Callable[[TemperaturePolicy, State], Any], state: State, tolerance: float, seed: int
) -> State | None:
    """A state with a better bound that a push led to, or None: then it is an optimum."""
    # Not finished, so that no hyperparameters are learned from a trial.
    trial = state._replace(posterior=deepcopy(state.posterior), heat=Heat())
    step = advance(Pushed(seed), trial)
    settled, costs = step.elbo, []
    for turn in range(1, LONGEST):
        trial = step.state
        step = advance(Untempered(), trial)
        costs.append(settled - step.elbo)
        # More than plain steps would have gained meanwhile.
        if costs[-1] < -turn * tolerance:
            return trial
        if turn < 4:  # the first gain is that of a push which dies out in all other directions
            continue
        before, gain = costs[-3] - costs[-2], costs[-2] - costs[-1]
        # The cost of what grows goes through 0 too, so a small cost does not tell by itself.
        small = max(map(abs, costs[-2:])) < GONE * abs(costs[0])
        if gain <= ROUNDING * abs(settled) or (small and gain < min(tolerance, FADING * before)):
            return None
        if turn >= MOST and gain <= before:
            break
    return trial if costs[-1] < -tolerance else None
