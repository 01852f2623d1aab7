"""Moves of a hidden Markov model that never happen: they stay exactly 0 in all that a fit gives."""

import numpy as np
import pytest

from tempering import CategoricalHMM, GaussianHMM, VariationalTempering, fit
from tempering.families import Categorical, Dirichlet, SparseDirichlet
from tempering.models import HiddenMarkov, Natural, Sequences
from tests.models.test_hmm import enumerated

LEFT_RIGHT = np.triu(np.ones((3, 3)))
FIRST = np.array([1.0, 0.0, 0.0])


def chain_of_symbols(start=FIRST, transitions=LEFT_RIGHT, rows=(0, 1, 3, 2, 0, 2, 1)):
    likelihood = Categorical(4)
    model = HiddenMarkov(likelihood, 3, start, transitions, emission_prior=np.full(4, 0.6))
    data = Sequences(np.array(rows), [4, 3])
    assignment = np.random.default_rng(0).dirichlet(np.ones(3), size=len(rows))
    return model, data, model.prior() + model.statistics(data, assignment)


@pytest.mark.parametrize("s", [1.0, 0.4])
def test_local_step_matches_enumeration_of_the_paths_that_are_allowed(s):
    model, data, posterior = chain_of_symbols()
    expected = model.expectations(posterior)
    energies, entropy, moves = [], 0.0, np.zeros((3, 3))
    for i in range(len(data)):
        rows = data[i : i + 1].rows
        logs = model.likelihood.expected_log_likelihood(rows, expected.emissions)
        with np.errstate(invalid="ignore"):
            paths, joint, q, _ = enumerated(expected.chain, logs, s)
        possible = q > 0
        assert 1 < possible.sum() < len(paths)
        paths, joint, q = paths[possible], joint[possible], q[possible]
        energies.append(q @ joint)
        entropy -= q @ np.log(q)
        for t in range(1, len(rows)):
            np.add.at(moves, (paths[:, t - 1], paths[:, t]), s * q)
    local = model.local_step(data, expected, s)
    np.testing.assert_allclose(local.energies, energies, rtol=1e-12)
    assert local.entropy == pytest.approx(entropy, rel=1e-10)
    np.testing.assert_allclose(local.statistics.transitions, moves, rtol=1e-10, atol=1e-14)
    assert np.all(local.statistics.transitions[LEFT_RIGHT == 0] == 0.0)
    assert np.all(local.statistics.start[1:] == 0.0)


def test_weights_of_zero_leave_the_dirichlet_of_the_others():
    family, others = SparseDirichlet(4), Dirichlet(3)
    where, q, p = [0, 1, 3], np.array([2.0, 0.7, 0.0, 3.0]), np.array([1.0, 0.5, 0.0, 2.0])
    for weight in (1.0, 0.3):
        wanted = others.divergence(q[where], p[where], weight)
        assert family.divergence(q, p, weight) == pytest.approx(wanted, rel=1e-12)
    for of_zero, name, arguments in [
        (-np.inf, "expected_statistics", ()),
        (-np.inf, "log_moment", ([0.5, 1.0],)),
        (0.0, "point", ()),
    ]:
        found, wanted = (
            getattr(each, name)(natural, *arguments)
            for each, natural in ((family, q), (others, q[where]))
        )
        np.testing.assert_allclose(found[..., where], wanted, rtol=1e-12)
        assert np.all(found[..., 2] == of_zero)
    draws = family.sample(q, np.random.default_rng(0), 4000)
    assert np.all(draws[:, 2] == 0.0)
    np.testing.assert_allclose(draws.mean(axis=0), family.point(q), atol=0.02)
    assert family.is_valid([[1.0, 0.0], [0.0, 0.0], [1.0, -1.0]]).tolist() == [True, False, False]


@pytest.mark.parametrize("policy", [None, VariationalTempering()], ids=["VI", "variational"])
def test_the_bound_never_falls_and_zeros_stay(policy):
    model, data, start = chain_of_symbols()
    result = fit(model, data, initial=start, temperature=policy, max_passes=30, progress=False)
    assert np.all(result.posterior.transitions[LEFT_RIGHT == 0] == 0.0)
    assert np.all(result.posterior.start[1:] == 0.0)
    if policy is None:
        assert np.all(np.diff([record.elbo for record in result.history]) > -1e-9)
    assert np.isfinite(result.elbo)


def test_pieces_in_the_middle_may_begin_where_no_sequence_does():
    """A buffer that holds all rows before makes pieces add up to the whole sequence."""
    model, _, posterior = chain_of_symbols()
    rows, expected = np.array([0, 1, 3, 2, 0, 2, 1]), model.expectations(posterior)
    whole = model.local_step(Sequences(rows), expected, 1.0)
    pieces = model.local_step(Sequences(rows, piece_length=2, buffer=7), expected, 1.0)
    for name in whole.statistics:
        np.testing.assert_allclose(
            pieces.statistics[name], whole.statistics[name], rtol=1e-9, atol=1e-12
        )
    apart = model.local_step(Sequences(rows, piece_length=2, buffer=0), expected, 1.0)
    assert np.all(np.isfinite(apart.energies))
    assert np.all(apart.statistics.transitions[LEFT_RIGHT == 0] == 0.0)


def steps(seed=0, k=5):
    """Sequences that climb through states, of which neither order nor distance tells the next."""
    truth = GaussianHMM(k)
    truth.startprob_, truth.transmat_ = np.eye(k)[0], 0.9 * np.eye(k) + 0.1 * np.eye(k, k=1)
    truth.transmat_[-1, -1] = 1.0
    truth.means_ = np.array([[0.0], [4.0], [1.0], [5.0], [2.0]])
    truth.covars_ = np.full((k, 1), 0.5)
    rng = np.random.RandomState(seed)
    return truth, np.concatenate([truth.sample(60, random_state=rng)[0] for _ in range(20)])


