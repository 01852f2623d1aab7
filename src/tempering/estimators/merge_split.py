"""Merge-split moves: what coordinate ascent cannot do, step by step uphill.

A mixture that is stuck has two components on one cluster and one over two. Each round scores every
merge and every split, and applies the best disjoint pairs at once. Scores are differences of the
ELBO at the best q(β) given q(z), with h(r) = −r log r, S_k the statistics of component k,
ev(S) = a(α + S) − a(α) the log evidence of soft statistics, and W(n) that of the mixing weights:

    Σ_k ev(S_k) + W(n) + Σ_i Σ_k h(r_ik) + Σ_i log h(x_i).

Ueda and Ghahramani (2002), "Bayesian model search for mixture models based on optimizing
variational bounds", Neural Networks 15. Hughes and Sudderth (2013), "Memoized online variational
inference for Dirichlet process mixture models", NIPS.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import entr, xlogy

from tempering.estimators.starts import alike, cluster_metric, column_metric, sum_over_shards
from tempering.families import Dirichlet, Likelihood, TiedGaussian, TiedNormalWishart
from tempering.inference import Algorithm, ArraySource, Batch, Constant, evaluate_elbo
from tempering.inference.executors import Executor, Serial
from tempering.models.mixture import Mixture, MixtureExpectations
from tempering.models.natural import Array, Natural
from tempering.temperature import Untempered


class Merge(NamedTuple):
    """Component ``second`` given to ``first``; a free slot is a merge of one with itself."""

    gain: float  # what the ELBO gains, mixing weights aside
    score: float  # with their part, roughly; what merges are ranked by
    first: int
    second: int

    @property
    def free(self) -> bool:
        return self.first == self.second

    @property
    def components(self) -> set[int]:
        return {self.first, self.second}


class ComponentSplit(NamedTuple):
    """A component cut in two."""

    gain: float
    score: float
    component: int
    share: float  # of its data, in the first half
    model: Mixture  # of the two halves
    halves: MixtureExpectations


class Overview(NamedTuple):
    """Sums over all data at one posterior, and the most probable component of each datum."""

    counts: Array  # n_k, [K]
    components: Array  # S_k, [K, size]
    overlaps: Array  # Σ_i r_ia r_ib, [K, K]
    labels: np.ndarray  # [N]


def merge_and_split(
    model: Mixture, data: Array, posterior: Natural, executor: Executor
) -> Natural | None:
    """λ after the best moves; None where no pair of them promises a higher ELBO."""
    expected = model.expectations(posterior)
    overview = look_over(model, data, expected, executor)
    merges = merge_candidates(model, data, expected, overview, executor)
    # Without a free slot a merge takes two components, and the split a third.
    if not any(merge.free or model.n_components > 2 for merge in merges):
        return None
    columns = column_metric(data)
    # Wider than the other components, or wider than the others of its columns: either may tell.
    metrics = [cluster_metric(model, data, posterior, columns, executor)]
    metrics += [] if alike(metrics[0], columns) else [columns]
    splits = split_candidates(model, data, overview.labels, metrics, executor)
    moves = choose_moves(model, overview.counts, merges, splits)
    if not moves:
        return None
    return model.prior() + moved_statistics(model, data, expected, moves, executor)


def look_over(
    model: Mixture, data: Array, expected: MixtureExpectations, executor: Executor
) -> Overview:
    """One pass over the data."""
    labels = np.empty(data.shape[0], dtype=np.intp)

    def sums_of(rows: slice) -> Natural:
        r = model.assign(data[rows], expected).probabilities
        labels[rows] = r.argmax(axis=1)
        components = model.statistics(data[rows], r).components
        return Natural(counts=r.sum(axis=0), components=components, overlaps=r.T @ r)

    return Overview(**sum_over_shards(sums_of, data.shape[0], executor), labels=labels)


def merge_candidates(
    model: Mixture,
    data: Array,
    expected: MixtureExpectations,
    overview: Overview,
    executor: Executor,
) -> list[Merge]:
    """Free slots, and each component with the one that it shares most data with; best first.

    gain = ev(S_a + S_b) − ev(S_a) − ev(S_b) − Σ_i [h(r_ia) + h(r_ib) − h(r_ia + r_ib)]
    """
    counts, statistics = overview.counts, overview.components
    free = counts < 1.0  # less than one datum
    merges = [Merge(0.0, 0.0, int(k), int(k)) for k in np.flatnonzero(free)]
    first, second = _closest_pairs(overview, free)
    if not len(first):
        return merges

    def lost_entropy(rows: slice) -> Natural:
        r = model.assign(data[rows], expected).probabilities
        a, b = r[:, first], r[:, second]
        return Natural(entropy=np.sum(entr(a) + entr(b) - entr(a + b), axis=0))

    gains = _joined_evidence(model, statistics, first, second)
    gains -= sum_over_shards(lost_entropy, data.shape[0], executor).entropy
    weights = _mass(counts[first] + counts[second]) - _mass(counts[first]) - _mass(counts[second])
    merges += [
        Merge(float(gain), float(gain + weight), int(a), int(b))
        for gain, weight, a, b in zip(gains, weights, first, second)
    ]
    return sorted(merges, key=lambda merge: -merge.score)


def _joined_evidence(
    model: Mixture, statistics: Array, first: np.ndarray, second: np.ndarray
) -> Array:
    """ev(S_a + S_b) − ev(S_a) − ev(S_b) for pairs of components."""
    prior, family = model.prior().components, model.likelihood.conjugate
    if isinstance(family, TiedNormalWishart):  # the evidence is that of all components together
        joined = []
        for a, b in zip(first, second):
            moved = statistics.copy()
            moved[a] += moved[b]
            moved[b] = 0.0
            joined.append(family.log_normalizer(prior + moved))
        return np.array(joined) - family.log_normalizer(prior + statistics)
    evidence = family.log_normalizer(prior + statistics) - family.log_normalizer(prior)
    joined = family.log_normalizer(prior[first] + statistics[first] + statistics[second])
    return joined - family.log_normalizer(prior[first]) - evidence[first] - evidence[second]


def _closest_pairs(overview: Overview, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each component that is not free, and the b that maximises Σ_i r_ia r_ib / min(n_a, n_b)."""
    taken = np.flatnonzero(~free)
    if len(taken) < 2:
        return taken[:0], taken[:0]
    counts = overview.counts[taken]
    shared = overview.overlaps[np.ix_(taken, taken)] / np.minimum.outer(counts, counts)
    np.fill_diagonal(shared, -1.0)
    pairs = np.sort(np.stack([taken, taken[shared.argmax(axis=1)]], axis=1), axis=1)
    first, second = np.unique(pairs, axis=0).T
    return first, second


