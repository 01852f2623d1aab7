"""What ``tempering reproduce`` does: run experiments with a progress line, print the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tempering.cli.errors import say
from tempering.cli.printing import console, error_console, print_json
from tempering.experiments import EXPERIMENTS
from tempering.experiments.experiment import Experiment, Setting
from tempering.experiments.page import Finished, tally, write_page
from tempering.experiments.runner import Step, finished_setting, run_experiment
from tempering.plots.canvas import require_drawing

STYLES = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}


def run_experiments(
    names: list[str],
    out: Path,
    *,
    scale: Literal["quick", "full"],
    seeds: int | None,
    corpora: tuple[Path, ...],
    faces: Path | None,
    finished_only: bool,
) -> tuple[list[Finished], list[Path]]:
    """Run experiments into ``out``; if there are several, write the page of all of them."""
    require_drawing()
    chosen = {name: EXPERIMENTS[name] for name in names}
    settings = {
        name: Setting(scale, seeds or experiment.default_seeds[scale], corpora, faces)
        for name, experiment in chosen.items()
    }
    # What is missing is said before any of them is run.
    for name, experiment in chosen.items():
        experiment.cases(settings[name])
    if finished_only:
        settings = _finished_settings(chosen, settings, out)
    results = []
    try:
        for name, setting in settings.items():
            with experiment_progress(name) as report:
                rows = run_experiment(chosen[name], setting, out, report)
            results.append(Finished(chosen[name], setting, rows, chosen[name].claims(rows)))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; what is finished is kept in {out}, and the same command goes on from "
            "there."
        ) from None
    return results, write_page(results, out) if len(names) > 1 else []


def _finished_settings(
    chosen: dict[str, Experiment], settings: dict[str, Setting], out: Path
) -> dict[str, Setting]:
    """Of each experiment the seeds that are done; those without any are named and left out."""
    found = {
        name: finished_setting(experiment, settings[name], out)
        for name, experiment in chosen.items()
    }
    kept = {name: setting for name, setting in found.items() if setting is not None}
    missing = ", ".join(name for name in chosen if name not in kept)
    if not kept:
        raise ValueError(f"{out} holds no finished seed of {missing}: run without --finished-only.")
    if missing:
        say(f"not finished, and left out: {missing}.")
    return kept


@contextmanager
def experiment_progress(name: str) -> Iterator[Callable[[Step], None]]:
    """A line with the cases done and the one being run, on a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}"),
    )
    shown = error_console()
    with Progress(*columns, console=shown, disable=not shown.is_terminal) as bar:
        task = bar.add_task(name, total=None, now="")

        def report(step: Step) -> None:
            now = " ".join(str(value) for value in (step.case or {}).values())
            bar.update(task, completed=step.finished, total=step.total, now=now)

        yield report


def tell(results: list[Finished], pages: list[Path], out: Path, as_json: bool) -> None:
    """The verdicts with their numbers, and where everything is."""
    every = [claim for result in results for claim in result.claims]
    if as_json:
        print_json(
            {
                "out": str(out),
                "pages": [str(page) for page in pages],
                "claims": [asdict(claim) for claim in every],
            }
        )
        return
    printed = console()
    for claim in every:
        printed.print(Text.assemble((claim.verdict, STYLES[claim.verdict]), ": ", claim.sentence))
        printed.print(Text(f"  {claim.numbers}", "dim"))
    printed.print(f"{len(every)} claims: {tally(every)}.")
    names = ", ".join(result.experiment.name for result in results)
    printed.print(Text(f"Figures, .json and .csv of {names} are in {out}"))
    for page in pages:
        printed.print(Text(f"Wrote {page}"))
