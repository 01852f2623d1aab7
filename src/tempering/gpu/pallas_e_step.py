"""The tempered E-step of a group of documents as two GPU kernels (Pallas).

The first has one program a document: it takes a few words at a time, reads their rows of log β, and
keeps only the document's masses. So each document stops by itself, padding costs nothing, and the
rows come from the cache of the GPU. The second has one program a word, and sums over the documents
that hold it, in their order: no atomic additions, so the same input gives the same bits.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

from tempering.gpu.jax_functions import NEVER, Solved, SweepLimits, log_weights

#: exp(x) = 2^(x / log 2), and the latter is one instruction.
LOG_2 = math.log(2.0)


class Tile(NamedTuple):
    """How much a program takes at a time; measured on an H200, and not critical."""

    numbers: int  # of log β or log θ
    numbers_a_thread: int

    def shape(self, n_topics: int, n_places: int) -> tuple[int, int]:
        """Places (at most as many as there are) and topics, both powers of two."""
        lanes = 1 << (n_topics - 1).bit_length()
        places = max(1, min(self.numbers // lanes, 32))
        return min(places, 1 << (n_places.bit_length() - 1)), lanes

    def compiler_params(self, shape: tuple[int, int]) -> Any:
        """Threads for a tile of this shape."""
        n_warps = shape[0] * shape[1] // (32 * self.numbers_a_thread)
        return triton().CompilerParams(num_warps=max(1, min(16, n_warps)), num_stages=2)


DOCUMENT_TILE = Tile(2048, 32)
WORD_TILE = Tile(8192, 64)


def triton() -> Any:
    """The part of Pallas that is for GPUs: masked loads and stores, and compiler parameters."""
    from jax.experimental.pallas import triton

    return triton


def solve_group(
    columns: Any,
    counts: Any,
    lengths: Any,
    s: Any,
    mass: Any,
    table: Any,
    alpha: Any,
    settings: SweepLimits,
    *,
    interpret: bool = False,
) -> Solved:
    """Settle the documents of a rectangle and sum their statistics.

    Parameters are those of :func:`tempering.gpu.jax_e_step.solve_group`.
    """
    inputs = (columns, counts, lengths, s, mass, table, alpha)
    mass, log_theta, log_z, sweeps = settle_documents(inputs, settings, interpret)
    starts, documents, order = entries_by_word(columns, table.shape[0])
    weights = (s[:, None] * counts).ravel()[order]
    entries = (starts, documents, s[documents], weights, log_z.ravel()[order])
    statistics = sum_words(entries, log_theta, table, interpret)
    return Solved(alpha + s[:, None] * mass, statistics, sweeps)


def settle_documents(inputs: tuple, settings: SweepLimits, interpret: bool) -> Any:
    """Mass and log θ [size, K], log normaliser of each place [size, width], sweeps [size]."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    (size, width), n_topics = inputs[0].shape, inputs[5].shape[1]
    shape = DOCUMENT_TILE.shape(n_topics, width)
    shapes = [
        jax.ShapeDtypeStruct((size, n_topics), jnp.float32),
        jax.ShapeDtypeStruct((size, n_topics), jnp.float32),
        jax.ShapeDtypeStruct((size, width), jnp.float32),
        jax.ShapeDtypeStruct((size,), jnp.int32),
    ]
    return pl.pallas_call(
        partial(document_kernel, settings=settings, shape=shape),
        grid=(size,),
        out_shape=shapes,
        compiler_params=DOCUMENT_TILE.compiler_params(shape),
        interpret=interpret,
    )(*inputs)


