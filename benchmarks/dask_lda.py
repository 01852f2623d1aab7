"""Topics on a Dask cluster of this machine: what is sent, what it costs, and what it gains.

    python benchmarks/dask_lda.py                        # speed, with 1, 2 and 4 worker processes
    python benchmarks/dask_lda.py --memory 100000 1000000    # memory of the client

Speed: steps of 4,096 documents at K = 100, of a corpus drawn from the model (10,000 words, 100 a
document), in Parquet, read by the workers. The clusters take turns, a few steps each, so that a
load on the machine meets all of them; medians over the rounds are told, with the smallest and
largest. Below stands what the formula of docs/scaling.md makes of the figures of one worker.

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
from contextlib import ExitStack, contextmanager
from pathlib import Path


import numpy as np
from distributed import Client

from tempering import schedules
from tempering.corpus import open_source, write
from tempering.datasets import LDAStream
from tempering.inference import Algorithm, RobbinsMonro
from tempering.inference.executors import Serial, available_cores, open_executor
from tempering.models.lda.model import LatentDirichlet
from tempering.scale import DaskExecutor
from tempering.temperature import Annealing

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
from distributed import LocalCluster
if __name__ == "__main__":
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
    """A fit that is made a few steps at a time."""

    def __init__(self, path, batch_size, client=None):
        self.client = client
        self.executor = Serial() if client is None else DaskExecutor(client)
        source = open_source(path, batch_size)
        self._reading = self.executor.reading(source)
        source = self._reading.__enter__()
        model = LatentDirichlet(TOPICS, WORDS, 1 / TOPICS, 1 / TOPICS, update="mean")
        self.algorithm = Algorithm(
            model,
            Annealing(schedules.linear_inverse(2.0)),
            RobbinsMonro(16.0, 0.7),
            self.executor,
            source.size,
            planned_passes=100,
        )
        rng = np.random.default_rng(0)
        self.state = self.algorithm.start(model.initialize(source, rng), rng)
        self.batches = source.batches(0)
        self.seconds, self.processor = [], []

    def steps(self, n, counted=True):
        """Some steps; their times are kept."""
        with open_executor(self.executor, 1):
            for _ in range(n):
                before, started = self.processor_seconds(), time.perf_counter()
                batch = next(self.batches)
                self.state = self.algorithm.advance(self.state, batch, evaluate=False).state
                if counted:
                    self.seconds.append(time.perf_counter() - started)
                    self.processor.append(self.processor_seconds() - before)

    def processor_seconds(self):
        """Of this process and of the workers."""
        workers = self.client.run(time.process_time).values() if self.client else ()
        return time.process_time() + sum(workers)

    def close(self):
        self._reading.__exit__(None, None, None)


def measure_speed(folder, batch_size, workers, rounds, steps):
    path = corpus(folder, 16 * batch_size)
    runs = {"one process": Run(path, batch_size)}
    with ExitStack() as stack:
        for n in workers:
            address = stack.enter_context(cluster(folder, n))
            client = stack.enter_context(Client(address, set_as_default=False))
            client.wait_for_workers(n)
            runs[f"{n} worker{'s' * (n > 1)}"] = Run(path, batch_size, client)
        for run in runs.values():
            run.steps(WARM_UP, counted=False)
            if run.client:
                run.executor.traffic.reset()
        for _ in range(rounds):
            for run in runs.values():
                run.steps(steps)
        for run in runs.values():
            run.close()
    parameters = [run.state.posterior.parameters() for run in runs.values()]
    assert all(np.array_equal(parameters[0], other) for other in parameters), "bits differ"
    report(runs, batch_size, workers)


def report(runs, batch_size, workers):
    print(
        f"{batch_size} documents a step, K = {TOPICS}, V = {WORDS}, {available_cores()} cores; the"
    )
    print(
        "same bits from all of them. Seconds a step: median (smallest-largest), of the processor.\n"
    )
    print("| | s a step | CPU s | documents/s | MB sent | MB received | communication | speed-up |")
    print("|---|---|---|---|---|---|---|---|")
    first = None
    for name, run in runs.items():
        middle = statistics.median(run.seconds)
        cells = [f"{middle:.3f} ({min(run.seconds):.3f}-{max(run.seconds):.3f})"]
        cells += [f"{statistics.median(run.processor):.3f}", f"{batch_size / middle:,.0f}"]
        if run.client:
            traffic = run.executor.traffic
            first = first or middle
            cells += [
                f"{traffic.bytes_sent / traffic.steps / 1e6:.1f}",
                f"{traffic.bytes_received / traffic.steps / 1e6:.1f}",
                f"{traffic.communication:.0%}",
                f"{first / middle:.2f}",
            ]
        print(f"| {name} | {' | '.join(cells)} |")
    project(runs, workers)


def project(runs, workers):
    """The formula of docs/scaling.md, with the figures of one worker.

    Here 2 P / w and t_0 are not told apart: both are in the rest of one worker's step.
    """
    one = runs["1 worker"]
    work = one.executor.traffic.busy_seconds / one.executor.traffic.steps
    rest = statistics.median(one.seconds) - work
    print(f"\nwork of a step {work:.3f} s, the rest {rest:.3f} s (of one worker). By the formula:")
    for n, run in zip(workers, list(runs.values())[1:]):
        predicted = work / min(n, available_cores()) + rest
        print(f"  {n} workers: {predicted:.3f} s, measured {statistics.median(run.seconds):.3f} s")


CLIENT = """
import json, os, resource, sys, time
from tempering import LatentDirichletAllocation
from tempering.corpus import open_source
from tempering.scale import DaskExecutor

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
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3, help="of a round")
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
                arguments.rounds,
                arguments.steps,
            )


if __name__ == "__main__":
    main()
