"""A search finds what restarts do not, stops on request, and is resumed bit-identically."""

from types import MappingProxyType

import numpy as np
import pytest

from tempering import Checkpoint, Mixture, Natural, StorageError, fit, search
from tempering.families import Dirichlet, FixedWeights, IsotropicGaussian, Poisson, StickBreaking
from tempering.inference import Algorithm, ArraySource, Constant
from tempering.inference.engine import UNTEMPERED
from tempering.inference.executors import Serial
from tempering.models import HiddenMarkov, Sequences
from tempering.search import OPERATORS, Operator, Reheat, Restart, Situation, Swap
from tempering.search.components import Components
from tempering.search.driver import draw
from tempering.search.result import Trial
from tempering.search.runs import Candidate, Runs, to_be_gained


def grid(side=4, n=40, seed=0, weights=None):
    """Clusters on a grid, and a mixture of which the means are unknown."""
    rng = np.random.default_rng(seed)
    centres = np.array([(x, y) for x in range(side) for y in range(side)])
    data = np.repeat(centres, n, axis=0) + rng.normal(scale=0.1, size=(side * side * n, 2))
    likelihood = IsotropicGaussian(2, 0.01)
    prior = likelihood.conjugate.natural(np.zeros(2), 0.1)
    k = side * side
    weights = Dirichlet(k) if weights is None else weights(k)
    return Mixture(likelihood, weights, np.ones(weights.size), prior), data


def runs_of(model, data, tolerance=1e-3):
    source = ArraySource(data)
    algorithm = Algorithm(
        model, UNTEMPERED, Constant(), Serial(), source.size, np.inf, tolerance=tolerance
    )
    return Runs(algorithm, source, next(source.batches(0)))


def same(first, second):
    """Compare two searches, except for the time that they took."""
    assert first.elbo == second.elbo
    for name, part in first.posterior.items():
        np.testing.assert_array_equal(part, second.posterior[name])
    without = [trial._replace(cpu_seconds=0.0) for trial in first.trail]
    assert repr(without) == repr([trial._replace(cpu_seconds=0.0) for trial in second.trail])


@pytest.mark.parametrize("weights", [Dirichlet, StickBreaking])
def test_finds_all_clusters_where_plain_inference_does_not(weights):
    model, data = grid(weights=weights)
    seed = 1
    plain = fit(model, data, seed=seed)
    found = search(model, data, seed=seed, tolerance=1e-3)
    assert found.elbo > plain.elbo + 100
    means = model.likelihood.conjugate.point(found.posterior.components)
    assert len(np.unique(means.round(), axis=0)) == 16
    assert found.trail[0].operator == "plain"
    assert found.trail[0].elbo == plain.elbo
    assert any(trial.accepted for trial in found.trail[1:])


