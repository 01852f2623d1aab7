"""Hidden Markov estimators: recovery, hmmlearn's vocabulary, errors and saving."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import tempering
from tempering import Annealing, CategoricalHMM, GaussianHMM, LocalTempering, PoissonHMM, schedules
from tempering.estimators.chains import cold_start
from tempering.inference import SaddleWarning
from tempering.inference.saddle import AT_SADDLE

START = np.array([0.6, 0.3, 0.1])
MOVES = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
MEANS = np.array([[0.0, 0.0], [3.0, -3.0], [5.0, 10.0]])
COVARS = {
    "full": np.tile([[1.0, 0.4], [0.4, 1.0]], (3, 1, 1)),
    "tied": np.array([[1.0, 0.4], [0.4, 1.0]]),
    "diag": np.array([[1.0, 0.5], [0.5, 1.0], [1.0, 1.0]]),
    "spherical": np.array([1.0, 0.5, 1.5]),
}
LENGTHS = [300, 1, 199, 500]


def set_by_hand(hmm, **emissions):
    """An estimator that was not fitted but told, as hmmlearn's can be."""
    hmm.startprob_, hmm.transmat_ = START, MOVES
    for name, value in emissions.items():
        setattr(hmm, name, value)
    return hmm


def told(kind):
    if kind in COVARS:
        return set_by_hand(GaussianHMM(3, kind), means_=MEANS, covars_=COVARS[kind])
    if kind == "categorical":
        symbols = [[0.8, 0.1, 0.05, 0.05], [0.05, 0.85, 0.05, 0.05], [0.0, 0.1, 0.3, 0.6]]
        return set_by_hand(CategoricalHMM(3), emissionprob_=np.array(symbols))
    return set_by_hand(PoissonHMM(3), lambdas_=np.array([[1.0, 9.0], [6.0, 1.0], [20.0, 20.0]]))


def draws(kind, seed=0):
    parts = [told(kind).sample(n, random_state=seed + i) for i, n in enumerate(LENGTHS)]
    X, states = (np.concatenate(part) for part in zip(*parts))
    return X, states


KINDS = [*COVARS, "categorical", "poisson"]


def same_states(found, true):
    """States in the order of the true ones that they mostly stand for."""
    counts = np.zeros((3, 3))
    np.add.at(counts, (true, found), 1)
    return counts.argmax(axis=1)


def test_priors_by_default_leave_many_states_as_narrow_as_they_are():
    rng = np.random.default_rng(0)
    means = 5.0 * np.arange(8)
    X = (means[rng.integers(8, size=800)] + rng.normal(size=800))[:, None]
    hmm = GaussianHMM(8, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(hmm.means_.ravel()), means, atol=0.5)
    np.testing.assert_allclose(hmm.covars_.ravel(), 1.0, rtol=0.35)


@pytest.mark.parametrize("kind", KINDS)
def test_a_drawn_model_is_recovered(kind):
    X, states = draws(kind)
    # With a hundred observations in a state even a narrow prior can be seen.
    narrow = {"beta_prior": 0.01, "scale_prior": 1.0} if kind in COVARS else {}
    hmm = clone(told(kind)).set_params(random_state=0, **narrow).fit(X, LENGTHS)
    order = same_states(hmm.predict(X, LENGTHS), states)
    assert sorted(order) == [0, 1, 2]
    assert np.mean(order[states] == hmm.predict(X, LENGTHS)) > (
        0.85 if kind == "categorical" else 0.97
    )
    np.testing.assert_allclose(hmm.transmat_[np.ix_(order, order)], MOVES, atol=0.08)
    if kind == "categorical":
        np.testing.assert_allclose(hmm.emissionprob_[order], told(kind).emissionprob_, atol=0.1)
    elif kind == "poisson":
        np.testing.assert_allclose(hmm.lambdas_[order], told(kind).lambdas_, rtol=0.1)
    else:
        np.testing.assert_allclose(hmm.means_[order], MEANS, atol=0.25)
        np.testing.assert_allclose(hmm.covars_[order], told(kind).covars_, atol=0.25)
    assert hmm.converged_
    assert abs(hmm.score(X, LENGTHS) - told(kind).score(X, LENGTHS)) < 15
    assert hmm.history_["tempered_elbo"][-1] <= hmm.elbo_ + 1e-6


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_scores_are_those_of_scipys_densities(kind):
    """For two observations the sum over all paths, from densities that are not ours."""
    hmm, X = told(kind), np.array([[1.0, -1.0], [2.0, 0.0]])
    density = np.array(
        [[multivariate_normal(m, c).pdf(x) for m, c in zip(MEANS, hmm.covars_)] for x in X]
    )
    joint = (START * density[0])[:, None] * MOVES * density[1]
    log_likelihood, marginals = hmm.score_samples(X)
    assert log_likelihood == pytest.approx(np.log(joint.sum()))
    assert hmm.score(X) == log_likelihood
    np.testing.assert_allclose(
        marginals, [joint.sum(axis=1) / joint.sum(), joint.sum(axis=0) / joint.sum()]
    )
    np.testing.assert_allclose(hmm.predict_proba(X), marginals)
    log_joint, path = hmm.decode(X)
    assert log_joint == pytest.approx(np.log(joint.max()))
    assert tuple(path) == np.unravel_index(joint.argmax(), (3, 3))
    np.testing.assert_array_equal(hmm.predict(X), path)


