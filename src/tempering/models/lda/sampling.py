"""Topics sampled by short Gibbs chains, as mean-field φ is too sure of them and blurs them.

The topic z_i of each token is drawn from its conditional with θ_d summed out, as in Mimno, Hoffman
and Blei, "Sparse stochastic inference for latent Dirichlet allocation" (ICML 2012): with word v and
the counts n_k of the document's other tokens,

    p(z_i = k | the others) ∝ (n_k + α_k) β_kv.

It splits into n_k β_kv, over the few topics of the document, and α_k β_kv, whose sum is the same in
all documents (Yao, Mimno and McCallum, KDD 2009). With n_dk the mean of the counts over a few
sweeps, the statistics are conditional expectations, which have less noise than draws:

    γ_dk = α_k + n_dk,   statistics_kv = Σ_d n_dv φ_dvk,   φ_dvk ∝ (γ_dk − own share) β_kv.

β may enter to a power, as if p(w | z, β) alone were tempered. The draws are made of the documents
and the topics that they meet, by a hash: the same on any thread or worker, and after a resume.
"""

from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.models.compilation import ENTRY, PASTED, njit
from tempering.models.fastmath import f32, larger, total_of
from tempering.models.lda.layout import Documents, Float32, Float64, LocalResult
from tempering.models.lda.statistics import find_occurrences
from tempering.models.threads import WORDS_PER_BLOCK, in_blocks
from tempering.storage.state import stored

#: Sweeps until a document's topics are its own, and sweeps that count.
BURN_IN, N_SWEEPS = 3, 3

#: Sampling takes time by the token, mean-field by the distinct word. Documents that repeat their
#: words more often than this are long, and need no sampling.
MOST_REPEATED = 32

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
FIRST_SHIFT, SECOND_SHIFT, THIRD_SHIFT = np.uint64(30), np.uint64(27), np.uint64(31)
UNUSED_BITS = np.uint64(11)
NOWHERE = np.uint32(2**32 - 1)


@stored("settled")
class Settled(NamedTuple):
    """What sampled topics go by at the end of a run, when they are only averaged: earlier, it would
    keep them from separating; then it makes them less sharp.
    """

    part: float  # of the run, from which on it holds
    word_power: float  # as the model's
    prior_factor: float = 1.0  # what is left of α


def can_be_sampled(counts: Float32) -> bool:
    """Whether these are counts of tokens, and not too many."""
    whole = bool(np.all(counts == np.floor(counts)))
    return whole and float(counts.sum(dtype=np.float64)) <= MOST_REPEATED * counts.size


def sample_topics(
    documents: Documents,
    rows: Float32,
    alpha: Float64,
    salt: bytes,
    *,
    burn_in: int = BURN_IN,
    n_sweeps: int = N_SWEEPS,
    n_threads: int = 1,
) -> LocalResult:
    """Sample the topics of all tokens of a batch with whole counts, from β of its words, [U, K]."""
    n_words, n_topics = rows.shape
    tokens = as_tokens(documents.indptr, documents.columns, documents.counts)
    alpha = np.array(alpha, np.float64)  # contiguous, where it is one number for all topics
    words = Words(rows, np.einsum("uk,k->u", rows, alpha), alpha)  # without the threads of BLAS
    mean_counts = run_chains(tokens, words, _hash(salt, documents), burn_in, n_sweeps, n_threads)
    gamma = (mean_counts + alpha).astype(np.float32)
    occurrences = find_occurrences(documents.word_counts, n_words)
    statistics = np.zeros((n_words, n_topics), np.float32)
    least = (0.5 * alpha).astype(np.float32)

    def fill_block(start: int, stop: int) -> None:
        shares = np.empty(n_topics, np.float32)
        fill_expected_counts(
            start, stop, occurrences, documents.counts, rows, gamma, least, shares, statistics
        )

    in_blocks(fill_block, n_words, n_threads, WORDS_PER_BLOCK)
    return LocalResult(gamma, statistics)


@njit(**ENTRY)
def fill_expected_counts(start, stop, occurrences, counts, rows, gamma, least, shares, statistics):
    """Set Σ_d n_dv φ_dvk of the words from `start` to `stop`.

    φ is the conditional of a token given the others, so its own share is taken out of γ first.
    """
    n_topics = shares.size
    for v in range(start, stop):
        row, word = statistics[v], rows[v]
        for i in range(occurrences.indptr[v], occurrences.indptr[v + 1]):
            count = counts[occurrences.positions[i]]
            weights = gamma[occurrences.documents[i]]
            for k in range(n_topics):
                shares[k] = weights[k] * word[k]
            part = f32(1.0) / total_of(shares)
            for k in range(n_topics):
                shares[k] = larger(weights[k] - part * shares[k], least[k]) * word[k]
            part = count / total_of(shares)
            for k in range(n_topics):
                row[k] += part * shares[k]


def _hash(salt: bytes, documents: Documents) -> int:
    digest = blake2b(salt, digest_size=8)
    for part in (documents.words, documents.columns, documents.counts):
        digest.update(part.tobytes())
    return int.from_bytes(digest.digest(), "little")


