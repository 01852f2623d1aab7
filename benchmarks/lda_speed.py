"""Speed of latent Dirichlet allocation against scikit-learn and gensim, one thread each.

    python benchmarks/lda_speed.py --corpus arxiv.npz [--topics 50 200 500] [--threads]

All numbers but the scaling over threads are CPU time, and the programs take turns, so that what
else runs on the machine slows all of them alike. Medians over the turns.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lda_common import gensim_documents, is_installed, load_corpus, print_table, timed, write_json
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

from tempering import LatentDirichletAllocation
from tempering.models.lda import reference
from tempering.models.lda.kernels import e_step
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics

BATCH_SIZE = 256
PREPARATION_BATCHES = 30  # partial_fit steps after which the topics of the E-step are taken
E_STEP_BATCHES = 4
FIT_BATCHES = 20
WARM_UP_BATCHES = 10

#: Learning rate of all programs: scikit-learn's default offset, and the decay they share.
OFFSET, DECAY = 10.0, 0.7

E_STEP_TARGETS = {50: 12.0, 200: 18.0, 500: 30.0}
FIT_TARGETS = {50: 10.0, 200: 15.0, 500: 20.0}

#: From loose to tight; the first one with statistics as exact as scikit-learn's is taken.
TOLERANCES = (1e-1, 5e-2, 3e-2, 2e-2, 1e-2, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4, 3e-4, 1e-4)

Batches = Sequence[sparse.csr_matrix]


class Scene(NamedTuple):
    """Topics half-way through a fit, in both programs, and documents to infer."""

    peer: SklearnLDA
    model: LatentDirichlet
    topics: Topics
    batches: Batches


def main() -> None:
    """Run the sections that were asked for, print their tables."""
    options = _parse_options()
    corpus = load_corpus(options.corpus)
    print(f"{options.corpus.name}: {corpus.shape[0]} documents, {corpus.shape[1]} words")
    result: dict[str, Any] = {"corpus": options.corpus.name, "shape": corpus.shape}

    result["e_step"] = [
        row for k in options.topics for row in compare_e_steps(corpus, k, options.repeats)
    ]
    print_table("E-step on batches of 256, documents per CPU second", result["e_step"])
    print("error: of the statistics, relative, in L1; by stopping: from ending the iteration early")
    result["fit"] = [
        row for k in options.topics for row in compare_fits(corpus, k, options.repeats)
    ]
    print_table("Whole fit (partial_fit), documents per CPU second", result["fit"])
    if options.threads:
        result["threads"] = [compare_threads(corpus, k, options.repeats) for k in options.topics]
        print_table("Threads: wall clock, batches of 1024", result["threads"])
        result["start"] = compare_starts()
        print_table("Import and first fit of a small corpus, seconds", result["start"])
        result["memory"] = [check_memory(corpus)]
        print_table("Peak memory, 100,000 documents, 100 topics", result["memory"])
    write_json(options.json, result)


# The E-step.


def compare_e_steps(corpus: sparse.csr_matrix, k: int, repeats: int) -> list[dict[str, Any]]:
    """One batch at a time through the E-step of both programs, with the same topics."""
    scene = prepare_scene(corpus, k)
    exact = exact_statistics(scene)
    peer_error = relative_error(peer_statistics(scene), exact)
    stopping_error = relative_error(peer_statistics(scene), converged_peer_statistics(scene))
    matched, matched_error = matched_tolerance(scene, exact, peer_error)
    default_error = relative_error(own_statistics(scene, 1e-3), exact)

    def local_steps(tolerance: float) -> Callable[[], Any]:
        return lambda: [own_local_step(scene, batch, tolerance) for batch in scene.batches]

    prepared = [own_rows(scene, batch) for batch in scene.batches]

    def kernels(tolerance: float) -> Callable[[], Any]:
        alpha = scene.model.doc_topic_prior
        return lambda: [e_step(*rows, alpha, 1.0, tolerance=tolerance) for rows in prepared]

    def peer() -> Any:
        return [scene.peer._e_step(b, cal_sstats=True, random_init=True) for b in scene.batches]

    work = {
        ("scikit-learn", None, peer_error): peer,
        ("local_step", 1e-3, default_error): local_steps(1e-3),
        ("kernel alone", 1e-3, default_error): kernels(1e-3),
        ("local_step", matched, matched_error): local_steps(matched),
        ("kernel alone", matched, matched_error): kernels(matched),
    }
    seconds = take_turns(work, repeats)
    n_documents = sum(batch.shape[0] for batch in scene.batches)
    baseline = seconds["scikit-learn", None, peer_error]
    rows = []
    for key, own in seconds.items():
        program, tolerance, error = key
        is_peer = program == "scikit-learn"
        ratio = float(np.median(baseline / own))
        rows.append(
            {
                "K": k,
                "program": program,
                "tolerance": tolerance,
                "error": error,
                "by stopping": stopping_error if is_peer else error,
                "docs/s": round(n_documents / float(np.median(own))),
                "x sklearn": ratio,
                "target": None if is_peer else E_STEP_TARGETS.get(k),
                "verdict": _verdict(ratio, E_STEP_TARGETS.get(k), not is_peer),
            }
        )
    return rows


def prepare_scene(corpus: sparse.csr_matrix, k: int) -> Scene:
    """Topics of scikit-learn after some steps, and the batches that come next."""
    peer = new_sklearn(k, corpus.shape[0])
    batches = as_batches(corpus, BATCH_SIZE, PREPARATION_BATCHES + E_STEP_BATCHES)
    for batch in batches[:PREPARATION_BATCHES]:
        peer.partial_fit(batch)
    model = LatentDirichlet(k, corpus.shape[1], 1.0 / k, 1.0 / k, n_threads=1)
    topics = Topics(peer.components_.T, 1.0 / k)
    return Scene(peer, model, topics, batches[PREPARATION_BATCHES:])


def own_rows(scene: Scene, batch: sparse.csr_matrix) -> tuple[Any, ...]:
    """A batch in the kernel's layout, its rows of E log β prepared."""
    documents = scene.model.documents(batch)
    rows = scene.model.expectations(scene.topics).log_rows(documents.words)
    return documents.indptr, documents.columns, documents.counts, rows


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


