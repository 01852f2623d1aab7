"""Ablation of the start, the update and heat of topics, on validation documents.

    PYTHONPATH=.:src python benchmarks/topic_ablation.py --corpora eight 20news.npz:13655 octis/ \
        --topics 20 50 100 --seeds 0 1 2 --starts words random --updates sampled variational \
        --heats none warm --output ablation.jsonl [--jobs 16] [--seconds 390]

A corpus is one of the arena's (`python -m arena --help`), drawn again with another seed; or a file
of counts cut to its first documents to learn from, of which the 2,000 that follow are the test
part and those after them, which are scored here, the validation part; or a file of OCTIS, which
has such parts. Scores are those of the arena: held-out nats a word, θ exact up to Monte Carlo
error, by the best of four priors. Each fit is a line of `--output`; a run that is repeated makes
those that are missing. `--seconds` ends it.

`--draws signs:10 rotation:10 bootstrap:10` measures what chance decides in the start from words:
the signs of eigenvectors, the first rotation, the documents. `scores before` are what could choose
between starts: half of the words of some training documents, predicted by the topics of the start
and by those after one pass.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import json
import time
import warnings
from functools import lru_cache
from itertools import product
from multiprocessing import TimeoutError, get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lda_common import timed
from scipy import sparse

from arena import corpora
from arena.scores import predict
from tempering import Annealing, LatentDirichletAllocation, corpus as formats, schedules
from tempering.corpus.files import Lines
from tempering.datasets import make_lda
from tempering.evaluation import split_documents
from tempering.models.lda import recovery, start
from tempering.models.lda.priors import predicted_words

#: What `tempering` is given.
HEATS: dict[str, Any] = {
    "none": None,
    "warm": Annealing(schedules.linear_inverse(2.0), fraction=0.4),
    "mean first": Annealing(schedules.linear_inverse(1.0001), fraction=0.4),  # T = 1, not sampled
}


class Job(NamedTuple):
    """One fit."""

    corpus: str
    topics: int
    start: str
    update: str
    heat: str
    seed: int
    draw: str = ""


@lru_cache(maxsize=4)
def open_corpus(name: str) -> corpora.Corpus:
    """Training documents, and validation documents in the place of test documents."""
    if name in corpora.DRAWN:
        settings = dict(corpora.DRAWN[name])
        n = settings.pop("n_documents")
        seed = 100 + list(corpora.DRAWN).index(name)
        counts = make_lda(n + corpora.TEST_DOCUMENTS, **settings, seed=seed).counts
    elif name.endswith(".tsv.gz"):
        rows = [line.split("\t") for line in Lines(Path(name))]
        parts = [
            [text.split() for text, part, _ in rows if part == own] for own in ("train", "val")
        ]
        words = {word: v for v, word in enumerate(sorted({w for text in parts[0] for w in text}))}
        texts = [[words[w] for w in text if w in words] for text in parts[0] + parts[1]]
        entries = [(d, v) for d, text in enumerate(texts) for v in text]
        ones = np.ones(len(entries)), tuple(np.array(entries).T)
        counts, n = sparse.coo_array(ones, (len(texts), len(words))).tocsr(), len(parts[0])
    else:
        path, _, documents = name.partition(":")
        counts, n = sparse.csr_array(formats.read(Path(path)).counts), int(documents)
        rest = min(counts.shape[0] - n, 2 * corpora.TEST_DOCUMENTS) // 2
        counts = sparse.vstack([counts[:n], counts[n + rest : n + 2 * rest]], format="csr")
    counts = sparse.csr_array(counts, dtype=np.int32)
    seen = np.bincount(counts[:n].indices, minlength=counts.shape[1]) > 0
    train, part = counts[:n][:, seen], counts[n:][:, seen]
    return corpora.Corpus(name, train, part, split_documents(part, seed=0), None)


def measure(job: Job) -> dict[str, Any]:
    """Fit once and score the topics."""
    corpus, before = open_corpus(job.corpus), {}
    some = sparse.csr_matrix(corpus.train[:: max(1, corpus.train.shape[0] // 2000)])
    prior = np.full(job.topics, 0.1)
    kind, _, number = job.draw.partition(" ")
    rng = np.random.default_rng(int(number or 0))
    shares, found = recovery.skewest_shares, start.anchored_topics

    def turned_shares(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
        size = points.shape[1] - 1
        turn = np.eye(size)
        if kind == "signs":
            turn *= rng.choice([-1.0, 1.0], size)
        if kind == "rotation":
            turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
        return shares(np.column_stack([points[:, :1], points[:, 1:] @ turn]), weights)

    def drawn_topics(X: Any, *arguments: Any) -> np.ndarray:
        rows = rng.integers(X.shape[0], size=X.shape[0])
        topics = found(X[rows] if kind == "bootstrap" else X, *arguments)
        before["start"] = predicted_words(topics, prior[: topics.shape[1]], some)
        return topics

    def look(report: Any) -> None:
        if "one pass" not in before and report.record.passes >= 1.0:
            topics = report.posterior.parameters()
            topics = topics / topics.sum(axis=0, dtype=np.float64)
            before["one pass"] = predicted_words(topics, prior, some)

    if kind:
        recovery.skewest_shares, start.anchored_topics = turned_shares, drawn_topics
    ways = {"init": job.start, "update": job.update, "tempering": HEATS[job.heat]}
    lda = LatentDirichletAllocation(
        job.topics, **ways, random_state=job.seed, n_jobs=1, backend="cpu"
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            looks = [look] if kind else []
            _, seconds = timed(lambda: lda.fit(corpus.train, callbacks=looks))
    finally:
        recovery.skewest_shares, start.anchored_topics = shares, found
    topics = np.asarray(lda.components_, np.float64)
    topics /= topics.sum(axis=1, keepdims=True)
    return {
        **job._asdict(),
        **predict(corpus, topics),
        "cpu s": round(seconds, 2),
        "first T": round(float(lda.history_[0].temperature), 3),
        "scores before": before,
    }


def jobs(options: argparse.Namespace) -> list[Job]:
    """All fits: the first seed of all before the second, and those that take longest first."""
    asked = [draw.partition(":") for draw in options.draws]
    numbered = sorted((n, kind) for kind, _, count in asked for n in range(int(count)))
    draws = [f"{kind} {n}" for n, kind in numbered] or [""]
    named = corpora.named(options.corpora)
    ways = product(options.starts, options.updates, options.heats)
    every = product(options.seeds, draws, sorted(options.topics, reverse=True), named, list(ways))
    return [
        Job(corpus, n_topics, *way, seed, draw)
        for seed, draw, n_topics, corpus, way in every
        # Drawn corpora have few topics, or one number of many.
        if corpus not in corpora.DRAWN or n_topics <= 100
    ]


def warm_up() -> None:
    """Compile the kernels, or load them."""
    few = np.eye(20)
    for update in ("sampled", "mean", "variational"):
        for init in ("words", "random"):
            ways = {"update": update, "init": init, "tempering": "annealing"}
            LatentDirichletAllocation(2, max_iter=2, n_jobs=1, **ways).fit(few)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--corpora", nargs="+", required=True)
    parser.add_argument("--topics", nargs="+", type=int, default=[20, 50, 100, 500])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--starts", nargs="+", default=["words"], choices=["words", "random"])
    updates = ["sampled", "mean", "variational"]
    parser.add_argument("--updates", nargs="+", default=["sampled"], choices=updates)
    parser.add_argument("--heats", nargs="+", default=["none", "warm"], choices=HEATS)
    parser.add_argument("--draws", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    started = time.monotonic()
    lines = options.output.read_text().splitlines() if options.output.is_file() else []
    done = {Job(**{name: json.loads(line)[name] for name in Job._fields}) for line in lines}
    todo = [job for job in jobs(options) if job not in done]
    warm_up()
    with options.output.open("a") as file, get_context("spawn").Pool(options.jobs) as pool:
        results = pool.imap_unordered(measure, todo)
        for n in range(len(todo)):
            left = options.seconds - (time.monotonic() - started)
            try:
                line = results.next(timeout=max(left, 0.0) if left < float("inf") else None)
            except TimeoutError:
                print(f"{len(todo) - n} of {len(todo)} fits are left", flush=True)
                break
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(
                n + 1, len(todo), {k: line[k] for k in (*Job._fields, "nats", "cpu s")}, flush=True
            )
