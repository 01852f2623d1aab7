"""Gibbs chains of a group of documents as two GPU kernels (Pallas).

The first has one program a document, most often of a single warp: it keeps the topic counts in
registers and takes token after token, each a row of β, its cumulative sums and one draw. The second
has one program a word, and sums the expected counts over the documents that hold it, in their
order: no atomic additions, so the same input gives the same bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tempering.gpu.jax_functions import Solved
from tempering.gpu.jax_sampling import (
    FEW_SWEEPS,
    Sweeps,
    document_streams,
    draw_topic,
    sweeps_made,
    token_shares,
    uniform,
    word_weights,
)
from tempering.gpu.pallas_e_step import Tile, entries_by_word, triton

#: One token at a time. A warp takes up to 512 topics: more warps would have to wait for each other.
TOKEN_TILE = Tile(1, 16)
SAMPLED_WORD_TILE = Tile(4096, 32)


def sample_group(
    columns: Any,
    counts: Any,
    lengths: Any,
    table: Any,
    alpha: Any,
    sweeps: Sweeps = FEW_SWEEPS,
    *,
    interpret: bool = False,
) -> Solved:
    """Sample the topics of all tokens of a rectangle, and sum their expected counts.

    Parameters are those of :func:`tempering.gpu.jax_sampling.sample_group`.
    """
    weights = word_weights(table)
    streams = document_streams(table, columns, counts)
    inputs = (columns, counts, lengths, *streams, weights, alpha)
    gamma = alpha + run_chains(inputs, sweeps, interpret)
    starts, documents, order = entries_by_word(columns, table.shape[0])
    entries = (starts, documents, counts.ravel()[order])
    statistics = sum_words(entries, gamma, weights, alpha, interpret)
    return Solved(gamma, statistics, sweeps_made(counts, sweeps))


def run_chains(inputs: tuple, sweeps: Sweeps, interpret: bool) -> Any:
    """Mean number of tokens of each topic, [size, K]."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    (size, width), n_topics = inputs[0].shape, inputs[5].shape[1]
    shape = TOKEN_TILE.shape(n_topics, 1)
    means, _ = pl.pallas_call(
        partial(chain_kernel, sweeps=sweeps, lanes=shape[1]),
        grid=(size,),
        out_shape=[
            jax.ShapeDtypeStruct((size, n_topics), jnp.float32),
            jax.ShapeDtypeStruct((size, width), jnp.int32),
        ],
        compiler_params=TOKEN_TILE.compiler_params(shape),
        interpret=interpret,
    )(*inputs)
    return means


def chain_kernel(
    columns, counts, lengths, first, second, weights, alpha, means, topics,
    *, sweeps, lanes,
):  # fmt: skip
    """Run the chain of document d, the one of this program; `topics` is room for its draws."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    load, store = triton().load, triton().store
    d = pl.program_id(0)
    width, n_topics = columns.shape[1], weights.shape[1]
    lane = jnp.arange(lanes)
    real = lane < n_topics
    own_alpha = load(alpha.at[lane], mask=real, other=1.0)
    own_streams, n_words = (first[d], second[d]), lengths[d]
    nothing = jnp.zeros(lanes, jnp.float32)

    def sweep(number, state):
        def word(place, state):
            row = load(weights.at[columns[d, place], lane], mask=real, other=0.0)
            count = counts[d, place].astype(jnp.int32)
            alone = (n_words == 1) & (count == 1)

            def token(_, state):
                held, i = state
                old = jnp.where(number > 0, topics[d, i], -1)
                # Draws of other tokens keep the warps of a program in step, so that all of them
                # read the topic that one of them has written. A single token needs not be read.
                others = jnp.where(alone, nothing, held - (lane == old).astype(jnp.float32))
                random = uniform(*own_streams, number * width + i)
                drawn = draw_topic((others + own_alpha) * row, random)
                topics[d, i] = drawn
                return others + (lane == drawn).astype(jnp.float32), i + 1

            return jax.lax.fori_loop(0, count, token, state)

        held, sums = state
        held, _ = jax.lax.fori_loop(0, n_words, word, (held, jnp.int32(0)))
        return held, sums + jnp.where(number > sweeps.burn_in, held, nothing)

    _, sums = jax.lax.fori_loop(0, sweeps.in_all, sweep, (nothing, nothing))
    store(means.at[d, lane], sums / sweeps.kept, mask=real)


def sum_words(entries: tuple, gamma: Any, weights: Any, alpha: Any, interpret: bool) -> Any:
    """Σ_d n_dv φ_dvk of every word: [n_words, K]."""
    import jax
    from jax.experimental import pallas as pl

    shape = SAMPLED_WORD_TILE.shape(weights.shape[1], entries[1].shape[0])
    return pl.pallas_call(
        partial(word_kernel, shape=shape),
        grid=(weights.shape[0],),
        out_shape=jax.ShapeDtypeStruct(weights.shape, weights.dtype),
        compiler_params=SAMPLED_WORD_TILE.compiler_params(shape),
        interpret=interpret,
    )(*entries, gamma, weights, alpha)


def word_kernel(starts, documents, counts, gamma, weights, alpha, statistics, *, shape):
    """Sum over the entries of word v, the one of this program."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl

    load, store = triton().load, triton().store
    v = pl.program_id(0)
    n_topics, (documents_at_once, lanes) = weights.shape[1], shape
    lane, places = jnp.arange(lanes), jnp.arange(documents_at_once)
    real = lane < n_topics
    row = load(weights.at[v, lane], mask=real, other=0.0)
    own_alpha = load(alpha.at[lane], mask=real, other=1.0)
    first, last = starts[v], starts[v + 1]

    def add_tile(tile, sums):
        entry = first + tile * documents_at_once + places
        held = entry < last
        document = load(documents.at[entry], mask=held, other=0)
        count = load(counts.at[entry], mask=held, other=0.0)
        own_gamma = load(
            gamma.at[document[:, None], lane[None, :]],
            mask=held[:, None] & real[None, :],
            other=1.0,
        )
        shares = token_shares(own_gamma, row[None, :], own_alpha[None, :])
        return sums + jnp.sum(count[:, None] * shares, axis=0)

    n_tiles = (last - first + documents_at_once - 1) // documents_at_once
    sums = jax.lax.fori_loop(0, n_tiles, add_tile, jnp.zeros(lanes, jnp.float32))
    store(statistics.at[v, lane], sums, mask=real)
