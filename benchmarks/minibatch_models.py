"""Three more models as a user of `fit` would write them: test beds for policies in minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, softmax

from own_models import dirichlet_divergence, expected_log
from tempering import LocalStep, Model, Natural


class ClusterModel(Model):
    """z_i has one of some values: what its models share, given the log joint of each."""

    _prior: Natural
    n_values: int

    def prior(self) -> Natural:
        return self._prior

    def statistics(self, x: Any, q: Any) -> Natural:
        """Of data whose z has the (weighted) distribution q."""
        raise NotImplementedError

    def log_joint(self, x: Any, expectations: Any) -> Any:
        """E log p(x_i, z_i | β) for each value of z_i."""
        raise NotImplementedError

    def initialize(self, source: Any, rng: Any) -> Natural:
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.ones(self.n_values), len(x))
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def local_step(self, x: Any, expectations: Any, inverse_temperature: Any) -> LocalStep:
        log_joint = self.log_joint(x, expectations)
        s = np.reshape(inverse_temperature, (-1, 1))
        q = softmax(s * log_joint, axis=1)
        energies = (q * log_joint).sum(axis=1)
        entropy = float(np.sum(logsumexp(s * log_joint, axis=1) - s[:, 0] * energies))
        return LocalStep(self.statistics(x, s * q), energies, entropy, inverse_temperature)


def gamma_divergence(a: Any, b: Any, c: Any, d: Any) -> float:
    """KL(Gamma(a, b) ‖ Gamma(c, d)), b and d rates."""
    terms = (a - c) * digamma(a) - gammaln(a) + gammaln(c) + c * (np.log(b) - np.log(d))
    return float(np.sum(terms + a * (d - b) / b))


def mean_divergence(n: Any, mean: Any, precision: Any, n0: float) -> float:
    """The part of the means in the divergence of normal-gammas around 0."""
    return float(np.sum(0.5 * (np.log(n / n0) + n0 / n - 1) + 0.5 * n0 * precision * mean**2))


class ShiftedCurves(ClusterModel):
    """K templates of curves, each with a variance; each curve is turned by an unknown shift."""

    def __init__(self, k: int, length: int):
        self.k, self.length, self.n_values = k, length, k * length
        self._prior = Natural(
            weights=np.ones(k),
            n=np.full(k, 0.1),
            sums=np.zeros((k, length)),
            shape=np.full(k, 2.0),
            rate=np.full(k, 0.5),
        )
        self.turns = (np.arange(length)[None] + np.arange(length)[:, None]) % length

    def statistics(self, x: Any, q: Any) -> Natural:
        q = q.reshape(len(x), self.k, self.length)
        counts = q.sum(axis=(0, 2))
        return Natural(
            weights=counts,
            n=counts,
            sums=np.einsum("nks,nsl->kl", q, x[:, self.turns]),
            shape=self.length / 2 * counts,
            rate=0.5 * np.einsum("nks,n->k", q, (x**2).sum(axis=1)),
        )

    def _moments(self, posterior: Any) -> Any:
        rate = posterior.rate - 0.5 * (posterior.sums**2).sum(axis=1) / posterior.n
        return posterior.sums / posterior.n[:, None], posterior.shape, rate

    def expectations(self, posterior: Any) -> Any:
        mean, shape, rate = self._moments(posterior)
        constants = expected_log(posterior.weights) - np.log(self.length)
        constants += 0.5 * self.length * (digamma(shape) - np.log(rate) - np.log(2 * np.pi))
        return constants - 0.5 * self.length / posterior.n, mean, shape / rate

    def log_joint(self, x: Any, expectations: Any) -> Any:
        constants, mean, precision = expectations
        squares = (x**2).sum(axis=1)[:, None, None] + (mean**2).sum(axis=1)[:, None]
        squares = squares - 2 * np.einsum("nsl,kl->nks", x[:, self.turns], mean)
        log_joint = constants[:, None] - 0.5 * precision[:, None] * squares
        return log_joint.reshape(len(x), -1)

    def divergence(self, posterior: Any, prior_weight: float = 1.0) -> float:
        prior, (mean, shape, rate) = self._prior, self._moments(posterior)
        n, precision = posterior.n[:, None], (shape / rate)[:, None]
        return (
            dirichlet_divergence(posterior.weights, prior.weights)
            + gamma_divergence(shape, rate, prior.shape, prior.rate)
            + mean_divergence(np.broadcast_to(n, mean.shape), mean, precision, 0.1)
        )


class MixedColumns(ClusterModel):
    """K groups of rows with counts, real numbers and answers to questions."""

    def __init__(self, k: int, n_counts: int = 3, n_reals: int = 3, answers: Any = (4, 4)):
        self.n_values, self.n_counts, self.n_reals = k, n_counts, n_reals
        self.n_questions, self.n_answers = answers
        self._prior = Natural(
            weights=np.ones(k),
            count_shape=np.full((k, n_counts), 1.0),
            count_rate=np.full((k, n_counts), 0.2),
            n=np.full((k, n_reals), 0.1),
            sums=np.zeros((k, n_reals)),
            shape=np.full((k, n_reals), 2.0),
            rate=np.full((k, n_reals), 1.0),
            tables=np.full((k, *answers), 0.7),
        )

    def _columns(self, x: Any) -> Any:
        counts, reals, answers = np.split(x, [self.n_counts, self.n_counts + self.n_reals], axis=1)
        return counts, reals, answers.astype(int)

    def statistics(self, x: Any, q: Any) -> Natural:
        counts, reals, answers = self._columns(x)
        n = np.repeat(q.sum(axis=0)[:, None], self.n_reals, axis=1)
        return Natural(
            weights=q.sum(axis=0),
            count_shape=q.T @ counts,
            count_rate=np.repeat(q.sum(axis=0)[:, None], self.n_counts, axis=1),
            n=n,
            sums=q.T @ reals,
            shape=n / 2,
            rate=0.5 * q.T @ reals**2,
            tables=np.einsum("nk,ndv->kdv", q, np.eye(self.n_answers)[answers]),
        )

    def _moments(self, posterior: Any) -> Any:
        mean = posterior.sums / posterior.n
        return mean, posterior.shape, posterior.rate - 0.5 * posterior.sums * mean

    def expectations(self, posterior: Any) -> Any:
        mean, shape, rate = self._moments(posterior)
        counts = posterior.count_shape, posterior.count_rate
        constants = expected_log(posterior.weights) - (counts[0] / counts[1]).sum(axis=1)
        spread = digamma(shape) - np.log(rate) - np.log(2 * np.pi) - 1 / posterior.n
        log_rates, tables = digamma(counts[0]) - np.log(counts[1]), expected_log(posterior.tables)
        return constants + 0.5 * spread.sum(axis=1), log_rates, mean, shape / rate, tables

    def log_joint(self, x: Any, expectations: Any) -> Any:
        constants, log_rates, mean, precision, tables = expectations
        counts, reals, answers = self._columns(x)
        log_joint = constants + counts @ log_rates.T - gammaln(counts + 1).sum(axis=1)[:, None]
        log_joint -= 0.5 * np.einsum("kd,nkd->nk", precision, (reals[:, None] - mean) ** 2)
        for question in range(self.n_questions):
            log_joint += tables[:, question, answers[:, question]].T
        return log_joint

    def divergence(self, posterior: Any, prior_weight: float = 1.0) -> float:
        prior, (mean, shape, rate) = self._prior, self._moments(posterior)
        rows = self.n_values * self.n_questions, self.n_answers
        counts = posterior.count_shape, posterior.count_rate, prior.count_shape, prior.count_rate
        return (
            dirichlet_divergence(posterior.weights, prior.weights)
            + dirichlet_divergence(posterior.tables.reshape(rows), prior.tables.reshape(rows))
            + gamma_divergence(*counts)
            + gamma_divergence(shape, rate, prior.shape, prior.rate)
            + mean_divergence(posterior.n, mean, shape / rate, 0.1)
        )


class MarkovChains(ClusterModel):
    """K kinds of chains; a datum is a row of symbols 0 … V−1."""

    def __init__(self, k: int, n_symbols: int):
        self.n_values, self.v = k, n_symbols
        self._prior = Natural(weights=np.ones(k), moves=np.full((k, n_symbols, n_symbols), 0.5))

    def _moves(self, x: Any) -> Any:
        counts = np.zeros((len(x), self.v, self.v))
        rows = np.repeat(np.arange(len(x)), x.shape[1] - 1)
        np.add.at(counts, (rows, x[:, :-1].ravel(), x[:, 1:].ravel()), 1)
        return counts

    def statistics(self, x: Any, q: Any) -> Natural:
        return Natural(weights=q.sum(axis=0), moves=np.einsum("nk,nab->kab", q, self._moves(x)))

    def expectations(self, posterior: Any) -> Any:
        return expected_log(posterior.weights), expected_log(posterior.moves)

    def log_joint(self, x: Any, expectations: Any) -> Any:
        weights, moves = expectations
        return weights + np.einsum("nab,kab->nk", self._moves(x), moves)

    def divergence(self, posterior: Any, prior_weight: float = 1.0) -> float:
        rows = self.n_values * self.v, self.v
        own, prior = (model.moves.reshape(rows) for model in (posterior, self._prior))
        weights = dirichlet_divergence(posterior.weights, self._prior.weights)
        return weights + dirichlet_divergence(own, prior)
