"""Speed of latent Dirichlet allocation against scikit-learn and gensim, one thread each.

    PYTHONPATH=. python benchmarks/lda_speed.py --corpus arxiv.npz [--topics 50 200 500] [--threads]

All numbers but the scaling over threads are CPU time, and the programs take turns, so that what
else runs on the machine slows all of them alike. Medians over the turns.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lda_common import (
    gensim_documents,
    is_installed,
    load_corpus,
    print_table,
    reaches,
    take_turns,
    write_json,
)
from lda_e_step import compare_e_steps
from lda_programs import BATCH_SIZE, as_batches, new_gensim, new_own, new_sklearn
from scipy import sparse

from tempering import LatentDirichletAllocation

FIT_BATCHES = 20
WARM_UP_BATCHES = 10
FIT_TARGETS = {50: 10.0, 200: 15.0, 500: 20.0}

SECTIONS = ("e-step", "fit", "threads")


def main() -> None:
    """Run the sections that were asked for, print their tables."""
    options = _parse_options()
    corpus = load_corpus(options.corpus)
    print(f"{options.corpus.name}: {corpus.shape[0]} documents, {corpus.shape[1]} words")
    result: dict[str, Any] = {"corpus": options.corpus.name, "shape": corpus.shape}

    if "e-step" in options.sections:
        rows = [
            row
            for k in options.topics
            for row in compare_e_steps(corpus, k, options.steps, options.repeats)
        ]
        result["e_step"] = rows
        print_table("E-step on batches of 256, documents per CPU second", rows)
        print("error of the statistics, in L1; by stopping: what is due to ending early")
    if "fit" in options.sections:
        rows = [row for k in options.topics for row in compare_fits(corpus, k, options.repeats)]
        result["fit"] = rows
        print_table("Whole fit (partial_fit), documents per CPU second", rows)
    if "threads" in options.sections:
        result["threads"] = [compare_threads(corpus, k, options.repeats) for k in options.topics]
        print_table("Threads: wall clock, batches of 1024", result["threads"])
    write_json(options.json, result)


# The whole fit.


def compare_fits(corpus: sparse.csr_matrix, k: int, repeats: int) -> list[dict[str, Any]]:
    """A stream of batches through each program, in turns of FIT_BATCHES."""
    n_batches = WARM_UP_BATCHES + repeats * FIT_BATCHES
    batches = as_batches(corpus, BATCH_SIZE, n_batches)
    programs = {
        "scikit-learn": new_sklearn(k, corpus.shape[0]).partial_fit,
        "tempering, T = 1": new_own(k, corpus.shape[0], None).partial_fit,
        "tempering, annealing": new_own(k, corpus.shape[0], "annealing").partial_fit,
        "tempering, defaults": LatentDirichletAllocation(
            k, total_samples=corpus.shape[0], batch_size=BATCH_SIZE, n_jobs=1, random_state=0
        ).partial_fit,
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
        is_own = name.startswith("tempering")
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
                "target": FIT_TARGETS.get(k) if is_own else None,
                "verdict": reaches(ratio, FIT_TARGETS.get(k)) if is_own else None,
            }
        )
    return rows


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


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--corpus", type=Path, required=True, help="counts, as saved by scipy.sparse.save_npz"
    )
    parser.add_argument("--topics", type=int, nargs="+", default=[50, 200, 500])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30, help="partial_fit steps before the E-step")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=["e-step", "fit"])
    parser.add_argument("--threads", action="store_true", help="all sections")
    parser.add_argument("--json", type=Path, help="write the results here too")
    options = parser.parse_args()
    if options.threads:
        options.sections = SECTIONS
    return options


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
