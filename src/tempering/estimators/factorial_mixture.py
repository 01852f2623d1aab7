"""The factorial mixture with scikit-learn's interface: binary features that add up.

The model knows its data and its features by their inner products alone, so both may be rotated:
data with more columns than rows so that as many columns as rows hold all of them. After the first
step each feature lies in the space that the data span.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from tempering.estimators.devices import fit_table
from tempering.estimators.engine_estimator import FeatureMixin, OnlineEstimator
from tempering.estimators.feature_operators import FEATURE_OPERATORS
from tempering.estimators.parameters import (
    Auto,
    Count,
    CountFromZero,
    NotNegative,
    Numbers,
    Tempering,
    check_n_components,
    check_unchanged,
)
from tempering.inference import ArraySource, Result
from tempering.inference.fitting import FitOptions
from tempering.models.arguments import as_numbers
from tempering.models.base import Array
from tempering.models.factorial.activations import MAX_ENUMERATED
from tempering.models.factorial_mixture import FactorialModel, as_probabilities, log_density
from tempering.models.natural import Natural
from tempering.temperature import TemperaturePolicy, Untempered

#: Variances that there is a computer for: beyond, their squares are 0 or infinite.
Variance = Annotated[float, Interval(Real, 1e-100, 1e100, closed="both")]
Probability = Annotated[float, Interval(Real, 0, 1, closed="neither")]


@dataclass(eq=False, repr=False)
class FactorialMixture(FeatureMixin, OnlineEstimator):
    """Factorial mixture model: each sample is a sum of some of K features, plus noise.

    x_n = Σ_k z_nk μ_k + ε_n with z_nk ~ Bern(π), μ_k ~ N(0, σ_μ²·1) and ε_n ~ N(0, σ²·1). The data
    are not centred: that features have mean zero is part of the model.

    Parameters
    ----------
    n_components : int, default=8
        Number of features K.
    noise_variance : float, default=None
        σ², a variance; by default what the best approximation of rank K leaves in each column.
    feature_variance : float, default=None
        σ_μ², a variance; by default the one that fits the size of the data, (E x² − σ²) / Σ_k π_k.
    activation_probability : float or array-like of shape (n_components,), default=0.3
        π; one for all features or one for each.
    learn : collection of str, default=()
        Which of "noise_variance", "feature_variance" and "activation_probability" to learn, from
        the values above, in the phase at T = 1.
    tempering : {"adaptive", "annealing", "variational", "local"}, policy or None, \
default=None
        Temperature policy: a name for its default setting, an object such as
        ``tempering.Annealing(...)``, or None for T = 1 throughout.
    local : {"auto", "exact", "mean-field"}, default="auto"
        How the activations of a sample are inferred: by their exact joint posterior over 2^K states
        (at most 12 features; "auto": where it can be), or as if independent.
    local_restarts : int, default=2
        In mean-field inference: hot starts of each sample in each step, kept if the ELBO rises.
    init : {"small", "prior", "data"} or array-like of shape (n_components, n_features), \
default="small"
        Features at the start: nearly 0, drawn from the prior, parts of random samples, or given.
    n_init : int or "auto", default="auto"
        Work of a fit, in plain fits: at T = 1 a search (:func:`tempering.search`) takes as many
        passes over the data as this number of fits, by default 15, and returns the best solution
        that it finds. In minibatches, and with a temperature policy, it is the number of starts, by
        default 1, of which the fit with the best ELBO is returned.
    max_iter : int, default=None
        The most passes over the data, by default 1,000; in minibatches all are made, by default
        100. "annealing" cools over two thirds of them.
    tol, batch_size, learning_offset, learning_decay, total_samples, backend, \
random_state, n_jobs, executor, verbose
        As in :class:`tempering.BayesianGaussianMixture`.

    Attributes
    ----------
    features_ : array of shape (n_components, n_features)
        Posterior means of the features, the one that is active most often first.
    feature_variances_ : array of shape (n_components,)
        Posterior variance of each feature, the same for all its columns.
    activation_rates_ : array of shape (n_components,)
        Mean activation of each feature in the data.
    noise_variance_, feature_variance_, activation_probability_
        The hyperparameters, as given, found or learned.
    trail_ : list of Trial
        The rounds of a search, as a table: ``pandas.DataFrame(mixture.trail_)``. See the notes.
    elbo_, restart_elbos_, history_, temperature_, inverse_temperatures_, converged_, n_iter_, \
