"""Four conjugate models of clusters, as an outside judge of `fit` would write them.

Each comes with a function of a seed that draws data and gives (model, data). `fresh_models` has the
list of these and more.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from tempering import LocalStep, Model, Natural
from tempering.families import (
    Beta,
    Dirichlet,
    Gamma,
    NormalWishart,
    TiedNormalWishart,
)


def column(s):
    """An inverse temperature for all data, or one for each, as a column."""
    return np.reshape(np.asarray(s, float), (-1, 1))


def choose(log_weights, log_joint, s):
    """q(z) of data whose z has a few values, from s log p(x, z) [n, values] with all else summed
    out, and from its expectation; and the entropy of all of it."""
    log_total = logsumexp(log_weights, axis=1, keepdims=True)
    q = np.exp(log_weights - log_total)
    energies = (q * log_joint).sum(axis=1)
    return q, energies, float(np.sum(log_total[:, 0] - column(s)[:, 0] * energies))


def products(x):
    """Columns and their products: what a Gaussian of any covariance needs of a row."""
    return np.concatenate([x, (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)], axis=1)


class Clusters(Model):
    """What mixtures share: a start of random assignments."""

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.full(self.k, 0.5), size=len(x))
        return self._prior + source.size / len(x) * self.statistics(x, q)


# 1. One covariance for all


class OneCovariance(Clusters):
    """K Gaussians that have one unknown covariance in common."""

    def __init__(self, k, d):
        self.k, self.d = k, d
        self.tied = TiedNormalWishart(d, k)
        self.families = {"weights": Dirichlet(k), "components": self.tied}
        self.components = {"weights": 0, "components": 0}
        self._prior = Natural(
            weights=np.ones(k),
            components=self.tied.natural(np.zeros((k, d)), 0.05, d + 2.0, np.eye(d)),
        )

    def statistics(self, x, q):
        counts = q.sum(axis=0)
        return Natural(weights=counts, components=np.c_[q.T @ products(x), counts, counts])

    def expectations(self, posterior):
        components = self.tied.expected_statistics(posterior.components)
        return self.families["weights"].expected_statistics(posterior.weights), components

    def local_step(self, x, expectations, inverse_temperature):
        weights, components = expectations
        constant = weights + components[:, -2:].sum(axis=1) - self.d / 2 * np.log(2 * np.pi)
        log_joint = constant + products(x) @ components[:, :-2].T
        s = column(inverse_temperature)
        q, energies, entropy = choose(s * log_joint, log_joint, s)
        return LocalStep(self.statistics(x, s * q), energies, entropy, inverse_temperature, local=q)


def one_covariance(seed, n=240, k=12, d=4):
    """Long parallel clusters, few data in each."""
    rng = np.random.default_rng(9100 + seed)
    shape = rng.normal(size=(d, d)) * np.array([1.6, 0.6, 0.4, 0.3])[:d]
    z = rng.integers(k, size=n)
    return OneCovariance(k, d), 1.6 * rng.normal(size=(k, d))[z] + rng.normal(size=(n, d)) @ shape.T


# 2. Heavy tails


class Students(Clusters):
    """K multivariate t distributions: the precision of each datum is g_i Λ_k, g_i ~ Gamma(ν/2, ν/2)
    unknown. Heat flattens the law of g, as it does that of any other latent variable."""

    def __init__(self, k, d, degrees=3.0):
        self.k, self.d, self.half = k, d, degrees / 2
        self.family = NormalWishart(d)
        self.families = {"weights": Dirichlet(k), "components": self.family}
        one = self.family.natural(np.zeros(d), 0.05, d + 2.0, np.eye(d))
        self.components = {"weights": 0, "components": 0}
        self._prior = Natural(weights=np.ones(k), components=np.tile(one, (k, 1)))

    def statistics(self, x, q, scaled=None):
        scaled = q if scaled is None else scaled
        parts = scaled.T @ products(x), scaled.sum(axis=0), q.sum(axis=0)
        return Natural(weights=parts[2], components=np.c_[parts])

    def expectations(self, posterior):
        components = self.family.expected_statistics(posterior.components)
        return self.families["weights"].expected_statistics(posterior.weights), components

    def local_step(self, x, expectations, inverse_temperature):
        weights, components = expectations
        s = column(inverse_temperature)
        distance = -2 * (products(x) @ components[:, :-2].T + components[:, -2])
        known = weights + components[:, -1] - self.d / 2 * np.log(2 * np.pi)
        known = known + self.half * np.log(self.half) - gammaln(self.half)
        power, rate = self.d / 2 + self.half - 1, self.half + distance / 2
        shape = s * power + 1  # q(g | z) is Gamma(shape, s rate)
        log_weights = s * known + gammaln(shape) - shape * np.log(s * rate)
        log_joint = known + power * (digamma(shape) - np.log(s * rate)) - shape / s
        q, energies, entropy = choose(log_weights, log_joint, s)
        statistics = self.statistics(x, s * q, q * shape / rate)
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=q)


def students(seed, n=1000, k=12, d=3):
    """Clusters of unequal size with heavy tails, and one datum in twenty that is anywhere."""
    rng = np.random.default_rng(9200 + seed)
    shapes = 0.5 * rng.normal(size=(k, d, d)) + 0.2 * np.eye(d)
    z = rng.choice(k, p=rng.dirichlet(np.full(k, 2.0)), size=n)
    noise = np.einsum("nij,nj->ni", shapes[z], rng.normal(size=(n, d)))
    x = 2.5 * rng.normal(size=(k, d))[z] + noise / np.sqrt(rng.gamma(2.0, 0.5, size=(n, 1)))
    stray = rng.random(n) < 0.05
    x[stray] = rng.uniform(-10, 10, size=(stray.sum(), d))
    return Students(k, d), x


# 3. Too many zeros


class ZeroInflated(Clusters):
    """K kinds of rows of counts: a count is 0 for want of an opportunity, or is Poisson."""

    def __init__(self, k, d):
        self.k, self.d = k, d
        self.rates, self.open = Gamma(d), Beta(d)
        self.families = {"weights": Dirichlet(k), "rates": self.rates, "open": self.open}
        self.components = {"weights": 0, "rates": 0, "open": 0}
        self._prior = Natural(
            weights=np.ones(k),
            rates=self.rates.natural(np.ones((k, d)), 0.2),
            open=np.ones((k, 2 * d)),
        )

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.full(self.k, 0.5), size=len(x))
        half = np.full((1, self.k, self.d), 0.5)
        return self._prior + source.size / len(x) * self.statistics(x, q, half)

    def statistics(self, x, q, share):
        """Of assignments q and the shares [n or 1, K, D] of zeros with an opportunity."""
        seen = q.T @ (x > 0)
        if len(share) == 1:
            zeros = q.T @ (x == 0)
            idle, busy = zeros * (1 - share[0]), seen + zeros * share[0]
        else:
            chances = np.einsum("nk,nd,nkd->kd", q, x == 0, share)
            idle, busy = q.T @ (x == 0) - chances, seen + chances
        rates = np.concatenate([q.T @ x, busy], axis=1)
        return Natural(
            weights=q.sum(axis=0), rates=rates, open=np.concatenate([busy, idle], axis=1)
        )

    def expectations(self, posterior):
        weights = self.families["weights"].expected_statistics(posterior.weights)
        rates = np.split(self.rates.expected_statistics(posterior.rates), 2, axis=1)
        return weights, *rates, *np.split(self.open.expected_statistics(posterior.open), 2, axis=1)

    def local_step(self, x, expectations, inverse_temperature):
        weights, log_rate, minus, log_open, log_shut = expectations
        s = column(inverse_temperature)
        empty, power = log_open + minus, s[:, :, None]
        either = np.logaddexp(power * empty, power * log_shut)  # [1 or n, K, D], of a zero
        share = np.exp(power * empty - either)
        mean = share * empty + (1 - share) * log_shut
        zeros, positive = (x == 0).astype(float), (x > 0).astype(float)
        seen = weights + x @ log_rate.T + positive @ empty.T - gammaln(x + 1).sum(axis=1)[:, None]
        of_zeros = [
            zeros @ part[0].T if len(part) == 1 else np.einsum("nd,nkd->nk", zeros, part)
            for part in (either, mean)
        ]
        q, energies, entropy = choose(s * seen + of_zeros[0], seen + of_zeros[1], s)
        statistics = self.statistics(x, s * q, share)
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=q)


def zero_inflated(seed, n=4000, k=40, d=12):
    """Forty kinds, the largest a hundred times the smallest."""
    rng = np.random.default_rng(9300 + seed)
    sizes = np.exp(-np.linspace(0, 4.6, k))
    z = rng.choice(k, p=sizes / sizes.sum(), size=n)
    rates, chance = rng.gamma(1.0, 5.0, size=(k, d)), rng.beta(1.0, 1.0, size=(k, d))
    x = rng.poisson(rates[z]) * (rng.random((n, d)) < chance[z])
    return ZeroInflated(k, d), x.astype(float)


# 4. Rankings


class Rankings(Clusters):
    """K kinds of voters, each with a weight for each of J choices (Plackett and Luce).

    A datum is the first M choices of a voter, best first: a choice is drawn by the weights of those
    that are left. Hidden waiting times y ~ Exp(weights left) make the gamma distribution conjugate.
    In heat, ∫ p(choice, y)^s dy would be no longer of the choice alone, and push all weights to 0,
    so q(y) is always that of T = 1: p(choice) is what is tempered.
    """

    def __init__(self, k, choices):
        self.k, self.j = k, choices
        self.appeal = Gamma(choices)
        self.families = {"weights": Dirichlet(k), "appeal": self.appeal}
        prior = self.appeal.natural(np.ones((k, choices)), 1.0)
        self.components = {"weights": 0, "appeal": 0}
        self._prior = Natural(weights=np.ones(k), appeal=prior)

    def check(self, x):
        if np.any(np.diff(np.sort(x, axis=1), axis=1) == 0):
            raise ValueError("nobody may choose the same twice")

    def chosen(self, x):
        return (x[:, :, None] == np.arange(self.j)).astype(float)  # [n, M, J]

    def statistics(self, x, q, waits=None):
        chosen = self.chosen(x)
        if waits is None:  # while all weights are 1
            left = 1.0 / (self.j - np.arange(x.shape[1]))
            waits = np.tile(left[:, None], (len(x), 1, self.k))
        waits = q[:, None, :] * waits
        after = waits[:, ::-1].cumsum(axis=1)[:, ::-1] - waits  # of choices made later
        counts = q.T @ chosen.sum(axis=1)
        times = waits.sum(axis=(0, 1))[:, None] - np.einsum(
            "nmk,nmj->kj", after, chosen, optimize=True
        )
        return Natural(weights=q.sum(axis=0), appeal=np.concatenate([counts, times], axis=1))

    def expectations(self, posterior):
        weights = self.families["weights"].expected_statistics(posterior.weights)
        log_appeal, minus = np.split(self.appeal.expected_statistics(posterior.appeal), 2, axis=1)
        return weights, log_appeal.T, -minus.T

    def local_step(self, x, expectations, inverse_temperature):
        weights, log_appeal, appeal = expectations
        s, ranks = column(inverse_temperature), x.astype(int)
        mine = appeal[ranks]  # [n, M, K]
        left = appeal.sum(axis=0) - (mine.cumsum(axis=1) - mine)
        log_joint = weights + (log_appeal[ranks] - np.log(left)).sum(axis=1)
        q, energies, entropy = choose(s * log_joint, log_joint, s)
        statistics = self.statistics(x, s * q, 1 / left)
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=q)


class HotRankings(Rankings):
    """The same, with p(choice, y)^s, as of any other latent variable. `check_model` takes both."""

    def local_step(self, x, expectations, inverse_temperature):
        weights, log_appeal, appeal = expectations
        s, ranks = column(inverse_temperature), x.astype(int)
        mine = appeal[ranks]
        left = appeal.sum(axis=0) - (mine.cumsum(axis=1) - mine)
        known = weights + log_appeal[ranks].sum(axis=1)
        log_weights = s * known - np.log(s[:, :, None] * left).sum(axis=1)
        q, energies, entropy = choose(log_weights, known - x.shape[1] / s, s)
        statistics = self.statistics(x, s * q, 1 / (s[:, :, None] * left))
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=q)


def rankings(seed, n=600, k=12, choices=12, told=6, kind=Rankings):
    """The first six of twelve choices, by voters of twelve kinds."""
    rng = np.random.default_rng(9700 + seed)
    appeal, z = 2.5 * rng.normal(size=(k, choices)), rng.integers(k, size=n)
    order = np.argsort(-(appeal[z] + rng.gumbel(size=(n, choices))), axis=1)
    return kind(k, choices), order[:, :told].astype(float)
