"""Bayesian factor analysis, and Poisson factorisation, with scikit-learn's interface."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tempering.estimators.engine_estimator import EngineEstimator, FeatureMixin
from tempering.estimators.parameters import (
    Count,
    NotNegative,
    Numbers,
    Tempering,
    as_policy,
    check_n_components,
    cooling,
)
from tempering.estimators.starts import centre_and_variance, check_spread
from tempering.families.checks import check_compressed, check_sparse_counts, naming_the_table
from tempering.inference import Result
from tempering.inference.executors import Executor, open_executor
from tempering.inference.fitting import FitOptions
from tempering.models.arguments import as_numbers, check_number, shown
from tempering.models.base import Array
from tempering.models.factor.gaussian import GaussianFactors
from tempering.models.factor.poisson import PoissonFactors, as_csr
from tempering.temperature import Annealing, TemperaturePolicy


@dataclass(eq=False, repr=False)
class _FactorEstimator(FeatureMixin, EngineEstimator):
    """What the two share: restarts by the engine, and factors of new rows."""

    _: KW_ONLY
    tol: NotNegative = 1e-2
    executor: Executor | None = None

    def _n_starts(self) -> int:
        return 1  # the engine itself starts anew

    def _run(self, model: Any, data: Any, options: FitOptions) -> Result:
        result = super()._run(model, data, {**options, "n_init": self.n_init})
        return replace(result, posterior=model.largest_first(result.posterior))

    def _check_loaded(self) -> None:
        super()._check_loaded()
        self._check_exposed(self._model)

    @abstractmethod
    def _solver(self, data: Any) -> Callable[[Any], Any]:
        """What solves q of the factors of some of these rows, at T = 1."""

    def _solved(self, X: Any) -> list[Any]:
        check_is_fitted(self)
        data, size = self._transformed(self._validated(X, reset=False)), self._model.shard_size
        solve, starts = self._solver(data), range(0, data.shape[0], size)
        with open_executor(None, self.n_jobs) as executor:
            return executor.map(lambda start: solve(data[start : start + size]), starts)

    def score_samples(self, X: Any) -> Array:
        """Log density of what is observed of each sample.

        Of factor analysis at the posterior means, of Poisson factorisation a lower bound: the
        sample's part of the ELBO.
        """
        return np.concatenate([part.energies + part.entropies for part in self._solved(X)])


@dataclass(eq=False, repr=False)
class BayesianFactorAnalysis(_FactorEstimator):
    """Factor analysis that finds how many factors there are, and allows for missing values.

    x = components_' z + mean_ + noise, with z ~ N(0, 1). Factors that the data do not ask for are
    switched off (automatic relevance determination), so ``n_components`` is only an upper limit.
    Entries of X that are NaN are taken as not observed: in ``fit``, ``transform`` and ``score``.

    Parameters
    ----------
    n_components : int, default=None
        The most factors K; by default one less than there are rows or columns, and at most 50.
    noise : {"feature", "shared"}, default="feature"
        Whether each column has a noise of its own (factor analysis), or all have one variance
        (probabilistic PCA). With "shared", columns should have the same unit.
    loadings : {"dense", "sparse"}, default="dense"
        Whether a factor is switched off as a whole, or each of its loadings by itself: each then
        has Student's t distribution, and the factors lie where most loadings are near 0.
    tempering : {"adaptive", "annealing", "variational", "local"}, policy or None, default=None
        Temperature policy. See the notes: little heat at most.
    n_init : int, default=1
        Runs; the one with the best ELBO is kept. They differ only in minibatches and idle factors.
    tol, max_iter, batch_size, learning_offset, learning_decay, random_state, n_jobs, executor, \
