"""Fits of hidden Markov models that are searches: optima, the number of states, checkpoints."""

import contextlib

import numpy as np
import pytest

from tempering import CategoricalHMM, Checkpoint, GaussianHMM, PoissonHMM, search
from tempering.estimators.state_operators import JoinStates, SwapStates
from tempering.families import Poisson
from tempering.inference import checkpoint as checkpoints
from tempering.models import HiddenMarkov, Sequences
from tempering.search import journal

LENGTHS = [100, 50, 150, 300]
SPARSE = {"transmat_prior": 0.1, "startprob_prior": 0.1, "random_state": 0}


def drawn(kind, seed):
    """Sequences of three states."""
    if kind is GaussianHMM:
        truth = GaussianHMM(3)
        truth.means_, truth.covars_ = np.array([[0.0, 0], [4, 0], [0, 4]]), np.ones((3, 2))
    elif kind is PoissonHMM:
        truth = PoissonHMM(3)
        truth.lambdas_ = np.array([[2.0, 2.0], [15.0, 2.0], [2.0, 15.0]])
    else:
        truth = CategoricalHMM(3)
        truth.emissionprob_ = 0.02 + 0.92 * np.eye(3)[:, [0, 1, 2, 2]] / [1, 1, 2, 2]
    truth.startprob_, truth.transmat_ = np.full(3, 1 / 3), 0.05 + 0.85 * np.eye(3)
    return truth.sample(600, random_state=seed)[0]


@pytest.mark.parametrize("kind", [GaussianHMM, PoissonHMM, CategoricalHMM])
def test_the_number_of_states_is_found_from_above(kind):
    X = drawn(kind, 1)
    plain = kind(7, **SPARSE, n_init=1).fit(X, LENGTHS)
    hmm = kind(7, **SPARSE, n_init=6).fit(X, LENGTHS)
    assert len(np.unique(plain.predict(X, LENGTHS))) > 3
    assert len(np.unique(hmm.predict(X, LENGTHS))) == 3
    assert hmm.elbo_ > plain.elbo_ + 1
    assert plain.trail_ == []
    assert {trial.operator for trial in hmm.trail_} >= {"plain", "swap", "join"}
    assert hmm.trail_[-1].elbo == hmm.elbo_


def test_a_single_sequence_is_searched():
    rng = np.random.default_rng(0)
    truth = GaussianHMM(4)
    truth.startprob_, truth.transmat_ = np.full(4, 0.25), 0.05 + 0.8 * np.eye(4)
    truth.means_ = np.array([[0.0, 0], [0, 0], [2, 0], [2, 0]])
    truth.covars_ = np.array([[0.2, 2.0], [2.0, 0.2], [0.2, 2.0], [2.0, 0.2]])
    X = truth.sample(500, random_state=rng.integers(100))[0]
    hmm = GaussianHMM(4, random_state=5, init="random").fit(X)
    assert any(trial.operator == "swap" for trial in hmm.trail_)
    assert hmm.score(X) > truth.score(X) - 5


@pytest.mark.parametrize(
    "options",
    [
        {"tempering": "annealing"},
        {"n_init": 1},
        {"batch_size": 2, "n_iter": 20},
        {"transmat_prior": np.triu(np.ones((3, 3)))},
        {"init_params": "st"},
    ],
)
def test_a_fit_is_no_search_where_that_does_not_apply(options):
    X = drawn(GaussianHMM, 0)
    hmm = GaussianHMM(3, random_state=0)
    hmm.means_, hmm.covars_ = np.array([[0.0, 0], [4, 0], [0, 4]]), np.ones((3, 2))
    hmm.set_params(**options).fit(X, LENGTHS)
    assert hmm.trail_ == []
    if "init_params" in options:  # states that are given keep their numbers
        np.testing.assert_allclose(hmm.means_, [[0, 0], [4, 0], [0, 4]], atol=0.5)


