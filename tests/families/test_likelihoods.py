"""What must hold for every likelihood, checked on all of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from family_cases import LIKELIHOODS, log_density, parameter_statistics, take
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tempering.families import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    GaussianParameters,
    IsotropicGaussian,
    LinearGaussian,
    NormalWishart,
    Poisson,
    SphericalGaussian,
)

EVERY = pytest.mark.parametrize("name", LIKELIHOODS)
quick = settings(max_examples=10, deadline=None, derandomize=True)
# Monte Carlo: no shrinking, which would only search for the worst rounding.
few = settings(
    max_examples=4, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
temperatures = st.floats(0.05, 1.0)


def parameters_from(case, natural, n=1, seed=0):
    return case.likelihood.conjugate.sample(natural, np.random.default_rng(seed), n)


def one(case, natural, seed=0):
    return take(parameters_from(case, natural, 1, seed), 0)


@EVERY
@quick
@given(data=st.data())
def test_log_likelihood_is_scipys(name, data):
    case = LIKELIHOODS[name]
    x, parameters = data.draw(case.data), one(case, data.draw(case.prior))
    case.likelihood.check(x)
    ours = case.likelihood.log_likelihood(x, parameters)
    np.testing.assert_allclose(ours, case.scipy_log_likelihood(x, parameters), rtol=1e-8, atol=1e-8)


@EVERY
@quick
@given(data=st.data())
def test_log_likelihood_is_linear_in_both_statistics(name, data):
    case = LIKELIHOODS[name]
    x, parameters = data.draw(case.data), parameters_from(case, data.draw(case.prior), 2)
    statistics = parameter_statistics(case.likelihood.conjugate, parameters)
    inner = statistics @ case.likelihood.statistics(x).T + case.likelihood.log_base_measure(x)
    direct = case.likelihood.log_likelihood(x, parameters)
    scale = 1 + np.abs(statistics) @ np.abs(case.likelihood.statistics(x)).T
    assert direct.shape == (2, len(x))
    assert np.all(np.abs(inner - direct) < 1e-12 * scale)


@EVERY
@few
@given(data=st.data())
def test_expected_log_likelihood_is_the_mean_over_the_prior(name, data):
    case = LIKELIHOODS[name]
    natural, x = data.draw(case.prior), data.draw(case.data)
    expected = case.likelihood.conjugate.expected_statistics(np.stack([natural, natural]))
    expected = case.likelihood.expected_log_likelihood(x, expected)
    assert expected.shape == (len(x), 2)
    values = case.likelihood.log_likelihood(x, parameters_from(case, natural, 20_000))
    error = values.std(0) / np.sqrt(20_000)
    assert np.all(np.abs(values.mean(0) - expected[:, 1]) < 5 * error + 1e-9)


@EVERY
@quick
@given(data=st.data())
def test_posterior_is_prior_plus_statistics(name, data):
    """prior × likelihood / posterior is the evidence, the same for every β."""
    case = LIKELIHOODS[name]
    family = case.likelihood.conjugate
    prior, x = data.draw(case.prior), data.draw(case.data)
    posterior = prior + case.likelihood.statistics(x).sum(0)
    assert family.is_valid(posterior)
    evidence = family.log_normalizer(posterior) - family.log_normalizer(prior)
    evidence += case.likelihood.log_base_measure(x).sum()
    for seed in range(3):
        parameters = one(case, posterior, seed)
        log_prior = log_density(family, prior, parameters)
        assume(np.isfinite(log_prior))
        total = log_prior + case.scipy_log_likelihood(x, parameters).sum()
        total -= log_density(family, posterior, parameters)
        assert total == pytest.approx(evidence, rel=1e-7, abs=1e-6)


@pytest.mark.parametrize(
    ("likelihood", "prior", "x", "density", "support"),
    [
        (Bernoulli(1), [2.0, 3.5], [[1], [0], [1]], stats.beta(2, 3.5), (0, 1)),
        (Poisson(1), [2.0, 0.5], [[3], [0], [7]], stats.gamma(2, scale=2), (0, 60)),
        (
            IsotropicGaussian(1, 2.0),
            [0.5, 0.25],
            [[1.0], [-2.0], [4.0]],
            stats.norm(2, 2),
            (-20, 20),
        ),
    ],
    ids=["Bernoulli", "Poisson", "IsotropicGaussian"],
)
def test_posterior_by_quadrature(likelihood, prior, x, density, support):
    def joint(value):
        return density.pdf(value) * np.exp(likelihood.log_likelihood(x, [value]).sum())

    family = likelihood.conjugate
    posterior = np.array(prior) + likelihood.statistics(x).sum(0)
    evidence = integrate.quad(joint, *support, epsabs=0, epsrel=1e-10, limit=200)[0]
    closed = family.log_normalizer(posterior) - family.log_normalizer(prior)
    closed += likelihood.log_base_measure(x).sum()
    assert np.log(evidence) == pytest.approx(closed, abs=1e-8)
    for value in np.linspace(*support, 9)[1:-1]:
        ours = log_density(family, posterior, np.array([value]))
        assert ours == pytest.approx(np.log(joint(value) / evidence), abs=1e-8)


def test_prior_predictive_is_the_known_one():
    def predictive(likelihood, natural, x):
        family = likelihood.conjugate
        posterior = natural + likelihood.statistics(x)
        logs = family.log_normalizer(posterior) - family.log_normalizer(natural)
        return logs + likelihood.log_base_measure(x)

    x = np.array([[0], [3], [11]])
    likelihood = Poisson(1)
    ours = predictive(likelihood, likelihood.conjugate.natural(2.5, 0.7), x)
    np.testing.assert_allclose(ours, stats.nbinom.logpmf(x[:, 0], 2.5, 0.7 / 1.7))

    x = np.array([[0.0], [3.0], [-11.0]])
    likelihood = DiagonalGaussian(1)
    ours = predictive(likelihood, likelihood.conjugate.natural(0.4, 1.5, 2.5, 0.7), x)
    scale = np.sqrt(0.7 * (1 + 1 / 1.5) / 2.5)
    np.testing.assert_allclose(ours, stats.t.logpdf(x[:, 0], 5.0, 0.4, scale))

    x = np.array([[0.0, 1.0], [3.0, -2.0]])
    likelihood = FullGaussian(2)
    scale = np.array([[2.0, 0.3], [0.3, 1.0]])
    ours = predictive(likelihood, likelihood.conjugate.natural([0.4, 1], 1.5, 4.2, scale), x)
    shape = scale * (1 + 1 / 1.5) / 3.2
    np.testing.assert_allclose(ours, stats.multivariate_t.logpdf(x, [0.4, 1], shape, 3.2))

    likelihood = SphericalGaussian(2)
    ours = predictive(likelihood, likelihood.conjugate.natural([0.4, 1], 1.5, 2.5, 0.7), x)
    shape = np.eye(2) * 0.7 * (1 + 1 / 1.5) / 2.5
    np.testing.assert_allclose(ours, stats.multivariate_t.logpdf(x, [0.4, 1], shape, 5.0))

    likelihood = LinearGaussian(2)
    matrix, rows = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([[1.0, 0.5, 3.0], [1.0, -2.0, 0.1]])
    ours = predictive(likelihood, likelihood.conjugate.natural([0.4, 1], matrix, 2.5, 0.7), rows)
    inputs = rows[:, :2]
    spread = 1 + np.einsum("ni,ij,nj->n", inputs, np.linalg.inv(matrix), inputs)
    scale = np.sqrt(0.7 / 2.5 * spread)
    np.testing.assert_allclose(ours, stats.t.logpdf(rows[:, 2], 5.0, inputs @ [0.4, 1], scale))

    likelihood = IsotropicGaussian(2, 0.7)
    ours = predictive(likelihood, likelihood.conjugate.natural([0.4, 1], 1.5), x)
    np.testing.assert_allclose(ours, stats.norm.logpdf(x, [0.4, 1], np.sqrt(2.2)).sum(1))


def brute_power_integral(name, case, parameters, s):
    """log ∫ p(x | β)^s dx by enumeration or quadrature of SciPy's log-likelihood."""
    if name == "Categorical":
        x = np.arange(4)
    elif name == "Bernoulli":
        x = np.array(list(itertools.product([0, 1], repeat=3)))
    elif name == "Poisson":
        parts = [stats.poisson.logpmf(np.arange(6000), rate) for rate in parameters]
        return sum(np.log(np.exp(s * part).sum()) for part in parts)
    elif name == "LinearGaussian":  # over y, with x given
        inputs = np.array([0.3, -2.0])
        steps = np.linspace(-9, 9, 91) / np.sqrt(s * parameters.precision)
        targets = inputs @ parameters.mean + steps
        x = np.column_stack([np.tile(inputs, (len(targets), 1)), targets])
        logs = s * case.scipy_log_likelihood(x, parameters)
        return np.log(np.exp(logs).sum() * (steps[1] - steps[0]))
    else:
        # The trapezium rule converges exponentially for a Gaussian.
        if name == "IsotropicGaussian":
            mean, covariance = parameters, 0.7 * np.eye(2)
        else:
            mean, precision = parameters
            matrix = precision if precision.ndim == 2 else np.eye(2) * precision
            covariance = np.linalg.inv(matrix)
        root = np.linalg.cholesky(covariance / s)
        axis = np.linspace(-9, 9, 91)
        x = mean + np.array(list(itertools.product(axis, axis))) @ root.T
        cell = 0.2**2 * np.linalg.det(root)
        return np.log(np.exp(s * case.scipy_log_likelihood(x, parameters)).sum() * cell)
    return np.log(np.exp(s * case.scipy_log_likelihood(x, parameters)).sum())


