"""The report of a model and a corpus on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tempering.cli.corpora import ModelCorpus, Reading, streams
from tempering.cli.models import load_topics
from tempering.cli.printing import error_console
from tempering.cli.validation import model_scores
from tempering.corpus import open_source
from tempering.report import collect, write_report
from tempering.report.page import check_place


def run_report(
    model: Path,
    reading: Reading | None,
    out: Path,
    title: str | None,
    max_documents: int,
    jobs: int | None,
    overwrite: bool,
) -> int:
    """Write the report; its size in bytes."""
    check_place(out, overwrite)
    fitted = load_topics(model).set_params(n_jobs=jobs)
    with error_console().status("Writing the report"):
        named = model if reading is None else reading.path
        data = collect(
            fitted,
            validation=model_scores(model),
            title=title or f"Topics of {named.resolve().stem}",
            max_documents=max_documents,
            **({} if reading is None else _documents(reading, fitted)),
        )
        write_report(data, out, overwrite=overwrite)
    return out.stat().st_size


def _documents(reading: Reading, fitted: Any) -> dict[str, Any]:
    """The documents, their names, and their texts where there are any."""
    corpus = ModelCorpus(reading, fitted)
    if streams(corpus.stored):
        return {"X": open_source(reading.path), "names": corpus.names}
    texts = reading.texts() if corpus.is_text else None
    return {"X": corpus.counts(), "names": corpus.names, "texts": texts}
