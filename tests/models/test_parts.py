"""What a model has once it tells the families of its parts: against sums over all there is."""

from typing import ClassVar

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

from tempering.families import (
    DiagonalGaussian,
    Dirichlet,
    FixedWeights,
    LinearGaussian,
    Poisson,
    StickBreaking,
    TiedGaussian,
)
from tempering.inference import ArraySource, fit
from tempering.models import (
    HiddenMarkov,
    LocalStep,
    Mixture,
    Model,
    Natural,
    Sequences,
    by_temperature,
)
from tempering.models.factorial_mixture import FactorialModel
from tempering.models.natural import entry
from tempering.report.exports import groups_of
from tempering.testing import check_model


class Coin(Model):
    """Tosses of one coin: all that it writes, besides the step, are the families of its parts."""

    families: ClassVar = {"side": Dirichlet(2)}

    def prior(self):
        return Natural(side=[2.0, 1.0])

    def initialize(self, source, rng):
        return self.prior()

    def expectations(self, posterior):
        return Dirichlet(2).expected_statistics(posterior.side)

    def local_step(self, data, expectations, inverse_temperature):
        s = np.broadcast_to(inverse_temperature, len(data))
        counts = np.bincount(data[:, 0], s, 2)
        return LocalStep(Natural(side=counts), expectations[data[:, 0]], 0.0, inverse_temperature)


class Telling(Coin):
    def log_likelihood(self, data, parameters):
        return np.log(parameters["side"][data[:, 0]])

    def simulate(self, parameters, like, rng):
        return rng.choice(2, p=parameters["side"], size=(len(like), 1))


class Silent(Coin):
    families: ClassVar = {}


TOSSES = np.array([[0], [0], [0], [1]])


def quiet_fit(*arguments, **options):
    return fit(*arguments, progress=False, **options)


def test_the_bound_of_declared_parts_is_the_evidence():
    """p(3 heads, 1 tail | Beta(2, 1)) = B(5, 2) / B(2, 1) = (1/30) / (1/2)."""
    result = quiet_fit(Coin(), TOSSES)
    assert result.elbo == pytest.approx(np.log(1 / 15))
    with pytest.raises(ValueError, match="side of the posterior must be a proper Dirichlet"):
        Coin().check_posterior(Natural(side=[1.0, -1.0]))
    with pytest.raises(ValueError, match="side"):
        Coin().check_posterior(Natural(side=[1.0]))


def test_one_improper_component_makes_a_posterior_improper():
    model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    with pytest.raises(ValueError, match="components of the posterior must be a proper Gamma"):
        model.check_posterior(Natural(weights=[1.0, 1.0], components=[[1.0, 1.0], [1.0, -1.0]]))


def test_draws_are_those_of_the_posterior():
    heads = quiet_fit(Coin(), TOSSES).draw(4000, seed=1)["side"][:, 0]
    assert heads.mean() == pytest.approx(5 / 7, abs=0.01)  # Beta(5, 2)
    assert heads.var() == pytest.approx(10 / (49 * 8), rel=0.1)


def test_what_a_model_lacks_is_named():
    with pytest.raises(NotImplementedError, match=r"Silent does not define `divergence`.*families"):
        quiet_fit(Silent(), TOSSES)
    result = quiet_fit(Coin(), TOSSES)
    with pytest.raises(NotImplementedError, match="Coin does not define `log_likelihood`"):
        result.predictive(TOSSES)
    with pytest.raises(NotImplementedError, match="Coin does not define `simulate`"):
        result.simulate(TOSSES)
    with pytest.raises(ValueError, match=r"Coin gives no q\(z\): have it return LocalStep"):
        result.solve_local(TOSSES)
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        result.predictive(TOSSES, n_draws=0)


def test_predictive_densities_and_new_data_of_a_model_of_one_s_own():
    result = quiet_fit(Telling(), TOSSES)
    densities = np.exp(result.predictive(np.array([[0], [1]]), n_draws=4000))
    np.testing.assert_allclose(densities, [5 / 7, 2 / 7], atol=0.01)
    made = np.stack(result.simulate(np.zeros((10, 1), int), n_draws=1000))
    assert made.shape == (1000, 10, 1)
    heads = (made == 0).sum(axis=(1, 2))
    assert heads.mean() == pytest.approx(50 / 7, abs=0.2)
    # Beta-binomial: β differs from draw to draw, or else it would be 10 · 5/7 · 2/7 = 2.04.
    assert heads.var() == pytest.approx(10 * 10 / 49 * 17 / 8, rel=0.15)