@EVERY
@quick
@given(data=st.data(), s=temperatures)
def test_power_integral_by_brute_force(name, data, s):
    case = LIKELIHOODS[name]
    parameters = one(case, data.draw(case.prior))
    if name == "FullGaussian":
        assume(np.linalg.cond(parameters.precision) < 1e6)
    ours = case.likelihood.log_power_integral(parameters, s)
    assert ours == pytest.approx(brute_power_integral(name, case, parameters, s), abs=1e-8)
    assert case.likelihood.log_power_integral(parameters, 1.0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("s", [0.05, 0.4, 1.0])
def test_power_integral_of_one_dimension_by_quadrature(s):
    parameters = {
        IsotropicGaussian(1, 0.3): np.array([1.2]),
        DiagonalGaussian(1): GaussianParameters(np.array([1.2]), np.array([0.8])),
        FullGaussian(1): GaussianParameters(np.array([1.2]), np.array([[0.8]])),
    }
    for likelihood, value in parameters.items():
        integral = integrate.quad(
            lambda x, model=likelihood, v=value: np.exp(s * model.log_likelihood([[x]], v)[0]),
            -60,
            60,
            points=[1.2],
            epsabs=1e-12,
            epsrel=1e-12,
            limit=400,
        )[0]
        ours = likelihood.log_power_integral(value, s)
        assert ours == pytest.approx(np.log(integral), abs=1e-8)


@EVERY
@few
@given(data=st.data(), s=st.floats(0.3, 1.0))
def test_expected_power_integral_by_monte_carlo(name, data, s):
    case = LIKELIHOODS[name]
    likelihood = case.likelihood
    # More data make the second moments exist, which a standard error needs.
    natural = data.draw(case.prior) + 3 * likelihood.statistics(data.draw(case.data)).sum(0)
    values = np.exp(likelihood.log_power_integral(parameters_from(case, natural, 20_000), s))
    expected = np.exp(likelihood.log_expected_power_integral(natural, s))
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - expected) < 5 * error + 1e-9 * expected


