"""Adaptive tempering: a temperature that finds its own schedule, for any model.

At an inverse temperature s the annealed bound is  L(s) = max_q [ s E(q) + S(q) ],  with E the
expected log likelihood and S all the rest. It is convex in s, and dL/ds = E. Three things follow
for a schedule. A fit at rest gains E ds as s rises, and what it gains beyond that says how far it
has moved: the *excess*. Where optima split, the excess grows from step to step while little else
shows, so s must wait. And components that have become equal separate only if something keeps them a
little apart.

So s rises step by step, the faster the smaller the excess, and is held while the excess is large;
each step is pushed a little. It starts well above the critical temperature, which the model's own
updates of some data tell (with minibatches a little below it). No schedule, no start temperature,
no log C(T).
"""

from __future__ import annotations

import math
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tempering.models.arguments import check_number
from tempering.models.base import LocalStep, Model, some_rows
from tempering.storage.state import stored
from tempering.temperature.adaptive_heat import NO_BOUND, TOO_HOT, AdaptiveHeat, Look
from tempering.temperature.adaptive_ramp import RAMP_NEVER_ALIKE, race, start_ramp
from tempering.temperature.policy import Progress, Surroundings, TemperaturePolicy
from tempering.temperature.probes import critical_inverse_temperature, new_start, pushed

#: Where the excess is far below what counts as rest, cooling is up to so many times faster.
FASTEST = 4.0
#: A bound at T = 1 has settled when what is left to gain is this part of what counts as rest.
SETTLED = 0.1
#: Data that tell the critical temperature, or a quarter of them; and the coldest start.
SEARCH_ROWS, COLDEST_START = 125, 0.9
#: What is taken for the critical s of a model whose components differ however hot it is.
NEVER_ALIKE = 1 / 30
#: In a short run more is left for T = 1: so many passes, or steps where these are fewer, but not
#: more than this part of the run.
LEAST_COLD, COLD_STEPS, MOST_COLD = 3.0, 600, 0.75
#: Data of a push: enough that components are alike to some tens of percent.
PUSH_ROWS = 20
#: A fresh start is made of so many data, and is cooled from this s.
FRESH_ROWS, FRESH_START = 40, 0.7
#: Cooling starts at this part of the critical s, where a fit soon forgets where it was.
FORGETTING = 0.1
#: Ways to find something better, the next of them where one did not: plain inference of fresh
#: starts at T = 1; to cool the best so far again, after a sample; to cool it again a little, all
#: data and without pushes; to cool a fresh start.
AGAIN = "plain", "heated", "quiet", "fresh"
#: The best is heated up to where the first cooling still lacked this part of its energy; where that
#: takes all data, no further than to this s.
HEATED, QUIET_START = {"heated": 0.3, "quiet": 0.1}, 0.2
#: Of so many fresh starts the best is taken up; of fewer, if they have taken this part of the
#: passes until the first cooling had settled.
PLAIN_STARTS, LONG_STARTS = 4, 1 / 3
#: A fresh start that has gained less than this part of what the fit has gained so far may be on a
#: plateau, where components are still alike.
RISEN = 0.1
#: After as many attempts as there are ways it ends when one finds nothing better, and after so many
#: times the passes until the first cooling had settled in any case.
ENOUGH = 1.6
#: An attempt fits a sample first, this part of the data, but so many of them at least, or half of
#: them, and at most, and in so many steps at most.
SAMPLED, LEAST_SAMPLE, MOST_SAMPLE, MOST_STEPS = 0.2, 150, 20_000, 300
#: Then all data are cooled, from where the first cooling lacked this part of its energy, or this s.
HANDED_OVER, HANDOVER = 0.05, 0.5
#: Bounds that differ by less, in units, are those of one optimum.
SAME = 1e-4
#: A bound below the best is given up when so many times what is left to gain does not help.
HOPE = 3.0
#: Once something is above plain inference, which is paused, that is run to its end too, so that no
#: fit ends below it. It is given up where it is FAR units below; and where it seems hopeless and is
#: FAR_LATER below, after the part LATER of the passes until the first cooling had settled.
FAR, FAR_LATER, LATER = 0.5, 0.05, 0.5
#: Plain inference, which comes first, has this part of the planned run; all of it, if it does not
#: come to rest within that part.
PLAIN_PART = 0.5
TOO_SHORT = (
    "AdaptiveTempering has tempered nothing: plain inference, which comes first, took {:.0f} of "
    "{:g} planned passes. Plan some hundreds more, or take a schedule, such as Annealing()."
)
NOT_CRITICAL = (
    "AdaptiveTempering found no critical temperature: components of the model differ at every "
    "temperature that it tried. It assumes T = {:.0f}; compare its ELBO with that of Annealing()."
)


