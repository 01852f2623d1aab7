"""The factorial mixture against enumeration, quadrature, and plain NumPy."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.integrate import quad
from scipy.special import expit, logsumexp, xlogy
from scipy.stats import norm

import factorial_oracle as oracle
from tempering.inference import Algorithm, ArraySource, Constant, evaluate_elbo, fit
from tempering.inference.executors import Serial
from tempering.models import Natural
from tempering.models.factorial.activations import enumerate_activations, settle_activations
from tempering.models.factorial.blocks import both_sides, log_of_product, rough_sigmoid
from tempering.models.factorial_mixture import FactorialModel, log_density
from tempering.temperature import (
    Annealing,
    LocalTempering,
    Untempered,
    VariationalTempering,
    log_partition,
    schedules,
)
from tempering.temperature.grid import even_inverse_temperatures, weigh

NOISE, FEATURES = 0.3, 0.8
PROBABILITIES = np.array([0.3, 0.2, 0.45])
GRID = even_inverse_temperatures(20)


def tiny(n=7, d=2, seed=0, **options):
    """A model of three features, data, and a posterior that is no optimum."""
    rng = np.random.default_rng(seed)
    model = FactorialModel(3, d, NOISE, FEATURES, PROBABILITIES, **options)
    means = rng.normal(size=(3, d))
    X = (rng.random((n, 3)) < 0.4) @ means + np.sqrt(NOISE) * rng.normal(size=(n, d))
    guess = rng.random((n, 3))
    precision = guess.T @ guess
    np.fill_diagonal(precision, guess.sum(axis=0))
    statistics = Natural(precision=precision, precision_mean=guess.T @ X, squares=0.0)
    return model, X, model.prior() + statistics


def expected_log_joint(model, X, posterior):
    """E_q(μ)[log p(x_n, z | μ)] for every z, written out: [n, 2^K], and the states."""
    means, variances, _ = model.expectations(posterior)
    states = np.array(list(product([0.0, 1.0], repeat=3)))
    table = np.stack(
        [
            norm.logpdf(X, state @ means, np.sqrt(NOISE)).sum(axis=1)
            - X.shape[1] * state @ variances / (2 * NOISE)
            + np.sum(np.log(np.where(state == 1, PROBABILITIES, 1 - PROBABILITIES)))
            for state in states
        ],
        axis=1,
    )
    return table, states


@pytest.mark.parametrize("s", [1.0, 0.35, "per datum"])
def test_the_exact_local_step_is_that_of_enumeration(s):
    model, X, posterior = tiny(local="exact")
    s = np.linspace(0.1, 1.0, len(X)) if s == "per datum" else s
    table, states = expected_log_joint(model, X, posterior)
    exponents = np.reshape(s, (-1, 1)) * table
    q = np.exp(exponents - logsumexp(exponents, axis=1, keepdims=True))
    step = model.local_step(X, model.expectations(posterior), s)
    weights = np.broadcast_to(s, len(X))
    np.testing.assert_allclose(step.activations, q @ states, atol=1e-12)
    np.testing.assert_allclose(step.energies, (q * table).sum(axis=1), rtol=1e-10)
    assert step.entropy == pytest.approx(-xlogy(q, q).sum(), rel=1e-10)
    pairs = np.einsum("n,ns,sj,sk->jk", weights, q, states, states)
    np.testing.assert_allclose(step.statistics.precision, pairs, rtol=1e-10)
    sums = np.einsum("n,nk,nd->kd", weights, q @ states, X)
    np.testing.assert_allclose(step.statistics.precision_mean, sums, rtol=1e-10)


@given(
    k=st.integers(1, 7),
    s=st.floats(0.05, 1.0),
    scale=st.sampled_from([0.1, 3.0, 100.0, 2000.0]),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=60)
def test_tables_of_halves_are_the_table_of_all_states(k, s, scale, seed):
    """Also where exponents are so large that the halves underflow, and the whole table is made."""
    rng = np.random.default_rng(seed)
    fields, means = scale * rng.normal(size=(9, k)), rng.normal(size=(k, 3))
    couplings = scale * means @ means.T
    np.fill_diagonal(couplings, 0.0)
    halves = enumerate_activations(fields, couplings, s)
    whole = enumerate_activations(fields, couplings, np.full(9, s))
    for name in ("activations", "second_moments"):
        np.testing.assert_allclose(getattr(halves, name), getattr(whole, name), atol=1e-10)
    np.testing.assert_allclose(halves.energies, whole.energies, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(halves.entropies, whole.entropies, atol=1e-12 * scale + 1e-10)


def test_two_features_alike_in_both_halves_underflow_and_are_solved_all_the_same():
    fields, couplings = np.full((3, 2), 2000.0), np.array([[0.0, 3990.0], [3990.0, 0.0]])
    solved = enumerate_activations(fields, couplings, 1.0)
    np.testing.assert_allclose(solved.activations, 0.5, atol=1e-4)
    np.testing.assert_allclose(solved.energies, 2000.0, atol=1e-2)
    np.testing.assert_allclose(solved.second_moments.trace(), 3.0, rtol=1e-3)


@njit
def called(kernel, value):
    """A kernel by itself: kernels are for other compiled functions to call."""
    return kernel(value)


def test_the_sigmoid_that_vectorises():
    u = np.concatenate([np.linspace(-50, 50, 4001), [-1e4, -800.0, 0.0, 800.0, 1e4]])
    sides = [called(both_sides, v) for v in u]
    values = np.where(u >= 0, *np.transpose([(near, far) for near, far, _ in sides]))
    np.testing.assert_allclose(values, expit(np.maximum(u, -700.0)), rtol=1e-12)
    np.testing.assert_allclose([total for _, _, total in sides], 1 + np.exp(-abs(u)), rtol=2e-14)
    single = u.astype(np.float32)
    rough = np.array([called(rough_sigmoid, v) for v in single])
    np.testing.assert_allclose(rough, expit(np.maximum(single.astype(float), -43.0)), rtol=2e-6)


def test_the_logarithm_that_vectorises():
    x = np.concatenate([1 + np.geomspace(1e-16, 1, 500), np.geomspace(2, 1e300, 2001)])
    values = np.array([called(log_of_product, v) for v in x])
    np.testing.assert_allclose(values, np.log(x), rtol=1e-14, atol=1e-15)


def test_the_entropy_of_very_many_features():
    """Products of their probabilities would underflow."""
    rng = np.random.default_rng(0)
    fields = rng.normal(scale=0.1, size=(2, 1200))
    settled = settle_activations(fields, np.zeros((1200, 1200)), 1.0, np.full(1200, 0.5))
    z = expit(fields)
    np.testing.assert_allclose(settled.activations, z, atol=1e-6)
    z = settled.activations
    entropies = -np.sum(xlogy(z, z) + xlogy(1 - z, 1 - z), axis=1)
    np.testing.assert_allclose(settled.entropies, entropies, rtol=1e-12)


def test_a_point_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(0)
    fields, means = 3 * rng.normal(size=(200, 5)), rng.normal(size=(5, 3))
    couplings = 4 * means @ means.T
    np.fill_diagonal(couplings, 0.0)
    start = rng.random((200, 5))
    options = {"n_restarts": 2, "max_sweeps": 30}
    all_of_them = settle_activations(fields, couplings, 1.0, start, **options)
    for rows in (slice(0, 1), slice(63, 66), slice(150, 200)):
        some = settle_activations(fields[rows], couplings, 1.0, start[rows], **options)
        np.testing.assert_array_equal(some.activations, all_of_them.activations[rows])
        np.testing.assert_array_equal(some.energies, all_of_them.energies[rows])


@pytest.mark.parametrize("s", [1.0, 0.35, "per datum"])
def test_one_mean_field_sweep_is_that_of_plain_numpy(s):
    model, X, posterior = tiny(max_sweeps=1)
    s = np.linspace(0.1, 1.0, len(X)) if s == "per datum" else s
    means, variances, _ = model.expectations(posterior)
    z = np.tile(PROBABILITIES, (len(X), 1))
    for k in range(3):  # the oracle knows one probability for all
        fields = z.copy()
        fields[:, k] = 0.0
        odds = (
            (X - fields @ means) @ means[k] - (means[k] @ means[k] + 2 * variances[k]) / 2
        ) / NOISE
        odds += np.log(PROBABILITIES[k] / (1 - PROBABILITIES[k]))
        z[:, k] = 1 / (1 + np.exp(-s * odds))
    step = model.local_step(X, model.expectations(posterior), s)
    np.testing.assert_allclose(step.activations, z, atol=1e-6)
    solved = step.activations
    table, states = expected_log_joint(model, X, posterior)
    q = np.prod(np.where(states[None] == 1, solved[:, None], 1 - solved[:, None]), axis=2)
    np.testing.assert_allclose(step.energies, (q * table).sum(axis=1), rtol=1e-10)
    assert step.entropy == pytest.approx(-xlogy(q, q).sum(), rel=1e-10)


@pytest.mark.parametrize("s", [1.0, 0.4])
def test_a_fit_of_plain_numpy_comes_to_the_same_features(s):
    """Features one after the other, many times, against one system of equations."""
    model, X, _ = tiny(n=30)
    z = np.random.default_rng(1).random((30, 3))
    statistics = Natural(precision=s * z.T @ z, precision_mean=s * z.T @ X, squares=0.0)
    np.fill_diagonal(statistics.precision, s * z.sum(axis=0))
    means, variances, _ = model.expectations(model.prior() + statistics)
    slow_means, slow_variances = np.zeros((3, 2)), np.ones(3)
    for _ in range(500):
        oracle.update_features(X, slow_means, slow_variances, z, s, NOISE, FEATURES)
    np.testing.assert_allclose(means, slow_means, rtol=1e-8)
    np.testing.assert_allclose(variances, slow_variances, rtol=1e-8)


def test_the_elbo_is_that_of_plain_numpy():
    rng = np.random.default_rng(2)
    model, X, posterior = tiny(n=20)
    model = FactorialModel(3, 2, NOISE, FEATURES, 0.3)
    means, variances, _ = model.expectations(posterior)
    step = model.local_step(X, model.expectations(posterior), 0.7, rng.random((20, 3)))
    here = step.tempered_energy + step.entropy - model.divergence(posterior)
    slow = oracle.elbo(X, means, variances, step.activations, 0.7, NOISE, FEATURES, 0.3)
    assert here == pytest.approx(slow, rel=1e-10)


def test_the_bound_is_below_the_evidence():
    """Exact q(z) and one datum of one column: everything by quadrature."""
    model = FactorialModel(1, 1, NOISE, FEATURES, 0.3, local="exact")
    X = np.array([[0.9]])
    result = fit(model, X, initial=model.features_at(np.array([[0.5]]), 1.0), tolerance=1e-10)
    spread = np.sqrt(NOISE + FEATURES)
    evidence = np.log(0.3 * norm.pdf(0.9, 0, spread) + 0.7 * norm.pdf(0.9, 0, np.sqrt(NOISE)))
    assert evidence - 0.5 < result.elbo < evidence
    mean, variance = (part.item() for part in model.expectations(result.posterior)[:2])

    def density(mu):
        like = 0.3 * norm.pdf(0.7, mu, np.sqrt(NOISE)) + 0.7 * norm.pdf(0.7, 0, np.sqrt(NOISE))
        return like * norm.pdf(mu, mean, np.sqrt(variance))

    predicted = log_density(model, np.array([[0.7]]), model.expectations(result.posterior))
    assert predicted[0] == pytest.approx(np.log(quad(density, -9, 9)[0]), rel=1e-6)


def log_c_by_quadrature(s, means):
    """log ∫ Σ_z p(x, z | μ)^s dx in one dimension."""
    states = np.array(list(product([0.0, 1.0], repeat=3)))
    prior = np.prod(np.where(states == 1, PROBABILITIES, 1 - PROBABILITIES), axis=1)

    def tempered(x):
        return np.sum((prior * norm.pdf(x, states @ means, np.sqrt(NOISE))) ** s)

    return np.log(quad(tempered, -60, 60, limit=400, points=[-3, 0, 3])[0])


@pytest.mark.parametrize("s", [1.0, 0.8, 0.3])
def test_log_c_is_that_of_quadrature_and_the_papers_is_not(s):
    model = FactorialModel(3, 1, NOISE, FEATURES, PROBABILITIES)
    values = [log_c_by_quadrature(s, means) for means in ([0.3, -1.0, 0.7], [1.0, 1.0, 2.0])]
    np.testing.assert_allclose(values, values[0], atol=1e-7)  # no matter which features
    ours = log_partition(model, [s], 5).values[0]
    assert ours == pytest.approx(5 * values[0], abs=1e-6)
    assert model.local_log_normalizer(None, np.array([s]), None)[0, 0] == pytest.approx(
        values[0], abs=1e-6
    )
    printed = model.printed_log_partition(np.array([s]), 5)[0]
    missing = 5 / 2 * (1 - s) * np.log(2 * np.pi * NOISE)
    assert printed + missing == pytest.approx(ours)
    if s < 1.0:
        assert abs(printed - 5 * values[0]) > 0.1


def test_tempering_takes_the_papers_formula_by_name():
    model, _, _ = tiny()
    heats = [
        VariationalTempering(GRID, formula=formula).begin(model, 10, np.random.default_rng(0))
        for formula in ("auto", "paper")
    ]
    np.testing.assert_allclose(heats[0].log_partition, model.log_partition(GRID, 10))
    np.testing.assert_allclose(heats[1].log_partition, model.printed_log_partition(GRID, 10))


def never_falls(values):
    values = np.asarray(values)
    return np.all(np.diff(values) >= -1e-9 * np.abs(values).max())


def bound(model, X, posterior, z, s, extra=0.0):
    """The tempered ELBO at any factorised q(z) and any q(μ): no update is hidden in it."""
    table, states = expected_log_joint(model, X, posterior)
    q = np.prod(np.where(states[None] == 1, z[:, None], 1 - z[:, None]), axis=2)
    energies = (q * table).sum(axis=1)
    return np.sum(s * energies) - xlogy(q, q).sum() - model.divergence(posterior) + extra


@pytest.mark.parametrize("n_restarts", [0, 3])
@pytest.mark.parametrize("s", [1.0, 0.3, "learned", "learned for each"])
def test_no_single_update_lowers_the_bound(n_restarts, s):
    """q(z), q(T), q(μ), each by itself. log C does not depend on q: LVT is exactly conjugate."""
    model, X, posterior = tiny(n=40, local_restarts=n_restarts)
    log_c, prior = model.log_local_constant(GRID), np.full(GRID.size, 1 / GRID.size)
    policy, extra = s, 0.0
    if s == "learned":
        s, extra = prior @ GRID, -len(X) * prior @ log_c
    elif s == "learned for each":
        s, extra = np.full(len(X), prior @ GRID), -len(X) * prior @ log_c
    z = np.random.default_rng(1).random((40, 3))
    values = [bound(model, X, posterior, z, s, extra)]
    for _ in range(12):
        step = model.local_step(X, model.expectations(posterior), s, z)
        z = step.activations
        values.append(bound(model, X, posterior, z, s, extra))
        assert values[-1] == pytest.approx(
            step.tempered_energy + step.entropy - model.divergence(posterior) + extra
        )
        if policy == "learned":
            _, s, added = weigh(step.energy, len(X) * log_c, GRID, prior)
        elif policy == "learned for each":
            _, s, added = weigh(step.energies, log_c, GRID, prior)
        if isinstance(policy, str):
            extra = np.sum(added)
            values.append(bound(model, X, posterior, z, s, extra))
        weighted = np.reshape(s, (-1, 1)) * z
        precision = weighted.T @ z
        np.fill_diagonal(precision, weighted.sum(axis=0))
        statistics = Natural(precision=precision, precision_mean=weighted.T @ X, squares=0.0)
        posterior = model.prior() + statistics
        values.append(bound(model, X, posterior, z, s, extra))
    assert never_falls(values)
    assert values[-1] > values[0] + 0.1


POLICIES = {
    "VI": Untempered(),
    "AVI": Annealing(schedules.constant(2.5), fraction=1.0),
    "joint": Annealing(schedules.constant(2.5), fraction=1.0, temper="joint"),
    "VT": VariationalTempering(GRID, fraction=None),
    "VT paper": VariationalTempering(GRID, fraction=None, formula="paper"),
    "LVT": LocalTempering(GRID, fraction=None),
}


@pytest.mark.parametrize("local", ["mean-field", "restarts", "exact"])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_engine_ascends_what_it_records(policy, local):
    restarts = {"local_restarts": 2} if local == "restarts" else {}
    kind = "exact" if local == "exact" else "mean-field"
    model, X, posterior = tiny(n=60, local=kind, **restarts)
    model.shard_size = 16
    algorithm = Algorithm(model, POLICIES[policy], Constant(), Serial(), 60, 100, continues=True)
    state = algorithm.start(posterior, np.random.default_rng(0))
    (batch,) = ArraySource(X).sweep()
    values = []
    for _ in range(15):
        state, _, bound, _ = algorithm.advance(state, batch)
        values.append(bound)
    assert never_falls(values)


def test_learned_hyperparameters_raise_the_elbo_and_come_near_the_truth():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(3, 12))
    X = (rng.random((600, 3)) < 0.25) @ true + 0.5 * rng.normal(size=(600, 12))
    for probability, local in ((0.5, "exact"), (np.full(3, 0.5), "mean-field")):
        names = ("noise_variance", "feature_variance", "activation_probability")
        model = FactorialModel(3, 12, 1.0, 3.0, probability, local=local, learn=names)
        start = model.features_at(true + 0.3 * rng.normal(size=true.shape), 150.0)
        result = fit(model, X, initial=start, tolerance=1e-6, max_passes=200)
        assert never_falls(result.history["elbo"])
        model = result.model
        assert model.noise_variance == pytest.approx(0.25, rel=0.05)
        assert model.feature_variance == pytest.approx(np.square(true).mean(), rel=0.05)
        np.testing.assert_allclose(model.activation_probability, 0.25, atol=0.05)
        assert (np.ptp(model.activation_probability) == 0) == (np.ndim(probability) == 0)


def test_restarts_find_what_a_warm_start_does_not():
    """Two features that together look like a third: a point stuck with the pair is freed."""
    means = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    X = np.tile([1.0, 1.0], (4, 1))
    stuck = np.tile([1.0, 1.0, 0.0], (4, 1))
    results = []
    for restarts in (0, 2):
        model = FactorialModel(3, 2, 0.05, 1.0, 0.2, local_restarts=restarts)
        expected = model.expectations(model.features_at(means, 1e6))
        step = model.local_step(X, expected, 1.0, stuck)
        results.append(step.energy + step.entropy)
        bounds = log_density(model, X, expected)
        assert results[-1] < bounds.sum()
    assert results[1] > results[0] + 1.0


def test_the_density_is_the_sum_over_all_activations():
    model, X, posterior = tiny(d=3)
    means, variances, _ = model.expectations(posterior)
    states = np.array(list(product([0.0, 1.0], repeat=3)))
    prior = np.prod(np.where(states == 1, PROBABILITIES, 1 - PROBABILITIES), axis=1)
    spread = np.sqrt(NOISE + states @ variances)
    parts = norm.pdf(X[:, None], states @ means, spread[:, None])  # [n, S, D]
    density = parts.prod(axis=2) @ prior
    found = log_density(model, X, model.expectations(posterior))
    np.testing.assert_allclose(found, np.log(density), rtol=1e-8)


def test_with_many_features_predictions_are_bounds():
    """The mean-field bound, by the same model cut to the features that it enumerates."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(13, 5))
    means[3:] = 0.0  # features that change nothing, and whose prior sums out
    big = FactorialModel(13, 5, 0.3, 1.0, 0.3, local_restarts=3)
    small = FactorialModel(3, 5, 0.3, 1.0, 0.3)
    X = (rng.random((40, 3)) < 0.3) @ means[:3] + 0.5 * rng.normal(size=(40, 5))
    expected = [
        model.expectations(model.features_at(means[: model.n_features], 1e8))
        for model in (big, small)
    ]
    bound, exact = (log_density(m, X, e) for m, e in zip((big, small), expected))
    assert np.all(bound <= exact + 1e-6)
    assert np.median(exact - bound) < 0.2