@EVERY
@quick
@given(data=st.data())
def test_expected_power_integral_is_one_at_temperature_one(name, data):
    case = LIKELIHOODS[name]
    natural = data.draw(case.prior)
    ours = case.likelihood.log_expected_power_integral(natural, 1.0)
    assert ours == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("s", [0.1, 0.5, 0.9])
def test_expected_power_integral_by_quadrature(s):
    cases = [
        (Bernoulli(1), [0.7, 3.5], stats.beta(0.7, 3.5), (0, 1)),
        (Poisson(1), [2.5, 0.5], stats.gamma(2.5, scale=2), (0, 100)),
    ]
    for likelihood, natural, density, support in cases:
        value = integrate.quad(
            lambda b, model=likelihood, d=density: (
                d.pdf(b) * np.exp(model.log_power_integral([b], s))
            ),
            *support,
            epsabs=0,
            epsrel=1e-9,
            limit=400,
        )[0]
        ours = likelihood.log_expected_power_integral(natural, s)
        assert ours == pytest.approx(np.log(value), abs=1e-6)
    # A gamma moment, with the density of the precision in one dimension.
    precision = stats.gamma(1.5, scale=0.5)
    for likelihood, natural in (
        (DiagonalGaussian(1), DiagonalGaussian(1).conjugate.natural(3.0, 1.0, 1.5, 2.0)),
        (FullGaussian(1), FullGaussian(1).conjugate.natural([3.0], 1.0, 3.0, [[4.0]])),
    ):
        full = isinstance(likelihood, FullGaussian)
        value = integrate.quad(
            lambda t, model=likelihood, full=full: (
                precision.pdf(t)
                * np.exp(
                    model.log_power_integral(
                        GaussianParameters(np.zeros(1), np.full((1, 1) if full else 1, t)), s
                    )
                )
            ),
            0,
            np.inf,
            epsabs=0,
            epsrel=1e-9,
            limit=400,
        )[0]
        ours = likelihood.log_expected_power_integral(natural, s)
        assert ours == pytest.approx(np.log(value), abs=1e-7)