def matched_tolerance(scene: Scene, exact: np.ndarray, error: float) -> tuple[float, float]:
    """The loosest tolerance at which our statistics are at least as exact, and their error."""
    own_error = np.nan
    for tolerance in TOLERANCES:
        own_error = relative_error(own_statistics(scene, tolerance), exact)
        if own_error <= error:
            break
    return tolerance, own_error


# The whole fit.


def compare_fits(corpus: sparse.csr_matrix, k: int, repeats: int) -> list[dict[str, Any]]:
    """A stream of batches through each program, in turns of FIT_BATCHES."""
    n_batches = WARM_UP_BATCHES + repeats * FIT_BATCHES
    batches = as_batches(corpus, BATCH_SIZE, n_batches)
    programs = {
        "scikit-learn": new_sklearn(k, corpus.shape[0]).partial_fit,
        "tempering, T = 1": new_own(k, corpus.shape[0], None).partial_fit,
        "tempering, annealing": new_own(k, corpus.shape[0], "annealing").partial_fit,
    }
    streams: dict[str, Sequence[Any]] = dict.fromkeys(programs, batches)
    if is_installed("gensim"):
        programs["gensim"] = new_gensim(k, corpus.shape[1])
        streams["gensim"] = [gensim_documents(batch) for batch in batches]
    places = dict.fromkeys(programs, 0)

    def advance(name: str, n: int) -> None:
        start = places[name]
        places[name] = start + n
        for batch in streams[name][start : start + n]:
            programs[name](batch)

    for name in programs:
        advance(name, WARM_UP_BATCHES)
    work = {name: (lambda name=name: advance(name, FIT_BATCHES)) for name in programs}
    seconds = take_turns(work, repeats, warm_up=False)
    rows = []
    for name, own in seconds.items():
        ratio = float(np.median(seconds["scikit-learn"] / own))
        rows.append(
            {
                "K": k,
                "program": name,
                "docs/s": round(FIT_BATCHES * BATCH_SIZE / float(np.median(own))),
                "x sklearn": ratio,
                "x gensim": float(np.median(seconds["gensim"] / own))
                if "gensim" in seconds
                else None,
                "target": FIT_TARGETS.get(k) if name == "tempering, T = 1" else None,
                "verdict": _verdict(ratio, FIT_TARGETS.get(k), name == "tempering, T = 1"),
            }
        )
    return rows


def new_sklearn(k: int, n_documents: int) -> SklearnLDA:
    """scikit-learn with its defaults."""
    return SklearnLDA(
        k, learning_offset=OFFSET, learning_decay=DECAY, total_samples=n_documents, random_state=0
    )


def new_own(k: int, n_documents: int, tempering: str | None) -> LatentDirichletAllocation:
    """This package with its defaults, and the same learning rate."""
    return LatentDirichletAllocation(
        k,
        tempering=tempering,
        learning_offset=OFFSET,
        learning_decay=DECAY,
        total_samples=n_documents,
        batch_size=BATCH_SIZE,
        n_jobs=1,
        random_state=0,
    )


