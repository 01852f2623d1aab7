"""log C(s) of small models by quadrature, and by formulas that are right or wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import betaln, log_expit, logsumexp, xlogy

from reproduction.lda_reference import log_proportions, responsibilities
from tempering.datasets import make_lda, make_toy_images
from tempering.families import Bernoulli, Dirichlet, FixedWeights
from tempering.inference import RobbinsMonro, fit
from tempering.models import Mixture
from tempering.models.base import Array
from tempering.models.factorial_mixture import FactorialModel
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.steps import TopicDraws, log_mean_power_sums
from tempering.temperature import (
    VariationalTempering,
    exponential_temperatures,
    log_partition,
)

#: The prior of the Bernoulli model's parameters, and their number.
SUCCESSES, FAILURES, DIMENSION = 1.2, 0.8, 10
GRID = exponential_temperatures(10.0, 25)


def bernoulli_model() -> Mixture:
    """One component with unknown probabilities: each has its own one-dimensional integral."""
    return Mixture(
        Bernoulli(DIMENSION),
        FixedWeights([1.0]),
        np.empty(0),
        Bernoulli(DIMENSION).conjugate.natural(
            np.full(DIMENSION, SUCCESSES), np.full(DIMENSION, FAILURES)
        ),
    )


def exact_log_partition(s: Array, n: int, extent: float = 80.0, points: int = 40_001) -> Array:
    """D log ∫ Beta(β) (β^s + (1−β)^s)^n dβ by the trapezoidal rule in the logit of β."""
    logit = np.linspace(-extent, extent, points)
    log_success, log_failure = log_expit(logit), log_expit(-logit)
    # dβ = β (1 − β) d logit
    log_density = SUCCESSES * log_success + FAILURES * log_failure - betaln(SUCCESSES, FAILURES)
    step = np.log(logit[1] - logit[0])
    values = [
        logsumexp(log_density + n * np.logaddexp(each * log_success, each * log_failure)) + step
        for each in np.asarray(s, float)
    ]
    return DIMENSION * np.array(values)


def compare_sampling(n: int, samples: int, repeats: int, seed: int) -> dict[str, Any]:
    """Monte Carlo with so many draws against quadrature."""
    model, exact = bernoulli_model(), exact_log_partition(GRID, n)
    errors, effective = [], []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        estimate = log_partition(model, GRID, n, method="monte-carlo", n_samples=samples, rng=rng)
        assert estimate.effective_sample_size is not None
        errors.append(float(np.abs(estimate.values - exact).max()))
        effective.append(float(estimate.effective_sample_size.min()))
    return {
        "error": float(np.median(errors)),
        "largest_error": float(np.max(errors)),
        "effective": float(np.median(effective)),
        "rises": bool(np.all(np.diff(exact) > 0)),  # the grid runs from T = 1 upwards
    }


def compare_modes(n: int) -> dict[str, Any]:
    """The MAP approximation with its sign as it follows, and as printed, against quadrature."""
    exact = exact_log_partition(GRID, n)
    mode = log_partition(bernoulli_model(), GRID, n, method="map").values
    return {
        "exact": exact[-1],
        "map": mode[-1],
        "printed_map": -mode[-1],
        "inverse_temperature": float(GRID[-1]),
        "exact_curve": exact.tolist(),
        "map_curve": mode.tolist(),
    }


def compare_base_measure(s: float) -> dict[str, Any]:
    """∫ N(x; μ, 1)^s dx: by quadrature, with the base measure, and by the identity without it."""
    mean = 1.5
    integral = quad(lambda x: np.exp(-s * (x - mean) ** 2 / 2) * (2 * np.pi) ** (-s / 2), -60, 60)
    closed = 0.5 * (1 - s) * np.log(2 * np.pi) - 0.5 * np.log(s)
    # a_l(μ) = μ²/2: exp{a_l(sμ) − s a_l(μ)}, as in the supplement's Section A.1
    identity = (s * mean) ** 2 / 2 - s * mean**2 / 2
    return {
        "inverse_temperature": s,
        "quadrature": float(np.log(integral[0])),
        "with_base_measure": float(closed),
        "printed_identity": float(identity),
    }


def compare_bounds(samples: int) -> dict[str, Any]:
    """Monte Carlo and both Jensen "bounds" of a small topic model, and a valid upper one."""
    model = LatentDirichlet(5, 30, 0.2, 0.2, mean_length=5.0)
    s, n = GRID, 2
    estimate = log_partition(model, s, n, method="monte-carlo", n_samples=samples)
    bounds = partition_bounds(model, s, n, n_samples=samples)
    assert estimate.effective_sample_size is not None
    assert estimate.spread is not None
    return {
        "temperatures": (1.0 / s).tolist(),
        "monte_carlo": estimate.values.tolist(),
        "effective": float(estimate.effective_sample_size.min()),
        "spread": float(np.max(estimate.spread)),
        "lower": bounds.log_outside.tolist(),
        "printed_upper": bounds.log_inside.tolist(),
        "upper": bounds.upper.tolist(),
    }


@dataclass(frozen=True)
class PartitionBounds:
    """Bounds of log C(s) for D documents, each [M].

    Attributes
    ----------
    log_outside : array
        D N E[log Σ_v p_v^s], the supplement's lower bound (log is concave).
    log_inside : array
        D N log E[Σ_v p_v^s], which the supplement calls an upper bound; it is a second, better
        lower bound, since x^D and x^N are convex.
    upper : array
        D N (1 − s) log V: the sum is largest for a uniform distribution over words.
    upper_assignments : array
        D N (1 − s) log(K V): the same with topic assignments, for p(w, z).
    """

    log_outside: Array
    log_inside: Array
    upper: Array
    upper_assignments: Array


def partition_bounds(
    model: LatentDirichlet,
    inverse_temperatures: Array,
    n_documents: int,
    n_samples: int = 20,
    seed: int = 0,
) -> PartitionBounds:
    """Both Jensen bounds of the supplement, by Monte Carlo, and valid upper bounds."""
    s = np.asarray(inverse_temperatures, float)
    power_sums = log_mean_power_sums(
        TopicDraws(n_samples, seed),
        model.doc_topic_prior,
        model.topic_word_prior,
        model.n_words,
        s,
    )
    power_sums = power_sums.reshape(-1, s.size)
    n_tokens = n_documents * model.mean_length
    return PartitionBounds(
        log_outside=n_tokens * power_sums.mean(axis=0),
        log_inside=n_tokens * (logsumexp(power_sums, axis=0) - np.log(len(power_sums))),
        upper=n_tokens * (1 - s) * np.log(model.n_words),
        upper_assignments=n_tokens * (1 - s) * np.log(model.n_words * model.n_topics),
    )


def compare_assignments(n_documents: int, seed: int) -> dict[str, float]:
    """The ELBO a word with q(z) as it follows, and with n_dv in its exponent as printed, at T = 1.

    Known topics; each document is solved by coordinate ascent until nothing moves.
    """
    made = make_lda(n_documents, 5, 40, 60.0, alpha=0.2, eta=0.1, seed=seed)
    alpha, log_topics = np.full(5, 0.2), np.log(np.maximum(made.topics.T, 1e-30))
    right, printed, n_words = 0.0, 0.0, 0.0
    for counts in made.counts.toarray().astype(float):
        words = np.flatnonzero(counts)
        n, rows = counts[words], log_topics[words]
        right += _solved_bound(n, rows, alpha, np.ones_like(n))
        printed += _solved_bound(n, rows, alpha, n)
        n_words += n.sum()
    return {"elbo": right / n_words, "printed_elbo": printed / n_words}


def _solved_bound(n: Array, rows: Array, alpha: Array, power: Array) -> float:
    """A document's ELBO where φ ∝ exp{power (E log θ + log β)} and γ agree."""
    gamma, before = alpha + n.sum() / alpha.size, np.inf
    while np.abs(gamma - before).sum() > 1e-8:
        before = gamma
        phi, _ = responsibilities(power[:, None] * (log_proportions(gamma) + rows))
        gamma = alpha + n @ phi
    expected = log_proportions(gamma)
    terms = np.sum(phi * (expected + rows), axis=1) - xlogy(phi, phi).sum(axis=1)
    return float(n @ terms - Dirichlet(alpha.size).divergence(gamma, alpha))


