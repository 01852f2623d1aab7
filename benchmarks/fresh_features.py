"""Three conjugate models with local variables other than a class: places, shares, features.

Each comes with a function of a seed that draws data and gives (model, data). `fresh_models` has the
list of these and more.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, xlog1py, xlogy

from fresh_clusters import Clusters, choose, column
from tempering import LocalStep, Model, Natural
from tempering.families import Beta, Dirichlet, MultivariateNormalGamma

# 5. Planes


class Subspaces(Clusters):
    """K planes with noise around them: x_d = w_kd · (u, 1) + N(0, 1/τ_kd), u ~ N(0, 1).

    Heat leaves the law of u alone, so that places on a plane keep their unit.
    """

    def __init__(self, k, d, q):
        self.k, self.d, self.q = k, d, q
        self.rows = MultivariateNormalGamma(q + 1)
        self.families = {"weights": Dirichlet(k), "rows": self.rows}
        one = self.rows.natural(np.zeros(q + 1), np.diag([1.0] * q + [0.1]), 2.0, 0.5)
        self.components = {"weights": 0, "rows": 0}
        self._prior = Natural(weights=np.ones(k), rows=np.tile(one, (k, d, 1)))

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        r = rng.dirichlet(np.full(self.k, 0.5), size=len(x))
        u = rng.normal(size=(len(x), self.k, self.q))
        spread = np.eye(self.q) + u[..., :, None] * u[..., None, :]
        return self._prior + source.size / len(x) * self.statistics(x, r, u, spread)

    def statistics(self, x, r, u, spread):
        count, use = r.sum(axis=0), r[..., None] * u
        linear = np.concatenate(
            [np.einsum("nkq,nd->kdq", use, x, optimize=True), (r.T @ x)[..., None]], axis=2
        )
        matrix = np.empty((self.k, self.q + 1, self.q + 1))
        matrix[:, :-1, :-1] = np.einsum("nk,nkij->kij", r, spread)
        matrix[:, -1, :-1] = matrix[:, :-1, -1] = use.sum(axis=0)
        matrix[:, -1, -1] = count
        flat = np.broadcast_to(matrix.reshape(self.k, 1, -1), (self.k, self.d, (self.q + 1) ** 2))
        ends = (r.T @ x**2)[..., None], np.broadcast_to(count[:, None, None], (self.k, self.d, 1))
        return Natural(weights=count, rows=np.concatenate([linear, flat, *ends], axis=2))

    def expectations(self, posterior):
        t = self.rows.expected_statistics(posterior.rows)
        linear, width = t[..., : self.q + 1], self.q + 1
        matrix = -2 * t[..., width:-2].sum(axis=1).reshape(self.k, width, width)
        constant = self.families["weights"].expected_statistics(posterior.weights)
        constant = constant + t[..., -1].sum(axis=1) - self.d / 2 * np.log(2 * np.pi)
        return constant, linear, matrix, t[..., -2]

    def local_step(self, x, expectations, inverse_temperature):
        constant, linear, matrix, half = expectations
        s = column(inverse_temperature)
        pull = np.einsum("nd,kdq->nkq", x, linear, optimize=True) - matrix[:, -1] / 2
        fixed = constant + x**2 @ half.T + pull[..., -1]
        pull = pull[..., :-1] - matrix[:, -1, :-1] / 2
        inner, power = matrix[:, :-1, :-1], s[:, :, None, None]
        precision = power * inner + np.eye(self.q)  # [1 or n, K, q, q]
        covariance = np.linalg.inv(precision)
        u = np.squeeze(covariance @ (s[:, :, None] * pull)[..., None], axis=-1)
        log_weights = s * fixed + 0.5 * s * (u * pull).sum(axis=2)
        log_weights -= 0.5 * np.linalg.slogdet(precision)[1]
        spread = covariance + u[..., :, None] * u[..., None, :]
        log_joint = fixed + (u * pull).sum(axis=2) - 0.5 * (inner * spread).sum(axis=(2, 3))
        r, energies, entropy = choose(log_weights, log_joint, s)
        statistics = self.statistics(x, s * r, u, spread)
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=r)


def subspaces(seed, n=500, k=7, d=8, q=2):
    """Planes in eight dimensions that pass near one another."""
    rng = np.random.default_rng(9400 + seed)
    planes, z = rng.normal(size=(k, d, q)), rng.integers(k, size=n)
    x = np.einsum("ndq,nq->nd", planes[z], rng.normal(size=(n, q)))
    x += 0.5 * rng.normal(size=(k, d))[z] + 0.4 * rng.normal(size=(n, d))
    return Subspaces(k, d, q), x


# 6. Answers of people who belong to several classes


class Survey(Model):
    """Grade of membership: each answer by one of a person's classes, of which they have shares.

    A datum is a row of answers, one a question. q(z) of the answers and q(shares) depend on each
    other, so steps go on from the shares of the step before.
    """

    continues_steps = True

    def __init__(self, k, questions, answers, alpha=0.3, sweeps=5):
        self.k, self.j, self.v, self.alpha, self.sweeps = k, questions, answers, alpha, sweeps
        self.families = {"tables": Dirichlet(answers)}
        self.components = {"tables": 1}
        self._prior = Natural(tables=np.full((questions, k, answers), 0.5))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.ones(self.k), size=x.shape)
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def statistics(self, x, q):
        given = x[:, :, None] == np.arange(self.v)
        return Natural(tables=np.einsum("njv,njk->jkv", given.astype(float), q))

    def expectations(self, posterior):
        return self.families["tables"].expected_statistics(posterior.tables).transpose(0, 2, 1)

    def local_step(self, x, expectations, inverse_temperature):
        start = np.full((len(x), self.k), self.alpha + self.j / self.k)
        return self.solve(start, x, expectations, inverse_temperature, 4 * self.sweeps)

    def continue_local_step(self, local, x, expectations, inverse_temperature):
        return self.solve(local.local, x, expectations, inverse_temperature, self.sweeps)

    def solve(self, shares, x, tables, inverse_temperature, sweeps):
        s, family = column(inverse_temperature), Dirichlet(self.k)
        log_seen = tables[np.arange(self.j), x.astype(int)]  # [n, J, K]
        for _ in range(sweeps):
            log_weights = s[:, :, None] * (
                family.expected_statistics(shares)[:, None, :] + log_seen
            )
            q = np.exp(log_weights - log_weights.max(axis=2, keepdims=True))
            q /= q.sum(axis=2, keepdims=True)
            shares = 1 + s * (self.alpha - 1 + q.sum(axis=1))
        log_shares = family.expected_statistics(shares)
        energies = (q * (log_seen + log_shares[:, None, :])).sum(axis=(1, 2))
        energies += (self.alpha - 1) * log_shares.sum(axis=1)
        energies += gammaln(self.k * self.alpha) - self.k * gammaln(self.alpha)
        entropy = family.log_normalizer(shares) - ((shares - 1) * log_shares).sum(axis=1)
        return LocalStep(
            self.statistics(x, s[:, :, None] * q),
            energies,
            float(entropy.sum() - xlogy(q, q).sum()),
            inverse_temperature,
            local=shares,
        )


def survey(seed, n=300, k=6, questions=25, answers=4):
    """Each answers some questions as one class would, and others as another."""
    rng = np.random.default_rng(9500 + seed)
    tables = rng.dirichlet(np.full(answers, 0.4), size=(questions, k))
    x = np.empty((n, questions))
    for row, shares in zip(x, rng.dirichlet(np.full(k, 0.3), size=n), strict=True):
        for j, z in enumerate(rng.choice(k, p=shares, size=questions)):
            row[j] = rng.choice(answers, p=tables[j, z])
    return Survey(k, questions, answers), x


# 7. Features that are there or not


class Features(Model):
    """x_d = Σ_k b_k w_kd + w_0d + N(0, 1/τ_d), each feature b_k there or not, with its own chance.

    q(b) is a product; its factors depend on each other, so steps go on from the step before.
    """

    continues_steps = True

    def __init__(self, k, d, sweeps=3):
        self.k, self.d, self.sweeps = k, d, sweeps
        self.rows, self.chances = MultivariateNormalGamma(k + 1), Beta(k)
        self.families = {"rows": self.rows, "chances": self.chances}
        one = self.rows.natural(np.zeros(k + 1), 0.3 * np.eye(k + 1), 2.0, 0.5)
        self._prior = Natural(rows=np.tile(one, (d, 1)), chances=np.repeat([0.5, 1.0], k))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        b = rng.beta(0.5, 0.5, size=(len(x), self.k))
        return self._prior + source.size / len(x) * self.statistics(x, b, np.ones((len(x), 1)))

    def statistics(self, x, b, s):
        full = np.c_[b, np.ones(len(x))]
        matrix = (s * full).T @ full
        matrix[np.arange(self.k), np.arange(self.k)] = (s * b).sum(axis=0)
        total = np.sum(s * np.ones((len(x), 1)))
        ends = (s * x**2).sum(axis=0)[:, None], np.full((self.d, 1), total)
        flat = np.broadcast_to(matrix.ravel(), (self.d, matrix.size))
        rows = np.concatenate([x.T @ (s * full), flat, *ends], axis=1)
        return Natural(rows=rows, chances=np.r_[(s * b).sum(axis=0), (s * (1 - b)).sum(axis=0)])

    def expectations(self, posterior):
        t, width = self.rows.expected_statistics(posterior.rows), self.k + 1
        matrix = -2 * t[:, width:-2].sum(axis=0).reshape(width, width)
        constant = t[:, -1].sum() - self.d / 2 * np.log(2 * np.pi)
        present, absent = np.split(self.chances.expected_statistics(posterior.chances), 2)
        return constant, t[:, :width], matrix, t[:, -2], present, absent

    def local_step(self, x, expectations, inverse_temperature):
        chance = expit(expectations[4] - expectations[5])
        start = np.tile(chance, (len(x), 1))
        return self.solve(start, x, expectations, inverse_temperature, 5 * self.sweeps)

    def continue_local_step(self, local, x, expectations, inverse_temperature):
        return self.solve(local.local, x, expectations, inverse_temperature, self.sweeps)

    def solve(self, b, x, expectations, inverse_temperature, sweeps):
        constant, linear, matrix, half, present, absent = expectations
        s, b = column(inverse_temperature), b.T.copy()
        pull = x @ linear - matrix[-1]  # [n, K + 1], with the part of the intercept
        inner, own = matrix[:-1, :-1], np.diag(matrix)[:-1]
        first = s * (pull[:, :-1] + present - absent - own / 2)
        for _ in range(sweeps):
            for k in range(self.k):
                others = inner[k] @ b - own[k] * b[k]
                b[k] = expit(first[:, k] - s[:, 0] * others)
        b = b.T
        energies = constant + x**2 @ half + pull[:, -1] + matrix[-1, -1] / 2
        energies += (b * (pull[:, :-1] + present) + (1 - b) * absent).sum(axis=1)
        energies -= 0.5 * (((b @ inner) * b).sum(axis=1) + (b - b**2) @ own)
        entropy = -float(np.sum(xlogy(b, b) + xlog1py(1 - b, -b)))
        statistics = self.statistics(x, b, s)
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=b)


def features(seed, n=200, k=9, d=16):
    """Features of one row in eight to one in two, each in a few of sixteen columns."""
    rng = np.random.default_rng(9600 + seed)
    parts = 2 * rng.normal(size=(k, d)) * (rng.random((k, d)) < 0.35)
    b = rng.random((n, k)) < rng.uniform(0.12, 0.5, size=k)
    return Features(k, d), b @ parts + 0.6 * rng.normal(size=(n, d))
