"""Learning the Dirichlet priors.

Given mean logarithms, the concentration that makes them most likely; given its sum, how topics
share it; and how large that sum should be. A small Σ_k α_k keeps topics apart while they are
learned. Where documents mix many, it is doubled as long as the first halves of some documents, with
topics held fixed, then predict their second halves better. It is never made smaller.
"""

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln, polygamma

from tempering.models.arguments import as_numbers, shown
from tempering.models.base import Array
from tempering.models.lda.layout import Float32
from tempering.models.lda.sampling import Words, as_tokens, can_be_sampled, run_chains
from tempering.models.lda.topics import Topics, compact_words

#: Priors are kept within this range; below it float32 could not hold what it does to a document.
SMALLEST_PRIOR, LARGEST_PRIOR = 1e-4, 1e3

#: The parts of a run after which the sum of α is looked at, while it rises.
LOOKS = (0.45, 0.6, 0.75)

#: Words that are predicted at a time: few documents are, and no kernel has to be compiled for them.
ENTRIES_AT_A_TIME = 4096

#: Nats a word that a doubled sum must gain.
GAIN = 0.002


def as_doc_topic_prior(given: Any, n_topics: int) -> Array:
    """α of each topic, [K]; raise ``ValueError`` if it cannot be that."""
    expected = f"positive: one number, or one for each of the {n_topics} topics"
    alpha = as_numbers(given, "doc_topic_prior", expected)
    with np.errstate(over="ignore"):
        narrow = alpha.astype(np.float32)  # as the kernels hold it
    if alpha.shape not in ((), (n_topics,)) or not np.all(np.isfinite(narrow) & (narrow > 0)):
        raise ValueError(
            f"doc_topic_prior must be {expected}, that float32 can hold; got {shown(given)}."
        )
    return np.broadcast_to(alpha, n_topics)


def inverse_digamma(y: Array, n_steps: int = 5) -> Array:
    """x with ψ(x) = y, by Newton's method from Minka's start."""
    small = -1.0 / (np.minimum(y, -2.22) - digamma(1.0))
    x = np.where(y >= -2.22, np.exp(y) + 0.5, small)
    for _ in range(n_steps):
        x = x - (digamma(x) - y) / polygamma(1, x)
    return x


def fit_concentration(mean_log: Array, start: Array, n_steps: int = 10) -> Array:
    """α with ψ(α_k) − ψ(Σ_k α_k) = E log θ_k, by Minka's fixed point (2000)."""
    alpha = np.asarray(start, float)
    for _ in range(n_steps):
        alpha = np.clip(
            inverse_digamma(mean_log + digamma(alpha.sum())), SMALLEST_PRIOR, LARGEST_PRIOR
        )
    return alpha


def proportions_divergence(gamma: Float32, alpha: Array) -> Array:
    """KL(q(θ_d) ‖ p(θ_d)) of each document."""
    g = gamma.astype(np.float64)
    total = g.sum(axis=1, keepdims=True)
    expected = digamma(g) - digamma(total)
    divergence = ((g - alpha) * expected - gammaln(g)).sum(axis=1) + gammaln(total[:, 0])
    return divergence + gammaln(alpha).sum() - gammaln(alpha.sum())


def sum_log_proportions(gamma: Float32) -> Array:
    """Σ_d E log θ_d, [K]."""
    wide = gamma.astype(np.float64)
    return (digamma(wide) - digamma(wide.sum(axis=1, keepdims=True))).sum(axis=0)


def prior_draws(counts: Array, alpha: Array) -> Array:
    """How many tokens of each topic got it from the prior of their document, Σ_d, [K].

    The i-th token after the first has it from there with probability α_k / (α_k + i); the sum is
    α_k (ψ(n_dk + α_k) − ψ(α_k)). Most of the counts n_dk [D, K] are 0.
    """
    documents, topics = np.nonzero(counts)
    own = alpha[topics]
    draws = own * (digamma(counts[documents, topics] + own) - digamma(own))
    return np.bincount(topics, draws, minlength=alpha.size).astype(float)


def share_out(total: float, draws: Array, adapted: float) -> Array:
    """α of a given sum, of which a part adapts to the draws of topics; the rest is shared evenly.

    Repeated with new draws, and where all of it adapts, this is Minka's fixed point (2000)
    for the most likely α of that sum.
    """
    return total * ((1.0 - adapted) / draws.size + adapted * draws / draws.sum())


