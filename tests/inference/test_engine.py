"""The engine: phases, convergence, restarts, determinism, errors."""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
from scipy import sparse

from problems import tiny_mixture
from tempering.families import Categorical, Dirichlet, IsotropicGaussian
from tempering.inference import ArraySource, Constant, RobbinsMonro, Settling, fit
from tempering.inference.executors import Serial
from tempering.models import (
    HiddenMarkov,
    Mixture,
    Natural,
    Sequences,
    Start,
    UnsupportedTemperature,
)
from tempering.models.factorial_mixture import FactorialModel
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.topics import Topics
from tempering.temperature import (
    AdaptiveTempering,
    Annealing,
    Heat,
    LocalTempering,
    Progress,
    TemperaturePolicy,
    Untempered,
    VariationalTempering,
    log_partition,
    schedules,
)

POLICIES = {
    "VI": Untempered(),
    "AVI": Annealing(schedules.linear(5.0), passes=8),
    "VT": VariationalTempering(),
    "LVT": LocalTempering(),
}


def blobs(n=600, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    return centres[rng.integers(0, 3, size=n)] + rng.normal(size=(n, 2))


def gaussian_mixture(k=3, made=Mixture):
    likelihood = IsotropicGaussian(2, 1.0)
    prior = likelihood.conjugate.natural(np.zeros(2), 20.0)
    return made(likelihood, Dirichlet(k), np.full(k, 1.0), prior)


def quiet_fit(*arguments, **options):
    return fit(*arguments, progress=False, **options)


def same_bits(one, other):
    return all(np.array_equal(one.posterior[part], other.posterior[part]) for part in one.posterior)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_ends_at_temperature_one(policy):
    """By itself, and in so few of 60 passes that it converges at T = 1."""
    result = quiet_fit(gaussian_mixture(), blobs(), temperature=POLICIES[policy], max_passes=60)
    last = result.history[-1]
    assert last.temperature == 1.0
    assert last.phase == "final"
    assert result.converged
    assert last.tempered_elbo == pytest.approx(last.elbo)
    assert result.elbo >= last.elbo
    tempered = result.history["phase"] == "tempered"
    assert np.all(tempered[: tempered.sum()])  # the final phase follows, and is not left
    assert result.history.final_phase_start == tempered.sum()
    assert tempered.any() == (policy != "VI")
    assert np.all(result.history["temperature"][~tempered] == 1.0)
    assert np.all(result.history["temperature"][tempered] > 1.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_minibatch_runs_end_at_temperature_one_too(policy):
    """Without a test of convergence, the policy itself must let go."""
    history = quiet_fit(
        gaussian_mixture(), blobs(), temperature=POLICIES[policy], batch_size=100, max_passes=30
    ).history
    begun = history["passes"] - 100 / 600  # when each step began
    promised = begun > POLICIES[policy].length(Progress(0.0, 1.0, 30.0))
    assert promised[-6:].all(), "length(30) must leave the last pass at T = 1"
    assert np.all(history["temperature"][promised] == 1.0)
    assert np.all(history["phase"][promised] == "final")
    assert (history[0].temperature > 1.0) == (policy != "VI")


@dataclass(frozen=True)
class Slow(TemperaturePolicy):
    """Cools by a thousandth in each step, never to 1; and says nothing of it."""

    def begin(self, model, n_data, rng):
        return SlowHeat(1 / 8)

    def cool(self, heat, progress):
        return replace(heat, inverse_temperature=1.001 * heat.inverse_temperature, n=heat.n + 1)


@dataclass(frozen=True)
class SlowHeat(Heat):
    n: int = 0


@pytest.mark.parametrize(("batch_size", "max_passes", "cold"), [(None, 9, 1), (60, 5, 10)])
def test_the_last_pass_is_at_temperature_one_whatever_the_policy_does(batch_size, max_passes, cold):
    options = {"batch_size": batch_size, "max_passes": max_passes}
    result = quiet_fit(gaussian_mixture(), blobs(), temperature=Slow(), **options)
    hot = result.history["temperature"] > 1.0
    assert hot[:-cold].all()
    assert not hot[-cold:].any()
    assert np.all(result.history["phase"][-cold:] == "final")
    assert result.heat.n == (~hot).argmax()  # the state of the tempered phase, as it was left
    tempered = quiet_fit(gaussian_mixture(), blobs(), temperature=Slow(), finish=False, **options)
    assert np.all(tempered.history["temperature"] > 1.0)


@pytest.mark.parametrize("max_passes", [0.4, 1, 2, 2.5])
def test_a_run_too_short_for_its_schedule_ends_at_temperature_one(max_passes):
    history = quiet_fit(
        gaussian_mixture(), blobs(), temperature=Annealing(), max_passes=max_passes
    ).history
    assert history[-1].temperature == 1.0
    assert np.all(history["temperature"][:-1] > 1.0)


def test_a_policy_that_leaves_less_than_a_pass_keeps_its_own_time():
    """What it promised is kept: T = 1 comes then, and not with the last pass."""
    policy = Annealing(passes=4.5)
    result = quiet_fit(gaussian_mixture(), blobs(), temperature=policy, batch_size=60, max_passes=5)
    assert result.history.final_phase_start == 45


def test_a_learned_temperature_that_moves_rarely_is_waited_for():
    """A bound that rests while q(T) waits for its turn is no end."""
    rng = np.random.default_rng(0)
    data = 2 * rng.normal(np.repeat([-6.0, 6.0], 100))[:, None]
    model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.001])
    often, rarely = (
        quiet_fit(
            model,
            data,
            temperature=VariationalTempering(every=every, fraction=None),
            finish=False,
            max_passes=500,
        ).history[-1]
        for every in (1, 5)
    )
    assert rarely.temperature == pytest.approx(often.temperature, rel=1e-3)
    assert rarely.tempered_elbo == pytest.approx(often.tempered_elbo, abs=0.01)


