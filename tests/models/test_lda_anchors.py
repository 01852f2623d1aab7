"""Topics to start from: anchor words against brute force, known topics, corpora with few words."""

import numpy as np
import pytest
from scipy import sparse

from tempering.datasets import make_lda
from tempering.evaluation import topic_stability
from tempering.inference import ArraySource
from tempering.models.lda import start
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.start import START_WORDS, anchored_topics, farthest_rows


def distance_from_plane(point, others):
    """Of a point from the plane through the others, by least squares."""
    offsets, target = (others[1:] - others[0]).T, point - others[0]
    if not offsets.size:
        return np.linalg.norm(target)
    return np.linalg.norm(offsets @ np.linalg.lstsq(offsets, target)[0] - target)


def test_each_row_is_the_farthest_from_those_before_it():
    points = np.random.default_rng(0).standard_normal((30, 12))
    chosen = farthest_rows(points, 9)
    assert chosen[0] == np.argmax((points**2).sum(axis=1))
    for m in range(1, 9):
        distances = [distance_from_plane(point, points[chosen[:m]]) for point in points]
        assert chosen[m] == np.argmax(distances)


def test_rows_end_where_the_plane_holds_them_all():
    corners = np.random.default_rng(1).standard_normal((3, 8))
    inside = np.random.default_rng(2).dirichlet(np.ones(3), size=20) @ corners
    assert sorted(farthest_rows(np.vstack([inside, corners]), 10)) == [20, 21, 22]
    assert farthest_rows(np.ones((4, 2)), 3).size == 1
    assert farthest_rows(np.empty((0, 0)), 3).size == 0


def brute_force_company(X):
    """p(the other word = b | one word = a), of two tokens of a document drawn without return."""
    pairs = np.zeros((X.shape[1], X.shape[1]))
    for row in X:
        tokens = np.repeat(np.arange(X.shape[1]), row)
        for i, first in enumerate(tokens):
            for j, second in enumerate(tokens):
                pairs[first, second] += (i != j) / (len(tokens) * (len(tokens) - 1))
    return pairs / pairs.sum(axis=1, keepdims=True)


def test_anchors_are_the_corners_of_the_company_of_words(monkeypatch):
    X = np.random.default_rng(0).poisson(0.6, size=(40, 7))
    X = X[X.sum(axis=1) > 1]
    given = []
    monkeypatch.setattr(
        start, "farthest_rows", lambda *args: given.append(args) or farthest_rows(*args)
    )
    anchored_topics(sparse.csr_matrix(X), 5)
    ((company, n, _, chance),) = given
    np.testing.assert_allclose(company, brute_force_company(X))
    assert n == 5
    # The squared length of a sum over documents, less that over pairs of different documents.
    weights = X / (X.sum(axis=1) * (X.sum(axis=1) - 1))[:, None]
    parts = np.einsum("da,db->dab", X, weights)
    totals = parts.sum(axis=(0, 2)) - weights.sum(axis=0)
    different = np.einsum("dab,eab,de->a", parts, parts, 1.0 - np.eye(len(X)))
    expected = (parts.sum(axis=0) ** 2).sum(axis=1) - different
    np.testing.assert_allclose(chance, expected / totals**2)


def test_topics_that_are_led_take_the_place_of_those_most_like_them():
    drawn = make_lda(400, n_topics=4, n_words=60, document_length=50, seed=0)
    X = sparse.csr_matrix(drawn.counts)
    alone = anchored_topics(X, 4)
    led = np.zeros((60, 1))
    led[np.argsort(-alone[:, 2])[:3]] = 1.0
    found = anchored_topics(X, 4, led)
    np.testing.assert_array_equal(found[:, 1:], alone[:, [0, 1, 3]])
    assert np.minimum(found[:, 0], alone[:, 2]).sum() > 0.5


def test_chance_is_taken_off_the_squared_distances():
    points = np.random.default_rng(0).standard_normal((30, 12))
    chance = np.random.default_rng(1).gamma(2.0, 5.0, size=30)
    chosen = farthest_rows(points, 9, None, chance)
    assert chosen[0] == np.argmax((points**2).sum(axis=1) - chance)
    for m in range(1, 9):
        squares = [distance_from_plane(point, points[chosen[:m]]) ** 2 for point in points]
        left = np.array(squares) - chance
        left[chosen[:m]] = -np.inf
        assert chosen[m] == np.argmax(left)


