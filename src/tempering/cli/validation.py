"""Documents that a fit never sees: kept out of it and scored while it runs; how far a fit is."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tempering.cli.corpora import Reading, drawn, streams
from tempering.cli.options import SCORES
from tempering.cli.printing import error_console, minus
from tempering.corpus import CorpusError, Stored, open_source
from tempering.corpus.corpus import gather
from tempering.evaluation import completion_score, split_documents
from tempering.evaluation.checks import normalised
from tempering.evaluation.completion import Split
from tempering.inference import BlockSource, Report
from tempering.inference.callbacks import Callback, progress_bar
from tempering.inference.sources import StoredRows
from tempering.models.compilation import COMPILING, on_compilation
from tempering.storage.atomic import atomic_file

#: Scores in the course of a fit.
POINTS = 20
#: Words of the documents that are kept for validation by default, as each score visits them all.
MOST_WORDS = 100_000
#: Sum of α in all scores: the same for any number of topics, so that these can be compared.
PRIOR_WEIGHT = 5.0

Scores = list[tuple[int, float]]


def split_corpus(
    reading: Reading, stored: Stored, validation: float | None, batch_size: int, seed: int
) -> tuple[Any, Any]:
    """Documents to fit, in memory or streamed by ``batch_size``, and some to be scored or None."""
    n_documents = stored.shape[0]
    streamed = streams(stored)
    documents: Any = open_source(reading.path, batch_size) if streamed else gather(stored).counts
    n_words = documents.n_tokens if streamed else documents.sum()
    n_kept = n_validation(n_documents, validation, n_words)
    if not n_kept:
        return documents, None
    places = drawn(n_documents, n_kept, seed)
    if not streamed:
        others = np.setdiff1d(np.arange(n_documents), places)
        return documents[others], documents[places]
    source = documents
    kept = source.sample(n_kept, np.random.default_rng(seed))
    files = RemainingRows(source.files, places, source.n_tokens - kept.sum().item())
    training = BlockSource(files, batch_size, source.window_blocks)
    training.counting = source.counting
    return training, kept


def n_validation(n_documents: int, validation: float | None, n_words: float) -> int:
    """Return the number of documents that are kept for validation."""
    if validation is None:
        most = MOST_WORDS * n_documents / max(n_words, 1)
        return int(min(0.05 * n_documents, 1000, most))
    n = validation * n_documents if validation < 1 else validation
    if not n < n_documents:  # so is NaN, and infinity
        raise CorpusError(
            f"--validation {validation:g} leaves nothing to fit: there are {n_documents} documents."
        )
    return int(n)


class RemainingRows:
    """A matrix on disk but for some rows, given in rising order; n_tokens is what remains."""

    def __init__(self, files: StoredRows, left_out: NDArray[np.int64], n_tokens: int | float):
        self.path = files.path
        self.shape = (files.shape[0] - left_out.size, files.shape[1])
        self.n_tokens = n_tokens
        self.edges = np.unique(files.edges - np.searchsorted(left_out, files.edges))
        self._files, self._left_out = files, left_out
        self._remaining_before = left_out - np.arange(left_out.size)

    def rows(self, start: int, stop: int) -> Any:
        """The remaining documents from ``start`` to ``stop``."""
        if start >= stop:
            return self._files.rows(0, 0)
        first, last = self._place(start), self._place(stop - 1) + 1
        rows: Any = self._files.rows(first, last)
        here = slice(*np.searchsorted(self._left_out, [first, last]))
        gone = self._left_out[here] - first
        return rows[np.setdiff1d(np.arange(last - first), gone)] if gone.size else rows

    def _place(self, row: int) -> int:
        """Where a remaining row stands in the file."""
        return row + int(np.searchsorted(self._remaining_before, row, side="right"))


def inference_for(counts: Any) -> Literal["gibbs", "vi"]:
    """Return how proportions are inferred for a score: weights have no words to sample."""
    return "gibbs" if np.array_equal(counts.data, np.floor(counts.data)) else "vi"


def score_topics(
    split: Split,
    components: Any,
    n_threads: int | None = None,
    *,
    alpha: float | None = None,
    seed: int = 0,
) -> float:
    """Return the score that all commands report: nats a word, by document completion.

    Proportions are inferred by Gibbs sampling, at the same sum of α for any number of topics.
    """
    topics = normalised(components)
    alpha = PRIOR_WEIGHT / len(topics) if alpha is None else alpha
    how: Any = {"inference": inference_for(split.observed), "seed": seed, "n_threads": n_threads}
    return completion_score(*split, topics, alpha, **how)


class Validation:
    """Held-out scores in the course of a fit."""

    def __init__(
        self,
        documents: Any,
        n_threads: int | None = None,
        folder: Path | None = None,
        resume: bool = False,
    ):
        self.n_documents = documents.shape[0]
        self.scores: Scores = []
        self._split = split_documents(documents)
        self._n_threads, self._folder = n_threads, folder
        if resume and folder is not None:
            _, self.scores = read_scores(folder)

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
        self.scores.append(
            (int(data_seen), round(score_topics(self._split, components, self._n_threads), 6))
        )
        if self._folder is not None:
            # Without room for it the fit goes on, as it does without room for a checkpoint.
            with suppress(OSError):
                self.write(self._folder)

    def write(self, folder: Path) -> None:
        """Keep the scores."""
        content = {"n_documents": self.n_documents, "scores": self.scores}
        with atomic_file(folder / SCORES) as aside:
            aside.write_text(json.dumps(content))


def read_scores(folder: Path) -> tuple[int, Scores]:
    """Documents that were kept out of a fit, and their scores: (documents seen, nats a word)."""
    file = folder / SCORES
    if not file.exists():
        return 0, []
    try:
        content = json.loads(file.read_bytes())
        scores = [(int(seen), float(score)) for seen, score in content["scores"]]
        return int(content["n_documents"]), scores
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{file} is damaged ({error}): remove it to go on without.") from None


@contextmanager
def shown(validation: Validation | None, name: str = "fit") -> Iterator[Callback]:
    """What shows the progress of one fit."""

    def held_out() -> str:
        scores = [] if validation is None else validation.scores
        return f"  held-out {minus(scores[-1][1])}" if scores else ""

    last = 0

    def print_pass(report: Report) -> None:
        nonlocal last
        record = report.record
        passes = int(record.passes + 1e-9)
        if passes > last:
            last = passes
            speed = record.data_seen / max(record.seconds, 1e-9)
            line = f"pass {passes} of {report.planned_passes:g}  {speed:,.0f} documents/s"
            line += f"  T {record.temperature:.2f}{held_out()}"
            error_console().print(line, soft_wrap=True)

    with progress_bar(True, name, held_out) as bar:
        if bar is not None:
            yield bar
            return
        with on_compilation(lambda: error_console().print(COMPILING)):
            yield print_pass