@pytest.mark.parametrize("s", [8, 0, -0.5, np.nan, [[0.5]], [0.5, 2.0], "hot"])
def test_a_heat_that_is_no_inverse_temperature_is_refused(s):
    with pytest.raises(ValueError, match="inverse_temperature must be 1/T, above 0 and at most 1"):
        Heat(inverse_temperature=s)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batch_size", [None, 64])
def test_threads_do_not_change_a_bit(policy, batch_size):
    model = gaussian_mixture()
    model.shard_size = 50
    results = [
        quiet_fit(
            model,
            blobs(300),
            temperature=POLICIES[policy],
            batch_size=batch_size,
            max_passes=9,
            n_threads=n_threads,
            seed=3,
        )
        for n_threads in (1, 3)
    ]
    assert same_bits(results[0], results[1])
    np.testing.assert_array_equal(results[0].history["elbo"], results[1].history["elbo"])


def test_the_seed_decides():
    runs = [quiet_fit(gaussian_mixture(), blobs(), max_passes=2, seed=s) for s in (1, 1, 2)]
    assert same_bits(runs[0], runs[1])
    assert not same_bits(runs[0], runs[2])


def test_stochastic_inference_finds_the_batch_optimum():
    data = blobs(2000)
    batch = quiet_fit(gaussian_mixture(), data, n_init=2)
    stochastic = quiet_fit(
        gaussian_mixture(),
        data,
        batch_size=100,
        learning_rate=RobbinsMonro(delay=1.0, decay=0.7),
        max_passes=30,
        n_init=2,
    )
    assert stochastic.elbo == pytest.approx(batch.elbo, abs=20.0)
    assert stochastic.elbo <= batch.elbo + 1e-6


