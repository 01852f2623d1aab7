"""Held-out scores of topics while they are fitted, and the file that keeps them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tempering.cli.fit import SCORES
from tempering.evaluation import completion_score, split_documents
from tempering.evaluation.checks import normalised
from tempering.inference import Report
from tempering.storage.atomic import atomic_file

#: Scores in the course of a fit.
POINTS = 20

Scores = list[tuple[int, float]]


class Validation:
    """Scores documents that the fit does not see, a few times: a callback of ``fit``.

    The prior of their proportions is 1 / K. The scores are kept in a file, so that a fit that is
    taken up again (``resume``) has them.
    """

    def __init__(
        self,
        documents: Any,
        n_topics: int,
        n_threads: int | None = None,
        file: Path | None = None,
        resume: bool = False,
    ):
        self.n_documents = documents.shape[0]
        self.scores: Scores = []
        self._split = split_documents(documents)
        self._alpha, self._n_threads, self._file = 1.0 / n_topics, n_threads, file
        if resume and file is not None and file.exists():
            self.scores = read_scores(file)

    @property
    def can_score(self) -> bool:
        """Whether there is a word to predict: a document of one word has none."""
        return self._split.held_out.nnz > 0

    def __call__(self, report: Report) -> None:
        record = report.record
        n_documents = record.data_seen / record.passes
        planned = round(n_documents * report.planned_passes)
        last = self.scores[-1][0] if self.scores else 0
        # By the documents seen, not by the clock, so that the same fit has the same scores. (A fit
        # that is taken up again may have one of them a step later.)
        if POINTS * record.data_seen // planned > POINTS * last // planned:
            self.score(record.data_seen, report.posterior.parameters().T)

    def score(self, data_seen: int, components: Any) -> None:
        """Score topics, given by their Dirichlet parameters [K, V], unless that was done."""
        if self.scores and self.scores[-1][0] >= data_seen:
            return
        topics = normalised(components)
        value = completion_score(
            *self._split, topics, self._alpha, inference="vi", n_threads=self._n_threads
        )
        self.scores.append((int(data_seen), float(np.round(value, 6))))
        if self._file is not None:
            # Without room for it the fit goes on, as it does without room for a checkpoint.
            with suppress(OSError):
                self.write(self._file)

    def write(self, file: Path) -> None:
        """Keep the scores."""
        content = {"n_documents": self.n_documents, "scores": self.scores}
        with atomic_file(file) as aside:
            aside.write_text(json.dumps(content))


def read_scores(file: Path) -> Scores:
    """The scores in a file, as (documents seen, nats a word)."""
    try:
        scores = json.loads(file.read_bytes())["scores"]
        return [(int(seen), float(score)) for seen, score in scores]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{file} is damaged ({error}): remove it to go on without.") from None


def model_scores(model: Path) -> Scores | None:
    """The scores of a saved model, if it has any."""
    file = model / SCORES
    return read_scores(file) if file.exists() else None