@pytest.mark.parametrize("options", [{}, {"local": "exact"}, {"local_restarts": 2}])
@pytest.mark.parametrize("policy", ["VI", "VT", "LVT"])
def test_threads_never_change_a_bit(options, policy):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 6))
    results = []
    for threads in (1, 3):
        model = FactorialModel(4, 6, 0.5, 1.0, 0.3, **options)
        model.shard_size = 128
        results.append(
            fit(
                model,
                X,
                temperature=POLICIES[policy],
                max_passes=6,
                finish=False,
                n_threads=threads,
            )
        )
    one, three = results
    assert one.elbo == three.elbo
    assert one.posterior.precision_mean.tobytes() == three.posterior.precision_mean.tobytes()


def test_the_final_elbo_goes_on_from_the_last_step():
    """Solved anew, points could end in other optima, and the result would look worse."""
    rng = np.random.default_rng(3)
    X = (rng.random((400, 6)) < 0.4) @ rng.normal(size=(6, 5)) + 0.3 * rng.normal(size=(400, 5))
    model = FactorialModel(6, 5, 0.1, 1.0, 0.4)
    result = fit(model, X, max_passes=30, tolerance=1e-8)
    assert result.elbo >= result.history["elbo"][-1] - 1e-9 * abs(result.elbo)
    assert evaluate_elbo(model, result.posterior, ArraySource(X)) <= result.elbo + 1e-3


