"""Topics over long vocabularies: their sums are right, whatever adds them up."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.cli.topics import topic_rows
from tempering.cli.validation import Validation
from tempering.evaluation import completion_score, split_documents
from tempering.evaluation.checks import normalised
from tempering.report.tables import TopicWords


def documents_over(n_words):
    """One word first that is so frequent that a sum in float32 loses all others."""
    rng = np.random.default_rng(0)
    n_documents, length = 20, 50
    words = rng.integers(1, n_words, n_documents * length)
    rows = np.repeat(np.arange(n_documents), length)
    X = sparse.coo_array((np.ones(rows.size), (rows, words)), (n_documents, n_words)).tolil()
    X[:, [0]] = 1e6
    return sparse.csr_matrix(X)


@pytest.mark.parametrize("n_words", [40_000, 100_000, 1_000_000])
def test_topics_sum_to_one_over_any_vocabulary(n_words):
    X = documents_over(n_words)
    lda = LatentDirichletAllocation(
        2, tempering=None, learning_method="batch", max_iter=1, random_state=0, n_jobs=1
    ).fit(X)
    parameters = lda._state.posterior.parameters().T  # as they lie in memory
    topics = normalised(parameters)
    assert topics.dtype == np.float32
    assert_allclose(topics.sum(axis=1, dtype=np.float64), 1.0, atol=1e-5)

    # Everything that asks for topics gets these.
    split = split_documents(X)
    alpha = lda.doc_topic_prior_
    assert np.isfinite(completion_score(*split, topics, alpha, inference="vi", n_threads=1))
    assert np.isfinite(lda.score(X))
    validation = Validation(X, n_threads=1)
    validation.score(1, parameters)
    assert len(validation.scores) == 1

    # The sum that people write themselves.
    components = lda.components_
    shares = components / components.sum(axis=1, keepdims=True)
    assert_allclose(shares.sum(axis=1, dtype=np.float64), 1.0, atol=1e-5)


def test_the_sizes_of_topics_are_right_over_a_long_vocabulary():
    X = documents_over(1_000_000)
    lda = LatentDirichletAllocation(2, tempering=None, max_iter=1, random_state=0, n_jobs=1).fit(X)
    held = lda._state.posterior.counts().sum(axis=0, dtype=np.float64)
    shares = {row["topic"]: row["share"] for row in topic_rows(lda, 1, None)}
    assert_allclose([shares[0], shares[1]], held / held.sum(), atol=1e-3)
    words = TopicWords.from_parameters(lda.components_, lda.topic_word_prior_)
    assert_allclose(words.prevalence, held / held.sum(), atol=1e-3)
