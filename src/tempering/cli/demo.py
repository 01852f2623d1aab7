"""``tempering demo``: its options."""

from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.options import Jobs, Json, Seed, as_new


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the model and the report.", callback=as_new)
    ] = Path("demo"),
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Fit topics plainly and tempered, and compare.

    The corpus is the docstrings of the installed scientific packages. Both fits make the same
    steps on the same documents. The tempered model is saved, with a report. It takes about a
    minute, and no network.

    \b
    Example:
      tempering demo --out demo
    """
    from tempering.cli.demo_run import run_demo

    run_demo(out, seed, jobs, as_json)
