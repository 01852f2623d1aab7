"""Factor analysis: its steps against brute force, its bounds, and missing values."""

import numpy as np
import pytest
from scipy import stats

from tempering import Annealing, Checkpoint, LocalTempering, VariationalTempering, fit, schedules
from tempering.inference import ArraySource, evaluate_elbo
from tempering.models.factor.gaussian import GaussianFactors
from tempering.testing import check_model


def drawn(n=60, columns=5, k=2, missing=0.2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, k)) @ rng.normal(size=(k, columns)) + 0.3
    x += rng.normal(size=x.shape) * rng.uniform(0.3, 1.0, columns)
    x[rng.random(x.shape) < missing] = np.nan
    return x


def made(x, k=2, shared=False, **options):
    return GaussianFactors(k, np.nanvar(x, axis=0), shared, **options)


def started(model, x, steps=3):
    """λ after some steps: nothing about it is special."""
    posterior = model.initialize(ArraySource(x), np.random.default_rng(1))
    for _ in range(steps):
        local = model.local_step(x, model.expectations(posterior), 1.0)
        posterior = model.global_step(posterior, model.prior() + local.statistics, 1.0)
    return posterior


def bound(model, x, posterior, s=1.0):
    local = model.local_step(x, model.expectations(posterior), s)
    return local.tempered_energy + local.entropy - model.divergence(posterior)


def draws(model, posterior, n, seed=0):
    """Loadings [n, D, J], precisions [n, D] and relevances [n, K] or [n, D, K] from q."""
    rng = np.random.default_rng(seed)
    covariance = np.linalg.inv(posterior.loadings_precision)
    mean = np.einsum("dij,dj->di", covariance, posterior.loadings_linear)
    noise = rng.standard_normal((n, *mean.shape))
    w = mean + np.einsum("dij,ndj->ndi", np.linalg.cholesky(covariance), noise)
    tau = rng.gamma(posterior.noise_shape, 1 / posterior.noise_rate, (n, len(posterior.noise_rate)))
    shape, rate = posterior.relevance_shape, posterior.relevance_rate
    alpha = rng.gamma(shape, 1 / rate, (n, *shape.shape))
    return w, np.broadcast_to(tau, (n, mean.shape[0])), alpha


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("s", [1.0, 0.4])
def test_local_step_is_the_best_gaussian_and_its_energy_the_expected_one(s, shared):
    x = drawn(6)
    model = made(x, shared=shared)
    posterior = started(model, x)
    expected = model.expectations(posterior)
    solved = model.solve(x, expected, s)
    w, tau, _ = draws(model, posterior, 40_000)
    rng = np.random.default_rng(5)
    for n in range(len(x)):
        covariance = solved.covariances[solved.pattern[n]] / s
        z = rng.multivariate_normal(solved.means[n, :2], covariance, size=len(w))
        logs = stats.norm.logpdf(
            x[n], np.einsum("ndj,nj->nd", w, np.c_[z, np.ones(len(z))]), 1 / np.sqrt(tau)
        )
        logs = np.nansum(logs, axis=1) + stats.norm.logpdf(z).sum(axis=1)
        assert abs(logs.mean() - solved.energies[n]) < 5 * logs.std() / np.sqrt(len(logs))
        entropy = stats.multivariate_normal.entropy(cov=covariance)
        assert solved.entropies[n] == pytest.approx(entropy)

        def objective(mean, spread, n=n):
            """s E log p(x, z) + H(q), from the expectations of w, μ and τ."""
            seen = ~np.isnan(x[n])
            full = np.zeros((3, 3))
            full[:2, :2] = spread
            m = np.append(mean, 1.0)
            second = full + np.outer(m, m)
            squares = x[n] ** 2 - 2 * x[n] * (expected.loadings @ m)
            squares += np.einsum("dij,ij->d", expected.products, second)
            energy = 0.5 * (expected.log_precision - expected.precision * squares)[seen].sum()
            energy -= 0.5 * np.trace(second[:2, :2])
            return s * energy + 0.5 * np.linalg.slogdet(spread)[1]

        best = objective(solved.means[n, :2], covariance)
        for step in (0.01, -0.01):
            assert objective(solved.means[n, :2] + [step, 0], covariance) < best
            assert objective(solved.means[n, :2] + [0, step], covariance) < best
            assert objective(solved.means[n, :2], covariance * (1 + step)) < best
            turned = covariance + step / 5 * np.array([[0, 1], [1, 0]])
            assert objective(solved.means[n, :2], turned) < best


