"""``tempering demo``: what tempering is for, in a minute."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tempering.cli.options import Jobs, Json, Seed, as_new
from tempering.cli.printing import console, error_console, minus, print_json, print_table
from tempering.cli.topics import topic_rows

N_TOPICS, PASSES = 40, 10


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
    import numpy as np

    from tempering.cli.corpora import drawn
    from tempering.cli.validation import Validation, shown
    from tempering.datasets import load_docstrings
    from tempering.estimators import LatentDirichletAllocation
    from tempering.inference.callbacks import working_seconds
    from tempering.report import write_report

    out.mkdir(parents=True, exist_ok=True)  # what is in the way is told before the work
    started = time.perf_counter()
    with error_console().status("Reading the docstrings of the installed packages"):
        corpus = load_docstrings()
    n_documents, n_words = corpus.shape
    title = "Docstrings of the installed packages"
    error_console().print(f"{title}: {n_documents:,} documents, {n_words:,} words")
    test = drawn(n_documents, int(0.1 * n_documents), seed)
    training = np.setdiff1d(np.arange(n_documents), test)
    models, scores, fits = {}, {}, {}
    # The budget is the same: passes, size of batches, step sizes, seed.
    plain: Any = {"tempering": None, "update": "variational"}
    for name, options in {"plain SVI": plain, "tempered": {}}.items():
        model = LatentDirichletAllocation(
            N_TOPICS, max_iter=PASSES, random_state=seed, n_jobs=jobs, **options
        )
        scores[name] = Validation(corpus.counts[test], jobs)
        began = working_seconds()
        with shown(scores[name], f"{name:9}") as progress:
            model.fit(corpus.counts[training], callbacks=[scores[name], progress])
        seconds = working_seconds() - began
        held_out: Any = corpus.counts[test]
        fits[name] = {
            "completion_gibbs": model.completion_score(held_out, inference="gibbs", alpha=0.1),
            "completion_vi": model.completion_score(held_out, alpha=0.1),
            "npmi": float(model.coherence(corpus.counts[training]).mean()),
            "seconds": round(seconds, 2),
        }
        models[name] = model
    place, report = out / "model", out / "report.html"
    models["tempered"].save(place, corpus.vocabulary, overwrite=True)
    scores["tempered"].write(place)
    with error_console().status("Writing the report"):
        write_report(
            models["tempered"],
            report,
            corpus.counts[training],
            overwrite=True,
            vocabulary=corpus.vocabulary,
            names=np.array(corpus.names, object)[training],
            texts=np.array(corpus.texts, object)[training],
            validation=scores["tempered"].scores,
            title=title,
        )
    result = {
        "n_documents": len(training),
        "n_test_documents": len(test),
        "n_words": n_words,
        "n_topics": N_TOPICS,
        "passes": PASSES,
        "fits": fits,
        "model": str(place),
        "report": str(report),
        "seconds": round(time.perf_counter() - started, 1),
    }
    if as_json:
        print_json(result)
        return
    _print_scores(result)
    _print_topics(models["plain SVI"], models["tempered"], corpus.vocabulary)
    console().print(f"Model   {place}", markup=False)
    console().print(f"Report  {report.absolute().as_uri()}", soft_wrap=True, markup=False)


def _print_scores(result: dict[str, Any]) -> None:
    table = Table("", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("held-out nats a word", "coherence (NPMI)", "seconds"):
        table.add_column(column, justify="right")
    for name, told in result["fits"].items():
        numbers = minus(told["completion_gibbs"]), minus(told["npmi"], 2)
        table.add_row(name, *numbers, f"{told['seconds']:.1f}")
    console().print(
        f"\n{result['n_topics']} topics, {result['passes']} passes over "
        f"{result['n_documents']:,} documents; scored on {result['n_test_documents']:,} others "
        "(higher is better)\n"
    )
    print_table(table)
    print()


def _print_topics(plain: Any, tempered: Any, vocabulary: Any) -> None:
    """The largest tempered topics, each beside the plain one that is most like it."""
    from tempering.evaluation import match_topics

    partners = match_topics(tempered.components_, plain.components_).indices
    n_words = 7
    words = plain.topics(n_words, vocabulary)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("tempered", "plain SVI, the nearest topic"):
        table.add_column(column, ratio=1)
    for row in topic_rows(tempered, n_words, vocabulary)[:12]:
        partner = words[partners[row["topic"]]]
        table.add_row(Text(" ".join(row["words"])), Text(" ".join(partner), style="dim"))
    print_table(table)
    print()
