"""The temperature of each step of an SVI run, as arrays that JAX can carry along.

The path is part of the state, so that one compiled program serves all temperatures, and a run tells
afterwards which ones it had.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from tempering.models.arguments import shown, takes
from tempering.temperature import (
    AdaptiveTempering,
    Annealing,
    LocalTempering,
    Progress,
    Untempered,
    VariationalTempering,
)

#: The least s of a start that is found.
HOTTEST = 1e-6


class Heat(NamedTuple):
    """Where the temperature is: the number of steps made, s, and where it was and will be."""

    step: jax.Array
    inverse_temperature: jax.Array
    path: jax.Array  # s of all steps, or of all windows
    recent: jax.Array  # the losses of a window
    move: jax.Array  # how much log s rises after a window that came to rest
    hot: jax.Array  # how many steps there are before T = 1


class Scheduled:
    """Along an :class:`Annealing`, step by step; T = 1 if there is none."""

    def __init__(self, policy: Annealing | None) -> None:
        self.policy = policy
        self.finds_start = policy is not None and policy.start == "auto"

    def check_length(self, num_steps: int) -> None:
        """Raise unless a run of so many steps ends at T = 1."""
        if self.policy is not None and not _length(self.policy, num_steps) <= num_steps - 1:
            raise ValueError(
                f"{self.policy} leaves no step at T = 1 in a run of num_steps={num_steps}: make "
                "more steps, or shorten the tempered part (its passes are steps here)."
            )

    def begin(self, num_steps: int, start: jax.Array | None) -> Heat:
        dtype = jnp.result_type(float)

        def path(start: Any) -> np.ndarray:
            return self._path(num_steps, start).astype(dtype)

        if isinstance(start, Tracer):  # of several runs in one program
            shape = jax.ShapeDtypeStruct((num_steps,), dtype)
            values = jax.pure_callback(path, shape, start, vmap_method="sequential")
        else:
            values = jnp.asarray(path(start))
        nothing = jnp.zeros(0, dtype)
        return Heat(jnp.zeros((), int), values[0], values, nothing, nothing, nothing)

    def _path(self, num_steps: int, start: Any) -> np.ndarray:
        """s of all steps."""
        path = np.ones(num_steps)
        policy = self.policy
        if policy is None:
            return path
        if start is not None:
            made: Any = policy.schedule
            policy = replace(policy, schedule=made(1.0 / float(start)), start=None)
        heat = policy.begin(None, 0, None)  # type: ignore[arg-type]  # it looks at neither
        for step in range(num_steps):
            heat = policy.cool(heat, Progress(float(step), 1.0, float(num_steps)))
            path[step] = heat.inverse_temperature
            if heat.finished:
                break
        return path

    def next(self, heat: Heat, loss: jax.Array) -> Heat:
        step = heat.step + 1
        return heat._replace(step=step, inverse_temperature=self.along(heat, step))

    def along(self, heat: Heat, steps: jax.Array) -> jax.Array:
        """s of these steps."""
        return jnp.where(steps < heat.path.size, heat.path[steps], 1.0)


class Adaptive:
    """Cool geometrically from a hot start, and hold while the tempered ELBO still rises.

    The hot part of the run is cut into windows with one temperature each. At the end of a window
    log s rises by a fixed amount, unless the ELBO rose from its first half to its second by more
    than its noise: then it is held. What was held is caught up when time runs out.
    """

    finds_start = True

    def begin(self, num_steps: int, start: jax.Array | None) -> Heat:
        assert start is not None
        hot, length = windows(num_steps)
        s = start if hot else jnp.ones_like(start)
        return Heat(
            step=jnp.zeros((), int),
            inverse_temperature=s,
            path=jnp.full(max(-(-hot // length), 1), s),
            recent=jnp.zeros(length, s.dtype),
            move=-jnp.log(s) / 30,  # of the 60 windows, if it never held
            hot=jnp.full((), hot, int),
        )

    def next(self, heat: Heat, loss: jax.Array) -> Heat:
        length = heat.recent.size
        recent = jax.lax.dynamic_update_index_in_dim(
            heat.recent, loss.astype(heat.recent.dtype), heat.step % length, 0
        )
        return self.settle(heat._replace(step=heat.step + 1, recent=recent))

    def settle(self, heat: Heat) -> Heat:
        """s rises if a window is over; its losses are the recent ones."""
        over = (heat.step % heat.recent.size == 0) | (heat.step == heat.hot)
        ends = over & (heat.step <= heat.hot)
        return jax.lax.cond(ends, self._end_window, lambda heat: heat, heat)

    def _end_window(self, heat: Heat) -> Heat:
        length, s = heat.recent.size, heat.inverse_temperature
        # Over the windows that are left, at most so much must be made up for.
        needed = -jnp.log(s) / jnp.maximum((heat.hot - heat.step) // length, 1)
        rest = ~_rises(heat.recent) | (needed > heat.move)
        moved = jnp.minimum(jnp.exp(jnp.log(s) + jnp.maximum(heat.move, needed)), 1.0)
        over = heat.step >= heat.hot
        s = jnp.where(over, 1.0, jnp.where(rest, moved, s))
        window = jnp.where(over, heat.path.size, heat.step // length)
        return heat._replace(inverse_temperature=s, path=heat.path.at[window].set(s, mode="drop"))

    def along(self, heat: Heat, steps: jax.Array) -> jax.Array:
        """s of these steps."""
        return jnp.where(steps < heat.hot, heat.path[steps // heat.recent.size], 1.0)


class Learned:
    """By q(T), which a :class:`VariationalTempering` learns; a floor under s rises to 1."""

    finds_start = False

    def __init__(self, policy: VariationalTempering) -> None:
        self.policy = policy
        self.grid = jnp.asarray(policy.inverse_temperatures, float)
        self.log_prior = jnp.log(jnp.asarray(policy.prior, float))

    def begin(self, num_steps: int, start: jax.Array | None) -> Heat:
        s = jnp.exp(self.log_prior) @ self.grid
        nothing = jnp.zeros(0, s.dtype)
        hot = jnp.asarray(_length(self.policy, num_steps), s.dtype)
        return Heat(jnp.zeros((), int), s, jnp.full(num_steps, s), nothing, nothing, hot)

    def is_due(self, heat: Heat) -> jax.Array:
        """Whether q(T) is updated after this step."""
        return (heat.step % self.policy.every == 0) & (heat.step < heat.hot)

    def learn(self, heat: Heat, energy: jax.Array, log_normalizers: jax.Array) -> jax.Array:
        """q(T) ∝ π exp{s log p(x | z) − log C(s)}: s on its way to E[1/T]."""
        here, damping = heat.inverse_temperature, self.policy.damping
        probable = jax.nn.softmax(self.log_prior + self.grid * energy - log_normalizers)
        follow = -np.expm1(-self.policy.every / damping) if damping else 1.0
        there = here + follow * (probable @ self.grid - here)
        # A draw without a likelihood, at infinity or NaN, tells nothing.
        return jnp.where(jnp.isfinite(there), there, here)

    def next(self, heat: Heat, loss: jax.Array) -> Heat:
        step = heat.step + 1
        over = (step >= heat.hot) | (step >= heat.path.size)
        floor = jnp.where(over, 1.0, step / heat.hot)
        s = jnp.clip(heat.inverse_temperature, floor, 1.0)
        path = heat.path.at[step].set(s, mode="drop")
        return heat._replace(step=step, inverse_temperature=s, path=path)

    along = Scheduled.along


def policy_of(temperature: Any) -> Scheduled | Adaptive | Learned:
    """What decides the temperature, or an error that says what can."""
    if temperature is None or isinstance(temperature, Untempered):
        return Scheduled(None)
    if temperature == AdaptiveTempering() or (
        isinstance(temperature, str) and temperature == "adaptive"
    ):
        return Adaptive()
    if callable(temperature) and takes(temperature, 0.0):
        temperature = Annealing(cast(Any, temperature))
    if isinstance(temperature, Annealing):
        _check_progress(temperature)
        return Scheduled(temperature)
    if isinstance(temperature, VariationalTempering):
        if temperature.formula not in ("auto", "calibrated"):
            raise ValueError(f"formula must be 'auto' here; got {temperature.formula!r}.")
        return Learned(temperature)
    if isinstance(temperature, LocalTempering):
        raise ValueError(
            "temperature is LocalTempering; a temperature for each datum is part of the model "
            "here: give temper_locally(model) in place of the model."
        )
    raise ValueError(
        "temperature must be 'adaptive', None, an Annealing, a VariationalTempering, or a "
        f"schedule, a function from progress 0 … 1 to a temperature; got {shown(temperature)}."
    )


def _length(policy: Annealing | VariationalTempering, num_steps: int) -> float:
    """Steps until T = 1: a pass is a step."""
    return policy.length(Progress(0.0, 1.0, num_steps))


def _check_progress(policy: Annealing) -> None:
    """A schedule of optax that counts steps would hardly cool, and then jump to T = 1."""
    if policy.start == "auto":
        return
    first, last = (float(cast(Any, policy.schedule)(progress)) for progress in (0.0, 1.0))
    if first > last > 1.0 + 0.9 * (first - 1.0):
        raise ValueError(
            f"the schedule cools only from T = {first:.4g} to {last:.4g}: it is a function of "
            "progress 0 … 1, not of steps; give a schedule of optax transition_steps=1."
        )


def hot_start(log_likelihoods: jax.Array) -> jax.Array:
    """The largest s at which half of the places that were tried are still worth their weight.

    With the weights w = exp(s log p(x | z)), (Σw)²/Σw² is at least half their number: so hot that
    the data hardly prefer one place to another.
    """
    finite = jnp.isfinite(log_likelihoods)
    least = jnp.min(jnp.where(finite, log_likelihoods, jnp.inf))
    values = jnp.where(finite, log_likelihoods, least)
    grid = jnp.asarray(np.geomspace(HOTTEST, 1.0, 121), values.dtype)
    weights = jnp.exp(grid[:, None] * (values - jnp.max(values)))
    effective = jnp.sum(weights, 1) ** 2 / jnp.sum(weights**2, 1)
    return jnp.max(jnp.where(effective >= values.size / 2, grid, grid[0]))


def windows(num_steps: int) -> tuple[int, int]:
    """How many steps are hot, all but a third, and how many make one of 60 windows."""
    hot = int(2 / 3 * num_steps)
    return hot, max(hot // 60, 4)


def _rises(losses: jax.Array) -> jax.Array:
    """Whether the losses fell from the first half to the second by more than their noise."""
    middle = losses.size // 2
    first, second = losses[:middle], losses[middle:]
    noise = jnp.sqrt(first.var(ddof=1) / first.size + second.var(ddof=1) / second.size)
    return first.mean() - second.mean() > 2.0 * noise
