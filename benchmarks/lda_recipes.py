"""Which recipe for topics is best, over corpora, numbers of topics and seeds.

    python benchmarks/lda_recipes.py --corpora arxiv.npz:20000 20news.npz:13655 synthetic \
        --topics 50 100 --seeds 3 --part validation --output recipes.jsonl [--peers] [--plot F.png]

A corpus is a file of scipy's `save_npz`, cut to its first documents to learn from; the documents
that follow are the test part, those after them the validation part. Choices are made on
`--part validation`; `--part test` is for the final table. "synthetic" stands for four corpora drawn
from the model: few and many topics, short and long documents.

Topics are scored by held-out nats a word with exact proportions (Gibbs, α = 0.1) and by NPMI of the
top ten words; CPU seconds on one thread. Every run is written to `--output` at once, and a stopped
study goes on where it was.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import json
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lda_common import is_installed, load_corpus, print_table, timed
from lda_quality import (
    Prepare,
    Task,
    prepare_gensim,
    prepare_sklearn,
    prepare_tomotopy,
    warm_up,
)
from scipy import sparse

from tempering import Annealing, LatentDirichletAllocation, schedules
from tempering.datasets import make_lda
from tempering.evaluation import Split, completion_score, npmi, split_documents, topic_stability

PART_SIZE = 2000
GIBBS_PRIOR = 0.1

#: What `LatentDirichletAllocation` is given beside the number of topics.
RECIPES: dict[str, dict[str, Any]] = {
    "default": {},
    "default, random start": {"init": "random"},
    "default, mean topics": {"update": "mean"},
    "sampled, T = 1": {"tempering": None, "update": "sampled"},
    "SVI": {"tempering": None, "update": "variational"},
    "mean topics, T = 1": {"tempering": None, "update": "mean"},
    "collapsed, T = 1": {"tempering": None, "update": "collapsed"},
    "1/T from 0.5, variational": {"tempering": "annealing", "update": "variational"},
    "1/T from 0.5, mean": {
        "tempering": Annealing(schedules.linear_inverse(2.0), fraction=0.8),
        "update": "mean",
    },
    "1/T from 0.8, collapsed": {
        "tempering": Annealing(schedules.linear_inverse(1.25), fraction=0.9),
        "update": "collapsed",
    },
    "default, collapsed": {"update": "collapsed"},
    "VT": {"tempering": "variational", "update": "variational"},
    "VT, mean": {"tempering": "variational", "update": "mean"},
    "LVT": {"tempering": "local", "update": "variational"},
    "default, learned alpha": {"doc_topic_prior": "auto"},
    "default, learned priors": {"doc_topic_prior": "auto", "topic_word_prior": "auto"},
}

#: Topics, documents, words of a document, of four corpora drawn from the model.
SYNTHETIC = {
    "few topics, short": (20, 5_000, 20),
    "few topics, long": (20, 3_000, 300),
    "many topics, short": (100, 20_000, 40),
    "many topics, long": (100, 5_000, 200),
}


class Corpus(NamedTuple):
    """Documents to learn from, a part to score on, and, where they are known, the true topics."""

    name: str
    train: Any
    part: Split
    truth: np.ndarray | None = None


def main() -> None:
    """Run what the output does not hold yet; print a table of what it holds."""
    options = _parse_options()
    runs = read_runs(options.output)
    done = {run_key(run) for run in runs}
    warm_up()
    for corpus in corpora(options.corpora, options.part):
        for k in options.topics if corpus.truth is None else [len(corpus.truth)]:
            for name, prepare in recipes(options, corpus):
                kept = []
                for seed in range(options.first_seed, options.first_seed + options.seeds):
                    key = (corpus.name, corpus.train.shape[0], k, name, options.passes, seed)
                    if (*key, options.part) in done:
                        continue
                    run = measure(corpus, k, options.passes, prepare, seed, kept)
                    named = dict(zip(("corpus", "documents", "K", "recipe", "passes", "seed"), key))
                    runs.append({**named, "part": options.part, **run})
                    append_run(options.output, runs[-1])
    table = summary([run for run in runs if run["part"] == options.part])
    print_table(f"Means over seeds, {options.part} part; higher is better", table)
    if options.plot:
        draw(table, options.plot)


def corpora(names: list[str], part: str) -> Iterator[Corpus]:
    """The corpora, one at a time, as some are large."""
    for name in names:
        if name == "synthetic":
            for number, kind in enumerate(SYNTHETIC):
                yield synthetic_corpus(kind, number, part)
        else:
            path, _, documents = name.partition(":")
            counts = load_corpus(Path(path))
            n_train = int(documents) if documents else counts.shape[0] - 2 * PART_SIZE
            counts = counts[: n_train + 2 * PART_SIZE].astype(np.float64)
            yield Corpus(Path(path).stem, counts[:n_train], scored_part(counts[n_train:], part))


def synthetic_corpus(kind: str, seed: int, part: str) -> Corpus:
    """A corpus from the model, with the topics that made it."""
    n_topics, n_documents, length = SYNTHETIC[kind]
    made = make_lda(
        n_documents + 2 * PART_SIZE,
        n_topics,
        n_words=5_000,
        document_length=length,
        alpha=0.1 if n_topics < 50 else 0.05,
        eta=0.05,
        seed=seed,
    )
    counts = sparse.csr_matrix(made.counts, dtype=np.float64)
    return Corpus(kind, counts[:n_documents], scored_part(counts[n_documents:], part), made.topics)


def scored_part(rest: Any, part: str) -> Split:
    """The first half of the documents that follow is the test part, the second for validation."""
    half = rest.shape[0] // 2
    documents = rest[:half] if part == "test" else rest[half:]
    return split_documents(documents, seed=0)


def recipes(options: argparse.Namespace, corpus: Corpus) -> Iterator[tuple[str, Prepare]]:
    """Those that were asked for, in the order of the table."""
    for name, prepare in all_recipes(options.peers, corpus):
        if not options.only or name in options.only:
            yield name, prepare


def all_recipes(with_peers: bool, corpus: Corpus) -> Iterator[tuple[str, Prepare]]:
    """Names and fits."""
    for name, settings in RECIPES.items():
        yield name, partial(prepare_own, settings=settings)
    if corpus.truth is not None:
        yield "true topics", lambda task, seed: lambda: corpus.truth
    if with_peers:
        yield "scikit-learn", prepare_sklearn
        if is_installed("gensim"):
            yield "gensim", prepare_gensim
        if is_installed("tomotopy"):
            yield "tomotopy, 500 sweeps", partial(prepare_tomotopy, sweeps=500)


def prepare_own(task: Task, seed: int, settings: dict[str, Any]) -> Any:
    """This package with a recipe and all else at its default."""
    estimator = LatentDirichletAllocation(
        task.n_topics, max_iter=task.passes, n_jobs=1, random_state=seed, **settings
    )
    return lambda: estimator.fit(task.train).components_


def measure(
    corpus: Corpus, k: int, passes: int, prepare: Prepare, seed: int, kept: list[np.ndarray]
) -> dict[str, float | None]:
    """Fit once and score the topics; ``kept`` holds those of the seeds before."""
    task = Task(corpus.train, corpus.part, k, passes)
    weights, seconds = timed(prepare(task, seed))
    topics = np.asarray(weights, np.float64)
    topics /= topics.sum(axis=1, keepdims=True)
    kept.append(topics)
    observed, held_out = corpus.part
    return {
        "gibbs": completion_score(observed, held_out, topics, GIBBS_PRIOR, "gibbs"),
        "npmi": float(npmi(topics, corpus.train, 10).mean()),
        "stability": float(topic_stability(kept[0], topics)) if len(kept) > 1 else None,
        "cpu s": seconds,
    }


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each corpus, K and recipe."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for run in runs:
        key = (run["corpus"], run["documents"], run["K"], run["passes"], run["recipe"])
        groups.setdefault(key, []).append(run)
    rows = []
    for key, own in sorted(groups.items(), key=lambda item: item[0][:4]):
        scores = [run["gibbs"] for run in own]
        stability = [run["stability"] for run in own if run["stability"] is not None]
        rows.append(
            {
                **dict(zip(("corpus", "documents", "K", "passes", "recipe"), key)),
                "gibbs": float(np.mean(scores)),
                "±": float(np.std(scores, ddof=1)) if len(own) > 1 else None,
                "npmi": float(np.mean([run["npmi"] for run in own])),
                "stability": float(np.mean(stability)) if stability else None,
                "cpu s": round(float(np.mean([run["cpu s"] for run in own])), 1),
                "seeds": len(own),
            }
        )
    return rows


def draw(table: list[dict[str, Any]], path: Path) -> None:
    """How far each recipe is behind the best one, on each corpus."""
    from matplotlib.figure import Figure

    tasks = sorted({(row["corpus"], row["documents"], row["K"]) for row in table})
    names = list(dict.fromkeys(row["recipe"] for row in table if row["recipe"] != "true topics"))
    figure = Figure(figsize=(8, 0.5 + 0.35 * len(names)), layout="constrained")
    axis = figure.subplots()
    for column, task in enumerate(tasks):
        own = [row for row in table if (row["corpus"], row["documents"], row["K"]) == task]
        best = max(row["gibbs"] for row in own if row["recipe"] != "true topics")
        gaps = {row["recipe"]: best - row["gibbs"] for row in own}
        heights = [names.index(name) + 0.06 * column for name in gaps if name in names]
        label = f"{task[0]}, {task[1]} documents, K = {task[2]}"
        values = [gap for name, gap in gaps.items() if name in names]
        axis.plot(np.maximum(values, 1e-3), heights, "o", ms=4, label=label)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("nats a word behind the best recipe (0.001 and less at the left edge)")
    axis.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    figure.savefig(path, dpi=150)


def read_runs(path: Path) -> list[dict[str, Any]]:
    """The runs made so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append_run(path: Path, run: dict[str, Any]) -> None:
    """Write a run down and show it."""
    with path.open("a") as file:
        file.write(json.dumps(run) + "\n")
    shown = (run[name] for name in ("corpus", "K", "recipe", "seed", "gibbs", "npmi", "cpu s"))
    print("  ".join(f"{value:.4f}" if isinstance(value, float) else str(value) for value in shown))


def run_key(run: dict[str, Any]) -> tuple:
    """What tells runs apart."""
    names = ("corpus", "documents", "K", "recipe", "passes", "seed", "part")
    return tuple(run[name] for name in names)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", required=True, metavar="PATH[:DOCUMENTS]")
    parser.add_argument("--topics", type=int, nargs="+", default=[50])
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--part", choices=("validation", "test"), default="validation")
    parser.add_argument("--only", nargs="+", help="only these recipes, by name")
    parser.add_argument("--peers", action="store_true", help="other programs too")
    parser.add_argument("--output", type=Path, default=Path("lda_recipes.jsonl"))
    parser.add_argument("--plot", type=Path, help="draw the table too")
    return parser.parse_args()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