def new_gensim(k: int, n_words: int) -> Callable[[Any], None]:
    """The update of gensim's model, with the same stopping rule as scikit-learn's."""
    from gensim.models import LdaModel
    from gensim.utils import FakeDict

    model = LdaModel(
        id2word=FakeDict(n_words),
        num_topics=k,
        chunksize=BATCH_SIZE,
        passes=1,
        iterations=100,
        gamma_threshold=1e-3,
        offset=OFFSET,
        decay=DECAY,
        eval_every=None,
        random_state=0,
    )
    return lambda documents: model.update(documents, chunksize=BATCH_SIZE)


# Threads, start, memory.


def compare_threads(corpus: sparse.csr_matrix, k: int, repeats: int) -> dict[str, Any]:
    """Seconds of a step with one thread and with two; the best turn, as other programs run too."""
    batches = as_batches(corpus, 1024, 10)
    best = {}
    estimators = {n: new_own(k, corpus.shape[0], None).set_params(n_jobs=n) for n in (1, 2)}
    for estimator in estimators.values():
        estimator.set_params(batch_size=1024).partial_fit(batches[0])
    for turn in range(repeats):
        part = batches[1 + turn % 3 * 3 : 4 + turn % 3 * 3]
        for n_threads, estimator in estimators.items():
            start = time.perf_counter()
            for batch in part:
                estimator.partial_fit(batch)
            seconds = time.perf_counter() - start
            best[n_threads] = min(seconds, best.get(n_threads, np.inf))
    return {
        "K": k,
        "docs/s, 1 thread": round(3 * 1024 / best[1]),
        "docs/s, 2 threads": round(3 * 1024 / best[2]),
        "speed-up": best[1] / best[2],
    }


def compare_starts() -> list[dict[str, Any]]:
    """A fresh process without compiled kernels, then one with them."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = {"NUMBA_CACHE_DIR": folder}
        return [{"start": name, **run_child(["start"], compiled)} for name in ("cold", "warm")]


def check_memory(corpus: sparse.csr_matrix) -> dict[str, Any]:
    """Peak memory of a process that fits, against the sum of what it has to hold."""
    k, n_documents = 100, min(100_000, corpus.shape[0])
    part = corpus[:n_documents]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.npz"
        sparse.save_npz(path, part, compressed=False)
        measured = run_child(["memory", str(path)])
    corpus_bytes = part.data.nbytes + part.indices.nbytes + part.indptr.nbytes
    allowed = (corpus_bytes + 4 * k * corpus.shape[1] * 4) / 1e6 + 300
    return {
        "documents": n_documents,
        **measured,
        "corpus MB": corpus_bytes / 1e6,
        "allowed MB": allowed,
        "verdict": measured["peak MB"] <= allowed,
    }


def run_child(arguments: list[str], environment: Mapping[str, str] | None = None) -> dict:
    """What lda_child.py measures in a fresh process."""
    finished = subprocess.run(
        [sys.executable, Path(__file__).with_name("lda_child.py"), *arguments],
        env={**os.environ, **(environment or {}), "BENCHMARK_BIRTH": str(time.time())},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(finished.stdout.splitlines()[-1])


# What the sections share.


def take_turns(
    work: Mapping[Any, Callable[[], Any]], repeats: int, warm_up: bool = True
) -> dict[Any, np.ndarray]:
    """CPU seconds of each piece of work in each round; a round runs them one after the other."""
    if warm_up:
        for run in work.values():
            run()
    seconds: dict[Any, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, run in work.items():
            seconds[name].append(timed(run).seconds)
    return {name: np.array(values) for name, values in seconds.items()}


def as_batches(corpus: sparse.csr_matrix, size: int, n: int) -> Batches:
    """The first n batches; float64, which scikit-learn would convert them to inside."""
    if n * size > corpus.shape[0]:
        raise SystemExit(f"the corpus must have {n * size} documents; it has {corpus.shape[0]}.")
    return [corpus[i * size : (i + 1) * size].astype(np.float64) for i in range(n)]


def _verdict(ratio: float, target: float | None, applies: bool) -> bool | None:
    return ratio >= target if applies and target is not None else None


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--corpus", type=Path, required=True, help="counts, as saved by scipy.sparse.save_npz"
    )
    parser.add_argument("--topics", type=int, nargs="+", default=[50, 200, 500])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", action="store_true", help="also threads, start and memory")
    parser.add_argument("--json", type=Path, help="write the results here too")
    return parser.parse_args()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