@pytest.mark.parametrize(
    ("make", "n_parameters"),
    [
        # 2 means of 3 columns, and covariances; 1 for the start, 2 for the moves.
        (lambda: GaussianHMM(2, covariance_type="full"), 3 + 6 + 12),
        (lambda: GaussianHMM(2, covariance_type="tied"), 3 + 6 + 6),
        (lambda: GaussianHMM(2, covariance_type="diag"), 3 + 6 + 6),
        (lambda: GaussianHMM(2, covariance_type="spherical"), 3 + 6 + 2),
        (lambda: PoissonHMM(2), 3 + 6),
        (lambda: CategoricalHMM(2, n_features=7), 3 + 2 * 6),
    ],
)
def test_information_criteria_count_the_parameters_that_are_free(make, n_parameters):
    X = np.random.default_rng(0).poisson(3.0, size=(60, 3)) % 7
    model = make()
    X = X[:, :1] if isinstance(model, CategoricalHMM) else X
    model.set_params(n_iter=2, n_init=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, [40, 20])
    score = model.score(X, [40, 20])
    assert model.aic(X, [40, 20]) == pytest.approx(2 * n_parameters - 2 * score)
    assert model.bic(X, [40, 20]) == pytest.approx(n_parameters * np.log(60) - 2 * score)


def test_sequences_are_independent():
    hmm = told("poisson")
    X, _ = draws("poisson")
    bounds = np.cumsum([0, *LENGTHS])
    alone = [hmm.score(X[a:b]) for a, b in zip(bounds, bounds[1:])]  # noqa: RUF007
    assert hmm.score(X, LENGTHS) == pytest.approx(sum(alone))
    assert hmm.score(X) != pytest.approx(sum(alone), abs=1e-3)


