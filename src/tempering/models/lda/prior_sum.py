"""How much the prior of the proportions should count: as much as predicts documents best.

A small Σ_k α_k suits documents of few topics, and keeps topics apart while they are learned. Where
documents mix many, it is doubled as long as the first halves of some documents, with topics held
fixed, then predict their second halves better. It is never made smaller: on every corpus of real
documents that predicted better, and gave worse topics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tempering.models.base import Array
from tempering.models.lda.blocks import in_blocks
from tempering.models.lda.gibbs import Words, as_tokens, new_chain, sample_documents
from tempering.models.lda.kernels import log_predictive
from tempering.models.lda.sampling import can_be_sampled
from tempering.models.lda.topics import Float32, Topics, compact_words

#: Documents that are predicted.
DOCUMENTS = 300

#: The parts of a run after which the sum is looked at, while it rises.
LOOKS = (0.45, 0.6, 0.75)

#: Nats a word that a doubled sum must gain.
GAIN = 0.002

#: Sweeps of a document until its topics are its own, and sweeps that count.
BURN_IN, SWEEPS = 10, 20

#: No prior counts for more tokens a topic than this.
LARGEST = 10.0


def raised_prior(topics: Topics, prior: Array, documents: Any, n_threads: int = 1) -> Array:
    """α with its sum doubled as long as that predicts better; itself if it does not.

    Parameters
    ----------
    topics : Topics
        The topics as they are.
    prior : array [K]
        α.
    documents : CSR matrix [D, V]
        Some documents. If they cannot be sampled (weights, endless repeats), α stays.
    n_threads : int
        Threads; never changes the result.
    """
    if not can_be_sampled(documents.data):
        return prior
    words, columns = compact_words(documents.indices, documents.shape[1])
    rows = (topics.rows(words) / topics.totals()).astype(np.float32)
    arrays = (documents.data.astype(np.int64), columns, documents.indptr.astype(np.int64))
    first, second = _halves(sparse.csr_array(arrays, shape=(documents.shape[0], words.size)))
    if not first.nnz or not second.nnz:
        return prior
    best = _predicted(first, second, rows, prior, n_threads)
    while prior.mean() < LARGEST:
        score = _predicted(first, second, rows, 2.0 * prior, n_threads)
        if score <= best + GAIN:
            break
        best, prior = score, 2.0 * prior
    return prior


def _halves(documents: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Every other word of each document, and the rest."""
    lengths = np.diff(documents.indptr)
    places = np.arange(documents.nnz) - np.repeat(documents.indptr[:-1], lengths)
    rows = np.repeat(np.arange(lengths.size), lengths)
    halves = []
    for kept in (places % 2 == 0, places % 2 == 1):
        indptr = np.append(0, np.cumsum(np.bincount(rows[kept], minlength=lengths.size)))
        arrays = (documents.data[kept], documents.indices[kept], indptr)
        halves.append(sparse.csr_array(arrays, shape=documents.shape))
    return halves[0], halves[1]


def _predicted(
    first: sparse.csr_array,
    second: sparse.csr_array,
    rows: Float32,
    prior: Array,
    n_threads: int,
) -> float:
    """Nats a word of the second halves, by proportions that the first halves tell."""
    prior = np.array(prior, np.float64)
    tokens = as_tokens(first.indptr.astype(np.int64), first.indices, first.data)
    words = Words(rows, rows @ prior, prior)
    counts = np.zeros((first.shape[0], prior.size))

    def sample_block(start: int, stop: int) -> None:
        longest = int(np.diff(tokens.first_tokens[start : stop + 1]).max())
        chain = new_chain(longest, prior.size)
        sample_documents(start, stop, np.uint64(0), tokens, words, BURN_IN, SWEEPS, chain, counts)

    in_blocks(sample_block, first.shape[0], n_threads)
    proportions = counts + prior
    proportions /= proportions.sum(axis=1, keepdims=True)
    scores = log_predictive(
        second.indptr.astype(np.int64),
        second.indices.astype(np.int32),
        second.data.astype(np.float32),
        rows,
        proportions.astype(np.float32),
        n_threads=n_threads,
    )
    return float(scores.sum() / second.data.sum())
