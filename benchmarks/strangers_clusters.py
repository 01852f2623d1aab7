"""Four conjugate models as a user of `fit` would write them, with data drawn from a seed.

They were written by somebody who had not seen how temperatures are adapted; `strangers_models`
has five more, and the list.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, logsumexp
from sklearn.datasets import load_digits

from tempering import LocalStep, Model, Natural
from tempering.families import (
    Dirichlet,
    Gamma,
    MultivariateNormalGamma,
)


def log_dirichlet(rows):
    return digamma(rows) - digamma(rows.sum(axis=-1, keepdims=True))


def enumerate_z(log_joint, s):
    """q, energies and entropy where z_i has a few values: log_joint [n, values]."""
    column = np.reshape(s, (-1, 1))
    log_total = logsumexp(column * log_joint, axis=1, keepdims=True)
    q = np.exp(column * log_joint - log_total)
    energies = (q * log_joint).sum(axis=1)
    return q, energies, float(np.sum(log_total - column * energies[:, None])), column * q


def regression_parts(t, d):
    """What MultivariateNormalGamma(d).expected_statistics gives, as (w, ww', -τ/2, ½ log τ)."""
    return t[..., :d], t[..., d : d + d * d].reshape(*t.shape[:-1], d, d), t[..., -2], t[..., -1]


def regression_statistics(linear, matrix, squares, count):
    flat = matrix.reshape(*matrix.shape[:-2], -1)
    lead = linear.shape[:-1]
    return np.concatenate(
        [
            linear,
            np.broadcast_to(flat, (*lead, flat.shape[-1])),
            np.broadcast_to(squares, lead)[..., None],
            np.broadcast_to(count, lead)[..., None],
        ],
        axis=-1,
    )


# 1. Crowds


class Crowd(Model):
    """Dawid and Skene: items with a hidden class, labelled by a few of many workers.

    A datum is a row of answers, one a worker, -1 where the worker was not asked.
    """

    def __init__(self, n_workers, n_classes, right=2.0, wrong=1.0):
        self.w, self.k = n_workers, n_classes
        table = np.full((n_classes, n_classes), wrong) + (right - wrong) * np.eye(n_classes)
        self.families = {"weights": Dirichlet(n_classes), "tables": Dirichlet(n_classes)}
        self._prior = Natural(weights=np.ones(n_classes), tables=np.tile(table, (n_workers, 1, 1)))

    def prior(self):
        return self._prior

    def given(self, x):
        return (x[:, :, None] == np.arange(self.k)).astype(float)  # [n, W, V]

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        votes = self.given(x).sum(axis=1)
        q = rng.gamma(1.0 + 3.0 * votes)
        q /= q.sum(axis=1, keepdims=True)
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def statistics(self, x, q):
        tables = np.tensordot(q, self.given(x), axes=(0, 0))  # [K, W, V]
        return Natural(weights=q.sum(axis=0), tables=tables.transpose(1, 0, 2))

    def expectations(self, posterior):
        tables = log_dirichlet(posterior.tables)
        flat = tables.transpose(0, 2, 1).reshape(-1, self.k)  # [W V, K]
        return log_dirichlet(posterior.weights), flat, posterior

    def local_step(self, x, expectations, inverse_temperature):
        weights, flat, _ = expectations
        log_joint = weights + self.given(x).reshape(len(x), -1) @ flat
        _, energies, entropy, weighted = enumerate_z(log_joint, inverse_temperature)
        return LocalStep(self.statistics(x, weighted), energies, entropy, inverse_temperature)

    def local_log_normalizer(self, expectations, s, x):
        posterior = expectations[2]
        weights = self.families["weights"].log_moment(posterior.weights, s)  # [M, K]
        tables = self.families["tables"].log_moment(posterior.tables, s)  # [W, K, M, V]
        each = logsumexp(tables, axis=-1)  # [W, K, M]
        asked = (x >= 0).astype(float)
        return logsumexp(weights + np.tensordot(asked, each.transpose(0, 2, 1), 1), axis=-1)


def crowd(seed, n=500, workers=30, classes=6, labels=5):
    rng = np.random.default_rng(7000 + seed)
    tables = np.empty((workers, classes, classes))
    for worker in range(workers):
        kind, noise = rng.random(), rng.dirichlet(np.ones(classes), size=classes)
        if kind < 0.45:  # able
            tables[worker] = 0.7 * np.eye(classes) + 0.3 * noise
        elif kind < 0.75:  # gives an answer whatever the question
            tables[worker] = rng.dirichlet(np.full(classes, 0.5))
        else:  # mixes classes up
            tables[worker] = 0.8 * np.eye(classes)[rng.permutation(classes)] + 0.2 * noise
    z = rng.choice(classes, p=rng.dirichlet(np.full(classes, 2.0)), size=n)
    x = np.full((n, workers), -1)
    for item in range(n):
        for worker in rng.choice(workers, labels, replace=False):
            x[item, worker] = rng.choice(classes, p=tables[worker, z[item]])
    return Crowd(workers, classes), x


# 2. Cells of unknown depth


class Depths(Model):
    """Counts x_id ~ Poisson(g_i rate_kd): a depth g_i ~ Gamma(r, r) of each cell, K kinds of cells.

    With g summed out, a mixture of negative multinomials.
    """

    def __init__(self, k, n_columns, r=2.0, shape=0.5, rate=0.1):
        self.k, self.d, self.r = k, n_columns, r
        self.rates = Gamma(n_columns)
        self.families = {"weights": Dirichlet(k), "rates": self.rates}
        prior = self.rates.natural(np.full((k, n_columns), shape), rate)
        self.components = {"weights": 0, "rates": 0}
        self._prior = Natural(weights=np.ones(k), rates=prior)

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.ones(self.k), size=len(x))
        return self._prior + source.size / len(x) * self.statistics(x, q, q)

    def statistics(self, x, q, depths):
        times = np.repeat(depths.sum(axis=0)[:, None], self.d, axis=1)
        return Natural(weights=q.sum(axis=0), rates=np.concatenate([q.T @ x, times], axis=1))

    def expectations(self, posterior):
        log_rates, minus = np.split(self.rates.expected_statistics(posterior.rates), 2, axis=1)
        return log_dirichlet(posterior.weights), log_rates, -minus.sum(axis=1)

    def local_step(self, x, expectations, inverse_temperature):
        weights, log_rates, totals = expectations
        s = np.reshape(inverse_temperature, (-1, 1)).astype(float)
        known = weights + x @ log_rates.T - gammaln(x + 1).sum(axis=1)[:, None]
        known = known + self.r * np.log(self.r) - gammaln(self.r)
        power = x.sum(axis=1)[:, None] + self.r - 1  # of g
        shape, rate = s * power + 1, s * (self.r + totals)  # q(g | z)
        log_value = s * known + gammaln(shape) - shape * np.log(rate)
        log_total = logsumexp(log_value, axis=1, keepdims=True)
        q = np.exp(log_value - log_total)
        depth, log_depth = shape / rate, digamma(shape) - np.log(rate)
        energies = (q * (known + power * log_depth - (self.r + totals) * depth)).sum(axis=1)
        return LocalStep(
            self.statistics(x, s * q, s * q * depth),
            energies,
            float(np.sum(log_total - s * energies[:, None])),
            inverse_temperature,
        )


