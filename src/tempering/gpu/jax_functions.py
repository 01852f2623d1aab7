"""The tempered E-step and short Gibbs chains of a group of documents in plain JAX, for any device,
and the functions that they share with other JAX paths, in float32.

Chains are those of :mod:`tempering.models.lda.sampling`, with documents side by side. Each draw has
a random number of its own, a hash of the topics, the document, the sweep and the token: so what a
step draws does not depend on which kernel runs it.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tempering.gpu.jax_device import jax, jnp, share_out
from tempering.models.lda.sampling import BURN_IN, N_SWEEPS

#: digamma(x) is about -1/x: below this it would leave the range of float32.
SMALLEST_PARAMETER = 1e-30

#: log weight of a topic that is only there to fill a row; finite, as differences are taken. No row
#: may hold nothing else: rounding errors of its differences would be as large as numbers get.
NEVER = -1e30

#: Topics are padded to a multiple of this, so that rows start on equal footing.
TOPICS_MULTIPLE = 32
GOLDEN_32 = np.uint32(0x9E3779B9)
FIRST_FACTOR_32, SECOND_FACTOR_32 = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)


class SweepLimits(NamedTuple):
    """How documents iterate; each combination is compiled once."""

    tolerance: float
    min_sweeps: int
    max_sweeps: int


def padded_topics(n_topics: int) -> int:
    """The number of topics on the device."""
    return -(-n_topics // TOPICS_MULTIPLE) * TOPICS_MULTIPLE


def pad_topics(array: np.ndarray, value: float) -> np.ndarray:
    """The array [..., K] with its last axis filled up."""
    missing = padded_topics(array.shape[-1]) - array.shape[-1]
    widths = [(0, 0)] * (array.ndim - 1) + [(0, missing)]
    return np.pad(np.asarray(array, np.float32), widths, constant_values=np.float32(value))


def digamma(x) -> Any:
    """ψ(x) for x > 0: six steps of the recurrence, then the asymptotic series."""
    x = jnp.maximum(x, SMALLEST_PARAMETER)
    # Pairs of 1/(x + i) + 1/(x + 5 − i), so that there are three divisions instead of six.
    product = x * (x + 5.0)
    below = (2.0 * x + 5.0) * (1.0 / product + 1.0 / (product + 4.0) + 1.0 / (product + 6.0))
    inverse = 1.0 / (x + 6.0)
    square = inverse * inverse
    series = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0)))
    return jnp.log(x + 6.0) - 0.5 * inverse - series - below


def log_rising(x, s) -> Any:
    """log Γ(x + s)/Γ(x), as in :func:`tempering.models.lda.topics.power_sums`."""
    x = jnp.maximum(x, 1e-8)  # as there
    inverse = 1.0 / (x + 4.0)
    second = s * (s - 1.0) * 0.5
    third, fourth = second * (s - 0.5) / 3.0, second * second / 3.0
    series = inverse * (second - inverse * (third - inverse * fourth))
    outer, shifted = x * (x + 3.0), (x + s) * (x + s + 3.0)
    steps = (outer / shifted) * ((outer + 2.0) / (shifted + 2.0))
    return jnp.log(steps) + s * jnp.log(x + 4.0) + series


def log_word_table(parameters, totals, mean: bool) -> Any:
    """E log β, or the log of the posterior mean, of every word: [n_words, padded topics]."""
    form = jnp.log if mean else digamma
    return form(jnp.maximum(parameters, SMALLEST_PARAMETER)) - form(totals)


def solve_group(columns, counts, lengths, s, mass, table, alpha, settings: SweepLimits) -> Any:
    """Settle the documents of a rectangle: γ [size, K], Σ_d s_d n_dv φ_dvk [n_words, K] and the
    sweeps that each took [size], all in logs, so that nothing leaves the range of float32:

        φ_duk ∝ exp{ s_d (log θ_dk + log β_ku) },     γ_dk = α_k + s_d Σ_u n_du φ_duk.

    A document that has settled keeps its γ. Given are a
    :class:`~tempering.gpu.device_data.Rectangle`, s [size] or one for all, words of each topic at
    the start [size, K], log β [n_words, K] and α.
    """
    s = jnp.broadcast_to(s, lengths.shape)
    settle = partial(settle_documents, settings=settings)
    mass, sweeps = share_out(settle, (columns, counts, s, mass), (table, alpha))
    rows = table[jnp.minimum(columns, table.shape[0] - 1)]
    phi = responsibilities(s, mass, rows, alpha)
    weighted = (s[:, None] * counts)[:, :, None] * phi
    # Places without a word have a column that is out of bounds, and are dropped.
    statistics = jnp.zeros_like(table).at[columns].add(weighted, mode="drop")
    return alpha + s[:, None] * mass, statistics, sweeps


def settle_documents(
    columns, counts, s, mass, table, alpha, *, settings: SweepLimits
) -> tuple[Any, Any]:
    """Mass [size, K], sweeps [size]."""
    rows = table[jnp.minimum(columns, table.shape[0] - 1)]
    totals = counts.sum(axis=1)
    limits = settings.tolerance * totals

    def sweep(state):
        mass, active, sweeps = state
        phi = responsibilities(s, mass, rows, alpha)
        new = jnp.einsum("du,duk->dk", counts, phi)
        change = jnp.abs(new - mass).sum(axis=1)
        mass = jnp.where(active[:, None], new, mass)
        sweeps = sweeps + active
        settled = (sweeps >= settings.min_sweeps) & (change <= limits)
        return mass, active & ~settled & (sweeps < settings.max_sweeps), sweeps

    start = (mass, totals > 0, jnp.zeros(totals.shape, jnp.int32))
    mass, _, sweeps = jax.lax.while_loop(lambda state: state[1].any(), sweep, start)
    return mass, sweeps


def responsibilities(s, mass, rows, alpha) -> Any:
    """φ of each place, [size, width, K]."""
    # log θ up to its normaliser, which is the same for all topics.
    log_theta = digamma(alpha + s[:, None] * mass)
    return jax.nn.softmax(s[:, None, None] * (log_theta[:, None, :] + rows), axis=2)


class Sweeps(NamedTuple):
    """Sweeps before the counts are averaged, and sweeps that they are averaged over."""

    burn_in: int = BURN_IN
    kept: int = N_SWEEPS

    @property
    def in_all(self) -> int:
        """With the one that draws each token given those before it, to start from."""
        return 1 + self.burn_in + self.kept


#: As on the CPU.
FEW_SWEEPS = Sweeps()


def sample_group(columns, counts, lengths, table, alpha, sweeps: Sweeps = FEW_SWEEPS) -> Any:
    """Sample the topics of all tokens of a rectangle: γ, and the sums of their expected counts.

    Counts are whole, and no document has more than `width` tokens. ``table`` is log β, times the
    power to which it enters, up to a constant for each word.
    """
    del lengths  # empty places have no counts
    weights = word_weights(table)
    streams = document_streams(table, columns, counts)
    run = partial(run_chains, sweeps=sweeps)
    gamma = share_out(run, (columns, counts, *streams), (weights, alpha))
    rows = weights[jnp.minimum(columns, table.shape[0] - 1)]
    shares = token_shares(gamma[:, None, :], rows, alpha)
    # Places without a word have a column that is out of bounds, and are dropped.
    statistics = jnp.zeros_like(table).at[columns].add(counts[:, :, None] * shares, mode="drop")
    return gamma, statistics


def run_chains(columns, counts, first, second, weights, alpha, *, sweeps: Sweeps) -> Any:
    """γ: α, and the mean number of tokens of each topic, [size, K]."""
    (size, width), (n_words, n_topics) = columns.shape, weights.shape
    ends = jnp.cumsum(counts.astype(jnp.int32), axis=1)
    n_tokens = ends[:, -1]
    places = jax.vmap(lambda own: jnp.searchsorted(own, jnp.arange(width), side="right"))(ends)
    words = jnp.take_along_axis(columns, jnp.minimum(places, width - 1), axis=1)
    words = jnp.minimum(words, n_words - 1)
    longest, lanes = n_tokens.max(), jnp.arange(n_topics)

    def sweep(number, state):
        def token(i, state):
            held, topics = state
            others = jnp.where(lanes == topics[i][:, None], held - 1.0, held)
            random = uniform(first, second, number * width + i)
            drawn = jax.vmap(draw_topic)(others * weights[words[:, i]], random)
            drawn = jnp.where(i < n_tokens, drawn, -1)
            held = jnp.where(lanes == drawn[:, None], others + 1.0, others)
            return held, topics.at[i].set(drawn)

        held, topics, sums = state
        held, topics = jax.lax.fori_loop(0, longest, token, (held, topics))
        # Rounding would leave less than nothing of an α that is next to nothing.
        counts = jnp.maximum(held - alpha, 0.0)
        return held, topics, sums + jnp.where(number > sweeps.burn_in, counts, 0.0)

    nothing = jnp.zeros((size, n_topics), jnp.float32)
    # No token has a topic at first, and places beyond the last token never have.
    start = (alpha + nothing, jnp.full((width, size), -1, jnp.int32), nothing)
    return alpha + jax.lax.fori_loop(0, sweeps.in_all, sweep, start)[2] / sweeps.kept


def draw_topic(weights, share) -> Any:
    """The topic at the given share, in [0, 1), of the weights [K]; never one without weight."""
    n_topics = weights.shape[0]
    sums = jnp.where(weights > 0.0, jax.lax.cumsum(weights), 0.0)
    # Less than the largest of the sums, also when rounded, as the share has 24 bits.
    point = share * jnp.max(sums)
    return jnp.min(jnp.where(sums > point, jnp.arange(n_topics, dtype=jnp.int32), n_topics))


def token_shares(gamma, rows, alpha) -> Any:
    """φ of a token given the others, from γ and β [..., K]: its own share is taken out of γ."""
    own = gamma * rows
    own = own / jnp.sum(own, axis=-1)[..., None]
    # A share of the others would be negative where γ, a mean over sweeps, holds less than its own.
    others = jnp.maximum(gamma - own, 0.5 * alpha) * rows
    return others / jnp.sum(others, axis=-1)[..., None]


def word_weights(table) -> Any:
    """β, scaled to a largest entry of 1 for each word."""
    return jnp.exp(table - table.max(axis=1, keepdims=True))


def document_streams(table, columns, counts) -> tuple[Any, Any]:
    """Two numbers for each document, [size], which no other of its group has.

    Made on the device of all bits of topics, words and row, by sums of whole numbers in any order.
    """
    bits = jax.lax.bitcast_convert_type(table, jnp.uint32).sum(dtype=jnp.uint32)
    entries = mix(columns.astype(jnp.uint32) * GOLDEN_32 + counts.astype(jnp.uint32))
    content = jnp.where(counts > 0, entries, 0).sum(axis=1, dtype=jnp.uint32)
    rows = jnp.arange(columns.shape[0], dtype=jnp.uint32)
    first = mix(mix(bits) + content)
    return first, mix(first ^ (rows * GOLDEN_32))


def uniform(first, second, number) -> Any:
    """Draw `number` of the stream of a document: 24 random bits as a number in [0, 1)."""
    bits = mix(mix(first + number.astype(jnp.uint32) * GOLDEN_32) ^ second)
    return (bits >> np.uint32(8)).astype(jnp.int32).astype(jnp.float32) * np.float32(2.0**-24)


def mix(bits) -> Any:
    """A bijection of 32 bits in which each depends on all: Wellons' hash "lowbias32"."""
    bits = (bits ^ (bits >> np.uint32(16))) * FIRST_FACTOR_32
    bits = (bits ^ (bits >> np.uint32(15))) * SECOND_FACTOR_32
    return bits ^ (bits >> np.uint32(16))
