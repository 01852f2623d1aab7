"""Adaptive tempering: cool while the fit is at rest, hold the temperature while it moves.

At an inverse temperature s the annealed bound is  L(s) = max_q [ s E(q) + S(q) ],  with E the
expected log likelihood and S all the rest. It is convex in s, and dL/ds = E. So a fit at rest gains
E ds as s rises, and what it gains beyond that says how far it has moved: the *excess*. Where optima
split, the excess grows from step to step while little else shows, so s must wait. And components
that have become equal separate only if something keeps them a little apart.

So s rises from next to nothing, the faster the smaller the excess, and is held while the excess is
large; each step is perturbed a little. There is no schedule, no start temperature, no log C(T).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tempering.models.arguments import check_number
from tempering.models.base import LocalStep, Model
from tempering.storage.state import stored
from tempering.temperature.policy import (
    NOT_A_NUMBER,
    Heat,
    Perturbation,
    Progress,
    Surroundings,
    TemperaturePolicy,
)

#: The first s: components are alike there, whatever the model and the scale of its data.
HOTTEST = 1e-5
#: Where the excess is far below what counts as rest, cooling is up to this many times faster.
FASTEST = 4.0
#: Data of a perturbation: enough that components are alike to some tens of percent.
PERTURBED_ROWS = 20


@dataclass(frozen=True)
class AdaptiveHeat(Heat):
    """The state of adaptive tempering: L, E and s of the step before."""

    bound_before: float = -math.inf
    energy_before: float = 0.0
    inverse_temperature_before: float = HOTTEST

    @property
    def phase(self) -> str:
        if self.finished:
            return ""
        held = self.inverse_temperature == self.inverse_temperature_before != HOTTEST
        return "holding: components are separating" if held else "cooling"


@stored("adaptive_tempering")
@dataclass(frozen=True)
class AdaptiveTempering(TemperaturePolicy[AdaptiveHeat]):
    """Find the schedule during the fit.

    The fit starts so hot that all components are alike, cools while it is at rest, and holds the
    temperature while components separate. It takes some hundred passes over all data; minibatches
    are too noisy to tell rest. ``tempering.search`` finds better optima in the same time, because
    it makes several runs; take this policy where one run is wanted.

    Parameters
    ----------
    pace : float
        The rise of log s in a step at rest.
    rest : float
        A step is at rest if its excess for each datum is below this part of the standard deviation
        of the data's energies.
    perturbation : float
        Share of another solution that is mixed into each tempered step.
    fraction : float
        Part of the planned run by which T is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import AdaptiveTempering, Mixture, fit
    >>> from tempering.families import Dirichlet, IsotropicGaussian
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(rng.choice([-4.0, 4.0], size=300))[:, None]
    >>> model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    >>> result = fit(model, data, temperature=AdaptiveTempering())
    >>> np.sort(model.likelihood.conjugate.point(result.posterior.components).ravel()).round()
    array([-4.,  4.])
    """

    usual_passes: ClassVar[float] = 1000.0
    takes_minibatches: ClassVar[bool] = False

    pace: float = 0.13
    rest: float = 1e-3
    perturbation: float = 0.02
    fraction: float = 0.8

    def __post_init__(self) -> None:
        check_number(self.pace, "pace", "positive", above=0)
        check_number(self.rest, "rest", "positive", above=0)
        check_number(self.perturbation, "perturbation", "from 0 to 1", least=0, most=1)
        check_number(self.fraction, "fraction", "above 0 and at most 1", above=0, most=1)

    def length(self, progress: Progress) -> float:
        return self.fraction * progress.planned

    def begin(self, model: Model, n_data: int, rng: np.random.Generator) -> AdaptiveHeat:
        if model.with_bound() is not model:
            raise ValueError(
                f"AdaptiveTempering goes by the ELBO, and these updates of {type(model).__name__} "
                "climb none: take another policy, such as Annealing, or, for topics, "
                "update='variational'."
            )
        return AdaptiveHeat(HOTTEST)

    def cool(self, heat: AdaptiveHeat, progress: Progress) -> AdaptiveHeat:
        if heat.inverse_temperature == 1.0 or progress.passes >= self.length(progress):
            return AdaptiveHeat(finished=True)
        return heat

    def perturb(self, heat: AdaptiveHeat) -> Perturbation:
        share = 0.0 if heat.finished else self.perturbation
        return Perturbation(share, PERTURBED_ROWS)

    def update(
        self, heat: AdaptiveHeat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, AdaptiveHeat]:
        """Hold s while the fit moves, or raise it."""
        if heat.finished:
            return local, heat
        s, energies = float(heat.inverse_temperature), np.asarray(local.energies)
        energy = float(energies.sum())
        bound = s * energy + local.entropy - surroundings.model.divergence(surroundings.posterior)
        if math.isnan(bound):
            raise ValueError(
                f"AdaptiveTempering goes by the ELBO, which at T = {1 / s:.3g} {NOT_A_NUMBER} Or "
                "p(x, z | β) to the power 1/T is not a distribution, as where z is an "
                "augmentation: then do not temper the terms of z."
            )
        # Data that are all alike have no spread.
        spread = max(float(energies.std()), 1e-6 * (1.0 + abs(energy) / local.n))
        rise = (s - heat.inverse_temperature_before) * heat.energy_before
        excess = (bound - heat.bound_before - rise) / (local.n * spread)
        # Steps that are left set the least pace, so that T = 1 is reached in time.
        progress = surroundings.progress
        left = self.length(progress) - progress.passes
        least = -math.log(s) * progress.step / max(0.8 * left, progress.step)
        colder = s
        if excess <= self.rest or least >= FASTEST * self.pace:
            faster = math.sqrt(self.rest / max(abs(excess), 1e-12)) / 2
            pace = max(self.pace * min(max(faster, 1.0), FASTEST), least)
            colder = min(1.0, s * math.exp(pace))
        heat = replace(
            heat,
            inverse_temperature=colder,
            bound_before=bound,
            energy_before=energy,
            inverse_temperature_before=s,
        )
        return local, heat