def test_minibatches_of_everything_are_batch_inference():
    """The same loop: all data in one minibatch, with rate 1, is coordinate ascent."""
    data = blobs(100)
    whole = quiet_fit(gaussian_mixture(), data, max_passes=5, tolerance=0)
    one = quiet_fit(
        gaussian_mixture(),
        data,
        batch_size=100,
        learning_rate=Constant(1.0),
        max_passes=5,
        tolerance=0,
    )
    assert same_bits(whole, one)


def test_the_best_restart_is_kept():
    result = quiet_fit(gaussian_mixture(6), blobs(), n_init=3, max_passes=200)
    assert len(set(np.round(result.restart_elbos, 3))) > 1
    assert result.elbo == max(result.restart_elbos)


def test_minibatch_bounds_estimate_the_bound():
    """The estimates of one pass, at a posterior that stays, average to the bound."""
    data, model = blobs(), gaussian_mixture()
    start = quiet_fit(model, data, max_passes=3).posterior
    run = quiet_fit(
        model,
        data,
        initial=start,
        batch_size=60,
        learning_rate=Constant(1e-12),
        max_passes=1,
    )
    assert np.mean(run.history["elbo"]) == pytest.approx(run.elbo, rel=1e-9)


def test_a_minibatch_stands_for_all_data():
    model = gaussian_mixture()
    one_step = {"batch_size": 60, "max_passes": 0.1, "learning_rate": Constant(1.0)}
    weights = quiet_fit(model, blobs(), **one_step).posterior.weights
    assert np.sum(weights - model.prior().weights) == pytest.approx(600)


def test_history_has_what_it_says():
    result = quiet_fit(
        gaussian_mixture(),
        blobs(),
        batch_size=100,
        max_passes=3,
        temperature=VariationalTempering(damping=1.0),
        learning_rate=RobbinsMonro(),
        elbo_every=4,
    )
    history = result.history
    assert list(history["step"]) == list(range(18))
    assert history["data_seen"][-1] == 1800
    np.testing.assert_allclose(history["passes"][5::6], [1, 2, 3])
    assert np.isfinite(history["elbo"][::4]).all()
    assert np.isnan(history["elbo"][1::4]).all()
    assert history[0].learning_rate == pytest.approx(1025**-0.7)
    assert history[0].weights.shape == (100,)
    assert history[0].weights.sum() == pytest.approx(1.0)
    assert np.all(np.diff(history["seconds"]) >= 0)
    assert "final phase from step" in repr(history)


def test_damping_is_tied_to_passes_not_to_steps():
    """Half a pass moves s equally far in one step or in ten."""

    def first_half_pass(batch_size):
        run = quiet_fit(
            gaussian_mixture(),
            blobs(),
            batch_size=batch_size,
            learning_rate=Constant(1e-12),
            max_passes=0.5,
            temperature=VariationalTempering([1.0, 0.5], damping=2.0, fraction=None),
            finish=False,
        )
        return run.history["inverse_temperature"][-1]

    assert first_half_pass(300) == pytest.approx(first_half_pass(30), abs=0.003)


def test_a_temperature_is_learned_every_so_many_steps_whatever_the_size_of_batches():
    policy = VariationalTempering(every=4, fraction=None)
    options = {"temperature": policy, "batch_size": 4, "max_passes": 20, "finish": False}
    history = quiet_fit(gaussian_mixture(), blobs(10), **options).history  # of 4, 3 and 3
    assert set(1 + np.flatnonzero(np.diff(history["inverse_temperature"]))) <= {*range(4, 60, 4)}


def test_a_settled_policy_is_left_before_its_time():
    """A tempered batch fit that rises no more goes on at T = 1, and ends there."""
    result = quiet_fit(
        gaussian_mixture(),
        blobs(),
        temperature=VariationalTempering(damping=0.1),
        max_passes=600,
        tolerance=1e-2,
    )
    assert result.converged
    assert 0 < result.history.final_phase_start < 200  # its own time would be at 400
    assert len(result.history) < 300


