"""A search finds what restarts do not, stops on request, and is resumed bit-identically."""

from functools import partial
from types import MappingProxyType

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp

import tempering.search.runs
from tempering import (
    Checkpoint,
    LocalStep,
    Mixture,
    Model,
    Natural,
    StorageError,
    fit,
    search,
)
from tempering.families import (
    Dirichlet,
    FixedWeights,
    Gamma,
    IsotropicGaussian,
    Poisson,
    StickBreaking,
)
from tempering.inference import Algorithm, ArraySource, Constant, SaddleWarning
from tempering.inference.engine import UNTEMPERED
from tempering.inference.executors import Serial
from tempering.models import HiddenMarkov, Sequences
from tempering.search import OPERATORS, Operator, Reheat, Restart, Situation, moves
from tempering.search.components import Components
from tempering.search.driver import draw
from tempering.search.result import Trial
from tempering.search.runs import Candidate, Runs, as_arrays, to_be_gained


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
    prior = model.prior().components * np.linspace(1.0, 2.0, 4)[:, None]
    model = Mixture(model.likelihood, Dirichlet(4), np.ones(4), prior)
    found = search(model, data, budget=5)
    assert {trial.operator for trial in found.trail} <= {"plain", "restart", "reheat", "last"}


def test_components_that_are_not_declared_are_found():
    model, data = grid()
    declared = search(model, data, seed=1, budget=4)

    class Nameless(type(model)):
        components = MappingProxyType({})

    model.__class__ = Nameless
    same(search(model, data, seed=1, budget=4), declared)


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


class Depths(Model):
    """Poisson counts of K kinds, each datum times a depth of its own that is Gamma(2, 2)."""

    def __init__(self, k, d):
        self.families = {"weights": Dirichlet(k), "rates": Gamma(d)}
        self.components = {"weights": 0, "rates": 0}
        rates = np.tile(Gamma(d).natural(np.ones(d), 1.0), (k, 1))
        self._prior = Natural(weights=np.ones(k), rates=rates)

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.ones(len(self._prior.weights)), size=len(x))
        return self._prior + source.size / len(x) * self.statistics(x, q, np.ones_like(q))

    def statistics(self, x, q, depth):
        times = np.tile((q * depth).sum(axis=0)[:, None], (1, x.shape[1]))
        return Natural(weights=q.sum(axis=0), rates=np.concatenate([q.T @ x, times], axis=1))

    def expectations(self, posterior):
        return {name: f.expected_statistics(posterior[name]) for name, f in self.families.items()}

    def local_step(self, x, expectations, inverse_temperature):
        log_rate, minus = np.split(expectations["rates"], 2, axis=1)
        total = x.sum(axis=1, keepdims=True)
        shape, rate = 2.0 + total, 2.0 - minus.sum(axis=1)  # q(depth | z) at T = 1
        constant = 2.0 * np.log(2.0) + expectations["weights"] - gammaln(x + 1).sum(axis=1)[:, None]
        log_weights = constant + x @ log_rate.T + gammaln(shape) - shape * np.log(rate)
        log_joint = constant + x @ log_rate.T + (shape - 1) * (digamma(shape) - np.log(rate))
        log_joint -= shape
        whole = logsumexp(log_weights, axis=1, keepdims=True)
        q = np.exp(log_weights - whole)
        energies = (q * log_joint).sum(axis=1)
        statistics, entropy = (
            self.statistics(x, q, shape / rate),
            float((whole[:, 0] - energies).sum()),
        )
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=q)


def depths():
    rng = np.random.default_rng(0)
    rates = rng.gamma(1.0, 5.0, size=(6, 4))[rng.integers(6, size=120)]
    return Depths(6, 4), rng.poisson(rates * rng.gamma(2.0, 0.5, size=(120, 1))).astype(float)


PROBLEMS = {
    "Dirichlet": grid,
    "sticks": partial(grid, weights=StickBreaking),
    "local variables beside the class": depths,
}


def situation_of(model, data, seed=1):
    runs, components = runs_of(model, data, tolerance=1e-9), Components.of(model)
    best = runs.climb(fit(model, data, seed=seed).posterior, 1000)
    step = runs.local_step(best.posterior, None)  # of the same q(z) as the steps on some rows
    best = best._replace(statistics=model.unpack_components(as_arrays(step.statistics)))
    table = runs.responsibilities(best.posterior, components)
    return Situation(runs, best, (), components, table)


