"""The words that the columns of a fitted model stand for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tempering.evaluation.checks import as_counts, check_word_list, is_corpus
from tempering.inference import BlockSource

#: Of a fit to a corpus, or of a model that was saved with words; of a fit to a DataFrame.
WORD_ATTRIBUTES = ("vocabulary_", "feature_names_in_")


def remember_words(estimator: Any, X: Any) -> None:
    """Keep the words of a corpus and how text was made into them; forget those of another fit."""
    told = is_corpus(X) or isinstance(X, BlockSource)
    words, counting = (X.vocabulary, X.counting) if told else (None, None)
    for name, value in (
        ("vocabulary_", None if words is None else np.array(words, dtype=object)),
        # Plain values, which can be stored.
        ("counting_", None if counting is None else counting.as_dict()),
    ):
        if value is None:
            vars(estimator).pop(name, None)
        else:
            setattr(estimator, name, value)


def check_words(estimator: Any, X: Any, path: Path | None = None) -> None:
    """Refuse a corpus, in memory or at a path, whose words are not those of the fit."""
    if path is None and not is_corpus(X):
        return
    corpus, at, of, remedy = f"{path}", f"{path}: ", "", "."
    if path is None:
        corpus, at, of = "the corpus", "", " of the corpus"
        remedy = "; count the text over the words of the model, with "
        remedy += "vectorizer=tempering.corpus.model_vectorizer(model)."
    found, expected = X.shape[1], estimator.n_features_in_
    if found != expected:
        raise ValueError(
            f"{corpus} has {found} words, but the model {expected}: it was fitted to another "
            f"one{remedy}"
        )
    ours = words_of(estimator)
    if X.vocabulary is None or ours is None:
        return
    for column, (theirs, word) in enumerate(zip(X.vocabulary, ours)):
        if theirs != word:
            raise ValueError(
                f"{at}column {column}{of} is {theirs!r:.80}, but {str(word)!r:.80} in the model: "
                f"it was fitted to other words{remedy}"
            )


def counts_over_words(estimator: Any, X: Any) -> sparse.csr_array:
    """Counts of documents over the words of the fit; a corpus or a frame over others is refused."""
    check_words(estimator, X)
    ours, columns = words_of(estimator), getattr(X, "columns", None)
    if ours is not None and columns is not None and len(columns) == len(ours):
        for place, (theirs, word) in enumerate(zip(columns, ours)):
            # As scikit-learn has it, only text names a column.
            if isinstance(theirs, str) and theirs != word:
                raise ValueError(
                    f"column {place} of X is {theirs!r:.80}, but {str(word)!r:.80} in the model: "
                    "give the columns of the fit, in their order."
                )
    return as_counts(X, "X", estimator.n_features_in_)


def words_of(estimator: Any, vocabulary: Sequence[str] | None = None) -> Sequence[str] | None:
    """The words that are given, or those that the model knows; None for none."""
    for name in WORD_ATTRIBUTES:
        if vocabulary is None:
            vocabulary = getattr(estimator, name, None)
    if vocabulary is not None:
        check_word_list(vocabulary)
    if vocabulary is not None and len(vocabulary) != estimator.n_features_in_:
        raise ValueError(
            f"vocabulary has {len(vocabulary)} words; the estimator was fitted to "
            f"{estimator.n_features_in_} columns."
        )
    return vocabulary
