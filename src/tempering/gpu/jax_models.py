"""Mixtures and hidden Markov models whose local steps run in JAX: on a GPU, or anywhere.

Mixtures take a piece of the table at a time: so the statistics t(x) of its rows are never stored.
Sequences of all lengths lie one after the other in lanes of nearly one length, and a scan over
time moves along all lanes at once: where a sequence begins, the forward pass begins anew. So there
is no padding but at the ends of the lanes.
"""

from __future__ import annotations

import math
from heapq import heapify, heapreplace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tempering.families import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    FullGaussian,
    IsotropicGaussian,
    Likelihood,
    Poisson,
    SphericalGaussian,
)
from tempering.gpu.device_data import (
    MEMORY_SHARE,
    NUMBERS_AT_ONCE,
    as_rows,
    device_memory,
    double_precision,
    one_for_each,
    rounded_up,
    shard_rows,
)
from tempering.gpu.jax_device import compiled, counterpart, jax, jnp, special
from tempering.models.base import Array, LocalStep
from tempering.models.hmm.chains import LARGEST_WEIGHT
from tempering.models.hmm.model import ChainExpectations, HiddenMarkov
from tempering.models.hmm.sequences import Sequences
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


def device_statistics(kind: str, variance: float, x) -> tuple[Any, Any]:
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


class JaxHiddenMarkov(HiddenMarkov):
    """:class:`tempering.models.HiddenMarkov` with its local step in JAX, in double precision."""

    #: All sequences at once: a block of rows after the other is solved.
    shard_size = 2**40

    @classmethod
    def of(cls, model: HiddenMarkov) -> JaxHiddenMarkov:
        """The same model, in JAX."""
        chain_kind(model)
        return counterpart(model, cls)

    def on_cpu(self) -> HiddenMarkov:
        """The same model on the CPU, for what comes after a fit."""
        return counterpart(self, HiddenMarkov)

    def local_step(
        self, data: Sequences, expectations: ChainExpectations, inverse_temperature: float | Array
    ) -> LocalStep:
        log_start, log_moves = expectations.chain
        starts = np.stack([log_start, expectations.log_shares()])
        s = np.array(np.broadcast_to(inverse_temperature, len(data)), float)
        common = np.ndim(inverse_temperature) == 0
        most = NUMBERS_AT_ONCE // max(self.n_components, self.likelihood.conjugate.size)
        kind, variance = chain_kind(self)
        total, energies, log_normalizers = 0.0 * self._prior, np.empty(len(data)), np.empty(len(s))
        for which, block in _blocks(data, max(1, most)):
            lanes = lanes_of(block)
            with double_precision():
                parts = chain_step(
                    *lanes, np.append(s[which], 1.0), np.append(block.begins, False),
                    np.append(block.in_the_middle, False), starts, log_moves,
                    expectations.emissions, kind=kind, variance=variance, common=common,
                )  # fmt: skip
                parts = [np.asarray(part) for part in parts]
            sums, (energy, log_normalizer, doubtful) = parts[:3], [part[:-1] for part in parts[3:]]
            energies[which], log_normalizers[which] = energy, log_normalizer
            if doubtful.any():  # what underflowed may count: the CPU solves in logarithms
                return super().local_step(data, expectations, inverse_temperature)
            total = total + Natural(start=sums[0], transitions=sums[1], emissions=sums[2])
        entropy = float(np.sum(log_normalizers - s * energies))
        return LocalStep(total, energies, entropy, inverse_temperature)


def chain_kind(model: HiddenMarkov) -> tuple[str, float]:
    """The likelihood as the compiled code knows it; an error if it does not."""
    if "emissions" in model.fixed:
        raise TypeError("emissions that params holds fixed do not run in JAX. Use backend='cpu'.")
    if isinstance(model.likelihood, Categorical):
        return "categorical", 1.0
    return kind_of(model.likelihood)


def _blocks(data: Sequences, most_rows: int) -> Any:
    """Blocks of so many rows; data that are one block stay the same object, which is kept."""
    if data.bounds[-1] <= most_rows:
        return [(slice(None), data)]
    return data.blocks(most_rows)


#: What was sent to the device, for as long as the data are there.
_sent: WeakKeyDictionary[Sequences, tuple[Any, ...]] = WeakKeyDictionary()


def lanes_of(data: Sequences) -> tuple[Any, ...]:
    """The rows of sequences on the device, [steps, lanes, D]; then, [steps, lanes], whose they are,
    whether a forward pass begins there, and whether they count: not those of buffers, nor places
    that are left empty. They are kept there, if they leave room for others."""
    if data in _sent:
        return _sent[data]
    place = places(data.lengths)
    table = np.asarray(data.rows, float).reshape(data.bounds[-1], -1)
    empty = place == len(table)
    owner = np.append(np.repeat(np.arange(len(data)), data.lengths), len(data))
    begins, counts = np.zeros(len(table) + 1, bool), np.zeros(len(table) + 1, bool)
    begins[data.bounds[:-1]] = begins[-1] = True
    for first, last in data.inner_bounds:
        counts[first:last] = True
    rows = np.where(empty[..., None], 0.0, table[np.minimum(place, len(table) - 1)])
    with double_precision():
        parts = rows, owner[place], begins[place], counts[place]
        lanes = tuple(jax.device_put(part) for part in parts)
    if rows.nbytes <= MEMORY_SHARE * device_memory():
        _sent[data] = lanes
    return lanes


