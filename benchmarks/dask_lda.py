"""Topics on a Dask cluster of this machine: what it costs, and what it gains.

    python benchmarks/dask_lda.py                        # speed, with 1, 2 and 4 worker processes
    python benchmarks/dask_lda.py --memory 100000 1000000    # memory of the client

Speed: steps of 4,096 documents at K = 100, of a corpus drawn from the model (10,000 words, 100 a
document), in Parquet, read by the workers, with the estimator's default: half of the blocks of
steps are tempered, in the others T = 1 and topics are sampled (40% and 60% of a whole fit). The
clusters take turns, a block of steps each, so that a load on the machine meets all of them; medians
are told, with the smallest and largest. Below stands what the formula of lab/ makes of
the figures of one worker. Dask's own profiler is off on the workers, as the lab advises.

Memory: the largest resident memory of the process that runs the fit, one pass over corpora of these
sizes, with the scheduler and two workers in processes of their own.

Both print the seconds of the clock and of the processor: on a machine with other work the first are
too long.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path


import numpy as np
from distributed import Client
from joblib import cpu_count

from tempering.corpus import open_source, write
from tempering.datasets import LDAStream
from tempering.estimators.recipe import RULES, Size
from tempering.inference import Algorithm, RobbinsMonro
from tempering.inference.executors import Serial, open_executor
from tempering.models.lda.model import LatentDirichlet
from tempering.temperature import Annealing, schedules
from tempering.cluster import DaskExecutor

TOPICS, WORDS, LENGTH = 100, 10_000, 100.0
WARM_UP = 3


def corpus(folder, n_documents):
    """A Parquet file of documents, made once."""
    path = Path(folder) / f"lda-{n_documents}.parquet"
    if not path.exists():
        write(path, LDAStream(n_documents, TOPICS, WORDS, LENGTH, seed=0))
    return path


CLUSTER = """
import sys
import dask
from distributed import LocalCluster
if __name__ == "__main__":
    dask.config.set({"distributed.worker.profile.enabled": False})
    cluster = LocalCluster(
        n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@contextmanager
def cluster(folder, n_workers):
    """The address of a scheduler, in a process of its own as are its workers."""
    script = Path(folder) / "cluster.py"
    script.write_text(CLUSTER)
    process = subprocess.Popen(
        [sys.executable, str(script), str(n_workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process.stdout.readline().strip()
    process.stdin.close()
    process.wait()


class Run:
    """A fit of so many steps that is made a few at a time, tempered in the first half of them."""

    def __init__(self, path, batch_size, n_steps, n_workers):
        source = open_source(path, batch_size)
        alpha = RULES.doc_topic_prior(TOPICS, "sampled", LENGTH)
        power = RULES.word_power(Size(TOPICS, source.size, LENGTH, alpha * TOPICS))
        options = {"update": "sampled", "word_power": power, "mean_length": LENGTH}
        model = LatentDirichlet(TOPICS, WORDS, alpha, 1 / TOPICS, **options)
        rates = RobbinsMonro(16.0, 0.7)
        self.algorithm = Algorithm(
            model,
            Annealing(schedules.linear_inverse(2.0), fraction=0.5),
            rates,
            Serial(),
            source.size,
            planned_passes=n_steps * batch_size / source.size,
        )
        rng = np.random.default_rng(0)
        self.state = self.algorithm.start(model.initialize(source, rng), rng)
        self.n_workers = n_workers
        self.source = source.by_reference() if n_workers else source
        self.batches = self.source.batches(0)
        self.seconds = {True: [], False: []}  # of tempered steps and others
        self.processor = {True: [], False: []}
        self.busy = []  # seconds that the busiest worker of each step computed

    def block(self, folder, n_steps):
        """Some steps on a cluster of their own: an idle one would take a part of the cores."""
        if not self.n_workers:
            return self.steps(n_steps, self.algorithm, time.process_time, lambda since: 0.0)
        with (
            cluster(folder, self.n_workers) as address,
            Client(address, set_as_default=False) as client,
        ):
            client.wait_for_workers(self.n_workers)
            executor = DaskExecutor(client)
            client.get_task_stream()  # recorded from here on
            with executor.reading(self.source):
                self.steps(
                    n_steps,
                    replace(self.algorithm, executor=executor),
                    lambda: time.process_time() + sum(client.run(time.process_time).values()),
                    lambda since: busiest(client.get_task_stream(start=since)),
                )

    def steps(self, n_steps, algorithm, processor_seconds, busy_seconds):
        """Some steps; the times are kept, but for the first ones."""
        with open_executor(algorithm.executor, 1):
            for number in range(n_steps):
                before, since, started = processor_seconds(), time.time(), time.perf_counter()
                step = algorithm.advance(self.state, next(self.batches), evaluate=False)
                self.state = step.state
                if number >= WARM_UP:
                    tempered = bool(np.mean(self.state.heat.inverse_temperature) < 1.0)
                    self.seconds[tempered].append(time.perf_counter() - started)
                    self.processor[tempered].append(processor_seconds() - before)
                    self.busy.append(busy_seconds(since))


def busiest(tasks):
    """Seconds that the busiest worker computed."""
    seconds = Counter()
    for task in tasks:
        for phase in task["startstops"]:
            if phase["action"] == "compute":
                seconds[task["worker"]] += phase["stop"] - phase["start"]
    return max(seconds.values())


def measure_speed(folder, batch_size, workers, blocks, steps):
    path = corpus(folder, 16 * batch_size)
    runs = {n: Run(path, batch_size, blocks * steps, n) for n in (0, *workers)}
    for _ in range(blocks):
        for run in runs.values():
            run.block(folder, steps)
    parameters = [run.state.posterior.parameters() for run in runs.values()]
    assert all(np.array_equal(parameters[0], other) for other in parameters), "bits differ"
    report(runs, batch_size)


def report(runs, batch_size):
    print(f"{batch_size} documents a step, K = {TOPICS}, V = {WORDS}, {cpu_count()} cores; the")
    print("same bits from all of them. Seconds a step: median (smallest-largest).")
    for tempered in (True, False):
        print("\nTempered steps\n" if tempered else "\nSteps at T = 1, sampled\n")
        print("| workers | s a step | CPU s | documents/s | speed-up |")
        print("|---|---|---|---|---|")
        one = statistics.median(runs[1].seconds[tempered])
        for n, run in runs.items():
            seconds, processor = run.seconds[tempered], run.processor[tempered]
            middle = statistics.median(seconds)
            cells = [f"{middle:.3f} ({min(seconds):.3f}-{max(seconds):.3f})"]
            cells += [f"{statistics.median(processor):.3f}", f"{batch_size / middle:,.0f}"]
            print(f"| {n or 'none'} | {' | '.join(cells)} | {one / middle:.2f} |")
    print("\n| workers | communication | mean s | by the formula |")
    print("|---|---|---|---|")
    for n, run in runs.items():
        if n:
            busy = statistics.mean(run.busy)
            seconds = statistics.mean(run.seconds[True] + run.seconds[False])
            if n == 1:
                work, rest = busy, seconds - busy
            # 2 P / w and t_0 are not told apart here: both are in the rest of one worker's step.
            predicted = work / min(n, cpu_count()) + rest
            print(f"| {n} | {1 - busy / seconds:.0%} | {seconds:.3f} | {predicted:.3f} |")


CLIENT = """
import json, os, resource, sys, time
from tempering import LatentDirichletAllocation
from tempering.corpus import open_source
from tempering.cluster import DaskExecutor

path, address, batch_size = sys.argv[1], sys.argv[2], int(sys.argv[3])
executor = DaskExecutor(address)
memory = []

def watch(report):
    with open("/proc/self/statm") as file:
        memory.append(int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6)

started = time.perf_counter()
lda = LatentDirichletAllocation(100, max_iter=1, random_state=0, n_jobs=1, executor=executor)
lda.fit(open_source(path, batch_size), callbacks=[watch])
print(json.dumps({
    "seconds": time.perf_counter() - started,
    "steps": len(memory),
    "after": [memory[min(n, len(memory)) - 1] for n in (10, len(memory) // 2, len(memory))],
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
}))
"""


def measure_memory(folder, sizes, batch_size):
    print("| documents | file, MB | steps | client MB after 10 steps | half | all | largest | s |")
    print("|---|---|---|---|---|---|---|---|")
    for n in sizes:
        path = corpus(folder, n)
        with cluster(folder, 2) as address:
            output = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", CLIENT, str(path), address, str(batch_size)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        told = json.loads(output.splitlines()[-1])
        after = " | ".join(f"{megabytes:.0f}" for megabytes in told["after"])
        print(
            f"| {n:,} | {os.path.getsize(path) / 1e6:,.0f} | {told['steps']} | {after} "
            f"| {told['peak']:.0f} | {told['seconds']:.0f} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="1 and more")
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--steps", type=int, default=12, help="of a block, the first 3 not counted")
    parser.add_argument("--memory", type=int, nargs="+", metavar="N", help="documents")
    parser.add_argument("--folder", help="where corpora are kept; a temporary one by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or temporary
        if arguments.memory:
            measure_memory(folder, arguments.memory, arguments.batch_size)
        else:
            measure_speed(
                folder,
                arguments.batch_size,
                arguments.workers,
                arguments.blocks,
                arguments.steps,
            )


if __name__ == "__main__":
    main()