def test_the_most_probable_states_need_not_lie_on_the_most_probable_path():
    """Of three paths through two states the likeliest begins in state 0, but most in state 1."""
    hmm = CategoricalHMM(3)
    hmm.startprob_ = [0.4, 0.6, 0.0]
    hmm.transmat_ = [[0.0, 0.0, 1.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]
    hmm.emissionprob_ = [[1.0], [1.0], [1.0]]
    log_joint, path = hmm.decode([[0], [0]])
    assert path.tolist() == [0, 2]
    assert log_joint == pytest.approx(np.log(0.4))
    expected_right, states = hmm.decode([[0], [0]], algorithm="map")
    assert states.tolist() == [1, 2]
    assert expected_right == pytest.approx(0.6 + 0.7)
    with pytest.raises(ValueError, match=r"algorithm must be .* got 'best'"):
        hmm.decode([[0]], algorithm="best")


def test_the_stationary_distribution_is_what_a_long_walk_shows():
    hmm = told("poisson")
    shares = hmm.get_stationary_distribution()
    np.testing.assert_allclose(shares @ MOVES, shares)
    assert shares.sum() == pytest.approx(1.0)
    _, states = hmm.sample(20_000, random_state=0)
    np.testing.assert_allclose(np.bincount(states) / 20_000, shares, atol=0.02)
    hmm.transmat_ = 2 * MOVES
    with pytest.raises(ValueError, match="transmat_ must hold probabilities"):
        hmm.get_stationary_distribution()


@pytest.mark.parametrize("kind", [*COVARS])
def test_covariances_may_be_set_as_they_are_read(kind):
    one, other = told(kind), told(kind)
    other.covars_ = one.covars_
    np.testing.assert_array_equal(other.covars_, one.covars_)
    X, _ = draws(kind)
    assert other.score(X) == one.score(X)
    if kind != "full":
        matrices = one.covars_.copy()
        matrices[0, 0, 1] = 0.3
        other.covars_ = matrices
        with pytest.raises(ValueError, match=rf"must have the shapes.*'{kind}'.*\(3, 2, 2\)"):
            other.score(X)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_begins_from_what_was_set_by_hand(kind):
    """At n_iter=1 the states keep the order in which they were told; a start of our own has none.

    The order of the told states is turned round, so that no start finds it by chance twice.
    """
    X, states = draws(kind)
    for turn in (1, 2):
        hmm = told(kind).set_params(init_params="", n_iter=1, random_state=0)
        for name in hmm._letters.values():
            if not (name == "_covars_" and kind == "tied"):
                setattr(hmm, name, np.roll(getattr(hmm, name), turn, axis=0))
        hmm.transmat_ = np.roll(hmm.transmat_, turn, axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            hmm.fit(X, LENGTHS)
        order = (np.arange(3) + turn) % 3
        assert np.mean(hmm.predict(X, LENGTHS) == order[states]) > 0.8
        assert hmm.elbo_ > -1e6


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    X, _ = draws("diag")
    hmm = GaussianHMM(3, random_state=0, n_iter=50, tempering=None, init="random")
    first = hmm.fit(X, LENGTHS).elbo_
    means = hmm.means_.copy()
    hmm.set_params(init_params="", n_iter=5)
    assert hmm.fit(X, LENGTHS).elbo_ == pytest.approx(first, abs=0.5)
    np.testing.assert_allclose(hmm.means_, means, atol=0.01)
    assert hmm.n_iter_ <= 5


def test_letters_of_the_start_are_checked_and_those_not_set_are_found():
    X, _ = draws("diag")
    with pytest.raises(ValueError, match=r"init_params='stx' .* got \['x'\]"):
        GaussianHMM(3, init_params="stx").fit(X)
    plain = GaussianHMM(3, random_state=0).fit(X, LENGTHS)
    # Nothing was set, so that there is nothing to keep: the same bits.
    assert GaussianHMM(3, random_state=0, init_params="").fit(X, LENGTHS).elbo_ == plain.elbo_
    wrong = GaussianHMM(3, init_params="mc")
    wrong.startprob_ = [0.5, 0.5]
    with pytest.raises(ValueError, match="startprob_"):
        wrong.fit(X)
    assert not hasattr(wrong, "means_")


def test_concentrations_of_the_posterior_count_the_moves():
    X, _ = draws("diag")
    hmm = GaussianHMM(3, random_state=0).fit(X, LENGTHS)
    # Each prior counts as one of each; a sequence has one first state and the rest are moves.
    assert hmm.startprob_posterior_.sum() == pytest.approx(3 + len(LENGTHS))
    assert hmm.transmat_posterior_.sum() == pytest.approx(9 + sum(LENGTHS) - len(LENGTHS))
    rows = hmm.transmat_posterior_ / hmm.transmat_posterior_.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows, hmm.transmat_)
    with pytest.raises(NotFittedError):
        _ = told("diag").transmat_posterior_


def test_draws_follow_the_chain():
    X, states = told("diag").sample(20_000, random_state=0)
    counts = np.zeros((3, 3))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), MOVES, atol=0.02)
    for state in range(3):
        np.testing.assert_allclose(X[states == state].mean(axis=0), MEANS[state], atol=0.08)
        np.testing.assert_allclose(X[states == state].var(axis=0), COVARS["diag"][state], atol=0.08)
    assert told("diag").sample(3, random_state=0, currstate=2)[1][0] == 2
    again = told("diag").sample(20_000, random_state=0)
    np.testing.assert_array_equal(again[0], X)


