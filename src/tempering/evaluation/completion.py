"""Document completion: how well topics predict one half of a document from the other.

θ̄ is inferred from the observed half; the score is the mean of log p̄_v = log Σ_k θ̄_k β̄_kv over
held-out words, in nats: a predictive probability, not a bound. θ̄ comes from collapsed Gibbs
sampling with the topics held fixed: for a token with word v and the counts n_k of the others,

    p(z_i = k | the others) ∝ (n_k + α_k) β_kv,        E[θ_k | z] = (n_k + α_k) / (N + Σ_j α_j).

Mean-field θ is overconfident and so rewards blurred topics; this is the fair judge.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tempering.evaluation.checks import (
    as_alpha,
    as_counts,
    as_probabilities,
    check_whole_counts,
    word_rows,
)
from tempering.models.arguments import check_whole
from tempering.models.compilation import ENTRY, njit
from tempering.models.lda.e_step import e_step
from tempering.models.lda.priors import in_two
from tempering.models.lda.sampling import Words, as_tokens, run_chains
from tempering.models.threads import number_of_threads, one_blas_thread

Inference = Literal["gibbs", "vi"] | Callable[[sparse.csr_array], ArrayLike]

# A topic that cannot make a word has a log probability of −∞, which the E-step does not take.
SMALLEST_PROBABILITY = 1e-30
#: Words that are visited one by one; each takes some bytes of memory.
MOST_TOKENS = 1e9


class Split(NamedTuple):
    """Documents in two parts of one shape: what θ is inferred from, and what is to be predicted."""

    observed: sparse.csr_array
    held_out: sparse.csr_array


def split_documents(X: Any, seed: int | np.random.Generator = 0) -> Split:
    """Split each document into halves by word types.

    All occurrences of a word go to the same half, so that no held-out word has been seen. Of an odd
    number of types the larger part is observed; a document with one type has nothing held out.

    Parameters
    ----------
    X : sparse matrix or array [D, V]
        Counts.
    seed : int or Generator
        The same seed gives the same split.

    Examples
    --------
    >>> from tempering.evaluation import split_documents
    >>> split = split_documents([[3, 2, 1, 0]], seed=0)
    >>> (split.observed + split.held_out).toarray()
    array([[3, 2, 1, 0]])
    >>> split.observed.nnz, split.held_out.nnz
    (2, 1)
    """
    counts: Any = as_counts(X, "X")
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"seed must be a whole number, 0 or more, or a Generator; got {seed!r:.100}."
        ) from error
    n_types = np.diff(counts.indptr)
    rows = np.repeat(np.arange(counts.shape[0]), n_types)
    # Rows are the first key, so a row's entries stay in its place, in random order.
    order = np.lexsort((rng.random(rows.size), rows))
    rank = np.arange(rows.size) - counts.indptr[rows]
    is_observed = np.empty(rows.size, dtype=bool)
    is_observed[order] = rank < (n_types[rows] + 1) // 2
    return Split(*in_two(counts, is_observed))


def completion_score(
    observed: Any,
    held_out: Any,
    topics: ArrayLike,
    alpha: ArrayLike = 0.1,
    inference: Inference = "gibbs",
    *,
    seed: int = 0,
    burn_in: int = 30,
    n_sweeps: int = 50,
    n_threads: int | None = None,
) -> float:
    """Mean log probability of the held-out words, in nats, with θ from the observed ones.

    It is −∞ if no topic can produce one of them.

    Parameters
    ----------
    observed, held_out : sparse matrices or arrays [D, V]
        The parts of each document; see :func:`split_documents`.
    topics : array [K, V]
        β̄, rows that sum to 1.
    alpha : float or array [K]
        α, the Dirichlet prior of the topic proportions. Compare scores only at the same α.
    inference : {"gibbs", "vi"} or callable
        "gibbs" takes the exact posterior mean of θ up to Monte Carlo error; "vi" takes mean-field θ
        at T = 1, which is overconfident and favours blurred topics. A callable is given the
        observed documents and returns θ [D, K].
    seed, burn_in, n_sweeps, n_threads
        As in :func:`gibbs_proportions`.

    Examples
    --------
    Where all topics are alike, the score is that of the words' frequencies:

    >>> import numpy as np
    >>> from tempering.evaluation import completion_score
    >>> topics = np.full((3, 4), 0.25)
    >>> score = completion_score([[1, 1, 0, 0]], [[0, 0, 1, 1]], topics)
    >>> round(score, 4), round(float(np.log(0.25)), 4)
    (-1.3863, -1.3863)
    """
    topics = as_probabilities(topics, "topics")
    observed = as_counts(observed, "observed", topics.shape[1])
    held_out = as_counts(held_out, "held_out", topics.shape[1])
    if observed.shape != held_out.shape:
        raise ValueError(
            f"observed and held_out must be parts of the same documents; got "
            f"{observed.shape[0]} and {held_out.shape[0]} rows."
        )
    if held_out.nnz == 0:
        raise ValueError(
            "held_out has no words to predict: split documents of two word types or more."
        )
    if callable(inference):
        theta = inference(observed)
    elif inference == "gibbs":
        chain = {"seed": seed, "burn_in": burn_in, "n_sweeps": n_sweeps}
        theta = gibbs_proportions(observed, topics, alpha, **chain, n_threads=n_threads)
    elif inference == "vi":
        theta = mean_field_proportions(observed, topics, alpha, n_threads=n_threads)
    else:
        raise ValueError(f'inference must be "gibbs", "vi" or a callable; got {inference!r}.')
    theta = as_probabilities(theta, "theta")
    if theta.shape != (held_out.shape[0], topics.shape[0]):
        raise ValueError(
            f"theta must have shape {(held_out.shape[0], topics.shape[0])}, a row for each "
            f"document of held_out and a column for each of the topics; got {theta.shape}."
        )
    theta = np.ascontiguousarray(theta / theta.sum(axis=1, keepdims=True), dtype=np.float64)
    probabilities = entry_probabilities(held_out, topics, theta)
    counts = held_out.data.astype(np.float64)
    with np.errstate(divide="ignore"), one_blas_thread():
        return float(counts @ np.log(probabilities) / counts.sum())


def mean_field_proportions(
    observed: Any, topics: ArrayLike, alpha: ArrayLike = 0.1, *, n_threads: int | None = None
) -> NDArray[np.float64]:
    """Mean of q(θ) for each document, by mean-field inference at T = 1 with the topics fixed.

    A word that no topic can make is left out.
    """
    topics = as_probabilities(topics, "topics")
    observed = as_counts(observed, "observed", topics.shape[1])
    columns, rows = word_rows(topics, observed, np.float64)
    possible = rows.max(axis=1, initial=0.0) > SMALLEST_PROBABILITY
    gamma = e_step(
        observed.indptr,
        columns,
        np.where(possible[columns], observed.data, 0),
        np.log(np.maximum(rows, SMALLEST_PROBABILITY)),
        as_alpha(alpha, topics.shape[0]),
        tolerance=1e-4,
        max_iterations=1000,
        n_threads=number_of_threads(n_threads),
        return_statistics=False,
    ).gamma.astype(np.float64)
    return gamma / gamma.sum(axis=1, keepdims=True)


def entry_probabilities(
    documents: sparse.csr_array, topics: NDArray[Any], theta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Σ_k θ_dk β_kv of each entry of documents."""
    columns, rows = word_rows(topics, documents, np.float64)
    probabilities = np.empty(columns.size)
    fill_probabilities(documents.indptr.astype(np.int64), columns, rows, theta, probabilities)
    return probabilities


