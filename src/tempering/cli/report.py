"""``tempering report``: one HTML page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tempering.cli.options import Format, Jobs, Json, ModelPath, Overwrite, Texts


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
    *,
    texts: Texts,
) -> None:
    """Write a report of a model, one HTML page.

    It needs no network, and no other file.

    \b
    Examples:
      tempering report model
      tempering report news 20news.npz --out news.html --title "20 Newsgroups"
    """
    from tempering.cli.corpora import Reading, load_topics
    from tempering.cli.printing import error_console, print_either
    from tempering.cli.validation import model_scores
    from tempering.report import collect, write_report
    from tempering.report.page import check_place

    check_place(out, overwrite)
    fitted = load_topics(model).set_params(n_jobs=jobs)
    with error_console().status("Writing the report"):
        named = model if corpus is None else corpus
        data = collect(
            fitted,
            validation=model_scores(model),
            title=title or f"Topics of {named.resolve().stem}",
            max_documents=documents,
            **({} if corpus is None else _documents(Reading(corpus, format, texts), fitted)),
        )
        write_report(data, out, overwrite=overwrite)
    n_bytes = out.stat().st_size
    line = f"Report: {out.absolute().as_uri()} ({n_bytes / 1e6:.1f} MB)"
    print_either({"out": str(out), "bytes": n_bytes}, line, as_json)


def _documents(reading: Any, fitted: Any) -> dict[str, Any]:
    """The documents, their names, and their texts where there are any."""
    from tempering.cli.corpora import ModelCorpus, streams
    from tempering.corpus import open_source

    corpus = ModelCorpus(reading, fitted)
    if streams(corpus.stored):
        return {"X": open_source(reading.path), "names": corpus.names}
    texts = reading.texts() if corpus.is_text else None
    return {"X": corpus.counts(), "names": corpus.names, "texts": texts}
