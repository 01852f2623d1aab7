"""Pieces of long sequences: what they count together, and what a buffer is worth."""

import tracemalloc

import numpy as np
import pytest

from tempering import fit
from tempering.families import DiagonalGaussian, Poisson
from tempering.models import HiddenMarkov, Sequences
from tempering.models.hmm.chains import Chain, solve_paths
from tempering.models.hmm.sequences import piece_lengths
from tempering.models.natural import entry

LENGTHS = [90, 1, 31]


def problem(likelihood="gaussian", lengths=LENGTHS, seed=0, stay=0.0):
    """A model, rows, and a posterior that is neither the prior nor an optimum."""
    rng, k = np.random.default_rng(seed), 3
    n = sum(lengths)
    if likelihood == "gaussian":
        rows, family = rng.normal(size=(n, 2)), DiagonalGaussian(2)
        prior = family.conjugate.natural(np.zeros(2), 0.5, 1.5, 1.0)
    else:
        rows, family = rng.poisson(3.0, size=(n, 2)), Poisson(2)
        prior = family.conjugate.natural(1.5, 0.5)
    model = HiddenMarkov(family, k, 1.0, 1.0 + stay * np.eye(k), emission_prior=prior)
    assignment = rng.dirichlet(0.1 * np.ones(k), size=n)
    return model, rows, model.prior() + model.statistics(Sequences(rows, lengths), assignment)


def largest_difference(one, other):
    return max(np.abs(one.statistics[name] - other.statistics[name]).max() for name in ("start",
               "transitions", "emissions"))  # fmt: skip


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
@pytest.mark.parametrize("s", [1.0, 0.4])
def test_pieces_that_see_all_count_together_what_the_sequences_count(likelihood, s):
    model, rows, posterior = problem(likelihood)
    expected = model.expectations(posterior)
    whole = model.local_step(Sequences(rows, LENGTHS), expected, s)
    pieces = Sequences(rows, LENGTHS, piece_length=7, buffer=1000)
    assert len(pieces) == 13 + 1 + 5
    cut = model.local_step(pieces, expected, s)
    assert largest_difference(cut, whole) < 1e-9
    assert cut.energy == pytest.approx(whole.energy, rel=1e-10)
    assert cut.entropy == pytest.approx(whole.entropy, rel=1e-9)


def test_the_inner_part_is_counted_alike_in_all_ways_of_solving():
    rng = np.random.default_rng(0)
    chain = Chain(*(np.log(rng.dirichlet(np.ones(4), size=shape)) for shape in ((), (4,))))
    log_emissions, bounds = 3 * rng.normal(size=(60, 4)), np.array([0, 25, 26, 60])
    inner = np.array([[5, 20], [25, 26], [26, 50]]), np.array([False, True, True])
    ways = ({"n_rows": 1}, {"n_rows": 2**40}, {"logs_only": True})
    fast, *others = (
        solve_paths(chain, log_emissions, bounds, 0.7, inner=inner, **way) for way in ways
    )
    for other in others:
        for ours, theirs in zip(fast, other):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    # Moves into the inner rows; the second sequence has none, the third begins with its inner part.
    assert fast.transition_counts.sum() == pytest.approx(0.7 * (15 + 0 + 23))
    assert fast.start_counts.sum() == pytest.approx(0.7 * 2)


def test_a_longer_buffer_comes_nearer():
    model, rows, posterior = problem(lengths=[400], stay=20.0)
    expected = model.expectations(posterior)
    whole = model.local_step(Sequences(rows), expected, 1.0)
    cut = [
        model.local_step(Sequences(rows, piece_length=10, buffer=buffer), expected, 1.0)
        for buffer in (0, 5, 20, 80)
    ]
    errors = [largest_difference(each, whole) for each in cut]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[3] < 1e-6
    bounds = [abs(each.energy + each.entropy - whole.energy - whole.entropy) for each in cut]
    assert bounds[3] < 1e-6 < bounds[0]


def test_without_a_buffer_each_move_counts():
    model, rows, posterior = problem()
    pieces = Sequences(rows, LENGTHS, piece_length=5, buffer=0)
    step = model.local_step(pieces, model.expectations(posterior), 1.0)
    assert step.statistics.transitions.sum() == pytest.approx(sum(LENGTHS) - len(LENGTHS))
    assert step.statistics.start.sum() == pytest.approx(len(LENGTHS))


