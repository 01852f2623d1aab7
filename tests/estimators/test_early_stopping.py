"""A fit ends when held-out documents are predicted no better, and never before T = 1."""

import numpy as np
import pytest

from tempering import EarlyStopping, LatentDirichletAllocation
from tempering.datasets import make_lda


@pytest.fixture(scope="module")
def counts():
    return make_lda(400, n_topics=4, n_words=60, document_length=40, seed=0).counts


def test_the_fit_ends_early_and_at_temperature_one(counts):
    stopping = EarlyStopping(counts[300:])
    model = LatentDirichletAllocation(4, max_iter=100, random_state=0)
    model.fit(counts[:300], callbacks=[stopping])
    start = model.history_[model.history_.final_phase_start].passes
    assert start < model.n_iter_ < 100
    assert model.history_[-1].phase == "final"
    seen = np.diff([n for n, _ in stopping.scores])
    assert np.all(seen >= 300)
    assert len(stopping.scores) == pytest.approx(model.n_iter_ - start, abs=2)


def test_the_scores_are_those_of_the_model(counts):
    stopping = EarlyStopping(counts[300:])
    model = LatentDirichletAllocation(4, max_iter=50, random_state=0)
    model.fit(counts[:300], callbacks=[stopping])
    score = model.completion_score(counts[300:])
    assert stopping.scores[-1][1] == pytest.approx(score, abs=5e-3)


@pytest.mark.parametrize(
    ("scores", "settled"),
    [
        ([-3.0, -2.0, -2.0005], False),
        ([-2.0, -2.0004, -1.9995], True),
        ([-2.0, -1.9, -1.9], False),
        ([-2.0, -2.5, -1.9], False),
    ],
)
def test_when_scores_have_settled(counts, scores, settled):
    stopping = EarlyStopping(counts, patience=2, tolerance=1e-3)
    stopping.scores = list(enumerate(scores))
    assert stopping._has_settled() is settled


def test_bad_arguments_are_named(counts):
    with pytest.raises(ValueError, match="patience must be at least 1; got 0"):
        EarlyStopping(counts, patience=0)
    with pytest.raises(ValueError, match="tolerance"):
        EarlyStopping(counts, tolerance=-1.0)
    with pytest.raises(ValueError, match="no word to predict"):
        EarlyStopping(np.eye(5))
