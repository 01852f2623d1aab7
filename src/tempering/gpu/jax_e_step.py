"""The tempered E-step of a group of documents in plain JAX, for any device.

All in logs, so that no temperature and no topic leaves the range of float32:

    φ_duk ∝ exp{ s_d (log θ_dk + log β_ku) },     γ_dk = α_k + s_d Σ_u n_du φ_duk.

A document that has settled keeps its γ while the others of its group go on.
"""

from __future__ import annotations

from typing import Any

from tempering.gpu.jax_functions import Solved, SweepLimits, log_weights


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

    Parameters
    ----------
    columns, counts, lengths : arrays [size, width], [size, width], [size]
        The documents; see :class:`tempering.gpu.device_corpus.Rectangle`.
    s : array [size]
        Inverse temperatures.
    mass : array [size, K]
        Words of each topic at the start.
    table : array [n_words, K]
        log β; see :func:`tempering.gpu.jax_functions.log_word_table`.
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
