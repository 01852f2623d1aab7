"""Topics whose words drift."""

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus
from tempering.workbench import topics_through_time

N_SLICES, N_DOCUMENTS = 4, 150
NO_WORDS_IN_2001 = np.ones((600, 3), int)
NO_WORDS_IN_2001[150:300] = 0


@pytest.fixture(scope="module")
def drifting():
    """Four topics of 20 words each; the first goes over to 20 other words."""
    rng = np.random.default_rng(0)
    rows, times = [], []
    for year in range(N_SLICES):
        topics = np.kron(np.eye(4, 5), np.full(20, 0.05))
        gone = year / (N_SLICES - 1)
        topics[0, :20], topics[0, 80:] = 0.05 * (1 - gone), 0.05 * gone
        for theta in rng.dirichlet(np.full(4, 0.2), size=N_DOCUMENTS):
            rows.append(rng.multinomial(40, theta @ topics))
            times.append(2000 + year)
    words = [f"{'abcde'[v // 20]}{v}" for v in range(100)]
    return Corpus(sparse.csr_matrix(np.array(rows)), words), np.array(times)


@pytest.fixture(scope="module")
def drift(drifting):
    return topics_through_time(*drifting, 4, bins=np.arange(2000, 2005))


def test_the_words_of_the_right_topic_drift(drift):
    letters = [
        ["".join({word[0] for word in words}) for words in drift.top_words(k, 10)] for k in range(4)
    ]
    moving = [k for k in range(4) if letters[k][0] == "a"]
    assert len(moving) == 1
    assert letters[moving[0]][-1] == "e"
    assert sorted(own[-1] for k, own in enumerate(letters) if k not in moving) == ["b", "c", "d"]
    assert all(len(set(own)) == 1 for k, own in enumerate(letters) if k not in moving)
    total = drift.drift().sum(axis=0)
    assert total[moving[0]] > 3 * np.delete(total, moving[0]).max()


def test_what_is_told(drift, drifting):
    assert drift.names[0] == (2000, 2001)
    assert len(drift.models) == N_SLICES
    assert drift.topics().shape == (N_SLICES, 4, 100)
    assert repr(drift) == str(drift)
    line = str(drift).splitlines()[1 + int(drift.drift().sum(axis=0).argmax())]
    came, went = line.split("  ")[-1].split(" / ")
    assert {word[0] for word in came.split(", ")} == {"e"}
    assert {word[0] for word in went.split(", ")} == {"a"}
    assert drift.models[-1].transform(drifting[0].counts[:2]).shape == (2, 4)


def test_strength_holds_topics(drifting):
    corpus, times = drifting
    few = {"estimator": LatentDirichletAllocation(max_iter=5), "bins": 2}
    loose, held = (
        topics_through_time(corpus, times, 4, strength=strength, **few).drift().max()
        for strength in (0.1, 20.0)
    )
    assert held < 0.3 * loose


def test_seeds_are_words_of_the_corpus(drifting):
    corpus, times = drifting
    led = LatentDirichletAllocation(max_iter=3, seed_topics={"led": ["c40", "c41"]})
    drift = topics_through_time(corpus, times, 4, bins=2, estimator=led)
    assert {word[0] for word in drift.top_words(0, 5)[-1]} == {"c"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strength": 0}, "strength must be positive; got 0"),
        ({"times": [1, 2]}, r"times must hold one value for each of the 600 documents"),
        ({"bins": 0}, "bins must be a whole number from 1 to"),
        ({"n_components": 0}, "n_components"),
        (
            {"X": NO_WORDS_IN_2001, "bins": range(2000, 2005)},
            "bins must hold words each: from 2001 to 2002 X has none",
        ),
    ],
)
def test_what_cannot_be_is_named(drifting, options, message):
    corpus, times = drifting
    with pytest.raises(ValueError, match=message):
        topics_through_time(**{"X": corpus, "times": times, **options})


def test_a_topic_out_of_range_is_named(drift):
    with pytest.raises(ValueError, match="topic must be the number of a topic, from 0 to 3; got 4"):
        drift.top_words(4)
