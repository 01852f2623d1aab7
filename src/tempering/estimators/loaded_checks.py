"""Whether the parts of an estimator that was loaded fit together.

Kernels trust the shapes that they are given, so nothing of a file may reach them unchecked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tempering.inference import History, State
from tempering.models import Natural
from tempering.models.base import Array
from tempering.models.factor.poisson import PoissonFactors
from tempering.models.factorial_mixture import FactorialModel, FeatureExpectations
from tempering.models.lda.model import LatentDirichlet
from tempering.storage.classes import fits
from tempering.storage.errors import expect
from tempering.temperature import TemperaturePolicy


def check_topics(estimator: Any) -> None:
    """A topic model."""
    _expect_kinds(estimator, _state=State, _model=LatentDirichlet, _stream_policy=TemperaturePolicy)
    model, asked = estimator._model, (estimator.n_features_in_, estimator.n_components)
    shape = model.n_words, model.n_topics
    expect(shape == asked, f"the topics have the shape {shape}; the parameters ask for {asked}.")
    model.check_parameters()
    model.check_posterior(estimator._state.posterior)
    s = np.asarray(estimator._learned_inverse_temperature, float)
    expect(np.all((s > 0) & (s <= 1)), "the learned inverse temperature is out of range.")
    model.n_threads = estimator._n_threads()


def check_mixture(estimator: Any) -> None:
    """A mixture: the posterior against the model that the parameters make."""
    _expect_kinds(estimator, _state=State, _component_prior=Array, weights_=np.ndarray)
    posterior, d = estimator._state.posterior, estimator.n_features_in_
    # Before anything is made in the sizes that the parameters tell.
    expect(isinstance(posterior, Natural), "the posterior is missing.")
    shape = np.shape(posterior.get("components"))
    expect(
        len(shape) == 2 and shape[0] == estimator.n_components and shape[1] >= d,
        f"the components have the shape {shape}; the parameters ask for {estimator.n_components} "
        f"of {d} columns.",
    )
    if hasattr(estimator, "_centre"):
        right = fits(estimator._centre, Array) and estimator._centre.shape == (d,)
        expect(right, f"_centre must hold {d} numbers.")
    expect(estimator._transformed(np.zeros((1, d))).shape == (1, d), "data would change shape.")
    size = estimator._likelihood().conjugate.size
    expect(estimator._component_prior.shape == (size,), f"_component_prior must hold {size}.")
    estimator._model().check_posterior(posterior)


def check_states(estimator: Any) -> None:
    """A hidden Markov model; what people read of it is made anew from its posterior."""
    _expect_kinds(estimator, _state=State, _emission_prior=Array, startprob_=np.ndarray)
    posterior, d = estimator._state.posterior, estimator.n_features_in_
    # Before anything is made in the sizes that the parameters tell.
    expect(isinstance(posterior, Natural), "the posterior is missing.")
    shape, prior = np.shape(posterior.get("emissions")), estimator._emission_prior.shape
    expect(
        prior == shape[1:] and shape == (estimator.n_components, *prior) and prior[0] >= d,
        f"the emissions have the shape {shape}, and their prior {prior}; the parameters ask for "
        f"{estimator.n_components} states of {d} columns.",
    )
    if hasattr(estimator, "_centre"):
        right = fits(estimator._centre, Array) and estimator._centre.shape == (d,)
        expect(right, f"_centre must hold {d} numbers.")
    for name in ("means_", "emissionprob_", "lambdas_"):
        vars(estimator).pop(name, None)
    model = estimator._model()
    model.check_posterior(posterior)
    estimator._expose(model, posterior)


def check_features(estimator: Any) -> None:
    """A factorial mixture."""
    k, d = estimator.n_components, estimator.n_features_in_
    _expect_kinds(
        estimator, _model=FactorialModel, _expectations=FeatureExpectations, features_=Array
    )
    model, (means, variances, products) = estimator._model, estimator._expectations
    expect((model.n_features, model.dimension) == (k, d), "the model has another shape.")
    for part, shape in ((means, (k, d)), (estimator.features_, (k, d)), (products, (k, k))):
        expect(part.shape == shape, f"features must have the shape {shape}; got {part.shape}.")
    right = variances.shape == (k,) and np.all(variances > 0)
    expect(right, "variances of features must be positive.")
    for name in ("local_restarts", "max_sweeps"):
        expect(getattr(model, name) >= 0, f"{name} must be 0 or more.")
    if hasattr(estimator, "_state"):
        _expect_kinds(estimator, _state=State)
        model.check_posterior(estimator._state.posterior)


def check_factors(estimator: Any) -> None:
    """A Poisson factorisation."""
    _expect_kinds(estimator, _model=PoissonFactors, _state=State, components_=Array)
    model, asked = estimator._model, (estimator.n_components, estimator.n_features_in_)
    shape = model.n_components, model.n_columns
    expect(shape == asked, f"the components have the shape {shape}; {asked} is asked for.")
    expect(estimator.components_.shape == asked, f"components_ must have the shape {asked}.")
    model.check_posterior(estimator._state.posterior)


def _expect_kinds(estimator: Any, **kinds: Any) -> None:
    for name, kind in {"history_": History | None, **kinds}.items():
        expect(fits(getattr(estimator, name, None), kind), f"{name} is missing, or damaged.")
