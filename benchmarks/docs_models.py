"""Six conjugate models that were written by `docs/own-model.md` alone, as a user would.

`BEDS` are functions of a seed that draw data and give (model, data).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, softmax, xlogy

from fresh_clusters import Clusters, choose, column
from tempering import LocalStep, Natural
from tempering.families import Beta, DiagonalGaussian, Dirichlet, Gamma, NormalGamma


def for_each_temperature(step):
    """A local step for one temperature as one that also takes a temperature for each datum."""

    def local_step(model, x, e, inverse_temperature):
        if not np.ndim(inverse_temperature):
            return step(model, x, e, float(inverse_temperature))
        rows = [np.flatnonzero(inverse_temperature == s) for s in np.unique(inverse_temperature)]
        steps = [step(model, x[own], e, float(inverse_temperature[own[0]])) for own in rows]
        total, order = sum(steps[1:], steps[0]), np.argsort(np.concatenate(rows))
        q = np.concatenate([one.local for one in steps])[order]
        energies = total.energies[order]
        return LocalStep(total.statistics, energies, total.entropy, inverse_temperature, local=q)

    return local_step


class Classes(Clusters):
    """Models of classes of data, the features of which add up."""

    def __init__(self, k, families, prior, components):
        self.k, self.components = k, {"weights": 0, **components}
        self.families = dict(weights=Dirichlet(k), **families)
        self._prior = Natural(weights=np.ones(k), **prior)

    def expectations(self, posterior):
        return {name: f.expected_statistics(posterior[name]) for name, f in self.families.items()}

    def log_joint(self, x, e):
        """E log p(x, z | β) [n, K]."""
        raise NotImplementedError

    def statistics(self, x, q):
        raise NotImplementedError

    def local_step(self, x, expectations, inverse_temperature):
        s, log_joint = column(inverse_temperature), self.log_joint(x, expectations)
        q, energies, entropy = choose(s * log_joint, log_joint, s)
        return LocalStep(self.statistics(x, s * q), energies, entropy, inverse_temperature, local=q)


# 1. Answers of annotators (Dawid and Skene)


class Annotators(Classes):
    """A datum is a row of answers, one of each annotator; −1 without one."""

    def __init__(self, annotators, k):
        prior = {"tables": np.ones((annotators, k, k))}
        super().__init__(k, {"tables": Dirichlet(k)}, prior, {"tables": 1})

    def given(self, x):
        return (x[..., None] == np.arange(self.k)).astype(float)

    def statistics(self, x, q):
        tables = np.einsum("nk,nwv->wkv", q, self.given(x), optimize=True)
        return Natural(weights=q.sum(axis=0), tables=tables)

    def log_joint(self, x, e):
        answers = self.given(x).reshape(len(x), -1)
        return e["weights"] + answers @ e["tables"].transpose(0, 2, 1).reshape(-1, self.k)


def annotators(seed, n=1000, w=10, k=5):
    """Ten annotators of different skill, four answers in ten missing."""
    rng = np.random.default_rng(11100 + seed)
    z = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    skill = rng.choice([0.3, 0.5, 0.8], w)
    tables = [s * np.eye(k) + (1 - s) * rng.dirichlet(np.full(k, 0.5), size=k) for s in skill]
    x = np.array([[rng.choice(k, p=table[c]) for table in tables] for c in z])
    x[rng.random(x.shape) < 0.4] = -1
    return Annotators(w, k), x


# 2. Sequences of kinds of Markov chains


class MarkovChains(Classes):
    """A datum is a row of states."""

    def __init__(self, k, states):
        self.m = states
        families = {"start": Dirichlet(states), "moves": Dirichlet(states)}
        prior = {"start": np.ones((k, states)), "moves": np.full((k, states, states), 0.5)}
        super().__init__(k, families, prior, {"start": 0, "moves": 0})

    def counts(self, x):
        moves = np.zeros((len(x), self.m**2))
        np.add.at(moves, (np.arange(len(x))[:, None], x[:, :-1] * self.m + x[:, 1:]), 1.0)
        return np.eye(self.m)[x[:, 0]], moves

    def statistics(self, x, q):
        start, moves = self.counts(x)
        moves = (q.T @ moves).reshape(self.k, self.m, self.m)
        return Natural(weights=q.sum(axis=0), start=q.T @ start, moves=moves)

    def log_joint(self, x, e):
        start, moves = self.counts(x)
        return e["weights"] + start @ e["start"].T + moves @ e["moves"].reshape(self.k, -1).T


def markov_chains(seed, n=600, length=20, k=8, states=6):
    """Eight kinds of chains of six states."""
    rng = np.random.default_rng(11200 + seed)
    moves = rng.dirichlet(np.full(states, 0.7), size=(k, states))
    start, z = rng.dirichlet(np.ones(states), size=k), rng.choice(k, n, p=rng.dirichlet([3.0] * k))
    x = np.zeros((n, length), int)
    for row, c in zip(x, z, strict=True):
        row[0] = rng.choice(states, p=start[c])
        for t in range(1, length):
            row[t] = rng.choice(states, p=moves[c, row[t - 1]])
    return MarkovChains(k, states), x


# 3. Latent classes of mixed columns


class MixedColumns(Classes):
    """A datum is a row of measurements, then of levels of categorical columns."""

    def __init__(self, k, d, columns, levels):
        self.d, self.v, self.likelihood = d, levels, DiagonalGaussian(d)
        family = NormalGamma(d)
        one = family.natural(np.zeros(d), 0.1, 2.0, 1.0)
        prior = {"measured": np.tile(one, (k, 1)), "tables": np.ones((k, columns, levels))}
        families = {"measured": family, "tables": Dirichlet(levels)}
        super().__init__(k, families, prior, {"measured": 0, "tables": 0})

    def levels(self, x):
        return (x[:, self.d :, None] == np.arange(self.v)).astype(float).reshape(len(x), -1)

    def statistics(self, x, q):
        measured = q.T @ self.likelihood.statistics(x[:, : self.d])
        tables = (q.T @ self.levels(x)).reshape(self._prior.tables.shape)
        return Natural(weights=q.sum(axis=0), measured=measured, tables=tables)

    def log_joint(self, x, e):
        measured = self.likelihood.statistics(x[:, : self.d]) @ e["measured"].T
        constant = e["weights"] - self.d / 2 * np.log(2 * np.pi)
        return constant + measured + self.levels(x) @ e["tables"].reshape(self.k, -1).T


def mixed_columns(seed, n=2000, k=10, d=3, columns=4, levels=4):
    """Ten classes of three measurements and four categorical columns."""
    rng = np.random.default_rng(11300 + seed)
    z = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    means, deviations = rng.normal(0, 1.5, (k, d)), rng.uniform(0.4, 1, (k, d))
    tables = rng.dirichlet(np.full(levels, 0.5), (k, columns))
    measured = means[z] + deviations[z] * rng.normal(size=(n, d))
    chosen = [[rng.choice(levels, p=table) for table in tables[c]] for c in z]
    return MixedColumns(k, d, columns, levels), np.hstack([measured, chosen])


# 4. Counts with a background


class WithBackground(Classes):
    """Kinds of rows of counts; a word is of the kind, or of a background that all rows share."""

    def __init__(self, k, v):
        families = {"share": Dirichlet(2), "background": Dirichlet(v), "topics": Dirichlet(v)}
        prior = {"share": np.ones(2), "background": np.full(v, 0.5), "topics": np.full((k, v), 0.1)}
        super().__init__(k, families, prior, {"topics": 0})

    def statistics(self, x, q, share=0.5):  # of the background, [K, V]
        counts = q.T @ x
        common = counts * share
        shares, topics = np.array([common.sum(), (counts - common).sum()]), counts - common
        back = common.sum(axis=0)
        return Natural(weights=q.sum(axis=0), share=shares, background=back, topics=topics)

    @for_each_temperature
    def local_step(self, x, e, s):
        both = e["share"][0] + e["background"], e["share"][1] + e["topics"]
        both = np.stack(np.broadcast_arrays(*both))  # [2, K, V]
        share, total = softmax(s * both, axis=0), np.logaddexp(*(s * both))
        log_joint = e["weights"] + x @ (share * both).sum(axis=0).T
        q, energies, entropy = choose(s * e["weights"] + x @ total.T, log_joint, s)
        return LocalStep(s * self.statistics(x, q, share[0]), energies, entropy, s, local=q)


def with_background(seed, n=500, k=12, v=150, length=30):
    """Rows of thirty words, six in ten of the background."""
    rng = np.random.default_rng(11400 + seed)
    z = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    common, topics = rng.dirichlet(np.full(v, 0.5)), rng.dirichlet(np.full(v, 0.05), k)
    x = np.stack([rng.multinomial(length, 0.6 * common + 0.4 * topics[c]) for c in z])
    return WithBackground(k, v), x.astype(float)


# 5. Zero-inflated counts


class ManyZeros(Classes):
    """Clusters of rows of counts, each of which may be switched off."""

    def __init__(self, k, d):
        families = {"on": Beta(d), "rates": Gamma(d)}
        one = Gamma(d).natural(np.ones(d), 0.1)
        prior = {"on": np.ones((k, 2 * d)), "rates": np.tile(one, (k, 1))}
        super().__init__(k, families, prior, {"on": 0, "rates": 0})

    def statistics(self, x, q, share=0.5):  # of the zeros that are not switched off, [K, D]
        counts, zeros = q.sum(axis=0), q.T @ (x == 0)
        active = counts[:, None] - zeros * (1 - share)
        on = np.hstack([active, zeros * (1 - share)])
        return Natural(weights=counts, on=on, rates=np.hstack([q.T @ x, active]))

    @for_each_temperature
    def local_step(self, x, e, s):
        (on, off), (log_rate, minus) = (np.split(e[name], 2, axis=1) for name in ("on", "rates"))
        both, zeros = np.stack([on + minus, off]), (x == 0).astype(float)
        share, total = softmax(s * both, axis=0), np.logaddexp(*(s * both))
        seen = (1 - zeros) @ both[0].T + x @ log_rate.T - gammaln(x + 1).sum(axis=1, keepdims=True)
        seen += e["weights"]
        log_joint = seen + zeros @ (share * both).sum(axis=0).T
        q, energies, entropy = choose(s * seen + zeros @ total.T, log_joint, s)
        return LocalStep(s * self.statistics(x, q, share[0]), energies, entropy, s, local=q)


def many_zeros(seed, n=800, k=10, d=8):
    """Ten clusters of eight counts."""
    rng = np.random.default_rng(11500 + seed)
    z = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    rates, on = rng.gamma(1.5, 3.0, (k, d)), rng.beta(1.0, 1.0, (k, d))
    x = rng.poisson(rates[z]) * (rng.random((n, d)) < on[z])
    return ManyZeros(k, d), x.astype(float)


# 6. Latent blocks of counts


class LatentBlocks(Clusters):
    """Kinds of rows, which are local, and kinds of columns, which are global."""

    def __init__(self, k, kinds, columns):
        self.k, self.l, self.d = k, kinds, columns
        self.weights, self.shares, self.rates = Dirichlet(k), Dirichlet(kinds), Gamma(1)
        self.components, self.cell = {"weights": 0, "sums": 0}, np.tile([1.0, 0.2], (k, kinds, 1))
        self._prior = Natural(weights=np.ones(k), sums=np.zeros((k, columns)))

    def statistics(self, x, q):
        return Natural(weights=q.sum(axis=0), sums=q.T @ x)

    def initialize(self, source, rng):
        kinds = rng.dirichlet(np.ones(self.l), size=self.d)
        start = Natural(
            weights=np.ones(self.k), shares=np.ones(self.l), kinds=kinds, rates=self.cell
        )
        return self.global_step(start, super().initialize(source, rng), 1.0)

    def global_step(self, posterior, target, rate):
        sizes, q = target.weights - 1.0, posterior.kinds
        rates = self.cell + np.stack([target.sums @ q, np.outer(sizes, q.sum(axis=0))], axis=2)
        shares = 1.0 + q.sum(axis=0)
        log_rate, minus = np.moveaxis(self.rates.expected_statistics(rates), -1, 0)
        logits = self.shares.expected_statistics(shares)
        kinds = softmax(logits + target.sums.T @ log_rate + sizes @ minus, axis=1)
        new = Natural(weights=target.weights, shares=shares, kinds=kinds, rates=rates)
        return (1 - rate) * posterior + rate * new

    def expectations(self, posterior):
        log_rate, minus = np.moveaxis(self.rates.expected_statistics(posterior.rates), -1, 0)
        constant = self.weights.expected_statistics(posterior.weights)
        return constant + minus @ posterior.kinds.sum(axis=0), log_rate @ posterior.kinds.T

    def local_step(self, x, expectations, inverse_temperature):
        constant, log_rates = expectations
        s = column(inverse_temperature)
        log_joint = constant + x @ log_rates.T - gammaln(x + 1).sum(axis=1, keepdims=True)
        q, energies, entropy = choose(s * log_joint, log_joint, s)
        return LocalStep(self.statistics(x, s * q), energies, entropy, inverse_temperature, local=q)

    def divergence(self, posterior, prior_weight=1.0):
        q, log_shares = posterior.kinds, self.shares.expected_statistics(posterior.shares)
        return float(
            self.weights.divergence(posterior.weights, np.ones(self.k), prior_weight)
            + self.shares.divergence(posterior.shares, np.ones(self.l), prior_weight)
            + self.rates.divergence(posterior.rates, self.cell, prior_weight).sum()
            + np.sum(xlogy(q, q) - prior_weight * q * log_shares)
        )


def latent_blocks(seed, n=400, columns=60, k=6, kinds=5):
    """Six kinds of rows, five kinds of columns."""
    rng = np.random.default_rng(11600 + seed)
    z = rng.choice(k, n, p=rng.dirichlet(np.full(k, 4.0)))
    c = rng.choice(kinds, columns, p=rng.dirichlet(np.full(kinds, 4.0)))
    rates = rng.gamma(0.8, 1.2, (k, kinds))
    return LatentBlocks(k, kinds, columns), rng.poisson(rates[z][:, c]).astype(float)


BEDS = {
    "annotators": annotators,
    "Markov chains": markov_chains,
    "mixed columns": mixed_columns,
    "with background": with_background,
    "many zeros": many_zeros,
    "latent blocks": latent_blocks,
}
