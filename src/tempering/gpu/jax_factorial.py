"""The factorial mixture whose local steps run in JAX: on a GPU, or anywhere.

The same updates of q(z_n), in the same order, as :mod:`tempering.models.factorial.activations`,
all points of a table side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tempering.gpu.device_data import (
    NUMBERS_AT_ONCE,
    as_rows,
    double_precision,
    one_for_each,
    shard_rows,
)
from tempering.gpu.jax_device import compiled, counterpart, jax, jnp
from tempering.models.base import Array
from tempering.models.factorial.activations import (
    SAME,
    WARMING_SWEEPS,
    Activations,
    all_states,
    sweep_orders,
)
from tempering.models.factorial_mixture import ActivationStep, FactorialModel, FeatureExpectations
from tempering.models.natural import Natural


class JaxFactorialModel(FactorialModel):
    """:class:`tempering.models.FactorialModel` with its local step in JAX."""

    @classmethod
    def of(cls, model: FactorialModel) -> JaxFactorialModel:
        """The same model, in JAX."""
        return counterpart(model, cls)

    def on_cpu(self) -> FactorialModel:
        """The same model on the CPU, for what comes after a fit."""
        return counterpart(self, FactorialModel)

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
        offsets, couplings = self.interactions(products, variances)
        start = self.activation_probability if start is None else start
        s = one_for_each(inverse_temperature, rows)
        exact = self.local == "exact"
        orders = () if exact else sweep_orders(self.n_features, self.local_restarts)
        with double_precision():
            solved, (precision, precision_mean, squares), entropy = activation_step(
                rows.values, rows.n, s, means / self.noise_variance, offsets, couplings,
                _filled_up(start, rows), self.noise_variance,
                exact=exact, orders=tuple(tuple(int(k) for k in order) for order in orders),
                tolerance=self.tolerance, max_sweeps=self.max_sweeps,
            )  # fmt: skip
        base = self._base_energies(np.zeros(()))
        # The activations are still on the device, filled up to the table's rows.
        return ActivationStep(
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


@compiled
def activation_step(
    table, n, s, scaled_means, offsets, couplings, start, noise_variance,
    *, exact, orders, tolerance, max_sweeps,
):  # fmt: skip
    """One local step, from a table to its activations and statistics."""
    held = jnp.arange(table.shape[0]) < n
    weights = jnp.where(held, s, 0.0)
    lengths = (table * table).sum(axis=1)
    fields = table @ scaled_means.T + offsets
    if exact:
        states = jnp.asarray(all_states(couplings.shape[0]))
        solved = enumerate_all(fields, couplings, s, weights, states)
    else:
        solved = settle_all(fields, couplings, s, start, orders, tolerance, max_sweeps)
    z, precision = solved.activations, solved.second_moments
    weighted = weights[:, None] * z
    if precision is None:
        precision = weighted.T @ z
        diagonal = jnp.arange(precision.shape[0])
        precision = precision.at[diagonal, diagonal].set(weighted.sum(axis=0))
    statistics = (precision, weighted.T @ table, weights @ lengths)
    energies = solved.energies - lengths / (2.0 * noise_variance)
    entropy = jnp.where(held, solved.entropies, 0.0).sum()
    return Activations(z, energies, solved.entropies), statistics, entropy


def settle_all(
    fields,
    couplings,
    s,
    start,
    orders: tuple[tuple[int, ...], ...],
    tolerance: float,
    max_sweeps: int,
) -> Activations:
    """Coordinate ascent from ``start`` [n, K], and from hot starts where they lead higher.

    Points are, while they move, z and its logits [K, n], in single precision, and whether each
    still moves [n].
    """
    b, rough_couplings = fields.T.astype(jnp.float32), couplings.astype(jnp.float32)
    rough_s, all_orders = s.astype(jnp.float32), jnp.asarray(orders)
    n_features, n = b.shape

    def sweep(points, s, order):
        """Each activation once, in turn; the largest change of each point."""

        def move(place, state):
            (z, logits, active), largest = state
            k = order[place]
            pull = (rough_couplings[k][:, None] * z).sum(axis=0)
            logit = jnp.where(active, s * (b[k] - pull), logits[k])
            new = jax.nn.sigmoid(logit)
            largest = jnp.maximum(largest, jnp.abs(new - z[k]))
            return (z.at[k].set(new), logits.at[k].set(logit), active), largest

        return jax.lax.fori_loop(0, n_features, move, (points, jnp.zeros(n, jnp.float32)))

    def ascend(points):
        """Sweep until each point has come to rest; one that has takes no further part."""

        def again(state):
            points, sweeps = state
            (z, logits, active), largest = sweep(points, rough_s, all_orders[0])
            return (z, logits, active & (largest >= tolerance)), sweeps + 1

        def going(state):
            (_, _, active), sweeps = state
            return active.any() & (sweeps < max_sweeps)

        return jax.lax.while_loop(going, again, (points, jnp.int32(0)))[0]

    def weigh(logits) -> Activations:
        """z, E(z) and H(z) of each point, in double precision."""
        u = logits.astype(fields.dtype)
        z, small = jax.nn.sigmoid(u), jnp.exp(-jnp.abs(u))
        entropies = (small / (1.0 + small) * jnp.abs(u) + jnp.log1p(small)).sum(axis=0)
        energies = (z * (fields.T - 0.5 * (couplings @ z))).sum(axis=0)
        return Activations(z, energies, entropies)

    def restart(number, state):
        best, known = state
        points = jnp.full_like(b, 0.5), jnp.zeros_like(b), jnp.ones(n, bool)

        def warm(step, points):
            return sweep(points, rough_s * ((step + 1) / WARMING_SWEEPS), all_orders[number])[0]

        z, logits, _ = jax.lax.fori_loop(0, WARMING_SWEEPS, warm, points)
        # What comes to what is known already is not followed to its end.
        new = jnp.abs(z - known).max(axis=0) > SAME
        z, logits, _ = ascend((z, logits, new))
        found = weigh(logits)
        rise = s * (found.energies - best.energies) + found.entropies
        taken = new & (rise > best.entropies)
        best = jax.tree.map(lambda new, old: jnp.where(taken, new, old), found, best)
        return best, jnp.where(taken, z, known)

    points = start.T.astype(jnp.float32), jnp.zeros_like(b), jnp.ones(n, bool)
    z, logits, _ = ascend(points)
    best, _ = jax.lax.fori_loop(1, len(orders), restart, (weigh(logits), z))
    return best._replace(activations=best.activations.T)


def enumerate_all(fields, couplings, s, weights, states) -> Activations:
    """The exact q(z_n), with Σ_n w_n E[z_n z_n'] for weights w."""
    interactions = -0.5 * ((states @ couplings) * states).sum(axis=1)
    n, n_features = fields.shape
    n_states = states.shape[0]
    at_once = min(n, max(1, NUMBERS_AT_ONCE // n_states))

    def add_piece(piece, state):
        solved, mean = state
        # The last piece begins early enough to be whole; rows that were there before are left.
        first = jnp.minimum(piece * at_once, n - at_once)
        own = jax.lax.dynamic_slice(fields, (first, 0), (at_once, n_features))
        own_s, own_weights = (jax.lax.dynamic_slice(a, (first,), (at_once,)) for a in (s, weights))
        held = first + jnp.arange(at_once) >= piece * at_once
        exponents = own @ states.T + interactions
        largest = exponents.max(axis=1)
        q = jnp.exp(own_s[:, None] * (exponents - largest[:, None]))
        total = q.sum(axis=1)
        q = q / total[:, None]
        energies = (q * exponents).sum(axis=1)
        # s · energy + entropy = log Σ_S exp{s exponent}
        entropies = own_s * (largest - energies) + jnp.log(total)
        solved = Activations(
            jax.lax.dynamic_update_slice(solved.activations, q @ states, (first, 0)),
            jax.lax.dynamic_update_slice(solved.energies, energies, (first,)),
            jax.lax.dynamic_update_slice(solved.entropies, entropies, (first,)),
        )
        return solved, mean + jnp.where(held, own_weights, 0.0) @ q

    nothing = jnp.zeros(n, fields.dtype)
    start = (Activations(jnp.zeros_like(fields), nothing, nothing), jnp.zeros(n_states, s.dtype))
    solved, mean = jax.lax.fori_loop(0, -(-n // at_once), add_piece, start)
    return solved._replace(second_moments=(states.T * mean) @ states)
