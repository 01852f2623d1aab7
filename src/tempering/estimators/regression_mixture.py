"""A mixture of Bayesian linear regressions, with scikit-learn's interface."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, check_X_y

from tempering.estimators.devices import fit_table
from tempering.estimators.mixture import MixtureFit
from tempering.estimators.parameters import Auto, Count, Positive, Tempering
from tempering.estimators.starts import centre_and_variance, check_spread
from tempering.families import LinearGaussian
from tempering.families.checks import LARGEST_VALUE, naming_the_table, refuse
from tempering.inference import Result
from tempering.inference.checkpoint import CheckpointLike, alone_with_checkpoint
from tempering.inference.fitting import FitOptions
from tempering.models import Mixture
from tempering.models.arguments import as_numbers
from tempering.models.base import Array
from tempering.models.natural import Natural
from tempering.temperature import TemperaturePolicy, Untempered


@dataclass(eq=False, repr=False)
class RegressionMixture(RegressorMixin, MixtureFit):
    """Mixture of Bayesian linear regressions: rows that follow one of several lines.

    Row i belongs to component k with probability π_k, whatever its x. Then y_i = w_k'x_i + b_k plus
    noise of precision τ_k. X is given, not modelled: for a new x the components have their mixing
    weights, and :meth:`predict` is the mean of their lines, weighted by ``weights_``.

    Parameters
    ----------
    n_components : int, default=2
        Number of components K.
    coef_precision_prior : float, default=1e-3
        Prior precision of coefficients, in units of the noise's and for columns of unit variance:
        w_kj ~ N(0, 1 / (coef_precision_prior · Var(x_j) · τ_k)). That of the intercept too.
    noise_shape_prior : float, default=1.0
        Shape of the gamma prior of τ_k.
    noise_rate_prior : float, default=None
        Its rate; by default a thousandth of the variance of y.
    tempering : {"adaptive", "annealing", "variational", "local"}, policy or None, default=None
        Temperature policy: a name for its default setting, an object such as
        ``tempering.Annealing(...)``, or None for T = 1 throughout.
    n_init : int or "auto", default="auto"
        Work of a fit, in plain fits: at T = 1 a search (:func:`tempering.search`) takes as many
        passes over the data as this number of fits, by default 5, and returns the best solution
        that it finds. In minibatches, and with a temperature policy, it is the number of starts, by
        default 1, of which the fit with the best ELBO is returned.
    tol, max_iter, weight_concentration_prior_type, weight_concentration_prior, \
batch_size, learning_offset, learning_decay, total_samples, backend, random_state, n_jobs, \
executor, verbose
        As in :class:`tempering.BayesianGaussianMixture`.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        Mixing weights.
    coef_ : array of shape (n_components, n_features)
        Posterior means of the coefficients.
    intercept_, noise_variance_ : arrays of shape (n_components,)
        Intercepts, and variances of the noise.
    trail_ : list of Trial
        The rounds of a search, as a table: ``pandas.DataFrame(lines.trail_)``. After a search
        ``history_`` has the steps of the first run and, where another solution is the best, those
        of the last run, from there; ``n_iter_`` counts all passes of the search up to the last
        step, and ``restart_elbos_`` has the ELBO of the solution alone.
    weight_concentration_, elbo_, lower_bound_, restart_elbos_, history_, temperature_, \
