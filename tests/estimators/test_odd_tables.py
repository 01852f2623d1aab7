"""A batch that would break a mixture is refused as a whole: the model stays as it was."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from tempering import (
    BayesianGaussianMixture,
    BernoulliMixture,
    FactorialMixture,
    GaussianHMM,
    LatentDirichletAllocation,
    PoissonMixture,
)

MODELS = {
    "full": lambda: BayesianGaussianMixture(3, random_state=0),
    "diag": lambda: BayesianGaussianMixture(3, covariance_type="diag", random_state=0),
    "poisson": lambda: PoissonMixture(3, random_state=0),
    "bernoulli": lambda: BernoulliMixture(3, random_state=0),
    "features": lambda: FactorialMixture(3, learn=("noise_variance",), random_state=0),
}


def table(name, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(centre, 1.0, (30, 3)) for centre in (-5, 0, 5)])
    return {"poisson": rng.poisson(3.0, X.shape), "bernoulli": X > 0}.get(name, X).astype(float)


def numbers_of(model):
    """All that a model has learned, name by name."""
    found = {f"state.{name}": part for name, part in model._state.posterior.items()}
    for name, value in {**vars(model), **vars(getattr(model, "_model", None) or object)}.items():
        if isinstance(value, float | int | np.ndarray):
            found[name] = np.array(value)
    return found | {"seen": model._state.data_seen, "step": model._state.step}


def assert_refused(model, X, message):
    before = numbers_of(model)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X)
    after = numbers_of(model)
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert_array_equal(after[name], value, err_msg=name)


@pytest.mark.parametrize(
    "kind", [BernoulliMixture, PoissonMixture, LatentDirichletAllocation, GaussianHMM]
)
def test_a_parameter_that_there_is_not_is_refused_by_the_class_that_was_called(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\) got .* 'nonsense'"):
        kind(nonsense=1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300, 1e300])
def test_a_bad_batch_is_named_and_changes_nothing(name, value):
    model, X = MODELS[name]().partial_fit(table(name)), table(name, 1)
    X[7, 1] = value
    assert_refused(model, X, rf"row 7, column 1 holds {value}".replace("+", r"\+"))
    with pytest.raises(ValueError, match="row 7, column 1 holds"):
        MODELS[name]().fit(X)


@pytest.mark.parametrize("name", [*MODELS, "states", "topics"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_first_batch_that_is_refused_leaves_nothing(name, method):
    others = {"states": GaussianHMM(2), "topics": LatentDirichletAllocation(2)}
    model, X = others.get(name) or MODELS[name](), table("poisson")
    before = dict(vars(model))
    with pytest.raises(ValueError, match="row 7, column 1 holds inf"):
        getattr(model, method)(np.where(np.arange(X.size).reshape(X.shape) == 22, np.inf, X))
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.score(X)


@pytest.mark.parametrize("name", ["full", "diag", "features"])
@pytest.mark.parametrize("value", [1e18, 1e30, 1e100])
def test_what_a_model_cannot_bear_changes_nothing(name, value):
    """A step with such a row is taken, and leaves no NaN; or refused by name, as if never tried."""
    model, X = MODELS[name]().partial_fit(table(name)), table(name, 1)
    X[7] = value
    before, taken = numbers_of(model), True
    try:
        model.partial_fit(X)
    except ValueError as error:
        assert "stays as it was" in str(error)  # noqa: PT017
        taken = False
    for part, numbers in numbers_of(model).items():
        assert np.isfinite(numbers).all(), part
        assert taken or np.array_equal(numbers, before[part]), part
    assert np.isfinite(model.score(table(name)))


def test_a_step_that_fails_is_taken_back():
    """A row so far off that the covariance of its component cannot be inverted."""
    model, X = MODELS["full"]().partial_fit(table("full")), table("full", 1)
    X[7] = 1e30
    assert_refused(model, X, r"stays as it was.*largest number is 1e\+30, in row 7\.")
    model.partial_fit(table("full", 2))


@pytest.mark.parametrize("name", MODELS)
def test_far_too_many_components_are_refused_at_once(name):
    model = MODELS[name]().set_params(n_components=10**7)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="n_components=10000000 is more than"):
            method(table(name))


@pytest.mark.parametrize("name", MODELS)
def test_an_endless_stream_is_refused(name):
    with pytest.raises(ValueError, match="total_samples"):
        MODELS[name]().set_params(total_samples=1e300).partial_fit(table(name))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("X", [np.full((9, 3), "many"), {"a": 1}, [[1.0, 10**400]]])
def test_what_is_no_table_of_numbers_is_named(name, X):
    with pytest.raises((TypeError, ValueError), match="X must be a table of numbers"):
        MODELS[name]().fit(X)


def test_counts_next_to_nothing_are_as_an_empty_column():
    X = np.array([[2.0, 5e-324], [3.0, 0.0], [1.0, 5e-324]])
    empty = PoissonMixture(2, random_state=0).fit(np.where(X < 1, 0.0, X))
    found = PoissonMixture(2, random_state=0).fit(X)
    assert_allclose(found.rates_, empty.rates_)


def test_a_negative_count_has_no_density():
    model, X = MODELS["poisson"]().fit(table("poisson")), table("poisson")
    X[7, 1] = -1
    for use in (model.score_samples, model.predict):
        with pytest.raises(ValueError, match="row 7, column 1 holds -1"):
            use(X)


def test_a_density_that_is_lost_in_rounding_is_told():
    model, X = MODELS["full"]().fit(table("full")), table("full")
    X[7] = 1e18
    with pytest.raises(ValueError, match="row 7"):
        model.score_samples(X)


@pytest.mark.parametrize("parameter", ["n_components", "n_init"])
@pytest.mark.parametrize("name", MODELS)
def test_true_is_no_number_of_components(name, parameter):
    with pytest.raises(ValueError, match=parameter):
        MODELS[name]().set_params(**{parameter: True}).fit(table(name))


@pytest.mark.parametrize("n", [np.nan, 2.5, 10**12, "3"])
def test_a_sample_is_a_whole_number_of_rows(n):
    with pytest.raises(ValueError, match="n_samples"):
        MODELS["diag"]().fit(table("diag")).sample(n)


@pytest.mark.parametrize("parameter", ["noise_variance", "feature_variance"])
def test_a_variance_may_be_a_very_large_whole_number(parameter):
    found, expected = (
        MODELS["features"]().set_params(**{parameter: value}).fit(table("features"))
        for value in (10**30, 1e30)
    )
    assert_array_equal(found.features_, expected.features_)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_activations_are_finite(value):
    model, X = MODELS["features"]().fit(table("features")), np.ones((5, 3))
    X[4, 1] = value
    with pytest.raises(ValueError, match="row 4, column 1"):
        model.inverse_transform(X)


@pytest.mark.parametrize("value", [0.0, 1.0, "odd", [0.5, 0.0, 0.5], [[0.5], [0.5, 0.5]]])
def test_activations_are_neither_sure_nor_impossible(value):
    with pytest.raises(ValueError, match="activation_probability"):
        MODELS["features"]().set_params(activation_probability=value).fit(table("features"))


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize(
    "make",
    [
        lambda **o: BayesianGaussianMixture(2, reg_covar=0, init_params="random", n_init=1, **o),
        lambda **o: GaussianHMM(2, **o),
    ],
)
def test_columns_of_very_different_sizes_are_fitted_and_scored(make, covariance_type):
    """Their covariances are no less regular, though a small eigenvalue is lost in rounding."""
    rng = np.random.default_rng(0)
    X, sizes = rng.normal(size=(30, 20)), 10.0 ** rng.integers(-6, 7, size=20)
    options = {"covariance_type": covariance_type, "random_state": 0}
    small, large = make(**options).fit(X), make(**options).fit(X * sizes)
    n = 1 if isinstance(small, BayesianGaussianMixture) else len(X)  # whose score is of all rows
    assert_allclose(large.score(X * sizes), small.score(X) - n * np.log(sizes).sum(), rtol=1e-6)