class SampleFit(NamedTuple):
    """Where the fit of a sample ended: at T = 1, unless it took too long."""

    step: LocalStep
    posterior: Any  # that it was made at
    bound: float
    n_steps: int


@stored("adaptive_tempering")
@dataclass(frozen=True)
class AdaptiveTempering(TemperaturePolicy[AdaptiveHeat]):
    """Find the schedule during the fit; there is nothing to set.

    A batch fit goes through four phases, all within ``fraction`` of the planned passes:

    1. run plain variational inference from the start, until it hardly moves (and later to its end,
       once something else is above it);
    2. cool from above the critical temperature, and hold it while the fit moves;
    3. look for something better: by plain inference from fresh starts, and by cooling again, from
       the best state, heated part of the way, or from a fresh start; all but one of these ways fit
       a sample of the data first;
    4. return to the best state, and continue at T = 1.

    With minibatches no pushes are needed, because their noise does the same, but bounds are too
    noisy to say when to wait. So the first batch is cooled on its own, to find how long to stay at
    each temperature.

    A fit takes some hundreds of passes, and needs no methods beyond the five that every model has.

    Parameters
    ----------
    pace : float
        How much log s rises in a step at rest.
    rest : float
        A step is at rest if its excess for each datum is below this part of the standard deviation
        of the data's energies.
    push : float
        Share of another solution that is mixed into each tempered step.
    fraction : float
        Part of the planned run by which T is 1; in a run of few passes it is less.

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

    pace: float = 0.13
    rest: float = 1e-3
    push: float = 0.02
    fraction: float = 0.8

    def __post_init__(self) -> None:
        check_number(self.pace, "pace", "positive", above=0)
        check_number(self.rest, "rest", "positive", above=0)
        check_number(self.push, "push", "from 0 to 1", least=0, most=1)
        check_number(self.fraction, "fraction", "above 0 and at most 1", above=0, most=1)

    def length(self, progress: Progress) -> float:
        planned = progress.planned
        cold = min(LEAST_COLD, COLD_STEPS * progress.step, MOST_COLD * planned)
        return min(self.fraction * planned, planned - cold)

    def begin(self, model: Model, n_data: int, rng: np.random.Generator) -> AdaptiveHeat:
        if model.with_bound() is not model:
            raise ValueError(
                f"AdaptiveTempering goes by the ELBO, and these updates of {type(model).__name__} "
                "climb none: take another policy, such as Annealing, or, for topics, "
                "update='variational'."
            )
        return AdaptiveHeat(seed=int(rng.integers(2**31)))

    def cool(self, heat: AdaptiveHeat, progress: Progress) -> AdaptiveHeat:
        if heat.phase == "ramp" and heat.path is not None:
            places, times = heat.path.T
            s = float(np.exp(np.interp(progress.passes, times, np.log(places))))
            return replace(heat, inverse_temperature=s)
        if progress.passes >= self.length(progress):
            last = progress.passes + progress.step >= progress.planned
            if heat.inverse_temperature < 1.0 and heat.bound_before > -math.inf and not last:
                # A step at T = 1 tells what has been found so far; q(z) of the hot one hides it.
                return replace(heat, phase="settling again", inverse_temperature=1.0)
            # The bound at T = 1 of where it stands, however hot it was there.
            colder = 1.0 - heat.inverse_temperature_before
            behind = heat.bound_before + colder * heat.energy_before < heat.best
            return AdaptiveHeat(finished=True, returns=behind)
        return heat

    def update(
        self, heat: AdaptiveHeat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, AdaptiveHeat]:
        """Look at the step that was made, and choose the temperature of the next."""
        if heat.finished:
            return local, heat
        if surroundings.scale != 1.0:
            if heat.phase != "ramp":
                critical, found = _critical_inverse_temperature(
                    heat, surroundings, RAMP_NEVER_ALIKE
                )
                heat = replace(heat, warnings=found["warnings"])
                length = self.length(surroundings.progress)
                heat = start_ramp(heat, local, surroundings, critical, length)
            return race(heat, local, surroundings)
        s = float(heat.inverse_temperature)
        model, data = surroundings.model, surroundings.data
        rng = np.random.default_rng([heat.seed, heat.step])
        if heat.samples_next:
            return self._fit_sample(heat, local, surroundings, rng)
        look = heat.look(local, surroundings)
        if math.isnan(look.bound):
            if heat.best == -math.inf:
                raise ValueError(NO_BOUND)
            warnings = (TOO_HOT.format(1.0 / s),)
            return local, AdaptiveHeat(finished=True, returns=True, warnings=warnings)
        if surroundings.progress.passes >= self.length(surroundings.progress):
            # That was the step at T = 1 which a cooling that is cut short is judged by.
            return local, AdaptiveHeat(finished=True, returns=look.bound < heat.best)
        local = self._pushed(heat, local, model, data, rng)
        heat = replace(heat.after(look), step=heat.step + 1, looked_at=0)
        if s == 1.0:
            return local, self._settle(heat, look, surroundings)
        return local, self._cool(heat, look, surroundings.progress)

    def _settle(self, heat: AdaptiveHeat, look: Look, surroundings: Surroundings) -> AdaptiveHeat:
        """At T = 1: wait until the bound has settled, then choose where to go from there."""
        progress = surroundings.progress
        passes, length = progress.passes + progress.step, self.length(progress)
        ending = heat.phase == "plain to the end"
        plain = ending or heat.phase == "plain"
        # A bound that falls, by rounding or by an inexact step, is at rest; but plain inference
        # goes on until it would end by itself.
        rise = look.unit * (abs(look.excess) if plain else look.excess)
        converged = rise <= max(surroundings.tolerance, 1e-9 * look.unit)
        late = passes > PLAIN_PART * progress.planned or passes >= length
        late = late and heat.phase == "plain"
        if not late and not self._rests(heat, look, progress, converged):
            settled = plain and converged
            waited = 0 if settled and not ending else heat.waited + 1
            return replace(heat, waited=waited, settled=settled)
        gain = (look.bound - heat.best) / look.unit
        better = gain > 1e-6
        best = look.bound if better else heat.best
        kept: dict[str, Any] = {"keeps": better, "returns": not better, "best": best}
        if better:
            still = abs(look.excess) * look.unit < surroundings.tolerance
            kept["best_settled"] = still or (heat.settled and surroundings.tolerance > 0.0)
        if heat.phase == "plain":
            too_few = length - passes < 10 * progress.step  # to find the critical temperature in
            if too_few or (late and not (self._steady(look) or converged)):
                warning = TOO_SHORT.format(passes, progress.planned)
                return AdaptiveHeat(finished=True, warnings=(warning,))
            # Very few data are looked at as a whole, which must leave passes to cool in.
            most = (progress.planned - passes) / 2
            critical, found = _critical_inverse_temperature(heat, surroundings, NEVER_ALIKE, most)
            kept |= found
            return heat.jump("cooling", FORGETTING * critical, **kept)
        first = heat.first_passes or passes
        if better and not heat.plain_ended:
            kept["plain_ended"] = True
            if gain < FAR:
                # Plain inference, which is the best so far, may end above it: they change places.
                kept["returns"] = True
                ended = heat.jump("plain to the end", 1.0, first_passes=first, **kept)
                # It goes on from the bound that it had, as if it had not been paused.
                return replace(ended, bound_before=heat.best)
        if heat.attempts == 0 and not ending and gain < -FAR:
            heat = replace(heat, apart=True)
        # Where plain inference has ended below it, the attempt before has found something.
        found = gain < -SAME if ending else gain > SAME
        failures = heat.failures + (heat.attempts > 0 and not found)
        if ending:  # its passes are not at the expense of the attempts
            first += heat.waited * progress.step / ENOUGH
        tried = failures == len(AGAIN) or (heat.attempts >= len(AGAIN) and not found)
        spent = passes > ENOUGH * first or 1.2 * passes > length
        if tried or spent or heat.path is None:
            # Where hyperparameters may be learned, that begins now.
            learns = surroundings.model.provides("learn_hyperparameters")
            ends = not better and heat.best_settled and not learns
            return AdaptiveHeat(finished=True, returns=not better, settled=ends, path=heat.path)
        again = {"attempts": heat.attempts + 1, "failures": failures, "first_passes": first, **kept}
        if AGAIN[failures] == "plain":
            return heat.jump("settling again", 1.0, samples_next=True, **again)
        if AGAIN[failures] == "quiet":
            s = max(QUIET_START, heat.where_lacking(HEATED["quiet"]))
            return heat.jump("cooling again", s, **again)
        s = max(HANDOVER, heat.where_lacking(HANDED_OVER))
        return heat.jump("cooling again", s, samples_next=True, **again)

    def _rests(self, heat: AdaptiveHeat, look: Look, progress: Progress, converged: bool) -> bool:
        """Whether to go elsewhere."""
        might = look.bound + HOPE * look.left * look.unit
        hopeless = look.excess <= self.rest and might < heat.best
        if heat.phase == "plain to the end":
            long = heat.waited * progress.step > LATER * heat.first_passes
            far = look.bound < heat.best - FAR_LATER * look.unit
            return heat.settled or (long and far and hopeless)
        if heat.phase == "plain" and converged:
            return heat.settled  # the engine has found no saddle to push it off
        return heat.waited >= 3 and (converged or hopeless or self._steady(look))

    def _steady(self, look: Look) -> bool:
        """Whether next to nothing is left to gain."""
        return max(look.excess, look.left) <= SETTLED * self.rest

    def _fit_sample(
        self, heat: AdaptiveHeat, local: LocalStep, surroundings: Surroundings, rng: Any
    ) -> tuple[LocalStep, AdaptiveHeat]:
        """Fit a sample first, to T = 1: a start for all data, at a fraction of the price."""
        model, data, n_data = surroundings.model, surroundings.data, local.n
        least = min(LEAST_SAMPLE, max(n_data // 2, PUSH_ROWS))
        n_rows = min(max(int(SAMPLED * n_data), least), MOST_SAMPLE)
        rows = some_rows(data, n_rows, rng)
        scale = n_data / rows.shape[0]
        here = surroundings._replace(data=rows, scale=scale, progress=Progress(0, 0, math.inf))
        way = AGAIN[heat.failures]
        if way == "plain":
            starts = [(new_start(model, rows, n_data, rng), 1.0) for _ in range(PLAIN_STARTS)]
        elif way == "fresh":
            start = pushed(local, model, data, 1.0, FRESH_ROWS, rng)
            posterior = deepcopy(surroundings.posterior)
            posterior = model.global_step(posterior, model.prior() + start.statistics, 1.0)
            starts = [(posterior, FRESH_START)]
        else:
            s = heat.where_lacking(HEATED[way])
            starts = [(deepcopy(surroundings.posterior), s)]
        # At most half of the passes that are left: else the fit would end where the sample did.
        progress = surroundings.progress
        left = scale * (self.length(progress) - progress.passes) / len(starts)
        most_steps = max(1, min(MOST_STEPS, int(left / 2)))
        fits: list[SampleFit] = []
        looked_at = 0
        for posterior, s in starts:
            fits += [self._cool_rows(heat, here._replace(posterior=posterior), s, most_steps, rng)]
            looked_at += rows.shape[0] * fits[-1].n_steps
            if looked_at > LONG_STARTS * heat.first_passes * n_data:
                break
        best = max(fits, key=lambda fit: np.nan_to_num(fit.bound, nan=-math.inf))
        start = copy(local)
        start.statistics, start.found_at = scale * best.step.statistics, best.posterior
        return start, replace(heat, samples_next=False, looked_at=looked_at, step=heat.step + 1)

    def _cool_rows(
        self, heat: AdaptiveHeat, here: Surroundings, s: float, most_steps: int, rng: Any
    ) -> SampleFit:
        """The data of a sample, cooled from s to T = 1."""
        model, rows = here.model, here.data
        inner = heat.jump("cooling again", s)
        step = model.local_step(rows, model.expectations(here.posterior), s)
        n_steps, least = 1, -math.inf
        while True:
            look = inner.look(step, here)
            if n_steps == 1 and s == 1.0:
                least = look.bound + RISEN * (heat.best - heat.first_bound)
            risen = look.bound >= least
            rests = s == 1.0 and look.excess <= self.rest and (risen or self._steady(look))
            if rests or n_steps == most_steps:
                return SampleFit(step, here.posterior, look.bound, n_steps)
            target = self._pushed(inner, step, model, rows, rng).statistics
            inner = inner.after(look)
            if s < 1.0:
                inner = self._cool(inner, look, here.progress)
                s = float(inner.inverse_temperature)
            target = model.prior() + here.scale * target
            here = here._replace(posterior=model.global_step(here.posterior, target, 1.0))
            step = model.continue_local_step(step, rows, model.expectations(here.posterior), s)
            n_steps += 1

    def _pushed(
        self, heat: AdaptiveHeat, local: LocalStep, model: Model, data: Any, rng: Any
    ) -> LocalStep:
        """The step, with a push where T is above 1, but not on the quiet way."""
        quiet = heat.phase == "cooling again" and AGAIN[heat.failures] == "quiet"
        if heat.inverse_temperature == 1.0 or quiet or not self.push:
            return local
        return pushed(local, model, data, self.push, PUSH_ROWS, rng)

    def _cool(self, heat: AdaptiveHeat, look: Look, progress: Progress) -> AdaptiveHeat:
        """At s < 1: hold, or raise s."""
        s, moving = heat.inverse_temperature_before, look.excess > self.rest
        # Steps that are left set the least pace, so that T = 1 is reached in time.
        left = self.length(progress) - progress.passes
        least = -math.log(s) * progress.step / max(0.8 * left, progress.step)
        if moving and least < FASTEST * self.pace:
            return replace(heat, waited=heat.waited + 1)
        if heat.phase == "cooling":
            here = np.array([[s, look.energy]])
            path = here if heat.path is None else np.concatenate([heat.path, here])
            heat = replace(heat, path=path)
        faster = math.sqrt(self.rest / max(abs(look.excess), 1e-12)) / 2
        pace = max(self.pace * min(max(faster, 1.0), FASTEST), least)
        heat = replace(heat, waited=0, inverse_temperature=min(1.0, s * math.exp(pace)))
        if heat.inverse_temperature == 1.0:
            phase = "settling" if heat.phase == "cooling" else "settling again"
            heat = replace(heat, phase=phase)
        return heat


def _critical_inverse_temperature(
    heat: AdaptiveHeat, surroundings: Surroundings, usual: float, most_passes: float = math.inf
) -> tuple[float, dict[str, Any]]:
    """The critical s, or a usual one without it, and what the search sets in the heat."""
    rng = np.random.default_rng([heat.seed, heat.step])
    data = surroundings.data
    n_rows = min(SEARCH_ROWS, max(PUSH_ROWS, data.shape[0] // 4))
    rows = some_rows(data, n_rows, rng)
    most = most_passes * data.shape[0] / n_rows
    critical, n_updates = critical_inverse_temperature(surroundings.model, rows, rng, most)
    warnings = () if critical is not None else (NOT_CRITICAL.format(1 / usual),)
    found = {"looked_at": n_updates * rows.shape[0], "warnings": warnings}
    return min(critical or usual, COLDEST_START), found
