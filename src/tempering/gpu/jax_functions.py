"""The tempered E-step of a group of documents in plain JAX, and the functions that it shares with
other JAX paths, in float32."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

#: digamma(x) is about -1/x: below this it would leave the range of float32.
SMALLEST_PARAMETER = 1e-30

#: Where powers of topics are taken, parameters below this count as this.
SMALLEST_RISING = 1e-8

#: log weight of a topic that is only there to fill a row; finite, as differences are taken. No row
#: may hold nothing else: rounding errors of its differences would be as large as numbers get.
NEVER = -1e30

#: Topics are padded to a multiple of this, so that rows start on equal footing.
TOPICS_MULTIPLE = 32


class SweepLimits(NamedTuple):
    """How documents iterate; each combination is compiled once."""

    collapsed: bool
    tolerance: float
    min_sweeps: int
    max_sweeps: int


class Solved(NamedTuple):
    """What the E-step of a group finds out."""

    gamma: Any  # [size, padded topics]
    statistics: Any  # [n_words, padded topics], Σ_d s_d n_dv φ_dvk
    sweeps: Any = None  # [size], where documents settle


def padded_topics(n_topics: int) -> int:
    """The number of topics on the device."""
    return -(-n_topics // TOPICS_MULTIPLE) * TOPICS_MULTIPLE


def pad_topics(array: np.ndarray, value: float) -> np.ndarray:
    """The array [..., K] with its last axis filled up."""
    missing = padded_topics(array.shape[-1]) - array.shape[-1]
    widths = [(0, 0)] * (array.ndim - 1) + [(0, missing)]
    return np.pad(np.asarray(array, np.float32), widths, constant_values=np.float32(value))


def digamma(x: Any) -> Any:
    """ψ(x) for x > 0: six steps of the recurrence, then the asymptotic series."""
    import jax.numpy as jnp

    x = jnp.maximum(x, SMALLEST_PARAMETER)
    # Pairs of 1/(x + i) + 1/(x + 5 − i), so that there are three divisions instead of six.
    product = x * (x + 5.0)
    below = (2.0 * x + 5.0) * (1.0 / product + 1.0 / (product + 4.0) + 1.0 / (product + 6.0))
    inverse = 1.0 / (x + 6.0)
    square = inverse * inverse
    series = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0)))
    return jnp.log(x + 6.0) - 0.5 * inverse - series - below


def log_rising(x: Any, s: Any) -> Any:
    """log Γ(x + s)/Γ(x), as in :func:`tempering.models.lda.topics.power_sums`."""
    import jax.numpy as jnp

    x = jnp.maximum(x, SMALLEST_RISING)
    inverse = 1.0 / (x + 4.0)
    second = s * (s - 1.0) * 0.5
    third, fourth = second * (s - 0.5) / 3.0, second * second / 3.0
    series = inverse * (second - inverse * (third - inverse * fourth))
    outer, shifted = x * (x + 3.0), (x + s) * (x + s + 3.0)
    steps = (outer / shifted) * ((outer + 2.0) / (shifted + 2.0))
    return jnp.log(steps) + s * jnp.log(x + 4.0) + series


def log_weights(gamma: Any, collapsed: bool) -> Any:
    """log θ up to its normaliser, which is the same for all topics: ψ(γ), or log γ."""
    import jax.numpy as jnp

    return jnp.log(gamma) if collapsed else digamma(gamma)


def log_word_table(parameters: Any, totals: Any, mean: bool) -> Any:
    """E log β, or the log of the posterior mean, of every word: [n_words, padded topics]."""
    import jax.numpy as jnp

    form = jnp.log if mean else digamma
    return form(jnp.maximum(parameters, SMALLEST_PARAMETER)) - form(totals)


def solve_group(
    columns: Any,
    counts: Any,
    lengths: Any,
    s: Any,
    mass: Any,
    table: Any,
    alpha: Any,
    settings: SweepLimits,
) -> Solved:
    """Settle the documents of a rectangle and sum their statistics.

    All in logs, so that no temperature and no topic leaves the range of float32:

        φ_duk ∝ exp{ s_d (log θ_dk + log β_ku) },     γ_dk = α_k + s_d Σ_u n_du φ_duk.

    A document that has settled keeps its γ while the others of its group go on.

    Parameters
    ----------
    columns, counts, lengths : arrays [size, width], [size, width], [size]
        The documents; see :class:`tempering.gpu.device_corpus.Rectangle`.
    s : array [size]
        Inverse temperatures.
    mass : array [size, K]
        Words of each topic at the start.
    table : array [n_words, K]
        log β; see :func:`log_word_table`.
    alpha : array [K]
        α.
    settings : SweepLimits
        How to iterate.
    """
    import jax
    import jax.numpy as jnp

    del lengths  # empty places have no counts
    rows = table[jnp.minimum(columns, table.shape[0] - 1)]
    totals = counts.sum(axis=1)
    limits = settings.tolerance * totals

    def responsibilities(mass):
        log_theta = log_weights(alpha + s[:, None] * mass, settings.collapsed)
        return jax.nn.softmax(s[:, None, None] * (log_theta[:, None, :] + rows), axis=2)

    def sweep(state):
        mass, active, sweeps = state
        new = jnp.einsum("du,duk->dk", counts, responsibilities(mass))
        change = jnp.abs(new - mass).sum(axis=1)
        mass = jnp.where(active[:, None], new, mass)
        sweeps = sweeps + active
        settled = (sweeps >= settings.min_sweeps) & (change <= limits)
        return mass, active & ~settled & (sweeps < settings.max_sweeps), sweeps

    start = (mass, totals > 0, jnp.zeros(totals.shape, jnp.int32))
    mass, _, sweeps = jax.lax.while_loop(lambda state: state[1].any(), sweep, start)
    weighted = (s[:, None] * counts)[:, :, None] * responsibilities(mass)
    # Places without a word have a column that is out of bounds, and are dropped.
    statistics = jnp.zeros_like(table).at[columns].add(weighted, mode="drop")
    return Solved(alpha + s[:, None] * mass, statistics, sweeps)
