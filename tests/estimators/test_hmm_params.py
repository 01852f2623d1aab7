"""Parameters of a hidden Markov model that are known: a fit leaves them, and finds the others."""

import numpy as np
import pytest

import tempering
from tempering import CategoricalHMM, GaussianHMM, PoissonHMM, VariationalTempering

MOVES = np.array([[0.8, 0.2], [0.3, 0.7]])


def signal(seed=0):
    truth = GaussianHMM(2)
    truth.startprob_, truth.transmat_ = np.array([0.5, 0.5]), MOVES
    truth.means_, truth.covars_ = np.array([[0.0], [3.0]]), np.ones((2, 1))
    rng = np.random.RandomState(seed)
    return truth, np.concatenate([truth.sample(30, random_state=rng)[0] for _ in range(10)]) + 50.0


def test_known_transitions_are_those_of_a_prior_that_nothing_moves():
    _, X = signal()
    known = GaussianHMM(2, params="smc", random_state=0)
    known.transmat_ = MOVES
    sure = GaussianHMM(2, transmat_prior=1e9 * MOVES, init_params="smc", random_state=0)
    sure.transmat_ = MOVES
    for hmm in (known, sure):
        hmm.fit(X, [30] * 10)
    assert known.transmat_ is MOVES
    np.testing.assert_allclose(known.means_, sure.means_, rtol=1e-5)
    np.testing.assert_allclose(known.startprob_, sure.startprob_, rtol=1e-4)
    assert known.elbo_ == pytest.approx(sure.elbo_, abs=1e-3)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_known_emissions_stay_and_the_chain_is_found(kind, tmp_path):
    truth, X = signal()
    hmm = GaussianHMM(2, kind, params="st", random_state=0)
    hmm.means_, hmm.covars_ = truth.means_ + 50.0, truth.covars_
    means, covars = hmm.means_.copy(), hmm.covars_.copy()
    hmm.fit(X, [30] * 10)
    np.testing.assert_array_equal(hmm.means_, means)
    np.testing.assert_array_equal(hmm.covars_, covars)
    np.testing.assert_allclose(hmm.transmat_, MOVES, atol=0.12)
    assert np.all(np.diff(hmm.history_["elbo"]) > -1e-8 * abs(hmm.elbo_))
    hmm.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert loaded.score(X) == hmm.score(X)
    assert loaded.partial_fit(X).score(X) == hmm.partial_fit(X).score(X)


def test_known_emissions_that_show_the_states_leave_counts_of_moves():
    X = np.array([0, 1, 1, 2, 0, 1, 2, 2])[:, None]
    hmm = CategoricalHMM(3, params="st", transmat_prior=0.5, tempering=None, random_state=0)
    hmm.emissionprob_ = np.eye(3)
    hmm.fit(X, [5, 3])
    counts = np.zeros((3, 3))
    for a, b in [(0, 1), (1, 1), (1, 2), (2, 0), (1, 2), (2, 2)]:
        counts[a, b] += 1
    np.testing.assert_allclose(hmm.transmat_posterior_, 0.5 + counts, rtol=1e-12)
    np.testing.assert_allclose(hmm.startprob_posterior_, [2.0, 2.0, 1.0], rtol=1e-12)


