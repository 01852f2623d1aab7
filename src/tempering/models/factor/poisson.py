"""Bayesian Poisson factorisation: counts that are sums over factors.

    θ_ik ~ Gamma(a, b) for each row,   β_kj ~ Gamma(c, d),   x_ij ~ Poisson(Σ_k θ_ik β_kj).

Each unit of a count belongs to one factor, z: with q_ijk ∝ exp{ s (E log θ_ik + E log β_kj) }, and
q(θ_ik) = Gamma(a + s Σ_j x_ij q_ijk, b + s Σ_j E β_kj). Tempered is p(x, z | θ, β), not the prior
of θ. The posterior of β_kj has one rate for all columns of a factor. Zeros enter by the rates
alone, so that a sweep takes (stored entries) · K steps.
"""

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln

from tempering.families import Gamma
from tempering.families.checks import FLOAT32_COUNT, check_compressed, check_shape
from tempering.models.arguments import check_number, check_whole
from tempering.models.base import Array, DataSource, LocalStep, Model
from tempering.models.compilation import ENTRY, PASTED, njit
from tempering.models.fastmath import total_of
from tempering.models.natural import LOCAL_STEP, Natural, check_like_prior
from tempering.storage.state import stored

#: Sums of weights below this have lost digits, or all: they are made anew from logarithms.
SMALLEST_TOTAL = 1e-200


FACTOR_STEP = {"shapes": Array, "rates": Array, "entropies": Array, **LOCAL_STEP}


@stored("factor_step", constructed=False, attributes=FACTOR_STEP)
class FactorStep(LocalStep):
    """A local step that still has its q(θ): shapes and rates, [n, K]."""

    def __init__(self, shapes: Array, rates: Array, entropies: Array, **terms: Any):
        super().__init__(entropy=float(entropies.sum()), **terms)
        self.shapes, self.rates, self.entropies = shapes, rates, entropies


