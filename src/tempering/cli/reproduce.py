"""``tempering reproduce``: the experiments of the paper, a command for each, and one for all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from tempering.cli.errors import reported
from tempering.cli.options import Json
from tempering.experiments import SUMMARIES

reproduce = typer.Typer(
    help="Run an experiment of the paper.",
    no_args_is_help=True,
)

EXAMPLES = {
    "all": "--scale full --corpus arxiv.npz --faces yaleb.npz --out reproduction",
    "lda": "--scale full --corpus arxiv.npz --out reproduction",
    "faces": "--scale full --faces yaleb.npz --out reproduction",
}

Out = Annotated[Path, typer.Option(help="Folder for figures, numbers and what is finished.")]
Scale = Annotated[
    Literal["quick", "full"],
    typer.Option(help="Generated data in seconds, or the paper's sizes on real data in hours."),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Seeds 0 ... N - 1; by default what the experiment needs."
    ),
]
Corpora = Annotated[
    list[Path] | None,
    typer.Option(
        "--corpus",
        metavar="PATH",
        help="Counts of words, for topic models at full scale; repeatable.",
    ),
]
Faces = Annotated[
    Path | None,
    typer.Option(help="Face images (.npz with `images` [n, height, width]), at full scale."),
]


FinishedOnly = Annotated[
    bool,
    typer.Option("--finished-only", help="Run nothing: draw and judge the seeds that are done."),
]


@reproduce.callback()
def experiments() -> None:
    """Run an experiment of the paper."""


def _add(name: str, help: str) -> None:
    """A command for one experiment, or for all of them."""

    def command(
        out: Out = Path("reproduction"),
        scale: Scale = "quick",
        seeds: Seeds = None,
        corpus: Corpora = None,
        faces: Faces = None,
        finished_only: FinishedOnly = False,
        as_json: Json = False,
    ) -> None:
        from tempering.cli.experiments import run_experiments, tell

        names = list(SUMMARIES) if name == "all" else [name]
        results, pages = run_experiments(
            names,
            out,
            scale=scale,
            seeds=seeds,
            corpora=tuple(corpus or ()),
            faces=faces,
            finished_only=finished_only,
        )
        tell(results, pages, out, as_json)

    options = EXAMPLES.get(name, "--out reproduction")
    command.__doc__ = (
        f"{help}\n\nA run that was stopped goes on where it was. The same seeds give the same "
        f"numbers.\n\n\b\nExample:\n  tempering reproduce {name} {options}\n"
    )
    run: Callable[..., None] = reported(command)
    reproduce.command(name)(run)


for _name, _summary in SUMMARIES.items():
    _add(_name, _summary)
_add("all", "All of them, and a page with every figure and verdict.")