@njit(**ENTRY)
def fill_probabilities(indptr, columns, rows, theta, probabilities):
    """Set :func:`entry_probabilities`."""
    for d in range(theta.shape[0]):
        for entry in range(indptr[d], indptr[d + 1]):
            v = columns[entry]
            total = 0.0
            for k in range(theta.shape[1]):
                total += theta[d, k] * rows[v, k]
            probabilities[entry] = total


def gibbs_proportions(
    observed: Any,
    topics: ArrayLike,
    alpha: ArrayLike = 0.1,
    *,
    seed: int = 0,
    burn_in: int = 30,
    n_sweeps: int = 50,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Posterior mean of each document's topic proportions, by collapsed Gibbs sampling.

    Parameters
    ----------
    observed : sparse matrix or array [D, V]
        Whole counts. A word that no topic can make says nothing about θ, and is left out.
    topics, alpha
        As in :func:`completion_score`.
    seed : int
        Document d draws from a stream of its own, made of the seed and d.
    burn_in, n_sweeps : int
        Sweeps before averaging, and sweeps to average over.
    n_threads : int, optional
        Threads; one a core by default. The result is the same for any number.

    Examples
    --------
    >>> from tempering.evaluation import gibbs_proportions
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    >>> gibbs_proportions([[3, 2, 0, 0], [0, 0, 4, 1]], topics).round(2)
    array([[0.98, 0.02],
           [0.02, 0.98]])
    """
    topics = as_probabilities(topics, "topics")
    n_topics = topics.shape[0]
    observed = as_counts(observed, "observed", topics.shape[1])
    remedy = ' for Gibbs sampling; for weights such as tf-idf take inference="vi".'
    check_whole_counts(observed, "observed", remedy)
    n_tokens = observed.sum(dtype=np.float64)
    if n_tokens > MOST_TOKENS:
        raise ValueError(
            f"observed holds {n_tokens:.3g} words, and Gibbs sampling visits them one by one: take "
            f'documents of {MOST_TOKENS:g} words in all at most, or inference="vi".'
        )
    alpha = as_alpha(alpha, n_topics)
    n_threads = number_of_threads(n_threads)
    check_whole(0, seed=seed, burn_in=burn_in)
    check_whole(n_sweeps=n_sweeps)
    columns, rows = word_rows(topics, observed, np.float32)
    documents = as_tokens(observed.indptr, columns, observed.data)
    with one_blas_thread():
        words = Words(rows, rows @ alpha, alpha)
    sweeps = (int(burn_in), int(n_sweeps))
    proportions = run_chains(documents, words, int(seed) % 2**64, *sweeps, n_threads) + alpha
    return proportions / proportions.sum(axis=1, keepdims=True)