inverse_temperatures_, converged_, n_iter_, n_features_in_
        As in :class:`tempering.BayesianGaussianMixture`.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import RegressionMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 1))
    >>> slopes = rng.choice([-1.0, 3.0], size=300)
    >>> y = slopes * X[:, 0] + rng.normal(0, 0.1, size=300)
    >>> lines = RegressionMixture(n_components=2, random_state=0).fit(X, y)
    >>> np.sort(lines.coef_.ravel()).round()
    array([-1.,  3.])
    """

    n_components: Count = 2
    _: KW_ONLY
    coef_precision_prior: Positive = 1e-3
    noise_shape_prior: Positive = 1.0
    noise_rate_prior: Positive | None = None
    tempering: Tempering = None
    n_init: Count | Auto = "auto"  # pyright: ignore[reportIncompatibleVariableOverride]
    max_iter: Count = 500

    _more_columns, _work = 2, 5  # of ones, and y

    @alone_with_checkpoint
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, *, checkpoint: CheckpointLike = None, resume: bool = True
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What is given.
        y : array-like of shape (n_samples,)
            What is to be explained.
        checkpoint, resume
            As in :meth:`tempering.BayesianGaussianMixture.fit`.
        """
        return self._fit_rows((X, y), checkpoint, resume)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Update the mixture with one more minibatch, as in :class:`BayesianGaussianMixture`."""
        return super().partial_fit((X, y))

    def predict(self, X: Any) -> Array:
        """E[y | x] = Σ_k E[π_k] (w_k'x + b_k): the mean of the lines, by their mixing weights."""
        check_is_fitted(self)
        X = super()._validated(X, reset=False)
        return (X @ self.coef_.T + self.intercept_) @ self.weights_

    def predict_proba(self, X: Any, y: Any = None) -> Array:
        """Posterior probability of each component, given x and y.

        Without y these are the mixing weights: x alone says nothing of the component.
        """
        check_is_fitted(self)
        if y is None:
            return np.tile(self.weights_, (len(super()._validated(X, reset=False)), 1))
        return self._probabilities(self._transformed(self._joined(X, y, reset=False)))

    def predict_log_density(self, X: Any, y: Any) -> Array:
        """Log posterior predictive density of each y, given its x, in nats."""
        check_is_fitted(self)
        return self._log_predictive(self._transformed(self._joined(X, y, reset=False)))

    def score(self, X: Any, y: Any) -> float:
        """Mean of :meth:`predict_log_density`. Not R²."""
        return float(np.mean(self.predict_log_density(X, y)))

    def sample(self, X: Any) -> tuple[Array, np.ndarray]:
        """Draw y, and its component, for rows of X, at the posterior's central parameters."""
        check_is_fitted(self)
        X = super()._validated(X, reset=False)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        labels = rng.choice(len(self.weights_), size=len(X), p=self.weights_)
        noise = np.sqrt(self.noise_variance_[labels]) * rng.standard_normal(len(X))
        return np.sum(X * self.coef_[labels], axis=1) + self.intercept_[labels] + noise, labels

    def _joined(self, X: Any, y: Any, *, reset: bool) -> Array:
        """Rows (1, x, y), of which the model sees x and y centred."""
        X = super()._validated(X, reset=reset)
        with naming_the_table("y must be numbers, one for each row of X"):
            X, y = check_X_y(X, y, y_numeric=True, estimator=self)  # X has lost its names
        y = as_numbers(y, "y", "numbers")
        too_large = ~(np.abs(y) <= LARGEST_VALUE)[:, None]
        refuse(too_large, y[:, None], f"y must hold numbers of at most {LARGEST_VALUE:g}")
        return np.column_stack([np.ones(len(X)), X, y])

    def _validated(self, X: tuple[Any, Any], *, reset: bool) -> Array:
        return self._joined(*X, reset=reset)  # both, as fits pass them on

    def _prepare(self, X: Array) -> None:
        check_spread(X[:, 1:-1], "X")
        check_spread(X[:, -1:], "y")
        centre, variances = centre_and_variance(X)
        self._centre = np.concatenate([[0.0], centre[1:]])  # but for the column of ones
        # What is constant has no scale; its coefficient stays near 0.
        scales = np.where(variances > 0, variances, 1.0)
        rate = 1e-3 * scales[-1] if self.noise_rate_prior is None else self.noise_rate_prior
        zero, precision = np.zeros(len(scales) - 1), self.coef_precision_prior * scales[:-1]
        family, shape = self._likelihood().conjugate, self.noise_shape_prior
        self._component_prior = family.natural(zero, np.diag(precision), shape, rate)

    def _another_start(self, model: Mixture, data: Array, rng: np.random.RandomState) -> Natural:
        """Return a start in which each component has the line of a few rows.

        They stand for its share of all rows. Where rows are shared out at random, all lines are
        nearly the same at first, and a run takes tens of passes to leave that plateau.
        """
        (n, few), k = data.shape, self.n_components
        few = min(few + 1, n)
        assignment = np.zeros((n, k))
        for component in range(k):
            rows = rng.choice(n, size=few, replace=False)
            assignment[rows, component] = n / (k * few)
        return model.prior() + model.statistics(data, assignment)

    def _searches(self, policy: TemperaturePolicy) -> bool:
        untempered = isinstance(policy, Untempered) and self.batch_size is None
        return untempered and self.n_components > 1 and self.n_init != 1

    def _search(self, model: Mixture, data: Array, options: FitOptions) -> Result:
        find = super()._search
        return fit_table(
            model,
            data,
            backend=self.backend,
            find=lambda m, x, **given: find(m, x, given),
            **options,
        )

    def _likelihood(self) -> LinearGaussian:
        return LinearGaussian(self.n_features_in_ + 1)

    def _expose(self, model: Mixture, data: Any = None) -> None:
        self._expose_weights(model)
        family, components = model.likelihood.conjugate, self._state.posterior.components
        # Columns of very different sizes leave no matrix that can be inverted.
        if not family.is_valid(components).all():
            raise FloatingPointError("the coefficients are lost in rounding")
        coefficients, precision = family.point(components)
        self.coef_ = np.ascontiguousarray(coefficients[:, 1:])
        centre = self._centre[1:]
        self.intercept_ = coefficients[:, 0] + centre[-1] - self.coef_ @ centre[:-1]
        self.noise_variance_ = 1.0 / precision

    def _draws(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        drawn = self._model().draw(self._state.posterior, n, rng)
        coefficients, precision = drawn["components"]
        coef, centre = coefficients[..., 1:], self._centre[1:]
        intercept = coefficients[..., 0] + centre[-1] - coef @ centre[:-1]
        own = {"coef": coef, "intercept": intercept, "precision": precision}
        return {"weights": drawn["weights"], **own}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # its score is no R²
        return tags