def test_probabilities_may_have_few_digits():
    hmm = CategoricalHMM(2)
    hmm.startprob_, hmm.transmat_ = [0.5, 0.5], np.full((2, 2), 0.5)
    hmm.emissionprob_ = np.full((2, 3), 1 / 3, np.float32)
    X, _ = hmm.sample(30, random_state=0)
    assert set(X.ravel()) == {0, 1, 2}
    assert hmm.score(X) == pytest.approx(-30 * np.log(3), rel=1e-14)


def test_symbols_can_be_clustered_for_a_start():
    X = np.tile(np.repeat([0, 3, 1], 20), 5)[:, None]
    model = CategoricalHMM(3)._new_model(X)
    start = cold_start(
        model, tempering.models.Sequences(X[:, 0]), "kmeans", np.random.RandomState(0)
    )
    counts = start.emissions - model.prior().emissions
    assert sorted(counts.tolist()) == [[0, 0, 0, 100], [0, 100, 0, 0], [100, 0, 0, 0]]
    hmm = CategoricalHMM(3, init="kmeans", random_state=0).fit(X)
    assert sorted(hmm.emissionprob_.argmax(axis=1)) == [0, 1, 3]


def test_what_cannot_happen_is_not_decoded():
    """A state that is never entered has no probability, and a symbol that none emits no score."""
    hmm = CategoricalHMM(2)
    hmm.startprob_, hmm.transmat_ = [1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]
    hmm.emissionprob_ = [[0.5, 0.5, 0.0], [0.1, 0.9, 0.0]]
    np.testing.assert_array_equal(hmm.predict_proba([[1], [1]])[:, 1], 0.0)
    assert hmm.score([[1], [1]]) == pytest.approx(np.log(0.25))
    assert hmm.score([[1], [2]]) == -np.inf


