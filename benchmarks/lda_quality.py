"""Quality of topics at equal document visits: temperature policies and other programs.

    python benchmarks/lda_quality.py --corpus arxiv.npz [--documents 20000] [--topics 50] [--peers]

Every model is reduced to its topics, and these are scored by the same functions: held-out nats a
word by document completion, with mean-field proportions at α = 1/K and with their exact posterior
mean (Gibbs) at α = 0.1, and NPMI of the ten top words. CPU seconds, one thread.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lda_common import gensim_documents, is_installed, load_corpus, print_table, timed, write_json
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

from tempering import (
    Annealing,
    LatentDirichletAllocation,
    LocalTempering,
    VariationalTempering,
    schedules,
)
from tempering.evaluation import Split, completion_score, npmi, split_documents

#: The mean of the paper's 100 temperatures from 1 to 10, where its AVI starts.
PAPER_START = float(np.geomspace(1.0, 10.0, 100).mean())

BATCH_SIZE = 100
OFFSET, DECAY = 1024.0, 0.7
TEST_DOCUMENTS = 2000

#: A fit, ready to run: it returns topics [K, V], not yet normalised.
Fit = Callable[[], np.ndarray]

#: Builds the fit of a seed. Bringing the documents into a program's own form is not timed.
Prepare = Callable[["Task", int], Fit]


class Task(NamedTuple):
    """What all models are given."""

    train: sparse.csr_matrix
    test: Split
    n_topics: int
    passes: int


def main() -> None:
    """Fit each model with each seed; print each model's row at once, as runs are long."""
    options = _parse_options()
    task = prepare_task(options)
    print(
        f"{options.corpus.name}: {task.train.shape[0]} documents to learn from, "
        f"{task.test.observed.shape[0]} to test, {task.train.shape[1]} words, "
        f"{task.n_topics} topics, {task.passes} passes, {options.seeds} seeds"
    )
    rows, runs = [], []
    warm_up()
    for name, prepare in models(options.peers):
        if options.only and not any(part in name for part in options.only):
            continue
        scores = [measure(task, prepare, seed) for seed in range(options.seeds)]
        runs += [{"model": name, "seed": seed, **own} for seed, own in enumerate(scores)]
        rows.append({"model": name, **summary(scores)})
        print("  ".join(f"{value}" for value in rows[-1].values()), flush=True)
    print_table("Mean and standard deviation over seeds; higher is better", rows)
    write_json(options.json, {"options": vars(options) | {"json": None}, "runs": runs})


def prepare_task(options: argparse.Namespace) -> Task:
    """The first documents to learn from, those that follow to test."""
    corpus = load_corpus(options.corpus)
    # 16-bit counts are what the files hold; all programs get the type that they would convert to.
    corpus = corpus[: options.documents + TEST_DOCUMENTS].astype(np.float64)
    train, test = corpus[: options.documents], corpus[options.documents :]
    if test.shape[0] < 100:
        raise SystemExit(f"only {test.shape[0]} documents are left to test: lower --documents.")
    return Task(train, split_documents(test, seed=0), options.topics, options.passes)


def warm_up() -> None:
    """Have the kernels compiled, or loaded, before anything is timed."""
    few = sparse.csr_matrix(np.eye(20))
    for tempering in ("auto", None, "variational", "local"):
        LatentDirichletAllocation(2, tempering=tempering, max_iter=2, n_jobs=1).fit(few)


def measure(task: Task, prepare: Prepare, seed: int) -> dict[str, float]:
    """Fit once and score the topics."""
    weights, seconds = timed(prepare(task, seed))
    topics = np.asarray(weights, np.float64)
    topics /= topics.sum(axis=1, keepdims=True)
    observed, held_out = task.test
    return {
        "vi": completion_score(observed, held_out, topics, 1.0 / task.n_topics, "vi"),
        "gibbs": completion_score(observed, held_out, topics, 0.1, "gibbs"),
        "npmi": float(npmi(topics, task.train, 10).mean()),
        "cpu s": seconds,
    }


def summary(scores: list[dict[str, float]]) -> dict[str, str | float]:
    """Means, with the standard deviation where it tells something."""
    row: dict[str, str | float] = {}
    for name in ("vi", "gibbs", "npmi"):
        values = [own[name] for own in scores]
        spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        row[name] = f"{np.mean(values):.3f}{spread}"
    row["cpu s"] = round(float(np.mean([own["cpu s"] for own in scores])), 1)
    return row


