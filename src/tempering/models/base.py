"""The contract between a model, a temperature policy and the engine.

A model is conditionally conjugate: global variables β with a prior of natural parameter α, and for
each datum i a local variable z_i. Write one class with the first five methods of :class:`Model`
and it runs under every temperature policy, in batch or stochastic variational inference.

In the literature: α is ``prior``, λ is ``posterior``, t(x, z) are the ``statistics``, s = 1/T is
the ``inverse_temperature`` and E_q[log p(x_i, z_i | β)] is the ``energy`` of datum i.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import reduce, wraps
from operator import add
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from tempering.models.natural import Array, Families, LocalStep, check_like_prior, entry

#: What a model without a method may do instead.
OR_FAMILIES = ". Define it, or tell the family of each part of λ in `families`."


class UnsupportedTemperature(TypeError):
    """The model lacks what the temperature policy asks of it."""


class TemperatureTerms(NamedTuple):
    """What a temperature is learned from: s E_i − log c_i(s) is a datum's score at s."""

    energies: Array  # E_i of all data of the batch, or of a sample of them, [n']
    log_normalizers: Array  # log c_i(s_m), [n', M] or [1, M]
    share: float = 1.0  # which share of the batch these data are
    exact: bool = True  # whether the scores belong to the bound that the fit ascends