def test_threads_leave_every_bit_and_seeds_do_not():
    X, _ = draws("diag")
    lengths = np.full(100, 10)
    fits = [
        GaussianHMM(4, random_state=seed, n_jobs=jobs, n_iter=20, tol=0.0, init="random")
        for seed, jobs in ((0, 1), (0, 3), (1, 1))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, second, other = (hmm.fit(X, lengths) for hmm in fits)
    assert first.elbo_ == second.elbo_
    np.testing.assert_array_equal(first.means_, second.means_)
    assert not np.array_equal(first.means_, other.means_)


@pytest.mark.parametrize(
    "policy", ["annealing", None, "local", "variational", Annealing(schedules.linear(1.3))]
)
def test_every_policy_may_be_asked_for(policy):
    X, _ = draws("diag")
    hmm = GaussianHMM(3, tempering=policy, random_state=0, n_iter=60, n_init=1)
    hmm.fit(X[:301], LENGTHS[:2])
    np.testing.assert_allclose(np.sort(hmm.means_[:, 1]), [-3.0, 0.0, 10.0], atol=0.3)
    hot = hmm.history_["temperature"].max()
    assert hot == 1.0 if policy is None else hot > 1.0


def test_restarts_keep_the_best():
    X, _ = draws("categorical")
    elbos = [
        CategoricalHMM(3, tempering=None, n_init=n, random_state=0).fit(X).elbo_ for n in (1, 3)
    ]
    assert elbos == sorted(elbos)
    assert CategoricalHMM(3, tempering=None, random_state=0).fit(X).elbo_ == elbos[1]


@pytest.mark.parametrize("lengths", [[60_000, *[1] * 9], [*[1] * 9, 60_000]])
@pytest.mark.parametrize("moves", [np.ones((4, 4)), np.triu(np.ones((4, 4)))])
def test_the_start_looks_at_rows_not_at_a_share_of_the_sequences(lengths, moves):
    levels = np.repeat([0.0, 10.0, 20.0, 30.0], 15_000)
    X = np.insert(levels, 0 if lengths[0] == 1 else len(levels), np.zeros(9))[:, None]
    X = X + np.random.default_rng(0).normal(size=X.shape)
    data = tempering.models.Sequences(X, lengths)
    model = GaussianHMM(4, transmat_prior=moves)._new_model(X)
    start = cold_start(model, data, "kmeans", np.random.RandomState(0))
    means = GaussianHMM(4)._kind.describe(model.likelihood, start.emissions)[0]
    np.testing.assert_allclose(np.sort(means.ravel()), [0.0, 10.0, 20.0, 30.0], atol=0.1)


def test_sticky_chains_stay():
    X, _ = draws("diag")
    free, sticky = (
        GaussianHMM(3, sticky=s, random_state=0).fit(X, LENGTHS).transmat_.diagonal().mean()
        for s in (0.0, 2000.0)
    )
    assert free < 0.8 < 0.9 < sticky


def test_minibatches_come_near():
    X, _ = draws("diag")
    lengths = np.full(100, 10)
    whole = GaussianHMM(3, random_state=0).fit(X, lengths)
    online = GaussianHMM(3, random_state=0, batch_size=20, n_iter=40).fit(X, lengths)
    assert online.elbo_ > whole.elbo_ - 0.01 * abs(whole.elbo_)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_predicts_the_same_bits(kind, tmp_path):
    lengths = [59, 1]
    X = draws(kind)[0][:60]
    hmm = clone(told(kind)).set_params(random_state=0, tempering=LocalTempering(), n_iter=4)
    hmm.set_params(tol=1.0, n_init=1).fit(X, lengths)
    hmm.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert type(loaded) is type(hmm)
    assert loaded.elbo_ == hmm.elbo_
    assert loaded.score(X, lengths) == hmm.score(X, lengths)
    np.testing.assert_array_equal(loaded.predict_proba(X), hmm.predict_proba(X))
    np.testing.assert_array_equal(loaded.transmat_, hmm.transmat_)
    assert loaded.get_params()["n_iter"] == 4
    assert loaded.history_["elbo"].tolist() == hmm.history_["elbo"].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_by_hand_are_saved(kind, tmp_path):
    """Of a model that was never fitted, and then of one that was fitted and changed."""
    X, hmm = draws(kind)[0][:60], told(kind)
    hmm.save(tmp_path / "told")
    assert tempering.load(tmp_path / "told").score(X) == hmm.score(X)
    hmm.set_params(random_state=0, n_init=1, tol=1.0).fit(X)
    fitted = hmm.score(X)
    hmm.transmat_ = [[0.5, 0.25, 0.25]] * 3
    hmm.save(tmp_path / "changed")
    assert tempering.load(tmp_path / "changed").score(X) == hmm.score(X) != fitted


def test_parameters_that_are_not_set_are_named(tmp_path):
    hmm = GaussianHMM(3)
    hmm.startprob_, hmm.transmat_, hmm.means_ = START, MOVES, MEANS
    for ask in (lambda: hmm.score(MEANS), lambda: hmm.bic(MEANS), hmm.sample):
        with pytest.raises(NotFittedError, match=r"fit it, or set covars_\."):
            ask()
    with pytest.raises(NotFittedError):
        hmm.save(tmp_path / "model")


def test_a_checkpoint_is_taken_up(tmp_path):
    X, _ = draws("poisson")
    options = {"checkpoint": tmp_path / "kept"}
    first = PoissonHMM(3, random_state=0, n_init=2).fit(X, LENGTHS, **options)
    again = PoissonHMM(3, random_state=0, n_init=2).fit(X, LENGTHS, **options)
    assert first.elbo_ == again.elbo_
    with pytest.raises(ValueError, match="checkpoint"):
        PoissonHMM(3, random_state=0, n_init=2).fit(X, **options)


@pytest.mark.parametrize("tempering", [None, "annealing"])
def test_every_run_of_a_finished_fit_is_found_again(tmp_path, tempering):
    """Runs after the first one see data that have been asked for their rows, and are the same."""
    X = np.repeat([0.0, 5.0], 20)[:, None] + np.random.default_rng(0).normal(size=(40, 2))
    first, again = (
        GaussianHMM(2, random_state=0, tempering=tempering).fit(X, checkpoint=tmp_path)
        for _ in range(2)
    )
    assert first.restart_elbos_ == again.restart_elbos_


@pytest.mark.parametrize("make", [GaussianHMM, CategoricalHMM, PoissonHMM])
def test_parameters_are_scikit_learns(make):
    hmm = make(4, sticky=3.0, n_iter=7)
    copy = clone(hmm)
    assert copy.get_params() == hmm.get_params()
    assert copy.set_params(n_init=3).n_init == 3
    with pytest.raises(NotFittedError):
        hmm.predict([[1]])
    for name, value in (("n_components", 0), ("sticky", -1.0), ("n_iter", -1), ("init", "best")):
        with pytest.raises(ValueError, match=name):
            make(**{name: value}).fit([[0], [1]])
    for name in ("startprob_prior", "transmat_prior"):
        with pytest.raises(ValueError, match=name):
            make(2, **{name: [1.0, 1.0, 1.0]}).fit([[0], [1]])
        with pytest.raises(ValueError, match="prior"):
            make(2, **{name: [1.0, -1.0]}).fit([[0], [1]])


@pytest.mark.parametrize("make", [GaussianHMM, CategoricalHMM, PoissonHMM])
@pytest.mark.parametrize(
    ("X", "lengths", "problem"),
    [
        ([[0], [1], [1]], [2], "add up to 2, and there are 3"),
        ([[0], [1], [1]], [3, 0], "sequence 1 has 0"),
        ([[0], [np.nan], [1]], None, "row 1, column 0 holds nan"),
        ([[0], [np.inf], [1]], None, "row 1, column 0 holds inf"),
        ([0, 1, 1], None, "2D"),
        ([["a"], ["b"]], None, "X"),
        (np.empty((0, 1)), None, "0 sample"),
    ],
)
def test_data_that_cannot_be_are_refused_and_leave_the_fit(make, X, lengths, problem):
    hmm = make(2, n_iter=2, random_state=0).fit([[0], [1], [1], [0]] * 5)
    before = dict(vars(hmm))
    with pytest.raises(ValueError, match=problem):
        hmm.fit(X, lengths)
    assert vars(hmm) == before
    with pytest.raises(ValueError, match=problem):
        hmm.predict(X, lengths)


def test_columns_symbols_and_counts_that_do_not_belong_are_refused():
    X, _ = draws("diag")
    with pytest.raises(ValueError, match="1 features, but GaussianHMM is expecting 2"):
        GaussianHMM(3, random_state=0).fit(X).predict(X[:, :1])
    symbols = CategoricalHMM(2, random_state=0).fit([[0], [1], [2], [0], [2]])
    assert symbols.emissionprob_.shape == (2, 3)
    with pytest.raises(ValueError, match=r"symbols 0 to 2 .* row 1, column 0 holds 7"):
        symbols.score([[0], [7]])
    with pytest.raises(ValueError, match="symbols 0 to 1"):
        CategoricalHMM(2, n_features=2).fit([[0], [2]])
    with pytest.raises(ValueError, match=r"symbols 0 to 2 .* larger n_features .* holds 3"):
        symbols.partial_fit([[0], [3]])
    with pytest.raises(ValueError, match="one column"):
        CategoricalHMM(2).fit([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="whole"):
        CategoricalHMM(2).fit([[0.5], [1]])
    with pytest.raises(ValueError, match="negative"):
        PoissonHMM(2).fit([[-1], [1]])
    with pytest.raises(ValueError, match=r"without gaps; row 1, column 0 holds 1000000000\.0"):
        CategoricalHMM(2).fit([[0], [10**9]])
    assert CategoricalHMM(2, n_features=5, random_state=0).fit(
        [[0], [1]] * 9
    ).emissionprob_.shape == (2, 5)


def test_priors_and_parameters_of_a_wrong_shape_are_refused():
    X, _ = draws("diag")
    for name, value in (
        ("means_prior", [1.0]),
        ("scale_prior", np.eye(3)),
        ("scale_prior", [1.0, -1.0]),
        ("dof_prior", 0.5),
    ):
        with pytest.raises(ValueError, match=name):
            GaussianHMM(3, **{name: value}).fit(X)
    with pytest.raises(ValueError, match="emissionprob_prior"):
        CategoricalHMM(2, emissionprob_prior=[1.0, 1.0]).fit([[0], [1], [2]])
    with pytest.raises(ValueError, match="lambdas_weight"):
        PoissonHMM(2, lambdas_weight=[1.0, 1.0]).fit([[0], [1], [2]])
    for name in ("startprob_prior", "transmat_prior"):
        with pytest.raises(ValueError, match=f"{name} must hold numbers of 0 or more"):
            GaussianHMM(3, **{name: [1.0, -1.0, 1.0]}).fit(X)
    with pytest.raises(ValueError, match=r"n_components.*in the range \[1, 10000\]"):
        GaussianHMM(10**30).fit(X)
    for name, value in (("transmat_", np.eye(2)), ("startprob_", [0.5, 0.1, 0.1])):
        hmm = told("diag")
        setattr(hmm, name, value)
        with pytest.raises(ValueError, match=name):
            hmm.score(X)
    with pytest.raises(ValueError, match="covariance_type must be one of"):
        told("diag").set_params(covariance_type="best").score(X)
    hmm = told("diag")
    hmm.covars_ = np.eye(2)
    with pytest.raises(ValueError, match="covars_ must have the shapes"):
        hmm.score(X)
    for name, value in (
        ("covars_", np.zeros((3, 2))),
        ("covars_", np.full((3, 2), np.inf)),
        ("means_", np.full((3, 2), np.nan)),
        ("means_", np.zeros((3, 2, 2))),
    ):
        hmm = told("diag")
        setattr(hmm, name, value)
        with pytest.raises(ValueError, match=f"{name} must"):
            hmm.score(X)
    counts = PoissonHMM(2, random_state=0).fit([[1], [9]] * 9)
    counts.lambdas_ = np.full((2, 1), 1e30)
    with pytest.raises(ValueError, match="rates above 9e"):
        counts.sample(3)
    counts.lambdas_ = np.full((2, 1), np.inf)
    with pytest.raises(ValueError, match="lambdas_ must hold finite numbers"):
        counts.score([[1], [2]])


def test_data_far_from_zero_and_constant_columns_are_no_harder():
    X, _ = draws("diag")
    near = GaussianHMM(3, random_state=0, n_init=1).fit(X, LENGTHS)
    far = GaussianHMM(3, random_state=0, n_init=1).fit(X + 1e6, LENGTHS)
    assert far.elbo_ == pytest.approx(near.elbo_, rel=1e-6)
    np.testing.assert_allclose(far.means_ - 1e6, near.means_, atol=1e-4)
    with_constant = np.column_stack([X, np.ones(len(X))])
    assert np.isfinite(GaussianHMM(3, random_state=0).fit(with_constant, LENGTHS).elbo_)


@pytest.mark.parametrize("kind", [*COVARS])
def test_units_do_not_matter(kind):
    X = np.column_stack([draws("diag")[0][:60], np.full(60, 0.1)])
    one = GaussianHMM(3, kind, random_state=0, n_init=1).fit(X)
    for unit in (1e-8, 1e5):
        other = GaussianHMM(3, kind, random_state=0, n_init=1).fit(unit * X)
        np.testing.assert_allclose(other.means_, unit * one.means_, rtol=1e-5, atol=1e-5 * unit)
        np.testing.assert_allclose(
            other.covars_, unit**2 * one.covars_, rtol=1e-5, atol=1e-9 * unit**2
        )


def test_names_of_columns_are_those_of_the_fit():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(draws("diag")[0][:60], columns=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        told("diag").set_params(init_params="", tol=1.0, random_state=0).fit(X).predict(X)


@pytest.mark.parametrize(("seed", "tempering"), [(1, None), (6, "adaptive")])
def test_states_that_are_alike_separate_however_slowly(seed, tempering):
    """From a saddle a push rises by next to nothing at first, and the fit goes on from there."""
    truth = CategoricalHMM(2)
    truth.startprob_ = np.array([0.7, 0.3])
    truth.transmat_ = np.array([[0.9, 0.1], [0.0, 1.0]])
    truth.emissionprob_ = np.array([[0.75, 0.25], [0.05, 0.95]])
    rng = np.random.RandomState(seed)
    X = np.concatenate([truth.sample(20, random_state=rng)[0] for _ in range(200)])[:2000]
    hmm = CategoricalHMM(2, tempering=tempering, random_state=seed).fit(X, [20] * 100)
    assert hmm.elbo_ > -900  # −1160 where the states are alike


def volatile(n=1500):
    """Changes whose variance drifts, as that of a share: states that overlap, slow to find."""
    rng, variance, changes = np.random.default_rng(1), 1.0, np.empty(n)
    for day in range(n):
        changes[day] = np.sqrt(variance) * rng.normal()
        variance = 0.05 + 0.1 * changes[day] ** 2 + 0.86 * variance
    return changes[:, None]


@pytest.mark.parametrize("n_components", [3, 4, 5])
def test_a_default_fit_of_an_ordinary_series_converges(n_components):
    X = volatile()
    hmm = GaussianHMM(n_components, random_state=0, n_init=1).fit(X)
    assert hmm.converged_
    assert hmm.n_iter_ > 60
    few = GaussianHMM(n_components, random_state=0, n_init=1, n_iter=60)
    with pytest.warns(ConvergenceWarning, match="n_iter=60"):
        few.fit(X)
    assert hmm.elbo_ > few.elbo_


@pytest.mark.parametrize("kind", ["diag", "categorical", "poisson"])
def test_without_iterations_the_start_is_the_result(kind):
    hmm = told(kind)
    X, _ = hmm.sample(200, random_state=0)
    start = clone(hmm).set_params(n_iter=0, random_state=0, n_init=1).fit(X)
    assert start.n_iter_ == 0
    assert np.isfinite(start.elbo_)
    going_on = clone(hmm).set_params(n_iter=5, tol=0.0, random_state=0, n_init=1, tempering=None)
    with pytest.warns(ConvergenceWarning):
        going_on.fit(X)
    assert going_on.history_["elbo"][0] == pytest.approx(start.elbo_)


def test_one_length_may_be_a_number():
    X = np.random.default_rng(0).normal(size=(30, 1))
    hmm = GaussianHMM(2, random_state=0, n_iter=5, tol=1e3)
    assert hmm.fit(X, 30).score(X, np.int64(30)) == hmm.fit(X, [30]).score(X)
    for lengths in (20, [10**400], True):
        with pytest.raises(ValueError, match="lengths must"):
            hmm.fit(X, lengths)


@pytest.mark.parametrize("kind", ["diag", "categorical", "poisson"])
def test_a_changed_number_of_states_is_named(kind):
    X, _ = told(kind).sample(100, random_state=0)
    hmm = clone(told(kind)).set_params(random_state=0, tol=1e3).fit(X)
    hmm.set_params(n_components=hmm.n_components + 2)
    uses = [lambda: hmm.predict(X), lambda: hmm.score(X), hmm.sample, lambda: hmm.bic(X)]
    for use in [*uses, hmm.get_stationary_distribution]:
        with pytest.raises(ValueError, match=r"was fitted with n_components=.*Set it back"):
            use()


def test_covariances_set_by_hand_for_other_states_are_refused_with_the_right_shape():
    hmm = GaussianHMM(3)
    hmm.startprob_, hmm.transmat_ = np.full(3, 1 / 3), np.full((3, 3), 1 / 3)
    hmm.means_, hmm.covars_ = np.zeros((2, 1)), np.ones((2, 1))
    with pytest.raises(ValueError, match=r"the shapes \(3, 1\) and \(3, 1\)"):
        hmm.predict([[0.0]])


@pytest.mark.parametrize("parameter", ["params", "init_params"])
def test_unknown_letters_are_refused_in_public_names(parameter):
    with pytest.raises(ValueError, match=r"c \(covars_\)") as error:
        GaussianHMM(**{parameter: "zz"}).fit([[0.0], [1.0]])
    assert "_covars_" not in str(error.value)


@pytest.mark.parametrize("value", [True, 2**70])
@pytest.mark.parametrize("parameter", ["n_features", "n_iter", "n_init", "batch_size"])
def test_counts_that_are_none_are_refused_by_name(parameter, value):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter .* an int in the range"):
        CategoricalHMM(**{parameter: value}).fit([[0], [0]])


def test_a_saddle_is_told_of_the_best_start_alone(monkeypatch):
    X = volatile(200)
    kept = GaussianHMM._run

    def search(self, model, data, options):
        found = replace(kept(self, model, data, options), at_saddle=at_saddle.pop())
        if found.at_saddle:
            warnings.warn(AT_SADDLE, SaddleWarning, stacklevel=2)
        return found

    monkeypatch.setattr(GaussianHMM, "_run", search)
    elbos = GaussianHMM(3, random_state=0, n_init=2, tol=0.1, tempering="annealing")
    at_saddle = [False, False]
    best = int(np.argmax(elbos.fit(X).restart_elbos_))
    for place in (0, 1):
        at_saddle = [place == 1, place == 0]  # taken from the end
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", SaddleWarning)
            elbos.fit(X)
        assert [each.category for each in told] == [SaddleWarning] * (place == best)