n_features_in_
        As in :class:`tempering.BayesianGaussianMixture`.

    Notes
    -----
    After a search ``history_`` has the steps of the first run and, where another solution is the
    best, those of the last run, from there. ``n_iter_`` counts all passes of the search up to the
    last step, ``converged_`` refers to the run that ends in the solution, and ``restart_elbos_``
    has its ELBO alone. ``max_iter`` limits the passes of each run.

    References
    ----------
    Ghahramani (1995), "Factorial learning and the EM algorithm", NIPS 7.

    Mandt, McInerney, Abrol, Ranganath and Blei (2016), "Variational Tempering", AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import FactorialMixture
    >>> rng = np.random.default_rng(0)
    >>> shapes = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1]])
    >>> active = rng.random((500, 3)) < 0.3
    >>> X = active @ shapes + 0.3 * rng.standard_normal((500, 6))
    >>> mixture = FactorialMixture(3, random_state=0).fit(X)
    >>> sorted(mixture.features_.round().astype(int).tolist())
    [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]
    >>> mixture.transform(X).shape
    (500, 3)
    """

    n_components: Count = 8
    _: KW_ONLY
    noise_variance: Variance | None = None
    feature_variance: Variance | None = None
    activation_probability: Probability | Numbers = 0.3
    learn: tuple | list | set | frozenset = ()
    tempering: Tempering = None
    n_init: Count | Auto = "auto"  # pyright: ignore[reportIncompatibleVariableOverride]
    local: Literal["auto", "exact", "mean-field"] = "auto"
    local_restarts: CountFromZero = 2  # fewer miss explanations, more find few
    init: Literal["small", "prior", "data"] | Numbers = "small"
    tol: NotNegative = 1e-2
    max_iter: Count | None = None

    _called, _held = "features", "features_"
    _operators, _work = FEATURE_OPERATORS, 15

    def _model_of_stream(self, X: Array) -> FactorialModel:
        if not hasattr(self, "_state"):
            return self._new_model(X)
        check_unchanged(self, n_components=self._model.n_features)
        return copy(self._model)

    def _start_of_stream(
        self, model: FactorialModel, data: Array, rng: np.random.RandomState
    ) -> Any:
        given, generator = self._starts(model, data, rng), np.random.default_rng(rng.randint(2**31))
        return model.initialize(ArraySource(data), generator) if given is None else given

    def transform(self, X: Any) -> Array:
        """Probability that each feature is active in each sample, at T = 1: (n_samples, K)."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return self._model.local_step(X, self._expectations, 1.0).activations

    def score_samples(self, X: Any) -> Array:
        """Log predictive density of each sample, with the untempered model.

        With at most 12 features it is exact under the posterior of the features: the sum over all
        activations. With more it is a lower bound, the ELBO of the sample.
        """
        check_is_fitted(self)
        return log_density(self._model, self._validated(X, reset=False), self._expectations)

    def _run(self, model: FactorialModel, X: Array, options: FitOptions) -> Result:
        return self._fit_narrow(super()._run, model, X, options)

    def _searches(self, policy: TemperaturePolicy) -> bool:
        untempered = isinstance(policy, Untempered) and self.batch_size is None
        return untempered and self.n_components > 1 and self.n_init != 1

    def _search(self, model: FactorialModel, X: Array, options: FitOptions) -> Result:
        return self._fit_narrow(super()._search, model, X, options)

    def _another_start(self, model: Any, data: Any, rng: np.random.RandomState) -> None:
        return None  # features that are given are one start

    def _fit_narrow(
        self, find: Callable[..., Result], model: FactorialModel, X: Array, options: FitOptions
    ) -> Result:
        """Fit, or search, with a table that is turned where that saves time."""
        on_table = partial(
            fit_table, backend=self.backend, find=lambda m, data, **given: find(m, data, given)
        )
        if self.batch_size or not worthwhile(len(X), X.shape[1], self.n_components):
            return on_table(model, X, **options)
        narrow, initial = Narrow.of(X, self.n_components), options.get("initial")
        if initial is None:
            rng = np.random.default_rng(options.get("seed"))
            initial = model.initialize(ArraySource(X), rng)
        options["initial"] = narrow.turned(initial)
        # Who watches the fit sees features of the data as they are.
        options["callbacks"] = [narrow.shown_to(each) for each in options.get("callbacks", ())]
        result = on_table(narrow.model(model), narrow.data, **options)
        assert isinstance(result.model, FactorialModel)
        result.model.columns = model.columns
        return replace(result, posterior=narrow.back(result.posterior))

    def _new_model(self, X: Array) -> FactorialModel:
        check_n_components(self.n_components, max(len(X), self.total_samples or 0), "samples")
        k, local = self.n_components, self.local
        if local == "auto":
            local = "exact" if k <= MAX_ENUMERATED else "mean-field"
        probability: Any = self.activation_probability
        active = float(as_probabilities(probability, k).sum())
        given = self.noise_variance, self.feature_variance
        return FactorialModel(
            k,
            X.shape[1],
            *guess_variances(X, k, active, *given),
            probability,
            local=local,
            local_restarts=self.local_restarts,
            start=self.init if isinstance(self.init, str) else "small",  # pyright: ignore
            learn=self.learn,
        )

    def _starts(self, model: FactorialModel, X: Array, rng: np.random.RandomState) -> Any:
        """About features that were given."""
        if isinstance(self.init, str):
            return None
        shape = self.n_components, X.shape[1]
        means = as_numbers(self.init, "init", f"'small', 'prior', 'data' or features {shape}")
        if means.shape != shape or not np.isfinite(means).all():
            raise ValueError(
                f"init must hold finite features of shape {shape}; got shape {means.shape}."
            )
        return model.features_at(means, len(X) * model.activation_probability)

    @property
    def _expectations(self) -> Any:
        return self._model.expectations(self._state.posterior)

    def _expose(self, model: FactorialModel, X: Array) -> None:
        """From here on, the most active feature is first."""
        posterior = self._state.posterior
        rates = model.local_step(X, model.expectations(posterior), 1.0).activations.mean(axis=0)
        order = np.argsort(-rates, kind="stable")
        posterior = posterior.replace(
            precision=posterior.precision[np.ix_(order, order)],
            precision_mean=posterior.precision_mean[order],
        )
        model.activation_probability = model.activation_probability[order]
        self._model, self._state = model, self._state._replace(posterior=posterior)
        self.features_, self.feature_variances_, _ = self._expectations
        self.activation_rates_ = rates[order]
        self.noise_variance_ = model.noise_variance
        self.feature_variance_ = model.feature_variance
        self.activation_probability_ = model.activation_probability


