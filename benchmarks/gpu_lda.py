"""Whole fits of topic models on a GPU: speed, score against the CPU, batch sizes, limits.

    python benchmarks/gpu_lda.py --corpus arxiv.npz [--topics 100 500 1000] [--passes 2]
    python benchmarks/gpu_lda.py --corpus arxiv.npz --cpu          # the same fits on the CPU too
    python benchmarks/gpu_lda.py --corpus arxiv.npz --study 100    # batch sizes, with 100 topics
    python benchmarks/gpu_lda.py --generate 3600000                # a corpus of known topics

A time is that of a whole fit, from a CSR matrix on the host to topics on the host: the corpus sent,
the topics drawn, all steps. The first fit of a shape compiles, and is timed by itself. Scores are
held-out nats a word by document completion, on documents that no fit has seen: with mean-field
proportions at α = 1/K, and with their exact posterior mean (Gibbs) at α = 0.1.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from lda_common import load_corpus, print_table, write_json
from tempering.datasets import LDAStream
from tempering.evaluation import Split, completion_score, split_documents
from tempering.inference import RobbinsMonro, fit
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.start import document_contrast, starting_inverse_temperature
from tempering.scale.device_fit import fit_on_device, steps_of
from tempering.scale.groups import cut_into_groups, fill_rectangle
from tempering.scale.jax_functions import NEVER, pad_topics
from tempering.scale.solver import compiled_solver, default_kernel, settings_of
from tempering.temperature import Annealing, schedules

RATES = RobbinsMonro(16.0, 0.7)
STUDIED_BATCHES = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
REPEATS = 3
EXACT_DOCUMENTS = 2000
#: Operations a second in float32 outside the matrix units, from the data sheet of an H200.
H200_OPERATIONS = 67e12
GENERATED_WORDS, GENERATED_TOPICS, GENERATED_LENGTH = 20_000, 200, 100.0
DOCUMENTS_AT_ONCE = 65_536


class Task(NamedTuple):
    """Documents to learn from and to test on."""

    train: sparse.csr_matrix
    test: Split
    passes: float

    @property
    def visits(self) -> float:
        return self.train.shape[0] * self.passes

    @property
    def tokens(self) -> float:
        return float(self.train.sum(dtype=np.float64)) * self.passes


def main() -> None:
    """Run the parts that were asked for."""
    options = _parse_options()
    print_device()
    results: dict[str, Any] = {"options": {**vars(options), "json": None}}
    if options.corpus is not None:
        task = prepare(load_corpus(options.corpus), options)
        if options.study is None:
            results["fits"] = measure_fits(task, options)
            print_table("Whole fits", results["fits"])
            results["limits"] = [limits(task, k, options) for k in options.topics]
            print_table("One batch against its limits", results["limits"])
        else:
            results["study"] = study_batches(task, options)
            print_table(f"Batch sizes, {options.study} topics", results["study"])
    if options.generate:
        started = time.perf_counter()
        corpus = generate(options.generate + options.test_documents)
        print(f"\ngenerated {corpus.shape[0]} documents in {time.perf_counter() - started:.0f} s")
        task = prepare(corpus, options)
        results["generated"] = measure_fits(task, options)
        print_table("Whole fits, generated corpus", results["generated"])
    write_json(options.json, results)


def prepare(corpus: sparse.csr_matrix, options: argparse.Namespace) -> Task:
    """The last documents are for the test."""
    cut = corpus.shape[0] - options.test_documents
    test = split_documents(corpus[cut:], seed=0)
    cut = min(cut, options.documents or cut)
    task = Task(corpus[:cut], test, options.passes)
    print(
        f"{cut} documents, {corpus.shape[1]} words, {task.tokens / options.passes:.4g} tokens, "
        f"{task.train.nnz} entries; {options.passes:g} passes"
    )
    return task


def new_model(task: Task, n_topics: int, tolerance: float, n_threads: int = 1) -> LatentDirichlet:
    """As the estimator makes it by default."""
    return LatentDirichlet(
        n_topics,
        task.train.shape[1],
        1.0 / n_topics,
        1.0 / n_topics,
        update="mean",
        tolerance=tolerance,
        n_threads=n_threads,
    )


def automatic_policy(task: Task, model: LatentDirichlet, batch_size: int) -> Annealing:
    """The start that the estimator computes, cooled over 80% of the run."""
    contrast = document_contrast(task.train, np.random.default_rng(0))
    n_steps = int(np.ceil(task.train.shape[0] / batch_size) * task.passes)
    start = starting_inverse_temperature(
        contrast,
        float(model.doc_topic_prior.mean()),
        task.tokens / task.visits / model.n_topics,
        sum(RATES(t) for t in range(1, n_steps + 1)),
        sweeps=model.min_iterations,
    )
    return Annealing(schedules.linear_inverse(1.0 / start), fraction=0.8)


def measure_fits(task: Task, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of a table: each number of topics on the GPU, and on the CPU where asked for."""
    rows = []
    for n_topics in options.topics:
        rows.append(fit_on_gpu(task, n_topics, options.batch_size, options.tolerance))
        tight = fit_on_gpu(task, n_topics, options.batch_size, options.tolerance / 100, repeats=1)
        rows[-1]["score, tight"] = tight["score"]
        print(rows[-1], flush=True)
        if options.cpu:
            rows.append(fit_on_cpu(task, n_topics, options.batch_size, options.tolerance))
            print(rows[-1], flush=True)
    return rows


