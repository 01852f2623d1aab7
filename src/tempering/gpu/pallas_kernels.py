"""Groups of documents as GPU kernels (Pallas): the tempered E-step, and Gibbs chains.

First come kernels with one program a document, which keeps its topics in registers: it sweeps until
it has settled (:mod:`tempering.gpu.pallas_documents`), or takes token after token, each a row of β,
its cumulative sums and one draw. The last kernel has one program a word, and sums over the
documents that hold it, in their order: no atomic additions, so the same input gives the same bits.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from tempering.gpu.jax_device import jax, jnp, share_out
from tempering.gpu.jax_functions import (
    FEW_SWEEPS,
    SweepLimits,
    Sweeps,
    document_streams,
    draw_topic,
    token_shares,
    uniform,
    word_weights,
)
from tempering.gpu.pallas_documents import Tile, pl, settle_documents, triton

WORD_TILE = Tile(8192, 64)

#: One token at a time. A warp takes up to 512 topics: more warps would have to wait for each other.
TOKEN_TILE, SAMPLED_WORD_TILE = Tile(1, 16), Tile(4096, 32)


def solve_group(
    columns,
    counts,
    lengths,
    s,
    mass,
    table,
    alpha,
    settings: SweepLimits,
    *,
    interpret: bool = False,
) -> Any:
    """As :func:`tempering.gpu.jax_functions.solve_group`."""
    same_s = jnp.ndim(s) == 0
    table = table - table.max(axis=1, keepdims=True)  # so that powers are at most 1
    powers = jnp.exp(s * table) if same_s else table
    s = jnp.broadcast_to(s, lengths.shape)
    settle = partial(settle_documents, settings=settings, same_s=same_s, interpret=interpret)
    documents = (columns, counts, lengths, s, mass)
    mass, log_theta, log_z, sweeps = share_out(settle, documents, (table, powers, alpha))
    words, owners, order = entries_by_word(columns, table.shape[0])
    numbers = ((s[:, None] * counts).ravel()[order], s[owners], log_z.ravel()[order])

    def shares(log_theta, log_row, s, log_z):
        return jnp.exp(s * (log_theta + log_row) - log_z)

    statistics = sum_words(
        shares, WORD_TILE, words, owners, numbers, log_theta, table, interpret=interpret
    )
    return alpha + s[:, None] * mass, statistics, sweeps


def sample_group(
    columns, counts, lengths, table, alpha, sweeps: Sweeps = FEW_SWEEPS, *, interpret: bool = False
) -> Any:
    """As :func:`tempering.gpu.jax_functions.sample_group`."""
    weights = word_weights(table)
    streams = document_streams(table, columns, counts)
    run = partial(run_chains, sweeps=sweeps, interpret=interpret)
    documents = (columns, counts, lengths, *streams)
    gamma = alpha + share_out(run, documents, (weights, alpha))
    words, owners, order = entries_by_word(columns, table.shape[0])
    given = words, owners, (counts.ravel()[order],), gamma, weights, alpha
    return gamma, sum_words(token_shares, SAMPLED_WORD_TILE, *given, interpret=interpret)


def run_chains(*inputs, sweeps: Sweeps, interpret: bool) -> Any:
    """Mean number of tokens of each topic, [size, K]."""
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
    load, store = triton.load, triton.store
    d = pl.program_id(0)
    width, n_topics = columns.shape[1], weights.shape[1]
    lane = jnp.arange(lanes)
    real = lane < n_topics
    own_streams, n_words = (first[d], second[d]), lengths[d]
    alone = (n_words == 1) & (counts[d, 0] == 1)

    def prior():
        return load(alpha.at[lane], mask=real, other=1.0)

    def sweep(number, held):
        # Draws of other tokens keep the warps of a program in step, so that all of them read the
        # topic that one of them has written. A single token needs not be read.
        again = (number > 0) & ~alone

        def word(place, state):
            row = load(weights.at[columns[d, place], lane], mask=real, other=0.0)

            def token(_, state):
                held, i = state
                old = jnp.where(again, topics[d, i], -1)
                others = jnp.where(lane == old, held - 1.0, held)
                drawn = draw_topic(others * row, uniform(*own_streams, number * width + i))
                topics[d, i] = drawn
                return jnp.where(lane == drawn, others + 1.0, others), i + 1

            return jax.lax.fori_loop(0, counts[d, place].astype(jnp.int32), token, state)

        start = jnp.where(alone, prior(), held)
        held, _ = jax.lax.fori_loop(0, n_words, word, (start, jnp.int32(0)))
        # In memory, as registers are what limits how many documents are worked on at a time.
        kept = number - sweeps.burn_in
        so_far = load(means.at[d, lane], mask=real & (kept > 1), other=0.0)
        sums = so_far + jnp.maximum(held - prior(), 0.0)
        sums = jnp.where(kept == sweeps.kept, sums / sweeps.kept, sums)
        store(means.at[d, lane], sums, mask=real & (kept > 0))
        return held

    jax.lax.fori_loop(0, sweeps.in_all, sweep, prior())


def entries_by_word(columns, n_words: int) -> tuple[Any, Any, Any]:
    """The entries of a rectangle, sorted by their words: where those of each word begin and end, of
    which document each is, and where it stands in the rectangle."""
    # A sort looks at each byte of its keys. Places without a word have the column `n_words`.
    kind = jnp.uint16 if n_words < 1 << 16 else jnp.int32
    places = jax.lax.iota(jnp.int32, columns.size)
    words, order = jax.lax.sort((columns.ravel().astype(kind), places), num_keys=1, is_stable=True)
    starts = jnp.searchsorted(words, jnp.arange(n_words + 1, dtype=kind), method="scan_unrolled")
    return (starts[:-1], starts[1:]), order // columns.shape[1], order


def sum_words(
    shares: Callable[..., Any],
    tile: Tile,
    words: tuple[Any, Any],
    documents,
    numbers: tuple,
    rows,
    table,
    *priors,
    interpret: bool,
) -> Any:
    """Σ_d w_dv φ_dvk of every word, [n_words, K], over :func:`entries_by_word`.

    ``numbers`` are w and others, one for each entry. ``shares`` makes φ of the row of a document
    [documents, K], that of the word, those other numbers and the priors [K].
    """
    shape = tile.shape(table.shape[1], documents.shape[0])

    def sums(*arrays):
        own_table = arrays[2]
        return pl.pallas_call(
            partial(word_kernel, shares=shares, n_numbers=len(numbers), shape=shape),
            grid=(own_table.shape[0],),
            out_shape=jax.ShapeDtypeStruct(own_table.shape, own_table.dtype),
            compiler_params=tile.compiler_params(shape),
            interpret=interpret,
        )(*arrays)

    return share_out(sums, (*words, table), (documents, *numbers, rows, *priors))


def word_kernel(firsts, lasts, table, documents, *arrays, shares, n_numbers, shape):
    """Sum over the entries of word v, the one of this program."""
    numbers, (rows, *priors, statistics) = arrays[:n_numbers], arrays[n_numbers:]
    load, store = triton.load, triton.store
    v = pl.program_id(0)
    n_topics, (documents_at_once, lanes) = table.shape[1], shape
    topics, places = jnp.arange(lanes), jnp.arange(documents_at_once)
    real = topics < n_topics
    own_row = load(table.at[v, topics], mask=real, other=0.0)[None, :]
    own_priors = [load(prior.at[topics], mask=real, other=1.0)[None, :] for prior in priors]
    first, last = firsts[v], lasts[v]

    def add_tile(tile, sums):
        entry = first + tile * documents_at_once + places
        held = entry < last
        document = load(documents.at[entry], mask=held, other=0)
        weight, *others = (
            load(number.at[entry], mask=held, other=0.0)[:, None] for number in numbers
        )
        own_rows = load(
            rows.at[document[:, None], topics[None, :]],
            mask=held[:, None] & real[None, :],
            other=1.0,
        )
        phi = shares(own_rows, own_row, *others, *own_priors)
        return sums + jnp.sum(weight * phi, axis=0)

    n_tiles = (last - first + documents_at_once - 1) // documents_at_once
    sums = jax.lax.fori_loop(0, n_tiles, add_tile, jnp.zeros(lanes, jnp.float32))
    store(statistics.at[v, topics], sums, mask=real)