def test_expected_power_integral_that_does_not_exist():
    family, likelihood = DiagonalGaussian(2).conjugate, DiagonalGaussian(2)
    natural = family.natural(0, 1, [0.3, 5.0], 1)  # needs a > (1 − s)/2
    ours = likelihood.log_expected_power_integral(natural, [0.3, 0.41, 1.0])
    np.testing.assert_array_equal(np.isposinf(ours), [True, False, False])
    natural = SphericalGaussian(3).conjugate.natural(np.zeros(3), 1, 0.6, 1)  # a > 3 (1 − s)/2
    ours = SphericalGaussian(3).log_expected_power_integral(natural, [0.5, 0.61, 1.0])
    np.testing.assert_array_equal(np.isposinf(ours), [True, False, False])
    natural = NormalWishart(3).natural(np.zeros(3), 1, 2.5, np.eye(3))  # needs ν > D − s
    ours = FullGaussian(3).log_expected_power_integral(natural, [0.3, 0.49, 0.51, 1.0])
    np.testing.assert_array_equal(np.isposinf(ours), [True, True, False, False])


@EVERY
@few
@given(data=st.data())
def test_leading_axes_then_temperatures(name, data):
    case = LIKELIHOODS[name]
    likelihood = case.likelihood
    naturals = np.array([[data.draw(case.prior) for _ in range(3)] for _ in range(2)])
    parameters = take(parameters_from(case, naturals, 1), 0)
    s = np.array([0.3, 0.5, 0.8, 1.0])
    integrals = likelihood.log_power_integral(parameters, s)
    expected = likelihood.log_expected_power_integral(naturals, s[:, None])
    x = data.draw(case.data)
    logs = likelihood.log_likelihood(x, parameters)
    assert integrals.shape == (2, 3, 4)
    assert expected.shape == (2, 3, 4, 1)
    assert logs.shape == (2, 3, len(x))
    for i, j in np.ndindex(2, 3):
        value = take(parameters, (i, j))
        np.testing.assert_allclose(logs[i, j], likelihood.log_likelihood(x, value), rtol=1e-10)
        for k in range(4):
            np.testing.assert_allclose(
                integrals[i, j, k], likelihood.log_power_integral(value, s[k]), atol=1e-11
            )
            np.testing.assert_allclose(
                expected[i, j, k, 0],
                likelihood.log_expected_power_integral(naturals[i, j], s[k]),
                atol=1e-11,
            )