def test_callbacks_see_each_step_and_can_stop_the_run():
    seen = []

    def stop_at_third(report):
        seen.append(report.record.step)
        return report.record.step == 2

    result = quiet_fit(gaussian_mixture(), blobs(), callbacks=[stop_at_third], tolerance=0)
    assert seen == [0, 1, 2]
    assert len(result.history) == 3


def test_passes_are_cut_into_equal_batches():
    sizes = [batch.size for batch, _ in zip(ArraySource(np.zeros((10, 1)), 4).batches(0), range(3))]
    assert sorted(sizes) == [3, 3, 4]


def test_each_pass_visits_every_datum_once():
    source = ArraySource(np.arange(10)[:, None], 4)
    stream = source.batches(seed=5)
    for _ in range(2):
        visited = np.concatenate([next(stream).data[:, 0] for _ in range(3)])
        assert sorted(visited) == list(range(10))


def test_each_pass_has_an_order_of_its_own():
    stream = ArraySource(np.arange(10)[:, None], 4).batches(seed=5)
    first, second = (np.concatenate([next(stream).data[:, 0] for _ in range(3)]) for _ in range(2))
    assert list(first) != list(second)


def test_a_given_start_stays_as_it_is():
    """Also where steps change the posterior in place, as those of topics do."""
    counts = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(20, 6)))
    topics = Topics(np.random.default_rng(1).gamma(2.0, size=(6, 3)), 0.3)
    before = topics.parameters().copy()
    quiet_fit(LatentDirichlet(3, 6, 0.4, 0.3), counts, initial=topics, max_passes=2)
    np.testing.assert_array_equal(topics.parameters(), before)


class StepsInPlace(Mixture):
    def global_step(self, posterior, target, rate):
        for name, part in posterior.items():
            part[...] = rate * target[name] + (1.0 - rate) * part
        return posterior


@pytest.mark.parametrize("temperature", [None, AdaptiveTempering()])
def test_a_model_may_change_its_posterior_where_it_is(temperature):
    """A push off a saddle, and a state that is kept, are copies."""
    model = gaussian_mixture()
    in_place = gaussian_mixture(made=StepsInPlace)
    initial = model.initialize(ArraySource(blobs(90)), np.random.default_rng(1))
    before = Natural(**{name: part.copy() for name, part in initial.items()})
    options = {"temperature": temperature, "initial": initial, "max_passes": 150}
    found, expected = (quiet_fit(each, blobs(90), **options) for each in (in_place, model))
    assert found.elbo == pytest.approx(expected.elbo, rel=1e-12)
    assert len(found.history) == len(expected.history)
    for name, part in before.items():
        np.testing.assert_array_equal(initial[name], part)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_passes": 0}, "max_passes must be positive"),
        ({"tolerance": -1.0}, "tolerance must be 0 or positive"),
        ({"n_init": 0}, "n_init must be at least 1"),
        ({"n_init": 2**70}, "n_init must be at least 1 and at most 1000000"),
        ({"n_init": True}, "n_init must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
        ({"max_passes": np.inf, "batch_size": 9}, "max_passes must be finite in minibatches"),
        ({"elbo_every": 0}, "elbo_every must be at least 1"),
        ({"temperature": Annealing(passes=200)}, "leaves no phase at T = 1"),
        ({"temperature": LocalTempering(fraction=None)}, "finish=False"),
        (
            {"n_init": 2, "initial": Natural(weights=np.ones(3), components=np.ones((3, 3)))},
            "leave one of the two out",
        ),
    ],
)
def test_bad_arguments_are_named_before_any_work(options, message):
    def no_work(report):
        raise AssertionError("a step was made")

    with pytest.raises(ValueError, match=message):
        quiet_fit(gaussian_mixture(), blobs(20), callbacks=[no_work], **options)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 2)), "at least one row"),
        (np.array([[1.0, np.nan]]), "finite; row 0, column 1 holds nan"),
        (np.ones((3, 5)), "must have 2 columns; got 5"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.ma.masked_equal([[1.0, 2.0]], 2.0), "data has masked entries"),
    ],
)
def test_bad_data_are_named_before_any_work(data, message):
    with pytest.raises(ValueError, match=message):
        quiet_fit(gaussian_mixture(), data)