def document_kernel(
    columns, counts, lengths, s, mass_in, table, alpha, mass_out, log_theta_out, log_z, sweeps_out,
    *, settings, shape,
):  # fmt: skip
    """Settle document d, the one of this program."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    load, store = triton().load, triton().store
    d = pl.program_id(0)
    (n_words, n_topics), (words, lanes) = table.shape, shape
    topics, places = jnp.arange(lanes), jnp.arange(words)
    real = topics < n_topics
    own_alpha = load(alpha.at[topics], mask=real, other=1.0)
    own_s = s[d]
    n_tiles = (lengths[d] + words - 1) // words

    def log_theta_of(mass):
        return log_weights(own_alpha + own_s * mass, settings.collapsed)

    def scores_of(tile, log_theta):
        """s (log θ + log β) / log 2 of some words, less the largest: [words, lanes]; and that."""
        column = jnp.minimum(columns[d, tile * words + places], n_words - 1)
        log_rows = load(table.at[column[:, None], topics[None, :]], mask=real[None, :], other=NEVER)
        scores = own_s / LOG_2 * (log_rows + log_theta[None, :])
        top = jnp.max(scores, axis=1)
        return scores - top[:, None], top

    def sweep(state):
        mass, _, sweeps, _ = state
        log_theta = log_theta_of(mass)

        def add_tile(tile, sums):
            scores, _ = scores_of(tile, log_theta)
            phi = jnp.exp2(scores)
            share = counts[d, tile * words + places] / jnp.sum(phi, axis=1)
            return sums + jnp.sum(share[:, None] * phi, axis=0)

        new = jax.lax.fori_loop(0, n_tiles, add_tile, jnp.zeros(lanes, jnp.float32))
        change = jnp.sum(jnp.abs(new - mass))
        total = jnp.sum(new)
        sweeps = sweeps + 1
        settled = (sweeps >= settings.min_sweeps) & (change <= settings.tolerance * total)
        return new, total, sweeps, settled | (sweeps >= settings.max_sweeps)

    mass = load(mass_in.at[d, topics], mask=real, other=0.0)
    empty = jnp.sum(mass) <= 0.0
    state = (mass, jnp.float32(0.0), jnp.int32(0), empty)
    mass, _, sweeps, _ = jax.lax.while_loop(lambda state: ~state[3], sweep, state)
    log_theta = log_theta_of(mass)

    def close_tile(tile, nothing):
        scores, top = scores_of(tile, log_theta)
        total = jnp.sum(jnp.exp2(scores), axis=1)
        log_z[d, tile * words + places] = LOG_2 * top + jnp.log(total)
        return nothing

    jax.lax.fori_loop(0, n_tiles, close_tile, 0)
    store(mass_out.at[d, topics], mass, mask=real)
    store(log_theta_out.at[d, topics], log_theta, mask=real)
    sweeps_out[d] = sweeps


def entries_by_word(columns: Any, n_words: int) -> tuple[Any, Any, Any]:
    """Where each word's entries start [n_words + 1]; document and place of each entry."""
    import jax.numpy as jnp

    words = columns.ravel()
    order = jnp.argsort(words, stable=True)
    documents = (order // columns.shape[1]).astype(jnp.int32)
    # Places without a word are out of bounds; they are dropped here, and come last in the order.
    occurrences = jnp.zeros(n_words, jnp.int32).at[words].add(1, mode="drop")
    return jnp.pad(jnp.cumsum(occurrences), (1, 0)), documents, order


def sum_words(entries: tuple, log_theta: Any, table: Any, interpret: bool) -> Any:
    """Σ_d s_d n_dv φ_dvk of every word: [n_words, K]."""
    import jax
    from jax.experimental import pallas as pl

    shape = WORD_TILE.shape(table.shape[1], entries[1].shape[0])
    return pl.pallas_call(
        partial(word_kernel, shape=shape),
        grid=(table.shape[0],),
        out_shape=jax.ShapeDtypeStruct(table.shape, table.dtype),
        compiler_params=WORD_TILE.compiler_params(shape),
        interpret=interpret,
    )(*entries, log_theta, table)


def word_kernel(
    starts, documents, s, weights, log_z, log_theta, table, statistics,
    *, shape,
):  # fmt: skip
    """Sum over the entries of word v, the one of this program."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    load, store = triton().load, triton().store
    v = pl.program_id(0)
    n_topics, (documents_at_once, lanes) = table.shape[1], shape
    topics, places = jnp.arange(lanes), jnp.arange(documents_at_once)
    real = topics < n_topics
    log_row = load(table.at[v, topics], mask=real, other=NEVER)
    first, last = starts[v], starts[v + 1]

    def add_tile(tile, sums):
        entry = first + tile * documents_at_once + places
        held = entry < last
        document = load(documents.at[entry], mask=held, other=0)
        own_s = load(s.at[entry], mask=held, other=1.0)
        weight = load(weights.at[entry], mask=held, other=0.0)
        normalizer = load(log_z.at[entry], mask=held, other=0.0)
        theta = load(
            log_theta.at[document[:, None], topics[None, :]],
            mask=held[:, None] & real[None, :],
            other=NEVER,
        )
        phi = jnp.exp(own_s[:, None] * (theta + log_row[None, :]) - normalizer[:, None])
        return sums + jnp.sum(weight[:, None] * phi, axis=0)

    n_tiles = (last - first + documents_at_once - 1) // documents_at_once
    sums = jax.lax.fori_loop(0, n_tiles, add_tile, jnp.zeros(lanes, jnp.float32))
    store(statistics.at[v, topics], sums, mask=real)