def test_learned_temperatures_and_draws_know_what_is_known():
    X = np.random.default_rng(0).poisson(np.tile(np.repeat([2.0, 20.0], 5), 8))[:, None]
    hmm = PoissonHMM(2, params="t", tempering=VariationalTempering(), n_iter=30, random_state=0)
    hmm.startprob_, hmm.lambdas_ = np.array([1.0, 0.0]), np.array([[2.0], [20.0]])
    hmm.fit(X)
    assert np.isfinite(hmm.elbo_)
    assert hmm.startprob_.tolist() == [1.0, 0.0]
    np.testing.assert_allclose(np.diag(hmm.transmat_), 0.8, atol=0.15)
    draws = hmm._model().draw(hmm._state.posterior, 3, np.random.default_rng(0))
    assert draws["emissions"].tolist() == [[[2.0], [20.0]]] * 3
    assert draws["start"].tolist() == [[1.0, 0.0]] * 3
    assert draws["transitions"].shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ("smc", r"params='smc' leaves out 't': set transmat_ before"),
        ("stm", r"params='stm'.* of mc all or none"),
        ("", r"params='' must name what is to be fitted"),
        ("stq", r"params='stq' must hold letters of .*got \['q'\]"),
    ],
)
def test_what_cannot_be_known_is_refused(params, problem):
    hmm = GaussianHMM(2, params=params)
    with pytest.raises(ValueError, match=problem):
        hmm.fit(np.arange(8.0)[:, None])
    assert not hasattr(hmm, "means_")


@pytest.mark.parametrize("piece_length", [None, 2])
def test_data_that_what_is_known_makes_impossible_are_refused(piece_length):
    """A symbol that no state has; and then, symbols in an order in which states cannot follow."""
    X = np.array([0, 1, 0, 1, 0, 1, 1, 2, 0])[:, None]
    hmm = CategoricalHMM(2, params="st", n_features=3, piece_length=piece_length, random_state=0)
    hmm.emissionprob_ = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    for step in (hmm.fit, hmm.partial_fit):
        with pytest.raises(ValueError, match=r"possible .* sequence 1 has the probability 0"):
            step(X, [3, 5, 1])
    assert np.isfinite(hmm.fit(X[:7]).elbo_)
    with pytest.raises(ValueError, match="sequence 2 has"):
        hmm.partial_fit(X, [3, 4, 2])
    hmm.set_params(transmat_prior=[[1.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="sequence 0 has"):
        hmm.fit(X[:7])


def test_known_emissions_of_other_columns_are_refused():
    gauss, counts = GaussianHMM(2, params="st"), PoissonHMM(2, params="st")
    gauss.means_, gauss.covars_ = np.zeros((2, 3)), np.ones((2, 3))
    counts.lambdas_ = np.ones((2, 3))
    for hmm, name in ((gauss, "means_ and covars_"), (counts, "lambdas_")):
        for step in (hmm.fit, hmm.partial_fit):
            with pytest.raises(ValueError, match=f"{name} must have 2 columns, .* got 3"):
                step(np.arange(16).reshape(8, 2))
    symbols = CategoricalHMM(2, params="st", random_state=0)
    symbols.emissionprob_ = np.full((2, 2), 0.5)
    with pytest.raises(ValueError, match="must hold the symbols 0 to 1"):
        symbols.fit([[0], [1], [2]])
    # Symbols that are known to be there need not be seen.
    symbols.emissionprob_ = np.full((2, 4), 0.25)
    assert symbols.fit([[0], [1], [2]]).predict([[3]]).shape == (1,)
    assert symbols.partial_fit([[3]]).emissionprob_.shape == (2, 4)
    # Nor those of a start that is kept.
    kept = CategoricalHMM(2, init_params="st", random_state=0)
    kept.emissionprob_ = np.full((2, 4), 0.25)
    assert kept.fit([[0], [1], [2]]).emissionprob_.shape == (2, 4)
    symbols.emissionprob_ = 1.0
    for step in (symbols.fit, symbols.score):
        with pytest.raises(ValueError, match=r"emissionprob_ must hold .* of the shape \(2, 1\)"):
            step([[0], [1], [2]])


@pytest.mark.parametrize("changed", [{"n_components": 3}, {"covariance_type": "tied"}])
def test_a_stream_goes_on_only_with_what_it_began_with(changed, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 1))
    hmm = GaussianHMM(2, random_state=0).partial_fit(X)
    hmm.save(tmp_path / "model")
    for each in (hmm, tempering.load(tmp_path / "model")):
        means = each.means_
        with pytest.raises(ValueError, match=f"fitted with {next(iter(changed))}=.*Set it back"):
            each.set_params(**changed).partial_fit(X)
        assert each.means_ is means