@pytest.mark.parametrize("name", PROBLEMS)
def test_steps_on_some_rows_promise_no_more_than_a_pass_gains(name):
    situation = situation_of(*PROBLEMS[name]())
    runs, best, k = situation.runs, situation.best, situation.components.n
    rng, on_rows = np.random.default_rng(0), 0
    for place in range(k):
        free = (place + 1) % k
        for move in (
            moves.empty(situation, place),
            moves.split(situation, place, free, rng, joined=True),
        ):
            statistics = {name: part + move.change[name] for name, part in best.statistics.items()}
            candidate = situation.candidate(statistics)
            after = runs.climb(candidate.posterior, 1).bound
            assert after >= best.bound + move.gain - 1e-6
        on_rows += moves.rows_of(situation, place) is not None
    assert on_rows


def test_gains_on_some_rows_are_those_of_all_data():
    """The bound at the best λ, given q(z), from the rows alone and from all data."""
    model, data = depths()
    situation = situation_of(model, data)
    runs, best = situation.runs, situation.best
    start = {name: 0.9 * part for name, part in best.statistics.items()}
    posterior = runs.posterior(best.posterior, start)
    rows = np.arange(30)
    values = []
    for chosen in (best.posterior, posterior):
        some, rest = (
            runs.local_step(chosen, rows),
            runs.local_step(best.posterior, rows[-1] + 1 + np.arange(90)),
        )
        statistics = some.statistics + rest.statistics
        new = model.prior() + statistics
        # Energies at the new λ with the same q(z), by the linearity of the joint in t(β).
        energy = 0.0
        for step, at in ((some, chosen), (rest, best.posterior)):
            energy += step.energy + step.entropy
            for name, family in model.families.items():
                gap = family.expected_statistics(new[name]) - family.expected_statistics(at[name])
                energy += np.sum(gap * step.statistics[name])
        exact = energy - model.divergence(new)
        values.append((runs._value(some, dict(statistics), chosen), exact))
    (first, first_exact), (second, second_exact) = values
    assert second - first == pytest.approx(second_exact - first_exact, abs=1e-8)


def test_applies_all_pairs_that_concern_different_components():
    components = Components({"a": (0,)}, 6)

    def move(gain, *places, part=0.0):
        return moves.Move(gain, {"a": np.full(6, part)}, places)

    emptied = [move(-1.0, 0, 1), move(-2.0, 2, 3), move(-9.0, 4, 4)]
    splits = [move(5.0, 5, 0), move(4.0, 1, 0), move(0.5, 3, 0)]
    chosen = moves.combine(components, emptied, splits, [move(3.0, 4, 2)], 0.1)
    # 5 takes the place of 0, whose data go to 1; then 1 and 3 are used or take data; 2 is left.
    assert len(chosen) == 2 + 1
    assert moves.combine(components, emptied, [move(0.5, 3, 0)], [], 0.1) == []


def test_takes_over_what_is_better_of_another_solution_in_several_places():
    """Two solutions that each lack clusters which the other one has, in places far apart."""
    model, data = grid()
    runs, components = runs_of(model, data), Components.of(model)
    whole = runs.climb(search(model, data, seed=1, budget=10).posterior, 50)
    defects = []
    for out, into, twice in ((0, 1, 10), (15, 14, 5)):
        statistics = as_arrays(whole.statistics)
        components.empty(statistics, out, into)
        components.halve(statistics, twice, out)
        defects.append(runs.climb(runs.posterior(whole.posterior, statistics), 50))
    best, other = sorted(defects, key=lambda solution: -solution.bound)
    table = runs.responsibilities(best.posterior, components)
    assert best.bound < whole.bound - 10.0
    situation = Situation(runs, best, (other,), components, table)
    crossed = moves.crossed(situation, other, np.random.default_rng(0))
    assert crossed
    assert all(len(set(move.places)) < 16 for move in crossed)


