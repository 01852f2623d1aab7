"""Whether the tests notice it when the package is wrong: `make mutants`.

Each `[[change]]` in the lists beside this file is one small mistake in the package, and names the
tests that must fail with it. All lists are checked first, so that they cannot rot: the old text
must occur exactly once in its file, and the tests must pass as long as nothing is changed.

    python tests/mutants/run.py                 # all of them
    python tests/mutants/run.py --only engine   # those whose file or words say so

The libraries that the package needs are imported once; each change is then tried in a fork, on a
copy of the package of its own.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT, TESTS, PACKAGE = HERE.parents[1], HERE.parent, HERE.parents[1] / "src" / "tempering"

#: What takes the time of an import; never the package itself, which each fork has of its own.
LIBRARIES = (
    "numba",
    "numpy.testing",
    "pytest",
    "rich.progress",
    "safetensors.numpy",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.decomposition",
    "sklearn.mixture",
    "sklearn.utils.estimator_checks",
    "hypothesis",
)

#: What pytest's exit codes mean here. Only tests that fail kill: a change that cannot be imported,
#: or tests that are not there, are mistakes in the list.
VERDICTS = {0: "alive", 1: "killed"}


class Change(NamedTuple):
    """One mistake: where, what is written instead of what, and the tests that must notice it.

    ``kernel`` says that compiled code is changed. Kernels that call it do not know that it has, so
    all are compiled anew, which takes its time.
    """

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    kernel: bool = False

    def applied(self, source: str) -> str:
        """The source with the mistake in it."""
        if source.count(self.old) != 1 or self.old == self.new:
            raise ValueError(
                f"{self.file}: {self.what!r}: the old text must occur once, and not be the new "
                f"one; it occurs {source.count(self.old)} times:\n    {self.old}"
            )
        return source.replace(self.old, self.new)


class Task(NamedTuple):
    """Tests to run, with a change or, where there is none, on the package as it is."""

    name: str
    tests: Sequence[str]
    change: Change | None = None


class Outcome(NamedTuple):
    """How a task ended."""

    task: Task
    verdict: str
    seconds: float
    output: str


def read_changes(paths: Sequence[Path]) -> list[Change]:
    """All changes of some lists; an error that names each one that does not fit the package."""
    changes, wrong = [], []
    for path in paths:
        for entry in tomllib.loads(path.read_text("utf-8"))["change"]:
            change = Change(**{**entry, "tests": tuple(entry["tests"])})
            try:
                change.applied((PACKAGE / change.file).read_text("utf-8"))
            except (OSError, ValueError) as error:
                wrong.append(str(error))
            changes.append(change)
    if wrong:
        raise SystemExit("\n".join(wrong))
    return changes


def run_tests(tree: Path, change: Change | None, tests: Sequence[str], log: Path) -> None:
    """In a fork: put the change into the tree, run the tests against it, end with their code."""
    os.setsid()  # so that a fork that hangs can be ended with all that it has started
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if change is not None:
        source = tree / "tempering" / change.file
        source.write_text(change.applied(source.read_text("utf-8")), "utf-8")
        sys.dont_write_bytecode = True
        if change.kernel:
            importlib.import_module("numba").config.CACHE_DIR = str(log.with_suffix(".numba"))
    sys.path.insert(0, str(tree))
    os.environ["PYTHONPATH"] = str(tree)
    os.chdir(ROOT)
    package = importlib.import_module("tempering")
    if not str(package.__file__).startswith(str(tree)):
        raise RuntimeError(f"the tests would run against {package.__file__}")
    pytest = importlib.import_module("pytest")
    options = ["-x", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *(str(TESTS / test) for test in tests)])
    sys.stdout.flush()
    os._exit(code)


def run_all(
    tasks: Sequence[Task], base: Path, room: Path, n_jobs: int, timeout: float
) -> Iterator[Outcome]:
    """Run tasks, some at a time, each in a fork with a tree of its own; outcomes as they come."""
    context = multiprocessing.get_context("fork")
    waiting, running = list(reversed(tasks)), {}
    while waiting or running:
        while waiting and len(running) < n_jobs:
            task, place = waiting.pop(), room / f"{len(waiting)}"
            tree = base
            if task.change is not None:
                # With the times of the files, by which kernels and bytecode that are known count.
                tree = shutil.copytree(base, place)
            arguments = (tree, task.change, task.tests, place.with_suffix(".log"))
            process = context.Process(target=run_tests, args=arguments)
            process.start()
            running[process.sentinel] = (task, process, place, time.monotonic())
        wait(list(running), timeout=1.0)
        for sentinel, (task, process, place, started) in list(running.items()):
            seconds = time.monotonic() - started
            late = seconds > timeout
            if process.is_alive() and not late:
                continue
            if late:
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            del running[sentinel]
            output = place.with_suffix(".log").read_text("utf-8", "replace")
            shutil.rmtree(place, ignore_errors=True)
            verdict = "late" if late else VERDICTS.get(process.exitcode, "broken")
            yield Outcome(task, verdict, seconds, output)


def as_they_are(changes: Sequence[Change]) -> list[Task]:
    """All tests of the lists, a file at a time."""
    tests: dict[str, dict[str, None]] = {}
    for change in changes:
        for test in change.tests:
            tests.setdefault(test.partition("::")[0], {})[test] = None
    return [Task(file, list(named)) for file, named in tests.items()]


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def without_shrinking() -> None:
    """One example that fails is enough here; the same examples each time, and none on disk."""
    hypothesis = importlib.import_module("hypothesis")
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    options = {"phases": phases, "derandomize": True, "database": None}
    hypothesis.settings.register_profile("mutants", **options)
    hypothesis.settings.load_profile("mutants")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the lists, run the tests as they are, then with each change; 0 if all are killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lists", nargs="*", type=Path, help="lists of changes; all by default")
    parser.add_argument("--only", default="", help="a part of the file or of what is changed")
    parser.add_argument("--jobs", type=int, default=available_cores())
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one change")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    changes = read_changes(options.lists or sorted(HERE.glob("*.toml")))
    changes = [c for c in changes if options.only.lower() in f"{c.file} {c.what}".lower()]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        room = Path(folder)
        for name in LIBRARIES:
            importlib.import_module(name)
        without_shrinking()
        base = room / "base"
        shutil.copytree(PACKAGE, base / "tempering")
        unchanged = as_they_are(changes)
        for outcome in run_all(unchanged, base, room, options.jobs, 4 * options.timeout):
            if outcome.verdict != "alive":
                print(f"{outcome.output}\n{outcome.task.name} fails although nothing is changed.")
                return 1
        print(f"as it is: {len(unchanged)} files of tests pass, {time.monotonic() - started:.0f} s")
        # What takes longest comes first, so that no core waits for it at the end.
        changes.sort(key=lambda change: not change.kernel)
        tasks = [Task(change.what, change.tests, change) for change in changes]
        survivors = []
        for outcome in run_all(tasks, base, room, options.jobs, options.timeout):
            change = outcome.task.change
            print(
                f"{outcome.verdict:7}{outcome.seconds:5.1f} s  {change.file:33} {change.what}",
                flush=True,
            )
            if outcome.verdict != "killed":
                survivors.append(outcome)
    for outcome in survivors:
        print(f"\n{outcome.verdict}: {outcome.task.name}\n{outcome.output[-1500:]}")
    killed = len(changes) - len(survivors)
    print(f"{killed} of {len(changes)} changes killed, {time.monotonic() - started:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