def test_each_run_of_a_search_has_the_passes_that_are_asked_for():
    X = drawn(GaussianHMM, 0)
    with pytest.warns(match="did not converge"):
        hmm = GaussianHMM(5, random_state=0, n_iter=4, tol=0.0).fit(X, LENGTHS)
    # The first run, and the last one.
    assert 4 <= len(hmm.history_) <= 8


def test_pieces_are_searched():
    X = drawn(PoissonHMM, 2)[:300]
    whole = PoissonHMM(4, **SPARSE, n_init=4, tol=0.01).fit(X)
    pieces = PoissonHMM(4, **SPARSE, n_init=4, tol=0.01, piece_length=100, buffer=10).fit(X)
    assert len(np.unique(whole.predict(X))) == len(np.unique(pieces.predict(X))) == 3
    np.testing.assert_allclose(np.sort(pieces.lambdas_[:, 0])[-1], 15.0, rtol=0.1)


class Killed(Exception):
    """The end of a fit in these tests."""


def test_a_search_that_is_killed_ends_in_the_same_bits(tmp_path, monkeypatch):
    X, options = drawn(GaussianHMM, 3), {**SPARSE, "n_init": 3, "tol": 0.01}
    whole = GaussianHMM(4, **options).fit(X, LENGTHS)
    written, checkpoint = [], Checkpoint(tmp_path, every_steps=1)

    def write(*arguments):
        written.append(arguments[0].parent.name)
        if len(written) % 40 == 0:
            raise Killed
        original(*arguments)

    original = checkpoints.write_tree
    monkeypatch.setattr(checkpoints, "write_tree", write)
    monkeypatch.setattr(journal, "write_tree", write)
    for _ in range(4):
        with contextlib.suppress(Killed):
            GaussianHMM(4, **options).fit(X, LENGTHS, checkpoint=checkpoint)
    assert {"plain", "rounds"} <= set(written)
    monkeypatch.undo()
    resumed = GaussianHMM(4, **options).fit(X, LENGTHS, checkpoint=tmp_path)
    again = GaussianHMM(4, **options).fit(X, LENGTHS, checkpoint=tmp_path)
    for hmm in (resumed, again):
        assert hmm.elbo_ == whole.elbo_
        assert hmm.transmat_.tobytes() == whole.transmat_.tobytes()
        assert [trial[:3] for trial in hmm.trail_] == [trial[:3] for trial in whole.trail_]


@pytest.mark.parametrize("operator", [JoinStates(), SwapStates()])
@pytest.mark.parametrize("pieces", [{}, {"piece_length": 40, "buffer": 5}])
def test_each_row_has_a_state_in_what_an_operator_proposes(operator, pieces, monkeypatch):
    rows = drawn(PoissonHMM, 0)
    data = Sequences(rows, LENGTHS, **pieces)
    model = HiddenMarkov(Poisson(2), 4, emission_prior=[1.0, 1.0, 0.1, 0.1])
    proposed, propose = [], type(operator).propose

    def spy(self, situation, rng):
        proposed.append(propose(self, situation, rng))
        return proposed[-1]

    monkeypatch.setattr(type(operator), "propose", spy)
    search(model, data, budget=4, operators=[operator], progress=False)
    prior, some = model.prior(), [each for each in proposed if each is not None]
    assert len(some) > 5
    for candidate in some:
        counts = candidate.posterior + -1.0 * prior
        np.testing.assert_allclose(counts.emissions[:, :2].sum(axis=0), rows.sum(axis=0))
        np.testing.assert_allclose(counts.emissions[:, 2:].sum(axis=0), len(rows))
        assert counts.start.sum() == pytest.approx(len(data))
        assert counts.transitions.sum() == pytest.approx(len(rows) - len(data))
        empty = np.flatnonzero(counts.emissions[:, 2] < 1e-9)
        assert len(empty) == 1 or isinstance(operator, SwapStates)
        np.testing.assert_allclose(counts.transitions[empty], 0.0, atol=1e-9)
    states = [tuple(np.round(each.posterior.emissions[:, 0], 6)) for each in some]
    assert len(set(states)) > 2  # they differ
