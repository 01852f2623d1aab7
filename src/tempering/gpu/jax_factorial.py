"""The factorial mixture whose local steps run in JAX: on a GPU, or anywhere."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tempering.gpu.device_table import as_rows, double_precision, one_for_each, shard_rows
from tempering.gpu.jax_activations import Activations, enumerate_all, settle
from tempering.gpu.recasting import recast
from tempering.models.base import Array, Natural
from tempering.models.factorial.enumeration import all_states
from tempering.models.factorial.mean_field import sweep_orders
from tempering.models.factorial_mixture import (
    ACTIVATION_STEP,
    ActivationStep,
    FactorialModel,
    FeatureExpectations,
)
from tempering.storage.classes import stored


class Method(NamedTuple):
    """How activations are inferred; each is compiled once."""

    exact: bool
    orders: tuple[tuple[int, ...], ...]
    tolerance: float
    max_sweeps: int


@stored("jax_activation_step", constructed=False, attributes=ACTIVATION_STEP)
class JaxActivationStep(ActivationStep):
    """A local step whose activations are still on the device, filled up to the table's rows."""


class JaxFactorialModel(FactorialModel):
    """:class:`tempering.models.FactorialModel` with its local step in JAX.

    All in double precision but for the sweeps, like on the CPU.
    """

    @classmethod
    def of(cls, model: FactorialModel) -> JaxFactorialModel:
        """The same model, in JAX."""
        return recast(model, cls)

    def on_cpu(self) -> FactorialModel:
        """The same model on the CPU, for what comes after a fit."""
        return recast(self, FactorialModel)

    @property
    def shard_size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Rows that are solved at a time."""
        return shard_rows(self.dimension)

    def local_step(
        self,
        data: Any,
        expectations: FeatureExpectations,
        inverse_temperature: float | Array,
        start: Any = None,
    ) -> ActivationStep:
        rows, (means, variances, products) = as_rows(data), expectations
        offsets, couplings = self.interactions(products, variances, self.dimension)
        start = self.activation_probability if start is None else start
        s = one_for_each(inverse_temperature, rows)
        with double_precision():
            solved, (precision, precision_mean, squares), entropy = self._step()(
                rows.values,
                rows.n,
                s,
                means / self.noise_variance,
                offsets,
                couplings,
                _filled_up(start, rows),
                self.noise_variance,
            )
        base = self._base_energies(np.zeros(()))
        return JaxActivationStep(
            solved.activations,
            statistics=Natural(
                precision=np.asarray(precision),
                precision_mean=np.asarray(precision_mean),
                squares=np.asarray(squares),
            ),
            energies=np.asarray(solved.energies)[: rows.n] + base,
            entropy=float(entropy),
            inverse_temperature=inverse_temperature,
        )

    def _step(self) -> Any:
        exact = self.local == "exact"
        orders = () if exact else sweep_orders(self.n_features, self.local_restarts)
        as_tuples = tuple(tuple(int(k) for k in order) for order in orders)
        return compiled_step(Method(exact, as_tuples, self.tolerance, self.max_sweeps))


def _filled_up(start: Any, rows: Any) -> Any:
    """Activations for each row that is on the device; one for all, or as a step left them."""
    n_rows = rows.values.shape[0]
    if start.ndim == 1:
        return np.broadcast_to(start, (n_rows, start.size))
    if start.shape[0] == n_rows:
        return start
    filled = np.full((n_rows, start.shape[1]), 0.5)
    filled[: rows.n] = np.asarray(start)[: rows.n]
    return filled


@cache
def compiled_step(method: Method) -> Any:
    """One local step, from a table to its activations and statistics."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(table, n, s, scaled_means, offsets, couplings, start, noise_variance):
        held = jnp.arange(table.shape[0]) < n
        weights = jnp.where(held, s, 0.0)
        lengths = (table * table).sum(axis=1)
        fields = table @ scaled_means.T + offsets
        if method.exact:
            states = jnp.asarray(all_states(couplings.shape[0]))
            solved, precision = enumerate_all(fields, couplings, s, weights, states)
        else:
            solved = settle(
                fields, couplings, s, start, method.orders, method.tolerance, method.max_sweeps
            )
            precision = None
        z = solved.activations
        weighted = weights[:, None] * z
        if precision is None:
            precision = weighted.T @ z
            diagonal = jnp.arange(precision.shape[0])
            precision = precision.at[diagonal, diagonal].set(weighted.sum(axis=0))
        statistics = (precision, weighted.T @ table, weights @ lengths)
        energies = solved.energies - lengths / (2.0 * noise_variance)
        entropy = jnp.where(held, solved.entropies, 0.0).sum()
        return Activations(z, energies, solved.entropies), statistics, entropy

    return step
