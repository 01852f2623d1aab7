"""Which recipe for topics is best, over corpora, numbers of topics and seeds.

    python benchmarks/lda_recipes.py --corpora arxiv.npz:20000 20news.npz:13655 synthetic \
        --topics 50 100 --seeds 3 --part validation --output recipes.jsonl [--jobs 8] [--plot F.png]

A corpus is a file of scipy's `save_npz`, cut to its first documents to learn from; the documents
that follow are the test part, those after them the validation part. Choices are made on
`--part validation`; `--part test` is for the final table. "synthetic" stands for four corpora drawn
from the model: few and many topics, short and long documents.

Topics are scored by held-out nats a word with exact proportions (Gibbs, α = 0.1) and by NPMI of the
top ten words; CPU seconds on one thread. Every run is written to `--output` at once, and a stopped
study goes on where it was. `--jobs` makes so many runs at a time, each in a process of its own.
Other programs are compared in the arena: `python -m arena`.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lda_common import load_corpus, print_table, timed
from scipy import sparse

from tempering import Annealing, LatentDirichletAllocation, schedules
from tempering.datasets import make_lda
from tempering.evaluation import Split, completion_score, npmi, split_documents, topic_stability

PART_SIZE = 2000
GIBBS_PRIOR = 0.1

RANDOM = {"init": "random"}

#: What `LatentDirichletAllocation` is given beside the number of topics.
RECIPES: dict[str, dict[str, Any]] = {
    "default": {},
    "default, random start": {"init": "random"},
    "default, mean topics": {"update": "mean"},
    "sampled, T = 1": {**RANDOM, "tempering": None},
    "SVI": {**RANDOM, "tempering": None, "update": "variational"},
    "mean topics, T = 1": {**RANDOM, "tempering": None, "update": "mean"},
    "1/T from 0.5, variational": {**RANDOM, "tempering": "annealing", "update": "variational"},
    "1/T from 0.5, mean": {
        **RANDOM,
        "tempering": Annealing(schedules.linear_inverse(2.0), fraction=0.8),
        "update": "mean",
    },
    "VT": {**RANDOM, "tempering": "variational", "update": "variational"},
    "VT, mean": {**RANDOM, "tempering": "variational", "update": "mean"},
    "LVT": {**RANDOM, "tempering": "local", "update": "variational"},
    "default, learned alpha": {"doc_topic_prior": "auto"},
    "default, learned priors": {"doc_topic_prior": "auto", "topic_word_prior": "auto"},
}

#: The topics that a synthetic corpus was drawn from, as a recipe.
TRUTH = "true topics"

#: Topics, documents, words of a document, of four corpora drawn from the model.
SYNTHETIC = {
    "few topics, short": (20, 5_000, 20),
    "few topics, long": (20, 3_000, 300),
    "many topics, short": (100, 20_000, 40),
    "many topics, long": (100, 5_000, 200),
}


class Job(NamedTuple):
    """One run of the study."""

    corpus: str  # PATH[:DOCUMENTS], or one of SYNTHETIC
    part: str
    n_topics: int
    recipe: str
    passes: int
    seed: int


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
    todo = [job for job in jobs(options) if run_key(described(job)) not in done]
    kept = defaultdict(list)
    for job, run, topics in measured(todo, options.jobs):
        before = kept[job._replace(seed=0)]
        before.append(topics)
        stability = float(topic_stability(before[0], topics)) if len(before) > 1 else None
        runs.append({**described(job), **run, "stability": stability})
        append_run(options.output, runs[-1])
    table = summary([run for run in runs if run["part"] == options.part])
    print_table(f"Means over seeds, {options.part} part; higher is better", table)
    if options.plot:
        draw(table, options.plot)


def jobs(options: argparse.Namespace) -> Iterator[Job]:
    """All runs of the study, in the order of the table."""
    for given in options.corpora:
        for corpus in SYNTHETIC if given == "synthetic" else [given]:
            synthetic = corpus in SYNTHETIC
            for k in [SYNTHETIC[corpus][0]] if synthetic else options.topics:
                for recipe in [*RECIPES, *([TRUTH] if synthetic else [])]:
                    if options.only and recipe not in options.only:
                        continue
                    for seed in range(options.first_seed, options.first_seed + options.seeds):
                        yield Job(corpus, options.part, k, recipe, options.passes, seed)


def described(job: Job) -> dict[str, Any]:
    """What is written down of a run besides its results."""
    corpus = open_corpus(job.corpus, job.part)
    return {
        "corpus": corpus.name,
        "documents": corpus.train.shape[0],
        "K": job.n_topics,
        "recipe": job.recipe,
        "passes": job.passes,
        "seed": job.seed,
        "part": job.part,
    }


def measured(todo: list[Job], at_a_time: int) -> Iterable[tuple[Job, dict[str, float], np.ndarray]]:
    """Each run, its scores and its topics, as soon as it is over."""
    if at_a_time == 1:
        warm_up()
        yield from map(measure, todo)
        return
    with get_context("spawn").Pool(at_a_time, initializer=warm_up) as pool:
        yield from pool.imap_unordered(measure, todo)


@lru_cache(maxsize=8)
def open_corpus(name: str, part: str) -> Corpus:
    """The corpus of a job; kept, as the next job is likely to want it too."""
    if name in SYNTHETIC:
        return synthetic_corpus(name, part)
    path, _, documents = name.partition(":")
    counts = load_corpus(Path(path))
    n_train = int(documents) if documents else counts.shape[0] - 2 * PART_SIZE
    counts = counts[: n_train + 2 * PART_SIZE].astype(np.float64)
    return Corpus(Path(path).stem, counts[:n_train], scored_part(counts[n_train:], part))


def synthetic_corpus(kind: str, part: str) -> Corpus:
    """A corpus from the model, with the topics that made it."""
    n_topics, n_documents, length = SYNTHETIC[kind]
    made = make_lda(
        n_documents + 2 * PART_SIZE,
        n_topics,
        n_words=5_000,
        document_length=length,
        alpha=0.1 if n_topics < 50 else 0.05,
        eta=0.05,
        seed=list(SYNTHETIC).index(kind),
    )
    counts = sparse.csr_matrix(made.counts, dtype=np.float64)
    return Corpus(kind, counts[:n_documents], scored_part(counts[n_documents:], part), made.topics)


def scored_part(rest: Any, part: str) -> Split:
    """The first half of the documents that follow is the test part, the second for validation."""
    half = rest.shape[0] // 2
    documents = rest[:half] if part == "test" else rest[half:]
    return split_documents(documents, seed=0)


def warm_up() -> None:
    """Have the kernels compiled, or loaded, before anything is timed."""
    few = sparse.csr_matrix(np.eye(20))
    for tempering in ("auto", None, "variational", "local"):
        LatentDirichletAllocation(2, tempering=tempering, max_iter=2, n_jobs=1).fit(few)


def fitted_topics(job: Job, corpus: Corpus) -> Any:
    """Topics of this package with a recipe and all else at its default; or the true ones."""
    if job.recipe == TRUTH:
        return corpus.truth
    settings = {"max_iter": job.passes, "random_state": job.seed, **RECIPES[job.recipe]}
    return (
        LatentDirichletAllocation(job.n_topics, n_jobs=1, **settings).fit(corpus.train).components_
    )


def measure(job: Job) -> tuple[Job, dict[str, float], np.ndarray]:
    """Fit once and score the topics."""
    corpus = open_corpus(job.corpus, job.part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights, seconds = timed(lambda: fitted_topics(job, corpus))
    topics = np.asarray(weights, np.float64)
    topics /= topics.sum(axis=1, keepdims=True)
    observed, held_out = corpus.part
    scores = {
        "gibbs": completion_score(observed, held_out, topics, GIBBS_PRIOR, "gibbs", n_threads=1),
        "npmi": float(npmi(topics, corpus.train, 10).mean()),
        "cpu s": seconds,
    }
    return job, scores, topics


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
    names = list(dict.fromkeys(row["recipe"] for row in table if row["recipe"] != TRUTH))
    figure = Figure(figsize=(8, 0.5 + 0.35 * len(names)), layout="constrained")
    axis = figure.subplots()
    for column, task in enumerate(tasks):
        own = [row for row in table if (row["corpus"], row["documents"], row["K"]) == task]
        best = max(row["gibbs"] for row in own if row["recipe"] != TRUTH)
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
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--output", type=Path, default=Path("lda_recipes.jsonl"))
    parser.add_argument("--plot", type=Path, help="draw the table too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