class ColdDepths(Depths):
    """The same, with the prior of g among what is not tempered. `check_model` takes both."""

    def local_step(self, x, expectations, inverse_temperature):
        weights, log_rates, totals = expectations
        s = np.reshape(inverse_temperature, (-1, 1)).astype(float)
        known = weights + x @ log_rates.T - gammaln(x + 1).sum(axis=1)[:, None]
        power, r = x.sum(axis=1)[:, None], self.r
        shape, rate = r + s * power, r + s * totals  # q(g | z)
        log_value = s * known + r * np.log(r) - gammaln(r) + gammaln(shape) - shape * np.log(rate)
        log_total = logsumexp(log_value, axis=1, keepdims=True)
        q = np.exp(log_value - log_total)
        depth, log_depth = shape / rate, digamma(shape) - np.log(rate)
        energies = (q * (known + power * log_depth - totals * depth)).sum(axis=1)
        return LocalStep(
            self.statistics(x, s * q, s * q * depth),
            energies,
            float(np.sum(log_total - s * energies[:, None])),
            inverse_temperature,
        )


def depths(seed, n=400, k=8, d=20, kind=Depths):
    """Sizes halve from kind to kind: 50%, 25%, … 0.4%."""
    rng = np.random.default_rng(7100 + seed)
    sizes = 0.5 ** np.arange(k)
    z = rng.choice(k, p=sizes / sizes.sum(), size=n)
    z[:k] = np.arange(k)
    rates = 2.0 * rng.dirichlet(np.full(d, 0.8), size=k) * d
    return kind(k, d), rng.poisson(rng.gamma(2.0, 0.5, n)[:, None] * rates[z]).astype(float)


# 3. Directions on a sphere


