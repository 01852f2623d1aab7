"""``tempering demo``: what each part of a topic fit adds, in a minute."""

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
#: The same documents wherever the package is installed, but for the versions of these.
PACKAGES = ("numpy", "scipy", "sklearn")


def ladder() -> dict[str, dict[str, Any]]:
    """Return the fits of the demo by name: each differs from the one before it in one parameter.

    All else is the same: what "auto" would choose by these parameters is given.
    """
    from tempering.temperature import Annealing, schedules

    options: dict[str, Any] = {
        "batch_size": 32,
        "learning_offset": 200.0,
        "learning_decay": 0.55,
        "doc_topic_prior": 0.05,
        "init": "random",
        "update": "variational",
        "tempering": None,
    }
    heat = Annealing(schedules.linear_inverse(2.0), fraction=0.4)
    fits = {"random start, variational updates": options}
    for name, change in {
        "+ start from words": {"init": "words"},
        "+ sampled updates": {"update": "sampled"},
        "+ heat": {"tempering": heat},
    }.items():
        fits[name] = options = {**options, **change}
    return fits


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the model and the report.", callback=as_new)
    ] = Path("demo"),
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Fit topics four times, and show what each change adds.

    The corpus is the docstrings of NumPy, SciPy and scikit-learn. The first fit is plain stochastic
    variational inference from a random start. Then one thing changes at a time: the start, the
    update of documents, and heat. Minibatches, step sizes, priors and passes are the same. The last
    model is saved, with a report. It takes about a minute, and no network.

    \b
    Example:
      tempering demo --out demo
    """
    import numpy as np

    from tempering.cli.corpora import drawn
    from tempering.cli.validation import Validation, shown
    from tempering.datasets import load_docstrings
    from tempering.estimators import LatentDirichletAllocation
    from tempering.models.compilation import working_seconds
    from tempering.report import write_report

    out.mkdir(parents=True, exist_ok=True)  # what is in the way is told before the work
    started = time.perf_counter()
    with error_console().status("Reading the docstrings of NumPy, SciPy and scikit-learn"):
        corpus = load_docstrings(PACKAGES)
    n_documents, n_words = corpus.shape
    title = "Docstrings of NumPy, SciPy and scikit-learn"
    error_console().print(f"{title}: {n_documents:,} documents, {n_words:,} words")
    test = drawn(n_documents, int(0.1 * n_documents), seed)
    training = np.setdiff1d(np.arange(n_documents), test)
    counts: Any = corpus.counts[training]
    models: list[Any] = []
    fits: dict[str, dict[str, Any]] = {}
    *_, last = ladder()
    for name, options in ladder().items():
        model = LatentDirichletAllocation(
            N_TOPICS, max_iter=PASSES, random_state=seed, n_jobs=jobs, **options
        )
        validation = Validation(corpus.counts[test], jobs)
        began = working_seconds()
        with shown(validation, f"{name:33}") as progress:
            # Scores take time: they are made in the course of the last fit alone, for its report.
            model.fit(counts, callbacks=[validation, progress] if name == last else [progress])
        seconds = working_seconds() - began
        validation.score(model.history_[-1].data_seen, model.components_)
        fits[name] = {
            "held_out_score": validation.scores[-1][1],
            "npmi": float(model.coherence(counts).mean()),
            "seconds": round(seconds, 2),
        }
        models.append(model)
    place, report = out / "model", out / "report.html"
    model.save(place, corpus.vocabulary, overwrite=True)
    validation.write(place)
    with error_console().status("Writing the report"):
        write_report(
            model,
            report,
            counts,
            overwrite=True,
            vocabulary=corpus.vocabulary,
            names=np.array(corpus.names, object)[training],
            texts=np.array(corpus.texts, object)[training],
            validation=validation.scores,
            n_held_out=len(test),
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
    _print_topics(models[0], models[-1], corpus.vocabulary)
    console().print(f"Model   {place}", markup=False)
    console().print(f"Report  {report.absolute().as_uri()}", soft_wrap=True, markup=False)


def _print_scores(result: dict[str, Any]) -> None:
    table = Table("", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("held-out score", "adds", "coherence (NPMI)", "seconds"):
        table.add_column(column, justify="right")
    before = None
    for name, fit in result["fits"].items():
        score = fit["held_out_score"]
        gain = "" if before is None else f"{score - before:+.3f}".replace("-", "−")
        table.add_row(name, minus(score), gain, minus(fit["npmi"], 2), f"{fit['seconds']:.1f}")
        before = score
    console().print(
        f"\n{result['n_topics']} topics, {result['passes']} passes over "
        f"{result['n_documents']:,} documents; scored on {result['n_test_documents']:,} others, in "
        "nats a word\n(higher is better; the seed alone changes a score by about 0.01)\n"
    )
    print_table(table)
    print()


def _print_topics(first: Any, last: Any, vocabulary: Any) -> None:
    """Print the largest topics of the last fit, each beside the most similar one of the first."""
    from tempering.evaluation import match_topics

    partners = match_topics(last.components_, first.components_).indices
    n_words = 7
    words = first.topics(n_words, vocabulary)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("topics of the last fit", "the nearest topic of the first fit"):
        table.add_column(column, ratio=1)
    for row in topic_rows(last, n_words, vocabulary)[:12]:
        partner = words[partners[row["topic"]]]
        table.add_row(Text(" ".join(row["words"])), Text(" ".join(partner), style="dim"))
    print_table(table)
    print()
