"""Five more models of a stranger (see `strangers_clusters`), and the list of all nine.

`BEDS` has functions of a seed that return a model and data.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from strangers_clusters import (
    ColdDepths,
    crowd,
    depths,
    enumerate_z,
    log_dirichlet,
    pairs,
    regression_parts,
    regression_statistics,
    sphere,
)
from tempering import LocalStep, Model, Natural
from tempering.families import (
    Dirichlet,
    MultivariateNormalGamma,
    SphericalGaussian,
    SphericalNormalGamma,
)
from tempering.models import by_temperature

# 5. Two hidden chains


class TwoChains(Model):
    """A factorial HMM: y_t ~ N(u[a_t] + v[b_t], 1/τ_d), chains a and b; a datum is a sequence."""

    def __init__(self, first, second, n_outputs):
        self.a, self.b, self.d = first, second, n_outputs
        self.k, self.w = first * second, first + second
        pairs = [(i, j) for i in range(first) for j in range(second)]
        self.hot = np.array([np.r_[np.eye(first)[i], np.eye(second)[j]] for i, j in pairs])
        self.outputs = MultivariateNormalGamma(self.w)
        self.families = {
            "start": Dirichlet(self.k),
            "first": Dirichlet(first),
            "second": Dirichlet(second),
            "outputs": self.outputs,
        }
        one = self.outputs.natural(np.zeros(self.w), 0.1 * np.eye(self.w), 2.0, 1.0)
        self._prior = Natural(
            start=np.ones(self.k),
            first=np.ones((first, first)),
            second=np.ones((second, second)),
            outputs=np.tile(one, (n_outputs, 1)),
        )

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.ones(self.k), size=x.shape[:2])
        moves = np.einsum("ntj,ntk->jk", q[:, :-1], q[:, 1:])
        return self._prior + source.size / len(x) * self.statistics(x, q, moves)

    def statistics(self, x, q, moves):
        moves = moves.reshape(self.a, self.b, self.a, self.b)
        use, total = q @ self.hot, q.sum(axis=2)
        matrix = np.einsum("k,ki,kj->ij", q.sum(axis=(0, 1)), self.hot, self.hot)
        outputs = regression_statistics(
            np.einsum("ntd,ntw->dw", x, use),
            matrix,
            np.einsum("ntd,nt->d", x**2, total),
            total.sum(),
        )
        return Natural(
            start=q[:, 0].sum(axis=0),
            first=np.einsum("abcd->ac", moves),
            second=np.einsum("abcd->bd", moves),
            outputs=outputs,
        )

    def expectations(self, posterior):
        linear, matrix, half, log_half = regression_parts(
            self.outputs.expected_statistics(posterior.outputs), self.w
        )
        constant = np.einsum("ki,ij,kj->k", self.hot, matrix.sum(axis=0), self.hot)
        constant += log_half.sum() - 0.5 * self.d * np.log(2 * np.pi)
        first, second = log_dirichlet(posterior.first), log_dirichlet(posterior.second)
        moves = first[:, None, :, None] + second[None, :, None, :]
        moves = moves.reshape(self.k, self.k)
        return log_dirichlet(posterior.start), moves, constant, linear @ self.hot.T, half

    def local_step(self, x, expectations, inverse_temperature):
        start, moves, constant, linear, half = expectations
        n, length = x.shape[:2]
        s = np.broadcast_to(np.asarray(inverse_temperature, float), n)
        emitted = constant + x @ linear + (x**2 @ half)[..., None]  # [n, T, K]
        hot = s[:, None, None] * emitted
        step = np.exp(s[:, None, None] * moves)  # [n, K, K]
        forward = np.empty((n, length, self.k))
        log_total = np.zeros(n)
        for t in range(length):
            if t == 0:
                value = s[:, None] * start + hot[:, 0]
            else:
                value = np.log(np.matmul(forward[:, t - 1, None], step)[:, 0]) + hot[:, t]
            top = value.max(axis=1, keepdims=True)
            value = np.exp(value - top)
            size = value.sum(axis=1, keepdims=True)
            forward[:, t] = value / size
            log_total += (top + np.log(size))[:, 0]
        q = np.empty_like(forward)
        pairs = np.zeros((n, self.k, self.k))
        backward = np.ones((n, self.k))
        for t in range(length - 1, -1, -1):
            value = forward[:, t] * backward
            q[:, t] = value / value.sum(axis=1, keepdims=True)
            if t:
                ahead = np.log(backward) + hot[:, t]
                ahead = np.exp(ahead - ahead.max(axis=1, keepdims=True))
                both = forward[:, t - 1, :, None] * step * ahead[:, None, :]
                pairs += both / both.sum(axis=(1, 2), keepdims=True)
                backward = np.matmul(step, ahead[:, :, None])[:, :, 0]
        energies = q[:, 0] @ start + np.einsum("nij,ij->n", pairs, moves)
        energies += (q * emitted).sum(axis=(1, 2))
        weighted = s[:, None, None] * q
        return LocalStep(
            self.statistics(x, weighted, np.tensordot(s, pairs, 1)),
            energies,
            float(np.sum(log_total - s * energies)),
            inverse_temperature,
        )


def two_chains(seed, n=15, length=30, first=4, second=3, d=2):
    rng = np.random.default_rng(7400 + seed)
    means = [1.5 * rng.normal(size=(k, d)) for k in (first, second)]
    stay = (0.9, 0.6)
    x = np.zeros((n, length, d))
    for k, mean, same in zip((first, second), means, stay, strict=True):
        moves = same * np.eye(k) + (1 - same) * rng.dirichlet(np.ones(k), size=k)
        for row in x:
            z = rng.integers(k)
            for t in range(length):
                row[t] += mean[z]
                z = rng.choice(k, p=moves[z])
    return TwoChains(first, second, d), x + 0.4 * rng.normal(size=x.shape)


# 6. Trends that break


class Breaks(Model):
    """K kinds of curves, each a line before and another after a break, which each datum has
    elsewhere: z = (kind, place). Each line has a variance of its own."""

    def __init__(self, k, length, least=3):
        self.k, self.t = k, length
        self.places = np.arange(least, length - least + 1)
        time = np.linspace(-1, 1, length)
        self.inputs = np.stack([np.ones(length), time], axis=1)
        before = (np.arange(length) < self.places[:, None]).astype(float)  # [C, T]
        self.sides = np.stack([before, 1 - before])  # [2, C, T]
        self.lines = MultivariateNormalGamma(2)
        self.families = {"weights": Dirichlet(k), "lines": self.lines}
        one = self.lines.natural(np.zeros(2), 0.1 * np.eye(2), 2.0, 0.5)
        self.components = {"weights": 0, "lines": 0}
        self._prior = Natural(weights=np.ones(k), lines=np.tile(one, (k, 2, 1)))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        kinds = rng.dirichlet(np.ones(self.k), size=len(x))
        q = np.repeat(kinds[:, :, None] / len(self.places), len(self.places), axis=2)
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def statistics(self, x, q):
        times = np.einsum("nkc,hct->nkht", q, self.sides)
        count = times.sum(axis=0)  # [K, 2, T]
        linear = np.einsum("nkht,nt->kht", times, x) @ self.inputs
        matrix = np.einsum("kht,ti,tj->khij", count, self.inputs, self.inputs)
        squares = np.einsum("nkht,nt->kh", times, x**2)
        lines = regression_statistics(linear, matrix, squares, count.sum(axis=2))
        return Natural(weights=q.sum(axis=(0, 2)), lines=lines)

    def expectations(self, posterior):
        linear, matrix, half, log_half = regression_parts(
            self.lines.expected_statistics(posterior.lines), 2
        )
        constant = np.einsum("khij,ti,tj->kht", matrix, self.inputs, self.inputs)
        constant += log_half[..., None] - 0.5 * np.log(2 * np.pi)
        weights = log_dirichlet(posterior.weights) - np.log(len(self.places))
        return weights, constant, linear @ self.inputs.T, half

    def local_step(self, x, expectations, inverse_temperature):
        weights, constant, linear, half = expectations
        each = constant + linear * x[:, None, None] + half[..., None] * x[:, None, None] ** 2
        log_joint = weights[:, None] + np.einsum("nkht,hct->nkc", each, self.sides, optimize=True)
        shape = log_joint.shape
        _, energies, entropy, weighted = enumerate_z(
            log_joint.reshape(len(x), -1), inverse_temperature
        )
        statistics = self.statistics(x, weighted.reshape(shape))
        return LocalStep(statistics, energies, entropy, inverse_temperature)


def breaks(seed, n=150, k=6, length=20):
    rng = np.random.default_rng(7500 + seed)
    model = Breaks(k, length)
    lines = rng.normal(size=(k, 2, 2)) * [1.5, 1.5]
    noise = rng.uniform(0.3, 1.0, size=(k, 2))
    z, place = rng.integers(k, size=n), rng.choice(model.places, size=n)
    side = (np.arange(length) >= place[:, None]).astype(int)
    x = np.einsum("nti,ti->nt", lines[z[:, None], side], model.inputs)
    return model, x + noise[z[:, None], side] * rng.normal(size=x.shape)


# 7. Where were they?


class Sensors(Model):
    """Events at unknown places of a grid, sensors at known ones: x_ij = c_j + b_j dist + noise.

    Each sensor has a gain, a slope and a variance that nobody knows.
    """

    def __init__(self, places, side=10):
        axis = np.linspace(0, 1, side)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        self.g, self.j = len(grid), len(places)
        distance = np.linalg.norm(grid - places[:, None], axis=2)  # [J, G]
        self.inputs = np.stack([np.ones_like(distance), distance], axis=2)  # [J, G, 2]
        self.lines = MultivariateNormalGamma(2)
        self.families = {"lines": self.lines}
        one = self.lines.natural(np.zeros(2), 0.2 * np.eye(2), 2.0, 0.1)
        self._prior = Natural(lines=np.tile(one, (self.j, 1)))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = np.eye(self.g)[rng.integers(self.g, size=len(x))]
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def statistics(self, x, q):
        linear = np.einsum("gj,jgi->ji", q.T @ x, self.inputs)
        matrix = np.einsum("g,jgi,jgk->jik", q.sum(axis=0), self.inputs, self.inputs)
        total = q.sum(axis=1)
        return Natural(lines=regression_statistics(linear, matrix, total @ x**2, total.sum()))

    def expectations(self, posterior):
        linear, matrix, half, log_half = regression_parts(
            self.lines.expected_statistics(posterior.lines), 2
        )
        constant = np.einsum("jik,jgi,jgk->g", matrix, self.inputs, self.inputs)
        constant += log_half.sum() - 0.5 * self.j * np.log(2 * np.pi) - np.log(self.g)
        return constant, np.einsum("ji,jgi->jg", linear, self.inputs), half

    def local_step(self, x, expectations, inverse_temperature):
        constant, linear, half = expectations
        log_joint = constant + x @ linear + (x**2 @ half)[:, None]
        _, energies, entropy, weighted = enumerate_z(log_joint, inverse_temperature)
        return LocalStep(self.statistics(x, weighted), energies, entropy, inverse_temperature)


def sensors(seed, n=60, j=5):
    rng = np.random.default_rng(7600 + seed)
    places, events = rng.random((j, 2)), rng.random((n, 2))
    distance = np.linalg.norm(events[:, None] - places, axis=2)
    slopes = -2.0 + 1.0 * rng.normal(size=j)
    x = 1.4 * rng.normal(size=j) + slopes * distance
    return Sensors(places), x + rng.uniform(0.1, 0.4, size=j) * rng.normal(size=x.shape)


# 8. Clusters in a uniform background


class Background(Model):
    """K Gaussians, each with its own variance, and a class of data that are anywhere in a box."""

    def __init__(self, k, d, side):
        self.k, self.d, self.side = k, d, side
        self.likelihood = SphericalGaussian(d)
        self.clusters = SphericalNormalGamma(d)
        self.families = {"weights": Dirichlet(k + 1), "clusters": self.clusters}
        one = self.clusters.natural(np.zeros(d), 0.01, 2.0, 0.2)
        self._prior = Natural(weights=np.ones(k + 1), clusters=np.tile(one, (k, 1)))

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        q = rng.dirichlet(np.ones(self.k + 1), size=len(x))
        return self._prior + source.size / len(x) * self.statistics(x, q)

    def statistics(self, x, q):
        return Natural(
            weights=q.sum(axis=0), clusters=self.likelihood.weighted_statistics(x, q[:, : self.k])
        )

    def expectations(self, posterior):
        weights = log_dirichlet(posterior.weights)
        return weights, self.clusters.expected_statistics(posterior.clusters), posterior

    def local_step(self, x, expectations, inverse_temperature):
        weights, clusters, _ = expectations
        inside = self.likelihood.expected_log_likelihood(x, clusters)
        outside = np.full((len(x), 1), -self.d * np.log(self.side))
        log_joint = weights + np.concatenate([inside, outside], axis=1)
        _, energies, entropy, weighted = enumerate_z(log_joint, inverse_temperature)
        return LocalStep(self.statistics(x, weighted), energies, entropy, inverse_temperature)

    def local_log_normalizer(self, expectations, s, x):
        posterior = expectations[2]
        weights = self.families["weights"].log_moment(posterior.weights, s)  # [M, K + 1]
        clusters = posterior.clusters
        inside = self.likelihood.log_expected_power_integral(clusters, s)  # [K, M]
        outside = (1 - s) * self.d * np.log(self.side)
        return logsumexp(weights + np.concatenate([inside, outside[None]]).T, axis=1)[None]


def background(seed, n=600, k=10, side=10.0):
    rng = np.random.default_rng(7700 + seed)
    x = side * (rng.random((n, 2)) - 0.5)
    centres, spread = 0.8 * side * (rng.random((k, 2)) - 0.5), rng.uniform(0.1, 0.5, size=k)
    z, inside = rng.integers(k, size=n), rng.random(n) < 0.6
    clusters = centres[z] + spread[z, None] * rng.normal(size=(n, 2))
    return Background(k, 2, side), np.where(inside[:, None], clusters, x)


# 9. Texts of several authors


class AuthorTopics(Model):
    """Each word of a text by one of its authors, of one of that author's topics.

    A datum is a row: counts of V words, then a 1 for each of its authors.
    """

    def __init__(self, n_authors, n_topics, n_words, topics=0.2, words=0.1):
        self.a, self.k, self.v = n_authors, n_topics, n_words
        self.families = {"authors": Dirichlet(n_topics), "topics": Dirichlet(n_words)}
        self.components = {"authors": 1, "topics": 0}
        self._prior = Natural(
            authors=np.full((n_authors, n_topics), topics),
            topics=np.full((n_topics, n_words), words),
        )

    def check(self, x):
        if np.any(x[:, self.v :].sum(axis=1) < 1):
            raise ValueError("each text needs an author")

    def prior(self):
        return self._prior

    def initialize(self, source, rng):
        x = source.sample(1000, rng)
        counts, authors = x[:, : self.v], x[:, self.v :]
        q = rng.dirichlet(np.ones(self.k), size=len(x))
        share = authors / authors.sum(axis=1, keepdims=True)
        statistics = Natural(
            authors=share.T @ (counts.sum(axis=1, keepdims=True) * q), topics=q.T @ counts
        )
        return self._prior + source.size / len(x) * statistics

    def expectations(self, posterior):
        return log_dirichlet(posterior.authors), log_dirichlet(posterior.topics)

    @by_temperature
    def local_step(self, x, expectations, inverse_temperature):
        s = float(inverse_temperature)
        log_theta, log_phi = expectations
        counts, authors = x[:, : self.v], x[:, self.v :]
        theta = np.exp(s * log_theta)
        top = log_phi.max(axis=0)
        phi = np.exp(s * (log_phi - top))
        mix = authors @ theta  # [n, K]
        total = mix @ phi  # [n, V]
        ratio = counts / total
        choice = np.log(authors.sum(axis=1)) * counts.sum(axis=1)  # −log p(author), known
        log_total = (counts * np.log(total)).sum(axis=1) + s * (counts @ top - choice)
        by_topic = ratio @ phi.T  # [n, K]
        energies = ((authors @ (theta * log_theta)) * by_topic).sum(axis=1)
        energies += (mix * (ratio @ (phi * log_phi).T)).sum(axis=1) - choice
        statistics = Natural(
            authors=s * theta * (authors.T @ by_topic), topics=s * phi * (mix.T @ ratio)
        )
        entropy = float(np.sum(log_total - s * energies))
        return LocalStep(statistics, energies, entropy, inverse_temperature)


def author_topics(seed, n=200, authors=20, k=8, v=80, length=40):
    rng = np.random.default_rng(7800 + seed)
    theta, phi = rng.dirichlet(np.full(k, 0.2), authors), rng.dirichlet(np.full(v, 0.1), k)
    x = np.zeros((n, v + authors))
    for row in x:
        own = rng.choice(authors, rng.integers(1, 4), replace=False)
        row[v + own] = 1
        row[:v] = rng.multinomial(length, theta[own].mean(axis=0) @ phi)
    return AuthorTopics(authors, k, v), x


BEDS = {
    "crowd": crowd,
    "depths": depths,
    "depths, cold g": lambda seed: depths(seed, kind=ColdDepths),
    "sphere": sphere,
    "pairs": pairs,
    "chains": two_chains,
    "breaks": breaks,
    "sensors": sensors,
    "background": background,
    "authors": author_topics,
}
