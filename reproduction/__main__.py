"""Run experiments of the paper: ``python -m reproduction NAME``, or ``all``.

Each finished case is kept in the output folder: a run that was stopped goes on where it was, and
the same seeds give the same numbers.

    python -m reproduction lda --scale quick
    python -m reproduction all --scale full --corpus arxiv.npz --faces yaleb.npz
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from reproduction import EXPERIMENTS, SUMMARIES
from reproduction.experiment import Setting
from reproduction.page import Finished, tally, write_page
from reproduction.runner import Step, finished_setting, run_experiment

STYLES = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """What was asked for."""
    names = "\n".join(f"  {name:16} {summary}" for name, summary in SUMMARIES.items())
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description=f"{__doc__}\nExperiments:\n{names}\n  {'all':16} All, and a page of them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=[*SUMMARIES, "all"], metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("reproduced"), help="the output folder")
    parser.add_argument(
        "--scale",
        choices=["quick", "full"],
        default="quick",
        help="generated data in seconds, or the paper's sizes on real data in hours",
    )
    parser.add_argument("--seeds", type=int, help="seeds 0 … N − 1, instead of as many as needed")
    parser.add_argument(
        "--corpus",
        type=Path,
        action="append",
        default=[],
        help="counts of words, for topic models at full scale; repeatable",
    )
    parser.add_argument("--faces", type=Path, help=".npz with `images` [n, height, width]")
    parser.add_argument(
        "--finished-only", action="store_true", help="run nothing: draw and judge what is done"
    )
    options = parser.parse_args(arguments)
    if options.seeds is not None and options.seeds < 1:
        parser.error(f"--seeds must be at least 1; got {options.seeds}.")
    return options


def run(options: argparse.Namespace) -> list[Finished]:
    """Run what was asked for; what is missing is said before any of it is run."""
    chosen = SUMMARIES if options.name == "all" else [options.name]
    settings = {}
    for name in chosen:
        seeds = options.seeds or EXPERIMENTS[name].default_seeds[options.scale]
        settings[name] = Setting(options.scale, seeds, tuple(options.corpus), options.faces)
        EXPERIMENTS[name].cases(settings[name])
    if options.finished_only:
        found = {
            name: finished_setting(EXPERIMENTS[name], setting, options.out)
            for name, setting in settings.items()
        }
        settings = {name: setting for name, setting in found.items() if setting is not None}
        missing = ", ".join(name for name in chosen if name not in settings)
        if not settings:
            raise ValueError(
                f"{options.out} holds no finished seed of {missing}: run without --finished-only."
            )
        if missing:
            print(f"not finished, and left out: {missing}.", file=sys.stderr)
    results = []
    for name, setting in settings.items():
        rows = _with_progress(name, setting, options.out)
        results.append(Finished(EXPERIMENTS[name], setting, rows, EXPERIMENTS[name].claims(rows)))
    return results


def _with_progress(name: str, setting: Setting, out: Path) -> list[dict]:
    """Run one experiment, with a line that shows the cases done and the one at work."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}"),
    )
    shown = Console(stderr=True)
    with Progress(*columns, console=shown, disable=not shown.is_terminal) as bar:
        task = bar.add_task(name, total=None, now="")

        def report(step: Step) -> None:
            now = " ".join(str(value) for value in (step.case or {}).values())
            bar.update(task, completed=step.finished, total=step.total, now=now)

        return run_experiment(EXPERIMENTS[name], setting, out, report)


def tell(results: list[Finished], out: Path) -> None:
    """The verdicts with their numbers, and where everything is."""
    every = [claim for result in results for claim in result.claims]
    console = Console()
    for claim in every:
        console.print(Text.assemble((claim.verdict, STYLES[claim.verdict]), ": ", claim.sentence))
        console.print(Text(f"  {claim.numbers}", "dim"))
    console.print(f"{len(every)} claims: {tally(every)}.")
    names = ", ".join(result.experiment.name for result in results)
    console.print(Text(f"Figures and .json of {names} are in {out}"))


def main(arguments: list[str] | None = None) -> int:
    """Run, and print the verdicts."""
    options = parse(arguments)
    try:
        results = run(options)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"interrupted; what is finished is kept in {options.out}, and the same command goes on "
            "from there.",
            file=sys.stderr,
        )
        return 130
    tell(results, options.out)
    if options.name == "all":
        print(f"Wrote {write_page(results, options.out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