def test_what_an_executor_or_a_source_decides_is_not_ignored():
    with pytest.raises(ValueError, match="n_threads must be at least 1"):
        quiet_fit(gaussian_mixture(), blobs(), executor=Serial(), n_threads=0)
    source = ArraySource(blobs(), 200)
    with pytest.raises(ValueError, match="batch_size=50 is not that of the source"):
        quiet_fit(gaussian_mixture(), source, batch_size=50)
    assert len(quiet_fit(gaussian_mixture(), source, batch_size=200, max_passes=2).history) == 6


def test_settling_weighs_all_its_steps_alike():
    rates = Settling(RobbinsMonro(16.0, 0.55), start=30)
    assert all(rates(t) == RobbinsMonro(16.0, 0.55)(t) for t in range(1, 31))
    weights = np.zeros(50)  # of each step in what is left at the end
    for t in range(1, 51):
        weights *= 1 - rates(t)
        weights[t - 1] = rates(t)
    np.testing.assert_allclose(weights[30:], rates(50))
    np.testing.assert_allclose(weights[29], rates(50))
    assert np.all(np.diff(weights[:30]) > 0)


@pytest.mark.parametrize("temperature", [None, Annealing(schedules.linear(3.0), fraction=0.75)])
def test_steps_shrink_where_t_is_1_and_half_of_the_run_is_over(temperature):
    run = quiet_fit(
        gaussian_mixture(), blobs(), temperature=temperature, batch_size=60, max_passes=10
    )
    held = 50 if temperature is None else 75
    rates = run.history["learning_rate"]
    pace = 50 / (100 - held)  # the last is as small, whenever they begin to shrink
    np.testing.assert_allclose(rates[:held], 2**-0.7)
    np.testing.assert_allclose(rates[held:], (1 + pace * np.arange(1, 101 - held)) ** -0.7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Annealing(schedules.linear(0.5)), "must be >= 1"),
        (lambda: Annealing(fraction=0.0), "fraction must be above 0"),
        (lambda: Annealing(fraction=None), "needs a length: give fraction or passes"),
        (lambda: Annealing(passes=-3), "passes must be positive"),
        (lambda: Annealing(temper="prior"), "temper must be"),
        (lambda: Annealing(lambda: 3.0), "schedule must be a function of progress"),
        (lambda: Annealing(lambda: 3.0, start="auto"), "schedule must make a schedule.*; got <f"),
        (
            lambda: Annealing(lambda first: lambda: first, start="auto"),
            r"schedule must make a schedule.*schedule\(2.0\) gave <function",
        ),
        (lambda: VariationalTempering([0.0, 1.0]), r"values in \(0, 1\]"),
        (lambda: VariationalTempering([0.5, 1.0], prior=[1.0]), "2 positive weights"),
        (lambda: VariationalTempering(damping=-1), "damping must be"),
        (lambda: VariationalTempering(every=0), "every must be"),
        (lambda: LocalTempering(formula="guess"), "formula must be"),
        (lambda: LocalTempering(damping=-1), "damping must be"),
        (lambda: LocalTempering(max_alternations=0), "max_alternations must be"),
        (lambda: RobbinsMonro(decay=0.4), "decay must be from 0.5 to 1"),
        (lambda: RobbinsMonro(delay=-1), "delay must be"),
        (lambda: RobbinsMonro(hold=-1), "hold must be"),
        (lambda: RobbinsMonro(pace=0), "pace must be"),
        (lambda: Constant(2.0), "rate must be"),
        (lambda: Settling(Constant(), 0), "start must be"),
    ],
)
def test_bad_policies_are_refused_when_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_policy_must_say_where_it_begins():
    with pytest.raises(TypeError, match=r"TemperaturePolicy .*begin"):
        TemperaturePolicy()


