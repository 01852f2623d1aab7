"""Frames go in as they are; one whose columns are other words than the fit's is refused."""

import warnings

import numpy as np
import pandas
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus
from tempering.datasets import make_lda
from tempering.report import collect
from tempering.workbench import (
    compare_models,
    split_topic,
    topics_across_seeds,
    topics_by_group,
    topics_over_time,
)


@pytest.fixture(scope="module")
def frame():
    counts = make_lda(60, n_topics=2, n_words=20, document_length=30, seed=0).counts
    return pandas.DataFrame(counts.toarray(), columns=[f"w{v:02d}" for v in range(20)])


@pytest.fixture(scope="module")
def model(frame):
    return LatentDirichletAllocation(2, max_iter=3, random_state=0).fit(frame)


CALLS = {
    "by group": lambda m, X: topics_by_group(m, X, np.arange(60) % 2, n_draws=2).draws,
    "over time": lambda m, X: topics_over_time(m, X, np.arange(60), 2, n_draws=2).draws,
    "across seeds": lambda m, X: topics_across_seeds(m, X, 1),
    "split": lambda m, X: split_topic(m, 0, X, passes=0).components_,
    "compared": lambda m, X: compare_models(m, m, X).scores,
    "report": lambda m, X: [d["topics"] for d in collect(m, X).documents],
}


@pytest.mark.parametrize("name", CALLS)
def test_frames_are_counts_with_words(frame, model, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = CALLS[name](model, frame)
    plain = CALLS[name](model, Corpus(sparse.csr_array(frame.to_numpy()), list(frame.columns)))
    np.testing.assert_array_equal(told, plain)
    shuffled = frame[frame.columns[::-1]]
    with pytest.raises(ValueError, match="column 0 of X is 'w19', but 'w00' in the model"):
        CALLS[name](model, shuffled)
    with pytest.raises(ValueError, match="column 0 of the corpus is 'w19', but 'w00'"):
        CALLS[name](model, Corpus(sparse.csr_array(shuffled.to_numpy()), list(shuffled.columns)))
