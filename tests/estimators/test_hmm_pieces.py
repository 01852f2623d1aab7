"""Hidden Markov estimators on pieces of a long sequence, and on streams of sequences."""

import numpy as np
import pytest
from sklearn.base import clone

import tempering
from tempering import CategoricalHMM, GaussianHMM, PoissonHMM

MEANS = np.array([[0.0, 0.0], [3.0, -3.0], [5.0, 10.0]])
MOVES = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7]])


def long_sequence(n=4000, seed=0):
    truth = GaussianHMM(3)
    truth.startprob_, truth.transmat_ = np.full(3, 1 / 3), MOVES
    truth.means_, truth.covars_ = MEANS, np.ones((3, 2))
    return truth.sample(n, random_state=seed)[0]


def in_order(hmm):
    order = np.argsort(hmm.means_[:, 1] + 10 * (hmm.means_[:, 1] > 5))
    return hmm.means_[order], hmm.transmat_[np.ix_(order, order)]


X = long_sequence()


@pytest.fixture(scope="module")
def whole():
    return GaussianHMM(3, random_state=0).fit(X)


def test_all_pieces_find_what_the_whole_sequence_finds(whole):
    cut = GaussianHMM(3, random_state=0, piece_length=100, buffer=30).fit(X)
    for ours, theirs in zip(in_order(cut), in_order(whole)):
        np.testing.assert_allclose(ours, theirs, atol=2e-3)
    assert cut.elbo_ == pytest.approx(whole.elbo_, abs=0.5)
    assert cut.startprob_posterior_.sum() == pytest.approx(3 + 1)
    assert cut.transmat_posterior_.sum() == pytest.approx(9 + len(X) - 1)


def test_minibatches_of_pieces_find_the_same_up_to_noise(whole):
    some = GaussianHMM(
        3, random_state=0, piece_length=50, buffer=20, batch_size=8, n_iter=10, tempering=None
    ).fit(X)
    means, moves = in_order(some)
    expected_means, expected_moves = in_order(whole)
    np.testing.assert_allclose(means, expected_means, atol=0.1)
    np.testing.assert_allclose(moves, expected_moves, atol=0.03)
    assert some.elbo_ > whole.elbo_ - 0.002 * abs(whole.elbo_)
    assert some.score(X) > whole.score(X) - 0.002 * abs(whole.score(X))


def test_a_stream_of_parts_finds_the_same_up_to_noise(whole):
    online = GaussianHMM(3, random_state=0, piece_length=50, learning_offset=1.0)
    assert online.partial_fit(X[:500]) is online
    for start in range(500, len(X), 250):
        online.partial_fit(X[start : start + 250])
    assert online.n_iter_ == 15
    means, moves = in_order(online)
    np.testing.assert_allclose(means, MEANS[[1, 0, 2]], atol=0.25)
    np.testing.assert_allclose(moves, in_order(whole)[1], atol=0.06)


@pytest.mark.parametrize("kind", [CategoricalHMM, PoissonHMM])
def test_streams_of_whole_sequences(kind):
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 2, size=300), 10)
    counts = rng.poisson(np.array([1.0, 9.0])[states])
    symbols = np.minimum(counts, 12)[:, None]
    hmm = kind(2, random_state=0)
    if kind is CategoricalHMM:  # from a start at random it takes a hundred passes
        hmm.set_params(n_features=13, init_params="st")
        hmm.emissionprob_ = np.array([[2.0] * 6 + [1.0] * 7, [1.0] * 6 + [2.0] * 7]) / [[19], [20]]
    for start in range(0, len(symbols), 500):
        hmm.partial_fit(symbols[start : start + 500], lengths=[100] * 5)
    found = hmm.predict(symbols, [100] * 30)
    agree = np.mean(found == states)
    assert max(agree, 1 - agree) > 0.95


def test_a_saved_stream_goes_on_with_the_same_bits(tmp_path):
    online = GaussianHMM(3, random_state=0).partial_fit(X[:300])
    online.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    for hmm in (online, loaded):
        hmm.partial_fit(X[300:600], lengths=[150, 150])
    np.testing.assert_array_equal(loaded.means_, online.means_)
    np.testing.assert_array_equal(loaded.transmat_posterior_, online.transmat_posterior_)


def test_a_step_that_fails_leaves_the_model():
    online = GaussianHMM(3, random_state=0).partial_fit(X[:300])
    before = dict(vars(online))
    for wrong, lengths, problem in (
        ([[np.nan, 1.0]], None, "row 0, column 0 holds nan"),
        ([[1.0]], None, "1 features"),
        (X[:10], [4], "add up to 4"),
    ):
        with pytest.raises(ValueError, match=problem):
            online.partial_fit(wrong, lengths)
        assert vars(online) == before
    for name, value in (("piece_length", 0), ("buffer", -1), ("buffer", 1.5)):
        with pytest.raises(ValueError, match=name):
            clone(online).set_params(**{name: value}).partial_fit(X)
        with pytest.raises(ValueError, match=name):
            clone(online).set_params(**{name: value}).fit(X)


def test_a_fit_of_pieces_is_taken_up_from_its_checkpoint(tmp_path):
    options = {"random_state": 0, "piece_length": 100, "batch_size": 10, "n_iter": 3}
    first, again = (
        GaussianHMM(3, **options).fit(X[:2000], checkpoint=tmp_path / "kept") for _ in range(2)
    )
    assert first.elbo_ == again.elbo_
    with pytest.raises(ValueError, match="checkpoint"):
        GaussianHMM(3, **{**options, "piece_length": 50}).fit(
            X[:2000], checkpoint=tmp_path / "kept"
        )
