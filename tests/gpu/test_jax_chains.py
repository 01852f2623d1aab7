"""Hidden Markov models in JAX: their steps against those of the CPU."""

import gc

import numpy as np
import pytest

pytest.importorskip("jax")

from tempering import CategoricalHMM, GaussianHMM, PoissonHMM
from tempering.families import (
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Poisson,
    SphericalGaussian,
    TiedGaussian,
)
from tempering.gpu import jax_models
from tempering.gpu.jax_models import JaxHiddenMarkov, lanes_of, places
from tempering.models import HiddenMarkov, Sequences

pytestmark = pytest.mark.usefixtures("without_optimizations")

LENGTHS = np.array([7, 1, 12, 5, 2])
K = 3

LIKELIHOODS = {
    "full": FullGaussian(2),
    "tied": TiedGaussian(2, K),
    "diag": DiagonalGaussian(2),
    "spherical": SphericalGaussian(2),
    "poisson": Poisson(2),
    "categorical": Categorical(4),
}


def problem(kind, zeros=False, seed=0):
    """A model, rows, and the expectations of a posterior that is no optimum."""
    rng, likelihood = np.random.default_rng(seed), LIKELIHOODS[kind]
    n, family = LENGTHS.sum(), likelihood.conjugate
    if kind == "categorical":
        rows, prior = rng.integers(4, size=n), np.ones(4)
    elif kind == "poisson":
        rows, prior = rng.poisson(3.0, size=(n, 2)), family.natural(1.5, 0.5)
    else:
        rows, mean = rng.normal(size=(n, 2)), np.zeros(2)
        parts = (mean, 0.5, 3.0, 1.0 if kind in ("diag", "spherical") else np.eye(2))
        prior = family.natural(*parts)[0] if kind == "tied" else family.natural(*parts)
    moves = np.triu(np.ones((K, K))) if zeros else np.ones((K, K))
    model = HiddenMarkov(likelihood, K, 1.0, moves, emission_prior=prior)
    assignment = rng.dirichlet(0.3 * np.ones(K), size=n)
    posterior = model.prior() + model.statistics(Sequences(rows, LENGTHS), assignment)
    return model, rows, model.expectations(posterior)


def assert_same(one, other):
    for name, part in other.statistics.items():
        np.testing.assert_allclose(one.statistics[name], part, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.energies, other.energies, rtol=1e-9, atol=1e-9)
    assert one.entropy == pytest.approx(other.entropy, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", LIKELIHOODS)
@pytest.mark.parametrize("s", [0.4, np.array([1.0, 0.3, 0.7, 0.5, 0.9])], ids=["one", "each"])
def test_a_step_is_that_of_the_cpu(kind, s):
    model, rows, expected = problem(kind)
    data = Sequences(rows, LENGTHS)
    assert_same(
        JaxHiddenMarkov.of(model).local_step(data, expected, s), model.local_step(data, expected, s)
    )


@pytest.mark.parametrize("buffer", [0, 2])
@pytest.mark.parametrize("s", [0.4, np.linspace(0.3, 1.0, 11)], ids=["one", "each"])
def test_pieces_and_forbidden_moves_are_those_of_the_cpu(buffer, s, monkeypatch):
    model, rows, expected = problem("diag", zeros=True)
    data = Sequences(rows, LENGTHS, piece_length=3, buffer=buffer)
    assert len(data) == 11
    wanted = model.local_step(data, expected, s)
    assert_same(JaxHiddenMarkov.of(model).local_step(data, expected, s), wanted)
    monkeypatch.setattr(jax_models, "NUMBERS_AT_ONCE", 64)  # several blocks
    assert_same(JaxHiddenMarkov.of(model).local_step(data, expected, s), wanted)


def test_a_path_that_only_the_future_favours_is_solved_in_logarithms(monkeypatch):
    model, rows, expected = problem("poisson")
    rows = np.where(np.arange(len(rows))[:, None] % 5, rows, 3000 * rows)
    data = Sequences(rows, LENGTHS)
    chain = expected.chain._replace(log_transitions=np.where(np.eye(K), -1e-9, -900.0))
    expected = expected._replace(chain=chain)
    wanted, on_cpu = model.local_step(data, expected, 1.0), []
    solve = HiddenMarkov.local_step
    monkeypatch.setattr(
        HiddenMarkov, "local_step", lambda *given: on_cpu.append(True) or solve(*given)
    )
    assert_same(JaxHiddenMarkov.of(model).local_step(data, expected, 1.0), wanted)
    assert on_cpu


def test_lanes_hold_each_row_once_and_little_else():
    lengths = np.random.default_rng(0).integers(1, 200, size=300)
    place = places(lengths)
    held = np.sort(place[place < lengths.sum()])
    np.testing.assert_array_equal(held, np.arange(lengths.sum()))
    assert place.size < 1.3 * lengths.sum()
    first = np.cumsum(lengths) - lengths
    steps, lanes = np.nonzero(np.isin(place, first))
    for step, lane in zip(steps, lanes, strict=True):
        own = place[step, lane]
        length = lengths[np.searchsorted(first, own)]
        np.testing.assert_array_equal(place[step : step + length, lane], own + np.arange(length))


def test_data_stay_on_the_device_only_as_long_as_they_are_there():
    _, rows, _ = problem("diag")
    data = Sequences(rows, LENGTHS)
    assert lanes_of(data) is lanes_of(data)
    before = len(jax_models._sent)
    del data
    gc.collect()
    assert len(jax_models._sent) == before - 1


@pytest.mark.parametrize("make", [GaussianHMM, PoissonHMM, CategoricalHMM])
def test_a_fit_is_that_of_the_cpu(make):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 2, size=30), 10)[:, None] * 2.0
    X = X + (rng.normal(size=X.shape) if make is GaussianHMM else rng.integers(0, 2, X.shape))
    lengths = [100, 150, 50]
    fits = [
        make(2, backend=backend, random_state=0, n_init=1).fit(X, lengths)
        for backend in ("cpu", "jax")
    ]
    assert fits[1].elbo_ == pytest.approx(fits[0].elbo_, abs=1e-3)
    np.testing.assert_array_equal(*(each.predict(X, lengths) for each in fits))
    stream = make(2, backend="jax", random_state=0).partial_fit(X, lengths)
    on_cpu = make(2, random_state=0).partial_fit(X, lengths)
    np.testing.assert_allclose(stream.transmat_, on_cpu.transmat_)


def test_a_search_finds_what_it_finds_on_the_cpu():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 3, size=30), 10)[:, None] * 3.0 + rng.normal(size=(300, 1))
    fits = [
        GaussianHMM(4, backend=backend, random_state=0, n_init=2, tol=0.01).fit(X, [100, 150, 50])
        for backend in ("cpu", "jax")
    ]
    assert fits[1].elbo_ == pytest.approx(fits[0].elbo_, abs=0.1)
    trails = [[trial.operator for trial in each.trail_] for each in fits]
    assert trails[0][:3] == trails[1][:3]
    assert len(trails[1]) > 2


def test_known_emissions_are_refused():
    hmm = CategoricalHMM(2, params="st", backend="jax")
    hmm.emissionprob_ = np.array([[0.9, 0.1], [0.1, 0.9]])
    with pytest.raises(TypeError, match="Use backend='cpu'"):
        hmm.fit(np.array([[0], [1]] * 10))