class UnpenalisedFeatures(FactorialModel):
    """The factorial mixture with C(T) left out."""

    def log_partition(self, inverse_temperatures: Array, n_data: int) -> Array:
        return np.zeros(np.size(inverse_temperatures))


class UnpenalisedTopics(LatentDirichlet):
    """The topic model with C(T) left out."""

    def log_local_integral(self, parameters: Any, inverse_temperatures: Array) -> Array:
        return np.zeros((parameters.n, np.size(inverse_temperatures)))


def leave_out(model_name: str, penalised: bool, seed: int) -> dict[str, Any]:
    """The temperature over a run of VT, with C(T) or without."""
    if model_name == "factorial mixture":
        data: Any = make_toy_images(500, seed=seed).X
        kind = FactorialModel if penalised else UnpenalisedFeatures
        model: Any = kind(8, 16, 0.1, 0.35, 0.3)
        options: dict[str, Any] = {"max_passes": 60}
        policy = VariationalTempering(formula="closed-form", fraction=None)
    else:
        data = make_lda(300, 5, 100, 40.0, seed=seed).counts
        kind = LatentDirichlet if penalised else UnpenalisedTopics
        model = kind(5, 100, 0.2, 0.2, mean_length=40.0)
        options = {"max_passes": 10, "batch_size": 20, "learning_rate": RobbinsMonro(16.0, 0.7)}
        formula = "z-integrated" if penalised else "paper"
        policy = VariationalTempering(formula=formula, fraction=None, n_samples=20)
    result = fit(
        model,
        data,
        temperature=policy,
        finish=False,
        seed=seed,
        n_threads=1,
        progress=False,
        **options,
    )
    return {
        "temperatures": np.round(result.history["temperature"], 4).tolist(),
        "last_temperature": float(result.history[-1].temperature),
    }