def fit_symmetric_concentration(
    mean_log: float, dimension: int, start: float, n_steps: int = 20
) -> float:
    """η with ψ(η) − ψ(V η) = mean of E log β, for a symmetric Dirichlet over V words."""
    eta = float(start)
    for _ in range(n_steps):
        gap = digamma(eta) - digamma(dimension * eta) - mean_log
        slope = polygamma(1, eta) - dimension * polygamma(1, dimension * eta)
        # In log η Newton's step cannot leave the positive numbers.
        eta = float(np.clip(eta * np.exp(-gap / (slope * eta)), SMALLEST_PRIOR, LARGEST_PRIOR))
    return eta


def documents_to_predict(mean_length: float) -> int:
    """How many documents of this many words tell what predicts better."""
    # Of short ones, which hold so few words that chance would decide, more than 300.
    return max(300, math.ceil(18_000 / max(mean_length, 1.0)))


def raised_prior(topics: Topics, prior: Array, documents: Any, n_threads: int = 1) -> Array:
    """α with its sum doubled as long as that predicts documents [D, V] better; else itself.

    It never counts for more than the words of a document. Where flatter proportions predict better
    right up to there, these topics tell documents nothing, and α stays as it is: topics of a start
    that are off, and short documents in which no word occurs twice.
    """
    words, halves = _words_and_halves(documents)
    if halves is None:
        return prior
    rows = (topics.rows(words) / topics.totals()).astype(np.float32)
    best, raised = _predicted(*halves, rows, prior, n_threads), prior
    while 2.0 * raised.sum() <= documents.data.sum() / documents.shape[0]:
        score = _predicted(*halves, rows, 2.0 * raised, n_threads)
        if score <= best + GAIN:
            return raised
        best, raised = score, 2.0 * raised
    return prior


def predicted_words(topics: Array, prior: Array, documents: Any, n_threads: int = 1) -> float:
    """Nats a word of one half of documents [D, V] by the other, with topics [V, K].

    0, whatever the topics, where documents are no counts or have no halves.
    """
    words, halves = _words_and_halves(documents)
    if halves is None:
        return 0.0
    return _predicted(*halves, topics[words].astype(np.float32), prior, n_threads)


def _words_and_halves(
    documents: Any,
) -> tuple[Any, tuple[sparse.csr_array, sparse.csr_array] | None]:
    """The words of documents, and halves of these over them; None where there are none."""
    words, columns = compact_words(documents.indices, documents.shape[1])
    if not can_be_sampled(documents.data):
        return words, None
    indptr = documents.indptr.astype(np.int64)
    arrays = (documents.data.astype(np.int64), columns, indptr)
    # Every other word of each document, and the rest.
    places = np.arange(indptr[-1]) - np.repeat(indptr[:-1], np.diff(indptr))
    shape = (documents.shape[0], words.size)
    halves = in_two(sparse.csr_array(arrays, shape=shape), places % 2 == 0)
    return words, halves if all(half.nnz for half in halves) else None


def in_two(documents: Any, first: np.ndarray) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The entries of a CSR matrix that are in the first part, and the others."""
    rows = np.repeat(np.arange(documents.shape[0]), np.diff(documents.indptr))
    parts = []
    for kept in (first, ~first):
        indptr = np.append(0, np.cumsum(np.bincount(rows[kept], minlength=documents.shape[0])))
        arrays = (documents.data[kept], documents.indices[kept], indptr)
        parts.append(sparse.csr_array(arrays, shape=documents.shape))
    return parts[0], parts[1]


def _predicted(
    first: sparse.csr_array, second: sparse.csr_array, rows: Float32, prior: Array, n_threads: int
) -> float:
    """Nats a word of the second halves, by proportions that the first halves tell."""
    prior = np.array(prior, np.float64)
    tokens = as_tokens(first.indptr, first.indices, first.data)
    words = Words(rows, rows @ prior, prior)
    proportions = run_chains(tokens, words, 0, burn_in=10, n_sweeps=20, n_threads=n_threads) + prior
    proportions /= proportions.sum(axis=1, keepdims=True)
    owners = np.repeat(np.arange(second.shape[0]), np.diff(second.indptr))
    total, proportions = 0.0, proportions.astype(np.float32)
    for start in range(0, second.nnz, ENTRIES_AT_A_TIME):
        part = slice(start, start + ENTRIES_AT_A_TIME)
        own, words_of = proportions[owners[part]], rows[second.indices[part]]
        with np.errstate(divide="ignore"):  # of a word that no topic has
            logs = np.log(np.einsum("nk,nk->n", own, words_of, dtype=np.float64))
        total += second.data[part] @ logs
    return float(total / second.data.sum())
