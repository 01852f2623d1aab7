"""What the mixture estimators share, fitting, online fitting and prediction; and the two that need
little more: mixtures of binary and of count vectors.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tempering.estimators.devices import fit_table
from tempering.estimators.engine_estimator import OnlineEstimator
from tempering.estimators.parameters import (
    Auto,
    Count,
    NotNegative,
    Numbers,
    Positive,
    Tempering,
    check_unchanged,
    form_of,
    per_column,
)
from tempering.estimators.saving import expect_kinds
from tempering.estimators.starts import another_start, best_start, random_assignment
from tempering.families import Bernoulli, Dirichlet, Likelihood, Poisson, StickBreaking
from tempering.families.checks import refuse
from tempering.inference import Result
from tempering.inference.fitting import FitOptions
from tempering.models import Mixture
from tempering.models.natural import Array, Natural, emit
from tempering.models.threads import one_blas_thread
from tempering.search import SearchResult
from tempering.temperature import TemperaturePolicy, Untempered

WeightPrior = Literal["dirichlet_process", "dirichlet_distribution"]

#: By default, the rise of the ELBO for each row under which a fit has converged, in nats.
TOLERANCE = 1e-5
#: Rows that can be drawn at once: more would hardly find room.
LARGEST_SAMPLE = 10**9


@dataclass(eq=False, repr=False)
class MixtureFit(OnlineEstimator):
    """A mixture that can be fitted. Subclasses say which, and how it starts."""

    _: KW_ONLY
    max_iter: Count = 200
    weight_concentration_prior_type: WeightPrior = "dirichlet_distribution"
    weight_concentration_prior: Positive | None = None

    # A parameter of some mixtures only.
    warm_start = False

    _not_converged = (
        "Best performing initialization did not converge. Try different init parameters, or "
        "increase max_iter, tol, or check for degenerate data."
    )

    @abstractmethod
    def _prepare(self, X: Array) -> None:
        """Fix from the first data what the model needs to know: an offset, ``_component_prior``."""

    @abstractmethod
    def _likelihood(self) -> Likelihood:
        """The likelihood of a row, of the sizes that :meth:`_prepare` fixed."""

    def _first_model(self, X: Array) -> Mixture:
        """The model of the first data."""
        given = self.weight_concentration_prior
        self._concentration = 1.0 / self.n_components if given is None else float(given)
        self._prepare(X)
        self._fitted_form = form_of(self)
        return self._model()

    def _model(self) -> Mixture:
        """The model of the fit."""
        check_unchanged(self, **self._fitted_form)
        k, concentration = self.n_components, self._concentration
        family, prior = Dirichlet(k), np.full(k, concentration)
        if self.weight_concentration_prior_type == "dirichlet_process":
            family, prior = StickBreaking(k), np.repeat([1.0, concentration], k)
        learned = self._learned()
        return Mixture(self._likelihood(), family, prior, self._component_prior, learned=learned)

    def _learned(self) -> Callable[[Any, Array, Array], Array] | None:
        """Return what learns the prior of the components, or None."""
        return None

    @property
    def _going_on(self) -> bool:
        return self.warm_start and hasattr(self, "_state")

    def _new_model(self, X: Array) -> Mixture:
        if X.shape[0] < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components: n_components={self.n_components} is more "
                f"than n_samples={X.shape[0]}. Ask for fewer components, or give more data."
            )
        return self._model() if self._going_on else self._first_model(X)

    def _starts(self, model: Mixture, X: Array, rng: np.random.RandomState) -> Natural:
        return model.prior() + model.statistics(X, random_assignment(X, self.n_components, rng))

    def _run(self, model: Mixture, data: Array, options: FitOptions) -> Result:
        return fit_table(model, data, backend=self.backend, **options)

    def _tolerance(self, n_data: int) -> float:
        """Rise of the ELBO, in nats, under which a fit to these many rows has converged."""
        return self.tol

    def _summarise(self, result: Result) -> None:
        super()._summarise(result)
        self.lower_bound_ = self.elbo_
        if self.batch_size is None and len(result.history):
            # The rise of the last step is known only now.
            last = result.history[-1]
            tolerance = self._tolerance(round(last.data_seen / last.passes))
            self.converged_ |= abs(result.elbo - last.elbo) < tolerance

    def _model_of_stream(self, X: Array) -> Mixture:
        model = self._model() if hasattr(self, "_state") else self._first_model(X)
        model.sorts = False  # labels stay what they were from batch to batch
        return model

    def _probabilities(self, data: Array) -> Array:
        """q(z) of data as the model sees them, shape (n_samples, n_components)."""
        model = self._model()
        model.check(data)
        with one_blas_thread():
            assigned = model.assign(data, model.expectations(self._state.posterior))
        return assigned.probabilities.astype(self.weights_.dtype, copy=False)

    def _log_predictive(self, data: Array) -> Array:
        """log Σ_k E[π_k] E[p(x | β_k)] of data as the model sees them."""
        model = self._model()
        model.check(data)
        with one_blas_thread():
            scores = model.predictive(data, self._state.posterior)
        return scores.astype(self.weights_.dtype, copy=False)

    def _check_loaded(self) -> None:
        expect_kinds(self, _fitted_form=dict, _concentration=float)
        super()._check_loaded()
        self._check_exposed(self._model())

    def _expose_weights(self, model: Mixture) -> None:
        self.weights_ = model.mean_weights(self._state.posterior)
        concentration = self._state.posterior.weights
        sticks = isinstance(model.weights, StickBreaking)
        self.weight_concentration_ = tuple(np.split(concentration, 2)) if sticks else concentration


@dataclass(eq=False, repr=False)
class MixtureEstimator(DensityMixin, MixtureFit):
    """A mixture of rows, with scikit-learn's interface."""

    _work: ClassVar[int] = 3

    _: KW_ONLY
    tempering: Tempering = None
    tol: NotNegative | Auto = "auto"  # pyright: ignore[reportIncompatibleVariableOverride]
    n_init: Count | Auto = "auto"  # pyright: ignore[reportIncompatibleVariableOverride]

    def _searches(self, policy: TemperaturePolicy) -> bool:
        if self.n_components == 1 or self.batch_size is not None or self.backend != "cpu":
            return False
        return isinstance(policy, Untempered) and self.n_init != 1

    def _summarise(self, result: Result) -> None:
        super()._summarise(result)
        last = result.trail[-1] if isinstance(result, SearchResult) else None
        if last is not None and last.operator == "last" and last.accepted:
            self.n_iter_ = int(np.ceil(last.passes))  # those of the run that led to the result

    def _tolerance(self, n_data: int) -> float:
        return max(1e-3, TOLERANCE * n_data) if self.tol == "auto" else self.tol

    def _search(self, model: Mixture, data: Array, options: FitOptions) -> Result:
        options["tolerance"] = self._tolerance(data.shape[0])
        return super()._search(model, data, options)

    def _run(self, model: Mixture, data: Array, options: FitOptions) -> Result:
        options["tolerance"] = self._tolerance(data.shape[0])
        return super()._run(model, data, options)

    def predict_proba(self, X: Any) -> Array:
        """Posterior probability of each component, shape (n_samples, n_components)."""
        check_is_fitted(self)
        return self._probabilities(self._transformed(self._validated(X, reset=False)))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable component of each sample."""
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, then the most probable component of each sample."""
        return self.fit(X).predict(X)

    def score_samples(self, X: Any) -> Array:
        """Log posterior predictive density of each sample: log Σ_k E[π_k] E[p(x | β_k)].

        The expectation over β_k is exact, by conjugacy: E[p(x | β)] = h(x) exp{a(λ + t(x)) − a(λ)}.
        """
        check_is_fitted(self)
        return self._log_predictive(self._transformed(self._validated(X, reset=False)))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log posterior predictive density of the samples."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples, and their components, at the posterior's central parameters."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or not 1 <= n_samples <= LARGEST_SAMPLE:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples!r}. Ask for a whole number, from 1 to "
                f"{LARGEST_SAMPLE}."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        model, posterior = self._model(), self._state.posterior
        weights = model.mean_weights(posterior)
        labels = np.repeat(np.arange(self.n_components), rng.multinomial(n_samples, weights))
        family, components = model.likelihood.components_alone(posterior.components)
        with one_blas_thread():
            rows = emit(model.likelihood, family.point(components), labels, rng)
        return rows + getattr(self, "_centre", 0), labels