def mixtures():
    gaussian, tied = DiagonalGaussian(2), TiedGaussian(2, 2)
    prior = gaussian.conjugate.natural(np.zeros(2), 0.1, 2.0, 1.0)
    sticks = np.repeat([1.0, 1.0], 2)
    shared = tied.conjugate.natural(np.zeros((2, 2)), np.full(2, 0.1), 4.0, np.eye(2))
    return {
        "Dirichlet": Mixture(gaussian, Dirichlet(2), [1.0, 1.0], prior),
        "sticks": Mixture(gaussian, StickBreaking(2), sticks, prior),
        "known": Mixture(gaussian, FixedWeights([0.3, 0.7]), [], prior),
        "tied": Mixture(tied, Dirichlet(2), [1.0, 1.0], shared),
    }


@pytest.mark.parametrize("kind", ["Dirichlet", "sticks", "known", "tied"])
def test_the_exact_density_of_a_mixture_is_the_mean_over_draws(kind):
    model = mixtures()[kind]
    rng = np.random.default_rng(0)
    data = rng.normal(rng.choice([-3.0, 3.0], size=(40, 1)), size=(40, 2))
    result = quiet_fit(model, data)
    drawn = Model.predictive(model, data[:5], result.posterior, 1000)
    np.testing.assert_allclose(result.predictive(data[:5]), drawn, atol=0.15)


def test_new_data_have_the_means_of_the_old():
    rng = np.random.default_rng(0)
    data = rng.poisson(rng.choice([2.0, 20.0], p=[0.3, 0.7], size=(2000, 1))).astype(float)
    model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    made = np.concatenate(quiet_fit(model, data).simulate(data, n_draws=5))
    assert made.mean() == pytest.approx(data.mean(), rel=0.05)
    assert made.std() == pytest.approx(data.std(), rel=0.05)


def test_lines_keep_their_inputs():
    rng = np.random.default_rng(0)
    likelihood = LinearGaussian(2)
    prior = likelihood.conjugate.natural(np.zeros(2), 0.1 * np.eye(2), 2.0, 1.0)
    lines = rng.normal(size=(30, 3))
    lines[:, 2] = lines[:, 0] + 0.01 * lines[:, 2]
    (made,) = quiet_fit(Mixture(likelihood, Dirichlet(1), [1.0], prior), lines).simulate(lines)
    np.testing.assert_array_equal(made[:, :2], lines[:, :2])
    assert np.abs(made[:, 2] - lines[:, 0]).max() < 2.0


def test_the_density_of_sequences_sums_over_all_paths():
    model = HiddenMarkov(Poisson(1), 2, emission_prior=[1.0, 0.1])
    data = Sequences(np.array([[1], [9], [2], [3]]), lengths=[3, 1])
    draws = model.draw(model.prior() + model.prior(), 1, np.random.default_rng(0))
    parameters = entry(draws, 0)
    start, moves, rates = (parameters[name] for name in ("start", "transitions", "emissions"))

    def brute_force(rows):
        logs = []
        for path in np.ndindex(*(2,) * len(rows)):
            log = np.log(start[path[0]]) + sum(map(np.log, moves[path[:-1], path[1:]]))
            logs.append(log + poisson.logpmf(rows, rates[list(path)]).sum())
        return logsumexp(logs)

    expected = [brute_force(data.rows[:3]), brute_force(data.rows[3:])]
    np.testing.assert_allclose(model.log_likelihood(data, parameters), expected)


def test_new_sequences_follow_the_chain():
    model = HiddenMarkov(Poisson(1), 2, emission_prior=[1.0, 0.1])
    parameters = {
        "start": np.array([1.0, 0.0]),
        "transitions": np.array([[0.5, 0.5], [0.0, 1.0]]),
        "emissions": np.array([[0.001], [1000.0]]),
    }
    like = Sequences(np.zeros((4000, 1)), lengths=np.full(1000, 4))
    made = model.simulate(parameters, like, np.random.default_rng(0))
    high = made.rows.reshape(1000, 4) > 500
    np.testing.assert_allclose(high.mean(axis=0), [0, 1 / 2, 3 / 4, 7 / 8], atol=0.05)
    assert np.all(np.diff(high.astype(int), axis=1) >= 0)  # the second state is never left