def test_minibatches_come_near_the_whole_data():
    rng = np.random.default_rng(0)
    true = np.array([[2.0, 2, 0, 0], [0, 0, 2, 2]])
    X = (rng.random((2000, 2)) < 0.3) @ true + 0.3 * rng.normal(size=(2000, 4))
    model = FactorialModel(2, 4, 0.09, 1.0, 0.3, local="exact")
    start = model.features_at(true + 0.5 * rng.normal(size=true.shape), 600.0)
    whole = fit(model, X, initial=start)
    part = fit(
        model,
        X,
        initial=start,
        batch_size=100,
        max_passes=20,
        learning_rate=lambda t: (5 + t) ** -0.7,
    )
    assert part.elbo > whole.elbo - 5
    np.testing.assert_allclose(
        *(model.expectations(result.posterior).means for result in (whole, part)), atol=0.05
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_variance": 0.0}, "noise_variance must be a positive"),
        ({"feature_variance": np.nan}, "feature_variance must be a positive"),
        ({"activation_probability": 1.0}, "activation_probability must be"),
        ({"activation_probability": [0.1, 0.2]}, "activation_probability must be"),
        ({"n_features": 13, "local": "exact"}, "K <= 12"),
        ({"local": "joint"}, "local must be"),
        ({"start": "far"}, "start must be"),
        ({"learn": ["sigma"]}, "learn may hold"),
    ],
)
def test_errors_name_the_argument(options, message):
    valid = {
        "n_features": 3,
        "dimension": 2,
        "noise_variance": 1.0,
        "feature_variance": 1.0,
        "activation_probability": 0.3,
    }
    with pytest.raises(ValueError, match=message):
        FactorialModel(**{**valid, **options})