def split_candidates(
    model: Mixture, data: Array, labels: np.ndarray, metrics: list[Array], executor: Executor
) -> list[ComponentSplit]:
    """Each component cut in two, best first. Its data are those that it is most probable for."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=model.n_components))
    members = np.split(order, ends[:-1])
    alone = _alone(model, data, labels, executor)
    # One component a worker, so that each split is computed in one fixed order.

    def best_split(k: int) -> ComponentSplit | None:
        points = data[members[k]]
        splits = [split_in_two(*alone[k], points, k, metric) for metric in metrics]
        return max(filter(None, splits), key=lambda split: split.score, default=None)

    splits = executor.map(best_split, range(model.n_components))
    return sorted(filter(None, splits), key=lambda split: -split.score)


def _alone(
    model: Mixture, data: Array, labels: np.ndarray, executor: Executor
) -> list[tuple[Likelihood, Array]]:
    """For each component, the likelihood of two halves of it, and the prior of each.

    Halves that share a precision with other components have what those tell of it as their prior.
    """
    prior, family = model.prior().components, model.likelihood.conjugate
    if not isinstance(family, TiedNormalWishart):
        return [(model.likelihood, own) for own in prior]
    halves, places = TiedGaussian(family.dimension, 2), np.eye(model.n_components)

    def statistics_of(rows: slice) -> Natural:
        return model.statistics(data[rows], places[labels[rows]])

    posterior = prior + sum_over_shards(statistics_of, data.shape[0], executor).components
    alone: list[tuple[Likelihood, Array]] = []
    for k in range(model.n_components):
        mean, kappa, degrees, scale = family.standard(
            np.where(np.arange(model.n_components)[:, None] == k, prior, posterior)
        )
        alone.append((halves, halves.conjugate.natural(mean[k], kappa[k], degrees, scale)[0]))
    return alone


def split_in_two(
    likelihood: Likelihood, prior: Array, data: Array, component: int, metric: Array
) -> ComponentSplit | None:
    """A mixture of two halves, started on the two sides of the widest direction.

    gain = ev(S_1) + ev(S_2) − ev(S_1 + S_2) + Σ_i Σ_j h(r_ij)
    """
    side = _side_of_centre(data, metric)
    if side.all() or not side.any():
        return None
    uniform = np.ones(2)
    halves = Mixture(likelihood, Dirichlet(2), uniform, prior)
    serial = Serial()

    def cut(rows: slice) -> Natural:
        hard = np.stack([side[rows], ~side[rows]], axis=1).astype(float)
        base = likelihood.log_base_measure(data[rows]).sum()
        return Natural(**halves.statistics(data[rows], hard), base=base)

    sums = sum_over_shards(cut, len(data), serial)
    posterior = halves.prior() + sums
    passes = 8
    algorithm = Algorithm(halves, Untempered(), Constant(), serial, len(data), passes)
    state = algorithm.start(posterior, np.random.default_rng(0))
    for _ in range(passes):
        state = algorithm.advance(state, Batch(data), evaluate=False).state
    posterior = state.posterior

    # All data in the first half.
    family, pair = likelihood.conjugate, halves.prior().components
    uncut = pair + np.stack([sums.components.sum(axis=0), np.zeros_like(prior)])
    whole = np.sum(family.log_normalizer(uncut) - family.log_normalizer(pair))
    score = evaluate_elbo(halves, posterior, ArraySource(data)) - whole - sums.base
    weights = halves.weights.log_normalizer(posterior.weights)
    weights -= halves.weights.log_normalizer(uniform)
    share = (posterior.weights[0] - 1.0) / len(data)
    expected = halves.expectations(posterior)
    return ComponentSplit(
        float(score - weights), float(score), component, float(share), halves, expected
    )


def _side_of_centre(data: Array, metric: Array) -> np.ndarray:
    """Whether a datum lies on the positive side of the widest direction through the mean."""
    if len(data) < 2:
        return np.zeros(len(data), bool)
    points = (data - data.mean(axis=0)) @ metric
    axis = np.linalg.eigh(points.T @ points)[1][:, -1]
    return points @ axis > 0


def choose_moves(
    model: Mixture, counts: Array, merges: list[Merge], splits: list[ComponentSplit]
) -> list[tuple[Merge, ComponentSplit]]:
    """Greedily, the best split with the best merge that frees a slot for it, on components apart.

    The mixing weights are counted exactly here, whichever their family.
    """
    moves: list[tuple[Merge, ComponentSplit]] = []
    used: set[int] = set()
    for split in splits:
        others = used | {split.component}
        merge = next((merge for merge in merges if not merge.components & others), None)
        if merge is None or split.component in used:
            continue
        after = _moved_counts(counts, merge, split)
        weights = _weights_evidence(model, after) - _weights_evidence(model, counts)
        if split.gain + merge.gain + weights > 0:
            moves.append((merge, split))
            used = others | merge.components
            counts = after
    return moves


def _moved_counts(counts: Array, merge: Merge, split: ComponentSplit) -> Array:
    after = counts.copy()
    if not merge.free:
        after[merge.first] += counts[merge.second]
    after[split.component] = split.share * counts[split.component]
    after[merge.second] = (1.0 - split.share) * counts[split.component]
    return after


def _weights_evidence(model: Mixture, counts: Array) -> float:
    """W(n), up to a constant."""
    statistics = model.weights.statistics_from_counts(counts)
    return float(model.weights.log_normalizer(model.prior().weights + statistics))


def moved_statistics(
    model: Mixture,
    data: Array,
    expected: MixtureExpectations,
    moves: list[tuple[Merge, ComponentSplit]],
    executor: Executor,
) -> Natural:
    """Statistics of all data with the moves made."""

    def statistics_of(rows: slice) -> Natural:
        r = model.assign(data[rows], expected).probabilities
        for merge, split in moves:
            shares = split.model.assign(data[rows], split.halves).probabilities
            # What little a free slot held goes to the component that is split.
            receiver = split.component if merge.free else merge.first
            r[:, receiver] += r[:, merge.second]
            r[:, merge.second] = r[:, split.component] * shares[:, 1]
            r[:, split.component] *= shares[:, 0]
        return model.statistics(data[rows], r)

    return sum_over_shards(statistics_of, data.shape[0], executor)


def _mass(counts: Array) -> Array:
    """n log n − n ≈ log Γ(n): what the mixing weights' evidence is made of."""
    return xlogy(counts, counts) - counts
