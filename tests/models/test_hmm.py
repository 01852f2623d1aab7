"""Hidden Markov models against enumeration of all paths on tiny problems."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import logsumexp

from tempering import Annealing, LocalTempering, VariationalTempering, fit, schedules
from tempering.families import (
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    Poisson,
    SphericalGaussian,
    TiedGaussian,
)
from tempering.inference import ArraySource
from tempering.models import HiddenMarkov, Mixture, Natural, Sequences
from tempering.models.hmm import chains
from tempering.models.hmm.chains import Chain, best_paths, solve_paths

KINDS = ["full", "tied", "diagonal", "spherical", "categorical", "poisson"]
LENGTHS = [4, 1, 3]
TEMPERATURES = [1.0, 0.4, np.array([0.3, 1.0, 0.7])]


def tiny(kind, lengths=LENGTHS, k=3, seed=0):
    """A model, sequences, and a posterior that is neither the prior nor an optimum."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    rows = rng.normal(size=(n, 2)) * 2
    if kind == "full":
        likelihood = FullGaussian(2)
        prior = likelihood.conjugate.natural(np.zeros(2), 0.5, 3.0, np.eye(2))
    elif kind == "tied":
        likelihood = TiedGaussian(2, k)
        prior = likelihood.conjugate.natural(np.zeros((k, 2)), 0.5, 3.0, np.eye(2))
    elif kind == "diagonal":
        likelihood = DiagonalGaussian(2)
        prior = likelihood.conjugate.natural(np.zeros(2), 0.5, 1.5, 1.0)
    elif kind == "spherical":
        likelihood = SphericalGaussian(2)
        prior = likelihood.conjugate.natural(np.zeros(2), 0.5, 3.0, 1.0)
    elif kind == "categorical":
        likelihood, rows, prior = Categorical(4), rng.integers(0, 4, size=n), np.full(4, 0.6)
    else:
        likelihood, rows = Poisson(2), rng.poisson(3.0, size=(n, 2))
        prior = likelihood.conjugate.natural(1.5, 0.5)
    transitions = rng.uniform(0.5, 2.0, size=(k, k))
    model = HiddenMarkov(likelihood, k, np.linspace(0.6, 1.4, k), transitions, emission_prior=prior)
    data = Sequences(rows, lengths)
    posterior = model.prior() + model.statistics(data, rng.dirichlet(np.ones(k), size=n))
    return model, data, posterior