@pytest.mark.parametrize("by", ["prior", "hand"])
def test_a_left_right_model_is_recovered(by):
    truth, X = steps()
    k, lengths = truth.n_components, [60] * 20
    if by == "prior":
        hmm = GaussianHMM(
            k,
            startprob_prior=np.eye(k)[0],
            transmat_prior=np.eye(k) + np.eye(k, k=1),
            n_init=1,
            random_state=0,
        )
    else:
        hmm = GaussianHMM(k, init_params="mc", n_init=1, random_state=0)
        hmm.startprob_ = np.eye(k)[0]
        hmm.transmat_ = np.triu(np.ones((k, k))) / np.arange(k, 0, -1)[:, None]
    hmm.fit(X, lengths)
    np.testing.assert_allclose(hmm.means_, truth.means_, atol=0.2)
    assert np.all(hmm.transmat_[np.tril_indices(k, -1)] == 0.0)
    assert np.all(hmm.transmat_posterior_[np.tril_indices(k, -1)] == 0.0)
    assert hmm.startprob_.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    paths = hmm.predict(X, lengths).reshape(20, 60)
    assert np.all(paths[:, 0] == 0)
    assert np.all(np.diff(paths) >= 0)
    assert np.all(hmm.predict_proba(X, lengths)[::60, 1:] == 0.0)
    drawn = hmm.sample(300, random_state=0)[1]
    assert drawn[0] == 0
    assert np.all(np.diff(drawn) >= 0)
    assert np.all(hmm.fit(X, lengths).transmat_[np.tril_indices(k, -1)] == 0.0)


@pytest.mark.parametrize("by", ["prior", "hand"])
def test_pieces_of_a_sequence_that_never_comes_back_find_what_it_finds(by):
    """In the long run such a chain is in its last state, but most pieces are of other ones."""
    X = np.repeat([0.0, 4.0, 2.0], 60)[:, None] + np.random.default_rng(0).normal(size=(180, 1))
    fits = []
    for piece_length in (None, 15, 60):
        hmm = GaussianHMM(3, piece_length=piece_length, n_init=1, random_state=0)
        if by == "prior":
            hmm.set_params(transmat_prior=np.triu(np.ones((3, 3))))
        else:
            hmm.set_params(init_params="mc")
            hmm.startprob_ = np.eye(3)[0]
            hmm.transmat_ = np.triu(np.ones((3, 3))) / np.array([[3.0], [2.0], [1.0]])
        fits.append(hmm.fit(X))
    whole, *pieces = fits
    np.testing.assert_allclose(whole.means_.ravel(), [0.0, 4.0, 2.0], atol=0.4)
    for cut in pieces:
        np.testing.assert_allclose(cut.means_, whole.means_, atol=1e-3)
        np.testing.assert_allclose(cut.transmat_, whole.transmat_, atol=1e-3)
        assert cut.elbo_ == pytest.approx(whole.elbo_, abs=0.05)


def test_a_cycle_of_symbols_is_recovered_by_the_only_moves_there_are():
    cycle = np.roll(np.eye(3), 1, axis=1)
    X = np.tile([[0], [1], [2]], (20, 1))
    hmm = CategoricalHMM(3, transmat_prior=cycle, random_state=0).fit(X)
    np.testing.assert_array_equal(hmm.transmat_, cycle)
    assert np.all(np.diff(hmm.emissionprob_.argmax(axis=1)) % 3 == 1)


def test_what_sticks_does_not_lift_a_zero():
    moves = np.ones((2, 2)) - np.eye(2)
    X = np.random.default_rng(0).normal(size=(30, 1))
    hmm = GaussianHMM(2, transmat_prior=moves, sticky=5.0, random_state=0).fit(X)
    np.testing.assert_array_equal(hmm.transmat_, moves)


@pytest.mark.parametrize(
    ("priors", "problem"),
    [
        ({"transmat_prior": [[1.0, 1.0], [0.0, 0.0]]}, "transmat_prior.*row 1 holds zeros alone"),
        ({"startprob_prior": [0.0, 0.0]}, "startprob_prior.*above 0"),
        ({"startprob_prior": [1.0, -1.0]}, "startprob_prior must hold numbers of 0 or more"),
        ({"transmat_prior": [[1.0, np.inf], [1.0, 1.0]]}, "transmat_prior must hold numbers"),
    ],
)
def test_chains_that_could_not_go_on_are_refused(priors, problem):
    with pytest.raises(ValueError, match=problem):
        GaussianHMM(2, **priors).fit(np.arange(8.0)[:, None])


def test_zeros_by_hand_and_by_prior_must_leave_a_way():
    hmm = GaussianHMM(2, init_params="smc", transmat_prior=[[1.0, 0.0], [0.0, 1.0]])
    hmm.transmat_ = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"transition_prior must hold.*in each row one above 0"):
        hmm.fit(np.arange(8.0)[:, None])


def test_statistics_of_any_states_are_made_those_of_states_that_may_follow():
    model, data, _ = chain_of_symbols()
    backwards = np.eye(3)[[2, 2, 1, 0, 2, 1, 0]]
    found = model.statistics(data, backwards)
    assert found.start.tolist() == [2.0, 0.0, 0.0]
    assert found.transitions.tolist() == [[1.0, 2.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(
        found.emissions[::-1], backwards.T @ model.likelihood.statistics(data.rows)
    )
    assert isinstance(found, Natural)