def fit_on_gpu(
    task: Task, n_topics: int, batch_size: int, tolerance: float, repeats: int = REPEATS
) -> dict[str, Any]:
    """Time to compile and fit, then the median time to fit; score of the last fit."""
    model = new_model(task, n_topics, tolerance)
    policy = automatic_policy(task, model, batch_size)
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
    fitted = float(np.median(seconds[1:]))
    return {
        "where": default_kernel(),
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
        "score, Gibbs": exact_score(task, result.posterior.parameters()),
    }


def fit_on_cpu(task: Task, n_topics: int, batch_size: int, tolerance: float) -> dict[str, Any]:
    """The same fit by the CPU kernels, on all cores; and on the GPU from the same topics."""
    cores = os.cpu_count() or 1
    model = new_model(task, n_topics, tolerance, n_threads=cores)
    start = model.initialize(cast(Any, None), np.random.default_rng(0))
    common: dict[str, Any] = {
        "temperature": automatic_policy(task, model, batch_size),
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


def score(task: Task, parameters: np.ndarray) -> float:
    """Held-out nats a word, with mean-field proportions at α = 1/K."""
    topics = (parameters / parameters.sum(axis=0)).T
    return completion_score(*task.test, topics, 1.0 / len(topics), "vi")


def exact_score(task: Task, parameters: np.ndarray) -> float:
    """The same with the exact posterior mean of the proportions (Gibbs) at α = 0.1, on fewer."""
    topics = (parameters / parameters.sum(axis=0)).T
    observed, held_out = (part[:EXACT_DOCUMENTS] for part in task.test)
    return completion_score(observed, held_out, topics, 0.1, "gibbs")


def study_batches(task: Task, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time and score at equal visits, by the size of the batches."""
    rows = []
    for batch_size in options.batches:
        row = fit_on_gpu(task, options.study, batch_size, options.tolerance, repeats=1)
        rows.append(row)
        print(rows[-1], flush=True)
    return rows


def limits(task: Task, n_topics: int, options: argparse.Namespace) -> dict[str, Any]:
    """One batch at T = 1 with fitted topics: its time, and the least that its work could take."""
    model = new_model(task, n_topics, options.tolerance)
    result = fit_on_device(
        model, task.train, learning_rate=RATES, batch_size=options.batch_size, max_passes=1
    )
    parameters = result.posterior.parameters()
    table = pad_topics(np.log(parameters / parameters.sum(axis=0)), NEVER)
    rows = np.arange(min(options.batch_size, task.train.shape[0]))
    lengths = np.diff(task.train.indptr)
    (group,) = cut_into_groups(lengths, rows, rows.size)
    matrix = task.train.indptr, task.train.indices, task.train.data
    words = fill_rectangle(*matrix, group, model.n_words)
    mass = np.repeat(words.counts.sum(axis=1, keepdims=True) / n_topics, n_topics, axis=1)
    alpha = pad_topics(model.doc_topic_prior, 1.0)
    arguments = _on_device(
        *words, np.ones(rows.size, np.float32), pad_topics(mass, 0.0), table, alpha
    )
    solve = compiled_solver(default_kernel(), settings_of(model))
    solved, seconds = median_seconds(solve, *arguments)
    sweeps = np.asarray(solved.sweeps)
    # Each sweep, and the two passes for normalisers and statistics, weighs every word's topics.
    weighed = float(((sweeps + 2) * lengths[group.rows]).sum()) * n_topics
    least_bytes = 2 * table.nbytes + 2 * sum(np.asarray(a).nbytes for a in words) + 2 * mass.nbytes
    bandwidth = copy_bandwidth()
    return {
        "topics": n_topics,
        "batch": rows.size,
        "mean sweeps": float(sweeps.mean()),
        "most": int(sweeps.max()),
        "ms": 1e3 * seconds,
        "documents/s": rows.size / seconds,
        "least bytes, GB": least_bytes / 1e9,
        "copy, TB/s": bandwidth / 1e12,
        "bytes limit, ms": 1e3 * least_bytes / bandwidth,
        "operations, G": 4 * weighed / 1e9,
        "operations limit, ms": 1e3 * 4 * weighed / H200_OPERATIONS,
        "exponentials, G": weighed / 1e9,
        "cache read, TB/s": 4 * weighed / seconds / 1e12,
    }


def copy_bandwidth() -> float:
    """Bytes read and written in a second by a large copy on the device."""
    import jax

    (numbers,) = _on_device(np.random.default_rng(0).random(1 << 28, dtype=np.float32))
    _, seconds = median_seconds(jax.jit(lambda x: x + 1.0), numbers)
    return 2 * numbers.nbytes / seconds


def median_seconds(work: Any, *arguments: Any, repeats: int = 20) -> tuple[Any, float]:
    """What a compiled function returns, and its median time after a first call."""
    import jax

    result = jax.block_until_ready(work(*arguments))
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(work(*arguments))
        seconds.append(time.perf_counter() - started)
    return result, float(np.median(seconds))


def generate(n_documents: int) -> sparse.csr_matrix:
    """Documents drawn from LDA on the device, with the topics of :class:`LDAStream`."""
    import jax
    import jax.numpy as jnp

    stream = LDAStream(1, GENERATED_TOPICS, GENERATED_WORDS, eta=0.05)
    ends = np.cumsum(stream.topics, axis=1)
    ends = jnp.asarray(ends / ends[:, -1:], jnp.float32)
    places = int(GENERATED_LENGTH + 6 * np.sqrt(GENERATED_LENGTH))

    def search(rows, row, position):
        """The first place in a row of rising numbers that is above the position."""
        low = jnp.zeros(position.shape, jnp.int32)
        high = jnp.full(position.shape, rows.shape[1] - 1, jnp.int32)
        for _ in range(int(rows.shape[1]).bit_length()):
            middle = (low + high) // 2
            above = rows[row, middle] > position
            low, high = jnp.where(above, low, middle + 1), jnp.where(above, middle, high)
        return jnp.minimum(low, rows.shape[1] - 1)

    @jax.jit
    def draw(key):
        keys = jax.random.split(key, 4)
        shape = (DOCUMENTS_AT_ONCE, places)
        gammas = jax.random.gamma(keys[0], 0.1, (shape[0], GENERATED_TOPICS)) + 1e-20
        theta = jnp.cumsum(gammas / gammas.sum(axis=1, keepdims=True), axis=1)
        own = jnp.broadcast_to(jnp.arange(shape[0])[:, None], shape)
        topic = search(theta, own, jax.random.uniform(keys[1], shape) * theta[:, -1:])
        word = search(ends, topic, jax.random.uniform(keys[2], shape))
        length = jnp.clip(jax.random.poisson(keys[3], GENERATED_LENGTH, shape[:1]), 1, places)
        word = jnp.where(jnp.arange(places) < length[:, None], word, GENERATED_WORDS)
        word = jnp.sort(word, axis=1)
        first = jnp.pad(word[:, 1:] != word[:, :-1], ((0, 0), (1, 0)), constant_values=True)
        return word.astype(jnp.int32), first & (word < GENERATED_WORDS)

    pieces = []
    for number in range(-(-n_documents // DOCUMENTS_AT_ONCE)):
        word, first = map(np.asarray, draw(jax.random.key(number)))
        flat = first.ravel()
        begins = np.flatnonzero(flat)
        # A word's count is the way to the next first place, or to the end of the document's words.
        ends_of = np.append(begins[1:], flat.size)
        own_row = begins // places
        last = own_row * places + (word < GENERATED_WORDS).sum(axis=1)[own_row]
        counts = np.minimum(ends_of, last) - begins
        indptr = np.append(0, np.cumsum(first.sum(axis=1)))
        shape = (word.shape[0], GENERATED_WORDS)
        pieces.append(sparse.csr_matrix((counts.astype(np.uint8), word[first], indptr), shape))
    return sparse.csr_matrix(sparse.vstack(pieces, format="csr")[:n_documents])


def print_device() -> None:
    """What this runs on."""
    import jax

    print(f"{time.strftime('%Y-%m-%d')}, JAX {jax.__version__}, {jax.devices()[0].device_kind}")


def _on_device(*arrays: Any) -> list[Any]:
    import jax

    return [jax.device_put(array) for array in arrays]


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
    parser.add_argument("--study", type=int, help="number of topics to study batch sizes with")
    parser.add_argument("--batches", type=int, nargs="+", default=STUDIED_BATCHES)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
