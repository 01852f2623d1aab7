"""The local step with sampled topics: what mean-field φ cannot know, a short Gibbs chain does.

Mean-field inference treats the words of a document as independent given q(θ) and so is sure of
too much; topics learned from it are blurred, the more so the more documents there are. Here the
topic z_dn of each token is drawn from its conditional with θ_d summed out, as in Mimno, Hoffman and
Blei, "Sparse stochastic inference for latent Dirichlet allocation" (ICML 2012). With n_dk the mean
of the counts over a few sweeps, the statistics are not the draws but, with less noise, their
conditional expectations,

    γ_dk = α_k + n_dk,   statistics_kv = Σ_d n_dv φ_dvk,   φ_dvk ∝ (γ_dk − own share) β_kv.

β may enter to a power, here and in the draws, as if p(w | z, β) alone were tempered.

The draws are made of the documents and the topics that they meet, by a hash, so that a local step
is a function of its arguments: the same on any thread or worker, and after a resume.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numba import njit

from tempering.models.fastmath import ENTRY, f32, larger
from tempering.models.lda.blocks import FEWEST_WORDS, in_blocks
from tempering.models.lda.gibbs import Words, as_tokens, new_chain, sample_documents
from tempering.models.lda.layout import Batch, Float32, Float64
from tempering.models.lda.statistics import find_occurrences
from tempering.models.lda.steps import Documents, Solved

#: Sweeps until a document's topics are its own, and sweeps that count.
BURN_IN, N_SWEEPS = 3, 3

#: Numbers that keep a small array apart from all others. Where two arrays lie closer than a few
#: vectors, a compiled loop over both takes one number at a time, with other roundings: the bits
#: would depend on where memory happens to be free.
APART = 256

#: Sampling takes time by the token, mean-field by the distinct word. Documents that repeat their
#: words more often than this are long, and need no sampling.
MOST_REPEATED = 32


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
) -> Solved:
    """Sample the topics of all tokens of a batch.

    Parameters
    ----------
    documents : Documents
        The batch, with whole counts.
    rows : array [U, K]
        β_kv of the batch's words, to its power, up to a factor for each word.
    alpha : array [K]
        α.
    salt : bytes
        Decides, with the documents, which draws are made.
    burn_in, n_sweeps : int
        Sweeps before the counts are averaged, and sweeps that they are averaged over.
    n_threads : int
        Threads; the result is the same for any number.
    """
    n_documents, (n_words, n_topics) = documents.indptr.size - 1, rows.shape
    tokens = as_tokens(documents.indptr, documents.columns, documents.counts.astype(np.int64))
    alpha = np.array(alpha, np.float64)  # contiguous, where it is one number for all topics
    words = Words(rows, np.empty(n_words), alpha)
    seed = np.uint64(_hash(salt, documents))
    mean_counts = np.zeros((n_documents, n_topics))

    def weigh_block(start: int, stop: int) -> None:
        fill_prior_masses(start, stop, rows, alpha, words.prior_masses)

    def sample_block(start: int, stop: int) -> None:
        longest = int(np.diff(tokens.first_tokens[start : stop + 1]).max())
        chain = new_chain(longest, n_topics)
        sweeps = (burn_in, n_sweeps)
        sample_documents(start, stop, seed, tokens, words, *sweeps, chain, mean_counts)

    in_blocks(weigh_block, n_words, n_threads, FEWEST_WORDS)
    in_blocks(sample_block, n_documents, n_threads)
    gamma = (mean_counts + alpha).astype(np.float32)
    occurrences = find_occurrences(Batch(*documents[:3]), n_words)
    statistics = np.zeros((n_words, n_topics), np.float32)
    least = (0.5 * alpha).astype(np.float32)

    def fill_block(start: int, stop: int) -> None:
        shares = np.empty(n_topics + 2 * APART, np.float32)[APART:-APART]
        fill_expected_counts(
            start, stop, occurrences, documents.counts, rows, gamma, least, shares, statistics
        )

    in_blocks(fill_block, n_words, n_threads, FEWEST_WORDS)
    return Solved(gamma, statistics)


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
            total = f32(0.0)
            for k in range(n_topics):
                shares[k] = weights[k] * word[k]
                total += shares[k]
            part = f32(1.0) / total
            total = f32(0.0)
            for k in range(n_topics):
                shares[k] = larger(weights[k] - part * shares[k], least[k]) * word[k]
                total += shares[k]
            part = count / total
            for k in range(n_topics):
                row[k] += part * shares[k]


@njit(**ENTRY)
def fill_prior_masses(start, stop, rows, alpha, masses):
    """Set Σ_k α_k β_kv of the words from `start` to `stop`."""
    for v in range(start, stop):
        total = 0.0
        for k in range(alpha.size):
            total += alpha[k] * np.float64(rows[v, k])
        masses[v] = total


def _hash(salt: bytes, documents: Documents) -> int:
    digest = blake2b(salt, digest_size=8)
    for part in (documents.words, documents.columns, documents.counts):
        digest.update(part.tobytes())
    return int.from_bytes(digest.digest(), "little")
