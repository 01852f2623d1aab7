"""The (tempered) ELBO never falls, after each single coordinate update."""

import numpy as np
import pytest
from scipy.special import xlogy

from problems import MIXTURES, bound, tiny_mixture
from tempering.inference import Algorithm, ArraySource, Constant, engine, evaluate_elbo, fit
from tempering.inference.executors import Serial
from tempering.models import Mixture
from tempering.temperature import (
    Annealing,
    LocalTempering,
    Untempered,
    VariationalTempering,
    log_partition,
    schedules,
)
from tempering.temperature.grid import even_inverse_temperatures, weigh

GRID = even_inverse_temperatures(20)
PRIOR = np.full(20, 1 / 20)


def never_falls(values):
    values = np.asarray(values)
    return np.all(np.diff(values) >= -1e-9 * np.abs(values).max())


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("s", [1.0, 0.3])
def test_plain_and_annealed(name, s):
    """VI and AVI at fixed T: q(z), then q(β), each by itself."""
    model, data, posterior = tiny_mixture(name, n=30)
    rng = np.random.default_rng(1)
    assigned = rng.dirichlet(np.ones(3), size=30)
    values = [bound(model, data, posterior, assigned, s)]
    for _ in range(15):
        assigned = model.assign(data, model.expectations(posterior), s).probabilities
        values.append(bound(model, data, posterior, assigned, s))
        posterior = model.prior() + model.statistics(data, s * assigned)
        values.append(bound(model, data, posterior, assigned, s))
    assert never_falls(values)
    assert values[-1] > values[0] + 0.1


@pytest.mark.parametrize("name", MIXTURES)
def test_annealing_the_joint(name):
    """With the prior tempered too the bound has p(β)^s in it, and still never falls."""
    model, data, posterior = tiny_mixture(name, n=30)
    temperature = Annealing(schedules.constant(2.5), fraction=1.0, temper="joint")
    values = run_steps(model, data, posterior, temperature)
    assert never_falls(values)


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("method", ["map", "monte-carlo"])
def test_variational_tempering(name, method):
    """q(z), q(y), q(β), each by itself, with log C fixed."""
    model, data, posterior = tiny_mixture(name, n=30)
    log_c = log_partition(model, GRID, 30, method=method).values
    r, s = PRIOR, float(PRIOR @ GRID)

    def tempered(posterior, assigned, r):
        extra = r @ (np.log(PRIOR) - log_c) - xlogy(r, r).sum()
        return bound(model, data, posterior, assigned, r @ GRID) + extra

    assigned = np.full((30, 3), 1 / 3)
    values = [tempered(posterior, assigned, r)]
    for _ in range(15):
        solved = model.assign(data, model.expectations(posterior), s)
        assigned = solved.probabilities
        values.append(tempered(posterior, assigned, r))
        r, s, _ = weigh(solved.energies.sum(), log_c, GRID, PRIOR)
        values.append(tempered(posterior, assigned, r))
        posterior = model.prior() + model.statistics(data, s * assigned)
        values.append(tempered(posterior, assigned, r))
    assert never_falls(values)
    assert values[-1] > values[0] + 0.1


@pytest.mark.parametrize("name", MIXTURES)
def test_local_tempering(name):
    """q(z_i), q(T_i), q(β), each by itself, with the data's normalisers fixed."""
    model, data, posterior = tiny_mixture(name, n=30)
    log_c = model.local_log_normalizer(model.expectations(posterior), GRID, data)
    r = np.tile(PRIOR, (30, 1))

    def tempered(posterior, assigned, r):
        extra = np.sum(r * (np.log(PRIOR) - log_c)) - xlogy(r, r).sum()
        return bound(model, data, posterior, assigned, r @ GRID) + extra

    assigned = np.full((30, 3), 1 / 3)
    values = [tempered(posterior, assigned, r)]
    for _ in range(15):
        solved = model.assign(data, model.expectations(posterior), r @ GRID)
        assigned = solved.probabilities
        values.append(tempered(posterior, assigned, r))
        r, _, _ = weigh(solved.energies, log_c, GRID, PRIOR)
        values.append(tempered(posterior, assigned, r))
        posterior = model.prior() + model.statistics(data, (r @ GRID)[:, None] * assigned)
        values.append(tempered(posterior, assigned, r))
    assert never_falls(values)
    assert values[-1] > values[0] + 0.1


class FrozenNormalizer(Mixture):
    """A mixture whose normalisers are those of its prior: LVT is exactly conjugate for it."""

    def local_log_normalizer(self, expectations, inverse_temperatures, data):
        return super().local_log_normalizer(
            self.expectations(self.prior()), inverse_temperatures, data
        )


POLICIES = {
    "VI": Untempered(),
    "AVI": Annealing(schedules.constant(2.5), fraction=1.0),
    "VT": VariationalTempering(GRID, fraction=None, formula="map"),
    "VT calibrated": VariationalTempering(GRID, fraction=None, formula="calibrated"),
    "LVT": LocalTempering(GRID, fraction=None),
}


def run_steps(model, data, posterior, temperature, n=15):
    """The bound that the engine records, at each of its steps."""
    algorithm = Algorithm(model, temperature, Constant(), Serial(), data.shape[0], 100)
    state = algorithm.start(posterior, np.random.default_rng(0))
    (batch,) = ArraySource(data).sweep()
    values = []
    for _ in range(n):
        step = algorithm.advance(state, batch)
        state = step.state
        values.append(step.tempered_elbo)
    return values


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", MIXTURES)
def test_the_engine_ascends_what_it_records(name, policy):
    model, data, posterior = tiny_mixture(name, n=30)
    model = FrozenNormalizer(
        model.likelihood, model.weights, model.prior().weights, model.prior().components
    )
    values = run_steps(model, data, posterior, POLICIES[policy])
    assert never_falls(values)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_a_fit_ends_where_its_bound_rises_no_more(tolerance, monkeypatch):
    monkeypatch.setattr(engine, "leave_saddle", lambda *arguments, **options: iter(()))
    model, data, posterior = tiny_mixture("full", n=60)
    result = fit(model, data, initial=posterior, tolerance=tolerance, progress=False)
    rises = np.diff(result.history["elbo"])
    assert result.converged
    assert len(rises) > 2
    assert np.all(rises[:-1] >= tolerance)
    assert rises[-1] < tolerance


def test_the_recorded_elbo_is_the_elbo():
    model, data, posterior = tiny_mixture("full", n=30)
    algorithm = Algorithm(model, Untempered(), Constant(), Serial(), 30, 10)
    (batch,) = ArraySource(data).sweep()
    state = algorithm.start(posterior, np.random.default_rng(0))
    _, _, tempered, elbo = algorithm.advance(state, batch)
    assigned = model.assign(data, model.expectations(posterior)).probabilities
    assert elbo == pytest.approx(bound(model, data, posterior, assigned, 1.0))
    assert tempered == pytest.approx(elbo)
    assert elbo == pytest.approx(evaluate_elbo(model, posterior, ArraySource(data)))