class Bare(Mixture):
    """A model with the five methods that everybody must write, and no more."""

    log_partition = Mixture.__mro__[1].log_partition
    draw_prior = Mixture.__mro__[1].draw_prior
    log_local_integral = Mixture.__mro__[1].log_local_integral
    local_log_normalizer = Mixture.__mro__[1].local_log_normalizer


@pytest.mark.parametrize(
    ("temperature", "missing"),
    [
        (VariationalTempering(), "local_log_normalizer"),
        (VariationalTempering(formula="monte-carlo"), "draw_prior"),
        (VariationalTempering(formula="calibrated"), "local_log_normalizer"),
        (VariationalTempering(formula="closed-form"), "log_partition"),
        (LocalTempering(), "local_log_normalizer"),
    ],
)
def test_a_model_without_the_optional_methods_says_what_is_missing(temperature, missing):
    model, data, _ = tiny_mixture("bernoulli")
    bare = Bare(model.likelihood, model.weights, model.prior().weights, model.prior().components)
    with pytest.raises(UnsupportedTemperature, match=f"Bare does not define `{missing}`"):
        quiet_fit(bare, data, temperature=temperature)
    assert quiet_fit(bare, data, temperature=Annealing(passes=3), max_passes=30).converged


def test_the_paper_s_local_formula_drives_temperatures_up():
    """Eq. 11 as printed has 1/T in front of everything; the calibrated one stays near 1."""
    heat = {
        formula: quiet_fit(
            gaussian_mixture(), blobs(), temperature=LocalTempering(formula=formula)
        ).heat.inverse_temperature
        for formula in ("calibrated", "paper")
    }
    assert np.mean(heat["paper"]) < 0.1
    assert np.mean(heat["calibrated"]) > 0.3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "auto"),
        ("max_passes", "odd"),
        ("learning_rate", 0.5),
        ("learning_rate", lambda step: np.nan),
        ("learning_rate", lambda: 0.5),
        ("executor", "odd"),
        ("callbacks", [None]),
        ("callbacks", [lambda: None]),
        ("initial", "odd"),
        ("n_init", 1.5),
        ("n_threads", "odd"),
        ("n_threads", 10**9),
        ("seed", -1),
        ("batch_size", 2.5),
        ("checkpoint", 3),
    ],
)
def test_an_argument_of_a_wrong_kind_is_named(name, value):
    model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    told = {"checkpoint": "path"}.get(name, name)
    with pytest.raises(ValueError, match=rf"{told}(\(1\))? must be"):
        fit(model, np.zeros((5, 1)), **{name: value})


@pytest.mark.parametrize("model", [None, {}, Mixture])
def test_what_is_no_model_is_named(model):
    with pytest.raises(ValueError, match="model must be"):
        fit(model, np.zeros((5, 1)))
    with pytest.raises(ValueError, match="model must be"):
        log_partition(model, [0.5, 1.0], 5)


def test_a_frame_of_pandas_is_its_rows():
    pandas = pytest.importorskip("pandas")
    rows = np.arange(12.0).reshape(6, 2)
    source = ArraySource(pandas.DataFrame(rows, columns=["a", "b"]), batch_size=4)
    np.testing.assert_array_equal(source.sample(6, np.random.default_rng(0)), rows)
    labels = np.repeat([7, 8, 9], 2)
    source = ArraySource(pandas.Series(rows[:, 0], index=labels), batch_size=4)
    visited = np.concatenate([batch.data for batch in islice(source.batches(0), 2)])
    np.testing.assert_array_equal(np.sort(visited), rows[:, 0])