class Narrow(NamedTuple):
    """A table that was turned: [N, N + K] in place of [N, D]."""

    original: Array  # [N, D]
    data: Array  # [N, R + K], the last K columns zero
    weights: Array  # [N, R]: the data times these are the axes of the first R columns

    @classmethod
    def of(cls, data: Array, n_features: int) -> Narrow:
        """The axes are the principal ones: eigenvectors of the products of the data."""
        values, vectors = np.linalg.eigh(data @ data.T)
        kept = values > len(data) * np.finfo(float).eps * max(values[-1], 0.0)
        lengths, vectors = np.sqrt(values[kept]), vectors[:, kept]
        turned = np.zeros((len(data), len(lengths) + n_features))
        turned[:, : len(lengths)] = vectors * lengths
        return cls(data, turned, vectors / lengths)

    def model(self, model: FactorialModel) -> FactorialModel:
        """The same model of the turned data."""
        changed = copy(model)
        changed.columns = self.data.shape[1]
        return changed

    def turned(self, posterior: Natural) -> Natural:
        """A posterior about the turned data; what only features have is in the last K columns."""
        means = posterior.precision_mean
        inside = means @ self.original.T @ self.weights
        values, vectors = np.linalg.eigh(means @ means.T - inside @ inside.T)
        outside = vectors * np.sqrt(np.maximum(values, 0.0))
        return posterior.replace(precision_mean=np.hstack([inside, outside]))

    def back(self, posterior: Natural) -> Natural:
        """The reverse, for features that are combinations of the data."""
        inside = posterior.precision_mean[:, : self.weights.shape[1]]
        return posterior.replace(precision_mean=inside @ self.weights.T @ self.original)

    def shown_to(self, callback: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A callback for a fit of the turned data, of one for the data as they are."""
        return lambda report: callback(report._replace(posterior=self.back(report.posterior)))


def worthwhile(n_data: int, dimension: int, n_features: int) -> bool:
    """Whether the rotation takes less time than it saves in a hundred passes."""
    rotation = n_data**2 * (dimension / 2 + 4 * n_data)
    saved = 2 * n_data * n_features * (dimension - n_data - n_features)
    return rotation < 100 * saved


def guess_variances(
    X: Array,
    n_features: int,
    n_active: float,
    noise_variance: float | None = None,
    feature_variance: float | None = None,
) -> tuple[float, float]:
    """σ² and σ_μ², where they are not given; ``n_active`` is Σ_k π_k.

    Beyond rank K the data are noise; and E x² = σ² + σ_μ² Σ_k π_k.
    """
    square = float(np.einsum("nd,nd->", X, X)) / X.size
    if noise_variance is None:
        # Data that K features explain fully still need some noise.
        floor = max(1e-3 * square, np.finfo(float).tiny ** 0.5)
        noise_variance = max(_variance_beyond(X[:: -(-len(X) // 2000)], n_features), floor)
    if feature_variance is None:
        feature_variance = max(square - noise_variance, noise_variance) / n_active
    return noise_variance, feature_variance


def _variance_beyond(rows: Array, rank: int) -> float:
    """Variance a dimension that the best approximation of some rank leaves over."""
    n, d = rows.shape
    left = min(n, d) - rank
    if left <= 0:
        return 0.1 * float(np.mean(np.square(rows)))
    gram = rows @ rows.T if n < d else rows.T @ rows
    return max(float(np.linalg.eigvalsh(gram)[:left].sum()), 0.0) / n / max(d - rank, 1)