def places(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which row lies in each place of the lanes, [steps, lanes]; the number of rows for none.

    The longest sequence is put first, and each into the lane that is shortest. Sizes are rounded
    up, by at most an eighth, so that batches of nearly one size are not compiled for one by one.
    """
    total, longest = int(lengths.sum()), int(lengths.max())
    sizes = lengths.tolist()
    starts = (np.cumsum(lengths) - lengths).tolist()
    filled = [(0, lane) for lane in range(-(-total // longest))]
    heapify(filled)
    found = []
    for number in np.argsort(-lengths, kind="stable").tolist():
        height, lane = filled[0]
        found.append((number, height, lane))
        heapreplace(filled, (height + sizes[number], lane))
    place = np.full((rounded_up(max(filled)[0]), rounded_up(len(filled))), total)
    for number, height, lane in found:
        own = np.arange(sizes[number])
        place[height + own, lane] = starts[number] + own
    return place


@compiled
def chain_step(
    rows, sequence, begins, counts, s, opens, middle, starts, log_moves, components,
    *, kind, variance, common,
):  # fmt: skip
    """(lanes, s, which begin a sequence, in the middle of one, starts, E log A, E t(β)) → counts
    of first states, moves and emissions; energy, log normaliser and doubt of each sequence."""

    def log_density(x, components):
        if kind == "categorical":
            return components.T[x[:, 0].astype(int)]
        statistics, log_base = device_statistics(kind, variance, x)
        return statistics @ components.T + jnp.reshape(log_base, (-1, 1))

    def add_emissions(sums, x, weights):
        if kind == "categorical":
            return sums.at[:, x[:, 0].astype(int)].add(weights.T)
        return sums + weights.T @ device_statistics(kind, variance, x)[0]

    def product(weights, logs):
        """Σ of weights · logs, where 0 · −∞ is 0."""
        return jnp.where(weights > 0, weights * logs, 0.0).sum(axis=-1)

    n, k = s.shape[0], log_moves.shape[0]
    power = s[sequence]  # [steps, lanes]
    log_first = jnp.where(middle[sequence][..., None], starts[1], starts[0])
    # A^s of all sequences, or of each place.
    all_moves = jnp.exp(s[0] * log_moves)
    finite_logs = jnp.where(log_moves > -jnp.inf, log_moves, 0.0)

    def forwards(before, moves):
        return before @ moves if common else jnp.einsum("li,lij->lj", before, moves)

    def backwards(after, moves):
        return after @ moves.T if common else jnp.einsum("lij,lj->li", moves, after)

    def moves_at(own_power):
        return all_moves if common else jnp.exp(own_power[:, None, None] * log_moves)

    def forward(before, here):
        x, begin, own_power, first = here
        log_here = log_density(x, components)
        largest = log_here.max(axis=1, keepdims=True)
        largest = jnp.where(largest > -jnp.inf, largest, 0.0)
        emissions = jnp.exp(own_power[:, None] * (log_here - largest))
        start = jnp.exp(own_power[:, None] * first)
        now = jnp.where(begin[:, None], start, forwards(before, moves_at(own_power)))
        now = now * emissions
        scale = now.sum(axis=1)
        fails = ~(scale > 0.0)
        now = now / jnp.where(fails, 1.0, scale)[:, None]
        log_scale = jnp.log(jnp.where(fails, 1.0, scale)) + own_power * largest[:, 0]
        return now, (before, now, emissions, log_here, scale, log_scale, fails)

    lanes = rows.shape[1]
    each = (rows, begins, power, log_first)
    _, passed = jax.lax.scan(forward, jnp.ones((lanes, k)), each)
    before, filtered, emissions, log_emissions, scale, log_scale, fails = passed

    def backward(state, here):
        belief, first_counts, pairs, sums = state
        x, begin, own_power, first, counted, opened, *rest = here
        before, now, emission, log_here, scale = rest
        moves = moves_at(own_power)
        marginal = now * belief
        weight = emission * belief / jnp.where(scale > 0.0, scale, 1.0)[:, None]
        highest = belief.max(axis=1) / scale
        moved = before * (counted & ~begin)[:, None]
        energy = jnp.where(counted, product(marginal, log_here), 0.0)
        energy = energy + jnp.where(counted & begin, product(marginal, first), 0.0)
        energy = energy + (forwards(moved, moves * finite_logs) * weight).sum(axis=1)
        counted_power = jnp.where(counted, own_power, 0.0)[:, None]
        sums = add_emissions(sums, x, counted_power * marginal)
        opened_power = jnp.where(opened & begin, own_power, 0.0)[:, None]
        first_counts = first_counts + (opened_power * marginal).sum(axis=0)
        moved = moved * own_power[:, None]
        if common:
            pairs = pairs + moves * (moved.T @ weight)
        else:
            pairs = pairs + jnp.einsum("li,lij,lj->ij", moved, moves, weight)
        belief = jnp.where(begin[:, None], 1.0, backwards(weight, moves))
        return (belief, first_counts, pairs, sums), (energy, highest)

    zero = (jnp.ones((lanes, k)), jnp.zeros(k), jnp.zeros((k, k)), jnp.zeros_like(components))
    each = (rows, begins, power, log_first, counts, opens[sequence])
    each = (*each, before, filtered, emissions, log_emissions, scale)
    state, (energy, highest) = jax.lax.scan(backward, zero, each, reverse=True)

    def of_sequences(values):
        return jnp.zeros(n).at[sequence.ravel()].add(values.ravel())

    doubt = fails | ~(highest < LARGEST_WEIGHT)
    return (
        *state[1:],
        of_sequences(energy),
        of_sequences(jnp.where(counts, log_scale, 0.0)),
        of_sequences(doubt.astype(float)) > 0,
    )