def test_arviz_gets_what_the_model_has():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(12, 2))
    groups = groups_of(quiet_fit(mixtures()["sticks"], data), 7, data)
    shapes = {name: {k: v.shape for k, v in group.items()} for name, group in groups.items()}
    assert shapes == {
        "posterior": {
            "weights": (1, 7, 2),
            "components_mean": (1, 7, 2, 2),
            "components_precision": (1, 7, 2, 2),
        },
        "log_likelihood": {"x": (1, 7, 12)},
        "posterior_predictive": {"x": (1, 7, 12, 2)},
    }
    assert groups_of(quiet_fit(Coin(), TOSSES), 3, TOSSES).keys() == {"posterior"}


class Checking(Coin):
    def check(self, data):
        if not np.isin(data, [0, 1]).all():
            raise ValueError("a toss is 0 or 1")

    def log_likelihood(self, data, parameters):
        return np.log(parameters["side"][data[:, 0]])


def test_arviz_gets_no_scores_of_what_cannot_be_data():
    with pytest.raises(ValueError, match="a toss is 0 or 1"):
        groups_of(quiet_fit(Checking(), TOSSES), 3, [[0], [-1]])


def test_local_variables_are_kept_where_they_are_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    data = rng.normal(rng.choice([-3.0, 3.0], size=(60, 1)), size=(60, 2))
    model = mixtures()["Dirichlet"]
    model.shard_size = 25
    plain = quiet_fit(model, data, n_init=2)
    assert plain.local is None
    kept = quiet_fit(model, data, n_init=2, keep_local=True, checkpoint=tmp_path, n_threads=2)
    np.testing.assert_array_equal(kept.posterior.components, plain.posterior.components)
    expected = model.assign(data, model.expectations(kept.posterior)).probabilities
    np.testing.assert_allclose(kept.local, expected)
    np.testing.assert_allclose(kept.solve_local(data), expected)
    again = quiet_fit(model, data, n_init=2, keep_local=True, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.local, kept.local)
    minibatches = quiet_fit(model, data, batch_size=20, max_passes=3, keep_local=True)
    expected = model.assign(data, model.expectations(minibatches.posterior)).probabilities
    np.testing.assert_allclose(minibatches.local, expected)
    with pytest.raises(ValueError, match=r"Coin gives no q\(z\)"):
        quiet_fit(Coin(), TOSSES, keep_local=True, callbacks=[lambda report: 1 / 0])


def test_kept_activations_are_those_that_the_fit_ended_with():
    """Solved anew they end in another optimum of each datum; continued, the bound is that told."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(6, 8))
    data = (rng.random((80, 6)) < 0.5) @ features + 0.1 * rng.normal(size=(80, 8))
    model = FactorialModel(6, 8, 0.01, 1.0, 0.5, start="data")
    result = quiet_fit(model, data, keep_local=True, max_passes=60)
    expected = result.model.expectations(result.posterior)
    anew = result.model.local_step(data, expected, 1.0)
    fresh = anew.energy + anew.entropy - result.model.divergence(result.posterior)
    assert result.local.shape == (80, 6)
    assert np.abs(result.local - anew.local).max() > 0.5
    assert result.elbo > fresh + 1.0


class ByTemperature(Mixture):
    asked: ClassVar[list[float]] = []

    @by_temperature
    def local_step(self, data, expectations, inverse_temperature):
        self.asked.append(inverse_temperature)
        return super().local_step(data, expectations, inverse_temperature)


def test_data_of_one_temperature_at_a_time_make_the_step_of_all():
    rng = np.random.default_rng(0)
    data, s = rng.poisson(5, size=(40, 2)).astype(float), rng.choice([0.2, 0.5, 1.0], size=40)
    parts = Poisson(2), Dirichlet(3), np.ones(3), np.ones(4)
    usual, model = Mixture(*parts), ByTemperature(*parts)
    check_model(model, data)
    model.asked.clear()
    expected = model.expectations(model.initialize(ArraySource(data), rng))
    step, whole = (each.local_step(data, expected, s) for each in (model, usual))
    assert model.asked == [0.2, 0.5, 1.0]
    for name, part in step.statistics.items():
        np.testing.assert_allclose(part, whole.statistics[name])
    np.testing.assert_allclose(step.energies, whole.energies)
    np.testing.assert_allclose(step.local, whole.local)
    np.testing.assert_array_equal(step.inverse_temperature, s)
    assert step.entropy == pytest.approx(whole.entropy)