def test_groups_of_components_that_differ_share_no_data():
    shared = np.diag([50.0, 50.0, 30.0, 30.0, 20.0, 50.0])
    shared[2, 3] = shared[3, 2] = 20.0  # two that differ, and are linked
    shared[4, 4], shared[4, 5] = 5.0, 0.0  # one of which half is missing
    groups = moves.differing(shared, np.random.default_rng(0))
    assert sorted(map(tuple, groups)) == [(2, 3)]


def test_longer_steps_end_no_lower_and_sooner():
    model, data = grid()
    runs = runs_of(model, data)
    taken = {}
    for stride in (1.0, 1.3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempering.search.runs, "STRIDE", stride)
            runs.spent, bounds = 0.0, []
            for seed in range(5):
                start = runs.fresh_start(np.random.default_rng(seed))
                begins = runs.climb(start, 1).bound
                bounds.append(runs.climb(start, 300).bound)
                assert bounds[-1] > begins
            taken[stride] = runs.spent
    assert taken[1.3] < 0.9 * taken[1.0]


def test_fresh_starts_are_those_of_the_caller():
    model, data = grid()
    drawn = []

    def starts(rng):
        drawn.append(model.initialize(ArraySource(data), rng))
        return drawn[-1]

    found = search(model, data, budget=3, starts=starts, operators=[Restart()])
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

    found = search(model, data, seed=2, budget=3, operators=[Known()])
    assert {trial.operator for trial in found.trail} <= {"plain", "known", "last"}


def test_operators_are_drawn_by_what_they_have_found():
    first, second = Restart(), Reheat()
    trail = [Trial("plain", 0.0, 10.0, 0.0, True)]
    trail += [Trial("restart", 0.0, 100.0, 0.0, False), Trial("reheat", 1.0, 10.0, 0.0, True)] * 5
    rng = np.random.default_rng(0)
    drawn = [draw([first, second], trail, 10.0, rng).name for _ in range(5000)]
    assert drawn.count("reheat") > 4000
    assert drawn.count("restart") > 0


def test_extrapolates_gains_that_fall_geometrically():
    gains = 8.0 * 0.5 ** np.arange(5)
    assert to_be_gained(gains[4], gains[3]) == pytest.approx(gains[4])
    assert to_be_gained(2.0, 1.0) == np.inf
    assert to_be_gained(-1.0, 1.0) == 0.0


def test_agreement_counts_fresh_starts_that_reach_the_best():
    model, data = grid(side=2)
    found = search(model, data, operators=[Restart()], budget=8)
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


def test_a_result_prints_what_the_search_did():
    model, data = grid()
    found = search(model, data, budget=4, seed=1)
    *table, last = repr(found).splitlines()
    assert table[0].split() == ["model", "Mixture"]
    assert last.startswith(
        f"search       {len(found.trail)} runs, {found.passes:,.0f} passes; best"
    )
    assert last.endswith(f"; {found.agreement} fresh starts agree")


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ({"weigths": 0}, "got 'weigths': 0, and the parts are 'weights' of shape"),
        ({"components": 5}, "got 'components': 5"),
        ({"weights": "0"}, "got 'weights': '0'"),
    ],
)
def test_components_that_are_no_axes_of_the_statistics_are_refused(components, words):
    model, data = grid(side=2)

    wrong = type("Wrong", (type(model),), {"components": components})
    model.__class__ = wrong
    with pytest.raises(ValueError, match=words):
        search(model, data, budget=2)


def test_a_saddle_that_the_first_run_ends_at_is_not_told(recwarn):
    rng = np.random.default_rng(0)
    centres = np.array([(x, y) for x in range(5) for y in range(5)])
    data = np.repeat(centres, 40, axis=0) + rng.normal(scale=0.12, size=(1000, 2))
    likelihood = IsotropicGaussian(2, 0.0144)
    prior = likelihood.conjugate.natural(np.zeros(2), 10.0)
    model = Mixture(likelihood, Dirichlet(25), np.ones(25), prior)
    with pytest.warns(SaddleWarning):
        fit(model, data, seed=1, max_passes=1000)
    found = search(model, data, seed=1, budget=3)
    assert not found.at_saddle
    assert not any(issubclass(each.category, SaddleWarning) for each in recwarn)
