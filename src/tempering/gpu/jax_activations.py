"""q(z_n) of the factorial mixture in JAX: factorised, or exact over all 2^K activations.

The same updates, in the same order, as :mod:`tempering.models.factorial.mean_field`, all points of
a table side by side; and as :mod:`tempering.models.factorial.enumeration`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tempering.models.factorial.mean_field import SAME, WARMING_SWEEPS

#: Entries of a table of points × states that is made at a time.
STATES_AT_ONCE = 1 << 25


class Activations(NamedTuple):
    """q(z) of some points, as far as anybody asks for it."""

    activations: Any  # E z_nk, [n, K]
    energies: Any  # E_q of the log joint at s = 1, [n]
    entropies: Any  # H(q(z_n)), [n]


class Rough(NamedTuple):
    """The points while they move, in single precision."""

    z: Any  # [K, n]
    logits: Any  # of z, [K, n]
    active: Any  # whether a point moves, [n]


def settle(
    fields: Any,
    couplings: Any,
    s: Any,
    start: Any,
    orders: tuple[tuple[int, ...], ...],
    tolerance: float,
    max_sweeps: int,
) -> Activations:
    """Coordinate ascent from ``start`` [n, K], and from hot starts where they lead higher.

    Parameters are those of :func:`tempering.models.factorial.mean_field.settle_activations`, with
    the order of the features in the first ascent and in each restart.
    """
    import jax
    import jax.numpy as jnp

    b, rough_couplings = fields.T.astype(jnp.float32), couplings.astype(jnp.float32)
    rough_s, all_orders = s.astype(jnp.float32), jnp.asarray(orders)
    n_features, n = b.shape

    def sweep(rough: Rough, s: Any, order: Any) -> tuple[Rough, Any]:
        """Each activation once, in turn; the largest change of each point."""

        def move(place, state):
            (z, logits, active), largest = state
            k = order[place]
            pull = (rough_couplings[k][:, None] * z).sum(axis=0)
            logit = jnp.where(active, s * (b[k] - pull), logits[k])
            new = jax.nn.sigmoid(logit)
            largest = jnp.maximum(largest, jnp.abs(new - z[k]))
            return Rough(z.at[k].set(new), logits.at[k].set(logit), active), largest

        return jax.lax.fori_loop(0, n_features, move, (rough, jnp.zeros(n, jnp.float32)))

    def ascend(rough: Rough) -> Rough:
        """Sweep until each point has come to rest; one that has takes no further part."""

        def again(state):
            rough, sweeps = state
            rough, largest = sweep(rough, rough_s, all_orders[0])
            return rough._replace(active=rough.active & (largest >= tolerance)), sweeps + 1

        def going(state):
            return state[0].active.any() & (state[1] < max_sweeps)

        return jax.lax.while_loop(going, again, (rough, jnp.int32(0)))[0]

    def weigh(logits: Any) -> Activations:
        """z, E(z) and H(z) of each point, in double precision."""
        u = logits.astype(fields.dtype)
        z, small = jax.nn.sigmoid(u), jnp.exp(-jnp.abs(u))
        entropies = (small / (1.0 + small) * jnp.abs(u) + jnp.log1p(small)).sum(axis=0)
        energies = (z * (fields.T - 0.5 * (couplings @ z))).sum(axis=0)
        return Activations(z, energies, entropies)

    def restart(number, state):
        best, known = state
        everybody = jnp.ones(n, bool)
        rough = Rough(jnp.full_like(b, 0.5), jnp.zeros_like(b), everybody)

        def warm(step, rough):
            return sweep(rough, rough_s * ((step + 1) / WARMING_SWEEPS), all_orders[number])[0]

        rough = jax.lax.fori_loop(0, WARMING_SWEEPS, warm, rough)
        # What comes to what is known already is not followed to its end.
        new = jnp.abs(rough.z - known).max(axis=0) > SAME
        rough = ascend(rough._replace(active=new))
        found = weigh(rough.logits)
        rise = s * (found.energies - best.energies) + found.entropies
        taken = new & (rise > best.entropies)
        best = Activations(*(jnp.where(taken, a, b) for a, b in zip(found, best)))
        return best, jnp.where(taken, rough.z, known)

    rough = ascend(Rough(start.T.astype(jnp.float32), jnp.zeros_like(b), jnp.ones(n, bool)))
    best, _ = jax.lax.fori_loop(1, len(orders), restart, (weigh(rough.logits), rough.z))
    return best._replace(activations=best.activations.T)


def enumerate_all(
    fields: Any, couplings: Any, s: Any, weights: Any, states: Any
) -> tuple[Activations, Any]:
    """The exact q(z_n), and Σ_n w_n E[z_n z_n'] for weights w."""
    import jax
    import jax.numpy as jnp

    interactions = -0.5 * ((states @ couplings) * states).sum(axis=1)
    n, n_features = fields.shape
    n_states = states.shape[0]
    at_once = min(n, max(1, STATES_AT_ONCE // n_states))

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
    return solved, (states.T * mean) @ states