_PARAMETERS = """
    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    component_prior : pair of floats or of arrays of shape (n_features,), default=None
        {prior}
    tempering : {{"adaptive", "annealing", "variational", "local"}}, policy or None, \
default=None
        Temperature policy: a name for its default setting, an object such as
        ``tempering.Annealing(...)``, or None for T = 1 throughout.
    max_iter : int, default=None
        The most passes over the data, by default 1,000; in minibatches all are made, by default
        100. "annealing" cools over two thirds of them.
    tol, n_init, weight_concentration_prior_type, weight_concentration_prior, \
batch_size, learning_offset, learning_decay, total_samples, backend, random_state, n_jobs, \
executor, verbose
        As in :class:`tempering.BayesianGaussianMixture`.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        Mixing weights.
    {attribute} : array of shape (n_components, n_features)
        {meaning}
    weight_concentration_, elbo_, lower_bound_, restart_elbos_, history_, temperature_, \
inverse_temperatures_, converged_, n_iter_, n_features_in_
        As in :class:`tempering.BayesianGaussianMixture`.
"""


@dataclass(eq=False, repr=False)
class _DiscreteMixture(MixtureEstimator):
    """A mixture whose columns are independent, each with a two-parameter conjugate prior."""

    _: KW_ONLY
    max_iter: Count | None = None
    component_prior: Numbers | None = None

    def _starts(self, model: Mixture, X: Array, rng: np.random.RandomState) -> Natural:
        return best_start(model, X, "auto", rng)

    def _another_start(self, model: Mixture, X: Array, rng: np.random.RandomState) -> Natural:
        return another_start(model, X, "auto", rng)

    @abstractmethod
    def _default_prior(self, X: Array) -> tuple[Any, Any]:
        """The two parameters of a column's prior."""

    def _prepare(self, X: Array) -> None:
        d = X.shape[1]
        given: Any = self.component_prior
        given = self._default_prior(X) if given is None else given
        parts = [given] if np.isscalar(given) or getattr(given, "ndim", 1) == 0 else list(given)
        expected = f"two positive numbers, or two arrays of {d} positive numbers"
        if len(parts) != 2:
            raise ValueError(f"component_prior must be {expected}; got {given!r}.")
        pair = [per_column(part, "component_prior", d, expected) for part in parts]
        self._component_prior = np.concatenate(pair)