@pytest.mark.parametrize("X", [np.zeros((4, 3)), np.zeros(4), np.full((4, 2), np.nan)])
def test_data_that_do_not_fit_are_refused(X):
    with pytest.raises(ValueError, match=r"data must (be|have)"):
        fit(tiny()[0], X)


@pytest.mark.parametrize("shape", [schedules.linear, schedules.linear_inverse, None])
def test_annealing_from_the_temperature_that_tempering_would_choose(shape):
    model, X, posterior = tiny(n=50, local="exact")
    annealing = Annealing(shape, passes=4, start="auto")
    result = fit(model, X, temperature=annealing, initial=posterior, max_passes=10, tolerance=0)
    heat = VariationalTempering(np.geomspace(1, 1e-3, 400), fraction=None)
    first = fit(model, X, temperature=heat, initial=posterior, max_passes=1, finish=False)
    temperatures = result.history["temperature"]
    assert temperatures[0] == pytest.approx(first.history["temperature"][0])
    make = shape or schedules.linear_inverse
    expected = [make(temperatures[0])(u) for u in (0, 0.25, 0.5, 0.75)]
    np.testing.assert_allclose(temperatures[:4], expected)
    assert np.all(temperatures[4:] == 1.0)
    assert result.history.final_phase_start == 4


def test_annealing_says_what_is_wrong_with_its_start():
    with pytest.raises(ValueError, match="start must be 'auto'"):
        Annealing(start="hot")
    with pytest.raises(ValueError, match="schedule must make a schedule"):
        Annealing(schedules.linear(3.0), start="auto")
