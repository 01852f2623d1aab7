"""The parts of one step of a fit on the device, compiled once for each shape."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from tempering.scale.jax_functions import NEVER, Settings, log_word_table, padded_topics
from tempering.scale.solver import Kernel, group_solver


class Sizes(NamedTuple):
    """What the compiled code depends on, besides the shapes of groups."""

    n_words: int
    n_topics: int
    mean_topics: bool  # log of the posterior mean of β, instead of E log β
    settings: Settings
    kernel: Kernel


class Scalars(NamedTuple):
    """The numbers of one step; they travel to the device as one array."""

    inverse_temperature: float
    learning_rate: float
    scale: float  # N / B
    prior: float  # η, tempered where the joint is


class DeviceSteps(NamedTuple):
    """The compiled parts."""

    draw: Any  # (seed) → λ [n_words, padded topics]
    table: Any  # (λ) → log β
    solve: Any  # (rectangle, scalars, log β, α, statistics so far) → statistics, sweeps
    blend: Any  # (λ, statistics, scalars) → λ, log β

    def n_compiled(self) -> int:
        """How many shapes were compiled."""
        return sum(part._cache_size() for part in self)


@cache
def device_steps(sizes: Sizes) -> DeviceSteps:
    """The parts for a model of these sizes."""
    import jax
    import jax.numpy as jnp

    n_topics = sizes.n_topics
    real = jnp.arange(padded_topics(n_topics)) < n_topics
    solve_group = group_solver(sizes.kernel)

    @jax.jit
    def draw(seed):
        """Gamma(100, 1/100) draws, near 1 and not alike."""
        shape = (sizes.n_words, padded_topics(n_topics))
        return jax.random.gamma(jax.random.key(seed), 100.0, shape, jnp.float32) * 0.01

    def table(topics):
        return jnp.where(real, log_word_table(topics, topics.sum(axis=0), sizes.mean_topics), NEVER)

    @jax.jit
    def solve(rectangle, scalars, log_rows, alpha, statistics):
        columns, counts, lengths = rectangle
        totals = counts.sum(axis=1, keepdims=True)
        mass = jnp.where(real, totals / n_topics, 0.0)
        temperatures = jnp.broadcast_to(Scalars(*scalars).inverse_temperature, lengths.shape)
        solved = solve_group(
            columns, counts, lengths, temperatures, mass, log_rows, alpha, sizes.settings
        )
        total = solved.statistics if statistics is None else statistics + solved.statistics
        return total, solved.sweeps.sum()

    @jax.jit
    def blend(topics, statistics, scalars):
        _, rate, scale, prior = scalars
        topics = (1.0 - rate) * topics + rate * (prior + scale * statistics)
        return topics, table(topics)

    return DeviceSteps(draw, jax.jit(table), solve, blend)
