"""``tempering report``: one HTML page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.options import (
    Column,
    Delimiter,
    Encoding,
    Format,
    Id,
    Jobs,
    Json,
    ModelPath,
    OnError,
    Overwrite,
)


def report(
    model: ModelPath,
    corpus: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CORPUS]",
            help="Documents, as for `tempering fit`: for examples of each topic, temperatures of "
            "documents, and coherence.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="The heading.")] = None,
    documents: Annotated[
        int, typer.Option(min=1, help="Of a larger corpus, so many documents are drawn.")
    ] = 20_000,
    overwrite: Overwrite = False,
    jobs: Jobs = None,
    as_json: Json = False,
    format: Format = None,
    column: Column = None,
    id: Id = None,
    encoding: Encoding = None,
    on_error: OnError = None,
    delimiter: Delimiter = None,
) -> None:
    """Write a report of a model, one HTML page.

    It needs no network, and no other file.

    \b
    Examples:
      tempering report model
      tempering report news 20news.npz --out news.html --title "20 Newsgroups"
    """
    from tempering.cli.corpora import Reading
    from tempering.cli.printing import console, print_json
    from tempering.cli.reporting import run_report

    how = (format, column, id, encoding, on_error, delimiter)
    reading = None if corpus is None else Reading(corpus, *how)
    n_bytes = run_report(model, reading, out, title, documents, jobs, overwrite)
    if as_json:
        print_json({"out": str(out), "bytes": n_bytes})
    else:
        line = f"Report: {out.absolute().as_uri()} ({n_bytes / 1e6:.1f} MB)"
        console().print(line, soft_wrap=True, markup=False)
