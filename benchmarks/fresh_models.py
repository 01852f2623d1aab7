"""Five conjugate models of sequences, networks and tables, as an outside judge would write them.

And the list of these and of those in `fresh_clusters` and `fresh_features`.

`BEDS` has functions of a seed that return a model and data.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import gammaln, softmax, xlogy

from fresh_clusters import (
    HotRankings,
    choose,
    column,
    one_covariance,
    rankings,
    students,
    zero_inflated,
)
from fresh_features import features, subspaces, survey
from tempering import LocalStep, Model, Natural
from tempering.families import Dirichlet, Gamma, MultivariateNormalGamma, NormalWishart

# 8. and 9. Hidden chains


def forward_backward(start, moves, seen):
    """q(z) [n, T, K], expected moves [n, K, K] and the logarithm of the sum over all paths, from
    logarithms: of the start [1 or n, K], of the moves [1 or n, K, K], of what is seen [n, T, K]."""
    n, length, _ = seen.shape
    top = seen.max(axis=2, keepdims=True)
    seen, moves = np.exp(seen - top), np.exp(moves)
    forward, backward, size = np.empty_like(seen), np.ones_like(seen), np.empty((n, length, 1))
    for t in range(length):
        before = np.squeeze(forward[:, t - 1, None] @ moves, axis=1) if t else np.exp(start)
        forward[:, t] = before * seen[:, t]
        size[:, t] = forward[:, t].sum(axis=1, keepdims=True)
        forward[:, t] /= size[:, t]
    ahead = seen / size
    for t in reversed(range(length - 1)):
        ahead[:, t + 1] *= backward[:, t + 1]
        backward[:, t] = np.squeeze(moves @ ahead[:, t + 1, :, None], axis=2)
    pairs = moves * (forward[:, :-1].transpose(0, 2, 1) @ ahead[:, 1:])
    return forward * backward, pairs, np.log(size).sum(axis=(1, 2)) + top.sum(axis=(1, 2))


class HiddenRegimes(Model):
    """A hidden Markov chain in each row of data; what a state says of each moment is of a family.

    A datum is [T, columns]; `features` turns moments into what the family's parameters weigh.
    """

    def __init__(self, k, family, one, constant):
        self.k, self.family, self.constant = k, family, constant
        self.families = {"start": Dirichlet(k), "moves": Dirichlet(k), "states": family}
        self.components = {"start": 0, "moves": (0, 1), "states": 0}
        self._prior = Natural(start=np.ones(k), moves=np.ones((k, k)), states=np.tile(one, (k, 1)))

    def features(self, x):
        raise NotImplementedError

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.full(self.k, 0.5), size=x.shape[:2])
        pairs = np.einsum("nti,ntj->ij", q[:, :-1], q[:, 1:])
        statistics = self.statistics(self.features(x), q, pairs)
        return self._prior + source.size / len(x) * statistics

    def statistics(self, seen, q, pairs):
        states = np.tensordot(q, seen, axes=([0, 1], [0, 1]))
        return Natural(start=q[:, 0].sum(axis=0), moves=pairs, states=states)

    def expectations(self, posterior):
        return [f.expected_statistics(posterior[name]) for name, f in self.families.items()]

    def local_step(self, x, expectations, inverse_temperature):
        start, moves, states = expectations
        s, seen = column(inverse_temperature), self.features(x)
        emitted = seen @ states.T + self.constant
        power = s[:, :, None]
        q, pairs, log_total = forward_backward(s * start, power * moves, power * emitted)
        energies = q[:, 0] @ start + (pairs * moves).sum(axis=(1, 2)) + (q * emitted).sum((1, 2))
        return LocalStep(
            self.statistics(seen, power * q, (power * pairs).sum(axis=0)),
            energies,
            float(np.sum(log_total - s[:, 0] * energies)),
            inverse_temperature,
            local=q,
        )


class GaussianRegimes(HiddenRegimes):
    """Several columns, of a mean and a covariance in each state."""

    def __init__(self, k, d):
        family = NormalWishart(d)
        one = family.natural(np.zeros(d), 0.05, d + 2.0, np.eye(d))
        super().__init__(k, family, one, -d / 2 * np.log(2 * np.pi))

    def features(self, x):
        flat = (x[..., :, None] * x[..., None, :]).reshape(*x.shape[:2], -1)
        return np.concatenate([x, flat, np.ones((*x.shape[:2], 2))], axis=2)


class RegressionRegimes(HiddenRegimes):
    """The last column, a linear function of the others in each state, with its own noise."""

    def __init__(self, k, d):
        family = MultivariateNormalGamma(d)
        one = family.natural(np.zeros(d), 0.2 * np.eye(d), 2.0, 0.3)
        super().__init__(k, family, one, -0.5 * np.log(2 * np.pi))

    def features(self, x):
        inputs, y = x[..., :-1], x[..., -1:]
        flat = (inputs[..., :, None] * inputs[..., None, :]).reshape(*x.shape[:2], -1)
        return np.concatenate([y * inputs, flat, y**2, np.ones_like(y)], axis=2)


def paths(rng, n, length, k, stay):
    """States that last for a while, and are then followed by a few others."""
    after, z = rng.dirichlet(np.full(k, 0.3), size=k), np.empty((n, length), int)
    z[:, 0] = rng.integers(k, size=n)
    for row in z:
        for t in range(1, length):
            row[t] = row[t - 1] if rng.random() < stay else rng.choice(k, p=after[row[t - 1]])
    return z


def regimes(seed, n=12, length=60, k=9, d=3):
    """Twelve sequences of nine states that overlap, three measurements at a time."""
    rng = np.random.default_rng(9800 + seed)
    z = paths(rng, n, length, k, 0.8)
    shapes = 0.6 * rng.normal(size=(k, d, d))
    noise = np.einsum("ntij,ntj->nti", shapes[z], rng.normal(size=(n, length, d)))
    return GaussianRegimes(k, d), 1.3 * rng.normal(size=(k, d))[z] + noise


def switching(seed, n=8, length=100, k=6, d=3):
    """Six laws of how an output follows two inputs, one after the other in time."""
    rng = np.random.default_rng(9900 + seed)
    z, weights = paths(rng, n, length, k, 0.9), 1.5 * rng.normal(size=(k, d))
    x = np.concatenate([rng.normal(size=(n, length, d - 1)), np.ones((n, length, 1))], axis=2)
    noise = rng.uniform(0.2, 0.8, size=k)[z] * rng.normal(size=(n, length))
    return RegressionRegimes(k, d), np.concatenate(
        [x, ((weights[z] * x).sum(axis=2) + noise)[..., None]], axis=2
    )


# 10. Kinds of chains


class Bursts(Model):
    """M kinds of sequences of counts, each a hidden Markov chain of K Poisson rates."""

    def __init__(self, kinds, k):
        self.m, self.k = kinds, k
        self.families = {
            "weights": Dirichlet(kinds),
            "start": Dirichlet(k),
            "moves": Dirichlet(k),
            "rates": Gamma(1),
        }
        self.components = {"weights": 0, "start": 0, "moves": 0, "rates": 0}
        self._prior = Natural(
            weights=np.ones(kinds),
            start=np.ones((kinds, k)),
            moves=np.ones((kinds, k, k)),
            rates=np.tile([1.0, 0.2], (kinds, k, 1)),
        )

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        kinds = rng.dirichlet(np.full(self.m, 0.5), size=len(x))
        q = kinds[:, :, None, None] * rng.dirichlet(
            np.full(self.k, 0.5), size=(len(x), self.m, x.shape[1])
        )
        pairs = q[:, :, :-1, :].transpose(0, 1, 3, 2) @ q[:, :, 1:, :]
        pairs /= np.maximum(kinds, 1e-12)[:, :, None, None]
        return self._prior + source.size / len(x) * self.statistics(x, kinds, q, pairs)

    def statistics(self, x, kinds, q, pairs):
        rates = np.stack([np.einsum("nmtk,nt->mk", q, x), q.sum(axis=(0, 2))], axis=2)
        return Natural(
            weights=kinds.sum(axis=0),
            start=q[:, :, 0].sum(axis=0),
            moves=pairs.sum(axis=0),
            rates=rates,
        )

    def expectations(self, posterior):
        return [f.expected_statistics(posterior[name]) for name, f in self.families.items()]

    def local_step(self, x, expectations, inverse_temperature):
        weights, start, moves, rates = expectations
        n, s = len(x), column(inverse_temperature)
        power = np.broadcast_to(s[:, :, None], (n, self.m, 1)).reshape(-1, 1, 1)
        seen = x[:, None, :, None] * rates[:, None, :, 0] + rates[:, None, :, 1]
        seen -= gammaln(x + 1)[:, None, :, None]  # [n, M, T, K]
        flat = seen.reshape(n * self.m, x.shape[1], self.k)
        all_starts, all_moves = np.tile(start, (n, 1)), np.tile(moves, (n, 1, 1))
        solved = forward_backward(power[:, 0] * all_starts, power * all_moves, power * flat)
        q, pairs, log_paths = (part.reshape(n, self.m, *part.shape[1:]) for part in solved)
        log_joint = weights + (q[:, :, 0] * start).sum(axis=2)
        log_joint += (pairs * moves).sum(axis=(2, 3)) + (q * seen).sum(axis=(2, 3))
        kinds, energies, entropy = choose(s * weights + log_paths, log_joint, s)
        use = (s * kinds)[:, :, None, None]
        statistics = self.statistics(x, s * kinds, use * q, use * pairs)
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=kinds)


def bursts(seed, n=120, length=16, kinds=8, k=2):
    """Eight kinds, each of a quiet and a busy state that last for a while in half of them."""
    rng = np.random.default_rng(10000 + seed)
    rates = rng.gamma(0.8, 10.0, size=(kinds, k))
    stay = np.where(np.arange(kinds) % 2, 0.3, 0.85)
    kind = rng.choice(kinds, p=rng.dirichlet(np.full(kinds, 3.0)), size=n)
    z = [paths(rng, 1, length, k, stay[own])[0] for own in kind]
    return Bursts(kinds, k), rng.poisson(rates[kind[:, None], np.stack(z)]).astype(float)


# 11. Messages


class Messages(Model):
    """Mixed memberships of people who write to each other.

    A datum is (from, to, number of messages). In each pair both act as a member of one of their
    groups, z = (a, b), and the number is Poisson with the rate of these two groups.
    """

    def __init__(self, people, k, alpha=0.2):
        self.p, self.k = people, k
        self.families = {"people": Dirichlet(k), "rates": Gamma(1)}
        self.components = {"people": 1, "rates": (0, 1)}
        self._prior = Natural(
            people=np.full((people, k), alpha), rates=np.tile([0.5, 0.5], (k, k, 1))
        )

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        shares = rng.dirichlet(np.full(self.k, 0.3), size=self.p)
        q = shares[x[:, 0].astype(int)][:, :, None] * shares[x[:, 1].astype(int)][:, None, :]
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def statistics(self, x, q):
        who = np.arange(self.p)
        people = (x[:, 0, None] == who).T @ q.sum(axis=2) + (x[:, 1, None] == who).T @ q.sum(axis=1)
        rates = np.stack([np.tensordot(x[:, 2], q, 1), q.sum(axis=0)], axis=2)
        return Natural(people=people, rates=rates)

    def expectations(self, posterior):
        return [f.expected_statistics(posterior[name]) for name, f in self.families.items()]

    def local_step(self, x, expectations, inverse_temperature):
        people, rates = expectations
        s, n = column(inverse_temperature), len(x)
        log_joint = people[x[:, 0].astype(int), :, None] + people[x[:, 1].astype(int), None, :]
        log_joint = log_joint + x[:, 2, None, None] * rates[..., 0] + rates[..., 1]
        log_joint = log_joint.reshape(n, -1) - gammaln(x[:, 2] + 1)[:, None]
        q, energies, entropy = choose(s * log_joint, log_joint, s)
        q = q.reshape(n, self.k, self.k)
        statistics = self.statistics(x, s[:, :, None] * q)
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=q)


def messages(seed, people=45, k=6):
    """All ordered pairs of the people, most of whom belong to one or two groups."""
    rng = np.random.default_rng(10100 + seed)
    shares = rng.dirichlet(np.full(k, 0.15), size=people)
    rates = rng.gamma(0.4, 2.0, size=(k, k)) + 4.0 * np.eye(k)
    pairs = np.array([(i, j) for i in range(people) for j in range(people) if i != j])
    a, b = ([rng.choice(k, p=shares[i]) for i in side] for side in pairs.T)
    data = np.c_[pairs, rng.poisson(rates[a, b])].astype(float)
    return Messages(people, k), data[rng.permutation(len(data))]


# 12. Blocks of a table


class Blocks(Model):
    """Kinds of rows and kinds of columns; a count is Poisson with the rate of both kinds.

    The kinds of columns are global: their logits, and the rates, are updated in turn from the sums
    over rows of each kind.
    """

    def __init__(self, rows, columns, n_columns, shape=0.5, rate=0.2):
        self.k, self.l, self.j = rows, columns, n_columns
        self.shares, self.gamma = Dirichlet(rows), Gamma(1)
        self.columns, self.cell = Dirichlet(columns), np.array([shape, rate])
        self.components = {"weights": 0, "sums": 0}
        self._prior = Natural(weights=np.ones(rows), sums=np.zeros((rows, n_columns)))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.full(self.k, 0.5), size=len(x))
        target = self._prior + source.size / len(x) * self.statistics(x, q)
        logits = np.log(rng.dirichlet(np.full(self.l, 0.5), size=self.j) + 1e-12)
        cells = np.tile(self.cell, (self.k, self.l, 1))
        nothing = Natural(
            weights=self._prior.weights, logits=logits, shares=np.ones(self.l), cells=cells
        )
        return self.global_step(nothing, target, 1.0)

    def statistics(self, x, q):
        return Natural(weights=q.sum(axis=0), sums=q.T @ x)

    def global_step(self, posterior, target, rate):
        q = softmax(posterior.logits, axis=1)
        sizes = target.weights - self._prior.weights  # of the kinds of rows
        use = np.stack([target.sums @ q, np.outer(sizes, q.sum(axis=0))], axis=2)
        cells = (1 - rate) * posterior.cells + rate * (self.cell + use)
        shares = (1 - rate) * posterior.shares + rate * (1 + q.sum(axis=0))
        log_rate, minus = np.moveaxis(self.gamma.expected_statistics(cells), 2, 0)
        logits = target.sums.T @ log_rate + sizes @ minus + self.columns.expected_statistics(shares)
        return Natural(
            weights=(1 - rate) * posterior.weights + rate * target.weights,
            logits=(1 - rate) * posterior.logits + rate * logits,
            shares=shares,
            cells=cells,
        )

    def divergence(self, posterior, prior_weight=1.0):
        q = softmax(posterior.logits, axis=1)
        log_shares = self.columns.expected_statistics(posterior.shares)
        return float(
            self.shares.divergence(posterior.weights, self._prior.weights, prior_weight)
            + self.columns.divergence(posterior.shares, np.ones(self.l), prior_weight)
            + self.gamma.divergence(posterior.cells, self.cell, prior_weight).sum()
            + xlogy(q, q).sum()
            - prior_weight * (q @ log_shares).sum()
        )

    def expectations(self, posterior):
        q = softmax(posterior.logits, axis=1)
        log_rate, minus = np.moveaxis(self.gamma.expected_statistics(posterior.cells), 2, 0)
        weights = self.shares.expected_statistics(posterior.weights)
        return weights + minus @ q.sum(axis=0), log_rate @ q.T

    def local_step(self, x, expectations, inverse_temperature):
        constant, log_rates = expectations
        s = column(inverse_temperature)
        log_joint = constant + x @ log_rates.T - gammaln(x + 1).sum(axis=1)[:, None]
        q, energies, entropy = choose(s * log_joint, log_joint, s)
        statistics = self.statistics(x, s * q)
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=q)


def blocks(seed, n=60, columns=50, k=7, kinds=6):
    """Sixty rows of small counts."""
    rng = np.random.default_rng(10200 + seed)
    rates = rng.gamma(0.7, 1.5, size=(k, kinds))
    z, c = rng.integers(k, size=n), rng.integers(kinds, size=columns)
    return Blocks(k, kinds, columns), rng.poisson(rates[z][:, c]).astype(float)


BEDS = {
    "one covariance": one_covariance,
    "heavy tails": students,
    "zeros": zero_inflated,
    "rankings": rankings,
    "rankings, hot y": partial(rankings, kind=HotRankings),
    "planes": subspaces,
    "survey": survey,
    "features": features,
    "regimes": regimes,
    "switching": switching,
    "bursts": bursts,
    "messages": messages,
    "blocks": blocks,
}
