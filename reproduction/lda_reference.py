"""The LDA E-step in plain NumPy, float64: slow and clear, the yardstick of the kernels' tests.

The same equations as in :mod:`tempering.models.lda.e_step`, document by document, with phi written
out in log space.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Float64 = NDArray[np.float64]


class ReferenceResult(NamedTuple):
    """The fields of `LocalResult`, with the energy and entropy of each document's phi."""

    gamma: Float64
    statistics: Float64
    iterations: NDArray[np.int64]
    log_normalizer: Float64
    energy: Float64
    entropy: Float64


def log_proportions(gamma: Float64) -> Float64:
    """E log theta."""
    return special.digamma(gamma) - special.digamma(gamma.sum())


def responsibilities(scores: Float64) -> tuple[Float64, Float64]:
    """phi, proportional to exp(scores) in each row, and the log normalizer of each row."""
    top = scores.max(axis=1)
    phi = np.exp(scores - top[:, None])
    totals = phi.sum(axis=1)
    phi /= totals[:, None]
    return phi, top + np.log(totals)


def e_step(
    indptr: ArrayLike,
    columns: ArrayLike,
    counts: ArrayLike,
    log_rows: ArrayLike,
    alpha: ArrayLike,
    inverse_temperature: float | ArrayLike = 1.0,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 20_000,
    gamma: ArrayLike | None = None,
) -> ReferenceResult:
    """Fit the local variables of a batch to convergence; parameters as in the kernels."""
    indptr = np.asarray(indptr)
    columns = np.asarray(columns)
    counts = np.asarray(counts, dtype=np.float64)
    log_rows = np.asarray(log_rows, dtype=np.float64)
    n_documents, n_topics = indptr.size - 1, log_rows.shape[1]
    alpha = np.broadcast_to(np.asarray(alpha, dtype=np.float64), n_topics)
    inverse_temperatures = np.broadcast_to(
        np.asarray(inverse_temperature, dtype=np.float64), n_documents
    )
    all_gamma = np.empty((n_documents, n_topics))
    statistics = np.zeros_like(log_rows)
    iterations = np.zeros(n_documents, dtype=np.int64)
    log_normalizer, energy, entropy = np.zeros((3, n_documents))

    for d, s in enumerate(inverse_temperatures):
        words = slice(indptr[d], indptr[d + 1])
        n, rows = counts[words], log_rows[columns[words]]
        if n.sum() == 0:
            all_gamma[d] = alpha
            continue
        if gamma is None:
            own_gamma = alpha + s * n.sum() / n_topics
        else:
            own_gamma = np.asarray(gamma, dtype=np.float64)[d]

        change = np.inf
        while change > tolerance * s * n.sum() and iterations[d] < max_iterations:
            phi, _ = responsibilities(s * (log_proportions(own_gamma) + rows))
            new_gamma = alpha + s * (n @ phi)
            change = np.abs(new_gamma - own_gamma).sum()
            own_gamma = new_gamma
            iterations[d] += 1

        log_joint = log_proportions(own_gamma) + rows
        phi, log_normalizers = responsibilities(s * log_joint)
        all_gamma[d] = own_gamma
        np.add.at(statistics, columns[words], s * n[:, None] * phi)
        log_normalizer[d] = n @ log_normalizers
        energy[d] = n @ (phi * np.where(phi > 0, log_joint, 0)).sum(axis=1)
        entropy[d] = -n @ special.xlogy(phi, phi).sum(axis=1)
    return ReferenceResult(all_gamma, statistics, iterations, log_normalizer, energy, entropy)


def log_word_rows(
    posterior_rows: ArrayLike, topic_totals: ArrayLike, form: str = "variational"
) -> Float64:
    """Log weights of the topics for each word: E log beta, or log of the mean."""
    function = np.log if form == "mean" else special.digamma
    return function(np.asarray(posterior_rows, float)) - function(np.asarray(topic_totals, float))


def log_predictive(
    indptr: ArrayLike,
    columns: ArrayLike,
    counts: ArrayLike,
    topic_rows: ArrayLike,
    proportions: ArrayLike,
) -> Float64:
    """Log probability of each document's words: in float64."""
    indptr, columns = np.asarray(indptr), np.asarray(columns)
    counts, topic_rows = np.asarray(counts, float), np.asarray(topic_rows, float)
    proportions = np.asarray(proportions, float)
    scores = np.zeros(indptr.size - 1)
    for d in range(scores.size):
        words = slice(indptr[d], indptr[d + 1])
        scores[d] = counts[words] @ np.log(topic_rows[columns[words]] @ proportions[d])
    return scores