class Sphere(Model):
    """Von Mises and Fisher's distributions in three dimensions, of known concentration."""

    def __init__(self, k, concentration):
        self.k, self.c = k, concentration
        self._weights = Dirichlet(k)
        self.components = {"weights": 0, "means": 0}
        self._prior = Natural(weights=np.full(k, 0.5), means=np.zeros((k, 3)))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        """Some of the data as centres, as k-means would start."""
        x = source.sample(2000, rng)
        centres = x[rng.integers(len(x), size=self.k)] + 0.1 * rng.normal(size=(self.k, 3))
        near = self.c / 4 * (x @ centres.T)
        q = np.exp(near - logsumexp(near, axis=1, keepdims=True))
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def statistics(self, x, q):
        return Natural(weights=q.sum(axis=0), means=self.c * (q.T @ x))

    @staticmethod
    def log_normalizer(length):
        """log ∫ exp(η · m) dm = log 4π sinh(κ)/κ."""
        k = np.maximum(length, 1e-4)
        return np.log(4 * np.pi) + k + np.log(-np.expm1(-2 * k) / (2 * k))

    def mean(self, eta):
        k = np.maximum(np.linalg.norm(eta, axis=1, keepdims=True), 1e-4)
        return eta / k * np.where(k < 0.01, k / 3, 1 / np.tanh(k) - 1 / k)

    def expectations(self, posterior):
        return log_dirichlet(posterior.weights), self.mean(posterior.means), posterior

    def local_step(self, x, expectations, inverse_temperature):
        weights, means, _ = expectations
        log_joint = weights + self.c * (x @ means.T) - self.log_normalizer(self.c)
        _, energies, entropy, weighted = enumerate_z(log_joint, inverse_temperature)
        return LocalStep(self.statistics(x, weighted), energies, entropy, inverse_temperature)

    def divergence(self, posterior, prior_weight=1.0):
        eta = posterior.means
        lengths = np.linalg.norm(eta, axis=1)
        # The prior is uniform, of density 1 / 4π.
        means = (eta * self.mean(eta)).sum(axis=1) - self.log_normalizer(lengths)
        means += prior_weight * np.log(4 * np.pi)
        weights = self._weights.divergence(posterior.weights, self._prior.weights, prior_weight)
        return float(weights + means.sum())

    def local_log_normalizer(self, expectations, s, x):
        weights = self._weights.log_moment(expectations[2].weights, s)
        inside = self.log_normalizer(s * self.c) - s * self.log_normalizer(self.c)
        return (logsumexp(weights, axis=-1) + inside)[None]


def sphere(seed, n=1200, k=60, concentration=100.0):
    rng = np.random.default_rng(7200 + seed)
    centres = rng.normal(size=(k, 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    x = centres[rng.choice(k, p=rng.dirichlet(np.full(k, 2.0)), size=n)]
    x = x + rng.normal(size=x.shape) / np.sqrt(concentration)
    return Sphere(k, concentration), x / np.linalg.norm(x, axis=1, keepdims=True)


# 4. Pictures that are the sum of two of K parts


class Pairs(Model):
    """x = part_i + part_j + noise, z = (i < j) one of K (K − 1) / 2; each pixel has a variance."""

    def __init__(self, k, n_columns):
        self.k, self.d = k, n_columns
        first, second = np.triu_indices(k, 1)
        self.pairs = np.eye(k)[first] + np.eye(k)[second]  # [P, K]
        self.parts = MultivariateNormalGamma(k)
        self.families = {"weights": Dirichlet(len(first)), "parts": self.parts}
        one = self.parts.natural(np.zeros(k), np.eye(k), 2.0, 0.1)
        self._prior = Natural(weights=np.ones(len(first)), parts=np.tile(one, (n_columns, 1)))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = np.eye(len(self.pairs))[rng.integers(len(self.pairs), size=len(x))]
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def statistics(self, x, q):
        sizes = q.sum(axis=0)
        use, total = q @ self.pairs, q.sum(axis=1)
        matrix = np.einsum("p,pi,pj->ij", sizes, self.pairs, self.pairs)
        parts = regression_statistics(x.T @ use, matrix, total @ x**2, total.sum())
        return Natural(weights=sizes, parts=parts)

    def expectations(self, posterior):
        linear, matrix, half, log_half = regression_parts(
            self.parts.expected_statistics(posterior.parts), self.k
        )
        quadratic = np.einsum("pi,ij,pj->p", self.pairs, matrix.sum(axis=0), self.pairs)
        constant = log_dirichlet(posterior.weights) + quadratic + log_half.sum()
        return constant - 0.5 * self.d * np.log(2 * np.pi), linear @ self.pairs.T, half

    def local_step(self, x, expectations, inverse_temperature):
        constant, linear, half = expectations
        log_joint = constant + x @ linear + (x**2 @ half)[:, None]
        _, energies, entropy, weighted = enumerate_z(log_joint, inverse_temperature)
        return LocalStep(self.statistics(x, weighted), energies, entropy, inverse_temperature)


def pairs(seed, n=400, k=10):
    """Real data: pictures of digits, some of them by the seed."""
    rng = np.random.default_rng(7300 + seed)
    digits = load_digits().data / 16.0
    return Pairs(k, 64), digits[rng.permutation(len(digits))[:n]]
