"""``tempering report``: one HTML page to look at."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tempering.cli.options import (
    MOST_GROUPS,
    Format,
    Jobs,
    Json,
    ModelPath,
    Overwrite,
    TextOptions,
    number_or,
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
    times: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Of text in a table: the column of times, numbers or dates such as 2024-01-31, to "
            "show topics over time.",
        ),
    ] = None,
    bins: Annotated[
        str,
        typer.Option(
            metavar="auto|year|month|day|N",
            help="Bins of --times.",
            callback=number_or("auto", "year", "month", "day"),
        ),
    ] = "auto",
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Of text in a table: the column of groups, such as authors, to show topics by "
            f"group: the {MOST_GROUPS} largest, and the others together.",
        ),
    ] = None,
    refits: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Fit so many times more, with documents drawn anew, to show which topics come "
            "again.",
        ),
    ] = 0,
    overwrite: Overwrite = False,
    jobs: Jobs = None,
    as_json: Json = False,
    format: Format = None,
    *,
    texts: TextOptions,
) -> None:
    """Write a report of a model, one HTML page.

    It needs no network, and no other file.

    \b
    Examples:
      tempering report model
      tempering report news 20news.npz --out news.html --title "20 Newsgroups"
      tempering report model posts.csv --column body --times date --groups author
    """
    from tempering.cli.corpora import Reading, load_topics
    from tempering.cli.printing import error_console, print_either
    from tempering.cli.shares import shares_of
    from tempering.cli.validation import read_scores
    from tempering.report import collect, write_report
    from tempering.report.page import check_place
    from tempering.workbench import topics_across_seeds

    check_place(out, overwrite)
    fitted = load_topics(model).set_params(n_jobs=jobs)
    columns = {"times": times, "groups": groups}
    wanted = {name: column for name, column in columns.items() if column is not None}
    if corpus is None and (wanted or refits):
        name = next(iter(wanted), "refits")
        raise typer.BadParameter(f"--{name} is about documents: name the corpus after the model.")
    named = model if corpus is None else corpus
    told: dict[str, Any] = {}
    if corpus is not None:
        with error_console().status(f"Reading {corpus}"):
            told, values = _documents(Reading(corpus, format, texts), fitted, wanted)
        with error_console().status("Drawing shares of topics"):
            told |= shares_of(fitted, told["X"], wanted, values, bins)
        if refits:
            with error_console().status("Fitting again"):
                told["stability"] = topics_across_seeds(fitted, told["X"], refits, resample=True)
    n_held_out, scores = read_scores(model)
    with error_console().status("Writing the report"):
        data = collect(
            fitted,
            validation=scores or None,
            n_held_out=n_held_out,
            title=title or f"Topics of {named.resolve().stem}",
            max_documents=documents,
            **told,
        )
        write_report(data, out, overwrite=overwrite)
    n_bytes = out.stat().st_size
    line = f"Report: {out.absolute().as_uri()} ({n_bytes / 1e6:.1f} MB)"
    print_either({"out": str(out), "bytes": n_bytes}, line, as_json)


def _documents(
    reading: Any, fitted: Any, wanted: dict[str, str]
) -> tuple[dict[str, Any], list[list[Any]]]:
    """The documents, their names, their texts where there are any; and the columns wanted."""
    from tempering.cli.corpora import ModelCorpus, streams

    corpus = ModelCorpus(reading, fitted)
    if wanted and not corpus.is_text:
        name, column = next(iter(wanted.items()))
        raise typer.BadParameter(
            f"--{name} {column}: {reading.path} holds counts, which have no such column; give the "
            "text that was counted."
        )
    if streams(corpus.stored):
        return {"X": corpus.source(), "names": corpus.names}, []
    texts, values = reading.texts(list(wanted.values())) if corpus.is_text else (None, [])
    return {"X": corpus.counts(), "names": corpus.names, "texts": texts}, values