def test_minibatches_of_pieces_are_unbiased():
    model, rows, posterior = problem()
    expected = model.expectations(posterior)
    pieces = Sequences(rows, LENGTHS, piece_length=9, buffer=5)
    whole = model.local_step(pieces, expected, 1.0)
    alone = [model.local_step(pieces[i : i + 1], expected, 1.0) for i in range(len(pieces))]
    for name, part in whole.statistics.items():
        np.testing.assert_allclose(sum(each.statistics[name] for each in alone), part, atol=1e-9)
    some = pieces[np.array([0, 3, 4, 11])]
    np.testing.assert_array_equal(some.inner_lengths, pieces.inner_lengths[[0, 3, 4, 11]])
    np.testing.assert_allclose(
        model.local_step(some, expected, 1.0).energies, whole.energies[[0, 3, 4, 11]]
    )


def test_the_normalizer_of_a_piece_begins_where_the_chain_is_in_the_long_run():
    model, rows, posterior = problem(lengths=[9], stay=5.0)
    expected, s = model.expectations(posterior), np.array([0.3, 0.7, 1.0])
    first, later = model.local_log_normalizer(expected, s, Sequences(rows, [9], piece_length=5))
    whole = model.local_log_normalizer(expected, s, Sequences(rows[:5]))[0]
    np.testing.assert_array_equal(first, whole)
    model.fixed["start"] = np.exp(expected.log_shares())
    known = model.expectations(posterior)
    alone = model.local_log_normalizer(known, s, Sequences(rows[:4]))[0]
    np.testing.assert_allclose(later, alone, atol=1e-12)


def test_pieces_are_as_equal_as_can_be_and_stay_in_their_sequence():
    np.testing.assert_array_equal(piece_lengths([10, 1, 7], 18, 4), [4, 3, 3, 1, 4, 3])
    pieces = Sequences(np.arange(18), [10, 1, 7], piece_length=4, buffer=2)
    assert [pieces[i : i + 1].rows.tolist() for i in range(6)] == [
        [0, 1, 2, 3, 4, 5],
        [2, 3, 4, 5, 6, 7, 8],
        [5, 6, 7, 8, 9],
        [10],
        [11, 12, 13, 14, 15, 16],
        [13, 14, 15, 16, 17],
    ]
    for wrong in ({"piece_length": 0, "buffer": 1}, {"piece_length": 3, "buffer": -1}):
        with pytest.raises(ValueError, match=r"piece_length|buffer"):
            Sequences(np.arange(18), **wrong)


def test_memory_is_that_of_the_pieces_not_of_the_sequence(monkeypatch):
    monkeypatch.setattr("tempering.models.hmm.model.BLOCK_NUMBERS", 2**13)  # a piece has more
    model, rows, posterior = problem(lengths=[40_000])
    expected = model.expectations(posterior)

    def peak(data):
        model.local_step(data, expected, 1.0)  # compiles
        tracemalloc.start()
        model.local_step(data, expected, 1.0)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    whole = peak(Sequences(rows))
    short, long = (peak(Sequences(rows, piece_length=n, buffer=50)[:3]) for n in (4000, 8000))
    assert long < whole / 3
    assert long / short == pytest.approx(2.0, rel=0.1)


def test_pieces_longer_than_any_sequence_are_the_sequences():
    pieces = Sequences(np.arange(5.0)[:, None], [2, 3], piece_length=10**30, buffer=10**30)
    whole = Sequences(np.arange(5.0)[:, None], [2, 3])
    assert len(pieces) == len(whole) == 2
    np.testing.assert_array_equal(pieces[1:].rows, whole[1:].rows)


def test_states_are_kept_a_row_for_each_row_of_the_data():
    model, rows, _ = problem()
    result = fit(model, Sequences(rows, LENGTHS), keep_local=True, max_passes=30)
    chain, emissions = result.model.expectations(result.posterior)[1:]
    logs = model.likelihood.expected_log_likelihood(rows, emissions)
    bounds = np.cumsum([0, *LENGTHS])
    np.testing.assert_allclose(result.local, solve_paths(chain, logs, bounds).marginals)
    pieces = Sequences(rows, LENGTHS, piece_length=7, buffer=1000)
    np.testing.assert_allclose(result.solve_local(pieces), result.local)


def test_each_row_of_pieces_is_scored_and_simulated_once():
    model, rows, posterior = problem()
    parameters = entry(model.draw(posterior, 1, np.random.default_rng(0)), 0)
    whole = Sequences(rows, LENGTHS)
    pieces = Sequences(rows, LENGTHS, piece_length=7, buffer=1000)
    scores = model.log_likelihood(pieces, parameters)
    assert scores.shape == pieces.shape
    expected = model.log_likelihood(whole, parameters)
    np.testing.assert_allclose(scores.sum(), expected.sum(), rtol=1e-12)
    simulated = model.simulate(parameters, pieces, np.random.default_rng(0))
    alike = model.simulate(parameters, whole, np.random.default_rng(0))
    assert simulated.lengths.tolist() == LENGTHS
    np.testing.assert_array_equal(simulated.rows, alike.rows)
