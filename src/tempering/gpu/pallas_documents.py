"""The tempered E-step of documents as GPU kernels (Pallas), one program a document.

A document soon uses few of the topics. So it takes a few sweeps over all of them, settles with
those that it uses, whose rows then stay in registers, and settles with all again, mostly in one
sweep. Where a tight tolerance is asked for, the latter is all that is done.
"""

import math
from functools import partial
from typing import Any, NamedTuple

from tempering.gpu.jax_device import LazyModule, jax, jnp
from tempering.gpu.jax_functions import NEVER, SMALLEST_PARAMETER, SweepLimits, digamma

pl: Any = LazyModule("jax.experimental.pallas")
#: What of Pallas is for GPUs: masked loads and stores, and compiler parameters.
triton: Any = LazyModule("jax.experimental.pallas.triton")

#: exp(x) = 2^(x / log 2), and the latter is one instruction.
LOG_2 = math.log(2.0)


class Tile(NamedTuple):
    """How much a program takes at a time; measured on an H200, and not critical."""

    numbers: int  # of log β or log θ
    numbers_a_thread: int

    def shape(self, n_topics: int, n_places: int) -> tuple[int, int]:
        """Places (at most as many as there are) and topics, both powers of two."""
        lanes = 1 << (n_topics - 1).bit_length()
        places = max(1, min(self.numbers // lanes, 64))
        return min(places, 1 << (n_places.bit_length() - 1)), lanes

    def compiler_params(self, shape: tuple[int, int]) -> Any:
        """Threads for a tile of this shape."""
        n_warps = shape[0] * shape[1] // (32 * self.numbers_a_thread)
        return triton.CompilerParams(num_warps=max(1, min(16, n_warps)), num_stages=2)


FIRST_TILE, FEW_TILE, LAST_TILE = Tile(2048, 64), Tile(2048, 32), Tile(4096, 64)

#: Sweeps over all topics at first; lanes of the kernels for documents that use few topics; and
#: which topics a document uses: those with this share of its words, or with twice as much where
#: these are too many. They must have half of its words between them: hot documents are flat.
FIRST_SWEEPS, FEW_TOPICS, USED_SHARE, LEAST_USED = 4, (16, 32), 0.005, 0.5
MOST_USED_TOPICS = FEW_TOPICS[-1]

#: With a tighter tolerance no topic is left out, and nothing is extrapolated: from there, documents
#: may settle elsewhere.
LOOSE = 1e-3

#: Steps shrink by no more than this in a sweep, as far as they are extrapolated.
SLOWEST = 0.9

#: Where products of powers add up to less, too many left the range of float32, as would a count
#: over their sum: the word is left out of the sweep, and its document is settled again with logs.
SMALLEST_SUM = 1e-30

#: A document has lost a word in its last sweep if so much of its words has no topic.
LOST_SHARE = 1e-4


def settle_documents(*inputs, settings: SweepLimits, same_s: bool, interpret: bool) -> Any:
    """Mass and log θ [size, K], log normaliser of each place [size, width], sweeps [size].

    With one s for all documents (``same_s``), β to this power is a table of its own.
    """
    *documents, mass, table, powers, alpha = inputs
    documents.append(documents[1].sum(axis=1))  # totals
    (size, width), n_topics = documents[0].shape, table.shape[1]
    call = partial(pl.pallas_call, grid=(size,), interpret=interpret)
    numbers = jax.ShapeDtypeStruct((size, n_topics), jnp.float32)
    sums = jax.ShapeDtypeStruct((size,), jnp.int32)
    before = 0
    loose = settings.tolerance >= LOOSE and min(n_topics, settings.max_sweeps) > MOST_USED_TOPICS
    if loose:
        few = jax.ShapeDtypeStruct((size, MOST_USED_TOPICS), jnp.int32)
        shape = FIRST_TILE.shape(n_topics, width)
        mass, topics, n_used = call(
            partial(first_kernel, shape=shape, same_s=same_s),
            out_shape=[numbers, few, sums],
            compiler_params=FIRST_TILE.compiler_params(shape),
        )(*inputs)
        before, fewer = FIRST_SWEEPS, 0
        for most in FEW_TOPICS:
            few_shape, limits = FEW_TILE.shape(most, width), settings._replace(min_sweeps=1)
            mass, few_sweeps = call(
                partial(few_kernel, settings=limits, shape=few_shape, fewer=fewer),
                out_shape=[numbers, sums],
                compiler_params=FEW_TILE.compiler_params(few_shape),
                input_output_aliases={len(documents): 0},
            )(*documents, mass, topics, n_used, table, alpha)
            before, fewer = before + few_sweeps, most
        settings = settings._replace(min_sweeps=max(1, settings.min_sweeps - FIRST_SWEEPS))
    shape = LAST_TILE.shape(n_topics, width)
    mass, log_theta, log_z, sweeps = call(
        partial(document_kernel, settings=settings, shape=shape, loose=loose, same_s=same_s),
        out_shape=[numbers, numbers, jax.ShapeDtypeStruct((size, width), jnp.float32), sums],
        compiler_params=LAST_TILE.compiler_params(shape),
    )(*documents, mass, table, powers, alpha)
    return mass, log_theta, log_z, before + sweeps


class DocumentSweep:
    """A sweep of document d over all topics, inside a kernel.

    The table is log β, or β^s (``powers``), which takes fewer operations. But there the products of
    a word may leave the range of float32: where they do (`SMALLEST_SUM`), the word is left out.
    """

    def __init__(self, d, columns, counts, lengths, s, table, alpha, shape, powers):
        self.words, lanes = shape
        self.topics, self.places = jnp.arange(lanes), jnp.arange(self.words)
        self.real = self.topics < table.shape[1]
        self.alpha = triton.load(alpha.at[self.topics], mask=self.real, other=SMALLEST_PARAMETER)
        self.s = s[d]
        self.n_tiles = (lengths[d] + self.words - 1) // self.words
        self.d, self.columns, self.counts = d, columns, counts
        self.table, self.powers = table, powers

    def log_theta(self, mass):
        """log θ up to its normaliser."""
        return digamma(self.alpha + self.s * mass)

    def shares(self, log_theta):
        """A function of some words, by their tile: their φ up to a factor [words, lanes], its sums
        over topics [words], and the log of the factor."""
        largest = jnp.max(log_theta)
        weights = jnp.exp2(self.s / LOG_2 * (log_theta - largest))

        def of_tile(tile):
            place = tile * self.words + self.places
            column = jnp.minimum(self.columns[self.d, place], self.table.shape[0] - 1)
            cells = self.table.at[column[:, None], self.topics[None, :]]
            none = 0.0 if self.powers else NEVER
            rows = triton.load(cells, mask=self.real[None, :], other=none)
            if self.powers:
                phi = rows * weights[None, :]
                return phi, jnp.sum(phi, axis=1), self.s * largest
            scores = self.s / LOG_2 * (rows + log_theta[None, :])
            top = jnp.max(scores, axis=1)
            phi = jnp.exp2(scores - top[:, None])
            return phi, jnp.sum(phi, axis=1), LOG_2 * top

        return of_tile

    def __call__(self, mass):
        """The mass of each topic, given that of the sweep before."""
        shares = self.shares(self.log_theta(mass))

        def add_tile(tile, mass):
            phi, sums, _ = shares(tile)
            counts = self.counts[self.d, tile * self.words + self.places]
            share = jnp.where(sums >= SMALLEST_SUM, counts / sums, 0.0)
            return mass + jnp.sum(share[:, None] * phi, axis=0)

        return jax.lax.fori_loop(0, self.n_tiles, add_tile, jnp.zeros_like(mass))


def until_settled(sweep, mass, total, settings: SweepLimits, loose: bool) -> Any:
    """Sweep until the mass settles, inside a kernel: the mass, and how many sweeps it took.

    It has settled when a sweep moves less than a small part of ``total``. Steps shrink by much the
    same factor in each, so that where the end may be ``loose`` every other sweep takes all steps to
    come.
    """
    limit = settings.tolerance * total

    def next_sweep(state):
        mass, step_before, sweeps, _ = state
        new, sweeps = sweep(mass), sweeps + 1
        step = new - mass
        settled = (sweeps >= settings.min_sweeps) & (jnp.sum(jnp.abs(step)) <= limit)
        settled |= sweeps >= settings.max_sweeps
        if loose:
            squares = jnp.maximum(jnp.sum(step_before * step_before), SMALLEST_PARAMETER)
            factor = jnp.clip(jnp.sum(step * step_before) / squares, 0.0, SLOWEST)
            ahead = jnp.where(settled | (sweeps % 2 == 1), 0.0, factor / (1.0 - factor))
            new = jnp.maximum(new + ahead * step, 0.0)
        return new, step, sweeps, settled

    state = (mass, jnp.zeros_like(mass), jnp.int32(0), total <= 0.0)
    mass, _, sweeps, _ = jax.lax.while_loop(lambda state: ~state[3], next_sweep, state)
    return mass, sweeps


def first_kernel(
    columns, counts, lengths, s, mass_in, table, powers, alpha, mass_out, few_out, n_used_out,
    *, shape, same_s,
):  # fmt: skip
    """A few sweeps of document d; then which topics it uses, and their mass.

    A document that uses more topics than the next kernel takes keeps all of its mass, as does one
    so flat that they have little of it.
    """
    store = triton.store
    d = pl.program_id(0)
    own_table = powers if same_s else table
    sweep = DocumentSweep(d, columns, counts, lengths, s, own_table, alpha, shape, same_s)
    topics, real = sweep.topics, sweep.real
    mass = triton.load(mass_in.at[d, topics], mask=real, other=0.0)
    limits = SweepLimits(0.0, FIRST_SWEEPS, FIRST_SWEEPS)
    mass, _ = until_settled(sweep, mass, jnp.sum(mass), limits, loose=True)
    least = USED_SHARE * jnp.sum(mass)
    many = jnp.sum((mass > least).astype(jnp.int32)) > MOST_USED_TOPICS
    used = mass > jnp.where(many, 2.0 * least, least)
    # No place is named twice: interpreted, what a mask leaves out is written back as it was.
    places = jnp.where(used, jax.lax.cumsum(used.astype(jnp.int32)) - 1, MOST_USED_TOPICS)
    n_used = jnp.sum(used.astype(jnp.int32))
    enough = jnp.sum(jnp.where(used, mass, 0.0)) > LEAST_USED * jnp.sum(mass)
    few = enough & (n_used <= MOST_USED_TOPICS)
    store(few_out.at[d, places], topics, mask=used & few)
    n_used_out[d] = jnp.where(few, n_used, 0)
    store(mass_out.at[d, topics], jnp.where(few & ~used, 0.0, mass), mask=real)


def few_kernel(
    columns, counts, lengths, s, totals, mass_in, few, n_used, table, alpha, mass_out, sweeps_out,
    *, settings, shape, fewer,
):  # fmt: skip
    """Settle document d with the few topics that it uses; rows of its first words stay here.

    One that uses so few that it was settled before, or too many for this kernel, is left alone.
    What is lost by it to the range of float32, or to the other topics, the last kernel mends.
    """
    load = triton.load
    d = pl.program_id(0)
    words, lanes = shape
    sweeps_out[d] = 0

    @pl.when((n_used[d] > fewer) & (n_used[d] <= lanes))
    def settle():
        lane, places = jnp.arange(lanes), jnp.arange(words)
        used = lane < n_used[d]
        topics = load(few.at[d, lane], mask=used, other=0)
        own_alpha = load(alpha.at[topics], mask=used, other=1.0)
        own_s = s[d]
        n_tiles = (lengths[d] + words - 1) // words
        mass = load(mass_in.at[d, topics], mask=used, other=0.0)
        largest = jnp.max(jnp.where(used, digamma(own_alpha + own_s * mass), NEVER))

        def powers_of(tile):
            """β^s, scaled to a largest entry of 1 for each word."""
            column = jnp.minimum(columns[d, tile * words + places], table.shape[0] - 1)
            rows = load(table.at[column[:, None], topics[None, :]], mask=used[None, :], other=NEVER)
            return jnp.exp2(own_s / LOG_2 * (rows - jnp.max(rows, axis=1)[:, None]))

        def mass_of(tile, powers, weights):
            total = jnp.sum(powers * weights[None, :], axis=1)
            own_counts = counts[d, tile * words + places]
            share = jnp.where(total >= SMALLEST_SUM, own_counts / total, 0.0)
            return weights * jnp.sum(share[:, None] * powers, axis=0)

        first = powers_of(0)

        def sweep(mass):
            log_theta = jnp.where(used, digamma(own_alpha + own_s * mass), NEVER)
            weights = jnp.exp2(own_s / LOG_2 * (log_theta - largest))

            def add_tile(tile, sums):
                return sums + mass_of(tile, powers_of(tile), weights)

            return jax.lax.fori_loop(1, n_tiles, add_tile, mass_of(0, first, weights))

        mass, sweeps_out[d] = until_settled(sweep, mass, totals[d], settings, loose=True)
        places = jnp.where(used, topics, table.shape[1])  # as in the first kernel
        triton.store(mass_out.at[d, places], mass, mask=used)


def document_kernel(
    columns, counts, lengths, s, totals, mass_in, table, powers, alpha,
    mass_out, log_theta_out, log_z, sweeps_out,
    *, settings, shape, loose, same_s,
):  # fmt: skip
    """Settle document d, the one of this program."""
    d = pl.program_id(0)

    def settle(table, powers):
        """Whether a word was left out, as its products left the range of float32."""
        sweep = DocumentSweep(d, columns, counts, lengths, s, table, alpha, shape, powers)
        topics, real = sweep.topics, sweep.real
        mass = triton.load(mass_in.at[d, topics], mask=real, other=0.0)
        mass, sweeps_out[d] = until_settled(sweep, mass, totals[d], settings, loose)
        log_theta = sweep.log_theta(mass)
        shares = sweep.shares(log_theta)

        def close_tile(tile, smallest):
            _, sums, log_factor = shares(tile)
            place = tile * sweep.words + sweep.places
            log_z[d, place] = log_factor + jnp.log(sums)
            return jnp.minimum(smallest, jnp.min(jnp.where(place < lengths[d], sums, 1.0)))

        smallest = jax.lax.fori_loop(0, sweep.n_tiles, close_tile, jnp.float32(1.0))
        triton.store(mass_out.at[d, topics], mass, mask=real)
        triton.store(log_theta_out.at[d, topics], log_theta, mask=real)
        missing = totals[d] - jnp.sum(mass) > LOST_SHARE * totals[d]
        return missing | (smallest < SMALLEST_SUM)

    if same_s:

        @pl.when(settle(powers, True))
        def settle_again():
            settle(table, False)

    else:
        settle(table, False)
