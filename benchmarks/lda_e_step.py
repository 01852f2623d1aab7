"""Speed of the E-step alone, with the same topics in both programs; a part of lda_speed.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA
from sklearn.decomposition._lda import _dirichlet_expectation_2d

from lda_common import reaches, take_turns
from lda_programs import BATCH_SIZE, Batches, as_batches, new_own, new_sklearn
from reproduction import lda_reference as reference
from tempering.models.lda.documents import fit_documents
from tempering.models.lda.e_step import e_step, temper_rows
from tempering.models.lda.layout import (
    SweepSettings,
    WordCounts,
    WordRows,
    as_batch,
    new_document_topics,
    new_room,
    new_solved_documents,
    sweep_settings,
)
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.statistics import fill_statistics, find_occurrences
from tempering.models.lda.topics import Topics

E_STEP_BATCHES = 4
E_STEP_TARGETS = {50: 12.0, 200: 18.0, 500: 30.0}

#: From loose to tight; the first one with statistics as exact as scikit-learn's is taken.
TOLERANCES = (1e-1, 5e-2, 3e-2, 2e-2, 1e-2, 7e-3, 5e-3, 3e-3, 2e-3, 1e-3, 7e-4, 5e-4, 3e-4, 1e-4)


class Scene(NamedTuple):
    """Topics half-way through a fit, in both programs, and documents to infer."""

    peer: SklearnLDA
    model: LatentDirichlet
    topics: Topics
    batches: Batches


def compare_e_steps(
    corpus: sparse.csr_matrix, k: int, steps: int, repeats: int
) -> list[dict[str, Any]]:
    """One batch at a time through the E-step of both programs, with the same topics.

    scikit-learn's E-step is given exp E log β, and computes it elsewhere; our local step prepares
    it for the words of its batch. So there are three parts of ours: `sweeps` is given its rows as
    scikit-learn is, `kernel` makes their exponentials, `local_step` their logarithms too; each is
    compared with scikit-learn's E-step alone, and with that and its rows.
    """
    scene = prepare_scene(corpus, k, steps)
    errors = statistics_errors(scene)
    seconds = take_turns(e_step_work(scene, list(errors["own"])), repeats)
    n_documents = sum(batch.shape[0] for batch in scene.batches)
    rows = []
    for (program, tolerance), own in seconds.items():
        is_peer = tolerance is None
        ratio = float(np.median(seconds["scikit-learn", None] / own))
        error = errors["peer"] if is_peer else errors["own"][tolerance]
        rows.append(
            {
                "K": k,
                "program": program,
                "tolerance": tolerance,
                "error": error,
                "by stopping": errors["peer, by stopping"] if is_peer else error,
                "docs/s": round(n_documents / float(np.median(own))),
                "x sklearn": ratio,
                "x with rows": float(np.median(seconds["scikit-learn, rows too", None] / own)),
                "target": None if is_peer else E_STEP_TARGETS.get(k),
                "verdict": None if is_peer else reaches(ratio, E_STEP_TARGETS.get(k)),
            }
        )
    return rows


def e_step_work(scene: Scene, tolerances: list[float]) -> dict[tuple, Callable[[], Any]]:
    """The E-step on all batches, by program and tolerance."""
    prepared = [own_rows(scene, batch) for batch in scene.batches]
    alpha, peer = scene.model.doc_topic_prior, scene.peer
    tempered = [tempered_rows(scene, rows) for rows in prepared]

    def run_peer() -> None:
        for batch in scene.batches:
            peer._e_step(batch, cal_sstats=True, random_init=True)

    def run_peer_with_rows() -> None:
        for batch in scene.batches:
            peer_rows(peer)
            peer._e_step(batch, cal_sstats=True, random_init=True)

    def run_local_step(tolerance: float) -> None:
        for batch in scene.batches:
            own_local_step(scene, batch, tolerance)

    def run_kernel(tolerance: float) -> None:
        for rows in prepared:
            e_step(*rows, alpha, 1.0, tolerance=tolerance)

    def run_sweeps(tolerance: float) -> None:
        for batch, rows in tempered:
            n_documents, n_topics = batch.indptr.size - 1, scene.model.n_topics
            settings, _ = sweep_settings(n_documents, n_topics, alpha, 1.0, tolerance, 5, 100)
            sweep(batch, rows, settings)

    work: dict[tuple, Callable[[], Any]] = {
        ("scikit-learn", None): run_peer,
        ("scikit-learn, rows too", None): run_peer_with_rows,
    }
    for tolerance in tolerances:
        work["local_step", tolerance] = partial(run_local_step, tolerance)
        work["kernel", tolerance] = partial(run_kernel, tolerance)
        work["sweeps", tolerance] = partial(run_sweeps, tolerance)
    return work


def statistics_errors(scene: Scene) -> dict[str, Any]:
    """Errors of the statistics, ours at the default tolerance and where it matches the peer's."""
    exact, peer = exact_statistics(scene), peer_statistics(scene)
    error = relative_error(peer, exact)
    own = {1e-3: relative_error(own_statistics(scene, 1e-3), exact)}
    for tolerance in TOLERANCES:
        own_error = relative_error(own_statistics(scene, tolerance), exact)
        if own_error <= error:
            own[tolerance] = own_error
            break
    stopping = relative_error(peer, converged_peer_statistics(scene))
    return {"peer": error, "peer, by stopping": stopping, "own": own}


