"""Run an experiment's cases, each once: what is on disk is not computed again.

``NAME.jsonl`` in the output folder holds a line for each finished case, written as soon as it is
finished; a process that is stopped loses the case it was at, and the next one goes on from there.
Numbers and figures are made from those lines.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.experiment import Case, Experiment, Row, Setting
from reproduction.machine import describe_machine
from tempering.storage.atomic import atomic_file

#: What a row says of its run and not of its result: the same seeds give the same all else.
MEASURED = ("seconds", "cpu", "machine")


class Step(NamedTuple):
    """Where a run is: cases finished, of how many, and the one that begins (None at the end)."""

    finished: int
    total: int
    case: Case | None


def run_experiment(
    experiment: Experiment,
    setting: Setting,
    out: Path,
    report: Callable[[Step], None] = lambda step: None,
) -> list[Row]:
    """Run the cases that ``out`` does not hold yet; write numbers and figures.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    setting : Setting
        How large, on what.
    out : Path
        The folder of ``NAME.jsonl``, ``NAME.json`` and ``NAME*.png``.
    report : callable
        Hears of each case before it begins, and of the end.

    Returns
    -------
    list of rows
        One for each case, in the order of the cases.
    """
    cases = experiment.cases(setting)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{experiment.name}.jsonl"
    done = read_lines(path)
    keys = [case_key(case, setting) for case in cases]
    finished = sum(key in done for key in keys)
    if finished < len(keys):
        remove_cut_line(path)
    for key, case in zip(keys, cases):
        if key in done:
            continue
        report(Step(finished, len(cases), case))
        done[key] = _measured(experiment, case, setting)
        append_line(path, case, setting, done[key])
        finished += 1
    report(Step(finished, len(cases), None))
    rows = [{**case, **done[key]} for key, case in zip(keys, cases)]
    write_numbers(experiment, setting, rows, out)
    experiment.draw(rows, out)
    return rows


def finished_setting(experiment: Experiment, setting: Setting, out: Path) -> Setting | None:
    """The setting with as many seeds as ``out`` holds all cases of; None if of none."""
    done = read_lines(out / f"{experiment.name}.jsonl")
    for seeds in range(setting.seeds, 0, -1):
        fewer = replace(setting, seeds=seeds)
        if all(case_key(case, fewer) in done for case in experiment.cases(fewer)):
            return fewer
    return None


def case_key(case: Case, setting: Setting) -> str:
    """What tells a case from all others, at any scale."""
    return json.dumps({"case": case, "scale": setting.scale}, sort_keys=True)


def read_lines(path: Path) -> dict[str, dict[str, Any]]:
    """Finished cases by their key. A last line that was cut off does not count."""
    if not path.exists():
        return {}
    done = {}
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            entry = json.loads(line)
            key = json.dumps({"case": entry["case"], "scale": entry["scale"]}, sort_keys=True)
            done[key] = entry["result"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number} is not a finished case. Remove that line, and the case is "
                "run again."
            ) from error
    return done


def remove_cut_line(path: Path) -> None:
    """Make room for the next line, where a process was killed while it wrote one."""
    if path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)


def append_line(path: Path, case: Case, setting: Setting, result: dict[str, Any]) -> None:
    """Keep a finished case, for good."""
    line = json.dumps({"case": case, "scale": setting.scale, "result": result}, allow_nan=False)
    # At once: whoever reads meanwhile sees a whole line or none.
    with path.open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())
        os.fsync(file.fileno())


def write_numbers(experiment: Experiment, setting: Setting, rows: list[Row], out: Path) -> None:
    """``NAME.json``, with everything."""
    everything = {
        "experiment": experiment.name,
        "scale": setting.scale,
        "seeds": setting.seeds,
        "claims": [asdict(claim) for claim in experiment.claims(rows)],
        "rows": rows,
    }
    with atomic_file(out / f"{experiment.name}.json") as aside:
        aside.write_text(json.dumps(everything, indent=1, allow_nan=False) + "\n")


def _measured(experiment: Experiment, case: Case, setting: Setting) -> dict[str, Any]:
    """A case's result, and what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = experiment.run(case, setting)
    return {
        **plain(result),
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu": round(time.process_time() - cpu, 3),
        "machine": describe_machine(),
    }


def plain(value: Any) -> Any:
    """What JSON can hold: arrays as lists, and null for numbers that are not finite.

    Examples
    --------
    >>> plain({"curve": np.array([1.0, np.nan]), "n": np.int64(3)})
    {'curve': [1.0, None], 'n': 3}
    """
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