def enumerated(chain, log_emissions, s):
    """Every path of one sequence: states [paths, L], log joint and q [paths], log normaliser."""
    length, k = log_emissions.shape
    paths = np.array(list(product(range(k), repeat=length)))
    joint = chain.log_start[paths[:, 0]] + log_emissions[np.arange(length), paths].sum(axis=1)
    joint += chain.log_transitions[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    normalizer = logsumexp(s * joint)
    return paths, joint, np.exp(s * joint - normalizer), normalizer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("s", TEMPERATURES, ids=["cold", "hot", "one a sequence"])
def test_local_step_matches_enumeration_of_all_paths(kind, s):
    model, data, posterior = tiny(kind)
    expected, k = model.expectations(posterior), model.n_components
    energies, entropy, oracle = [], 0.0, 0.0 * model.prior()
    for i, each in enumerate(np.broadcast_to(s, len(data))):
        sequence = data[i : i + 1]
        log_emissions = model.likelihood.expected_log_likelihood(sequence.rows, expected.emissions)
        paths, joint, q, _ = enumerated(expected.chain, log_emissions, each)
        energies.append(q @ joint)
        entropy -= q @ np.log(q)
        marginals = np.array([q @ (paths == state) for state in range(k)]).T
        pairs = np.zeros((k, k))
        np.add.at(pairs, (paths[:, :-1], paths[:, 1:]), q[:, None])
        oracle = oracle + float(each) * Natural(
            start=marginals[0],
            transitions=pairs,
            emissions=marginals.T @ model.likelihood.statistics(sequence.rows),
        )

    local = model.local_step(data, expected, s)

    np.testing.assert_allclose(local.energies, energies, rtol=1e-10)
    np.testing.assert_allclose(local.entropy, entropy, rtol=1e-9)
    for name in oracle:
        np.testing.assert_allclose(local.statistics[name], oracle[name], rtol=1e-9, atol=1e-12)


#: The ways to solve chains, whatever the size of the data.
WAYS = ({"n_rows": 1}, {"n_rows": 2**40}, {"logs_only": True})


@pytest.mark.parametrize("spread", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize("s", [1.0, 0.2])
def test_all_ways_of_solving_match_enumeration_whatever_the_weights(spread, s):
    """At a spread of 3,000 nats nearly every weight underflows, and scaling alone would fail."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        chain = Chain(-spread * rng.random(3), -spread * rng.random((3, 3)))
        log_emissions = spread * rng.normal(size=(6, 3))
        paths, joint, q, normalizer = enumerated(chain, log_emissions, s)
        marginals = np.array([q @ (paths == state) for state in range(3)]).T
        for way in WAYS:
            solved = solve_paths(chain, log_emissions, np.array([0, 6]), s, **way)
            exactly = {"rel": 1e-11, "abs": 1e-11 * spread}
            assert solved.log_normalizers[0] == pytest.approx(normalizer, **exactly)
            assert solved.energies[0] == pytest.approx(q @ joint, **exactly)
            np.testing.assert_allclose(solved.marginals, s * marginals, rtol=1e-8, atol=1e-12)


def test_a_path_that_only_the_future_favours_is_not_lost_in_underflow():
    """The first row speaks against state 0 by 900 nats, those after it for it by 600 each."""
    chain = Chain(np.zeros(2), np.array([[0.0, -2000.0], [-2000.0, 0.0]]))
    log_emissions = np.array([[-900.0, 0.0], [0.0, -600.0], [0.0, -600.0]])
    for way in WAYS:
        solved = solve_paths(chain, log_emissions, np.array([0, 3]), **way)
        assert solved.log_normalizers[0] == pytest.approx(-900.0)
        np.testing.assert_allclose(solved.marginals, [[1.0, 0.0]] * 3, atol=1e-12)


@pytest.mark.parametrize("s", [0.8, np.array([0.8, 0.3, 1.0])])
@pytest.mark.parametrize("forbidden", [False, True])
def test_long_sequences_agree_in_all_ways_of_solving(s, forbidden):
    rng = np.random.default_rng(0)
    chain = Chain(*(np.log(rng.dirichlet(np.ones(7), size=shape)) for shape in ((), (7,))))
    if forbidden:
        chain.log_start[:3] = chain.log_transitions[2, 3:] = -np.inf
    log_emissions = 5 * rng.normal(size=(533, 7))
    bounds = np.array([0, 500, 501, 533])
    *fast, slow = (solve_paths(chain, log_emissions, bounds, s, **way) for way in WAYS)
    for solved in fast:
        for ours, theirs in zip(solved, slow):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    for ours, theirs in zip(*fast):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_little_data_are_solved_without_a_compiler(monkeypatch):
    """Unless their numbers underflow; and whether data are little does not depend on the piece."""
    seen = []
    monkeypatch.setattr(chains, "forward_backward", lambda *arguments: seen.append("compiled"))
    chain, bounds = Chain(np.log([0.5, 0.5]), np.log(np.full((2, 2), 0.5))), np.array([0, 4])
    assert solve_paths(chain, np.zeros((4, 2)), bounds).log_normalizers[0] == pytest.approx(0.0)
    assert not seen
    solve_paths(chain, np.zeros((4, 2)), bounds, n_rows=10**6)
    solve_paths(Chain(chain.log_start - 900, chain.log_transitions), np.zeros((4, 2)), bounds)
    assert seen == ["compiled"] * 2
    some = Sequences(np.zeros(10**6), lengths=[10] * 10**5)[3:5]
    assert (some.n_rows, some[1:].n_rows, len(some.rows)) == (10**6, 10**6, 20)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_most_probable_path_matches_enumeration(monkeypatch, compiled):
    rng = np.random.default_rng(1)
    chain = Chain(rng.normal(size=3), rng.normal(size=(3, 3)))
    log_emissions, bounds = rng.normal(size=(12, 3)), np.array([0, 5, 6, 12])
    monkeypatch.setattr(chains, "LITTLE", 0 if compiled else 1000)
    log_joints, states = best_paths(chain, log_emissions, bounds)
    for i, (first, last) in enumerate(pairwise(bounds)):
        paths, joint, _, _ = enumerated(chain, log_emissions[first:last], 1.0)
        assert log_joints[i] == pytest.approx(joint.max())
        np.testing.assert_array_equal(states[first:last], paths[joint.argmax()])


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_of_one_observation_are_a_mixture(kind):
    """Then no transition is ever made, and every number is that of the mixture."""
    model, data, posterior = tiny(kind, lengths=[1] * 6)
    prior = model.prior()
    mixture = Mixture(model.likelihood, model.states, prior.start, prior.emissions)
    as_mixture = Natural(weights=posterior.start, components=posterior.emissions)
    ours = model.local_step(data, model.expectations(posterior), 0.7)
    theirs = mixture.local_step(data.rows, mixture.expectations(as_mixture), 0.7)
    np.testing.assert_allclose(ours.energies, theirs.energies)
    assert ours.entropy == pytest.approx(theirs.entropy)
    np.testing.assert_allclose(ours.statistics.start, theirs.statistics.weights)
    np.testing.assert_allclose(ours.statistics.emissions, theirs.statistics.components)
    assert model.divergence(posterior, 0.6) == pytest.approx(
        mixture.divergence(as_mixture, 0.6)
        + np.sum(model.states.divergence(posterior.transitions, prior.transitions, 0.6))
    )
    grid = np.array([0.6, 1.0])
    np.testing.assert_allclose(
        model.local_log_normalizer(model.expectations(posterior), grid, data),
        np.repeat(
            mixture.local_log_normalizer(mixture.expectations(as_mixture), grid, data.rows), 6, 0
        ),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("s", TEMPERATURES, ids=["cold", "hot", "one a sequence"])
def test_the_tempered_bound_never_falls(kind, s):
    model, data, posterior = tiny(kind, lengths=[9, 1, 6])
    bounds = []
    for _ in range(25):
        local = model.local_step(data, model.expectations(posterior), s)
        bounds.append(local.tempered_energy + local.entropy - model.divergence(posterior))
        posterior = model.prior() + local.statistics
    assert np.diff(bounds).min() > -1e-9
    assert bounds[-1] > bounds[0] + 0.1


def test_with_one_state_the_bound_is_the_evidence():
    model, data, _ = tiny("poisson", k=1)
    result = fit(model, data, progress=False)
    family = model.likelihood.conjugate
    evidence = np.sum(model.likelihood.log_base_measure(data.rows)) + np.sum(
        family.log_normalizer(result.posterior.emissions)
        - family.log_normalizer(model.prior().emissions)
    )
    assert result.elbo == pytest.approx(evidence, rel=1e-10)


def test_log_normalizers_match_enumeration_of_paths_and_symbols():
    """Σ over all paths and all strings of p^s, each probability by its own moment."""
    model, data, posterior = tiny("categorical", lengths=[3, 1, 2, 3], k=2)
    grid = np.array([0.3, 0.8, 1.0])
    found = model.local_log_normalizer(model.expectations(posterior), grid, data)
    start, moves, symbols = (
        np.exp(model.states.log_moment(posterior.start, grid)),  # [M, K]
        np.exp(model.states.log_moment(posterior.transitions, grid)),  # [K, M, K]
        np.exp(model.likelihood.conjugate.log_moment(posterior.emissions, grid)),  # [K, M, V]
    )
    for row, length in enumerate(data.lengths):
        for m in range(len(grid)):
            total = 0.0
            for path in product(range(2), repeat=length):
                for string in product(range(4), repeat=length):
                    weight = start[m, path[0]]
                    for before, after in pairwise(path):
                        weight *= moves[before, m, after]
                    for state, symbol in zip(path, string):
                        weight *= symbols[state, m, symbol]
                    total += weight
            assert found[row, m] == pytest.approx(np.log(total), rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(found[:, -1], 0.0, atol=1e-10)  # at T = 1 all sums to 1


def drawn_sequences(n=150, seed=0):
    """Sequences of three well parted states of sticky chains, of unequal lengths."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 40, size=n)
    rows = []
    for length in lengths:
        state = rng.integers(3)
        for _ in range(length):
            rows.append(5.0 * state + rng.normal())
            if rng.random() < 0.1:
                state = rng.integers(3)
    return Sequences(np.array(rows)[:, None], lengths)


def gaussian_model():
    likelihood = DiagonalGaussian(1)
    prior = likelihood.conjugate.natural(np.full(1, 5.0), 0.1, 1.0, 1.0)
    return HiddenMarkov(likelihood, 3, emission_prior=prior)


def test_threads_and_blocks_of_memory_leave_every_bit(monkeypatch):
    data, model = drawn_sequences(), gaussian_model()
    assert len(data) > 2 * model.shard_size
    one, two = (
        fit(model, data, temperature=LocalTempering(), max_passes=2, n_threads=n, progress=False)
        for n in (1, 3)
    )
    for name in one.posterior:
        np.testing.assert_array_equal(one.posterior[name], two.posterior[name])
    assert one.elbo == two.elbo
    before = model.local_step(data, model.expectations(one.posterior), 0.5)
    monkeypatch.setattr("tempering.models.hmm.model.BLOCK_NUMBERS", 7 * 8)
    after = model.local_step(data, model.expectations(one.posterior), 0.5)
    np.testing.assert_allclose(after.energies, before.energies, rtol=1e-12)
    np.testing.assert_allclose(after.statistics.emissions, before.statistics.emissions, rtol=1e-10)


@pytest.mark.parametrize(
    "policy",
    [None, Annealing(schedules.linear(1.5), passes=20), LocalTempering(), VariationalTempering()],
    ids=["VI", "annealing", "local", "variational"],
)
def test_every_policy_ends_at_the_same_states(policy):
    """The three states are far apart; a seed whose start finds them under plain VI."""
    data, model = drawn_sequences(), gaussian_model()
    result = fit(model, data, temperature=policy, max_passes=60, seed=1, progress=False)
    means = model.likelihood.conjugate.point(result.posterior.emissions).mean.ravel()
    np.testing.assert_allclose(np.sort(means), [0.0, 5.0, 10.0], atol=0.3)
    transitions = model.states.mean_weights(result.posterior.transitions)
    np.testing.assert_allclose(np.diag(transitions), 0.93, atol=0.04)


def test_minibatches_of_sequences_come_near_the_batch_fit():
    data, model = drawn_sequences(), gaussian_model()
    options = {"seed": 1, "progress": False}
    whole = fit(model, data, max_passes=40, **options)
    online = fit(model, data, batch_size=30, max_passes=60, **options,
                 learning_rate=lambda step: (10 + step) ** -0.7)  # fmt: skip
    assert online.elbo > whole.elbo - 0.005 * abs(whole.elbo)


def test_a_checkpoint_is_taken_up_again(tmp_path):
    data, model = drawn_sequences(40), gaussian_model()
    whole = fit(model, data, max_passes=12, progress=False)

    kept = {"checkpoint": tmp_path / "kept", "max_passes": 12, "progress": False}

    class Stop(Exception):
        pass

    def fail(report):
        if report.record.step == 4:
            raise Stop

    with pytest.raises(Stop):
        fit(model, data, callbacks=[fail], **kept)
    again = fit(model, data, **kept)
    assert again.elbo == whole.elbo
    with pytest.raises(ValueError, match="rows"):
        fit(model, drawn_sequences(40, seed=1), **kept)


def test_models_and_sequences_can_be_pickled():
    model, data, posterior = pickle.loads(pickle.dumps(tiny("tied")))
    assert model.local_step(data, model.expectations(posterior), 1.0).n == 3


def test_sequences_are_cut_like_rows():
    data = Sequences(np.arange(10), [3, 1, 2, 4])
    np.testing.assert_array_equal(data[1:3].rows, [3, 4, 5])
    assert data[1:3].rows.base is not None  # no copy
    np.testing.assert_array_equal(data[np.array([0, 3])].rows, [0, 1, 2, 6, 7, 8, 9])
    np.testing.assert_array_equal(data[np.array([0, 3])].lengths, [3, 4])
    assert [(which.start, which.stop) for which, _ in data.blocks(5)] == [(0, 2), (2, 3), (3, 4)]
    assert [len(block.rows) for _, block in data.blocks(1)] == [3, 1, 2, 4]
    assert [len(block) for _, block in data.blocks(100)] == [4]
    assert ArraySource(data).size == 4


@pytest.mark.parametrize(
    ("lengths", "problem"),
    [
        ([3, 4], "add up to 7"),
        ([10, 0], "sequence 1 has 0"),
        ([12, -2], "sequence 1 has -2"),
        ([2.5, 7.5], "whole"),
        ([np.inf], "whole"),
        (["a"], "whole"),
        ([[10]], "one a sequence"),
        ([], "there is none"),
    ],
)
def test_lengths_that_cannot_be_are_refused(lengths, problem):
    with pytest.raises(ValueError, match=problem):
        Sequences(np.arange(10), lengths)


def test_wrong_data_and_priors_are_refused_by_name():
    model, data, posterior = tiny("categorical")
    with pytest.raises(ValueError, match="Sequences"):
        fit(model, data.rows)
    with pytest.raises(ValueError, match="row 0 holds 9"):
        fit(model, Sequences(np.full(3, 9)))
    with pytest.raises(ValueError, match="transition_prior must hold numbers of 0 or more"):
        HiddenMarkov(Categorical(2), 2, 1.0, [1.0, -1.0], emission_prior=[1.0, 1.0])
    with pytest.raises(ValueError, match="start_prior must be one number, or of the shape"):
        HiddenMarkov(Categorical(2), 2, [1.0, 1.0, 1.0], emission_prior=[1.0, 1.0])
    with pytest.raises(ValueError, match="proper Dirichlet"):
        HiddenMarkov(Categorical(2), 2, emission_prior=[1.0, -1.0])
    with pytest.raises(ValueError, match="initial"):
        fit(model, data, initial=0.0 * posterior)
