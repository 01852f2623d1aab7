"""Bayesian factor analysis: rows that are linear in a few unknown factors, with noise.

    z_n ~ N(0, 1) [K],   x_nd ~ N(w_d'z_n + μ_d, 1/τ_d),   w_dk ~ N(0, v_d / α_k),
    μ_d ~ N(0, v_d / MEAN_PRECISION),   τ_d ~ Gamma(a, a v_d),   α_k ~ Gamma(c, c).

v_d is the variance of column d. α_k is large where factor k explains nothing; with an α_dk for each
loading, w_dk has Student's t distribution. Entries of x that are NaN are not observed. q(w_d, μ_d)
and q(z_n) are Gaussians, q(τ), q(α) gammas, updated in turn. Tempered is p(x, z | w, μ, τ).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma

from tempering.families import Gamma
from tempering.families.base import log_rising
from tempering.families.checks import check_table
from tempering.models.arguments import as_numbers, check_number, check_whole
from tempering.models.base import Array, DataSource, LocalStep, Model
from tempering.models.natural import Natural, check_like_prior
from tempering.storage.state import stored

#: Prior precision of the mean, in units of the column's variance. Data are centred.
MEAN_PRECISION = 1e-3


class LoadingExpectations(NamedTuple):
    """What the local step needs of q(w, μ, τ). The last of J = K + 1 entries of w is μ."""

    posterior: Natural
    loadings: Array  # E w, [D, J]
    products: Array  # E ww', [D, J, J]
    precision: Array  # E τ, [D]
    log_precision: Array  # E log τ, [D]


def known_loadings(loadings: Array, precision: Array) -> LoadingExpectations:
    """Those that are not in doubt."""
    products = loadings[:, :, None] * loadings[:, None, :]
    return LoadingExpectations(Natural(), loadings, products, precision, np.log(precision))


class Factors(NamedTuple):
    """q(z) of some rows; rows with the same columns observed share a covariance."""

    x: Array  # the data, with 0 where there are none, [n, D]
    means: Array  # E z and a column of ones, [n, J]
    covariances: Array  # of each pattern of observed columns at T = 1, [U, K, K]
    observed: Array  # the patterns, 1 or 0, [U, D]
    pattern: np.ndarray  # of each row, [n]
    energies: Array  # [n]
    entropies: Array  # [n]


@stored("gaussian_factors")
@dataclass(eq=False, repr=False)
class GaussianFactors(Model):
    """Factor analysis with automatic relevance determination, or probabilistic PCA.

    ``variances`` [D] are v; ``noise_prior`` and ``relevance_prior`` are a and c, how many half
    observations the priors of τ and α are worth; ``sparse`` gives each loading an α of its own.
    """

    n_components: int
    variances: Array
    shared_noise: bool = False
    noise_prior: float = 1e-2
    relevance_prior: float = 1e-3
    sparse: bool = False

    shard_size = 1024

    def __post_init__(self) -> None:
        self.variances = as_numbers(self.variances, "variances", "positive, one a column")
        self.check_parameters()

    def check_parameters(self) -> None:
        check_whole(n_components=self.n_components)
        for name in ("noise_prior", "relevance_prior"):
            check_number(getattr(self, name), name, "from 1e-10 to 1e10", least=1e-10, most=1e10)
        v = self.variances
        if v.ndim != 1 or not len(v) or not np.all((v > 0) & np.isfinite(v)):
            raise ValueError("variances must be positive numbers, one a column.")

    @property
    def n_columns(self) -> int:
        """D."""
        return len(self.variances)

    def prior(self) -> Natural:
        """Sums over no data; ``weight`` is the power of the prior in λ̂ = w α + Σ statistics."""
        d, j = self.n_columns, self.n_components + 1
        return Natural(
            linear=np.zeros((d, j)),
            products=np.zeros((d, j, j)),
            squares=np.zeros(d),
            counts=np.zeros(d),
            scatter=np.zeros((j, j)),
            weight=1.0,
        )

    def check(self, data: Any) -> None:
        check_table(data, self.n_columns, "factor analysis:", holes=True)

    def check_posterior(self, posterior: Any) -> None:
        check_like_prior(posterior, self._start(np.zeros((self.n_columns, self.n_components + 1))))
        gammas = [part for name, part in posterior.items() if name.startswith(("noise", "rele"))]
        proper = np.linalg.eigvalsh(posterior.loadings_precision)[:, 0] > 0
        if not all(np.all(part > 0) for part in gammas) or not proper.all():
            raise ValueError("the posterior of factors must be a proper distribution.")

    def initialize(self, source: DataSource, rng: np.random.Generator) -> Natural:
        """Principal components of a sample of the rows, with columns of unit variance."""
        table = np.asarray(source.sample(10_000, rng), float) / np.sqrt(self.variances)
        filled = np.where(np.isnan(table), 0.0, table)
        means = filled.mean(axis=0)
        _, lengths, axes = np.linalg.svd(filled - means, full_matrices=False)
        found = min(self.n_components, len(lengths))
        loadings = 1e-3 * rng.standard_normal((self.n_columns, self.n_components + 1))
        loadings[:, :found] += (axes[:found] * lengths[:found, None]).T / np.sqrt(len(table))
        if self.sparse:
            loadings[:, :-1] @= varimax(loadings[:, :-1])
        loadings[:, -1] = means
        return self._start(loadings * np.sqrt(self.variances)[:, None])

    def _start(self, loadings: Array) -> Natural:
        """λ around some loadings [D, J], with the noise at half of the variances."""
        d, j = loadings.shape
        precision = np.eye(j) * (1e3 / self.variances)[:, None, None]
        variances = self._noise_variances()
        return Natural(
            loadings_linear=(precision @ loadings[:, :, None])[..., 0],
            loadings_precision=precision,
            noise_shape=np.full(variances.shape, 10.0),
            noise_rate=5.0 * variances,
            relevance_shape=np.full(relevances := (d, j - 1) if self.sparse else j - 1, 10.0),
            relevance_rate=np.full(relevances, 10.0),
            scatter=np.eye(j),
        )

    def expectations(self, posterior: Natural) -> LoadingExpectations:
        covariances = np.linalg.inv(posterior.loadings_precision)
        loadings = (covariances @ posterior.loadings_linear[..., None])[..., 0]
        shape, rate = posterior.noise_shape, posterior.noise_rate
        return LoadingExpectations(
            posterior,
            loadings,
            covariances + loadings[:, :, None] * loadings[:, None, :],
            np.broadcast_to(shape / rate, self.n_columns),
            np.broadcast_to(digamma(shape) - np.log(rate), self.n_columns),
        )

    def point(self, posterior: Natural) -> LoadingExpectations:
        """The posterior means as if they were known."""
        expected = self.expectations(posterior)
        return known_loadings(expected.loadings, expected.precision)

    def solve(
        self, data: Any, expected: LoadingExpectations, inverse_temperature: float | Array
    ) -> Factors:
        """q(z_n); at T = 1 and known loadings, energy and entropy are log p(x_n) together."""
        table, k = np.asarray(data, float), self.n_components
        patterns, which = np.unique(~np.isnan(table), axis=0, return_inverse=True)
        observed, which = patterns.astype(float), which.reshape(-1)
        x, tau = np.where(np.isnan(table), 0.0, table), expected.precision
        # Σ_d τ_d E ww' over the observed columns, and Σ_d τ_d x_d E w.
        quadratic = np.tensordot(observed * tau, expected.products, axes=1)
        linear = (x * tau) @ expected.loadings
        precisions = np.eye(k) + quadratic[:, :k, :k]
        covariances = np.asarray(np.linalg.inv(precisions), float)
        means = np.ones((len(x), k + 1))
        means[:, :k] = times(linear[:, :k] - quadratic[which, :k, k], covariances, which)
        # E[τ (x − w'z)²] summed over the columns, and E|z|², but for what the covariance of z adds:
        # k / s in all.
        squares = (x * x) @ tau - 2 * np.einsum("nj,nj->n", linear, means)
        squares += np.einsum("nj,nj->n", times(means, quadratic, which), means)
        squares += np.square(means[:, :k]).sum(axis=1)
        logs = observed @ (expected.log_precision - np.log(2 * np.pi)) - k * np.log(2 * np.pi)
        s = np.broadcast_to(np.asarray(inverse_temperature, float), len(x))
        energies = 0.5 * (logs[which] - squares - k / s)
        log_determinants = -np.linalg.slogdet(precisions)[1]
        entropies = 0.5 * (k * np.log(2 * np.pi * np.e / s) + log_determinants[which])
        return Factors(x, means, covariances, observed, which, energies, entropies)

    def local_step(
        self, data: Any, expectations: LoadingExpectations, inverse_temperature: float | Array
    ) -> LocalStep:
        solved, k = self.solve(data, expectations, inverse_temperature), self.n_components
        x, means, covariances, observed, which, energies, entropies = solved
        s = np.broadcast_to(np.asarray(inverse_temperature, float), len(x))[:, None]
        # Σ s E zz' of each pattern.
        scatter = np.zeros((len(observed), k + 1, k + 1))
        order = np.argsort(which, kind="stable")
        sizes = np.bincount(which, minlength=len(observed))
        for u, rows in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            scatter[u] = means[rows].T @ (s[rows] * means[rows])
        scatter[:, :k, :k] += sizes[:, None, None] * covariances
        statistics = Natural(
            linear=x.T @ (s * means),
            products=np.tensordot(observed.T, scatter, axes=1),
            squares=np.sum(s * x * x, axis=0),
            counts=np.sum(s * observed[which], axis=0),
            scatter=scatter.sum(axis=0),
            weight=0.0,
        )
        entropy = float(entropies.sum())
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=means[:, :k])

    def global_step(self, posterior: Natural, target: Natural, rate: float) -> Natural:
        """Loadings, noise and relevance in turn, each given the others."""
        blocks, weight = dict(posterior), float(target.weight)

        def move(**parts: Array) -> None:
            for name, part in parts.items():
                blocks[name] = (1.0 - rate) * blocks[name] + rate * part

        tau = np.broadcast_to(posterior.noise_shape / posterior.noise_rate, self.n_columns)
        prior = weight * np.eye(self.n_components + 1) * self._prior_precision(posterior)[:, None]
        move(
            loadings_linear=tau[:, None] * target.linear,
            loadings_precision=prior + tau[:, None, None] * target.products,
            scatter=target.scatter,
        )
        _, loadings, products, *_ = self.expectations(Natural(**blocks))
        squares = target.squares - 2 * np.einsum("dj,dj->d", target.linear, loadings)
        squares += np.einsum("dij,dij->d", target.products, products)
        counts = target.counts
        if self.shared_noise:
            squares, counts = squares.sum(keepdims=True), counts.sum(keepdims=True)
        a, b = self.noise_prior, self.noise_prior * self._noise_variances()
        move(noise_shape=weight * a + counts / 2, noise_rate=weight * b + squares / 2)
        shape, rates = self._relevance(products, weight)
        move(relevance_shape=shape, relevance_rate=rates)
        return Natural(**blocks)

    def revise(self, posterior: Natural, before: float = 0.0, after: float = 1.0) -> Natural:
        """Factors turned, scaled and centred so that they look like their prior, N(0, 1).

        z = A z' + b and w' = A'w explain the data alike; the bound rises (Luttinen and Ilin, 2010,
        "Transformations in variational Bayesian factor analysis to speed up learning").
        """
        k, n = self.n_components, posterior.scatter[-1, -1]
        b = posterior.scatter[:k, k] / n
        root = np.linalg.cholesky(posterior.scatter[:k, :k] / n - np.outer(b, b))
        expected, v = self.expectations(posterior), self.variances[:, None]
        scatter = (expected.products / v[..., None]).sum(axis=0)[:k, :k]
        loadings = expected.loadings[:, :k] / np.sqrt(v)
        if self.sparse:  # few large loadings, or else no turn, only factors of unit covariance
            left, _, right = np.linalg.svd(root)
            turns = [varimax(loadings @ root), (left @ right).T]
        else:  # loadings at right angles to each other, which one relevance a factor suits best
            turns = [np.linalg.eigh(root.T @ scatter @ root)[1][:, ::-1]]
        for rotation in turns:
            turn = np.eye(k + 1)
            turn[:k, :k], turn[:k, k] = root @ rotation, b
            turned = self._turned(posterior, turn)
            shape, rate = self._relevance(self.expectations(turned).products)
            turned = turned.replace(relevance_shape=shape, relevance_rate=rate)
            rise = self.divergence(posterior) - self.divergence(turned)
            rise -= n * np.linalg.slogdet(turn)[1]
            rise += 0.5 * np.trace(posterior.scatter - turned.scatter)
            if rise > 0:
                return turned
        return posterior

    def largest_first(self, posterior: Natural) -> Natural:
        """λ with the factor first that explains most of the columns' variance."""
        k, products = self.n_components, self.expectations(posterior).products
        explained = np.einsum("djj,d->j", products, 1 / self.variances)[:-1] / 2
        order = np.argsort(-(self.relevance_prior + explained).round(9), kind="stable")
        turned = self._turned(posterior, np.eye(k + 1)[:, [*order, k]])
        shape, rate = posterior.relevance_shape[..., order], posterior.relevance_rate[..., order]
        return turned.replace(relevance_shape=shape, relevance_rate=rate)

    def _turned(self, posterior: Natural, turn: Array) -> Natural:
        """λ of w' = A'w, where z = A z', but for the relevances."""
        back = np.linalg.inv(turn)
        return posterior.replace(
            loadings_linear=posterior.loadings_linear @ back.T,
            loadings_precision=back @ posterior.loadings_precision @ back.T,
            scatter=back @ posterior.scatter @ back.T,
        )

    def divergence(self, posterior: Natural, prior_weight: float = 1.0) -> float:
        d, j = posterior.loadings_linear.shape
        squares = np.einsum("djj->dj", self.expectations(posterior).products)
        log_relevance = digamma(posterior.relevance_shape) - np.log(posterior.relevance_rate)
        if self.sparse:
            log_relevance = log_relevance.mean(axis=0)
        logs = d * (log_relevance.sum() + np.log(MEAN_PRECISION)) - j * np.log(self.variances).sum()
        quadratic = np.sum(self._prior_precision(posterior) * squares)
        log_prior = 0.5 * (logs - quadratic - d * j * np.log(2 * np.pi))
        log_determinants = np.linalg.slogdet(posterior.loadings_precision)[1]
        entropy = 0.5 * (d * j * np.log(2 * np.pi * np.e) - log_determinants.sum())
        total = -entropy - prior_weight * log_prior
        a, c = self.noise_prior, self.relevance_prior
        for name, prior in (("noise", (a, a * self._noise_variances())), ("relevance", (c, c))):
            shape, rate = (posterior[f"{name}_{part}"].ravel() for part in ("shape", "rate"))
            family = Gamma(shape.size)
            q, p = family.natural(shape, rate), family.natural(*prior)
            total += float(family.divergence(q, p, prior_weight))
        return float(total)

    def draw(self, posterior: Natural, n: int, rng: np.random.Generator) -> dict[str, Array]:
        means = self.expectations(posterior).loadings
        roots = np.linalg.cholesky(posterior.loadings_precision)
        noise = rng.standard_normal((n, *means.shape, 1))
        drawn = means + np.linalg.solve(np.swapaxes(roots, -1, -2), noise)[..., 0]
        parts = {"loadings": drawn[..., :-1], "mean": drawn[..., -1]}
        for name, part in (("precision", "noise"), ("relevance", "relevance")):
            shape, rate = posterior[f"{part}_shape"], posterior[f"{part}_rate"]
            parts[name] = rng.gamma(shape, 1.0 / rate, size=(n, *shape.shape))
        return parts

    def log_likelihood(self, data: Any, parameters: dict[str, Array]) -> Array:
        """Of what is observed of each row, with the factors integrated out."""
        loadings = np.column_stack([parameters["loadings"], parameters["mean"]])
        precision = np.broadcast_to(parameters["precision"], self.n_columns)
        solved = self.solve(data, known_loadings(loadings, precision), 1.0)
        return solved.energies + solved.entropies

    def simulate(self, parameters: dict[str, Array], like: Any, rng: np.random.Generator) -> Array:
        """As many rows as are given, with NaN where they have it."""
        table = np.asarray(like, float)
        factors = rng.standard_normal((len(table), self.n_components))
        noise = rng.standard_normal(table.shape) / np.sqrt(parameters["precision"])
        drawn = factors @ parameters["loadings"].T + parameters["mean"] + noise
        return np.where(np.isnan(table), np.nan, drawn)

    def local_log_normalizer(
        self, expectations: LoadingExpectations, inverse_temperatures: Array, data: Any
    ) -> Array:
        """log E_q ∫∫ p(x, z)^s dx dz: Gaussian integrals, and a moment of each τ that is seen."""
        s = np.asarray(inverse_temperatures, float)
        seen = (~np.isnan(np.asarray(data, float))).astype(float)
        patterns, which = np.unique(seen, axis=0, return_inverse=True)
        sizes = patterns.sum(axis=1, keepdims=True) if self.shared_noise else patterns
        shape, rate = expectations.posterior.noise_shape, expectations.posterior.noise_rate
        power = (1 - s) / 2 * sizes[:, :, None]  # [U, noises, M]
        moments = log_rising(shape[:, None], -power) + power * np.log(rate)[:, None]
        gaussians = (1 - s) / 2 * np.log(2 * np.pi) - 0.5 * np.log(s)
        n_numbers = patterns.sum(axis=1)[:, None] + self.n_components
        return (moments.sum(axis=1) + n_numbers * gaussians)[which.reshape(-1)]

    def _noise_variances(self) -> Array:
        return self.variances.mean(keepdims=True) if self.shared_noise else self.variances

    def _prior_precision(self, posterior: Natural) -> Array:
        """E α / v of the loadings, and that of the mean, [D, J]."""
        relevance = np.empty((self.n_columns, self.n_components + 1))
        relevance[:, :-1] = posterior.relevance_shape / posterior.relevance_rate
        relevance[:, -1] = MEAN_PRECISION
        return relevance / self.variances[:, None]

    def _relevance(self, products: Array, weight: float = 1.0) -> tuple[Array, Array]:
        """Shape and rate of q(α): one α a factor from all its loadings, or one from each."""
        c, seen = self.relevance_prior, 1 if self.sparse else self.n_columns
        of_each = "djj,d->dj" if self.sparse else "djj,d->j"
        squares = np.einsum(of_each, products, 1 / self.variances)[..., :-1]
        return np.full(squares.shape, weight * (c + seen / 2)), weight * (c + squares / 2)


def times(rows: Array, matrices: Array, which: np.ndarray) -> Array:
    """Row i times the (symmetric) matrix which[i]."""
    if len(matrices) == 1:
        return rows @ matrices[0]
    return (matrices[which] @ rows[..., None])[..., 0]


def varimax(loadings: Array, iterations: int = 30) -> Array:
    """The rotation R [K, K] for which the squares of ``loadings @ R`` vary most (Kaiser, 1958)."""
    rotation, before = np.eye(loadings.shape[1]), 0.0
    for _ in range(iterations):
        turned = loadings @ rotation
        gradient = loadings.T @ (turned**3 - turned * np.mean(turned**2, axis=0))
        left, sizes, right = np.linalg.svd(gradient)
        rotation = left @ right
        if sizes.sum() <= before * (1 + 1e-9):
            break
        before = float(sizes.sum())
    return np.asarray(rotation, float)
