"""Whether a fit that came to rest stands at an optimum, or at a saddle.

At a saddle (all components alike, say) every update leaves λ where it is, and a fit looks
converged. A push tells: from near an optimum the bound comes back to where it was from below, by
less from step to step; from near a saddle its gains grow, and it rises beyond.
"""

from collections.abc import Callable, Generator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from tempering.inference.run import State
from tempering.temperature import Heat, Perturbation, TemperaturePolicy, Untempered

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


#: The message of a fit that ends at one.
AT_SADDLE = (
    "The fit has converged to a saddle point: after a small perturbation its ELBO rises further. "
    f"It was pushed off {MOST_ESCAPES} saddles before. Try n_init=10, another seed, or "
    "tempering.search with a larger budget, and compare the ELBOs."
)


@dataclass(frozen=True)
class Perturbed(TemperaturePolicy[Heat]):
    """T = 1, and a perturbation of each step."""

    def begin(self, model: Any, n_data: int, rng: np.random.Generator) -> Heat:
        return Heat()

    def perturb(self, heat: Heat) -> Perturbation:
        return Perturbation(SHARE, ROWS)


def leave_saddle(
    advance: Callable[[TemperaturePolicy, State], Any], state: State, tolerance: float
) -> Generator[Any, None, State | None]:
    """Perturb a state that has converged, and yield each step of the trial.

    Returns
    -------
    State or None
        A state with a better bound that the perturbation led to; None at an optimum.
    """
    # Not finished, so that no hyperparameters are learned from a trial.
    trial = state._replace(posterior=deepcopy(state.posterior), heat=Heat())
    step = advance(Perturbed(), trial)
    yield step
    settled, costs = step.elbo, []
    for turn in range(1, LONGEST):
        trial = step.state
        step = advance(Untempered(), trial)
        yield step
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