verbose
        As in :class:`tempering.BayesianGaussianMixture`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Posterior means of the loadings, the factor that explains most of the variance first.
    noise_variance_ : array of shape (n_features,)
        Variance of the noise.
    mean_ : array of shape (n_features,)
        Posterior mean of the columns' means.
    n_relevant_ : int
        How many factors explain something. The other rows of ``components_`` are nearly 0.
    elbo_ : float
        Evidence lower bound of the model at T = 1.
    restart_elbos_ : list of float
        What each of the ``n_init`` runs reached.
    history_, temperature_, inverse_temperatures_, converged_, n_iter_, n_features_in_
        As in :class:`tempering.FactorialMixture`.

    Notes
    -----
    The fit starts from the principal components, close to its optimum. There heat only hides weak
    factors in noise, and a factor that is switched off does not come back. From T = 2 on, real
    factors are lost.

    References
    ----------
    Bishop (1999), "Variational principal components", ICANN.

    Luttinen and Ilin (2010), "Transformations in variational Bayesian factor analysis to speed up
    learning", Neurocomputing 73.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import BayesianFactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + rng.normal(0, 0.3, size=(300, 8))
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> BayesianFactorAnalysis().fit(X).n_relevant_
    2
    """

    n_components: Count | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    _: KW_ONLY
    noise: Literal["feature", "shared"] = "feature"
    loadings: Literal["dense", "sparse"] = "dense"
    tempering: Tempering = None
    max_iter: Count = 500

    _input_tags, _called = ("allow_nan",), "factors"

    def _new_model(self, X: Array) -> GaussianFactors:
        seen = ~np.isnan(X)
        if not seen.any(axis=0).all():
            column = int(np.argmin(seen.any(axis=0)))
            raise ValueError(f"X must have a number in each column; column {column} is all NaN.")
        k = self.n_components
        if k is None:
            k = max(1, min(*X.shape, 51) - 1)
        elif k > X.shape[1]:
            raise ValueError(
                f"n_components={k} must be at most n_features={X.shape[1]}: there are no more "
                "directions."
            )
        check_spread(X, "X")
        self._centre, variances = centre_and_variance(X)
        shared, is_sparse = self.noise == "shared", self.loadings == "sparse"
        if shared and variances.any():
            variances[:] = np.nanmean(np.square(X - self._centre))
        scales = np.where(variances > 0, variances, 1.0)  # what is constant has none
        return GaussianFactors(int(k), scales, shared, sparse=is_sparse)

    def _expose(self, model: GaussianFactors, data: Any = None) -> None:
        self._model, expected = model, model.expectations(self._state.posterior)
        self.components_ = np.ascontiguousarray(expected.loadings[:, :-1].T)
        self.mean_ = expected.loadings[:, -1] + self._centre
        self.noise_variance_ = 1.0 / expected.precision
        explained = np.square(self.components_) @ expected.precision
        # None can be told from noise under √(D/N); those that were switched off shrink to 0.
        limit = np.sqrt(len(self.mean_) / self._state.data_seen)
        self.n_relevant_ = int(np.sum(explained > 0.1 * limit))

    def _draws(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        drawn = super()._draws(n, rng)
        drawn["mean"] = drawn["mean"] + self._centre
        return drawn

    def transform(self, X: Any) -> Array:
        """Expected factors of each sample given what is observed of it, at the posterior means."""
        return np.concatenate([part.means[:, :-1] for part in self._solved(X)])

    def inverse_transform(self, X: Any) -> Array:
        """Factors back to data: X @ components_ + mean_. With ``transform``, it fills in NaN."""
        return super().inverse_transform(X) + self.mean_

    def sample(self, n_samples: int = 1) -> Array:
        """Draw rows from the model, at the posterior means."""
        check_is_fitted(self)
        expected = "a whole number, from 1 to 1e9"
        check_number(n_samples, "n_samples", expected, least=1, most=10**9, whole=True)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        factors = rng.standard_normal((int(n_samples), len(self.components_)))
        noise = rng.standard_normal((int(n_samples), len(self.mean_)))
        return self.inverse_transform(factors) + noise * np.sqrt(self.noise_variance_)

    def _solver(self, data: Array) -> Callable[[Array], Any]:
        known = self._model.point(self._state.posterior)
        return partial(self._model.solve, expected=known, inverse_temperature=1.0)


@dataclass(eq=False, repr=False)
class PoissonFactorization(_FactorEstimator):
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
    >>> from tempering import PoissonFactorization
    >>> X = [[9, 8, 0, 0]] * 50 + [[0, 0, 7, 8]] * 50
    >>> factors = PoissonFactorization(n_components=2, random_state=0).fit(X)
    >>> factors.inverse_transform(factors.transform([X[0], X[-1]])).round().astype(int)
    array([[9, 8, 0, 0],
           [0, 0, 7, 8]])
    """

    n_components: Count = 10
    _: KW_ONLY
    activation_prior: Numbers = (0.3, 0.3)
    component_prior: Numbers | None = None
    tempering: Tempering = "auto"
    max_iter: Count = 300

    _input_tags = ("sparse", "positive_only")

    def _expose(self, model: PoissonFactors, data: Any = None) -> None:
        self._model, posterior = model, self._state.posterior
        self.components_ = np.ascontiguousarray((posterior.shape / posterior.rate).T)

    def transform(self, X: Any) -> Array:
        """Expected activations of samples, seen or not, at T = 1: (n_samples, n_components)."""
        steps = self._solved(X)
        return np.concatenate([step.shapes / step.rates for step in steps])

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`, in nats an entry of X. Higher is better."""
        return super().score(X) / self.n_features_in_

    def _policy(self, planned_passes: float) -> TemperaturePolicy:
        auto = cooling(1.4, 50, planned_passes)
        return as_policy(self.tempering, {"auto": auto, "annealing": Annealing})

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
        check_sparse_counts(counts, "X must hold counts", type(self).__name__)
        return counts

    def _solver(self, data: Any) -> Callable[[Any], Any]:
        self._model.check(data)
        expected = self._model.expectations(self._state.posterior)
        return partial(self._model.local_step, expectations=expected, inverse_temperature=1.0)


def _pair(given: Any, name: str) -> tuple[float, float]:
    expected = "two positive numbers, a shape and a rate"
    pair = as_numbers(given, name, expected)
    if pair.shape != (2,) or not np.all((pair > 0) & np.isfinite(pair)):
        raise ValueError(f"{name} must be {expected}; got {shown(given)}.")
    return float(pair[0]), float(pair[1])
