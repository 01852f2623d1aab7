"""Whole fits of topic models on a GPU: speed, score against the CPU, batch sizes, limits.

    python benchmarks/gpu_lda.py --corpus arxiv.npz [--topics 100 500 1000] [--passes 2]
    python benchmarks/gpu_lda.py --corpus arxiv.npz --cpu          # the same fits on the CPU too
    python benchmarks/gpu_lda.py --corpus arxiv.npz --ways         # kept, sent, learned; the ELBO
    python benchmarks/gpu_lda.py --corpus arxiv.npz --race         # CPU and GPU to one score
    python benchmarks/gpu_lda.py --corpus arxiv.npz --tolerances   # loose and tight, over seeds
    python benchmarks/gpu_lda.py --corpus arxiv.npz --study 100    # batch sizes, with 100 topics
    python benchmarks/gpu_lda.py --generate 3600000                # a corpus of known topics

A time is that of a whole fit, from a CSR matrix on the host to topics on the host: the corpus sent,
the topics drawn, all steps. The first fit of a shape compiles, and is timed by itself. Scores are
held-out nats a word by document completion, on documents that no fit has seen: with mean-field
proportions at α = 1/K, and ("exact") with their posterior mean by Gibbs sampling at α = 0.1. Beside
a corpus of known topics stand the scores of these, and of the frequencies of words alone.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from gpu_corpus import generate
from gpu_limits import limits
from gpu_tasks import HEAT, RATES, Task, exact_score, new_model, prepare, score
from gpu_ways import compare_bounds, compare_tolerances, compare_ways, race
from lda_common import load_corpus, print_table, write_json
from tempering.gpu.compiled_steps import default_kernel, steps_of
from tempering.gpu.device_lda import fit_on_device
from tempering.inference import fit

STUDIED_BATCHES = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
REPEATS = 3


def main() -> None:
    """Run the parts that were asked for."""
    options = _parse_options()
    print_device()
    results: dict[str, Any] = {"options": {**vars(options), "json": None}}
    if options.corpus is not None:
        task = prepare(load_corpus(options.corpus), options)
        if options.study is not None:
            results["study"] = study_batches(task, options)
            print_table(f"Batch sizes, {options.study} topics", results["study"])
        elif options.tolerances:
            pairs = (compare_tolerances(task, k, options) for k in options.topics)
            results["tolerances"] = [row for pair in pairs for row in pair]
            print_table("Tolerances", results["tolerances"])
        elif options.race:
            results["race"] = [row for k in options.topics for row in race(task, k)]
            print_table("To the score of the CPU", results["race"])
        elif options.ways:
            ways = (compare_ways(task, k, options) for k in options.topics)
            results["ways"] = [row for rows in ways for row in rows]
            print_table("Ways to fit", results["ways"])
            results["bounds"] = [compare_bounds(task, k, options) for k in options.topics]
            print_table("The ELBO of the same topics", results["bounds"])
        else:
            results["fits"] = measure_fits(task, options)
            print_table("Whole fits", results["fits"])
            results["limits"] = [limits(task, k, options) for k in options.topics]
            print_table("One batch against its limits", results["limits"])
    if options.generate:
        started = time.perf_counter()
        corpus, topics = generate(options.generate + options.test_documents)
        print(f"\ngenerated {corpus.shape[0]} documents in {time.perf_counter() - started:.0f} s")
        task = prepare(corpus, options)
        if options.ways:
            pairs = (compare_ways(task, k, options) for k in options.topics)
            results["generated"] = [row for pair in pairs for row in pair]
        else:
            results["generated"] = measure_fits(task, options)
        print_table("Whole fits, generated corpus", results["generated"])
        results["levels"] = levels(task, topics)
        print_table("What those scores lie between", results["levels"])
    write_json(options.json, results)


def measure_fits(task: Task, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of a table: each number of topics on the GPU, and on the CPU where asked for."""
    rows = []
    for n_topics in options.topics:
        size, tolerance = options.batch_size, options.tolerance
        rows.append(fit_on_gpu(task, n_topics, size, tolerance))
        tight = fit_on_gpu(task, n_topics, size, tolerance / 100, repeats=0)
        rows[-1]["score, tight"] = tight["score"]
        print(rows[-1], flush=True)
        if options.cpu:
            rows.append(fit_on_cpu(task, n_topics, options.batch_size, options.tolerance))
            print(rows[-1], flush=True)
    return rows


