"""What one can ask of fitted features: activations of samples, their sums, predictive scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tempering.estimators.engine_estimator import EngineEstimator
from tempering.estimators.saving import SaveMixin
from tempering.families.checks import LARGEST_VALUE, refuse
from tempering.models.arguments import as_numbers
from tempering.models.base import Array
from tempering.models.factorial.prediction import log_density, log_hidden_density
from tempering.models.factorial_mixture import FactorialModel, FeatureExpectations


class FeatureTransformer(
    SaveMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, EngineEstimator
):
    """A fitted factorial mixture, whatever fitted it."""

    features_: Array
    n_features_in_: int

    _model: FactorialModel
    _expectations: FeatureExpectations

    def transform(self, X: Any) -> Array:
        """Probability that each feature is active in each sample, at T = 1: (n_samples, K)."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return self._model.local_step(X, self._expectations, 1.0).activations

    def inverse_transform(self, X: Any) -> Array:
        """Sums of the active features, of activations (n_samples, n_components)."""
        check_is_fitted(self)
        expected = f"activations, at most {LARGEST_VALUE:g}, of {self.n_components} features"
        activations = as_numbers(X, "X", expected)
        if activations.ndim != 2 or activations.shape[1] != self.n_components:
            raise ValueError(
                f"X must hold activations of {self.n_components} features; got shape "
                f"{activations.shape}."
            )
        refuse(~(np.abs(activations) <= LARGEST_VALUE), activations, f"X must hold {expected}")
        return activations @ self.features_

    def score_samples(self, X: Any) -> Array:
        """Log predictive density of each sample, with the untempered model.

        With at most 12 features it is exact under the posterior of the features: the sum over all
        activations. With more it is a lower bound, the ELBO of the sample.
        """
        check_is_fitted(self)
        return log_density(self._model, self._validated(X, reset=False), self._expectations)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`. Higher is better."""
        return float(np.mean(self.score_samples(X)))

    def masked_score(self, X: Any, hidden: ArrayLike) -> float:
        """Mean log predictive density of a hidden value, given the columns that are not hidden.

        In nats a value; a lower bound if there are more than 12 features. ``hidden`` holds a
        boolean for each column: whether to hide it from the inference of activations.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        hidden = np.asarray(hidden)
        if hidden.shape != (self.n_features_in_,) or hidden.dtype != bool or hidden.all():
            raise ValueError(
                f"hidden must hold {self.n_features_in_} booleans, not all of them True; got an "
                f"array of {hidden.dtype} of shape {hidden.shape}."
            )
        if not hidden.any():
            raise ValueError("hidden must be True somewhere: nothing is left to predict.")
        scores = log_hidden_density(self._model, X, self._expectations, hidden)
        return float(np.mean(scores)) / int(hidden.sum())

    @property
    def _n_features_out(self) -> int:
        return self.n_components