@pytest.mark.parametrize("seed", range(4))
def test_never_ends_below_plain_inference(seed):
    rng = np.random.default_rng(seed)
    data = rng.poisson(rng.gamma(1.0, 5.0, size=(5, 3))[rng.integers(5, size=100)])
    model = Mixture(Poisson(3), Dirichlet(5), np.ones(5), [1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
    found = search(model, data, seed=seed, budget=3)
    assert found.elbo >= fit(model, data, seed=seed, max_passes=1000).elbo


def test_leaves_an_optimum_in_which_known_weights_have_the_wrong_components():
    """They are not exchangeable, so that only fresh starts and heat can swap them."""
    rng = np.random.default_rng(3)
    data = rng.normal(np.where(np.arange(300) < 90, -3.2, 3.2))[:, None]
    likelihood = IsotropicGaussian(1, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(1), 10.0)
    model = Mixture(likelihood, FixedWeights([0.3, 0.7]), np.empty(0), prior)
    swapped = likelihood.conjugate.natural(np.array([[3.0], [-3.0]]), np.ones(2))
    start = Natural(weights=np.empty(0), components=swapped)
    for seed in range(5):
        found = search(model, data, initial=start, seed=seed).posterior
        light, heavy = likelihood.conjugate.point(found.components).ravel()
        assert light < heavy


def test_a_model_without_components_is_restarted_and_reheated():
    model, data = grid(side=2)

    class Nameless(type(model)):
        components = MappingProxyType({})

    model.__class__ = Nameless
    found = search(model, data, budget=5)
    assert {trial.operator for trial in found.trail} <= {"plain", "restart", "reheat", "last"}


def test_searches_hidden_markov_models():
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(4, size=60), 5)
    counts = rng.poisson(np.array([1.0, 8.0, 25.0, 60.0])[states])[:, None]
    model = HiddenMarkov(Poisson(1), 4, emission_prior=[1.0, 0.1])
    data = Sequences(counts, lengths=[100, 100, 100])
    plain = fit(model, data, max_passes=1000)
    assert search(model, data, budget=5).elbo >= plain.elbo


def test_the_budget_counts_passes_of_plain_fits():
    model, data = grid()
    found = search(model, data, budget=4, seed=2)
    unit = found.trail[0].passes
    spent = sum(trial.passes for trial in found.trail if trial.operator != "last")
    assert 4 * unit <= spent < 5.5 * unit
    assert found.passes == sum(trial.passes for trial in found.trail)


@pytest.mark.parametrize("threads", [2, 3])
def test_is_bit_identical_on_any_number_of_threads(threads):
    model, data = grid()
    model.shard_size = 100
    kwargs = {"budget": 3, "seed": 1}
    same(
        search(model, data, n_threads=1, **kwargs), search(model, data, n_threads=threads, **kwargs)
    )


@pytest.mark.parametrize("stop", [5, 52, 62])
def test_resumes_bit_identically(tmp_path, stop):
    """Stop in plain inference, between two rounds, and in the last run."""
    model, data = grid()
    kwargs = {"budget": 4, "seed": 1, "progress": False}
    reports = []
    whole, seen = search(model, data, callbacks=[reports.append], **kwargs), 0

    def interrupt(report):
        nonlocal seen
        seen += 1
        if seen == stop:
            raise KeyboardInterrupt

    checkpoint = Checkpoint(tmp_path, every_steps=1)
    with pytest.raises(KeyboardInterrupt):
        search(model, data, checkpoint=checkpoint, callbacks=[interrupt], **kwargs)
    taken = seen
    same(search(model, data, checkpoint=checkpoint, callbacks=[interrupt], **kwargs), whole)
    assert seen - taken <= len(reports) - stop + 5  # what was under way is repeated
    with pytest.raises(StorageError, match="budget"):
        search(model, data, checkpoint=checkpoint, **{**kwargs, "budget": 7})


def test_a_callback_ends_a_search_with_the_best_so_far():
    model, data = grid()
    plain = fit(model, data, seed=1, max_passes=1000)
    best = []

    def enough(report):
        best.append(report.record.elbo)
        return report.record.phase == "search" and report.record.elbo > plain.elbo + 10

    found = search(model, data, seed=1, callbacks=[enough])
    assert found.elbo > plain.elbo + 10
    assert sum(trial.accepted for trial in found.trail) <= 3


def test_a_search_that_is_stopped_in_its_first_run_is_that_run():
    model, data = grid()
    found = search(model, data, callbacks=[lambda report: report.record.step == 2])
    assert len(found.history) == 3
    assert [trial.operator for trial in found.trail] == ["plain"]


@pytest.mark.parametrize("weights", [Dirichlet, StickBreaking])
def test_steps_on_some_rows_promise_no_more_than_a_pass_gains(weights):
    model, data = grid(weights=weights)
    runs = runs_of(model, data)
    components = Components.of(model)
    best = runs.climb(fit(model, data, seed=1).posterior, 50)
    table = runs.responsibilities(best.posterior, components)
    situation = Situation(runs, best, (), components, table)
    rng, tried = np.random.default_rng(0), 0
    for _ in range(40):
        candidate = Swap().propose(situation, rng)
        if candidate.rows is None:
            continue
        gain, posterior = runs.refine(best, candidate)
        if gain > 1.0:
            tried += 1
            assert runs.climb(posterior, 1).bound >= best.bound + gain - 1e-6
    assert tried


def test_fresh_starts_are_those_of_the_caller():
    model, data = grid()
    drawn = []

    def starts(rng):
        drawn.append(model.initialize(ArraySource(data), rng))
        return drawn[-1]

    found = search(model, data, budget=3, starts=starts, operators=[Restart(tries=1)])
    assert len(drawn) == sum(trial.operator != "last" for trial in found.trail)
    assert len({start.components.tobytes() for start in drawn}) == len(drawn)
    assert found.history["elbo"][0] == fit(model, data, initial=drawn[0]).history["elbo"][0]


def test_an_operator_of_ones_own_is_used():
    model, data = grid()
    wanted = fit(model, data, seed=1, max_passes=1000).posterior

    class Known(Operator):
        name = "known"

        def propose(self, situation, rng):
            return Candidate(wanted)

    found = search(model, data, seed=2, budget=3, operators=[Known(tries=1)])
    assert {trial.operator for trial in found.trail} <= {"plain", "known", "last"}


def test_operators_are_drawn_by_what_they_have_found():
    first, second = Restart(prior=1.0), Reheat(prior=1.0)
    trail = [Trial("plain", 0.0, 10.0, 0.0, True)]
    trail += [Trial("restart", 0.0, 100.0, 0.0, False), Trial("reheat", 1.0, 10.0, 0.0, True)] * 5
    rng = np.random.default_rng(0)
    drawn = [draw([first, second], trail, 10.0, rng).name for _ in range(200)]
    assert drawn.count("reheat") > 170
    assert drawn.count("restart") > 0


def test_extrapolates_gains_that_fall_geometrically():
    gains = 8.0 * 0.5 ** np.arange(5)
    assert to_be_gained(gains[4], gains[3]) == pytest.approx(gains[4])
    assert to_be_gained(2.0, 1.0) == np.inf
    assert to_be_gained(-1.0, 1.0) == 0.0


def test_agreement_counts_fresh_starts_that_reach_the_best():
    model, data = grid(side=2)
    found = search(model, data, operators=[Restart(tries=1)], budget=8)
    reached = [t.elbo for t in found.trail if t.operator == "restart" and not t.accepted]
    assert found.agreement == sum(abs(elbo - found.elbo) < 0.2 for elbo in reached)


def test_the_summary_names_each_operator():
    model, data = grid(side=2)
    found = search(model, data, budget=4)
    lines = found.summary().splitlines()
    assert len(lines) == 1 + len({trial.operator for trial in found.trail})
    assert lines[1].startswith("plain")
    assert "Trial(" not in repr(found)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0.5}, "budget must be at least 1"),
        ({"budget": float("nan")}, "budget must be"),
        ({"operators": []}, "operators must be a list"),
        ({"operators": ["swap"]}, "Operator; got"),
        ({"seed": -1}, "seed must be"),
        ({"tolerance": -1.0}, "tolerance must be"),
    ],
)
def test_rejects_wrong_arguments(options, words):
    model, data = grid(side=2)
    with pytest.raises(ValueError, match=words):
        search(model, data, **options)


def test_rejects_minibatches():
    model, data = grid(side=2)
    with pytest.raises(ValueError, match=r"search takes all data.*initial=result\.posterior"):
        search(model, ArraySource(data, batch_size=10))


def test_the_default_operators_have_names_of_their_own():
    names = [operator.name for operator in OPERATORS]
    assert len(set(names)) == len(names)
    assert all(operator.__doc__ for operator in OPERATORS)
