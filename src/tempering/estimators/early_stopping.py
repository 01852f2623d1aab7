"""Ending a fit of topics when documents that it does not see are predicted no better."""

from typing import Any

import numpy as np

from tempering.evaluation import completion_score, split_documents
from tempering.evaluation.checks import normalised
from tempering.inference import Report


class EarlyStopping:
    """A callback for ``LatentDirichletAllocation.fit``: stop when the held-out score has settled.

    It scores once in each pass, and only once T = 1, because before that scores rise as the fit
    cools. So a fit never ends hot.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        Documents that are not in the fit, over the same words.
    patience : int
        The fit ends after this many passes without a better score.
    tolerance : float
        How much higher a score must be to count as better, in nats a word.

    Attributes
    ----------
    scores : list of (int, float)
        Documents seen, and nats a held-out word.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import EarlyStopping, LatentDirichletAllocation
    >>> X = np.repeat([[4, 3, 1, 0], [0, 1, 5, 4]], 50, axis=0)
    >>> stopping = EarlyStopping(X[::10])
    >>> lda = LatentDirichletAllocation(n_components=2, max_iter=200, random_state=0)
    >>> lda.fit(X, callbacks=[stopping]).n_iter_ < 200
    True
    """

    def __init__(self, X: Any, *, patience: int = 3, tolerance: float = 1e-3):
        if patience < 1:
            raise ValueError(f"patience must be at least 1; got {patience}.")
        if not tolerance >= 0:
            raise ValueError(f"tolerance must be 0 or positive; got {tolerance}.")
        self._split = split_documents(X)
        if self._split.held_out.nnz == 0:
            raise ValueError("X has no word to predict: its documents need two kinds of words.")
        self.patience = patience
        self.tolerance = tolerance
        self.scores: list[tuple[int, float]] = []

    def __call__(self, report: Report) -> bool:
        record = report.record
        n_documents = record.data_seen / record.passes
        scored = self.scores[-1][0] if self.scores else 0
        if record.phase != "final" or record.data_seen < scored + n_documents:
            return False
        topics = normalised(report.posterior.parameters().T)
        score = completion_score(*self._split, topics, 1.0 / len(topics), inference="vi")
        self.scores.append((record.data_seen, float(score)))
        return self._has_settled()

    def _has_settled(self) -> bool:
        """Whether none of the last scores is better than the best before them."""
        values = np.array([score for _, score in self.scores])
        before, last = values[: -self.patience], values[-self.patience :]
        return before.size > 0 and bool(last.max() < before.max() + self.tolerance)
