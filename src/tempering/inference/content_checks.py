"""Whether what a file holds belongs to the model, and to the fit, that is to go on with it.

Kernels trust the shapes that they are given, so nothing of a file may reach them unchecked. Models
of one's own are held against what is known of them: their attributes, and what :func:`expect_like`
finds in the model that was given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tempering.inference.history import History
from tempering.inference.portable import expect, expect_count, expect_numbers
from tempering.inference.run import Result, Run, State
from tempering.inference.sources import Source
from tempering.models.base import LocalStep, Model, Natural, UnsupportedTemperature
from tempering.models.factorial_mixture import ActivationStep, FactorialModel
from tempering.models.lda.model import LatentDirichlet
from tempering.models.lda.priors import LARGEST_PRIOR
from tempering.models.mixture import Mixture
from tempering.temperature import (
    Annealing,
    AnnealingHeat,
    Heat,
    LocalHeat,
    LocalTempering,
    TemperaturePolicy,
    TemperingHeat,
    Untempered,
    VariationalTempering,
)
from tempering.temperature.annealing import FINDER
from tempering.temperature.partition import log_partition

#: What each model may learn; nothing else of it may come from a checkpoint.
LEARNED: dict[type[Model], tuple[str, ...]] = {
    LatentDirichlet: (
        "doc_topic_prior",
        "topic_word_prior",
        "word_power",
        "settled",
        "prior_documents",
        "_mean_prior_statistics",
        "_steps_at_temperature_one",
    ),
    FactorialModel: ("noise_variance", "feature_variance", "activation_probability"),
    Mixture: (),
}

#: The state of each policy.
STATES: dict[type, type[Heat]] = {
    Untempered: Heat,
    Annealing: AnnealingHeat,
    VariationalTempering: TemperingHeat,
    LocalTempering: LocalHeat,
}

#: How far rounding may take a probability, or a mean of inverse temperatures, beyond 1.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Fit:
    """What a checkpoint is held against."""

    model: Model
    source: Source
    temperature: TemperaturePolicy
    max_passes: float
    n_init: int
    final_elbo: bool

    def check(self, content: Mapping[str, Any]) -> None:
        """Raise :class:`StorageError` unless this fit can go on from there."""
        elbos, best, run = content["elbos"], content["best"], content["run"]
        right = isinstance(elbos, list) and all(isinstance(elbo, float) for elbo in elbos)
        expect(right, "elbos must be a list of numbers.")
        n = len(elbos)
        expect(n + (run is not None) <= self.n_init, "there are too many restarts.")
        expect((best is None) == (n == 0), "the best restart must be there when one is over.")
        expect(run is not None or n > 0, "it holds nothing.")
        if is_ours(self.model) and (self.final_elbo or self.n_init > 1):
            expect(np.isfinite(elbos).all(), "elbos must be finite.")
        if best is not None:
            self._check_best(best, elbos)
        if run is not None:
            self._check_run(run)

    def check_step(self, model: Model, run: Run) -> None:
        """The first step from there: some numbers show only in it that they are too large."""
        check_posterior(model, run.state.posterior)
        self._check_heat(run.state.heat)
        expect(math.isfinite(run.history[-1].temperature), "the temperature must be finite.")

    def _check_best(self, best: Any, elbos: list[float]) -> None:
        names = {field.name for field in fields(Result)}
        expect(isinstance(best, dict) and best.keys() == names, "the best restart is incomplete.")
        model = with_learned(self.model, best["model"])
        check_posterior(model, best["posterior"])
        expect(repr(best["elbo"]) in map(repr, elbos), "the best ELBO is that of no restart.")
        expect(isinstance(best["converged"], bool), "converged must be true or false.")
        expect(best["restart_elbos"] == [], "the best restart has restarts of its own.")
        self._check_heat(best["heat"])
        self._check_history(best["history"])

    def _check_run(self, run: Any) -> None:
        right = isinstance(run, dict) and run.keys() == {*Run._fields, "model"}
        expect(right, "the restart that was under way is incomplete.")
        state, history = run["state"], run["history"]
        expect(isinstance(state, State), "the state of the run is missing.")
        model = with_learned(self.model, run["model"])
        check_posterior(model, state.posterior)
        self._check_heat(state.heat)
        self._check_heat(run["tempered_heat"])
        self._check_history(history)
        last = history[-1]
        expect(state.step == len(history), f"step {state.step} is not that of the history.")
        expect(state.data_seen == last.data_seen, "data_seen is not that of the history.")
        self._check_solved(model, state.solved)
        for name in ("cooled", "converged", "over"):
            expect(isinstance(run[name], bool), f"{name} must be true or false.")
        for name in ("previous", "seconds"):
            expect(isinstance(run[name], float), f"{name} must be a number.")
        expect(math.isfinite(run["seconds"]), "seconds must be finite.")
        ended = state.data_seen >= self.max_passes * self.source.size
        expect(run["over"] == (run["converged"] or ended), "over is not what the steps tell.")

    def _check_history(self, history: Any) -> None:
        expect(isinstance(history, History) and len(history) > 0, "the history is missing.")
        steps, seen = history["step"], history["data_seen"]
        expect(np.array_equal(steps, np.arange(len(steps))), "steps of the history are missing.")
        n = self.source.size
        made = np.diff(seen, prepend=0)
        expect(np.all((made > 0) & (made <= n)), "data_seen of the history is out of range.")
        expect(np.array_equal(history["passes"], seen / n), "passes are not those of the data.")
        for name in ("temperature", "inverse_temperature", "learning_rate", "seconds"):
            expect(np.isfinite(history[name]).all(), f"{name} of the history must be finite.")
        for record in history:
            if record.weights is not None:
                self._check_weights(record.weights, self.temperature)

    def _check_heat(self, heat: Any, policy: TemperaturePolicy | None = None) -> None:
        policy = self.temperature if policy is None else policy
        expect(isinstance(heat, Heat), "heat must be the state of a temperature policy.")
        s, level = heat.inverse_temperature, getattr(heat, "level", 1.0)
        expect(isinstance(heat.finished, bool), "finished must be true or false.")
        expect(isinstance(heat.bound, float), "bound must be a number.")
        expect(isinstance(level, float) and 0 < level <= 1, "level must be above 0, and at most 1.")
        if isinstance(s, np.ndarray):
            expect_numbers("inverse temperatures", s, (self.source.size,))
        else:
            expect(isinstance(s, float | int), "the inverse temperature must be a number.")
        least, grid = 0.0, grid_of(policy)
        if grid is not None:
            least = level * (1 - ROUNDING) * grid.min()
        right = np.all((np.asarray(s) > 0) & (np.asarray(s) >= least) & (s <= 1 + ROUNDING))
        expect(right, "inverse temperatures are out of range.")
        if heat.weights is not None:
            self._check_weights(heat.weights, policy)
        if type(policy) in STATES:
            self._check_known_heat(heat, policy)

    def _check_known_heat(self, heat: Any, policy: TemperaturePolicy) -> None:
        """The state of a policy of this package: all of it is known."""
        s = heat.inverse_temperature
        right = type(heat) is STATES[type(policy)] or (type(heat) is Heat and heat.finished)
        expect(right, f"the state is not one of {type(policy).__name__}.")
        if heat.finished:
            expect(np.ndim(s) == 0 and s == 1.0, "a policy that has finished must be at T = 1.")
        each = type(heat) is LocalHeat and self.source.whole
        expect(np.ndim(s) == 0 or each, "there must be one temperature for all data.")
        if isinstance(heat, TemperingHeat) and heat.log_partition is not None:
            assert isinstance(policy, VariationalTempering)
            expect_numbers("log C", heat.log_partition, np.shape(policy.inverse_temperatures))
            needed = needs_log_partition(policy, self.model, self.source.size)
            expect(needed, "there is no log C in this fit.")
        if isinstance(heat, AnnealingHeat):
            assert isinstance(policy, Annealing)
            finds = policy.start == "auto" and not heat.finished
            unknown = (heat.finder is not None) + (heat.first is not None)
            expect(unknown == finds, "the first temperature is missing, or there are two.")
            if heat.finder is not None:
                self._check_heat(heat.finder, FINDER)
            if heat.first is not None:
                right = isinstance(heat.first, float) and 0 < heat.first <= hottest(FINDER)
                expect(right, f"the first temperature is out of range: {heat.first!r:.40}.")

    def _check_weights(self, weights: Any, policy: TemperaturePolicy) -> None:
        grid = grid_of(policy)
        shape = np.shape(weights) if grid is None else grid.shape
        expect_numbers("the weights of temperatures", weights, shape)
        proper = np.all(weights >= 0) and abs(weights.sum() - 1) < ROUNDING
        expect(proper or not is_ours(policy), "the weights must be probabilities.")

    def _check_solved(self, model: Model, solved: Any) -> None:
        if not solved:
            return
        n, size = self.source.size, model.shard_size
        expect(self.source.whole and model.continues_steps, "no step begins from another here.")
        expect(len(solved) == -(-n // size), "the local steps are not those of the shards.")
        for number, step in enumerate(solved):
            expect(isinstance(step, LocalStep), "solved must hold local steps.")
            if isinstance(model, FactorialModel):
                check_activations(step, min(size, n - number * size), model.n_features)


def is_ours(thing: object) -> bool:
    """Whether a model, or a policy, is of this package, so that all of it is known."""
    return type(thing).__module__.startswith("tempering.")


def grid_of(policy: TemperaturePolicy) -> Any:
    """The inverse temperatures that a policy may choose from; None where it follows a schedule."""
    if isinstance(policy, VariationalTempering | LocalTempering):
        return np.asarray(policy.inverse_temperatures)
    if isinstance(policy, Annealing) and policy.start == "auto":
        return np.asarray(FINDER.inverse_temperatures)
    return None


def hottest(policy: TemperaturePolicy) -> float:
    """The highest temperature on the grid of a policy."""
    return (1 + ROUNDING) / grid_of(policy).min()


def needs_log_partition(policy: VariationalTempering, model: Model, n_data: int) -> bool:
    """Whether log C is computed at the start; else each datum is normalised as it comes."""
    if policy.formula != "auto":
        return policy.formula != "calibrated"
    try:
        log_partition(model, policy.inverse_temperatures, n_data, method="closed-form")
    except UnsupportedTemperature:
        return not model.learns_temperatures
    return True


def with_learned(given: Model, attributes: Any) -> Model:
    """A copy of the model with what a run had learned; all of it is checked."""
    expect(isinstance(attributes, dict), "what the model has learned is missing.")
    model = deepcopy(given)
    known = next((names for cls, names in LEARNED.items() if isinstance(given, cls)), ())
    for name, value in attributes.items():
        if is_ours(given):
            expect(name in known, f"a model does not learn {name!r:.40}.")
        else:
            free = name.isidentifier() and not hasattr(type(given), name)
            expect(name in vars(given) or free, f"a model does not learn {name!r:.40}.")
            expect_like(name, value, vars(given).get(name))
        setattr(model, name, value)
    if is_ours(given):
        check_model(model)
    if isinstance(given, LatentDirichlet) and isinstance(model, LatentDirichlet):
        for name in ("settled", "prior_documents"):
            expect(attributes.get(name) is None, f"{name} is used up, or as it was given.")
        most = max(LARGEST_PRIOR, given.doc_topic_prior.sum())
        expect(
            model.doc_topic_prior.sum() <= most * given.n_topics, "doc_topic_prior is too large."
        )
        most = max(LARGEST_PRIOR, given.topic_word_prior)
        expect(model.topic_word_prior <= most, "topic_word_prior is too large.")
    return model


def expect_like(name: str, value: Any, given: Any) -> None:
    """Raise unless an attribute is of the kind, and of the shape, that it was given with."""
    if isinstance(given, np.ndarray):
        expect_numbers(name, value, given.shape, str(given.dtype))
    elif isinstance(given, float) and not isinstance(value, np.ndarray):
        right = isinstance(value, float) and math.isfinite(value)
        expect(right, f"{name} must be a finite number.")


def check_model(model: Model) -> None:
    """The numbers of a model of this package."""
    if isinstance(model, LatentDirichlet):
        k = model.n_topics
        # The kernels hold it as float32.
        with np.errstate(over="ignore"):
            narrow = np.asarray(model.doc_topic_prior).astype(np.float32)
        expect_positive("doc_topic_prior", model.doc_topic_prior, (k,))
        expect_positive("doc_topic_prior", narrow, (k,), "float32")
        expect(isinstance(model.topic_word_prior, float), "topic_word_prior must be a number.")
        for name in ("topic_word_prior", "mean_length"):
            expect_positive(name, np.asarray(getattr(model, name), float), ())
        power = model.word_power
        expect(isinstance(power, float) and 0.5 <= power <= 1, f"bad word_power {power!r:.40}.")
        expect_count("_steps_at_temperature_one", model._steps_at_temperature_one)
        if model._mean_prior_statistics is not None:
            expect_numbers("mean_prior_statistics", model._mean_prior_statistics, (k,))
    elif isinstance(model, FactorialModel):
        for name in ("noise_variance", "feature_variance"):
            expect(isinstance(getattr(model, name), float), f"{name} must be a number.")
            expect_positive(name, np.asarray(getattr(model, name), float), ())
        probabilities = model.activation_probability
        expect_positive("activation_probability", probabilities, (model.n_features,))
        expect(np.all(probabilities < 1), "activation_probability must be below 1.")


def check_posterior(model: Model, posterior: Any) -> None:
    """A posterior against its model: the parts, their shapes, and that it is a proper one."""
    if not is_ours(model):
        return
    if isinstance(model, LatentDirichlet):
        _check_topics(model, posterior)
        return
    prior = model.prior()
    expect(isinstance(posterior, Natural), "the posterior is missing.")
    expect(posterior.keys() == prior.keys(), "the posterior has other parts.")
    for name, part in prior.items():
        expect_numbers(name, posterior[name], part.shape)
    if isinstance(model, Mixture):
        valid = np.all(model.weights.is_valid(posterior.weights)) and np.all(
            model.likelihood.conjugate.is_valid(posterior.components)
        )
        expect(valid, "the posterior is not a proper one.")
    elif isinstance(model, FactorialModel):
        precision = posterior.precision
        symmetric = np.allclose(precision, precision.T, rtol=ROUNDING, atol=0.0)
        proper = symmetric and np.all(np.linalg.eigvalsh(precision) > 0)
        expect(proper, "the precision of the features is not a proper one.")


def _check_topics(model: LatentDirichlet, topics: Any) -> None:
    expect(isinstance(topics, model.posterior_type), "the topics are missing.")
    expect(
        topics.shape == (model.n_words, model.n_topics),
        f"the topics have the shape {topics.shape}; the parameters ask for "
        f"{(model.n_words, model.n_topics)}.",
    )
    parameters = topics.parameters()
    proper = np.isfinite(parameters).all() and (parameters >= 0).all() and parameters.any(axis=0)
    expect(np.all(proper), "the topics are not proper distributions.")
    # The sums are kept beside the topics. Steps round them differently, but not by that much.
    ratio = topics.totals() / parameters.sum(axis=0, dtype=np.float64)
    expect(np.all((ratio > 0.5) & (ratio < 2)), "the sums are not those of the topics.")


def check_activations(step: LocalStep, n: int, n_features: int) -> None:
    """The activations of a shard; those from a device have rows that fill up."""
    expect(isinstance(step, ActivationStep), "the activations are missing.")
    activations: Any = getattr(step, "activations", np.empty(0))
    filled = type(step) is not ActivationStep and np.shape(activations)[:1] > (n,)
    expect_numbers("activations", activations, (len(activations) if filled else n, n_features))
    expect(np.all((activations >= 0) & (activations <= 1)), "activations must be from 0 to 1.")


def expect_positive(name: str, array: Any, shape: tuple[int, ...], dtype: str = "float64") -> None:
    """Raise unless it is an array of positive numbers of this shape and type."""
    expect_numbers(name, array, shape, dtype)
    expect(np.all(array > 0), f"{name} must be positive.")
