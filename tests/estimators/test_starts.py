"""The annealed start, and annealing again in a better metric."""

import numpy as np
import pytest

from tempering import BayesianGaussianMixture
from tempering.estimators.starts import (
    SHARD_ROWS,
    Moments,
    merge_coincident,
    random_assignment,
    split_critical,
    start_assignment,
    sum_over_shards,
)
from tempering.inference.executors import Serial
from tempering.models import Natural

GRID = np.array([(i, j) for i in range(3) for j in range(3)], float)


def grid(n=3000, std=0.12, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 9, size=n)
    return GRID[labels] + std * rng.normal(size=(n, 2)), labels


def centres(X, assignment):
    return assignment.T @ X / assignment.sum(axis=0)[:, None]


def annealed_assignment(X, n_components, n_threads=1):
    shards = start_assignment("annealed", X, n_components, None, n_threads)
    return np.concatenate([assignment for _, assignment in shards])


def assert_same_points(found, wanted, atol):
    distances = np.linalg.norm(found[:, None] - wanted, axis=2)
    assert sorted(distances.argmin(axis=0)) == list(range(len(wanted)))
    np.testing.assert_array_less(distances.min(axis=0), atol)


@pytest.mark.parametrize("units", [(1.0, 1.0), (1.0, 1000.0), (1e-6, 1e6)])
def test_every_cluster_of_a_grid_is_found(units):
    """Whatever the units of the columns."""
    X, _ = grid()
    assignment = annealed_assignment(X * units, 9)
    np.testing.assert_allclose(assignment.sum(axis=1), 1.0)
    assert_same_points(centres(X, assignment), GRID, atol=0.05)
    counts = assignment.sum(axis=0)
    assert np.all(np.diff(counts) <= 1.0), "the largest cluster comes first"


def test_the_order_of_the_rows_does_not_matter():
    X, _ = grid()
    order = np.random.default_rng(1).permutation(len(X))
    straight, shuffled = centres(X, annealed_assignment(X, 9)), annealed_assignment(X[order], 9)
    assert_same_points(centres(X[order], shuffled), straight, atol=1e-9)


def test_threads_do_not_change_a_bit():
    X, _ = grid(3 * SHARD_ROWS)
    np.testing.assert_array_equal(
        annealed_assignment(X, 9, n_threads=1), annealed_assignment(X, 9, n_threads=2)
    )


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("X", "n_components", "occupied"),
    [
        (np.array([[3.0, 4.0]]), 1, 1),
        (np.ones((5, 2)), 3, 1),
        (np.repeat(RNG.normal(size=(3, 2)), 10, axis=0), 5, 3),
        (RNG.normal(size=(4, 3)), 4, 4),
        (np.column_stack([RNG.normal(size=50), np.full(50, 1e8)]), 3, 3),
        (RNG.normal(size=(300, 100)), 5, 5),
        (RNG.normal(size=(50, 2)), 1, 1),
    ],
    ids=["one sample", "one point", "3 points", "N = K", "constant column", "D = 100", "K = 1"],
)
def test_odd_data_are_assigned(X, n_components, occupied):
    assignment = annealed_assignment(X, n_components)
    assert assignment.shape == (len(X), n_components)
    np.testing.assert_allclose(assignment.sum(axis=1), 1.0)
    assert np.count_nonzero(assignment.sum(axis=0) > 1e-6) == occupied


def test_starts_by_name_come_in_shards():
    X, _ = grid(SHARD_ROWS + 10)
    for name in ("annealed", "kmeans", "random"):
        rows, parts = zip(*start_assignment(name, X, 9, np.random.RandomState(0)))
        assert [len(part) for part in parts] == [SHARD_ROWS, 10]
        assert rows[1] == slice(SHARD_ROWS, 2 * SHARD_ROWS)
        np.testing.assert_allclose(np.concatenate(parts).sum(axis=1), 1.0)
        if name == "random":
            whole = random_assignment(X, 9, np.random.RandomState(0))
            np.testing.assert_array_equal(np.concatenate(parts), whole)
    with pytest.raises(ValueError, match="the start must be one of annealed, kmeans"):
        next(start_assignment("cold", X, 9, np.random.RandomState(0)))


def moments_of(*groups):
    """Of groups of points that belong to one centre each."""
    squares = np.stack([group.T @ group for group in groups])
    sums = np.stack([group.sum(axis=0) for group in groups])
    return Moments(np.array([float(len(group)) for group in groups]), sums, squares)


#: Four points around the origin whose covariance has the eigenvalues 4 and 1.
CROSS = np.sqrt(2) * np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


def test_a_centre_splits_at_its_critical_temperature():
    """Along the axis on which its points spread most, to both sides."""
    np.testing.assert_array_equal(split_critical(moments_of(CROSS), 4.1, 5), [[0.0, 0.0]])
    halves = split_critical(moments_of(CROSS), 3.9, 5)
    assert len(halves) == 2
    np.testing.assert_allclose(halves[0], -halves[1], atol=1e-12)
    np.testing.assert_allclose(np.abs(halves[0]), [1.0, 0.0], atol=1e-12)


def test_the_coarsest_split_comes_first():
    """With room for one more centre, the wider group takes it."""
    wide, narrow = CROSS + np.array([20.0, 0.0]), 0.5 * CROSS
    centres = split_critical(moments_of(narrow, wide), 0.1, 3)
    assert len(centres) == 3
    assert np.any(np.all(np.abs(centres) < 1e-9, axis=1))
    assert np.count_nonzero(centres[:, 0] > 10) == 2


def test_centres_that_have_not_parted_are_joined():
    apart, near = (CROSS + np.array([x, 0.0]) for x in (9.0, 0.3))
    joined = merge_coincident(moments_of(CROSS, apart, near), 1.0)
    np.testing.assert_allclose(sorted(joined.counts), [4.0, 8.0])
    np.testing.assert_allclose(sorted(joined.centres[:, 0]), [0.15, 9.0])
    assert len(merge_coincident(moments_of(CROSS, apart, near), 0.8).counts) == 3


def test_sums_over_many_shards_are_whole():
    n = 40 * SHARD_ROWS + 3
    rows = sum_over_shards(lambda rows: Natural(n=np.arange(n)[rows].sum()), n, Serial())
    assert rows.n == n * (n - 1) // 2


@pytest.mark.parametrize("noise", [0.12, 10.0])
def test_columns_of_noise_do_not_mislead(noise):
    """The first annealing splits along the noise; the metric of what it found sets it right."""
    X, _ = grid(4000)
    X = np.column_stack([X, noise * np.random.default_rng(1).normal(size=(len(X), 3))])
    model = BayesianGaussianMixture(9, merge_split=False).fit(X)
    assert_same_points(model.means_[:, :2], GRID, atol=0.05)
    assert np.all(np.diff([r.step for r in model.history_]) == 1)