def test_with_known_loadings_energy_and_entropy_are_the_log_density():
    x = drawn(8)
    model = made(x)
    known = model.point(started(model, x))
    solved = model.solve(x, known, 1.0)
    loadings, mean = known.loadings[:, :2], known.loadings[:, 2]
    covariance = loadings @ loadings.T + np.diag(1 / known.precision)
    for row, ours in zip(x, solved.energies + solved.entropies, strict=True):
        seen = ~np.isnan(row)
        density = stats.multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
        assert ours == pytest.approx(density.logpdf(row[seen]))


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize(("shared", "sparse"), [(False, False), (True, False), (False, True)])
def test_divergence_is_the_expected_log_ratio_of_scipys_densities(shared, sparse, weight):
    x = drawn(30)
    model = made(x, shared=shared, noise_prior=2.0, relevance_prior=1.5, sparse=sparse)
    q = started(model, x)
    w, tau, alpha = draws(model, q, 20_000)
    v = model.variances
    covariance = np.linalg.inv(q.loadings_precision)
    mean = np.einsum("dij,dj->di", covariance, q.loadings_linear)
    ratio = np.zeros(len(w))
    for d in range(5):
        ratio += stats.multivariate_normal.logpdf(w[:, d], mean[d], covariance[d])
        own = alpha[:, d] if sparse else alpha
        ratio -= weight * stats.norm.logpdf(w[:, d, :2], 0, np.sqrt(v[d] / own)).sum(axis=1)
        ratio -= weight * stats.norm.logpdf(w[:, d, 2], 0, np.sqrt(v[d] / 1e-3))
    scales = v.mean(keepdims=True) if shared else v
    tau = tau[:, : len(scales)]
    for values, shape, rate, a, b in (
        (tau, q.noise_shape, q.noise_rate, 2.0, 2.0 * scales),
        (alpha, q.relevance_shape, q.relevance_rate, 1.5, 1.5),
    ):
        # The base measure 1/β of a gamma has no power.
        log_prior = stats.gamma.logpdf(values, a, scale=1 / b) + np.log(values)
        log_own = stats.gamma.logpdf(values, shape, scale=1 / rate) + np.log(values)
        ratio += np.sum((log_own - weight * log_prior).reshape(len(w), -1), axis=1)
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - model.divergence(q, weight)) < 5 * error