def test_topics_are_near_those_that_made_the_documents():
    made = make_lda(2000, 10, n_words=300, document_length=60, alpha=0.05, eta=0.02, seed=0)
    found = anchored_topics(sparse.csr_matrix(made.counts), 10)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    random = np.random.default_rng(0).gamma(100.0, size=(10, 300))
    assert topic_stability(found.T, made.topics) > 0.8 > 0.4 > topic_stability(random, made.topics)


@pytest.mark.parametrize(
    ("X", "n_found"),
    [
        (np.eye(4), 0),  # no word has company
        (np.zeros((3, 4)), 0),
        (np.zeros((0, 4)), 0),
        (np.tile([1, 1, 0, 0], (5, 1)), 2),
        (np.array([[1.5, 0.3, 0.4], [0.2, 0.0, 0.1]]), 3),  # weights, one document of two words
        (np.array([[0.5, 0.5, 0.0], [0.2, 0.0, 0.8]]), 0),  # weights that sum to 1
        (np.full((5, 1), 3), 1),
    ],
)
def test_documents_that_tell_few_words_apart(X, n_found):
    found = anchored_topics(sparse.csr_matrix(X), 5)
    assert found.shape == (X.shape[1], n_found)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)


def test_there_are_no_more_anchors_than_can_be_found_in_time(monkeypatch):
    monkeypatch.setattr(start, "MOST_ANCHORS", 3)
    X = sparse.csr_matrix(np.random.default_rng(0).poisson(0.6, size=(40, 7)))
    assert anchored_topics(X, 5).shape == (7, 3)


def start_of(X, n_topics, seed, start="words"):
    mean_length = X.sum() / X.shape[0]
    model = LatentDirichlet(n_topics, X.shape[1], 0.1, 0.01, start=start, mean_length=mean_length)
    return model.initialize(ArraySource(X), np.random.default_rng(seed)).parameters().T


def test_all_seeds_start_alike():
    made = make_lda(300, 5, n_words=100, document_length=40, alpha=0.1, eta=0.05, seed=0)
    X = sparse.csr_matrix(made.counts)
    first, second = start_of(X, 5, 0), start_of(X, 5, 1)
    assert not np.array_equal(first, second)  # two topics that are alike are kept apart by draws
    assert topic_stability(first, second) > 0.97
    np.testing.assert_allclose(first.sum(), X.sum(), rtol=0.05)
    assert topic_stability(start_of(X, 5, 0, "random"), first) < 0.7


def test_topics_for_which_there_are_no_words_start_at_random():
    X = sparse.csr_matrix(np.tile([1, 1, 1, 0], (20, 1)))
    topics = start_of(X, 6, 0)
    np.testing.assert_array_equal(topics[3:], start_of(X, 6, 0, "random")[3:])


def test_a_start_looks_at_as_many_documents_as_it_needs(monkeypatch):
    class Recorder(ArraySource):
        def sample(self, n, rng):
            self.asked = n, rng.integers(2**32)
            return super().sample(n, rng)

    X = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(50, 30)))

    def asked(n_topics, seed, mean_length=200.0):
        source = Recorder(X)
        model = LatentDirichlet(n_topics, 30, 0.1, 0.1, start="words", mean_length=mean_length)
        model.initialize(source, np.random.default_rng(seed))
        return source.asked

    assert asked(3, 0) == asked(3, 1)
    assert asked(3, 0)[0] == START_WORDS / 200
    # Of very many topics at more, where the corpus has enough words for each.
    monkeypatch.setattr(start, "WORDS_OF_A_TOPIC", 100)
    monkeypatch.setattr(start, "START_WORDS_OF_A_TOPIC", 50_000)
    assert asked(101, 0, 201.0)[0] == START_WORDS // 201 + 1
    assert asked(101, 0, 202.0)[0] == 50
    assert asked(101, 0, 1e6)[0] == 6
