"""Four models as a user of `fit` would write them.

None of them is in the package. They know nothing of temperatures beyond the inverse temperature
that `local_step` is handed, and stand here as test problems.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from tempering import LocalStep, Model, Natural
from tempering.families import Dirichlet, Gamma


def dirichlet_divergence(a, b):
    """KL between two arrays of Dirichlet rows."""
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    total = gammaln(a.sum(-1)) - gammaln(b.sum(-1)) - (gammaln(a) - gammaln(b)).sum(-1)
    expected = digamma(a) - digamma(a.sum(-1, keepdims=True))
    return float(np.sum(total + ((a - b) * expected).sum(-1)))


def expected_log(rows):
    """E log π of Dirichlet rows."""
    return digamma(rows) - digamma(rows.sum(-1, keepdims=True))


class CategoricalHMM(Model):
    """A datum is a row: one sequence of symbols 0 … V−1, all of one length."""

    def __init__(self, n_states, n_symbols, start=1.0, transition=1.0, emission=1.0):
        self.k, self.v = n_states, n_symbols
        self.components = {"start": 0, "transition": (0, 1), "emission": 0}
        self._prior = Natural(
            start=np.full(self.k, start),
            transition=np.full((self.k, self.k), transition),
            emission=np.full((self.k, self.v), emission),
        )

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.ones(self.k), size=x.shape)
        pairs = np.einsum("ntj,ntk->jk", q[:, :-1], q[:, 1:])
        statistics = Natural(start=q[:, 0].sum(0), transition=pairs, emission=self._emissions(x, q))
        return self._prior + source.size / len(x) * statistics

    def expectations(self, posterior):
        return tuple(expected_log(posterior[name]) for name in posterior)

    def local_step(self, x, expectations, inverse_temperature):
        start, transition, emission = expectations
        s = np.broadcast_to(np.asarray(inverse_temperature, float), len(x))[:, None]
        n, length = x.shape
        emitted = emission.T[x]  # [n, T, K]
        forward = np.empty((n, length, self.k))
        backward = np.zeros((n, length, self.k))
        forward[:, 0] = s * (start + emitted[:, 0])
        step = s[:, :, None] * transition  # [n, K, K]
        for t in range(1, length):
            forward[:, t] = s * emitted[:, t] + logsumexp(forward[:, t - 1, :, None] + step, axis=1)
        for t in range(length - 2, -1, -1):
            ahead = s * emitted[:, t + 1] + backward[:, t + 1]
            backward[:, t] = logsumexp(step + ahead[:, None, :], axis=2)
        log_total = logsumexp(forward[:, -1], axis=1)
        q = np.exp(forward + backward - log_total[:, None, None])
        pairs = np.zeros((n, self.k, self.k))
        for t in range(length - 1):
            ahead = s * emitted[:, t + 1] + backward[:, t + 1]
            pairs += np.exp(
                forward[:, t, :, None] + step + ahead[:, None] - log_total[:, None, None]
            )
        energies = (
            q[:, 0] @ start
            + np.einsum("njk,jk->n", pairs, transition)
            + np.einsum("ntk,ntk->n", q, emitted)
        )
        weighted = s[:, :, None] * q
        return LocalStep(
            Natural(
                start=weighted[:, 0].sum(0),
                transition=(s[:, :, None] * pairs).sum(0),
                emission=self._emissions(x, weighted),
            ),
            energies,
            float(np.sum(log_total - s[:, 0] * energies)),
            inverse_temperature,
        )

    def divergence(self, posterior, prior_weight=1.0):
        return sum(dirichlet_divergence(posterior[name], self._prior[name]) for name in posterior)

    def _emissions(self, x, q):
        table = np.zeros((self.v, self.k))
        np.add.at(table, x.ravel(), q.reshape(-1, self.k))
        return table.T


class PoissonFactors(Model):
    """x_ij ~ Poisson(Σ_k θ_ik β_kj), θ_ik ~ Gamma(a, b) local, β_kj ~ Gamma(c, d) global."""

    def __init__(self, n_factors, n_columns, a=0.3, b=0.3, c=0.3, d=0.3):
        self.k, self.v, self.a, self.b = n_factors, n_columns, a, b
        self.components = {"shape": 0, "rate": 0}
        self._prior = Natural(
            shape=np.full((n_factors, n_columns), c), rate=np.full((n_factors, n_columns), d)
        )

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        scale = source.size / len(x)
        share = rng.dirichlet(np.ones(self.k), size=x.shape)  # [n, V, K]
        return self._prior + Natural(
            shape=scale * np.einsum("nv,nvk->kv", x, share),
            rate=np.full((self.k, self.v), source.size * self.a / self.b),
        )

    def expectations(self, posterior):
        return digamma(posterior.shape) - np.log(posterior.rate), posterior.shape / posterior.rate

    def local_step(self, x, expectations, inverse_temperature):
        log_beta, beta = expectations
        s = np.broadcast_to(np.asarray(inverse_temperature, float), len(x))[:, None]
        shape = np.full((len(x), self.k), self.a) + s * x.sum(1, keepdims=True) / self.k
        rate = self.b + s * beta.sum(1)
        for _ in range(100):
            log_theta = digamma(shape) - np.log(rate)
            q = self._shares(log_theta, log_beta, s)
            new = self.a + s * np.einsum("nv,nkv->nk", x, q)
            change = np.abs(new - shape).max()
            shape = new
            if change < 1e-4:
                break
        log_theta = digamma(shape) - np.log(rate)
        q = self._shares(log_theta, log_beta, s)
        theta = shape / rate
        log_q = np.log(np.maximum(q, 1e-300))
        energies = (
            np.einsum("nv,nkv,nkv->n", x, q, log_theta[:, :, None] + log_beta)
            - theta @ beta.sum(1)
            - gammaln(x + 1).sum(1)
        )
        entropy = -np.einsum("nv,nkv,nkv->", x, q, log_q)
        entropy += np.sum(
            self.a * np.log(self.b)
            - gammaln(self.a)
            + (self.a - shape) * log_theta
            - (self.b - rate) * theta
            - shape * np.log(rate)
            + gammaln(shape)
        )
        return LocalStep(
            Natural(
                shape=np.einsum("nv,nkv->kv", s * x, q),
                rate=np.repeat((s * theta).sum(0)[:, None], self.v, axis=1),
            ),
            energies,
            float(entropy),
            inverse_temperature,
        )

    def divergence(self, posterior, prior_weight=1.0):
        a, b, c, d = posterior.shape, posterior.rate, self._prior.shape, self._prior.rate
        return float(
            np.sum(
                (a - c) * digamma(a) - gammaln(a) + gammaln(c) + c * np.log(b / d) + a * (d / b - 1)
            )
        )

    @staticmethod
    def _shares(log_theta, log_beta, s):
        log_q = s[:, :, None] * (log_theta[:, :, None] + log_beta)
        log_q -= log_q.max(1, keepdims=True)
        q = np.exp(log_q)
        return q / q.sum(1, keepdims=True)


class MixedRegressions(Model):
    """y ~ N(w_z · x, 1/τ_z), (w_k, τ_k) normal-gamma; a datum is a row (x, y)."""

    def __init__(self, n_components, n_inputs, precision=0.1, shape=1.0, rate=1.0):
        self.k, self.d = n_components, n_inputs
        self.components = dict.fromkeys(("weights", "precision", "mean", "shape", "rate"), 0)
        self._prior = Natural(
            weights=np.ones(self.k),
            precision=np.tile(precision * np.eye(self.d), (self.k, 1, 1)),
            mean=np.zeros((self.k, self.d)),
            shape=np.full(self.k, shape),
            rate=np.full(self.k, rate),
        )

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        data = source.sample(1000, rng)
        q = rng.dirichlet(np.ones(self.k), size=len(data))
        return self._prior + source.size / len(data) * self._statistics(data, q)

    def expectations(self, posterior):
        covariance = np.linalg.inv(posterior.precision)
        mean = np.einsum("kij,kj->ki", covariance, posterior.mean)
        rate = posterior.rate - 0.5 * np.einsum("ki,ki->k", mean, posterior.mean)
        tau = posterior.shape / rate
        return (
            expected_log(posterior.weights),
            mean,
            covariance,
            tau,
            digamma(posterior.shape) - np.log(rate),
        )

    def local_step(self, data, expectations, inverse_temperature):
        log_weights, mean, covariance, tau, log_tau = expectations
        x, y = data[:, :-1], data[:, -1]
        s = np.reshape(inverse_temperature, (-1, 1))
        error = (y[:, None] - x @ mean.T) ** 2
        spread = np.einsum("ni,kij,nj->nk", x, covariance, x)
        log_joint = log_weights + 0.5 * (log_tau - np.log(2 * np.pi) - tau * error - spread)
        log_total = logsumexp(s * log_joint, axis=1, keepdims=True)
        q = np.exp(s * log_joint - log_total)
        energies = (q * log_joint).sum(axis=1)
        return LocalStep(
            self._statistics(data, s * q),
            energies,
            float(np.sum(log_total - s * energies[:, None])),
            inverse_temperature,
        )

    def divergence(self, posterior, prior_weight=1.0):
        total = dirichlet_divergence(posterior.weights, self._prior.weights)
        covariance = np.linalg.inv(posterior.precision)
        mean = np.einsum("kij,kj->ki", covariance, posterior.mean)
        a, b = posterior.shape, posterior.rate - 0.5 * np.einsum("ki,ki->k", mean, posterior.mean)
        prior, c, e = self._prior.precision, self._prior.shape, self._prior.rate
        total += np.sum(
            (a - c) * digamma(a) - gammaln(a) + gammaln(c) + c * np.log(b / e) + a * (e / b - 1)
        )
        total += 0.5 * np.sum(
            np.linalg.slogdet(posterior.precision)[1]
            - np.linalg.slogdet(prior)[1]
            + np.einsum("kij,kji->k", prior, covariance)
            - self.d
            + a / b * np.einsum("ki,kij,kj->k", mean, prior, mean)
        )
        return float(total)

    def _statistics(self, data, q):
        x, y = data[:, :-1], data[:, -1]
        return Natural(
            weights=q.sum(0),
            precision=np.einsum("nk,ni,nj->kij", q, x, x),
            mean=np.einsum("nk,n,ni->ki", q, y, x),
            shape=0.5 * q.sum(0),
            rate=0.5 * q.T @ y**2,
        )


class ExponentialMixture(Model):
    """The model of docs/own-model.md, without the method that learned temperatures need."""

    def __init__(self, n_components, shape=1.0, rate=1.0):
        self.k = n_components
        self.weights, self.rates = Dirichlet(n_components), Gamma(1)
        self.components = {"weights": 0, "rates": 0}
        self._prior = Natural(weights=np.ones(self.k), rates=np.tile([shape, rate], (self.k, 1)))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        assignment = rng.dirichlet(np.ones(self.k), size=len(x))
        return self._prior + source.size / len(x) * self.statistics(x, assignment)

    def expectations(self, posterior):  # E log π, E log rate, E rate, and where they came from
        log_rate, minus_rate = self.rates.expected_statistics(posterior.rates).T
        return (
            self.weights.expected_log_weights(posterior.weights),
            log_rate,
            -minus_rate,
            posterior,
        )

    def local_step(self, x, expectations, inverse_temperature):
        log_weights, log_rate, rate, _ = expectations
        s = np.reshape(inverse_temperature, (-1, 1))  # one for all data, or one for each
        log_joint = log_weights + log_rate - rate * x[:, None]
        log_total = logsumexp(s * log_joint, axis=1, keepdims=True)
        q = np.exp(s * log_joint - log_total)
        energies = (q * log_joint).sum(axis=1)
        return LocalStep(
            statistics=self.statistics(x, s * q),
            energies=energies,
            entropy=float(np.sum(log_total - s * energies[:, None])),
            inverse_temperature=inverse_temperature,
        )

    def divergence(self, posterior, prior_weight=1.0):
        return float(
            self.weights.divergence(posterior.weights, self._prior.weights, prior_weight)
            + self.rates.divergence(posterior.rates, self._prior.rates, prior_weight).sum()
        )

    def statistics(self, x, assignment):  # a helper: what weighted assignments add to λ
        counts = assignment.sum(axis=0)
        return Natural(weights=counts, rates=np.stack([counts, assignment.T @ x], axis=1))