def levels(task: Task, topics: np.ndarray) -> list[dict[str, Any]]:
    """Scores of the true topics, and of the frequencies of words: what it is to learn nothing."""
    frequencies = np.asarray(task.train.sum(axis=0, dtype=np.float64)).ravel() + 0.05
    known = {"true topics": topics.T, "frequencies of words": frequencies[:, None]}
    return [
        {"what": name, "score": score(task, own), "exact": exact_score(task, own)}
        for name, own in known.items()
    ]


def fit_on_gpu(
    task: Task, n_topics: int, batch_size: int, tolerance: float, repeats: int = REPEATS
) -> dict[str, Any]:
    """Time to compile and fit, then the median time to fit; the score of the last fit."""
    model = new_model(task, n_topics, tolerance)
    policy = HEAT
    seconds, compiled = [], []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        result = fit_on_device(
            model,
            task.train,
            temperature=policy,
            learning_rate=RATES,
            batch_size=batch_size,
            max_passes=task.passes,
        )
        seconds.append(time.perf_counter() - started)
        compiled.append(steps_of(model, default_kernel()).n_compiled())
    fitted = float(np.median(seconds[1:] or seconds))
    return {
        "where": default_kernel(),
        "update": model.update,
        "topics": n_topics,
        "batch": batch_size,
        "tolerance": tolerance,
        "start T": 1.0 / result.history[0].inverse_temperature,
        "first fit, s": seconds[0],
        "fit, s": fitted,
        "documents/s": task.visits / fitted,
        "tokens/s": task.tokens / fitted,
        "compiled": compiled[0],
        "compiled later": compiled[-1] - compiled[0],
        "score": score(task, result.posterior.parameters()),
        "exact": exact_score(task, result.posterior.parameters()),
    }


def fit_on_cpu(task: Task, n_topics: int, batch_size: int, tolerance: float) -> dict[str, Any]:
    """The same fit by the CPU kernels, on all cores; and on the GPU from the same topics."""
    cores = os.cpu_count() or 1
    model = new_model(task, n_topics, tolerance, n_threads=cores)
    start = model.initialize(cast(Any, None), np.random.default_rng(0))
    common: dict[str, Any] = {
        "temperature": HEAT,
        "learning_rate": RATES,
        "batch_size": batch_size,
        "max_passes": task.passes,
        "initial": start,
    }
    on_gpu = fit_on_device(model, task.train, **common)
    started = time.perf_counter()
    result = fit(
        model,
        task.train,
        n_threads=1,
        elbo_every=10**9,
        final_elbo=False,
        progress=False,
        **common,
    )
    seconds = time.perf_counter() - started
    return {
        "where": f"{cores} cores",
        "topics": n_topics,
        "batch": batch_size,
        "tolerance": tolerance,
        "fit, s": seconds,
        "documents/s": task.visits / seconds,
        "tokens/s": task.tokens / seconds,
        "score": score(task, result.posterior.parameters()),
        "score, GPU": score(task, on_gpu.posterior.parameters()),
    }


def study_batches(task: Task, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time and score at equal visits, by the size of the batches."""
    rows = []
    for batch_size in options.batches:
        row = fit_on_gpu(task, options.study, batch_size, options.tolerance, repeats=1)
        rows.append(row)
        print(row, flush=True)
    return rows


def print_device() -> None:
    """What this runs on."""
    import jax

    print(f"{time.strftime('%Y-%m-%d')}, JAX {jax.__version__}, {jax.devices()[0].device_kind}")


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", type=Path, help="counts, a file of scipy.sparse.save_npz")
    parser.add_argument("--generate", type=int, default=0, help="documents to generate")
    parser.add_argument("--documents", type=int, help="documents to learn from; all by default")
    parser.add_argument("--topics", type=int, nargs="+", default=[100, 500, 1000])
    parser.add_argument("--passes", type=float, default=2.0)
    parser.add_argument("--batch-size", type=int, default=8192)
    parser.add_argument("--tolerance", type=float, default=1e-2)
    parser.add_argument("--test-documents", type=int, default=10_000)
    parser.add_argument("--cpu", action="store_true", help="the same fits on the CPU")
    parser.add_argument("--ways", action="store_true", help="corpus kept, sent, learned; the ELBO")
    parser.add_argument("--race", action="store_true", help="CPU and GPU to one score")
    parser.add_argument("--tolerances", action="store_true", help="loose and tight, over seeds")
    parser.add_argument("--study", type=int, help="number of topics to study batch sizes with")
    parser.add_argument("--batches", type=int, nargs="+", default=STUDIED_BATCHES)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
