"""The local step of Poisson factorisation, row after row; the work is (stored entries) · K a sweep.

A unit of the count x_ij belongs to factor k with the probability

    q_ijk ∝ exp{ s (E log θ_ik + E log β_kj) },

and q(θ_ik) = Gamma(a + s Σ_j x_ij q_ijk, b + s Σ_j E β_kj). Zeros need no q: they enter by the
rates alone, which are known before.
"""

import math

import numpy as np
from numba import njit

from tempering.models.fastmath import ENTRY, KERNEL

#: Sums of weights below this have lost digits, or all: they are made anew from logarithms.
SMALLEST_TOTAL = 1e-200


@njit(**KERNEL)
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


@njit(**KERNEL)
def _weigh(activation, weights, log_activation, log_column, s, products):
    """Fill products with what q of an entry is proportional to; the log of the factor left out.

    Usually that is activation · weights, with nothing left out.
    """
    total = 0.0
    for k in range(len(products)):
        products[k] = activation[k] * weights[k]
        total += products[k]
    if total >= SMALLEST_TOTAL:
        return total, 0.0
    largest = log_activation[0] + log_column[0]
    for k in range(1, len(products)):
        largest = max(largest, log_activation[k] + log_column[k])
    total = 0.0
    for k in range(len(products)):
        products[k] = math.exp(s * (log_activation[k] + log_column[k] - largest))
        total += products[k]
    return total, s * largest


@njit(**ENTRY)
def solve_rows(
    indptr,
    columns,
    counts,
    inverse_temperatures,
    powered,
    common,
    log_components,
    rates,
    prior_shape,
    max_sweeps,
    tolerance,
    shapes,
    statistics,
    energies,
    entropies,
    buffers,
    weights,
):
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
        for sweep in range(max_sweeps + 1):
            for k in range(n_factors):
                log_activation[k] = _digamma(shapes[row, k]) - math.log(rates[row, k])
                activation[k] = math.exp(s * log_activation[k])
                sums[k] = 0.0
            if sweep == max_sweeps:
                break
            for entry in range(first, last):
                log_column = log_components[columns[entry]]
                total, _ = _weigh(
                    activation, weights[entry - first], log_activation, log_column, s, products
                )
                factor = s * counts[entry] / total
                for k in range(n_factors):
                    sums[k] += factor * products[k]
            change = 0.0
            for k in range(n_factors):
                new = prior_shape + sums[k]
                change += abs(new - shapes[row, k])
                shapes[row, k] = new
            if change <= tolerance * size:
                for k in range(n_factors):
                    log_activation[k] = _digamma(shapes[row, k]) - math.log(rates[row, k])
                    activation[k] = math.exp(s * log_activation[k])
                break
        for entry in range(first, last):
            column, count = columns[entry], counts[entry]
            total, left_out = _weigh(
                activation,
                weights[entry - first],
                log_activation,
                log_components[column],
                s,
                products,
            )
            mean = 0.0
            for k in range(n_factors):
                share = products[k] / total
                mean += share * (log_activation[k] + log_components[column, k])
                statistics[column, k] += s * count * share
            energies[row] += count * mean
            entropies[row] += count * (math.log(total) + left_out - s * mean)


def most_entries(indptr):
    """The most stored entries of a row."""
    return int(np.diff(indptr).max(initial=0))
