"""Try odd inputs on all that the package offers: `python tests/odd_inputs.py`.

They are tried in processes of their own; one that dies or hangs is replaced. What comes of an input
is one of

ok       a result, all of it finite
refused  an error that names the argument or the file
foreign  another error: one of NumPy's, SciPy's or Python's that says nothing to a user
nan      NaN or infinity in a result
crash    the process died
hang     no answer within 30 seconds (`--seconds`: more on a busy machine)

The last four are mistakes of the package: they are listed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from scipy import sparse

from oddities import Case, estimators, files, functions, several_models, states, workbench
from tempering import Natural

OUTCOMES = ("ok", "refused", "foreign", "nan", "crash", "hang")
MISTAKES = OUTCOMES[2:]
#: What the package refuses with; anything else is a mistake, whatever it says.
REFUSALS = (ValueError, TypeError, OSError, ImportError, NotImplementedError)


def all_cases() -> list[Case]:
    """Every odd input, in an order that never changes."""
    rooms = (estimators, functions, files, states, workbench, several_models)
    cases = [case for room in rooms for case in room.cases()]
    twice = [name for name, n in Counter(case.name for case in cases).items() if n > 1]
    assert not twice, f"names that occur twice: {twice[:5]}"
    return cases


def outcome_of(case: Case) -> tuple[str, str]:
    """What came of an input, and the message or the place of the trouble."""
    try:
        result = case.call()
    except MemoryError as error:
        return "foreign", f"MemoryError: {error}"
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        named = any(word in str(error) for word in case.told)
        # KeyError and its kin are ValueErrors of nobody; UnicodeError is one of ours if it is told.
        if isinstance(error, REFUSALS) and named:
            return "refused", message
        last = traceback.extract_tb(error.__traceback__)[-1]
        return "foreign", f"{message} [{last.filename.rpartition('/')[2]}:{last.lineno}]"
    trouble = next(not_finite(result, "result", set()), None)
    return ("nan", trouble) if trouble else ("ok", "")


def not_finite(value: Any, place: str, seen: set[int]) -> Iterator[str]:
    """The places in a result that hold NaN or infinity."""
    if id(value) in seen or value is None or isinstance(value, str | bytes | bool | type):
        return
    seen.add(id(value))
    if sparse.issparse(value):
        yield from not_finite(value.data, place, seen)
    elif isinstance(value, float | complex | np.ndarray | np.number):
        numbers = np.asarray(value)
        if numbers.dtype.kind in "fc" and not np.isfinite(numbers).all():
            yield place
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from not_finite(part, f"{place}[{name!r}]", seen)
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield from not_finite(part, f"{place}[{i}]", seen)
    elif hasattr(value, "get_params"):  # an estimator: what it has learned
        if isinstance(value._state.posterior, Natural):
            yield from not_finite(dict(value._state.posterior.items()), f"{place}._state", seen)
        for name in dir(value):
            if name.endswith("_") and not name.startswith("_"):
                yield from not_finite(getattr(value, name, None), f"{place}.{name}", seen)


def serve(pipe: Connection) -> None:
    """The child: try the inputs whose numbers come in, one after the other."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        cases = all_cases()
        # Compiled, once on a machine, before any clock runs.
        for name in estimators.ESTIMATORS:
            estimators.warm(name)
        pipe.send(len(cases))
        for number in iter(pipe.recv, None):
            pipe.send(outcome_of(cases[number]))
        os.chdir("/")


class Child:
    """A process that tries inputs; another takes its place when it dies or hangs."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def try_one(self, number: int) -> tuple[str, str]:
        self._pipe.send(number)
        try:
            if self._pipe.poll(self._seconds):
                return self._pipe.recv()
            found = "hang", f"no answer in {self._seconds:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            found = "crash", f"exit status {self._process.exitcode}"
        self._process.kill()
        self._start()
        return found

    def end(self) -> None:
        self._pipe.send(None)
        self._process.join()


def try_all(
    cases: list[Case],
    numbers: list[int],
    n_children: int,
    seconds: float,
    tell: Callable[[str], bool],
) -> dict[int, tuple[str, str, float]]:
    """What came of each input, and how many seconds it took; told as it comes."""

    def work(part: int) -> dict[int, tuple[str, str, float]]:
        child, found = Child(seconds), {}
        for number in numbers[part::n_children]:
            began = time.monotonic()
            outcome, message = child.try_one(number)
            taken = time.monotonic() - began
            found[number] = outcome, message, taken
            if tell(outcome):
                name, said = cases[number].name, " ".join(message.split())[:300]
                print(f"{outcome:8}{taken:6.2f} s  {name}\n{'':10}{said}", flush=True)
        child.end()
        return found

    together: dict[int, tuple[str, str, float]] = {}
    with ThreadPoolExecutor(n_children) as pool:
        for found in pool.map(work, range(n_children)):
            together |= found
    return together


def main() -> int:
    """Try them, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--children", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", default="", help="inputs whose name has this text")
    parser.add_argument("--every", type=int, default=7, help="7: each seventh; 1: all of them")
    parser.add_argument("--seconds", type=float, default=30.0, help="then an input hangs")
    parser.add_argument("--all", action="store_true", help="tell every input, not the bad alone")
    parser.add_argument("--json", help="a file for all that was found")
    options = parser.parse_args()

    began = time.monotonic()
    cases = all_cases()
    numbers = [i for i, case in enumerate(cases) if options.only in case.name][:: options.every]
    found = try_all(
        cases,
        numbers,
        options.children,
        options.seconds,
        lambda outcome: options.all or outcome in MISTAKES,
    )
    if options.json:
        with open(options.json, "w") as file:
            json.dump({cases[number].name: found[number] for number in numbers}, file, indent=1)
    counts = Counter(outcome for outcome, _, _ in found.values())
    print("total  " + "  ".join(f"{outcome:>8}" for outcome in OUTCOMES))
    print(f"{len(numbers):5}  " + "  ".join(f"{counts[outcome]:8}" for outcome in OUTCOMES))
    print(f"{time.monotonic() - began:.0f} s")
    return int(any(counts[outcome] for outcome in MISTAKES))


if __name__ == "__main__":
    sys.exit(main())
