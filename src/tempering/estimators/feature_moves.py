"""Moves of the factorial mixture, for features that do each other's work or none at all.

Two features span four sums, 0, m_j, m_k and m_j + m_k. A pair such as a + b/3 and 2b/3 − a spans
nearly those of the true a and b, and coordinate ascent cannot leave it: each step would first spoil
a sum that is right. Other generators of the same sums can, m_j and m_j + m_k for instance. It shows
in activations that depend on each other. So dependent pairs get other generators, and a feature
that explains next to nothing gets what the others leave over. Each candidate is tried on a sample
of the data, the promising ones for longer, and the best is handed on as a new start.
"""

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from tempering.inference import Algorithm, Batch, Constant
from tempering.inference.executors import Executor, Serial
from tempering.models import Natural
from tempering.models.base import Array
from tempering.models.factorial_mixture import FactorialModel
from tempering.temperature import Untempered

#: Rows on which candidates are tried: a tenth of the data, but at least, and at most.
FEWEST_ROWS, MOST_ROWS = 250, 1000
#: Passes over them in which each candidate, and then each promising one, is tried.
FIRST_PASSES, MORE_PASSES = 3, 15
#: Candidates that are promising.
PROMISING = 4
#: Dependent pairs that are tried at a time, the most dependent first.
MOST_PAIRS = 6
#: Nats by which the activations of a pair must be dependent: chance alone makes some.
DEPENDENT = 10.0
#: Nats a datum, roughly, that a feature of use explains.
OF_USE = 0.01
#: Steps of the power method.
POWER_STEPS = 10


class Sketch(NamedTuple):
    """Where some passes over the sample lead to."""

    elbo: float
    posterior: Natural


def move_features(
    model: FactorialModel, data: Array, posterior: Natural, executor: Executor
) -> Natural | None:
    """λ with other features; None where nothing promises a higher ELBO."""
    candidates = list(candidate_features(model, data, posterior))
    if not candidates:
        return None
    sample = _sample(data, model.n_features)
    # What was learned stays as it is, for candidates are compared.
    still = copy(model)
    still.learn = frozenset()

    def sketches(passes: int, starts: list[Natural]) -> list[Sketch]:
        return executor.map(lambda start: _sketch(still, sample, start, passes), starts)

    def features_at(means: Array, n_data: int) -> Natural:
        """As sure of themselves as at the start of a fit."""
        return model.features_at(means, n_data * model.activation_probability)

    first = sketches(FIRST_PASSES, [features_at(means, len(sample)) for means in candidates])
    promising = sorted(first, key=lambda sketch: -sketch.elbo)[:PROMISING]
    prior = model.prior()
    unmoved = prior + len(sample) / len(data) * (posterior + -1.0 * prior)
    stayed, *moved = sketches(MORE_PASSES, [unmoved, *(sketch.posterior for sketch in promising)])
    best = max(moved, key=lambda sketch: sketch.elbo)
    if not best.elbo > stayed.elbo:
        return None
    return features_at(model.expectations(best.posterior).means, len(data))


def candidate_features(model: FactorialModel, data: Array, posterior: Natural) -> Iterator[Array]:
    """Features [K, D] that differ from those of the posterior in one or two rows."""
    means = model.expectations(posterior).means
    moments = (posterior.precision - model.prior().precision) / len(data)
    for j, k in dependent_pairs(moments, len(data)):
        a, b = means[j], means[k]
        # Pairs that span two or three of the sums 0, a, b, a + b.
        for pair in [(a, a + b), (b, a + b), (a, b - a), (b, a - b), (a + b, -a), (a + b, -b)]:
            yield _replaced(means, [j, k], pair)
    explained = np.diag(moments) * np.square(means).sum(axis=1) / (2 * model.noise_variance)
    weakest = int(explained.argmin())
    if explained[weakest] < OF_USE:
        yield means  # surer of themselves again, which may be enough
        for feature in _left_over(model, _sample(data, len(means)), posterior):
            yield _replaced(means, [weakest], feature)


def dependent_pairs(moments: Array, n_data: int) -> list[tuple[int, int]]:
    """Pairs of features with dependent activations, by N times their mutual information."""
    both, rates = moments, np.diag(moments)
    one = np.broadcast_to(rates[:, None], both.shape)
    tables = [
        (both, one * one.T),
        (one - both, one * (1 - one.T)),
        (one.T - both, (1 - one) * one.T),
        (1 - one - one.T + both, (1 - one) * (1 - one.T)),
    ]
    information = np.zeros(both.shape)
    for joint, apart in tables:
        joint, apart = np.maximum(joint, 0.0), np.maximum(apart, 1e-300)
        information += xlogy(joint, joint) - xlogy(joint, apart)
    j, k = np.triu_indices(len(rates), 1)
    found = n_data * information[j, k]
    order = np.argsort(-found, kind="stable")[:MOST_PAIRS]
    return [(int(j[i]), int(k[i])) for i in order if found[i] > DEPENDENT]


def _left_over(model: FactorialModel, sample: Array, posterior: Natural) -> list[Array]:
    """What the features do not explain: its mean on each side of the widest direction."""
    expected = model.expectations(posterior)
    residuals = sample - model.local_step(sample, expected, 1.0).activations @ expected.means
    lengths = np.einsum("nd,nd->n", residuals, residuals)
    direction = residuals[lengths.argmax()]
    for _ in range(POWER_STEPS):
        direction = residuals.T @ (residuals @ direction)
        direction = direction / max(np.linalg.norm(direction), 1e-300)
    side = residuals @ direction
    weights = [np.maximum(side, 0.0), np.maximum(-side, 0.0)]
    return [weight @ residuals / weight.sum() for weight in weights if weight.any()]


def _replaced(means: Array, rows: list[int], features: ArrayLike) -> Array:
    changed = means.copy()
    changed[rows] = features
    return changed


def _sample(data: Array, n_features: int) -> Array:
    """Rows at even distances: no random number is drawn."""
    rows = np.clip(len(data) // 10, max(FEWEST_ROWS, 4 * n_features), MOST_ROWS)
    return data[:: -(-len(data) // int(rows))]


def _sketch(model: FactorialModel, sample: Array, start: Natural, passes: int) -> Sketch:
    n = len(sample)
    algorithm = Algorithm(model, Untempered(), Constant(), Serial(), n, passes, continues=True)
    state, elbo = algorithm.start(start, np.random.default_rng(0)), -np.inf
    for _ in range(passes):
        state, _, _, elbo = algorithm.advance(state, Batch(sample))
    return Sketch(elbo, state.posterior)
