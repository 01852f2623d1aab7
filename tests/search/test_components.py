"""Arithmetic on the components of statistics, and what check_model demands of a declaration."""

import numpy as np
import pytest

from problems import tiny_mixture
from tempering import Mixture
from tempering.families import Dirichlet, IsotropicGaussian, Poisson
from tempering.models import HiddenMarkov, Sequences
from tempering.models.natural import Natural, exchangeable, permuted
from tempering.search.components import Components
from tempering.search.runs import Solution
from tempering.testing import check_model

AXES = {"weights": (0,), "moves": (0, 1), "tables": (1,)}


def statistics(seed=0):
    rng = np.random.default_rng(seed)
    return {"weights": rng.random(4), "moves": rng.random((4, 4)), "tables": rng.random((3, 4, 2))}


def test_empties_a_component_on_all_its_axes():
    changed = statistics()
    Components(AXES, 4).empty(changed, 1)
    assert changed["weights"][1] == 0
    assert not changed["moves"][1].any()
    assert not changed["moves"][:, 1].any()
    assert not changed["tables"][:, 1].any()


def test_merging_keeps_the_sums():
    before, changed = statistics(), statistics()
    Components(AXES, 4).empty(changed, 1, into=3)
    for name in before:
        np.testing.assert_allclose(changed[name].sum(), before[name].sum())
    np.testing.assert_allclose(
        changed["moves"][3, 3], before["moves"][[1, 1, 3, 3], [1, 3, 1, 3]].sum()
    )


def test_halving_shares_a_component_with_an_empty_place():
    before, changed = statistics(), statistics()
    components = Components(AXES, 4)
    components.empty(changed, 0)
    components.halve(changed, 2, 0)
    np.testing.assert_allclose(changed["weights"][[0, 2]], before["weights"][2] / 2)
    np.testing.assert_allclose(changed["tables"][:, 0], before["tables"][:, 2] / 2)
    np.testing.assert_allclose(changed["moves"][np.ix_([0, 2], [0, 2])], before["moves"][2, 2] / 4)


def test_takes_over_all_components_of_a_permuted_solution():
    first, order = statistics(), np.array([2, 0, 3, 1])
    other = permuted(statistics(1), AXES, order)
    Components(AXES, 4).take_over(first, np.arange(4), other, np.argsort(order))
    for name, part in statistics(1).items():
        np.testing.assert_allclose(first[name], part)


@pytest.mark.parametrize("name", ["full", "diagonal", "poisson", "bernoulli", "sticks"])
def test_matches_the_components_of_a_permuted_solution(name):
    model, data, posterior = tiny_mixture(name, n=30, k=4)
    components = Components.of(model)
    local = model.local_step(data, model.expectations(posterior), 1.0)
    mine = model.unpack_components(dict(local.statistics))
    order = np.array([2, 0, 3, 1])
    moved = permuted(mine, model.components, order)
    solutions = [
        Solution(0.0, model.prior() + Natural(**model.pack_components(parts)), parts)
        for parts in (mine, moved)
    ]
    matched = components.match(components.distances(model, *solutions))
    np.testing.assert_array_equal(order[matched], np.arange(4))


def test_statistics_of_sticks_come_back_from_counts():
    model, data, posterior = tiny_mixture("sticks", n=30, k=4)
    packed = dict(model.local_step(data, model.expectations(posterior), 1.0).statistics)
    counts = model.unpack_components(packed)
    assert counts["weights"].shape == (4,)
    np.testing.assert_allclose(model.pack_components(counts)["weights"], packed["weights"])


def test_a_prior_that_differs_declares_no_components():
    axes = {"weights": 0}
    assert exchangeable(Natural(weights=[1.0, 1.0]), axes) == axes
    assert exchangeable(Natural(weights=[1.0, 2.0]), axes) == {}
    assert exchangeable(Natural(moves=2.0 + np.eye(3)), {"moves": (0, 1)})
    assert not exchangeable(Natural(moves=np.diag([1.0, 2.0, 3.0])), {"moves": (0, 1)})


def test_rejects_axes_of_different_lengths():
    model, *_ = tiny_mixture("poisson")
    model = wrong(model, {"weights": 0, "components": 1})
    with pytest.raises(ValueError, match=r"axes of one length.*\[2, 3\]|\[3, "):
        Components.of(model)


def test_check_model_rejects_components_that_are_not_exchangeable():
    model, data, _ = tiny_mixture("full", n=40, k=3)
    check_model(model, data)
    with pytest.raises(AssertionError, match="components must be exchangeable"):
        check_model(wrong(model, {"components": 0}), data)


def wrong(model, axes):
    """The model with another declaration."""
    changed = type("Changed", (type(model),), {"components": axes})
    model.__class__ = changed
    globals()["Changed"] = changed  # so that it can be pickled
    changed.__module__ = __name__
    return model


def found(model, data):
    return Components.found(model, data, np.random.default_rng(0))


def test_finds_components_that_a_model_does_not_declare():
    """Also where an axis of the parameters is as long as there are components."""
    data = np.random.default_rng(0).normal(size=(50, 2))
    likelihood = IsotropicGaussian(2, 1.0)
    one = likelihood.conjugate.natural(np.zeros(2), 0.1)
    model = Mixture(likelihood, Dirichlet(3), np.ones(3), one)
    assert model.prior().components.shape == (3, 3)
    assert found(model, data) == Components({"weights": (0,), "components": (0,)}, 3)
    chain = HiddenMarkov(Poisson(1), 4, emission_prior=[1.0, 0.1])
    rows = Sequences(np.random.default_rng(0).poisson(5.0, size=(40, 1)), lengths=[20, 20])
    declared = Components.of(chain)
    assert declared is None or found(chain, rows) == declared


def test_finds_no_components_whose_priors_differ():
    data = np.random.default_rng(0).poisson(5.0, size=(50, 1))
    prior = [[1.0, 0.1], [1.0, 0.1], [2.0, 0.1]]
    assert found(Mixture(Poisson(1), Dirichlet(3), np.ones(3), prior), data) is None
    assert found(Mixture(Poisson(1), Dirichlet(3), [1.0, 1.0, 2.0], [1.0, 0.1]), data) is None
