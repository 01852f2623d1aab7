"""``tempering reproduce``: the experiments of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.errors import reported
from tempering.cli.options import Json, Seed

reproduce = typer.Typer(
    help="Run an experiment of the paper.",
    no_args_is_help=True,
)


@reproduce.callback()
def experiments() -> None:
    """Run an experiment of the paper."""


@reproduce.command()
@reported
def landscape(
    out: Annotated[Path, typer.Option(help="Folder for the figure and the numbers.")] = Path(
        "reproduction"
    ),
    seed: Seed = 0,
    starts: Annotated[int, typer.Option(min=1, help="Random starts of coordinate ascent.")] = 200,
    as_json: Json = False,
) -> None:
    """Figure 1: the annealed ELBO of two Gaussians, and how often schedules find its optimum.

    \b
    Example:
      tempering reproduce landscape --out figure1
    """
    from tempering.cli.landscape import run_landscape

    run_landscape(out, seed, starts, as_json)