class DataSource(Protocol):
    """What a model may ask of the data when it initialises itself."""

    @property
    def size(self) -> int:
        """Number of data N."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        """At most n data, drawn without replacement."""
        ...


def some_rows(data: Any, n: int, rng: np.random.Generator) -> Any:
    """At most n of the rows, drawn without replacement."""
    if n >= data.shape[0]:
        return data
    return data[np.sort(rng.choice(data.shape[0], size=n, replace=False))]


class Start(NamedTuple):
    """λ and q(z) at step 0, for a model of ``continues_steps``; minibatches take λ alone.

    The first step is then ``continue_local_step``, where the ``local`` of the step before is q(z).
    """

    posterior: Any
    local: Any  # of each datum in the order of the source, [N, ...]; None to solve it from nothing


def start_of(model: Model, source: DataSource, rng: np.random.Generator) -> Start:
    """What ``initialize`` gives, whether or not with q(z)."""
    start = model.initialize(source, rng)
    if not isinstance(start, Start):
        return Start(start, None)
    if not model.continues_steps:
        raise ValueError("initialize gives q(z), which only a model of continues_steps = True can.")
    return start


def by_temperature(local_step: Callable[..., LocalStep]) -> Callable[..., LocalStep]:
    """Have the ``local_step`` of a model called with one temperature at a time.

    ``LocalTempering`` gives each datum a temperature of its own, from a grid. A model that can only
    multiply its data by one matrix for all of them takes the data of each temperature at once.

    Parameters
    ----------
    local_step : callable
        The method, for which ``inverse_temperature`` is a number. Data are rows.

    Returns
    -------
    callable
        The method, which takes an array of inverse temperatures too.

    Examples
    --------
    >>> from tempering import Model
    >>> from tempering.models import by_temperature
    >>> class Own(Model):
    ...     @by_temperature
    ...     def local_step(self, data, expectations, inverse_temperature): ...
    """

    @wraps(local_step)
    def solve(
        self: Any, data: Any, expectations: Any, inverse_temperature: float | Array
    ) -> LocalStep:
        s = np.asarray(inverse_temperature, float)
        if s.ndim == 0:
            return local_step(self, data, expectations, inverse_temperature)
        groups = [np.flatnonzero(s == value) for value in np.unique(s)]
        steps = [local_step(self, data[rows], expectations, float(s[rows[0]])) for rows in groups]
        back, total = np.argsort(np.concatenate(groups)), reduce(add, steps)
        local = None
        if steps[0].local is not None:
            local = np.concatenate([step.local for step in steps])[back]
        energies = total.energies[back]
        return LocalStep(total.statistics, energies, total.entropy, s, total.bound, local)

    return solve


class Model(ABC):
    """A conditionally conjugate model: what it must provide, and what it may.

    Variational inference and annealing need only the first five methods, and a model that names the
    ``families`` of its parts has the fifth. Variational tempering also needs one of
    ``log_partition``, ``log_local_integral`` and ``local_log_normalizer``; local variational
    tempering needs ``local_log_normalizer``.

    Examples
    --------
    What a model can do is known before any work:

    >>> from tempering import Mixture
    >>> from tempering.families import Dirichlet, Poisson
    >>> model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 1.0])
    >>> model.learns_temperatures, model.provides("learn_hyperparameters")
    (True, True)
    """

    #: Rows that one worker solves at a time. A constant, so that sums never depend on the workers.
    shard_size: int = 8192

    #: Whether a step on the whole data starts from the local variables of the step before (by
    #: ``continue_local_step``). A local step that ends in one of several optima needs it: only then
    #: does the ELBO never fall.
    continues_steps: bool = False

    #: The axes of the statistics along which exchangeable components lie, by part of them:
    #: ``{"weights": 0, "means": 0}``, or ``(0, 1)`` for a transition matrix. A search moves
    #: components along these axes.
    components: Mapping[str, int | tuple[int, ...]] = MappingProxyType({})

    #: The family of each part of λ, by name. A model that tells it need not write ``divergence``,
    #: ``check_posterior`` or ``draw``.
    families: Families = MappingProxyType({})

    @abstractmethod
    def prior(self) -> Any:
        """α, the natural parameters of p(β)."""

    @abstractmethod
    def initialize(self, source: DataSource, rng: np.random.Generator) -> Any:
        """λ at step 0; with ``continues_steps`` it may be a :class:`Start`, with q(z) too."""

    @abstractmethod
    def expectations(self, posterior: Any) -> Any:
        """E_q[t(β)], computed once a step; handed to the local step as it is."""

    @abstractmethod
    def local_step(
        self, data: Any, expectations: Any, inverse_temperature: float | Array
    ) -> LocalStep:
        """Solve q(z_i) for these data at one inverse temperature, or at one for each datum."""

    def local_variables(self, data: Any, expectations: Any) -> Any:
        """q(z) [n, ...] of these data at T = 1: by default what the local step keeps of it."""
        return self.local_step(data, expectations, 1.0).local

    def divergence(self, posterior: Any, prior_weight: float = 1.0) -> float:
        """KL(q(β) ‖ p(β)^w), up to the normaliser of p^w: with w = 1, the KL divergence.

        By default the sum over ``families``.
        """
        if not self.families:
            raise self._lacks("divergence", OR_FAMILIES, NotImplementedError)
        prior = self.prior()
        parts = (
            np.sum(family.divergence(posterior[name], prior[name], prior_weight))
            for name, family in self.families.items()
        )
        return float(sum(parts))

    def check(self, data: Any) -> None:  # noqa: B027 (a model need not define it)
        """Raise ``ValueError`` if these cannot be data of this model. Called before any work."""

    def check_parameters(self) -> None:  # noqa: B027 (a model need not define it)
        """Raise ``ValueError`` if its numbers cannot be those of a model."""

    def check_posterior(self, posterior: Any) -> None:
        """Raise ``ValueError`` if this cannot be a posterior of the model."""
        if self.families:
            check_like_prior(posterior, self.prior())
        for name, family in self.families.items():
            if not np.all(family.is_valid(posterior[name])):
                kind = type(family).__name__
                raise ValueError(f"{name} of the posterior must be a proper {kind} distribution.")

    def learn_hyperparameters(  # noqa: B027 (a model need not define it)
        self, local: LocalStep, posterior: Any, rate: float
    ) -> None:
        """Adjust the priors after a step at T = 1 (empirical Bayes). By default they stay."""

    def revise(self, posterior: Any, before: float, after: float) -> Any:
        """λ after a step at T = 1, from one part of the run to another; for a model that knows how
        to leave an optimum that its steps cannot."""
        return posterior

    def global_step(self, posterior: Any, target: Any, rate: float) -> Any:
        """(1 − ρ) λ + ρ λ̂ with λ̂ = α + Σ_i s_i E[t(x_i, z_i)]: line 6 of Algorithm 1.

        A posterior that is stored in another way (lazily, say) brings a ``blend`` method. Global
        variables in blocks that depend on each other are updated in turn here, from the sums in λ̂,
        which then need not have the shape of λ.
        """
        if hasattr(posterior, "blend"):
            return posterior.blend(target, rate)
        return (1.0 - rate) * posterior + rate * target if rate != 1.0 else target

    def unpack_components(self, statistics: dict[str, Array]) -> dict[str, Array]:
        """Return statistics in which components are exchangeable, for a model that holds them in
        another way."""
        return statistics

    def pack_components(self, statistics: dict[str, Array]) -> dict[str, Array]:
        """Return the statistics of what :meth:`unpack_components` gives."""
        return statistics

    # What a fitted model is asked for: its draws need `families`, or `draw`.

    def draw(self, posterior: Any, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """n draws of β from q(β): the parameters of each part, with shape [n, ...]."""
        if not self.families:
            raise self._lacks("draw", OR_FAMILIES, NotImplementedError)
        families = self.families.items()
        return {name: family.sample(posterior[name], rng, n) for name, family in families}

    def log_likelihood(self, data: Any, parameters: Any) -> Array:
        """log p(x_i | β) of each datum [n] for one draw of β, with z_i summed out."""
        raise self._lacks("log_likelihood", ", which this needs: define it.", NotImplementedError)

    def simulate(self, parameters: Any, like: Any, rng: np.random.Generator) -> Any:
        """Data from p(x | β) for one draw of β: as many as ``like`` has, of its lengths, inputs."""
        raise self._lacks("simulate", ", which this needs: define it.", NotImplementedError)

    def predictive(
        self, data: Any, posterior: Any, n_draws: int = 100, rng: np.random.Generator | int = 0
    ) -> Array:
        """log ∫ p(x_i | β) q(β) dβ of each datum [n]: by default the mean over draws of β."""
        draws = self.draw(posterior, n_draws, np.random.default_rng(rng))
        total: Any = -np.inf
        for number in range(n_draws):
            total = np.logaddexp(total, self.log_likelihood(data, entry(draws, number)))
        return total - np.log(n_draws)

    def log_partition(self, inverse_temperatures: Array, n_data: int) -> Array:
        """log C(s) [M] in closed form, where the model has one."""
        raise self._lacks("log_partition")

    def printed_log_partition(self, inverse_temperatures: Array, n_data: int) -> Array:
        """log C(s) [M] as the paper prints it for this model, where that is another one."""
        raise self._lacks("printed_log_partition")

    def draw_prior(self, n: int, rng: np.random.Generator) -> Any:
        """n draws of β from the prior, for ``log_local_integral``."""
        raise self._lacks("draw_prior")

    def prior_point(self) -> Any:
        """The mode of the prior in natural coordinates, in the shape of one draw of n = 1."""
        raise self._lacks("prior_point")

    def log_local_integral(self, parameters: Any, inverse_temperatures: Array) -> Array:
        """log c(s; β) = log ∫∫ p(x, z | β)^s dx dz for draws of β, shape [n, M]."""
        raise self._lacks("log_local_integral")

    def local_log_normalizer(
        self, expectations: Any, inverse_temperatures: Array, data: Any
    ) -> Array:
        """log c_i(s) under the current posterior, shape [n, M], or [1, M] when alike for all."""
        raise self._lacks("local_log_normalizer")

    def for_workers(self) -> Model:
        """The model without what only the process that leads a fit needs: it travels each step."""
        return self

    def with_bound(self) -> Model:
        """The model whose local step maximises the ELBO: itself, unless its updates ascend none."""
        return self

    def continue_local_step(
        self, local: LocalStep, data: Any, expectations: Any, inverse_temperature: float | Array
    ) -> LocalStep:
        """The local step again at another temperature; may start from what it found before."""
        return self.local_step(data, expectations, inverse_temperature)

    def temperature_terms(
        self,
        local: LocalStep,
        expectations: Any,
        inverse_temperatures: Array,
        data: Any,
        formula: str,
        shared: bool,
    ) -> TemperatureTerms:
        """What learned temperatures weigh: by default the terms of p(x_i, z_i | β)^s / c_i(s).

        ``formula`` is the policy's; ``shared`` says that all data have one temperature, so that a
        sample of them will do.
        """
        if formula not in ("calibrated", "paper"):
            raise UnsupportedTemperature(
                f"{type(self).__name__} has no temperature formula {formula!r}; use 'calibrated'."
            )
        return TemperatureTerms(
            local.energies, self.local_log_normalizer(expectations, inverse_temperatures, data)
        )

    def provides(self, method: str) -> bool:
        """Whether this model defines one of the optional methods."""
        return getattr(type(self), method) is not getattr(Model, method)

    @property
    def learns_temperatures(self) -> bool:
        """Whether it has what calibrated and local temperatures need."""
        return self.provides("local_log_normalizer") or self.provides("temperature_terms")

    def require_learned_temperatures(self) -> None:
        """Raise, before any work, if it has not."""
        if not self.learns_temperatures:
            raise self._lacks("local_log_normalizer")

    def _lacks(
        self,
        method: str,
        needs: str = ", which this temperature policy needs. Define it, or use Annealing, which "
        "needs nothing.",
        error: type[Exception] = UnsupportedTemperature,
    ) -> Exception:
        meaning = getattr(Model, method).__doc__.splitlines()[0].rstrip(".:")
        return error(f"{type(self).__name__} does not define `{method}` ({meaning}){needs}")
