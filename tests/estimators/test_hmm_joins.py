"""States that are joined: how many there are is learned."""

from dataclasses import replace

import numpy as np
import pytest

from tempering import CategoricalHMM, GaussianHMM, PoissonHMM
from tempering.estimators import chains
from tempering.estimators.chains import joined
from tempering.families import Poisson
from tempering.models import HiddenMarkov, Sequences

LENGTHS = [100, 50, 150, 300]


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [GaussianHMM, PoissonHMM, CategoricalHMM])
def test_the_number_of_states_is_found_from_above(kind, tmp_path):
    X, options = drawn(kind, 1), {"transmat_prior": 0.1, "startprob_prior": 0.1, "random_state": 0}
    plain = kind(7, **options, n_init=1).fit(X, LENGTHS)
    hmm = kind(7, **options, n_init=1, join_states=True).fit(X, LENGTHS, checkpoint=tmp_path)
    assert len(np.unique(plain.predict(X, LENGTHS))) > 3
    assert len(np.unique(hmm.predict(X, LENGTHS))) == 3
    assert hmm.elbo_ > plain.elbo_ + 5
    again = kind(7, **options, n_init=1, join_states=True).fit(X, LENGTHS, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.transmat_, hmm.transmat_)


def test_states_that_differ_stay():
    X = drawn(GaussianHMM, 0)
    plain, hmm = (
        GaussianHMM(3, random_state=0, join_states=join).fit(X, LENGTHS) for join in (False, True)
    )
    assert hmm.elbo_ == plain.elbo_


def test_joined_states_have_the_counts_of_both():
    rows = drawn(PoissonHMM, 0)
    data = Sequences(rows, LENGTHS)
    model = HiddenMarkov(Poisson(2), 4, emission_prior=[1.0, 1.0, 0.1, 0.1])
    near = np.array([0, 1, 2, 3])[(rows > 8) @ [1, 2]]
    assignment = 0.97 * np.eye(4)[near] + 0.01
    posterior = model.prior() + model.statistics(data, assignment)
    for start in joined(model, data, posterior):
        for name, part in posterior.items():
            assert start[name].sum() == pytest.approx(part.sum())
        empty = np.flatnonzero(start.transitions.sum(axis=0) < 4.5)
        assert len(empty) == 1
        np.testing.assert_allclose(start.emissions[empty[0]], model.prior().emissions[empty[0]])
        np.testing.assert_allclose(start.transitions[empty[0]], 1.0)
    known = HiddenMarkov(
        Poisson(2), 4, transition_prior=np.triu(np.ones((4, 4))), emission_prior=[1, 1, 0.1, 0.1]
    )
    assert not list(joined(known, data, posterior))


def test_a_gain_of_rounding_is_not_a_join(monkeypatch):
    """Each fit ends higher than the one before, by less than anybody can tell."""
    runs, run = [], chains.fit

    def fit(*arguments, **options):
        assert len(runs) < 20
        runs.append(run(*arguments, **options))
        return replace(runs[-1], elbo=runs[0].elbo + 1e-10 * len(runs))

    monkeypatch.setattr(chains, "fit", fit)
    X = np.repeat([0.0, 5.0], 20)[:, None] + np.random.default_rng(0).normal(size=(40, 2))
    GaussianHMM(2, random_state=0, n_init=1, join_states=True).fit(X)