@stored("poisson_factors")
@dataclass(eq=False, repr=False)
class PoissonFactors(Model):
    """Poisson factorisation: Gamma(a, b) activations θ of a row, Gamma(c, d) components β."""

    n_components: int
    n_columns: int
    activation_shape: float = 0.3
    activation_rate: float = 0.3
    component_shape: float = 0.3
    component_rate: float = 0.3

    continues_steps = True
    shard_size = 1024
    components = MappingProxyType({"shape": 1, "rate": 0})

    def __post_init__(self) -> None:
        self.check_parameters()

    def check_parameters(self) -> None:
        check_whole(n_components=self.n_components, n_columns=self.n_columns)
        for name in ("activation_shape", "activation_rate", "component_shape", "component_rate"):
            expected = "from 1e-100 to 1e100"
            check_number(getattr(self, name), name, expected, least=1e-100, most=1e100)

    def prior(self) -> Natural:
        return Natural(
            shape=np.full((self.n_columns, self.n_components), float(self.component_shape)),
            rate=np.full(self.n_components, float(self.component_rate)),
        )

    def check(self, data: Any) -> None:
        check_compressed(data, "data")
        check_shape(data.shape, self.n_columns, "Poisson factorisation:")
        values = data.data if sparse.issparse(data) else np.asarray(data)
        if values.dtype.kind not in "biuf" or not np.all((values >= 0) & (values <= FLOAT32_COUNT)):
            raise ValueError(
                f"data must be counts, not negative and at most {FLOAT32_COUNT:g}; negative "
                "numbers, NaN and infinity are none."
            )

    def check_posterior(self, posterior: Any) -> None:
        check_like_prior(posterior, self.prior())
        if not all(np.all(part > 0) for part in posterior.values()):
            raise ValueError("shapes and rates of the components must be positive.")

    def initialize(self, source: DataSource, rng: np.random.Generator) -> Natural:
        """Each row of a sample shared at random among the components, as if it were all of them."""
        counts = as_csr(source.sample(10_000, rng))
        share = rng.dirichlet(np.ones(self.n_components), size=counts.shape[0])
        scale = source.size / counts.shape[0]
        mean = self.activation_shape / self.activation_rate
        return self.prior() + Natural(
            shape=scale * np.asarray(counts.T @ share),
            rate=np.full(self.n_components, source.size * mean),
        )

    def expectations(self, posterior: Natural) -> tuple[Array, Array]:
        """E log β_kj, [V, K], and Σ_j E β_kj, [K]."""
        totals = posterior.shape.sum(axis=0) / posterior.rate
        return digamma(posterior.shape) - np.log(posterior.rate), totals

    def local_step(
        self,
        data: Any,
        expectations: tuple[Array, Array],
        inverse_temperature: float | Array,
        start: Array | None = None,
    ) -> FactorStep:
        counts, (log_components, totals) = as_csr(data), expectations
        n, k = counts.shape[0], self.n_components
        s = np.broadcast_to(np.asarray(inverse_temperature, float), n)
        rates = self.activation_rate + s[:, None] * totals
        if start is None:
            size = s * np.asarray(counts.sum(axis=1)).ravel()
            shapes = np.repeat(self.activation_shape + size[:, None] / k, k, axis=1)
        else:
            shapes = start.copy()
        common = np.ndim(inverse_temperature) == 0
        statistics = np.zeros_like(log_components)
        energies, entropies = np.zeros(n), np.zeros(n)
        # One type for any matrix, in memory that can be written to: else the kernel would be
        # compiled once more.
        indptr, columns = counts.indptr.astype(np.int64), counts.indices.astype(np.int32)
        values = np.require(counts.data, requirements=["C", "W"])
        powered = np.exp(inverse_temperature * log_components) if common else log_components
        buffers, weights = np.empty((4, k)), np.empty((np.diff(indptr).max(initial=0), k))
        # Sweeps at most, from nothing or from what the last step found; and the change of q(θ) that
        # ends them, as a part of the row's counts.
        max_sweeps, tolerance = 100 if start is None else 3, 1e-5
        solve_rows(
            indptr, columns, values, np.array(s), powered, common, log_components, rates,
            float(self.activation_shape), max_sweeps, tolerance,
            shapes, statistics, energies, entropies, buffers, weights,
        )  # fmt: skip
        activations = shapes / rates
        # Σ_j log x_ij!, row by row: differences of running sums would depend on the rows before.
        parts = gammaln(counts.data + 1.0), counts.indices, counts.indptr
        logs = sparse.csr_array(parts, shape=counts.shape)
        energies -= activations @ totals + logs.sum(axis=1)
        family = Gamma(k)
        prior = family.natural(self.activation_shape, self.activation_rate)
        entropies -= family.divergence(family.natural(shapes, rates), prior)
        return FactorStep(
            shapes,
            rates,
            entropies,
            statistics=Natural(shape=statistics, rate=s @ activations),
            energies=energies,
            inverse_temperature=inverse_temperature,
            local=activations,
        )

    def continue_local_step(
        self,
        local: LocalStep,
        data: Any,
        expectations: tuple[Array, Array],
        inverse_temperature: float | Array,
    ) -> FactorStep:
        start = local.shapes if isinstance(local, FactorStep) else None
        return self.local_step(data, expectations, inverse_temperature, start)

    def largest_first(self, posterior: Natural) -> Natural:
        """λ with the component first that holds most of the counts."""
        held = (posterior.shape - self.component_shape).sum(axis=0)
        order = np.argsort(-held.round(6), kind="stable")
        return Natural(shape=posterior.shape[:, order], rate=posterior.rate[order])

    def divergence(self, posterior: Natural, prior_weight: float = 1.0) -> float:
        family, prior = Gamma(self.n_columns), self.prior()
        q, p = (family.natural(part.shape.T, part.rate[:, None]) for part in (posterior, prior))
        return float(np.sum(family.divergence(q, p, prior_weight)))

    def draw(self, posterior: Natural, n: int, rng: np.random.Generator) -> dict[str, Array]:
        shape = posterior.shape.T
        drawn = rng.gamma(shape, 1.0 / posterior.rate[:, None], size=(n, *shape.shape))
        return {"components": drawn}

    def simulate(self, parameters: dict[str, Array], like: Any, rng: np.random.Generator) -> Array:
        """As many rows of counts as are given, of activations from their prior."""
        size = (like.shape[0], self.n_components)
        activations = rng.gamma(self.activation_shape, 1.0 / self.activation_rate, size)
        return rng.poisson(activations @ parameters["components"]).astype(float)


