"""The command ``tempering``: the list of its commands."""

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

import tempering
from tempering.cli import printing
from tempering.cli.convert import convert
from tempering.cli.datasets import datasets
from tempering.cli.demo import demo
from tempering.cli.evaluate import evaluate
from tempering.cli.fit import fit
from tempering.cli.info import info
from tempering.cli.report import report
from tempering.cli.topics import topics
from tempering.cli.transform import transform

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tempering {tempering.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where in the code an error came from.")
    ] = False,
) -> None:
    """Topic models by variational inference that does not get stuck: tempered, and fast.

    \b
    From text to topics to look at:
      tempering fit folder-of-text/ --topics 20
      tempering report model folder-of-text/ --out report.html
    """
    printing.show_traceback = traceback


for command in (fit, topics, transform, evaluate, report, convert):
    app.command()(printing.reported(command))
app.add_typer(datasets, name="datasets")
app.command()(printing.reported(info))
app.command()(printing.reported(demo))


def main() -> None:
    """Entry point."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, as by >&-: nobody is to be told
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character shows another one, and the command goes on.
            stream.reconfigure(errors="replace")
    app()
