"""Fitted topics for pyLDAvis."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.words import check_words
from tempering.evaluation.checks import as_counts, normalised
from tempering.report.data import vocabulary_of


def pyldavis_arguments(
    model: LatentDirichletAllocation, X: Any, vocabulary: Sequence[str] | None = None
) -> dict[str, Any]:
    """What ``pyLDAvis.prepare`` wants to know, without pyLDAvis.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted.
    X : array, sparse matrix or Corpus of shape (n_documents, n_words)
        The documents; those without a word are left out.
    vocabulary : sequence of str, optional
        The words; by default those of the fit, or those the model was saved with, or numbers.

    Returns
    -------
    dict
        ``topic_term_dists``, ``doc_topic_dists``, ``doc_lengths``, ``vocab``, ``term_frequency``,
        and the settings by which topics keep the model's numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.report import pyldavis_arguments
    >>> X = np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    >>> lda = LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> arguments = pyldavis_arguments(lda, X, ["sun", "sea", "snow", "ice"])
    >>> arguments["doc_topic_dists"].shape, arguments["term_frequency"]
    ((100, 2), array([200., 150., 250., 200.]))
    """
    check_is_fitted(model)
    words = vocabulary_of(model, vocabulary, X)
    check_words(model, X)
    counts = as_counts(X, "X").astype(np.float64)
    counts = counts[np.flatnonzero(counts.sum(axis=1) > 0)]
    if counts.shape[0] == 0:
        raise ValueError("X must hold at least one word; every document is empty.")
    return {
        "topic_term_dists": normalised(model.components_.astype(np.float64)),
        "doc_topic_dists": model.transform(counts),
        "doc_lengths": counts.sum(axis=1),
        "vocab": [str(word) for word in words],
        "term_frequency": counts.sum(axis=0),
        "sort_topics": False,
        "start_index": 0,
    }


def to_pyldavis(
    model: LatentDirichletAllocation, X: Any, vocabulary: Sequence[str] | None = None
) -> Any:
    """The topics for pyLDAvis' page: show it with ``pyLDAvis.display``.

    Parameters
    ----------
    model, X, vocabulary
        As in :func:`pyldavis_arguments`.

    Returns
    -------
    pyLDAvis.PreparedData
        Topics have the numbers that they have in the model, from 0.

    Examples
    --------
    pyLDAvis is no dependency of this package:

    >>> import numpy as np
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.report import to_pyldavis
    >>> X = np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    >>> lda = LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> prepared = to_pyldavis(lda, X, ["sun", "sea", "snow", "ice"])  # doctest: +SKIP
    """
    try:
        library = import_module("pyLDAvis")
    except ImportError as error:
        raise ImportError(
            f"to_pyldavis needs pyLDAvis, which cannot be imported ({error}). "
            "Install it with: pip install pyLDAvis"
        ) from error
    return library.prepare(**pyldavis_arguments(model, X, vocabulary))