def models(with_peers: bool) -> Iterator[tuple[str, Prepare]]:
    """Names and fits, in the order of the table."""
    yield "tempering, its defaults", prepare_defaults
    for name, tempering, update in policies():
        yield name, partial(prepare_own, tempering=tempering, update=update)
    if not with_peers:
        return
    yield "scikit-learn, online", prepare_sklearn
    if is_installed("gensim"):
        yield "gensim", prepare_gensim
    if is_installed("tomotopy"):
        yield "tomotopy, 200 sweeps", partial(prepare_tomotopy, sweeps=200)
        yield "tomotopy, 500 sweeps", partial(prepare_tomotopy, sweeps=500)


def policies() -> Iterator[tuple[str, Any, str]]:
    """Temperature policies of this package, each with the form of its inner update."""
    yield "SVI", None, "variational"
    for passes in (0.01, 0.1, 1.0):
        schedule = schedules.linear(PAPER_START)
        yield (
            f"AVI of the paper, tA = {passes:g}",
            Annealing(schedule, passes=passes),
            "variational",
        )
    yield "annealing, 1/T from 0.5", "annealing", "variational"
    tempering = VariationalTempering(formula="calibrated", damping=1.0, every=4)
    yield "VT, calibrated", tempering, "variational"
    yield "LVT, calibrated", LocalTempering(max_alternations=5, tolerance=0.02), "variational"
    yield "LVT, damped", "local", "variational"
    yield "SVI, mean topics", None, "mean"
    yield "annealing, mean topics", "annealing", "mean"


def prepare_defaults(task: Task, seed: int) -> Fit:
    """This package as it is when nothing is chosen but the number of passes."""
    estimator = LatentDirichletAllocation(
        task.n_topics, max_iter=task.passes, n_jobs=1, random_state=seed
    )
    return lambda: estimator.fit(task.train).components_


def prepare_own(task: Task, seed: int, tempering: Any, update: str) -> Fit:
    """This package with a policy, at the learning rate and the batch size of all."""
    estimator = LatentDirichletAllocation(
        task.n_topics,
        tempering=tempering,
        update=update,
        learning_offset=OFFSET,
        learning_decay=DECAY,
        max_iter=task.passes,
        batch_size=BATCH_SIZE,
        doc_update_tol=1e-3,
        n_jobs=1,
        random_state=seed,
    )
    return lambda: estimator.fit(task.train).components_


def prepare_sklearn(task: Task, seed: int) -> Fit:
    """scikit-learn, with the same priors and learning rate."""
    estimator = SklearnLDA(
        task.n_topics,
        learning_method="online",
        learning_offset=OFFSET,
        learning_decay=DECAY,
        max_iter=task.passes,
        batch_size=BATCH_SIZE,
        random_state=seed,
    )
    return lambda: estimator.fit(task.train).components_


def prepare_gensim(task: Task, seed: int) -> Fit:
    """gensim, with the same priors and learning rate."""
    from gensim.models import LdaModel
    from gensim.utils import FakeDict

    documents = gensim_documents(task.train)

    def fit() -> np.ndarray:
        model = LdaModel(
            documents,
            id2word=FakeDict(task.train.shape[1]),
            num_topics=task.n_topics,
            alpha="symmetric",
            eta="symmetric",
            chunksize=BATCH_SIZE,
            passes=task.passes,
            iterations=100,
            gamma_threshold=1e-3,
            offset=OFFSET,
            decay=DECAY,
            eval_every=None,
            random_state=seed,
        )
        return model.get_topics()

    return fit


def prepare_tomotopy(task: Task, seed: int, sweeps: int) -> Fit:
    """Collapsed Gibbs sampling as people use it: learned α, η = 0.05."""
    from tomotopy import LDAModel

    model = LDAModel(k=task.n_topics, alpha=1.0 / task.n_topics, eta=0.05, seed=seed + 1)
    for d in range(task.train.shape[0]):
        row = task.train[d]
        if row.nnz:
            model.add_doc(np.repeat(row.indices, row.data.astype(int)).astype(str).tolist())

    def fit() -> np.ndarray:
        model.train(sweeps, workers=1)
        words = np.array(model.used_vocabs, dtype=int)
        seen = np.array([model.get_topic_word_dist(k) for k in range(task.n_topics)])
        # Words that it has never seen get what its prior gives to a word without counts.
        topics = np.repeat(seen.min(axis=1, keepdims=True), task.train.shape[1], axis=1)
        topics[:, words] = seen
        return topics

    return fit


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="counts, by scipy's save_npz")
    parser.add_argument("--documents", type=int, default=20_000, help="documents to learn from")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peers", action="store_true", help="other programs too")
    parser.add_argument("--only", nargs="+", help="only models whose name contains one of these")
    parser.add_argument("--json", type=Path, help="write the results here too")
    return parser.parse_args()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
