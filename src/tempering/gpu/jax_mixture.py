"""Mixtures whose local steps run in JAX: on a GPU, or anywhere.

A piece of the table at a time: so the statistics t(x) of its rows are never stored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tempering.families import (
    Bernoulli,
    DiagonalGaussian,
    FullGaussian,
    IsotropicGaussian,
    Likelihood,
    Poisson,
    SphericalGaussian,
)
from tempering.gpu.device_data import (
    NUMBERS_AT_ONCE,
    as_rows,
    double_precision,
    one_for_each,
    shard_rows,
)
from tempering.gpu.jax_device import compiled, counterpart, jax, jnp, special
from tempering.models.base import Array, LocalStep
from tempering.models.mixture import Mixture, MixtureExpectations
from tempering.models.natural import Natural

LIKELIHOODS = {
    FullGaussian: "full",
    DiagonalGaussian: "diagonal",
    SphericalGaussian: "spherical",
    IsotropicGaussian: "isotropic",
    Bernoulli: "bernoulli",
    Poisson: "poisson",
}


class JaxMixture(Mixture):
    """:class:`tempering.models.Mixture` with its local step in JAX, in double precision."""

    @classmethod
    def of(cls, model: Mixture) -> JaxMixture:
        """The same mixture, in JAX."""
        kind_of(model.likelihood)
        return counterpart(model, cls)

    def on_cpu(self) -> Mixture:
        """The same mixture on the CPU, for what comes after a fit."""
        return counterpart(self, Mixture)

    @property
    def shard_size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Rows that are solved at a time."""
        return shard_rows(self.likelihood.conjugate.size)

    def local_step(
        self, data: Any, expectations: MixtureExpectations, inverse_temperature: float | Array
    ) -> LocalStep:
        rows = as_rows(data)
        s = one_for_each(inverse_temperature, rows)
        expected = expectations.log_weights, expectations.components
        kind, variance = kind_of(self.likelihood)
        with double_precision():
            counts, sums, entropy, energies = mixture_step(
                rows.values, rows.n, s, *expected, kind=kind, variance=variance
            )
        return LocalStep(
            statistics=Natural(
                weights=self.weights.statistics_from_counts(np.asarray(counts)),
                components=np.asarray(sums),
            ),
            energies=np.asarray(energies)[: rows.n],
            entropy=float(entropy),
            inverse_temperature=inverse_temperature,
        )


def kind_of(likelihood: Likelihood) -> tuple[str, float]:
    """The likelihood as the compiled code knows it: by a name, and a variance where it has one."""
    for known, name in LIKELIHOODS.items():
        if isinstance(likelihood, known):
            return name, float(getattr(likelihood, "variance", 1.0))
    names = ", ".join(known.__name__ for known in LIKELIHOODS)
    raise TypeError(
        f"mixtures of {type(likelihood).__name__} do not run in JAX; those of {names} do. Use "
        "backend='cpu'."
    )


def device_statistics(kind: str, variance: float, x: Any) -> tuple[Any, Any]:
    """t(x) [n, size] and log h(x) [n], as the likelihood of that name has them."""
    n, dimension = x.shape
    ones, gaussian = jnp.ones_like(x), -dimension / 2 * math.log(2 * math.pi * variance)
    if kind == "full":
        outer = (x[:, :, None] * x[:, None, :]).reshape(n, -1)
        return jnp.concatenate([x, outer, jnp.ones((n, 2), x.dtype)], axis=1), gaussian
    if kind == "diagonal":
        return jnp.concatenate([x, x**2, ones, ones], axis=1), gaussian
    if kind == "spherical":
        squares = (x**2).sum(axis=1, keepdims=True)
        return jnp.concatenate([x, squares, jnp.ones((n, 2), x.dtype)], axis=1), gaussian
    if kind == "isotropic":
        base = gaussian - (x**2).sum(axis=1) / (2 * variance)
        return jnp.concatenate([x, ones[:, :1]], axis=1) / variance, base
    if kind == "bernoulli":
        return jnp.concatenate([x, 1.0 - x], axis=1), 0.0
    return jnp.concatenate([x, ones], axis=1), -special.gammaln(x + 1.0).sum(axis=1)


@compiled
def mixture_step(table, n, s, log_weights, components, *, kind, variance):
    """(table, n, s, E log π, E t(β)) → Σ s r, Σ s r t(x), Σ H(q(z)), energies."""
    n_rows, dimension = table.shape
    at_once = min(n_rows, max(64, NUMBERS_AT_ONCE // components.shape[1]))

    def add_piece(piece, state):
        counts, sums, entropy, energies = state
        # The last piece begins early enough to be whole; rows that were there before are left.
        first = jnp.minimum(piece * at_once, n_rows - at_once)
        x = jax.lax.dynamic_slice(table, (first, 0), (at_once, dimension))
        own_s = jax.lax.dynamic_slice(s, (first,), (at_once,))
        number = first + jnp.arange(at_once)
        held = (number >= piece * at_once) & (number < n)

        statistics, log_base = device_statistics(kind, variance, x)
        log_joint = statistics @ components.T + log_weights
        log_joint = log_joint + jnp.reshape(log_base, (-1, 1))
        exponents = own_s[:, None] * log_joint
        largest = exponents.max(axis=1)
        r = jnp.exp(exponents - largest[:, None])
        total = r.sum(axis=1)
        r = r / total[:, None]
        energy = (r * log_joint).sum(axis=1)
        # s · energy + entropy = log Σ_k exp{s log_joint}
        own_entropy = largest + jnp.log(total) - own_s * energy
        weighted = jnp.where(held, own_s, 0.0)[:, None] * r
        return (
            counts + weighted.sum(axis=0),
            sums + weighted.T @ statistics,
            entropy + jnp.where(held, own_entropy, 0.0).sum(),
            jax.lax.dynamic_update_slice(energies, energy, (first,)),
        )

    start = (
        jnp.zeros_like(log_weights),
        jnp.zeros_like(components),
        jnp.zeros((), table.dtype),
        jnp.zeros(n_rows, table.dtype),
    )
    return jax.lax.fori_loop(0, -(-n_rows // at_once), add_piece, start)