@EVERY
@few
@given(data=st.data())
def test_samples_are_data_with_the_right_mean(name, data):
    """E[∂/∂β log p] = 0, as: the statistics' mean is what maximises the expected log-likelihood."""
    case = LIKELIHOODS[name]
    parameters = one(case, data.draw(case.prior))
    x = case.likelihood.sample(parameters, np.random.default_rng(1), 20_000)
    case.likelihood.check(x)
    assert len(x) == 20_000
    mean = {
        "Categorical": lambda p: p,
        "Bernoulli": lambda p: p,
        "Poisson": lambda p: p,
        "IsotropicGaussian": lambda p: p / 0.7,
        # E[xy] = w where x is standard normal.
    }.get(name, lambda p: p.mean)(parameters)
    statistics = case.likelihood.statistics(x)
    first = statistics[:, : len(mean)]
    assert np.all(np.abs(first.mean(0) - mean) < 5 * first.std(0) / np.sqrt(20_000) + 1e-3)
    # Entropy: −E[log p(x)], which the variance enters too, is −d/ds log ∫p^s at s = 1.
    logs = case.likelihood.log_likelihood(x, parameters)
    step = 1e-4
    before = case.likelihood.log_power_integral(parameters, 1 - step)
    further = case.likelihood.log_power_integral(parameters, 1 - 2 * step)
    slope = -(4 * before - further) / (2 * step)
    assert abs(logs.mean() - slope) < 5 * logs.std() / np.sqrt(20_000) + 1e-4


def test_impossible_data_have_probability_zero_and_others_do_not_notice():
    np.testing.assert_array_equal(Categorical(2).log_likelihood([0, 1], [1.0, 0.0]), [0, -np.inf])
    ours = Bernoulli(2).log_likelihood([[1, 0], [0, 0]], [1.0, 0.0])
    np.testing.assert_array_equal(ours, [0, -np.inf])
    ours = Poisson(1).log_likelihood([[0], [2]], [0.0])
    np.testing.assert_array_equal(ours, [0, -np.inf])
    assert Categorical(2).log_power_integral([1.0, 0.0], 0.5) == 0
    assert Bernoulli(1).log_power_integral([1.0], 0.5) == 0
    assert Poisson(1).log_power_integral([0.0], 0.5) == 0


REAL = [IsotropicGaussian(2, 1.0), DiagonalGaussian(2), SphericalGaussian(2), FullGaussian(2)]
TABLES = [*REAL, Poisson(2), Bernoulli(2)]


@pytest.mark.parametrize("likelihood", TABLES, ids=lambda value: type(value).__name__)
def test_check_names_shape_type_and_the_first_bad_value(likelihood):
    good = np.array([[0, 1], [1, 1], [0, 0]])
    likelihood.check(good)
    likelihood.check(good.astype(float))
    likelihood.check(good[:0])
    with pytest.raises(ValueError, match=r"shape \[n, 2\].*\(3,\)"):
        likelihood.check(np.zeros(3))
    with pytest.raises(ValueError, match="2 columns; got 3"):
        likelihood.check(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"real numbers.*<U1"):
        likelihood.check([["a", "b"]])
    with pytest.raises(ValueError, match=r"real numbers.*complex"):
        likelihood.check(good + 1j)
    for value in (np.nan, np.inf, -np.inf):
        bad = good.astype(float)
        bad[1, 0] = value
        with pytest.raises(ValueError, match=f"finite; row 1, column 0 holds {value}"):
            likelihood.check(bad)


def test_check_of_counts():
    likelihood = Poisson(2)
    with pytest.raises(ValueError, match="negative; row 1, column 1 holds -1"):
        likelihood.check([[0, 1], [3, -1]])
    with pytest.raises(ValueError, match=r"whole numbers; row 0, column 1 holds 1\.5"):
        likelihood.check([[0, 1.5], [3, 2]])


def test_check_of_binary_data_and_codes():
    Bernoulli(2).check(np.array([[True, False]]))
    with pytest.raises(ValueError, match="0 or 1; row 1, column 0 holds 2"):
        Bernoulli(2).check([[0, 1], [2, 1]])
    Categorical(3).check([0, 2, 1])
    with pytest.raises(ValueError, match=r"0 \.\.\. 2; row 1 holds 3"):
        Categorical(3).check([0, 3, -1])
    with pytest.raises(ValueError, match=r"integer code.*float64"):
        Categorical(3).check([0.0, 1.0])
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        Categorical(3).check([[0, 1]])


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf])
def test_variance_must_be_positive(variance):
    with pytest.raises(ValueError, match="variance must be a positive number"):
        IsotropicGaussian(2, variance)
