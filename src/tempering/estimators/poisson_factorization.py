"""Bayesian Poisson factorisation with scikit-learn's interface, in the habit of its NMF."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tempering.estimators.engine_estimator import EngineEstimator
from tempering.estimators.parameters import (
    Count,
    NotNegative,
    Numbers,
    PolicyNames,
    Tempering,
    Whole,
    as_policy,
    check_n_components,
)
from tempering.families.checks import check_compressed, check_sparse_counts, naming_the_table
from tempering.inference import Result
from tempering.inference.executors import Executor, open_executor
from tempering.inference.fitting import FitOptions
from tempering.models.arguments import as_numbers, shown
from tempering.models.base import Array
from tempering.models.factor.poisson import FactorStep, PoissonFactors, as_csr
from tempering.models.natural import Natural
from tempering.temperature import Annealing, TemperaturePolicy
from tempering.temperature.schedules import linear_inverse

#: Where "auto" begins, and the passes that it spends on cooling where the run is long enough.
FIRST_TEMPERATURE, COOLING_PASSES = 1.4, 50


@dataclass(eq=False, repr=False)
class PoissonFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, EngineEstimator):
    """Bayesian Poisson factorisation of counts: X ≈ transform(X) @ components_.

    x_ij ~ Poisson(Σ_k θ_ik β_kj) with gamma priors on the activations θ and the components β. What
    non-negative matrix factorisation with the Kullback-Leibler loss maximises is the likelihood of
    this model. X may be sparse, and its zeros cost nothing: a pass takes time in proportion to the
    other entries.

    Parameters
    ----------
    n_components : int, default=10
        Number of components K.
    activation_prior : pair of floats, default=(0.3, 0.3)
        Shape and rate of the gamma prior of activations. A shape below 1 makes them sparse.
    component_prior : pair of floats, default=None
        Shape and rate of the gamma prior of components; by default 0.3, and the rate that gives the
        counts their mean.
    tempering : {"auto", "annealing"}, policy or None, default="auto"
        Temperature policy. "auto" cools from T = 1.4, linearly in 1/T and in 50 passes;
        "annealing" is ``tempering.Annealing()``, from T = 5; None is T = 1 throughout. Temperatures
        cannot be learned in this model.
    tol, max_iter, n_init, batch_size, learning_offset, learning_decay, random_state, n_jobs, \
executor, verbose
        As in :class:`tempering.BayesianGaussianMixture`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Posterior means of the components, the one that explains most of the counts first.
    restart_elbos_ : list of float
        What each of the ``n_init`` runs reached.
    elbo_, history_, temperature_, inverse_temperatures_, converged_, n_iter_, n_features_in_
        As in :class:`tempering.BayesianGaussianMixture`.

    References
    ----------
    Cemgil (2009), "Bayesian inference for nonnegative matrix factorisation models".

    Gopalan, Hofman and Blei (2015), "Scalable recommendation with hierarchical Poisson
    factorization", UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import PoissonFactorization
    >>> X = np.repeat([[9, 8, 0, 0], [0, 0, 7, 8]], 50, axis=0)
    >>> factors = PoissonFactorization(n_components=2, random_state=0).fit(X)
    >>> factors.inverse_transform(factors.transform(X[[0, -1]])).round().astype(int)
    array([[9, 8, 0, 0],
           [0, 0, 7, 8]])
    """

    n_components: Count = 10
    _: KW_ONLY
    activation_prior: Numbers = (0.3, 0.3)
    component_prior: Numbers | None = None
    tempering: Tempering = "auto"
    tol: NotNegative = 1e-2
    max_iter: Whole = 300
    executor: Executor | None = None

    _input_tags = ("sparse", "positive_only")

    def _n_starts(self) -> int:
        return 1  # the engine itself starts anew

    def _search(self, model: PoissonFactors, data: Any, options: FitOptions) -> Result:
        result = super()._search(model, data, {**options, "n_init": self.n_init})
        return replace(result, posterior=_largest_first(result.posterior, model.component_shape))

    def _expose(self, model: PoissonFactors, data: Any = None) -> None:
        self._model, posterior = model, self._state.posterior
        self.components_ = np.ascontiguousarray((posterior.shape / posterior.rate).T)

    def transform(self, X: Any) -> Array:
        """Expected activations of samples, seen or not, at T = 1: (n_samples, n_components)."""
        steps = self._solved(X)
        return np.concatenate([step.shapes / step.rates for step in steps])

    def inverse_transform(self, X: Any) -> Array:
        """Expected counts of activations (n_samples, n_components): (n_samples, n_features)."""
        check_is_fitted(self)
        return self._activations(X, "components", self.n_components) @ self.components_

    def score_samples(self, X: Any) -> Array:
        """A lower bound of the log predictive probability of each sample: its part of the ELBO."""
        return np.concatenate([step.energies + step.entropies for step in self._solved(X)])

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`, in nats an entry of X. Higher is better."""
        return float(np.mean(self.score_samples(X))) / self.n_features_in_

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def _policy(self, planned_passes: float) -> TemperaturePolicy:
        passes = min(float(COOLING_PASSES), planned_passes / 2)
        schedule = linear_inverse(FIRST_TEMPERATURE)
        names: PolicyNames = {
            "auto": lambda: Annealing(schedule, passes=passes),
            "annealing": Annealing,
        }
        return as_policy(self.tempering, names)

    def _new_model(self, counts: sparse.csr_array) -> PoissonFactors:
        check_n_components(self.n_components, counts.shape[0] * counts.shape[1], "entries of X")
        shape, rate = _pair(self.activation_prior, "activation_prior")
        if self.component_prior is None:
            mean = float(counts.sum()) / (counts.shape[0] * counts.shape[1])
            # Without any counts there is no scale to find.
            own_rate = 0.3 * self.n_components * shape / rate / mean if mean > 0 else 1.0
            own = 0.3, min(max(own_rate, 1e-100), 1e100)
        else:
            own = _pair(self.component_prior, "component_prior")
        return PoissonFactors(self.n_components, counts.shape[1], shape, rate, *own)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        check_compressed(X, "X")
        with naming_the_table():
            X = validate_data(self, X, reset=reset, dtype=np.float64, accept_sparse="csr")
        counts = as_csr(X)
        # scikit-learn looks for the first words.
        negative = "Negative values in data passed to PoissonFactorization: X must hold counts"
        check_sparse_counts(counts, negative, np.inf)
        return counts

    def _solved(self, X: Any) -> list[FactorStep]:
        """q(θ) of new data at T = 1."""
        check_is_fitted(self)
        counts, model = self._validated(X, reset=False), self._model
        model.check(counts)
        expectations, size = model.expectations(self._state.posterior), model.shard_size
        starts = range(0, counts.shape[0], size)
        with open_executor(None, self.n_jobs) as executor:
            return executor.map(
                lambda start: model.local_step(counts[start : start + size], expectations, 1.0),
                starts,
            )


def _pair(given: Any, name: str) -> tuple[float, float]:
    expected = "two positive numbers, a shape and a rate"
    pair = as_numbers(given, name, expected)
    if pair.shape != (2,) or not np.all((pair > 0) & np.isfinite(pair)):
        raise ValueError(f"{name} must be {expected}; got {shown(given)}.")
    return float(pair[0]), float(pair[1])


def _largest_first(posterior: Natural, prior_shape: float) -> Natural:
    """λ with the component first that holds most of the counts."""
    order = np.argsort(-(posterior.shape - prior_shape).sum(axis=0).round(6), kind="stable")
    return Natural(shape=posterior.shape[:, order], rate=posterior.rate[order])
