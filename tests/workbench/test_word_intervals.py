"""Intervals of a topic's words are those of draws from its posterior."""

import numpy as np
import pytest

from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus
from tempering.datasets import make_lda
from tempering.workbench import word_intervals


@pytest.fixture(scope="module")
def model():
    counts = make_lda(60, n_topics=2, n_words=20, document_length=30, seed=0).counts
    corpus = Corpus(counts, [f"word {v}" for v in range(20)])
    return LatentDirichletAllocation(2, max_iter=3, random_state=0).fit(corpus)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_they_hold_the_draws_that_they_should(model, level):
    told = word_intervals(model, 1, 5, level)
    assert [each.word for each in told] == model.topics(5)[1]
    draws = np.random.default_rng(0).dirichlet(model.components_[1].astype(float), 20_000)
    tail = (1 - level) / 2
    for word, low, high in told:
        of_word = draws[:, int(word.split()[1])]
        np.testing.assert_allclose(
            [np.mean(of_word < low), np.mean(of_word > high)], tail, atol=0.01
        )


def test_the_only_word_is_certain():
    model = LatentDirichletAllocation(1, max_iter=2, random_state=0).fit([[3], [2]])
    assert word_intervals(model, 0, 1) == [(0, 1.0, 1.0)]


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("topic must be the number of a topic, from 0 to 1", {"topic": 2}),
        ("n_words must be", {"n_words": 21}),
        ("level must be between 0 and 1", {"level": 1.0}),
    ],
)
def test_what_cannot_be_told_is_refused(model, message, arguments):
    with pytest.raises(ValueError, match=message):
        word_intervals(model, **{"topic": 0, **arguments})
