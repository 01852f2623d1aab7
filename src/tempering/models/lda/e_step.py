"""The E-step of tempered latent Dirichlet allocation on the CPU.

For document d with inverse temperature s_d, at the fixed point,

    phi_dvk  proportional to  exp{ s_d (E log theta_dk + E log beta_kv) }
    gamma_dk = alpha_k + s_d sum_v n_dv phi_dvk
    statistics_kv = sum_d s_d n_dv phi_dvk

phi factorises over words and topics and is never stored. Work is in `documents` (the fixed point)
and `statistics` (the sums, word by word), in float32; no result depends on the number of threads.
"""

import numpy as np
from numpy.typing import ArrayLike

from tempering.models.lda.documents import fit_documents
from tempering.models.lda.layout import (
    Float32,
    Float64,
    LocalResult,
    SweepSettings,
    WordRows,
    as_batch,
    check_finite,
    new_document_topics,
    new_room,
    new_solved_documents,
    spread_inverse_temperature,
    sweep_settings,
)
from tempering.models.lda.statistics import (
    fill_energies,
    fill_log_predictive,
    fill_statistics,
    find_occurrences,
)
from tempering.models.lda.sweeps import fill_maxima, fill_rows
from tempering.models.threads import WORDS_PER_BLOCK, in_blocks


def e_step(
    indptr: ArrayLike,
    columns: ArrayLike,
    counts: ArrayLike,
    log_rows: ArrayLike,
    alpha: ArrayLike,
    inverse_temperature: float | ArrayLike = 1.0,
    *,
    tolerance: float = 1e-3,
    min_iterations: int = 5,
    max_iterations: int = 100,
    n_threads: int = 1,
    gamma: ArrayLike | None = None,
    return_statistics: bool = True,
) -> LocalResult:
    """Fit the local variables of a batch of documents, a compressed matrix over the batch's words.

    ``log_rows`` [U, K] are E log beta of these words, or another log weight of the topics,
    untempered; an entry may be minus infinity, a row may not. An inverse temperature for each
    document costs about half as much work again. A document is done when a sweep moves less than
    the part ``tolerance`` of its words; when hot, 1e-2 may stop it too soon. By default ``gamma``
    starts at alpha + s_d N_d / K.
    """
    batch, log_rows = as_batch(indptr, columns, counts, log_rows)
    n_documents = batch.indptr.size - 1
    n_topics = log_rows.shape[1]
    settings, shared = sweep_settings(
        n_documents, n_topics, alpha, inverse_temperature, tolerance, min_iterations, max_iterations
    )
    word_rows = temper_rows(log_rows, settings, shared, n_threads)
    fit = new_solved_documents(n_documents, n_topics, batch.columns.size)
    if gamma is not None:
        fit.gamma[:] = gamma
        settings = settings._replace(equal_start=False)
    elif not settings.equal_start:
        running = np.append(0.0, np.cumsum(batch.counts, dtype=np.float64))
        lengths = settings.inverse_temperatures * np.diff(running[batch.indptr])
        fit.gamma[:] = settings.alpha[:n_topics] + lengths[:, None] / n_topics

    def fit_block(start: int, stop: int) -> None:
        longest = int(np.diff(batch.indptr[start : stop + 1]).max())
        room = new_room(longest, settings.alpha, word_rows.shared)
        fit_documents(start, stop, batch, word_rows, settings, room, fit)

    in_blocks(fit_block, n_documents, n_threads)
    if not return_statistics:
        return LocalResult(fit.gamma, None, fit.sweeps)
    statistics = np.empty(log_rows.shape, np.float32)
    occurrences = find_occurrences(batch, log_rows.shape[0])

    def fill_block(start: int, stop: int) -> None:
        room = new_document_topics(settings.alpha.size)
        room.alpha[:] = settings.alpha
        fill_statistics(start, stop, occurrences, batch, word_rows, settings, room, fit, statistics)

    in_blocks(fill_block, log_rows.shape[0], n_threads, WORDS_PER_BLOCK)
    return LocalResult(fit.gamma, statistics, fit.sweeps)


def document_energy(
    indptr: ArrayLike,
    columns: ArrayLike,
    counts: ArrayLike,
    log_rows: ArrayLike,
    gamma: ArrayLike,
    inverse_temperature: float | ArrayLike = 1.0,
    *,
    n_threads: int = 1,
) -> tuple[Float64, Float64]:
    """Energy and entropy of each document under the phi that belongs to a given gamma, [D].

    They are Σ_v n_dv Σ_k φ_dvk (E log θ_dk + E log β_kv) and −Σ_v n_dv Σ_k φ_dvk log φ_dvk.
    """
    batch, log_rows = as_batch(indptr, columns, counts, log_rows)
    n_documents = batch.indptr.size - 1
    inverse_temperatures, _ = spread_inverse_temperature(inverse_temperature, n_documents)
    gamma = np.ascontiguousarray(gamma, np.float32)
    maxima = _row_maxima(log_rows, n_threads)
    energy = np.zeros(n_documents)
    entropy = np.zeros(n_documents)

    def fill_block(start: int, stop: int) -> None:
        room, kept = new_document_topics(log_rows.shape[1]), np.empty(log_rows.shape[1], np.int32)
        fill_energies(
            start, stop, batch, log_rows, maxima, gamma, inverse_temperatures, room, kept, energy,
            entropy,
        )  # fmt: skip

    in_blocks(fill_block, n_documents, n_threads)
    return energy, entropy


def log_predictive(
    indptr: ArrayLike,
    columns: ArrayLike,
    counts: ArrayLike,
    topic_rows: ArrayLike,
    proportions: ArrayLike,
    *,
    n_threads: int = 1,
) -> Float64:
    """Log probability of each document's words, sum_v n_dv log sum_k theta_dk beta_kv, [D]."""
    batch, topic_rows = as_batch(indptr, columns, counts, topic_rows)
    n_documents = batch.indptr.size - 1
    proportions = np.ascontiguousarray(proportions, dtype=np.float32)
    scores = np.zeros(n_documents)
    arguments = (batch, topic_rows, proportions, scores)
    in_blocks(fill_log_predictive, n_documents, n_threads, arguments=arguments)
    return scores


def temper_rows(
    log_rows: Float32, settings: SweepSettings, shared: bool, n_threads: int
) -> WordRows:
    """The rows with their maxima and, where all documents share a temperature, exponentiated."""
    if not shared or settings.inverse_temperatures.size == 0:
        none = np.empty((0, settings.alpha.size), np.float32)
        return WordRows(log_rows, _row_maxima(log_rows, n_threads), none, none[:, 0].copy(), shared)
    n_words = log_rows.shape[0]
    tempered = np.empty((n_words, settings.alpha.size), np.float32)
    maxima, sums = np.empty((2, n_words), np.float32)

    arguments = (log_rows, settings.inverse_temperatures[0], maxima, tempered, sums)
    in_blocks(fill_rows, n_words, n_threads, WORDS_PER_BLOCK, arguments)
    check_finite(maxima)
    return WordRows(log_rows, maxima, tempered, sums, shared)


def _row_maxima(log_rows: Float32, n_threads: int) -> Float32:
    """The largest entry of each row."""
    maxima = np.empty(log_rows.shape[0], np.float32)

    in_blocks(fill_maxima, maxima.size, n_threads, WORDS_PER_BLOCK, (log_rows, maxima))
    check_finite(maxima)
    return maxima
