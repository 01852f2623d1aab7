"""A finite mixture of any conjugate likelihood.

    π ~ weights (Dirichlet, stick-breaking or known),   β_k ~ the likelihood's conjugate prior,
    z_i ~ Categorical(π),                               x_i ~ p(x | β_{z_i}).

The local step is exact: q(z_i = k) ∝ exp{ s_i (E log π_k + E log p(x_i | β_k)) }.

Sticks are broken one after the other, so the order of the components matters to the ELBO: with
N_k data in each, the evidence of the sticks is Π_k N_k! / (γ + N_k + N_{k+1} + … ) up to what no
order changes, and is largest with the largest component first. Steps at T = 1 keep that order.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from tempering.families import FixedWeights, FullGaussian, Likelihood, MixingWeights, StickBreaking
from tempering.families.base import safe_log
from tempering.models.arguments import as_numbers
from tempering.models.base import Array, DataSource, LocalStep, Model
from tempering.models.natural import Families, Natural, emit, exchangeable

#: Numbers of a block of packed statistics, which fit the cache of a core.
CACHED = 2**16


class MixtureExpectations(NamedTuple):
    """E_q[t(β)] of a mixture, with the posterior it came from."""

    posterior: Natural
    log_weights: Array  # E log π_k, [K]
    components: Array  # E t(β_k), [K, size]


class Assignment(NamedTuple):
    """q(z) of some data, and the two parts of its contribution to the ELBO."""

    probabilities: Array  # [n, K]
    energies: Array  # E_q[log p(x_i, z_i | β)], [n]
    entropies: Array  # H(q(z_i)), [n]


class Mixture(Model):
    """Finite mixture of K components.

    Parameters
    ----------
    likelihood : Likelihood
        The density of a datum given its component.
    weights : MixingWeights
        The family of the mixing weights, of dimension K.
    weights_prior : array
        Natural parameters of the weights' prior.
    component_prior : array [size] or [K, size]
        Natural parameters of the components' prior.
    learned : callable, optional
        Returns the components' prior [K, size] that is best for a posterior (empirical Bayes), from
        the likelihood, the prior so far and the posterior [K, size]. It is called after each step
        at T = 1. By default the prior stays as it is.

    Examples
    --------
    Two kinds of counts, few and many:

    >>> import numpy as np
    >>> from tempering import Mixture, fit
    >>> from tempering.families import Dirichlet, Poisson
    >>> data = np.random.default_rng(0).poisson([[2.0], [20.0]], size=(2, 200)).reshape(-1, 1)
    >>> model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    >>> posterior = fit(model, data).posterior
    >>> np.sort(model.likelihood.conjugate.point(posterior.components).ravel()).round()
    array([ 2., 20.])
    """

    def __init__(
        self,
        likelihood: Likelihood,
        weights: MixingWeights,
        weights_prior: ArrayLike,
        component_prior: ArrayLike,
        learned: Callable[[Any, Array, Array], Array] | None = None,
    ):
        self.learned = learned
        self.likelihood = likelihood
        self.weights = weights
        self.n_components = weights.dimension
        shape = (self.n_components, likelihood.conjugate.size)
        self._prior = Natural(
            weights=as_numbers(weights_prior, "weights_prior", "numbers"),
            components=np.broadcast_to(
                as_numbers(component_prior, "component_prior", "numbers"), shape
            ),
        )
        #: Whether components are put in the order of their size, which can only raise the ELBO
        #: where they differ in nothing but their place among the sticks.
        self.sorts = isinstance(weights, StickBreaking) and all(
            bool(np.all(part == part[..., :1, :]))
            for part in (self._prior.weights.reshape(2, -1, 1), self._prior.components)
        )
        if not weights.is_valid(self._prior.weights).all():
            raise ValueError(f"weights_prior is not a proper {type(weights).__name__} prior.")
        if not likelihood.conjugate.is_valid(self._prior.components).all():
            raise ValueError(
                f"component_prior is not a proper {type(likelihood.conjugate).__name__} prior."
            )

    @property
    def families(self) -> Families:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {"weights": self.weights, "components": self.likelihood.conjugate}

    @property
    def components(self) -> Mapping[str, int]:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.sorts:
            return {"weights": 0, "components": 0}
        if isinstance(self.weights, FixedWeights):
            known = self.weights.weights
            return exchangeable(self._prior, {"components": 0}) if np.ptp(known) == 0.0 else {}
        return exchangeable(self._prior, {"weights": 0, "components": 0})

    def unpack_components(self, statistics: dict[str, Array]) -> dict[str, Array]:
        """Return the counts of the components in the place of the statistics of sticks."""
        if not isinstance(self.weights, StickBreaking):
            return statistics
        return {**statistics, "weights": statistics["weights"][: self.n_components]}

    def pack_components(self, statistics: dict[str, Array]) -> dict[str, Array]:
        """Return the statistics of sticks that are broken in the order of the components."""
        if not isinstance(self.weights, StickBreaking):
            return statistics
        weights = self.weights.statistics_from_counts(statistics["weights"])
        return {**statistics, "weights": weights}

    def check(self, data: Any) -> None:
        self.likelihood.check(data)

    def prior(self) -> Natural:
        return self._prior

    def initialize(self, source: DataSource, rng: np.random.Generator) -> Natural:
        """Soft random assignments of a sample of the data, as if it were all of them."""
        data = source.sample(10_000, rng)
        assignment = rng.dirichlet(np.ones(self.n_components), size=data.shape[0])
        scale = source.size / data.shape[0]
        return self._prior + scale * self.statistics(data, assignment)

    def statistics(self, data: Any, assignment: Array) -> Natural:
        """Σ_i a_ik t(x_i, z_i = k) for weighted assignments a [n, K]."""
        return Natural(
            weights=self.weights.statistics_from_counts(assignment.sum(axis=0)),
            components=self.likelihood.weighted_statistics(data, assignment),
        )

    def expectations(self, posterior: Natural) -> MixtureExpectations:
        return MixtureExpectations(
            posterior=posterior,
            # Finite also where a weight is 0: no datum is there, and 0 · (−∞) is not a number.
            log_weights=np.maximum(self.weights.expected_log_weights(posterior.weights), -1e300),
            components=self.likelihood.conjugate.expected_statistics(posterior.components),
        )

    def assign(
        self, data: Any, expectations: MixtureExpectations, inverse_temperature: float | Array = 1.0
    ) -> Assignment:
        """q(z_i), its energy and its entropy."""
        log_joint = self.likelihood.expected_log_likelihood(data, expectations.components)
        log_joint += expectations.log_weights
        s = np.reshape(inverse_temperature, (-1, 1))
        probabilities = s * log_joint
        largest = probabilities.max(axis=1, keepdims=True)
        probabilities -= largest
        np.exp(probabilities, out=probabilities)
        total = probabilities.sum(axis=1, keepdims=True)
        probabilities /= total
        energies = np.einsum("nk,nk->n", probabilities, log_joint)
        # s · energy + entropy = log Σ_k exp{s log_joint}
        entropies = (largest + np.log(total))[:, 0] - s[:, 0] * energies
        return Assignment(probabilities, energies, entropies)

    def local_step(
        self, data: Any, expectations: MixtureExpectations, inverse_temperature: float | Array
    ) -> LocalStep:
        if isinstance(self.likelihood, FullGaussian):
            return self._packed_step(data, expectations, inverse_temperature)
        probabilities, energies, entropies = self.assign(data, expectations, inverse_temperature)
        weighted = np.reshape(inverse_temperature, (-1, 1)) * probabilities
        statistics, entropy = self.statistics(data, weighted), float(entropies.sum())
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=probabilities)

    def _packed_step(
        self, data: Any, expectations: MixtureExpectations, inverse_temperature: float | Array
    ) -> LocalStep:
        """Return the local step of a likelihood that packs t(x), in blocks that fit the cache."""
        likelihood: Any = self.likelihood
        weights = likelihood.pack_expected(expectations.components)
        weights[:, -1] += expectations.log_weights
        (n, _), (k, m) = data.shape, weights.shape
        probabilities, energies = np.empty((k, n)), np.empty(n)
        sums, entropy, rows = np.zeros((k, m)), 0.0, max(64, CACHED // m)
        for first in range(0, n, rows):
            block = slice(first, first + rows)
            packed, r = likelihood.pack(data[block]), probabilities[:, block]
            log_joint = weights @ packed
            s = np.broadcast_to(inverse_temperature, n)[block]
            np.multiply(log_joint, s, out=r)
            largest = r.max(axis=0)
            r -= largest
            np.exp(r, out=r)
            total = r.sum(axis=0)
            r /= total
            energies[block] = np.einsum("kn,kn->n", r, log_joint)
            entropy += float(np.sum(largest + np.log(total) - s * energies[block]))
            sums += (r * s) @ packed.T
        statistics = Natural(
            weights=self.weights.statistics_from_counts(sums[:, -1]),
            components=likelihood.unpack(sums),
        )
        return LocalStep(statistics, energies, entropy, inverse_temperature, local=probabilities.T)

    def learn_hyperparameters(self, local: LocalStep, posterior: Natural, rate: float) -> None:
        """Adjust the prior of the components to the posterior, where it is learned."""
        if self.learned is None:
            return
        components = self.learned(self.likelihood, self._prior.components, posterior.components)
        self._prior = Natural(weights=self._prior.weights, components=components)

    def revise(self, posterior: Natural, before: float = 0.0, after: float = 1.0) -> Natural:
        """λ with the largest component first, where ``sorts`` says so."""
        return self.in_order_of_size(posterior) if self.sorts else posterior

    def in_order_of_size(self, posterior: Natural) -> Natural:
        """λ with the largest component first, and the sticks broken in that order."""
        counts = self.counts(posterior)
        # Sizes that differ by rounding alone stay as they are, on any machine.
        order = np.argsort(-counts.round(6), kind="stable")
        if np.array_equal(order, np.arange(self.n_components)):
            return posterior
        statistics = self.weights.statistics_from_counts(counts[order])
        return Natural(
            weights=self._prior.weights + statistics, components=posterior.components[order]
        )

    def counts(self, posterior: Natural) -> Array:
        """N_k, the data that λ holds in each component."""
        return (posterior.weights - self._prior.weights)[: self.n_components]

    def draw(self, posterior: Natural, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Of weights that sum to 1, also where λ is about sticks."""
        weights = np.exp(self.weights.sample_log_weights(posterior.weights, rng, n))
        return {
            "weights": weights / weights.sum(axis=-1, keepdims=True),
            "components": self.likelihood.conjugate.sample(posterior.components, rng, n),
        }

    def log_likelihood(self, data: Any, parameters: dict[str, Any]) -> Array:
        log_densities = self.likelihood.log_likelihood(data, parameters["components"])
        return logsumexp(log_densities + safe_log(parameters["weights"])[:, None], axis=0)

    def simulate(self, parameters: dict[str, Any], like: Any, rng: np.random.Generator) -> Any:
        labels = rng.choice(self.n_components, p=parameters["weights"], size=like.shape[0])
        return emit(self.likelihood, parameters["components"], labels, rng, like)

    def mean_weights(self, posterior: Natural) -> Array:
        """E[π_k]; truncated sticks do not quite sum to 1, so they are divided by their sum."""
        mean = self.weights.mean_weights(posterior.weights)
        return mean / mean.sum()

    def predictive(
        self, data: Any, posterior: Any, n_draws: int = 0, rng: np.random.Generator | int = 0
    ) -> Array:
        """log Σ_k E[π_k] E[p(x | β_k)], exact: E[p(x | β)] = h(x) exp{a(λ + t(x)) − a(λ)}."""
        likelihood = self.likelihood
        family, components = likelihood.components_alone(posterior.components)
        base = safe_log(self.mean_weights(posterior)) - family.log_normalizer(components)
        scores, step = [], 2048  # rows at a time, which bounds the memory
        for start in range(0, data.shape[0], step):
            rows = data[start : start + step]
            updated = components + likelihood.statistics(rows)[:, None, :]
            try:
                with np.errstate(divide="ignore", invalid="ignore"):
                    log_densities = family.log_normalizer(updated) + base
                lost = not np.all(log_densities < np.inf)
            except np.linalg.LinAlgError:
                lost = True
            if lost:
                largest = start + int(np.argmax(np.abs(rows).reshape(len(rows), -1).max(axis=1)))
                raise ValueError(
                    "some rows are so far from what was fitted that their density is lost in "
                    f"rounding; the largest number is in row {largest}. Leave such rows out, or "
                    "fit the mixture with them."
                )
            scores.append(logsumexp(log_densities, axis=1) + likelihood.log_base_measure(rows))
        return np.concatenate(scores)

    def log_partition(self, inverse_temperatures: Array, n_data: int) -> Array:
        """N log c(s), exact only where c(s; β) does not depend on β."""
        s = np.asarray(inverse_temperatures, float)
        if self.weights.size or not self.likelihood.power_integral_is_constant:
            return super().log_partition(s, n_data)
        return n_data * self.log_local_integral(self.prior_point(), s)[0]

    def draw_prior(self, n: int, rng: np.random.Generator) -> tuple[Array, Any]:
        """log π [n, K], and the parameters of the components, with leading axes [n, K]."""
        log_weights = self.weights.sample_log_weights(self._prior.weights, rng, n)
        return log_weights, self.likelihood.conjugate.sample(self._prior.components, rng, n)

    def prior_point(self) -> tuple[Array, Any]:
        log_weights = safe_log(self.weights.mean_weights(self._prior.weights))[None]
        return log_weights, self.likelihood.conjugate.point(self._prior.components[None])

    def log_local_integral(
        self, parameters: tuple[Array, Any], inverse_temperatures: Array
    ) -> Array:
        """log Σ_k π_k^s ∫ p(x | β_k)^s dx, shape [n, M]."""
        (log_weights, components), s = parameters, np.asarray(inverse_temperatures, float)
        integrals = self.likelihood.log_power_integral(components, s)  # [n, K, M]
        return logsumexp(s * log_weights[..., None] + integrals, axis=1)

    def local_log_normalizer(
        self, expectations: MixtureExpectations, inverse_temperatures: Array, data: Any
    ) -> Array:
        """log E_q[ Σ_k π_k^s ∫ p(x | β_k)^s dx ], [1, M]."""
        s = np.asarray(inverse_temperatures, float)
        posterior = expectations.posterior
        weights = self.weights.log_moment(posterior.weights, s)  # [M, K]
        integrals = self.likelihood.log_expected_power_integral(posterior.components, s).T
        return logsumexp(weights + integrals, axis=1)[None]