@dataclass(eq=False, repr=False)
class BernoulliMixture(_DiscreteMixture):
    __doc__ = (
        """Variational Bayesian mixture of binary vectors. Values above 0 count as 1.
"""
        + _PARAMETERS.format(
            prior="Beta(a, b) prior of each probability; (1, 1) by default.",
            attribute="probabilities_",
            meaning="Probability that a column is 1 in each component.",
        )
        + """
    Examples
    --------
    >>> import numpy as np
    >>> from tempering import BernoulliMixture
    >>> X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 20, axis=0)
    >>> mixture = BernoulliMixture(n_components=2, random_state=0).fit(X)
    >>> np.sort(mixture.probabilities_[:, 0]).round(2)
    array([0.05, 0.95])
    """
    )

    def _likelihood(self) -> Bernoulli:
        return Bernoulli(self.n_features_in_)

    def _default_prior(self, X: Array) -> tuple[float, float]:
        return 1.0, 1.0

    def _transformed(self, X: Array) -> Array:
        return (X > 0).astype(float)

    def _expose(self, model: Mixture, data: Any = None) -> None:
        self._expose_weights(model)
        self.probabilities_ = model.likelihood.conjugate.point(self._state.posterior.components)


class _WeightedPoisson(Poisson):
    """Counts that may be fractional, as scikit-learn allows for weighted counts."""

    def check(self, x: ArrayLike) -> None:
        x = np.asarray(x)
        refuse(x < 0, x, "Negative values in data passed to PoissonMixture: X must hold counts")


@dataclass(eq=False, repr=False)
class PoissonMixture(_DiscreteMixture):
    __doc__ = (
        """Variational Bayesian mixture of vectors of counts.
"""
        + _PARAMETERS.format(
            prior="Gamma(shape, rate) prior of each rate; by default shape 1 and the data's mean.",
            attribute="rates_",
            meaning="Expected count of each column in each component.",
        )
        + """
    Examples
    --------
    >>> import numpy as np
    >>> from tempering import PoissonMixture
    >>> X = np.random.default_rng(0).poisson(np.repeat([[2.0], [20.0]], 100, axis=0))
    >>> mixture = PoissonMixture(n_components=2, random_state=0).fit(X)
    >>> np.sort(mixture.rates_.ravel()).round()
    array([ 2., 20.])
    """
    )

    _input_tags = ("positive_only",)

    def _likelihood(self) -> Poisson:
        return _WeightedPoisson(self.n_features_in_)

    def _default_prior(self, X: Array) -> tuple[float, Array]:
        self._likelihood().check(X)
        # An empty column has no scale of its own; its rate is then learned from the counts alone.
        with np.errstate(divide="ignore", over="ignore"):
            rate = 1.0 / X.mean(axis=0)
        return 1.0, np.where(np.isfinite(rate), rate, 1.0)

    def _expose(self, model: Mixture, data: Any = None) -> None:
        self._expose_weights(model)
        self.rates_ = model.likelihood.conjugate.point(self._state.posterior.components)
