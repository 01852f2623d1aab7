"""Ways to fit topics: where the corpus is, who drives, who is there first."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from joblib import cpu_count

from gpu_tasks import HEAT, RATES, Task, new_model, score
from tempering import LatentDirichletAllocation
from tempering.estimators.topic_transformer import POLICIES
from tempering.gpu.compiled_steps import default_kernel
from tempering.gpu.device_data import CorpusSource
from tempering.gpu.device_lda import DeviceLatentDirichlet, fit_on_device
from tempering.gpu.device_topics import DeviceTopics
from tempering.gpu.jax_device import has_gpu
from tempering.inference import ArraySource, Report, evaluate_elbo

#: Documents whose ELBO is computed.
BOUND_DOCUMENTS = 20_000

#: A fit is there when its score is so near to the best that the CPU came to, in nats a word.
NEAR = 0.01

#: Policies that learn temperatures, by the names that the estimator knows.
LEARNED_TEMPERATURES = ("variational", "local")

#: Seeds over which tolerances are compared.
SEEDS = 5

#: Scores that are taken during a pass.
SCORES_A_PASS = 1


def compare_ways(task: Task, n_topics: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of a table: the same fit with the corpus on the device, and sent; and what is learned.

    Temperatures and priors are learned on the host, which waits for the device for them.
    """
    model = new_model(task, n_topics, options.tolerance)
    priors = copy(model)
    priors.learn_doc_topic_prior = priors.learn_topic_word_prior = True
    common: dict[str, Any] = {
        "learning_rate": RATES,
        "batch_size": options.batch_size,
        "max_passes": task.passes,
    }
    scheduled = {"temperature": HEAT, **common}
    ways: dict[str, Callable[[Any], Any]] = {
        "corpus on the device": partial(fit_on_device, model, resident=True, **scheduled),
        "corpus sent": partial(fit_on_device, model, resident=False, **scheduled),
        "learned priors": partial(fit_on_device, priors, **scheduled),
    }
    for name in LEARNED_TEMPERATURES:
        ways[f"{name} tempering"] = partial(
            fit_on_device, model, temperature=POLICIES[name](), **common
        )
    rows, posteriors = [], []
    for name, run in ways.items():
        seconds = []
        for _ in range(3):
            started = time.perf_counter()
            result = run(task.train)
            seconds.append(time.perf_counter() - started)
        fitted = float(np.median(seconds[1:]))
        posteriors.append(result.posterior.parameters())
        rows.append(
            {
                "way": name,
                "topics": n_topics,
                "first fit, s": seconds[0],
                "fit, s": fitted,
                "documents/s": task.visits / fitted,
                "score": score(task, posteriors[-1]),
                "same bits as the first": str(np.array_equal(posteriors[0], posteriors[-1])),
            }
        )
        print(rows[-1], flush=True)
    return rows


class Stopwatch:
    """A callback that takes scores during a fit, and does not count the time for them."""

    def __init__(self, task: Task):
        self._task = task
        self._next = 0.0
        self._paused = 0.0
        self._started = time.perf_counter()
        self.scores: list[tuple[float, float]] = []  # seconds, nats a word

    def __call__(self, report: Report) -> None:
        if report.record.passes < self._next and report.record.passes < report.planned_passes:
            return
        self._next = report.record.passes + 1.0 / SCORES_A_PASS
        parameters = report.posterior.parameters()
        paused = time.perf_counter()
        elapsed = paused - self._started - self._paused
        self.scores.append((elapsed, score(self._task, parameters)))
        self._paused += time.perf_counter() - paused

    def time_to(self, target: float) -> float:
        """Seconds until a score was first as good."""
        return next((seconds for seconds, value in self.scores if value >= target), np.inf)


def race(task: Task, n_topics: int) -> list[dict[str, Any]]:
    """The estimator with all its defaults on the CPU and on the GPU, to the score of the CPU."""
    gpu: Any = "gpu" if has_gpu() else "jax"

    def whole_fit(backend: Any, watch: Stopwatch | None = None) -> tuple[Any, float]:
        started = time.perf_counter()
        lda = LatentDirichletAllocation(n_topics, backend=backend, random_state=0)
        lda.fit(task.train, callbacks=[] if watch is None else [watch])
        return lda, time.perf_counter() - started

    first = whole_fit(gpu)[1]  # compiles
    alone = whole_fit(gpu)[1]  # without callbacks, for which the host would have to wait
    rows = []
    for where, backend in ((f"{cpu_count()} cores", "cpu"), ("GPU", gpu)):
        watch = Stopwatch(task)
        lda, _ = whole_fit(backend, watch)
        seconds, final = watch.scores[-1]
        best = rows[0]["final score"] if rows else final
        rows.append(
            {
                "where": where,
                "topics": n_topics,
                "steps": lda.n_batch_iter_,
                "passes": lda.n_iter_,
                "target": best - NEAR,
                "to the target, s": watch.time_to(best - NEAR),
                "whole fit, s": seconds,
                "final score": final,
                "above the CPU": final - best,
            }
        )
        print(rows[-1], flush=True)
    rows[1] |= {"without callbacks, s": alone, "the first, s": first}
    return rows


def compare_tolerances(
    task: Task, n_topics: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Rows of a table: the scores of fits with a loose and with a tight tolerance, seed by seed."""
    rows = []
    for tolerance in (options.tolerance, options.tolerance / 100):
        model = new_model(task, n_topics, tolerance)
        policy = HEAT
        scores = []
        for seed in range(SEEDS):
            result = fit_on_device(
                model,
                task.train,
                temperature=policy,
                learning_rate=RATES,
                batch_size=options.batch_size,
                max_passes=task.passes,
                seed=seed,
            )
            scores.append(score(task, result.posterior.parameters()))
        rows.append(
            {
                "topics": n_topics,
                "tolerance": tolerance,
                "mean score": float(np.mean(scores)),
                "deviation": float(np.std(scores, ddof=1)),
                "scores": " ".join(f"{value:.4f}" for value in scores),
            }
        )
        print(rows[-1], flush=True)
    return rows


def compare_bounds(task: Task, n_topics: int, options: argparse.Namespace) -> dict[str, Any]:
    """The ELBO of the same topics on the same documents, by the CPU and by the device."""
    model = new_model(task, n_topics, 1e-4, n_threads=cpu_count())
    result = fit_on_device(
        model,
        task.train,
        temperature=HEAT,
        learning_rate=RATES,
        batch_size=options.batch_size,
        max_passes=task.passes,
    )
    topics, data = result.posterior, task.train[:BOUND_DOCUMENTS]
    started = time.perf_counter()
    on_cpu = evaluate_elbo(model, topics, ArraySource(data, options.batch_size))
    cpu_seconds = time.perf_counter() - started
    on_device = DeviceLatentDirichlet.of(model, default_kernel())
    placed = DeviceTopics.of(topics)
    source = CorpusSource(data, options.batch_size)
    evaluate_elbo(on_device, placed, source)
    started = time.perf_counter()
    on_gpu = evaluate_elbo(on_device, placed, source)
    return {
        "topics": n_topics,
        "ELBO, CPU": on_cpu,
        "ELBO, GPU": on_gpu,
        "relative difference": abs(on_gpu / on_cpu - 1.0),
        "nats a word": (on_gpu - on_cpu) / float(data.sum(dtype=np.float64)),
        "CPU, s": cpu_seconds,
        "GPU, s": time.perf_counter() - started,
    }
