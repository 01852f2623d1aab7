"""What a tempered SVI has on its way, and what its methods return; and two runs of which the better
one is kept, a race that is decided before its end.

Both make the first part of their steps. The second one is then given up unless it is clearly ahead;
the one that is kept goes on, and ends where it would have ended alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import tqdm

from tempering.blackbox.heat import Adaptive, Heat, windows

#: A state of SVI, and the losses up to it.
Run = tuple[Any, jax.Array]


class TemperedState(NamedTuple):
    """The state of NumPyro's SVI, and that of the temperature."""

    optim_state: Any
    mutable_state: Any
    rng_key: jax.Array
    heat: Heat


class TemperedRunResult(NamedTuple):
    """What a run of NumPyro's SVI returns, and the temperature of each step."""

    params: dict[str, Any]
    state: TemperedState
    losses: jax.Array
    temperatures: jax.Array

    @property
    def tempered(self) -> jax.Array:
        """Return whether any step was above T = 1; an adaptive run may keep its plain part."""
        return jnp.any(self.temperatures > 1.0, axis=-1)


class Restarts(NamedTuple):
    """The best of several runs, the ELBO of each at T = 1, and all of them where asked for."""

    best: TemperedRunResult
    elbos: jax.Array
    all: TemperedRunResult | None


class Evidence(NamedTuple):
    """An estimate of log p(x), its standard error, and how many draws have its weight."""

    log_evidence: float
    error: float
    effective_draws: float


def better_of_two(
    step: Callable[[Any], tuple[Any, jax.Array]],
    states: tuple[Any, Any],
    num_steps: int,
    *,
    progress_bar: bool,
    skip_nan: bool,
) -> Run:
    """The last state and the losses of the better run."""
    decided = num_steps - num_steps // 6  # after which the better run goes on alone
    hot, length = windows(num_steps)
    # By then all is at T = 1: each loss is an estimate of the ELBO, and costs nothing more.
    judging = slice(max(decided - 100, hot), decided)
    mean = jnp.nanmean if skip_nan else jnp.mean

    def better(losses: jax.Array) -> jax.Array:
        """0 or 1. The noise of both runs is the same, so it is no part of what they differ by."""
        differences = losses[0] - losses[1]
        size = max(differences.size // 10, 1)  # ten batches tell the standard error
        whole = differences.size // size * size
        batches = jnp.nanmean(differences[:whole].reshape(-1, size), axis=1)
        error = jnp.sqrt(jnp.nanvar(batches, ddof=1) / batches.size)
        clear = jnp.nanmean(differences) > 3.0 * error
        # A run that broke off in NaN is no better than any other.
        first, second = jnp.isnan(mean(losses, axis=1))
        return jnp.where(~second & (first | clear), 1, 0)

    def one(i: jax.Array, run: Run) -> Run:
        state, loss = step(run[0])
        loss = loss.astype(run[1].dtype)
        return state, jax.lax.dynamic_update_index_in_dim(run[1], loss, i, 0)

    def window(run: tuple[Any, jax.Array, jax.Array], end: jax.Array) -> Any:
        """Up to the next change of the temperature: what is done once for it is done here once."""
        state, losses, i = run
        stop = jnp.minimum((i // length + 1) * length, hot)
        stop = jnp.minimum(jnp.where(i < hot, stop, end), end)
        state, losses = jax.lax.fori_loop(i, stop, one, (state, losses))
        recent = jax.lax.dynamic_slice_in_dim(losses, stop - length, length)
        heat = state.heat._replace(step=stop, recent=recent.astype(state.heat.recent.dtype))
        return state._replace(heat=Adaptive().settle(heat)), losses, stop

    def advance(run: Run, begin: Any, end: Any) -> Run:
        begin, end = jnp.asarray(begin, int), jnp.asarray(end, int)
        state, losses, _ = jax.lax.while_loop(
            lambda run: run[2] < end, lambda run: window(run, end), (*run, begin)
        )
        return state, losses

    def stretch(advance: Any, runs: Run, which: tuple[Any, Any, Any]) -> tuple[Run, jax.Array]:
        number, begin, end = which
        at = jnp.where(number < 2, number, better(runs[1][:, judging]))
        run = advance(jax.tree.map(lambda values: values[at], runs), begin, end)
        return jax.tree.map(lambda values, value: values.at[at].set(value), runs, run), at

    # One program for all three: a second copy of the model would take as long again to compile.
    plan = [(0, 0, decided), (1, 0, decided), (2, decided, num_steps)]
    runs: Run = jax.tree.map(_stacked, *states), jnp.zeros((2, max(num_steps, length)))
    if progress_bar:
        names, compiled = ("plain run", "tempered run", "better run"), jax.jit(advance)
        with tqdm.tqdm(total=num_steps) as bar:
            for name, each in zip(names, plan):
                bar.set_description_str(name)
                # A step counts half in each run while there are two.
                before, share = (0, 1) if each[0] == 2 else (each[0] * decided, 2)
                shown = _with_bar(compiled, bar, max(num_steps // 20, 1), before, share)
                runs, at = stretch(shown, runs, each)
            bar.set_description_str(f"done, {names[int(at)]} kept")
    else:
        numbers, begins, ends = jnp.array(plan).T
        runs, at = jax.lax.scan(partial(stretch, advance), runs, (numbers, begins, ends))
        at = at[-1]
    state, losses = jax.tree.map(lambda values: values[at], runs)
    return state, losses[:num_steps]


def _stacked(first: jax.Array, second: jax.Array) -> jax.Array:
    """With a dtype of its own: a weak one would change on the way, and be compiled anew."""
    return jnp.stack([first, second], dtype=jnp.result_type(first))


def _with_bar(
    advance: Callable[[Run, int, int], Run], bar: Any, batch: int, before: int, share: int
) -> Any:
    """Return ``advance`` with a bar that shows the mean loss after each batch of steps."""

    def shown(run: Run, begin: int, end: int) -> Run:
        for i in range(begin, end, batch):
            stop = min(i + batch, end)
            hot = _temperature(run)
            run = advance(run, i, stop)
            loss = f"{run[1][i:stop].mean():.4f}"
            cooled = f"mean tempered loss, T = {hot:.3g} to {_temperature(run):.3g}: {loss}"
            bar.set_postfix_str(cooled if hot > 1.0 else f"mean loss at T = 1: {loss}")
            bar.n = (before + stop) // share
            bar.refresh()
        return run

    return shown


def _temperature(run: Run) -> float:
    return 1.0 / float(run[0].heat.inverse_temperature)
