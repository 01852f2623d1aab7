"""``tempering demo``: what tempering is for, in a minute."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from rich.text import Text

from tempering.cli.corpora import drawn
from tempering.cli.printing import console, error_console, minus, print_json
from tempering.cli.progress import shown
from tempering.cli.topics import topic_rows
from tempering.cli.validation import Validation
from tempering.corpus import Corpus
from tempering.datasets import load_docstrings
from tempering.estimators import LatentDirichletAllocation
from tempering.evaluation import match_topics
from tempering.inference.compilation import working_seconds
from tempering.report import collect, write_report

N_TOPICS, PASSES = 40, 10
TEST_SHARE = 0.1
#: Prior of the proportions at which both are scored.
ALPHA = 0.1
PRINTED_TOPICS, PRINTED_WORDS = 12, 7
#: The budget is the same: passes, size of batches, step sizes, seed.
SETTINGS: dict[str, dict[str, Any]] = {
    "plain SVI": {"tempering": None, "update": "variational"},
    "tempered": {},
}


class Fitted(NamedTuple):
    """A model, and how good it is."""

    model: LatentDirichletAllocation
    scores: Validation
    result: dict[str, float]


def run_demo(out: Path, seed: int, jobs: int | None, as_json: bool) -> None:
    """Fit both, compare, save, report."""
    out.mkdir(parents=True, exist_ok=True)  # what is in the way is told before the work
    started = time.perf_counter()
    with error_console().status("Reading the docstrings of the installed packages"):
        corpus = load_docstrings()
    n_documents, n_words = corpus.shape
    error_console().print(
        f"Docstrings of the installed packages: {n_documents:,} documents, {n_words:,} words"
    )
    test = drawn(n_documents, int(TEST_SHARE * n_documents), seed)
    training = np.setdiff1d(np.arange(n_documents), test)
    fits = {
        name: _fit(name, options, corpus.counts[training], corpus.counts[test], seed, jobs)
        for name, options in SETTINGS.items()
    }
    model, report = out / "model", out / "report.html"
    tempered = fits["tempered"]
    tempered.model.save(model, corpus.vocabulary, overwrite=True)
    tempered.scores.write(model)
    with error_console().status("Writing the report"):
        _write_report(tempered, corpus, training, report)

    result = {
        "n_documents": len(training),
        "n_test_documents": len(test),
        "n_words": n_words,
        "n_topics": N_TOPICS,
        "passes": PASSES,
        "fits": {name: fit.result for name, fit in fits.items()},
        "model": str(model),
        "report": str(report),
        "seconds": round(time.perf_counter() - started, 1),
    }
    if as_json:
        print_json(result)
        return
    _print_scores(result)
    _print_topics(fits["plain SVI"].model, tempered.model, corpus.vocabulary)
    console().print(f"Model   {model}", markup=False)
    console().print(f"Report  {report.absolute().as_uri()}", soft_wrap=True, markup=False)


def _fit(
    name: str, options: dict[str, Any], training: Any, test: Any, seed: int, jobs: int | None
) -> Fitted:
    model = LatentDirichletAllocation(
        N_TOPICS, max_iter=PASSES, random_state=seed, n_jobs=jobs, **options
    )
    scores = Validation(test, N_TOPICS, jobs)
    started = working_seconds()
    with shown(scores, f"{name:9}") as progress:
        model.fit(training, callbacks=[scores, progress])
    seconds = working_seconds() - started
    result = {
        "completion_gibbs": model.completion_score(test, inference="gibbs", alpha=ALPHA),
        "completion_vi": model.completion_score(test, alpha=ALPHA),
        "npmi": float(model.coherence(training).mean()),
        "seconds": round(seconds, 2),
    }
    return Fitted(model, scores, result)


def _write_report(fitted: Fitted, corpus: Corpus, training: Any, path: Path) -> None:
    names, texts = corpus.names, corpus.texts
    assert names is not None
    assert texts is not None
    data = collect(
        fitted.model,
        corpus.counts[training],
        vocabulary=corpus.vocabulary,
        names=[names[i] for i in training],
        texts=[texts[i] for i in training],
        validation=fitted.scores.scores,
        title="Docstrings of the installed packages",
    )
    write_report(data, path, overwrite=True)


def _print_scores(result: dict[str, Any]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for column in ("held-out nats a word", "coherence (NPMI)", "seconds"):
        table.add_column(column, justify="right")
    for name, scores in result["fits"].items():
        table.add_row(
            name,
            minus(scores["completion_gibbs"]),
            minus(scores["npmi"], 2),
            f"{scores['seconds']:.1f}",
        )
    out = console()
    out.print()
    out.print(
        f"{result['n_topics']} topics, {result['passes']} passes over {result['n_documents']:,} "
        f"documents; scored on {result['n_test_documents']:,} others (higher is better)"
    )
    out.print()
    out.print(table)
    out.print()


def _print_topics(
    plain: LatentDirichletAllocation, tempered: LatentDirichletAllocation, vocabulary: Any
) -> None:
    """The largest tempered topics, each beside the plain one that is most like it."""
    partners = match_topics(tempered.components_, plain.components_).indices
    words = plain.topics(PRINTED_WORDS, vocabulary)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("tempered", ratio=1)
    table.add_column("plain SVI, the nearest topic", ratio=1)
    for row in topic_rows(tempered, PRINTED_WORDS, vocabulary)[:PRINTED_TOPICS]:
        partner = words[partners[row["topic"]]]
        table.add_row(Text(" ".join(row["words"])), Text(" ".join(partner), style="dim"))
    out = console()
    out.print(table)
    out.print()