def prepare_scene(corpus: sparse.csr_matrix, k: int, steps: int) -> Scene:
    """The topics of a fit after some steps, in both programs, and the batches that come next."""
    batches = as_batches(corpus, BATCH_SIZE, steps + E_STEP_BATCHES)
    fitted = new_own(k, corpus.shape[0], None)
    for batch in batches[:steps]:
        fitted.partial_fit(batch)
    peer = new_sklearn(k, corpus.shape[0]).partial_fit(batches[0])
    peer.components_ = fitted.components_.astype(np.float64)
    peer.exp_dirichlet_component_ = peer_rows(peer)
    model = LatentDirichlet(k, corpus.shape[1], 1.0 / k, 1.0 / k, n_threads=1)
    return Scene(peer, model, Topics(peer.components_.T, 1.0 / k), batches[steps:])


def peer_rows(peer: SklearnLDA) -> np.ndarray:
    """exp E log β as scikit-learn prepares it, at the end of each step and for all words."""
    return np.exp(_dirichlet_expectation_2d(peer.components_))


def own_rows(scene: Scene, batch: sparse.csr_matrix) -> tuple[Any, ...]:
    """A batch in the kernel's layout, its rows of E log β prepared."""
    documents = scene.model.documents(batch)
    rows = scene.model.expectations(scene.topics).log_rows(documents.words)
    return documents.indptr, documents.columns, documents.counts, rows


def tempered_rows(scene: Scene, prepared: tuple[Any, ...]) -> tuple[Any, Any]:
    """The same with exponentials of the rows, which is what scikit-learn's E-step is given."""
    batch, log_rows = as_batch(*prepared)
    model, n_documents = scene.model, batch.indptr.size - 1
    settings, shared = sweep_settings(
        n_documents, model.n_topics, model.doc_topic_prior, 1.0, 1e-3, 5, 100
    )
    return batch, temper_rows(log_rows, settings, shared, 1)


def sweep(batch: WordCounts, rows: WordRows, settings: SweepSettings) -> np.ndarray:
    """The E-step with everything checked and prepared, on one thread: the statistics."""
    n_documents, (n_words, n_topics) = batch.indptr.size - 1, rows.logs.shape
    fit = new_solved_documents(n_documents, n_topics, batch.columns.size)
    room = new_room(int(np.diff(batch.indptr).max()), settings.alpha, rows.shared)
    fit_documents(0, n_documents, batch, rows, settings, room, fit)
    statistics = np.empty((n_words, n_topics), np.float32)
    topics = new_document_topics(settings.alpha.size)
    topics.alpha[:] = settings.alpha
    occurrences = find_occurrences(batch, n_words)
    fill_statistics(0, n_words, occurrences, batch, rows, settings, topics, fit, statistics)
    return statistics


def own_local_step(scene: Scene, batch: sparse.csr_matrix, tolerance: float) -> Any:
    """All that a step of the fit does for a batch before the topics move."""
    scene.model.tolerance = tolerance
    return scene.model.local_step(batch, scene.model.expectations(scene.topics), 1.0)


def own_statistics(scene: Scene, tolerance: float) -> np.ndarray:
    """Statistics of the first batch, [K, V]."""
    statistics = own_local_step(scene, scene.batches[0], tolerance).statistics
    table = np.zeros((scene.model.n_topics, scene.model.n_words))
    table[:, statistics.words] = statistics.values.T
    return table


def peer_statistics(scene: Scene) -> np.ndarray:
    """The same from scikit-learn; from equal proportions, as ours."""
    return scene.peer._e_step(scene.batches[0], cal_sstats=True, random_init=False)[1]


def converged_peer_statistics(scene: Scene) -> np.ndarray:
    """Where scikit-learn's iteration ends when nothing stops it.

    Not the exact statistics: it adds 2e-16 to the normaliser of a word, which leaves out words that
    are new to the topics.
    """
    peer = scene.peer
    kept = peer.mean_change_tol, peer.max_doc_update_iter
    peer.mean_change_tol, peer.max_doc_update_iter = 1e-9, 2000
    try:
        return peer_statistics(scene)
    finally:
        peer.mean_change_tol, peer.max_doc_update_iter = kept


def exact_statistics(scene: Scene) -> np.ndarray:
    """Converged, in float64 and in logs, with all words."""
    documents = scene.model.documents(scene.batches[0])
    topics = scene.peer.components_.T
    solved = reference.e_step(
        documents.indptr,
        documents.columns,
        documents.counts,
        reference.log_word_rows(topics[documents.words], topics.sum(axis=0)),
        scene.model.doc_topic_prior,
        tolerance=1e-8,
        max_iterations=2000,
    )
    table = np.zeros((scene.model.n_topics, scene.model.n_words))
    table[:, documents.words] = solved.statistics.T
    return table


def relative_error(statistics: np.ndarray, exact: np.ndarray) -> float:
    """Part of the words that are with the wrong topic, twice."""
    return float(np.abs(statistics - exact).sum() / exact.sum())
