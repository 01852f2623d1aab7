"""Topics are joined as the bound and held-out words agree; how many there were is left."""

import warnings

import numpy as np
import pytest
from scipy.special import entr, gammaln

import tempering
from tempering import LatentDirichletAllocation, PoissonMixture
from tempering.corpus import Corpus
from tempering.datasets import make_lda
from tempering.estimators.lda import TopicWarning
from tempering.workbench import find_topics, joining
from tempering.workbench.joining import (
    LEAST_PART,
    Counts,
    best_joins,
    count_gains,
    joined,
    joined_number,
    likely_prior,
    lost_entropy,
    similar_pairs,
    take_in,
)

WORDS = [f"word {v}" for v in range(100)]


@pytest.fixture(scope="module")
def drawn():
    return make_lda(300, n_topics=4, n_words=100, document_length=50, seed=1)


@pytest.fixture(scope="module")
def found(drawn):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a fit that has topics to spare, say
        return find_topics(Corpus(drawn.counts, WORDS), 16, random_state=3)


@pytest.fixture(scope="module")
def split_in_parts(drawn):
    """Twice as many topics as there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopicWarning)
        return LatentDirichletAllocation(8, max_iter=5, random_state=0).fit(drawn.counts)


def test_one_round_that_is_worse_by_chance_does_not_end_the_search(monkeypatch):
    X = make_lda(400, n_topics=4, n_words=100, document_length=30, seed=11).counts
    answer = joined_number(X, 60, random_state=1)
    assert answer.n_topics == 4
    worse = [trial.behind > 1.5 * trial.error for trial in answer.trials]
    assert any(worse)
    monkeypatch.setattr(joining, "CLEAR_ROUNDS", 1)
    assert joined_number(X, 60, random_state=1).n_topics > 4


def whole_bound(words, documents, alpha, eta, phi):
    """The bound of the module's docstring, with responsibilities phi [tokens, K], term by term."""
    bound = 0.0
    for topic in words:
        bound += gammaln(eta * topic.size) - gammaln(eta * topic.size + topic.sum())
        bound += sum(gammaln(eta + n) - gammaln(eta) for n in topic)
    for document in documents:
        bound += gammaln(alpha.sum()) - gammaln(alpha.sum() + document.sum())
        bound += sum(gammaln(a + n) - gammaln(a) for a, n in zip(alpha, document))
    return bound + entr(phi).sum()


def test_as_many_topics_as_the_corpus_was_drawn_from(found, drawn):
    assert found.n_components == 4
    topics = found.components_ / found.components_.sum(axis=1, keepdims=True)
    likeness = np.sqrt(topics) @ np.sqrt(drawn.topics).T
    assert sorted(likeness.argmax(axis=1)) == [0, 1, 2, 3]
    assert likeness.max(axis=1).min() > 0.97


def test_joins_that_held_out_words_speak_against_are_not_done(drawn, monkeypatch):
    """Two real topics are to be one, as the bound may ask where documents are no draws."""

    def two(model, documents, counts):
        return [(0, 1)] if model.n_components > 3 else []

    monkeypatch.setattr(joining, "best_joins", two)
    with pytest.warns(UserWarning, match="most=4 topics, so there may be more"):
        answer = joined_number(drawn.counts, 4)
    assert answer.n_topics == 4
    assert [trial.n_topics for trial in answer.trials] == [4, 3]
    assert answer.trials[1].behind > 2 * answer.trials[1].error


def test_what_the_bound_asks_for_is_done_where_held_out_words_hardly_mind(drawn):
    answer = joined_number(drawn.counts, 16, random_state=3)
    last = answer.trials[-1]
    assert answer.n_topics == last.n_topics == 4
    assert last.behind <= 2 * last.error
    assert "4 topics" in str(answer)


def test_topics_of_unequal_weight_are_all_kept_and_weighed():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(120, 0.05), 5)
    proportions = rng.dirichlet([0.6, 0.2, 0.1, 0.06, 0.04], 400)
    counts = np.stack([rng.multinomial(60, row) for row in proportions @ topics])
    model = find_topics(counts, 12)
    assert model.n_components == 5
    order = (np.sqrt(model.components_) @ np.sqrt(topics).T).argmax(axis=1)
    alpha = model.doc_topic_prior_ / model.doc_topic_prior_.sum()
    assert alpha[order == 0].sum() > 2 * alpha[order == 4].sum()


def test_what_a_join_gains_is_what_the_whole_bound_gains(drawn, split_in_parts):
    model, documents = split_in_parts, drawn.counts[:12]
    counts = take_in(model, documents)
    alpha, eta = counts.total * counts.weights, counts.word_prior
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    tokens = [(d, v) for d, v in zip(*documents.nonzero()) for _ in range(int(documents[d, v]))]
    phi = np.array([counts.gamma[d] * topics[:, v] for d, v in tokens])
    phi /= phi.sum(axis=1, keepdims=True)
    before = whole_bound(counts.words, counts.documents, alpha, eta, phi)
    pairs = np.array(best_joins(model, documents, counts))
    assert len(pairs) > 2
    gains = count_gains(counts, pairs) - lost_entropy(model, documents, counts.gamma, pairs)

    def one(a, b, array):
        return np.insert(np.delete(array, [a, b], -1), 0, array[..., a] + array[..., b], -1)

    for (a, b), gain in zip(pairs, gains):
        parts = (one(a, b, counts.words.T).T, one(a, b, counts.documents), one(a, b, alpha))
        after = whole_bound(*parts, eta, one(a, b, phi))
        # Tokens that are hardly of either topic are passed over.
        passed = phi[phi[:, [a, b]].min(axis=1) <= LEAST_PART][:, [a, b]]
        after += entr(passed).sum() - entr(passed.sum(axis=1)).sum()
        assert gain == pytest.approx(after - before, rel=1e-4, abs=1e-3)


