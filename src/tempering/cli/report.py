"""``tempering report``: one HTML page to look at."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from tempering.cli.options import Jobs, Json, ModelPath, Overwrite, TextOptions, as_given, number_or
from tempering.cli.printing import error_console, print_either, say

#: Draws from the posterior of the shares: enough for the ends of intervals to be read.
N_DRAWS = 60
#: Groups that a report tells apart; the rest are one.
MOST_GROUPS, OTHERS = 20, "(others)"


def report(
    model: ModelPath,
    corpus: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CORPUS]",
            parser=as_given,
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
    import numpy as np

    from tempering.cli.corpora import Reading, load_topics
    from tempering.cli.validation import read_scores
    from tempering.inference import BlockSource
    from tempering.report import collect, write_report
    from tempering.report.data import fit_digest
    from tempering.report.page import check_place
    from tempering.workbench import topics_across_seeds

    fitted = load_topics(model).set_params(n_jobs=jobs)
    check_place(out, overwrite, fit_digest(fitted))
    columns = {"times": times, "groups": groups}
    wanted = {name: column for name, column in columns.items() if column is not None}
    if corpus is None and (wanted or refits):
        name = next(iter(wanted), "refits")
        raise typer.BadParameter(f"--{name} is about documents: name the corpus after the model.")
    named = model if corpus is None else corpus
    told: dict[str, Any] = {}
    if corpus is not None:
        with error_console().status(f"Reading {corpus}"):
            told, values = _documents(Reading(corpus, texts), fitted, wanted)
        with error_console().status("Drawing shares of topics"):
            told |= shares_of(fitted, told["X"], wanted, values, bins)
        if refits:
            X = told["X"]
            if isinstance(X, BlockSource):
                X = X.sample(documents, np.random.default_rng(0))
            with error_console().status("Fitting again"):
                told["stability"] = topics_across_seeds(fitted, X, refits, resample=True)
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


def shares_of(
    model: Any, counts: Any, wanted: dict[str, str], columns: list[list[Any]], bins: Any
) -> dict[str, Any]:
    """What a report shows of the columns "times" and "groups"."""
    import numpy as np

    from tempering.workbench import topics_by_group, topics_over_time
    from tempering.workbench.shares import sizes_of
    from tempering.workbench.time_bins import as_times

    shares = {}
    for (name, column), values in zip(wanted.items(), columns):
        known = np.array([is_known(value) for value in values], dtype=bool)
        if not known.any():
            raise typer.BadParameter(f"--{name} {column}: no document has a value in this column.")
        if not known.all():
            n = int((~known).sum())
            say(f"warning: --{name} {column}: {n:,} documents have no value, and are left out.")
        told = [value for value in values if is_known(value)]
        # So few, or so many, cannot be the documents of the fit, but may be others of the kind.
        n_words, n_fitted = sizes_of(model, counts[known])
        how: Any = {"n_draws": N_DRAWS, "new_documents": not 0.5 < n_words / n_fitted < 2}
        if name == "times":
            try:
                times = as_times(told)
            except ValueError as error:
                raise typer.BadParameter(f"--times {column}: {error}") from None
            shares["over_time"] = topics_over_time(model, counts[known], times, bins, **how)
        else:
            shares["by_group"] = topics_by_group(model, counts[known], as_groups(told), **how)
    return shares


def is_known(value: Any) -> bool:
    """Whether there is a value."""
    return value is not None and value == value and str(value).strip() != ""


def as_groups(values: list[Any]) -> list[str]:
    """The names of the largest groups; the rest are one."""
    names = [str(value).strip() for value in values]
    sizes = Counter(names)
    if len(sizes) <= MOST_GROUPS:
        return names
    largest = {name for name, _ in sizes.most_common(MOST_GROUPS - 1)}
    say(f"warning: of {len(sizes):,} groups, the {len(largest)} largest are told apart.")
    return [name if name in largest else OTHERS for name in names]
