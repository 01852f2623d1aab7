"""Whether the parts of an estimator that was loaded fit together.

Kernels trust the shapes that they are given, so nothing of a file may reach them unchecked.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from tempering.inference import State
from tempering.inference.content_checks import check_model, check_posterior, expect_positive
from tempering.inference.portable import expect, expect_count, expect_numbers
from tempering.models import Natural
from tempering.models.factorial_mixture import FactorialModel, FeatureExpectations
from tempering.models.lda.model import LatentDirichlet, Settled, TopicStart, Update
from tempering.temperature import TemperaturePolicy


def check_topics(estimator: Any) -> None:
    """A topic model."""
    k, v = estimator.n_components, estimator.n_features_in_
    state, model = _state(estimator), estimator._model
    expect(isinstance(model, LatentDirichlet), "the model of topics is missing.")
    shape = model.n_words, model.n_topics
    expect(shape == (v, k), f"the topics have the shape {shape}; the parameters ask for {(v, k)}.")
    check_model(model)
    check_posterior(model, state.posterior)
    if model.settled is not None:
        expect(isinstance(model.settled, Settled), "what holds when topics settle is damaged.")
        numbers = [number for number in model.settled if number is not None]
        expect_positive("settled", np.array(numbers, float), (len(numbers),))
    expect(0 <= model.tolerance < 1, f"bad tolerance {model.tolerance!r:.40}.")
    expect(model.update in get_args(Update), f"bad update {model.update!r:.40}.")
    expect(model.start in get_args(TopicStart), f"bad start {model.start!r:.40}.")
    for name, least in (("min_iterations", 0), ("max_iterations", 1)):
        expect_count(name, getattr(model, name), least)
    for name in ("learn_doc_topic_prior", "learn_topic_word_prior"):
        expect(isinstance(getattr(model, name), bool), f"{name} must be true or false.")
    expect(0 <= model.adapted_part < 1, f"bad adapted_part {model.adapted_part!r:.40}.")
    s = np.asarray(estimator._learned_inverse_temperature, float)
    expect(np.all((s > 0) & (s <= 1)), "the learned inverse temperature is out of range.")
    policy = estimator._stream_policy
    expect(isinstance(policy, TemperaturePolicy), "the temperature policy is missing.")
    model.n_threads = estimator._n_threads()


def check_mixture(estimator: Any) -> None:
    """A mixture: the posterior against the model that the parameters make."""
    state, d = _state(estimator), estimator.n_features_in_
    # Before anything is made in the sizes that the parameters tell.
    expect(isinstance(state.posterior, Natural), "the posterior is missing.")
    shape = np.shape(state.posterior.get("components"))
    expect(
        len(shape) == 2 and shape[0] == estimator.n_components and shape[1] >= d,
        f"the components have the shape {shape}; the parameters ask for {estimator.n_components} "
        f"of {d} columns.",
    )
    if hasattr(estimator, "_centre"):
        expect_numbers("centre", estimator._centre, (d,))
    expect(estimator._transformed(np.zeros((1, d))).shape == (1, d), "data would change shape.")
    size = estimator._likelihood().conjugate.size
    expect_numbers("component_prior", estimator._component_prior, (size,))
    check_posterior(estimator._model(), state.posterior)


def check_features(estimator: Any) -> None:
    """A factorial mixture."""
    k, d = estimator.n_components, estimator.n_features_in_
    model, expectations = estimator._model, estimator._expectations
    expect(isinstance(model, FactorialModel), "the model of features is missing.")
    expect((model.n_features, model.dimension) == (k, d), "the model has another shape.")
    expect(isinstance(expectations, FeatureExpectations), "the features are missing.")
    expect_numbers("features", expectations.means, (k, d))
    expect_numbers("features_", estimator.features_, (k, d))
    expect_positive("feature variances", expectations.variances, (k,))
    expect_numbers("products of features", expectations.products, (k, k))
    check_model(model)
    for name in ("local_restarts", "max_sweeps"):
        expect_count(name, getattr(model, name))
    expect_numbers("tolerance", np.asarray(model.tolerance, float), ())
    expect(isinstance(model._shared_probability, bool), "shared_probability must be a boolean.")
    if hasattr(estimator, "_state"):
        check_posterior(model, _state(estimator).posterior)


def _state(estimator: Any) -> State:
    state = getattr(estimator, "_state", None)
    expect(isinstance(state, State), "the state of the fit is missing.")
    assert isinstance(state, State)
    return state