class Own(Mixture):
    """A model that is not of the package."""


def test_a_start_that_cannot_be_of_one_s_own_model_is_named():
    model = gaussian_mixture(made=Own)
    start = model.prior()
    for wrong in (start.replace(weights=-start.weights), Natural(weights=start.weights), {}):
        with pytest.raises(ValueError, match="initial must be a posterior of the model"):
            quiet_fit(model, blobs(), initial=wrong)


def test_what_is_asked_of_a_result_is_checked():
    result = quiet_fit(gaussian_mixture(), blobs(), max_passes=2)
    for ask in (result.draw, lambda seed: result.predictive(blobs(), seed=seed)):
        with pytest.raises(ValueError, match="seed must be at least 0, and whole; got -1"):
            ask(seed=-1)


def test_a_push_off_a_saddle_makes_no_more_passes_than_planned():
    model, data = gaussian_mixture(), blobs()
    whole = quiet_fit(model, data, initial=model.prior(), tolerance=1e-3)
    for passes in range(2, 8):
        result = quiet_fit(model, data, initial=model.prior(), tolerance=1e-3, max_passes=passes)
        assert len(result.history) <= passes
    assert whole.history[-1].passes > 8


def test_a_saddle_is_left_that_a_push_leaves_slowly():
    """Heat makes all states alike; at T = 1 their difference grows by some percent a step.

    Its cost then goes through 0 so slowly that it passes for a push that has died out.
    """
    rng = np.random.default_rng(1)
    k, n_symbols = 6, 12
    transitions = 0.7 * np.eye(k) + 0.3 * rng.dirichlet(np.full(k, 0.5), k)
    emissions = rng.dirichlet(np.full(n_symbols, 0.3), k)
    symbols = np.empty((30, 40), int)
    for row in symbols:
        state = rng.integers(k)
        for t in range(row.size):
            row[t] = rng.choice(n_symbols, p=emissions[state])
            state = rng.choice(k, p=transitions[state])
    model = HiddenMarkov(Categorical(n_symbols), k, emission_prior=np.ones(n_symbols))
    options = {"max_passes": 300, "tolerance": 3e-5, "seed": 1}
    data = Sequences(symbols.ravel(), np.full(30, 40))
    plain = quiet_fit(model, data, **options)
    annealed = quiet_fit(model, data, temperature=Annealing(passes=30), **options)
    assert annealed.elbo > plain.elbo - 20.0  # at the saddle it is lower by 252 nats


def test_q_z_starts_where_initialize_says():
    """Activations that are solved anew from λ end in other optima, so λ alone is no way back."""
    rng = np.random.default_rng(0)
    data = (rng.random((150, 6)) < 0.4) @ rng.normal(size=(6, 4)) + 0.1 * rng.normal(size=(150, 4))

    class Told(FactorialModel):
        shard_size = 64

        def initialize(self, source, rng):
            return start or super().initialize(source, rng)

    start, model = None, Told(6, 4, 0.05, 1.0, 0.4, local_restarts=0)
    found = quiet_fit(model, data, max_passes=50, keep_local=True)
    alone, both = found.posterior, Start(found.posterior, found.local)
    anew, start = quiet_fit(model, data, initial=alone, max_passes=1), both
    back = quiet_fit(model, data, max_passes=1, keep_local=True)
    assert back.history[0].elbo == pytest.approx(found.elbo, abs=1e-3)
    assert anew.history[0].elbo < found.elbo - 100.0
    np.testing.assert_allclose(back.local, found.local, atol=0.01)
    quiet_fit(model, data, max_passes=1, batch_size=50)  # which takes λ alone
    start = Start(found.posterior, found.local[:-1])
    with pytest.raises(ValueError, match="all 150 data; got 149"):
        quiet_fit(model, data)
    start, model.continues_steps = both, False
    with pytest.raises(ValueError, match="continues_steps"):
        quiet_fit(model, data)
