"""Poisson factorisation as an estimator."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import tempering
from tempering import PoissonFactorization


@parametrize_with_checks([PoissonFactorization(n_components=2, max_iter=4)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def parts(n=300, seed=0):
    """Counts from three components that share no column."""
    rng = np.random.default_rng(seed)
    components = np.kron(np.eye(3), np.ones(4))
    return rng.poisson(5 * rng.gamma(0.5, 2.0, (n, 3)) @ components), components


def test_components_are_recovered():
    X, truth = parts()
    factors = PoissonFactorization(3, random_state=0).fit(X)
    shares = factors.components_ / factors.components_.sum(axis=1, keepdims=True)
    assert sorted((shares > 0.125).astype(int).tolist()) == sorted(truth.astype(int).tolist())
    assert factors.converged_
    sums = (factors.transform(X) @ factors.components_).sum()
    assert sums == pytest.approx(X.sum(), rel=0.02)


def test_score_is_of_each_entry_and_prefers_what_was_fitted():
    X, _ = parts()
    factors = PoissonFactorization(3, random_state=0).fit(X[:200])
    assert factors.score(X[200:]) == pytest.approx(factors.score_samples(X[200:]).mean() / 12)
    shuffled = np.random.default_rng(0).permuted(X[200:], axis=1)
    assert factors.score(X[200:]) > factors.score(shuffled) + 0.1
    # The bound of all rows and the divergence of the components are the ELBO.
    bound = factors.score_samples(X[:200]).sum()
    bound -= factors._model.divergence(factors._state.posterior)
    assert bound == pytest.approx(factors.elbo_, abs=0.1)


def test_the_score_of_a_row_is_its_own():
    X, _ = parts(40)
    X[3] = 0
    factors, among = PoissonFactorization(3, random_state=0, max_iter=5).fit(X), X.copy()
    among[0] = 1e12
    assert np.array_equal(factors.score_samples(among)[1:], factors.score_samples(X)[1:])
    alone = [factors.score_samples(row[None])[0] for row in X]
    np.testing.assert_allclose(alone, factors.score_samples(X), rtol=1e-12)


def test_saved_and_pickled(tmp_path):
    X, _ = parts(60)
    factors = PoissonFactorization(3, random_state=0, max_iter=20).fit(sparse.csr_matrix(X))
    factors.save(tmp_path / "model")
    for other in (tempering.load(tmp_path / "model"), pickle.loads(pickle.dumps(factors))):
        assert np.array_equal(other.transform(X), factors.transform(X))
        assert other.elbo_ == factors.elbo_


def test_threads_change_no_bit():
    X, _ = parts(2100)
    one, more = (
        PoissonFactorization(3, random_state=0, max_iter=8, n_jobs=n).fit(X) for n in (1, 2)
    )
    assert np.array_equal(one.components_, more.components_)
    assert np.array_equal(one.transform(X), more.transform(X))


def test_minibatches_and_empty_rows_and_columns():
    X, _ = parts()
    X[5], X[:, 3] = 0, 0
    factors = PoissonFactorization(3, batch_size=50, max_iter=10, random_state=0).fit(X)
    assert np.isfinite(factors.transform(X)).all()
    assert factors.components_[:, 3].max() < 0.2 * factors.components_.max()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_prior": (1.0, 0.0)}, "activation_prior must be two positive"),
        ({"component_prior": (1.0,)}, "component_prior must be two positive"),
        ({"tempering": "variational"}, "tempering must be None, one of 'auto', 'annealing'"),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        PoissonFactorization(2, **change).fit(parts(20)[0])


def test_bad_data():
    X, _ = parts(20)
    factors = PoissonFactorization(2, random_state=0, max_iter=5).fit(X)
    with pytest.raises(ValueError, match="row 1, column 2 holds -3"):
        factors.transform(np.where(np.arange(240).reshape(20, 12) == 14, -3, X))
    with pytest.raises(ValueError, match=r"^X must hold.*up to 1e\+12 each; row 1, column 2"):
        factors.transform(np.where(np.arange(240).reshape(20, 12) == 14, 1e13, X))
    with pytest.raises(ValueError, match="NaN"):
        factors.fit(np.full((3, 12), np.nan))
    with pytest.raises(ValueError, match="12"):
        factors.transform(X[:, :5])
    with pytest.raises(ValueError, match="2 components"):
        factors.inverse_transform(X)
    with pytest.raises(ValueError, match="minimum of 1"):
        factors.fit(X[:0])