def as_csr(data: Any) -> sparse.csr_array:
    """Rows of counts as kernels take them: float64, without zeros, and the caller's left alone."""
    counts = sparse.csr_array(data, dtype=np.float64)
    if not counts.has_canonical_format or np.any(counts.data == 0):
        counts = counts.copy()
        counts.sum_duplicates()
        counts.eliminate_zeros()
    return counts


@njit(**PASTED)
def _digamma(x):
    """digamma(x) of a float64 x > 0: the recurrence up to 10, then the asymptotic series."""
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / x
        x += 1.0
    inverse = 1.0 / (x * x)
    series = 1 / 240 - inverse * (1 / 132 - inverse * (691 / 32760 - inverse / 12))
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * series)))
    return math.log(x) - 0.5 / x - series - shift


@njit(**PASTED)
def _weigh(activation, weights, log_activation, log_column, s, products):
    """Fill products with what q of an entry is proportional to; the log of the factor left out.

    Usually that is activation · weights, with nothing left out.
    """
    for k in range(len(products)):
        products[k] = activation[k] * weights[k]
    total = total_of(products)
    if total >= SMALLEST_TOTAL:
        return total, 0.0
    largest = log_activation[0] + log_column[0]
    for k in range(1, len(products)):
        largest = max(largest, log_activation[k] + log_column[k])
    for k in range(len(products)):
        products[k] = math.exp(s * (log_activation[k] + log_column[k] - largest))
    return total_of(products), s * largest


@njit(**ENTRY)
def solve_rows(
    indptr, columns, counts, inverse_temperatures, powered, common, log_components, rates,
    prior_shape, max_sweeps, tolerance, shapes, statistics, energies, entropies, buffers, weights,
):  # fmt: skip
    """Solve q(θ) and q(z) of all rows, from the shapes of q(θ) given.

    ``powered`` [V, K] holds exp{s E log β} where s is ``common``; ``buffers`` [4, K] and
    ``weights`` [most entries of a row, K] are room to work in. Added to are ``statistics`` [V, K],
    Σ_i s_i x_ij q_ijk; ``energies`` and ``entropies`` [n], what q(z) alone contributes to them.
    """
    n_factors = shapes.shape[1]
    log_activation, activation = buffers[0], buffers[1]
    products, sums = buffers[2], buffers[3]
    for row in range(len(indptr) - 1):
        s, first, last = inverse_temperatures[row], indptr[row], indptr[row + 1]
        size = n_factors * prior_shape
        for entry in range(first, last):
            size += s * counts[entry]
            column = columns[entry]
            for k in range(n_factors):
                if common:
                    weights[entry - first, k] = powered[column, k]
                else:
                    weights[entry - first, k] = math.exp(s * log_components[column, k])
        settled = False
        for sweep in range(max_sweeps + 1):
            settled = settled or sweep == max_sweeps
            for k in range(n_factors):
                log_activation[k] = _digamma(shapes[row, k]) - math.log(rates[row, k])
                activation[k] = math.exp(s * log_activation[k])
                sums[k] = 0.0
            for entry in range(first, last):
                column, count = columns[entry], counts[entry]
                log_column = log_components[column]
                total, left_out = _weigh(
                    activation, weights[entry - first], log_activation, log_column, s, products
                )
                if not settled:
                    factor = s * count / total
                    for k in range(n_factors):
                        sums[k] += factor * products[k]
                    continue
                mean = 0.0
                for k in range(n_factors):
                    share = products[k] / total
                    mean += share * (log_activation[k] + log_column[k])
                for k in range(n_factors):
                    statistics[column, k] += s * count * (products[k] / total)
                energies[row] += count * mean
                entropies[row] += count * (math.log(total) + left_out - s * mean)
            if settled:
                break
            change = 0.0
            for k in range(n_factors):
                new = prior_shape + sums[k]
                change += abs(new - shapes[row, k])
            for k in range(n_factors):
                shapes[row, k] = prior_shape + sums[k]
            settled = change <= tolerance * size
