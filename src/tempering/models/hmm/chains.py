"""Markov chains over hidden states, and what the emissions of sequences tell of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import quadratic_assignment

from tempering.models.base import Array
from tempering.models.hmm import kernels
from tempering.models.hmm.sequences import Inner


class Chain(NamedTuple):
    """The weights of a chain, in logarithms; they need not sum to 1."""

    log_start: Array  # [K]
    log_transitions: Array  # [K, K], from row to column


class Paths(NamedTuple):
    """q(z) of some sequences, and the parts of their contribution to the ELBO."""

    marginals: Array  # s q(z_t = k), [rows, K]
    start_counts: Array  # Σ s q(z_1 = k), [K]
    transition_counts: Array  # Σ s q(z_{t−1} = i, z_t = j), [K, K]
    energies: Array  # E_q[log joint] of each sequence, [n]
    log_normalizers: Array  # log Σ_z exp{s log joint} of each, [n]


def solve_paths(
    chain: Chain,
    log_emissions: Array,
    bounds: NDArray[np.int64],
    inverse_temperature: float | Array = 1.0,
    logs_only: bool = False,
    inner: Inner | None = None,
) -> Paths:
    """q(z) ∝ exp{s log joint} of sequences whose rows lie between ``bounds``.

    With ``logs_only`` every sequence is solved in logarithms, which takes longer. Of ``inner``, if
    given, are counts, energies and normalisers: the latter given the rows before. A sequence that
    does not begin there has the start that is folded into its first emissions.
    """
    rows, k = log_emissions.shape
    n = len(bounds) - 1
    if inner is None:
        inner = Inner(np.column_stack([bounds[:-1], bounds[1:]]), np.ones(n, bool))
    # Memory of its own, as kernels would be compiled once more for what cannot be written to.
    s = np.array(np.broadcast_to(inverse_temperature, n), dtype=float, order="C")
    log_emissions = np.ascontiguousarray(log_emissions, dtype=float)
    emissions, offsets = np.empty((rows, k)), np.empty(rows)
    if not logs_only:
        kernels.scale_emissions(log_emissions, bounds, s, emissions, offsets)
        np.exp(emissions, out=emissions)
    paths = Paths(np.empty((rows, k)), np.zeros(k), np.zeros((k, k)), np.empty(n), np.empty(n))
    kernels.forward_backward(
        np.ascontiguousarray(chain.log_start, dtype=float),
        np.ascontiguousarray(chain.log_transitions, dtype=float), log_emissions, emissions, offsets,
        bounds, *inner, s, logs_only, np.empty((rows, k)), paths.marginals, np.empty((k, k)),
        np.empty(rows), np.empty((2, k)), np.empty((2, k, k)), paths.start_counts,
        paths.transition_counts, paths.energies, paths.log_normalizers,
    )  # fmt: skip
    return paths


def stationary(transitions: Array) -> Array:
    """The share of each state in the long run, [K], of probabilities to go from row to column."""
    values, vectors = np.linalg.eig(transitions.T)
    weights = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    return weights / weights.sum()


def arranged(
    counts: tuple[Array, Array], allowed: tuple[NDArray[np.bool_], NDArray[np.bool_]]
) -> NDArray[np.int64]:
    """The order of states, [K], in which most first states [K] and moves [K, K] are allowed.

    A chain with forbidden moves has an order of its own, which clusters do not know. The order
    that is found is near the best of all.
    """
    k = len(counts[0])
    tables = np.zeros((2, k + 1, k + 1))  # a state before all others moves to the first
    for table, (start, moves) in zip(tables, (allowed, counts), strict=True):
        table[0, 1:], table[1:, 1:] = start, moves
    if allowed[1].diagonal().all():  # stays are most of the counts, and fit any order
        np.fill_diagonal(tables[1], 0.0)
    options = {"maximize": True, "partial_match": np.zeros((1, 2), int)}
    order = quadratic_assignment(*tables, options=options).col_ind
    options["partial_guess"] = np.column_stack([np.arange(1, k + 1), order[1:]])
    return quadratic_assignment(*tables, method="2opt", options=options).col_ind[1:] - 1


def best_paths(
    chain: Chain, log_emissions: Array, bounds: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int64]]:
    """The log joint of the most probable path of each sequence [n], and the states on it [rows]."""
    rows, k = log_emissions.shape
    states, log_joints = np.empty(rows, np.int64), np.empty(len(bounds) - 1)
    kernels.viterbi(
        np.ascontiguousarray(chain.log_start, dtype=float),
        np.ascontiguousarray(chain.log_transitions, dtype=float),
        np.ascontiguousarray(log_emissions, dtype=float), bounds, np.empty((2, k)),
        np.empty((int(np.diff(bounds).max()), k), np.int32), states, log_joints,
    )  # fmt: skip
    return log_joints, states


def draw_paths(
    start: Array, transitions: Array, bounds: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The states of sequences whose rows lie between ``bounds``, drawn from a chain [rows]."""
    first, moves = np.cumsum(start, axis=-1), np.cumsum(transitions, axis=-1)
    # A last sum below 1 would let a state be drawn that has the probability 0.
    first, moves = first / first[-1], moves / moves[:, -1:]
    states = np.empty(bounds[-1], np.int64)
    begins = np.zeros(bounds[-1], bool)
    begins[bounds[:-1]] = True
    for t, height in enumerate(rng.random(bounds[-1])):
        row = first if begins[t] else moves[states[t - 1]]
        states[t] = min(int(np.searchsorted(row, height, side="right")), len(row) - 1)
    return states