def test_joins_are_of_parts_of_one_topic_and_none_is_in_two(drawn, split_in_parts):
    model = split_in_parts
    pairs = best_joins(model, drawn.counts, take_in(model, drawn.counts))
    real = (np.sqrt(model.components_) @ np.sqrt(drawn.topics).T).argmax(axis=1)
    assert pairs
    assert all(real[a] == real[b] for a, b in pairs)
    assert len(set(np.ravel(pairs))) == 2 * len(pairs)


def test_a_join_that_loses_more_entropy_than_it_gains_is_left(drawn, split_in_parts):
    """Of two parts of a topic, one takes on ever more words of quite another topic."""
    model, counts = split_in_parts, take_in(split_in_parts, drawn.counts)
    first, second = best_joins(model, drawn.counts, counts)[0]
    roots = np.sqrt(counts.words)
    other = counts.words[(roots @ roots[second]).argmin()]
    pair = np.array([[first, second]])
    lost = lost_entropy(model, drawn.counts, counts.gamma, pair)[0]
    n_left = 0
    for part in np.linspace(0.0, 1.0, 60):
        words = counts.words.copy()
        words[second] = (1 - part) * words[second] + part * other
        changed = counts._replace(words=words)
        promised = count_gains(changed, pair)[0]
        made = best_joins(model, drawn.counts, changed)
        assert promised > lost or (first, second) not in made
        n_left += lost > promised > 0
    assert n_left > 0


def test_a_joined_topic_has_the_words_and_the_weight_of_both():
    words, weights = np.arange(8.0).reshape(4, 2), np.array([0.1, 0.2, 0.3, 0.4])
    none = np.empty((0, 4))
    after = joined(Counts(none, none, words, weights, 2.0, 0.1), [(1, 3)])
    np.testing.assert_array_equal(after.words, [[0, 1], [8, 10], [4, 5]])
    np.testing.assert_allclose(after.weights, [0.1, 0.6, 0.3])


def test_the_most_likely_prior_is_the_one_that_was_drawn_from():
    rng = np.random.default_rng(0)
    prior = np.array([0.1, 0.3, 0.8])
    counts = np.array([rng.multinomial(200, p) for p in rng.dirichlet(prior, 4000)], float)
    np.testing.assert_allclose(likely_prior(counts, prior), prior, rtol=0.1)
    alike = likely_prior(counts, prior, alike=True)
    assert alike[0] == alike[1] == alike[2]


def test_pairs_are_of_the_most_similar():
    topics = np.array([[9.0, 1.0, 0.1], [8.0, 2.0, 0.1], [0.1, 1.0, 9.0]])
    assert [0, 1] in similar_pairs(topics).tolist()
    assert np.all(np.diff(similar_pairs(topics), axis=1) > 0)


def test_the_result_is_a_model_as_any_other(found, drawn, tmp_path):
    assert found.get_params()["n_components"] == 4
    assert found.vocabulary_.tolist() == WORDS
    assert found.doc_topic_prior_.shape == (4,)
    theta = found.transform(drawn.counts)
    assert theta.shape == (300, 4)
    found.save(tmp_path / "model")
    np.testing.assert_array_equal(tempering.load(tmp_path / "model").transform(drawn.counts), theta)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(found, drawn):
    again = find_topics(
        drawn.counts, 16, estimator=LatentDirichletAllocation(n_jobs=2), random_state=3
    )
    np.testing.assert_array_equal(again.components_, found.components_)


def test_a_prior_that_is_given_stays(drawn):
    estimator = LatentDirichletAllocation(doc_topic_prior=0.2, topic_word_prior=0.3, max_iter=3)
    model = find_topics(drawn.counts, 8, estimator=estimator)
    np.testing.assert_array_equal(model.doc_topic_prior_, np.full(model.n_components, 0.2))
    assert model.topic_word_prior_ == 0.3
    assert estimator.n_components == 10


def test_too_few_topics_to_begin_with_are_told(drawn):
    with pytest.warns(UserWarning, match="most=2 topics, so there may be more"):
        assert find_topics(drawn.counts, 2).n_components == 2


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("X must hold whole counts", {"X": [[0.5, 1.0]] * 20}),
        ("too few documents.*choose the number", {"X": [[1, 2], [3, 4]]}),
        ("most must be", {"most": 1}),
        ("most must be", {"most": 2.5}),
        ("random_state must be", {"random_state": None}),
        ("estimator must be", {"estimator": PoissonMixture(2)}),
        ("leave out seed_topics", {"estimator": LatentDirichletAllocation(seed_topics={"a": [1]})}),
        ("leave out topic_", {"estimator": LatentDirichletAllocation(topic_word_prior=[[1, 2]])}),
        (
            "leave out doc_topic",
            {"estimator": LatentDirichletAllocation(doc_topic_prior=[0.1] * 9)},
        ),
    ],
)
def test_what_cannot_be_joined_is_refused(drawn, message, arguments):
    with pytest.raises(ValueError, match=message):
        find_topics(**{"X": drawn.counts, **arguments})
