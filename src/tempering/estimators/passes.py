"""What is said and decided after a pass over the documents, as scikit-learn does it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tempering.evaluation import completion_score, split_documents
from tempering.inference import Report


class PassWatch:
    """A callback of a fit of topics: a line a pass, perplexity, and a fit that ends by it.

    Parameters
    ----------
    documents : CSR matrix or None
        What perplexity is computed of; None for no perplexity.
    doc_topic_prior : float or array of shape (n_components,)
        Prior of the proportions of these documents.
    every : int
        Passes between two perplexities.
    tolerance : float
        The fit ends when perplexity changes by less; 0 for never. While it is tempered, perplexity
        falls with the cooling, so only what is found at T = 1 counts.
    lines : bool
        Print a line a pass.
    n_threads : int
        Threads.
    """

    def __init__(
        self,
        documents: Any | None,
        doc_topic_prior: ArrayLike = 1.0,
        *,
        every: int = 1,
        tolerance: float = 0.0,
        lines: bool = False,
        n_threads: int = 1,
    ):
        self._split = None if documents is None else split_documents(documents)
        self._alpha, self._n_threads = doc_topic_prior, n_threads
        self._every, self._tolerance, self._lines = every, tolerance, lines
        self._passes, self._previous = 0, np.nan

    def __call__(self, report: Report) -> bool:
        record = report.record
        if record.step == 0:  # of each restart
            self._passes, self._previous = 0, np.nan
        passes = int(record.passes + 1e-9)
        if passes == self._passes:
            return False
        self._passes = passes
        line = f"iteration: {passes} of max_iter: {report.planned_passes:g}"
        stops = False
        if self._split is not None and passes % self._every == 0:
            perplexity = self._perplexity(report.posterior)
            line += f", perplexity: {perplexity:.4f}"
            if record.phase == "final":
                stops = abs(perplexity - self._previous) < self._tolerance
                self._previous = perplexity
        if self._lines:
            print(line, flush=True)
        return stops

    def _perplexity(self, posterior: Any) -> float:
        assert self._split is not None
        components = posterior.parameters().T
        topics = components / components.sum(axis=1, keepdims=True, dtype=np.float64)
        score = completion_score(
            *self._split, topics, self._alpha, inference="vi", n_threads=self._n_threads
        )
        return float(np.exp(-score))
