"""The command ``tempering``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tempering

app = typer.Typer(
    help="Variational inference that does not get stuck: annealed, tempered, locally tempered.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
reproduce = typer.Typer(
    help="Run an experiment of the paper; draws its figure and writes its numbers.",
    no_args_is_help=True,
)
app.add_typer(reproduce, name="reproduce")

Out = Annotated[Path, typer.Option(help="Folder for the figure and the numbers.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tempering {tempering.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command as a whole."""


@app.command()
def demo(
    out: Out = Path("demo"),
    seed: Seed = 0,
) -> None:
    """Figure 1 of the paper, then a tempered Gaussian mixture beside an untempered one."""
    from tempering.cli.demo import run_demo

    run_demo(out, seed)


@reproduce.command()
def landscape(
    out: Out = Path("reproduction"),
    seed: Seed = 0,
    starts: Annotated[int, typer.Option(min=1, help="Random starts of coordinate ascent.")] = 200,
) -> None:
    """Figure 1: the annealed ELBO of two Gaussians, and how often schedules find its optimum."""
    from tempering.cli.landscape import run_landscape

    run_landscape(out, seed, starts)


def main() -> None:
    """Entry point."""
    from tempering.plots.canvas import DrawingUnavailable

    try:
        app()
    except DrawingUnavailable as error:
        typer.echo(f"tempering: {error}", err=True)
        raise SystemExit(1) from None
