"""Run the code blocks of a page, in their order, as a reader would who types them in.

``python`` blocks share one namespace, ``sh`` blocks run in bash; both work in one directory. What
they print, and the figures that they leave open, come back block by block. The site shows it, and
the tests run the same function.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)

#: Packages that a page may show and a reader need not have.
OPTIONAL = {"gensim", "tomotopy", "jax", "numpyro", "optax", "dask", "distributed"}

#: Seconds after which a command of a page is taken for hung.
LONGEST = 300


class Shown(NamedTuple):
    """What a block printed and drew; the package it wants that is not installed."""

    text: str = ""
    figures: tuple[bytes, ...] = ()
    missing: str | None = None


def blocks(page: str) -> list[re.Match[str]]:
    """The blocks of a page that can run."""
    return [block for block in BLOCK.finditer(page) if block["language"] in ("python", "sh")]


def run_blocks(page: str, directory: Path, name: str = "page") -> list[Shown]:
    """Run all blocks; an error in one is an error here."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    with chdir(directory):
        for block in blocks(page):
            # Blocks inside tabs are indented.
            code = dedent(block["code"])
            if block["language"] == "sh":
                shown.append(Shown(run_shell(code)))
            else:
                shown.append(run_python(code, namespace, name))
    return shown


def run_python(code: str, namespace: dict[str, Any], name: str) -> Shown:
    """Run one block, and take the figures that it drew."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    printed = StringIO()
    try:
        with redirect_stdout(printed):
            exec(compile(code, name, "exec"), namespace)
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in OPTIONAL:
            raise
        return Shown(missing=package)
    figures: list[Any] = [pyplot.figure(number) for number in pyplot.get_fignums()]
    # Those of the package's own functions belong to no window; a notebook shows the last value.
    if hasattr(namespace.get("figure"), "savefig"):
        figures.append(namespace.pop("figure"))
    pictures = tuple(as_png(figure) for figure in figures)
    pyplot.close("all")
    return Shown(printed.getvalue(), pictures)


def as_png(figure: Any) -> bytes:
    """A figure as a file that is the same each time."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=120, metadata={"Software": None})
    return buffer.getvalue()


def run_shell(code: str) -> str:
    """Run commands with the programs of this Python first, and no colours."""
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = {**os.environ, "PATH": os.pathsep.join(places), "NO_COLOR": "1", "COLUMNS": "90"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    if done.returncode:
        raise RuntimeError(f"this command failed:\n{code}\n{done.stdout}{done.stderr}")
    return done.stdout
