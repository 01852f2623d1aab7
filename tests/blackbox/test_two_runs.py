"""A race of two runs: the temperatures are those of a loop step by step, and the better is kept."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("numpyro")

import jax
import jax.numpy as jnp

from tempering.blackbox.heat import Adaptive, Heat, windows
from tempering.blackbox.runs import better_of_two

pytestmark = pytest.mark.usefixtures("without_optimizations")

N = 500
NOISE = jnp.asarray(np.random.default_rng(0).standard_normal(N), jnp.float32)


class Toy(NamedTuple):
    """What a run has: the loss at its end, the steps made, and the temperature."""

    end: jax.Array
    made: jax.Array
    heat: Heat


def toy(end: Any, start: float) -> Toy:
    return Toy(jnp.asarray(end), jnp.zeros((), int), Adaptive().begin(N, jnp.asarray(start)))


def step(state: Toy) -> tuple[Toy, jax.Array]:
    """Losses that fall, and more slowly in the cold, below their noise at last."""
    s = state.heat.inverse_temperature
    loss = state.end + s * 100 * jnp.exp(-0.02 * state.made) + NOISE[state.made]
    return state._replace(made=state.made + 1), loss


def race(*states: Toy, step: Any = step, progress_bar: bool = False, skip_nan: bool = False) -> Any:
    def run(*states: Toy) -> Any:
        return better_of_two(step, states, N, progress_bar=progress_bar, skip_nan=skip_nan)

    # As one program: op by op it would be forty. A bar is not moved from within one.
    return (run if progress_bar else jax.jit(run))(*states)


@jax.jit
def alone(state: Toy) -> tuple[Toy, jax.Array, np.ndarray]:
    def one(state: Toy, _: None) -> Any:
        s = state.heat.inverse_temperature
        state, loss = step(state)
        return state._replace(heat=Adaptive().next(state.heat, loss)), (loss, s)

    state, (losses, path) = jax.lax.scan(one, state, length=N)
    return state, losses, path


def test_the_temperatures_are_those_of_a_loop_step_by_step():
    plain, tempered = toy(9.0, 1.0), toy(5.0, 1e-3)
    expected, losses, path = alone(tempered)
    state, found = race(plain, tempered)
    assert int(state.made) == int(state.heat.step) == N
    assert_allclose(found, losses, rtol=1e-6)
    assert_allclose(Adaptive().along(state.heat, jnp.arange(N)), path, rtol=1e-6)
    assert_array_equal(state.heat.path, expected.heat.path)
    hot, length = windows(N)
    assert np.all(np.diff(path) >= 0)
    assert np.any(path[:hot:length][1:] == path[:hot:length][:-1])  # it was held
    assert path[0] < path[hot - length] <= 1
    assert_array_equal(path[hot:], 1)


@pytest.mark.parametrize("progress_bar", [False, True])
def test_the_run_with_smaller_losses_goes_on(progress_bar, capsys):
    better, worse = toy(4.0, 1.0), toy(6.0, 1e-3)
    for states in ((better, worse), (worse, better)):
        state, losses = race(*states, progress_bar=progress_bar)
        assert float(state.end) == 4.0
        assert int(state.made) == N
        assert_allclose(losses, alone(better)[1], rtol=1e-6)
    shown = capsys.readouterr().err
    assert (f"{N}/{N} " in shown) == progress_bar
    if progress_bar:
        for name in ("plain run", "tempered run", "better run", "done, plain run kept"):
            assert name in shown
        assert f"| {417 // 2}/{N} " in shown  # of two runs, one has made the steps of both
        assert "mean loss at T = 1: " in shown
        assert "mean tempered loss, T = 1e+03 to " in shown


@pytest.mark.parametrize(("ahead", "kept"), [(0.1, 0), (1.0, 1)])
def test_the_second_run_must_be_ahead_by_more_than_noise(ahead, kept):
    """Noise of its own, slow to change, that puts it ahead by 0.4: single losses would say ± 0.15,
    and batches of them say ± 0.24."""

    def noisy(state: Toy) -> tuple[Toy, jax.Array]:
        made = state.made
        state, loss = step(state)
        own = NOISE[(made // 4 + jnp.where(state.end < 6.0, 200, 0)) % N]
        return state, loss + own

    state, _ = race(toy(6.0, 1.0), toy(6.0 - ahead, 1e-3), step=noisy)
    assert float(state.end) == pytest.approx(6.0 - kept * ahead)


def test_the_runs_of_one_program_are_each_decided_by_themselves():
    ends = jnp.array([[4.0, 6.0], [6.0, 4.0]])

    def one(ends: jax.Array) -> jax.Array:
        return race(toy(ends[0], 1.0), toy(ends[1], 1e-3))[0].heat.path[0]

    assert_allclose(jax.vmap(one)(ends), [1.0, 1e-3])


@pytest.mark.parametrize("broken", [0, 1])
def test_a_run_that_broke_off_in_nan_is_not_kept(broken):
    def breaks(state: Toy) -> tuple[Toy, jax.Array]:
        state, loss = step(state)
        return state, jnp.where((state.end == 4.0) & (state.made > 410), jnp.nan, loss)

    states = [toy(4.0, 1.0), toy(6.0, 1.0)][:: -1 if broken else 1]
    assert float(race(*states, step=breaks)[0].end) == 6.0
    # A step that was not taken is no end of a run.
    assert float(race(*states, step=breaks, skip_nan=True)[0].end) == 4.0
