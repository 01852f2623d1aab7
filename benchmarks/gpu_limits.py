"""One batch on the GPU against the least time that its bytes and its operations could take."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np

from gpu_tasks import RATES, Task, new_model
from tempering.gpu.compiled_steps import default_kernel, group_functions, settings_of
from tempering.gpu.device_data import DeviceCorpus, cut_into_groups
from tempering.gpu.device_lda import fit_on_device
from tempering.gpu.jax_functions import NEVER, SMALLEST_PARAMETER, pad_topics
from tempering.models.lda.model import LatentDirichlet

#: Operations a second in float32 outside the matrix units, from the data sheet of an H200.
H200_OPERATIONS = 67e12


def limits(task: Task, n_topics: int, options: argparse.Namespace) -> dict[str, Any]:
    """One batch at T = 1 with fitted topics: its time, and the least that its work could take."""
    import jax

    model = new_model(task, n_topics, options.tolerance)
    result = fit_on_device(
        model, task.train, learning_rate=RATES, batch_size=options.batch_size, max_passes=1
    )
    parameters = result.posterior.parameters()
    table = pad_topics(np.log(parameters / parameters.sum(axis=0)), NEVER)
    rows = np.arange(min(options.batch_size, task.train.shape[0]))
    lengths = np.diff(task.train.indptr)
    (group,) = cut_into_groups(lengths, rows, rows.size)
    words = DeviceCorpus(task.train, False).rectangle(group)
    mass = np.repeat(words.counts.sum(axis=1, keepdims=True) / n_topics, n_topics, axis=1)
    alpha = pad_topics(model.doc_topic_prior, SMALLEST_PARAMETER)
    arguments = _on_device(*words, np.float32(1.0), pad_topics(mass, 0.0), table, alpha)
    solve = jax.jit(partial(group_functions(default_kernel())[0], settings=settings_of(model)))
    solved, seconds = median_seconds(solve, *arguments)
    waited_for = median_seconds(solve, *arguments, at_once=1)[1]
    sweeps = np.asarray(solved[2])
    # Each sweep, and the two passes for normalisers and statistics, weighs every word's topics. The
    # kernels leave out topics in most of them; the limit is that of the whole sweeps.
    weighed = float(((sweeps + 2) * lengths[group.rows]).sum()) * n_topics
    least_bytes = 2 * table.nbytes + 2 * sum(np.asarray(a).nbytes for a in words) + 2 * mass.nbytes
    bandwidth = copy_bandwidth()
    sampled = sampling_seconds(task, model, rows, table)
    return {
        "topics": n_topics,
        "batch": rows.size,
        "mean sweeps": float(sweeps.mean()),
        "most": int(sweeps.max()),
        "ms": 1e3 * seconds,
        "ms, if waited for": 1e3 * waited_for,
        "documents/s": rows.size / seconds,
        "sampled, ms": 1e3 * sampled,
        "sampled, documents/s": rows.size / sampled,
        "least bytes, GB": least_bytes / 1e9,
        "copy, TB/s": bandwidth / 1e12,
        "bytes limit, ms": 1e3 * least_bytes / bandwidth,
        "operations, G": 4 * weighed / 1e9,
        "operations limit, ms": 1e3 * 4 * weighed / H200_OPERATIONS,
        "exponentials, G": weighed / 1e9,
        "cache read, TB/s": 4 * weighed / seconds / 1e12,
        "rows read once, ms": 1e3 * reading_seconds(words, table),
    }


def sampling_seconds(task: Task, model: LatentDirichlet, rows: Any, table: Any) -> float:
    """The time to sample the topics of the same documents."""
    import jax

    sample = jax.jit(group_functions(default_kernel())[1])
    alpha = pad_topics(model.doc_topic_prior, SMALLEST_PARAMETER)
    corpus, seconds = DeviceCorpus(task.train, False), 0.0
    for group in cut_into_groups(corpus.tokens, rows, rows.size):
        words = corpus.rectangle(group)
        seconds += median_seconds(sample, *_on_device(*words, table, alpha))[1]
    return seconds


def reading_seconds(words: Any, table: Any) -> float:
    """The time to read the row of each word of the documents once, and do no more than add it up.

    Each sweep over all topics reads them, as do the statistics: it is what memory allows.
    """
    import jax

    columns = np.asarray(words[0]).ravel()
    entries = columns[columns < table.shape[0]]
    read = jax.jit(lambda table, entries: table[entries].sum(axis=0))
    return median_seconds(read, *_on_device(table, entries))[1]


def copy_bandwidth() -> float:
    """Bytes read and written in a second by a large copy on the device."""
    import jax

    (numbers,) = _on_device(np.random.default_rng(0).random(1 << 28, dtype=np.float32))
    _, seconds = median_seconds(jax.jit(lambda x: x + 1.0), numbers)
    return 2 * numbers.nbytes / seconds


def median_seconds(work: Any, *arguments: Any, at_once: int = 10) -> tuple[Any, float]:
    """What a compiled function returns, and its median time on the device after a first call.

    As in a fit, the host starts several calls before it waits: else its own time would be part.
    """
    import jax

    result = jax.block_until_ready(work(*arguments))
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        for _ in range(at_once):
            result = work(*arguments)
        jax.block_until_ready(result)
        seconds.append((time.perf_counter() - started) / at_once)
    return result, float(np.median(seconds))


def _on_device(*arrays: Any) -> list[Any]:
    import jax

    return [jax.device_put(array) for array in arrays]