class Tokens(NamedTuple):
    """Documents as a compressed sparse matrix of whole counts; a column is a row of ``Words``."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    counts: NDArray[np.int64]
    first_tokens: NDArray[np.int64]  # [D + 1], where each document's tokens begin


def as_tokens(indptr: NDArray, columns: NDArray, counts: NDArray) -> Tokens:
    """Documents with whole counts, each token counted."""
    indptr, counts = (np.require(part, np.int64, ["C", "W"]) for part in (indptr, counts))
    first_tokens = np.append(0, np.cumsum(counts))[indptr]
    # Memory that can be written to, as the kernel would be compiled once more for any other.
    columns = np.require(columns, np.int32, ["C", "W"])
    return Tokens(indptr, columns, counts, first_tokens)


class Words(NamedTuple):
    """β_kv with a word a row, and Σ_k α_k β_kv."""

    rows: NDArray[np.float32]
    prior_masses: NDArray[np.float64]
    alpha: NDArray[np.float64]


class Chain(NamedTuple):
    """Room for the chain of one document.

    ``places`` says where each topic stands in ``active``, and is ``NOWHERE`` for all topics between
    two documents; unsigned, so that Numba need not ask whether one is negative.
    """

    words: NDArray[np.uint32]
    topics: NDArray[np.uint32]
    active: NDArray[np.uint32]
    counts: NDArray[np.float64]  # tokens of each active topic
    weights: NDArray[np.float64]  # of the active topics for one token, added up
    places: NDArray[np.uint32]


def new_chain(n_tokens: int, n_topics: int) -> Chain:
    """Room for documents of up to so many tokens."""
    return Chain(
        np.empty(n_tokens, np.uint32),
        np.empty(n_tokens, np.uint32),
        np.empty(n_topics, np.uint32),
        np.empty(n_topics, np.float64),
        np.empty(n_topics, np.float64),
        np.full(n_topics, NOWHERE),
    )


def run_chains(
    tokens: Tokens, words: Words, seed: int, burn_in: int, n_sweeps: int, n_threads: int
) -> Float64:
    """The mean topic counts of all documents, [D, K], each by a chain of its own."""
    n_topics = words.alpha.size
    means = np.zeros((tokens.indptr.size - 1, n_topics))

    def sample_block(start: int, stop: int) -> None:
        longest = int(np.diff(tokens.first_tokens[start : stop + 1]).max())
        chain = new_chain(longest, n_topics)
        sample_documents(
            start, stop, np.uint64(seed), tokens, words, burn_in, n_sweeps, chain, means
        )

    in_blocks(sample_block, len(means), n_threads)
    return means


@njit(**ENTRY)
def sample_documents(start, stop, seed, documents, words, burn_in, n_sweeps, chain, means):
    """Set the mean topic counts of the documents from `start` to `stop`, each by itself.

    The first sweep draws each token given those before it: nearer to the posterior than uniform
    topics. Each function is called in one place alone, where it is compiled.
    """
    for d in range(start, stop):
        n_tokens = lay_out(d, documents, words, chain)
        state = mix(mix(seed) + np.uint64(d))
        n_active = 0
        for sweep in range(-1, burn_in + n_sweeps):
            for i in range(n_tokens):
                if sweep >= 0:
                    n_active = remove_token(i, n_active, chain)
                state += GOLDEN
                topic = draw_topic(chain.words[i], uniform(state), n_active, words, chain)
                n_active = add_token(i, topic, n_active, chain)
            if sweep >= burn_in:
                for a in range(n_active):
                    means[d, chain.active[a]] += chain.counts[a]
        for a in range(n_active):
            chain.places[chain.active[a]] = NOWHERE
        for k in range(words.alpha.size):
            means[d, k] /= n_sweeps


@njit(**PASTED)
def lay_out(d, documents, words, chain):
    """Write document d out token by token; the number of tokens."""
    n_tokens = 0
    for entry in range(documents.indptr[d], documents.indptr[d + 1]):
        if words.prior_masses[documents.columns[entry]] > 0.0:
            for _ in range(documents.counts[entry]):
                chain.words[n_tokens] = documents.columns[entry]
                n_tokens += 1
    return n_tokens


@njit(**PASTED)
def draw_topic(v, share, n_active, words, chain):
    """The topic at the given share, in [0, 1), of the weights (n_k + α_k) β_kv."""
    held = 0.0
    for a in range(n_active):
        held += chain.counts[a] * np.float64(words.rows[v, chain.active[a]])
        chain.weights[a] = held
    point = share * (held + words.prior_masses[v])
    if point < held:
        a = 0
        while point >= chain.weights[a]:
            a += 1
        return chain.active[a]
    point -= held
    topic = np.uint32(0)
    for k in range(words.alpha.size):
        weight = words.alpha[k] * np.float64(words.rows[v, k])
        if weight > 0.0:
            topic = np.uint32(k)
            point -= weight
            if point < 0.0:
                break
    return topic


@njit(**PASTED)
def add_token(i, topic, n_active, chain):
    """Put token i into a topic; the number of active topics."""
    chain.topics[i] = topic
    place = chain.places[topic]
    if place == NOWHERE:
        chain.places[topic] = n_active
        chain.active[n_active] = topic
        chain.counts[n_active] = 1.0
        return n_active + 1
    chain.counts[place] += 1.0
    return n_active


@njit(**PASTED)
def remove_token(i, n_active, chain):
    """Take token i out of its topic; the number of active topics."""
    topic = chain.topics[i]
    place = chain.places[topic]
    chain.counts[place] -= 1.0
    if chain.counts[place] == 0.0:
        n_active -= 1
        last = chain.active[n_active]
        chain.active[place] = last
        chain.counts[place] = chain.counts[n_active]
        chain.places[last] = place
        chain.places[topic] = NOWHERE
    return n_active


@njit(**PASTED)
def mix(bits):
    """The output function of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), a bijection."""
    bits = (bits ^ (bits >> FIRST_SHIFT)) * FIRST_FACTOR
    bits = (bits ^ (bits >> SECOND_SHIFT)) * SECOND_FACTOR
    return bits ^ (bits >> THIRD_SHIFT)


@njit(**PASTED)
def uniform(state):
    """A number in [0, 1) from the state of a stream."""
    return np.float64(mix(state) >> UNUSED_BITS) * (1.0 / 9007199254740992.0)