@pytest.mark.parametrize(("shared", "sparse"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("s", [1.0, 0.5, "each"])
def test_no_step_and_no_turn_lets_the_tempered_bound_fall(s, shared, sparse):
    x = drawn()
    model = made(x, 3, shared, sparse=sparse)
    s = np.random.default_rng(2).uniform(0.3, 1.0, len(x)) if s == "each" else s
    posterior = model.initialize(ArraySource(x), np.random.default_rng(1))
    before, first = -np.inf, bound(model, x, posterior, s)
    turned = 0
    for _ in range(40):
        local = model.local_step(x, model.expectations(posterior), s)
        now = local.tempered_energy + local.entropy - model.divergence(posterior)
        assert now > before - 1e-9
        posterior = model.global_step(posterior, model.prior() + local.statistics, 1.0)
        # q(z) is the same: the rise is that of the global blocks alone.
        before = bound(model, x, posterior, s)
        assert before > now - 1e-9
        if np.ndim(s) == 0 and s == 1.0:
            revised = model.revise(posterior)
            turned += revised is not posterior
            posterior, now = revised, before
            before = bound(model, x, posterior)
            assert before > now - 1e-9
    assert before > first + 5
    assert turned or np.ndim(s) or s < 1.0


@pytest.mark.parametrize("sparse", [False, True])
def test_each_global_block_is_at_its_best_given_the_others(sparse):
    """A small change of any part of λ lowers the bound, with q(z) as it was."""
    x = drawn(40)
    model = made(x, sparse=sparse)
    q = started(model, x, steps=400)
    for name, part in q.items():
        if name == "scatter":
            continue
        for sign in (1, -1):
            changed = {**q, name: part * (1 + sign * 1e-3)}
            if name == "loadings_precision":  # a change of the variance, not of the mean
                changed["loadings_linear"] = q.loadings_linear * (1 + sign * 1e-3)
            assert bound(model, x, type(q)(**changed)) < bound(model, x, q), name


@pytest.mark.parametrize("sparse", [False, True])
def test_factors_in_another_order_are_put_back(sparse):
    x = drawn(50)
    model = made(x, 3, sparse=sparse)
    q = model.largest_first(started(model, x))
    lengths = np.einsum("djj,d->j", model.expectations(q).products, 1 / model.variances)[:3]
    assert np.all(np.diff(lengths) < 0)
    order = [2, 0, 1, 3]
    shuffled = type(q)(
        loadings_linear=q.loadings_linear[:, order],
        loadings_precision=q.loadings_precision[:, order][:, :, order],
        noise_shape=q.noise_shape,
        noise_rate=q.noise_rate,
        relevance_shape=q.relevance_shape[..., order[:3]],
        relevance_rate=q.relevance_rate[..., order[:3]],
        scatter=q.scatter[order][:, order],
    )
    again = model.largest_first(shuffled)
    for name, part in q.items():
        np.testing.assert_allclose(again[name], part, rtol=1e-12, err_msg=name)
    assert bound(model, x, shuffled) == pytest.approx(bound(model, x, q))


@pytest.mark.parametrize(("shared", "sparse"), [(False, False), (True, True)])
def test_draws_have_the_moments_of_the_posterior_and_densities_are_scipys(shared, sparse):
    data = drawn()
    model = made(data, shared=shared, sparse=sparse)
    result = fit(model, data, max_passes=30, keep_local=True)
    posterior, parts = result.posterior, result.draw(20_000)
    w = np.concatenate([parts["loadings"], parts["mean"][..., None]], axis=2)
    expected = model.expectations(posterior)
    np.testing.assert_allclose(w.mean(axis=0), expected.loadings, atol=0.05)
    products = np.einsum("ndi,ndj->dij", w, w) / len(w)
    np.testing.assert_allclose(products, expected.products, atol=0.1)
    np.testing.assert_allclose(
        np.log(parts["precision"]).mean(axis=0),
        expected.log_precision[: parts["precision"].shape[1]],
        atol=0.05,
    )
    np.testing.assert_allclose(
        parts["relevance"].mean(axis=0),
        posterior.relevance_shape / posterior.relevance_rate,
        rtol=0.1,
    )
    one = {name: part[0] for name, part in parts.items()}
    covariance = one["loadings"] @ one["loadings"].T + np.eye(data.shape[1]) / one["precision"]
    for row, density in zip(data, model.log_likelihood(data, one), strict=True):
        seen = ~np.isnan(row)
        normal = stats.multivariate_normal(one["mean"][seen], covariance[np.ix_(seen, seen)])
        np.testing.assert_allclose(density, normal.logpdf(row[seen]))
    np.testing.assert_allclose(result.local, result.solve_local(data))
    like = np.zeros((200_000, data.shape[1]))
    like[0, 0] = np.nan
    new = model.simulate(one, like, np.random.default_rng(0))
    np.testing.assert_array_equal(np.isnan(new), np.isnan(like))
    np.testing.assert_allclose(np.cov(new[1:].T), covariance, atol=0.03 * covariance.max())


@pytest.mark.parametrize("shared", [False, True])
def test_local_normalizer_by_monte_carlo(shared):
    x = drawn(4)
    model = made(x, shared=shared)
    q = started(model, drawn(40))
    s = np.array([0.3, 0.7, 1.0])
    ours = model.local_log_normalizer(model.expectations(q), s, x)
    tau = draws(model, q, 50_000)[1]
    for row, logs in zip(x, ours, strict=True):
        seen = tau[:, ~np.isnan(row)]
        for power, value in zip(s, logs, strict=True):
            integral = np.prod((2 * np.pi / seen) ** ((1 - power) / 2) * power**-0.5, axis=1)
            integral *= ((2 * np.pi) ** ((1 - power) / 2) * power**-0.5) ** 2
            error = integral.std() / np.sqrt(len(integral))
            assert abs(integral.mean() - np.exp(value)) < 5 * error + 1e-9
    np.testing.assert_allclose(ours[:, 2], 0, atol=1e-12)


def test_one_temperature_for_all_is_that_temperature_for_each():
    x = drawn()
    model = made(x)
    expected = model.expectations(started(model, x))
    common, each = (model.local_step(x, expected, s) for s in (0.6, np.full(len(x), 0.6)))
    np.testing.assert_allclose(common.energies, each.energies)
    for name, part in common.statistics.items():
        np.testing.assert_allclose(part, each.statistics[name], err_msg=name)


def test_a_missing_value_is_one_that_is_integrated_out():
    """The bound of a table with a hole is that of the rows without the column."""
    x = drawn(missing=0.0)
    model = made(x)
    q = started(model, x)
    holed = x.copy()
    holed[:, 2] = np.nan
    left = GaussianFactors(2, np.delete(model.variances, 2))
    part = {name: np.delete(q[name], 2, axis=0) for name in q if name.startswith(("load", "noise"))}
    part = type(q)(**{**q, **part})
    one = model.local_step(holed, model.expectations(q), 0.7)
    two = left.local_step(np.delete(x, 2, axis=1), left.expectations(part), 0.7)
    np.testing.assert_allclose(one.energies, two.energies)
    assert one.entropy == pytest.approx(two.entropy)
    np.testing.assert_allclose(one.statistics.scatter, two.statistics.scatter)
    assert not one.statistics.linear[2].any()
    assert one.statistics.counts[2] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [Annealing(schedules.linear(1.2), passes=10), VariationalTempering(), LocalTempering()],
    ids=["avi", "vt", "lvt"],
)
def test_every_policy_ends_at_the_same_optimum(policy):
    x = drawn(150, missing=0.1)
    model = made(x)
    options = {"progress": False, "max_passes": 600, "tolerance": 1e-4}
    plain, tempered = fit(model, x, **options), fit(model, x, temperature=policy, **options)
    assert tempered.history[-1].temperature == 1.0
    assert tempered.elbo == pytest.approx(plain.elbo, abs=0.5)
    assert evaluate_elbo(model, plain.posterior, ArraySource(x)) == pytest.approx(plain.elbo)


def test_shards_and_threads_change_no_bit_and_joint_annealing_runs():
    x = drawn(2100)
    model = made(x)
    policy = Annealing(schedules.linear(1.5), passes=3, temper="joint")
    one, two = (
        fit(model, x, max_passes=8, n_threads=n, progress=False, temperature=policy) for n in (1, 2)
    )
    assert one.elbo == two.elbo
    for name, part in one.posterior.items():
        assert np.array_equal(part, two.posterior[name]), name


@pytest.mark.slow
def test_minibatches_come_near_the_optimum():
    x = drawn(2000, missing=0.1)
    model = made(x)
    whole = fit(model, x, progress=False)
    parts = fit(model, x, batch_size=100, max_passes=20, progress=False)
    assert parts.elbo > whole.elbo - 20


@pytest.mark.parametrize("shared", [False, True])
def test_the_contract_holds(shared):
    x = drawn(80)
    check_model(made(x, shared=shared), x)


def test_an_interrupted_fit_ends_in_the_same_bits(tmp_path):
    x = drawn()
    model = made(x)
    options = {"max_passes": 12, "progress": False, "tolerance": 0.0}
    whole = fit(model, x, **options)

    def stop(report):
        if report.record.step == 5:
            raise RuntimeError("stop")

    checkpoint = Checkpoint(tmp_path / "kept", every_steps=1)
    with pytest.raises(RuntimeError, match="stop"):
        fit(model, x, checkpoint=checkpoint, callbacks=[stop], **options)
    seen = []
    resumed = fit(model, x, checkpoint=checkpoint, callbacks=[seen.append], **options)
    assert len(seen) < 12
    assert resumed.elbo == whole.elbo


def test_what_cannot_be_is_refused():
    x = drawn()
    with pytest.raises(ValueError, match="variances must be positive"):
        GaussianFactors(2, np.zeros(3))
    with pytest.raises(ValueError, match="noise_prior must be"):
        GaussianFactors(2, np.ones(3), noise_prior=0.0)
    with pytest.raises(ValueError, match="5 columns"):
        fit(made(x), x[:, :2], progress=False)
    with pytest.raises(ValueError, match="at most 1e"):
        fit(made(x), np.full((3, 5), np.inf), progress=False)
    posterior = started(made(x), x)
    broken = type(posterior)(**{**posterior, "noise_rate": -posterior.noise_rate})
    with pytest.raises(ValueError, match="proper distribution"):
        fit(made(x), x, initial=broken, progress=False)
