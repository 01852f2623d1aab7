"""Bayesian Gaussian mixture with scikit-learn's parameters, search, and online fitting."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from tempering.estimators.covariances import (
    COVARIANCE_TYPES,
    CovarianceType,
    LearnedScale,
    data_driven_prior,
)
from tempering.estimators.mixture import MixtureEstimator, WeightPrior
from tempering.estimators.parameters import (
    Auto,
    Count,
    CountFromZero,
    Flag,
    NotNegative,
    Numbers,
    Positive,
)
from tempering.estimators.saving import expect_kinds, expect_shape
from tempering.estimators.starts import Start, another_start, best_start, dependent_columns
from tempering.families import Likelihood
from tempering.inference import Result
from tempering.models import Mixture, Natural
from tempering.models.base import Array


@dataclass(eq=False, repr=False)
class BayesianGaussianMixture(MixtureEstimator):
    """Variational Bayesian Gaussian mixture that finds its clusters.

    The parameters are those of :class:`sklearn.mixture.BayesianGaussianMixture`; what is added is a
    search for the best optimum (``n_init``), a prior that learns the scale of the clusters,
    ``tempering``, :meth:`partial_fit`, and minibatches (``batch_size``).

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Whether each component has a covariance matrix of its own, all share one, each has a
        diagonal one, or each has one variance for all columns.
    tempering : {"adaptive", "annealing", "variational", "local"}, policy or None, default=None
        A policy, the name of one in its default setting, or None for T = 1 throughout. It helps
        with an informative prior of the covariances only: see the notes.
    init_params : {"auto", "kmeans", "k-means++", "random", "random_from_data"}, default="auto"
        The start. "auto" is k-means in the units of the columns, or in units of their standard
        deviations, whichever has the better ELBO; the others are scikit-learn's.
    tol : float or "auto", default="auto"
        The fit has converged when the ELBO rises by less than this, in nats. "auto" is 1e-5 for
        each row, but at least 1e-3.
    max_iter : int, default=200
        The most passes over the data of a run.
    n_init : int or "auto", default="auto"
        Work of the search in a batch fit at T = 1, in plain fits: 10 is the number of passes that
        ten restarts take. With 1 there is one run and no search. Other fits are restarted this
        number of times, and the one with the best ELBO is returned. "auto" is 3 in a search, and 1
        otherwise.
    weight_concentration_prior_type : {"dirichlet_process", "dirichlet_distribution"}, \
default="dirichlet_process"
        Prior of the weights: truncated stick-breaking, or a finite Dirichlet.
    weight_concentration_prior : float, default=None
        Its concentration (in the literature γ or α0); 1 / n_components by default.
    mean_precision_prior : float, default=None
        How many data the prior of a mean counts for (κ0); by default 0.001, or 1 if
        ``covariance_prior`` is not "auto".
    mean_prior : array-like of shape (n_features,), default=None
        m0; the mean of the data by default.
    degrees_of_freedom_prior : float, default=None
        ν0 > n_features − 1; n_features by default.
    covariance_prior : array-like, "auto" or None, default="auto"
        Ψ0: a matrix ("full", "tied"), the diagonal ("diag"), or a number ("spherical", or for equal
        variances). "auto" starts from the covariance of the data divided by K^(2 / n_features)
        (Fraley and Raftery, 2007), and learns it from the components at T = 1 (empirical Bayes).
        None is the covariance of the data, as in scikit-learn: it hides clusters of few rows. Both
        have variances raised by a millionth, so that columns may be collinear or outnumber the
        rows.
    reg_covar : float, default=1e-6
        Added to the diagonal of the covariance prior.
    batch_size : int, default=None
        Minibatch of stochastic variational inference; None for coordinate ascent.
    learning_offset, learning_decay : float or "auto", and float, default="auto", 0.7
        Minibatch step t has the size (learning_offset + t) ** −learning_decay. With "auto" the
        offset is a hundredth of the steps, and steps shrink after half of the run, or from where
        T = 1 on; in a stream it is 10.
    total_samples : float, default=None
        How many samples a stream of :meth:`partial_fit` calls will bring; None if not known.
    backend : {"cpu", "auto", "jax", "gpu"}, default="cpu"
        Where a fit runs: on the CPU, on whatever device JAX finds ("jax"), or only on a GPU.
        "auto" takes a GPU if there is one and there are enough data.
    random_state : int, RandomState instance or None, default=None
        The same seed gives the same result, on any number of threads.
    n_jobs : int, default=None
        Threads; None for one on each core.
    executor : Executor, default=None
        What solves the shards of a batch: threads of this process, or a cluster, with
        ``tempering.cluster.DaskExecutor(client)``. It never changes the result, and is not saved.
    warm_start : bool, default=False
        Whether :meth:`fit` continues from where the last one ended, at T = 1, with its priors.
    verbose : int, default=0
        Show a progress bar on a terminal; elsewhere print the ELBO as the fit goes.
    verbose_interval : int, default=10
        Passes between two printed lines.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : arrays
        The mixture at the posterior's central parameters, in single precision where the data were.
        With the Dirichlet process the largest component comes first.
    weight_concentration_, mean_precision_, degrees_of_freedom_ : arrays
        The rest of the posterior.
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, \
covariance_prior_
        The priors as they were used. ``reg_covar`` is added to the last, which is the learned one
        where it is learned.
    elbo_, lower_bound_ : float
        Evidence lower bound of the model (T = 1), normalisers included.
    lower_bounds_ : list of float
        The same after each pass on the path that led to the result.
    restart_elbos_ : list of float
        What each run of a restarted fit reached; of a search, its result.
    history_ : History
        Temperature, ELBO and more at each step on the path that led to the result.
    temperature_, inverse_temperatures_
        T, and 1/T, at the end of the tempered phase; with local tempering, 1/T of each sample.
    converged_, n_iter_, n_features_in_
        As in scikit-learn.

    Notes
    -----
    Covariances that are learned grow with the temperature and hold the clusters together. Tempering
    helps where they are nearly known (a large ``degrees_of_freedom_prior``).

    References
    ----------
    Fraley and Raftery (2007), "Bayesian regularization for normal mixture estimation and
    model-based clustering", Journal of Classification 24.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import BayesianGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 0.5, size=(100, 1)) for centre in (1, 4, 9)])
    >>> mixture = BayesianGaussianMixture(n_components=3).fit(X)
    >>> np.sort(mixture.means_.ravel()).round()
    array([1., 4., 9.])
    >>> np.bincount(mixture.predict(X))
    array([100, 100, 100])
    """

    _: KW_ONLY
    covariance_type: Literal["full", "tied", "diag", "spherical"] = "full"
    init_params: Start = "auto"
    max_iter: CountFromZero = 200
    weight_concentration_prior_type: WeightPrior = "dirichlet_process"
    mean_precision_prior: Positive | None = None
    mean_prior: Numbers | None = None
    degrees_of_freedom_prior: Positive | None = None
    covariance_prior: Numbers | Positive | Auto | None = "auto"
    reg_covar: NotNegative = 1e-6
    warm_start: Flag = False
    verbose_interval: Count = 10

    def _validated(self, X: Any, *, reset: bool) -> Array:
        table = super()._validated(X, reset=reset)
        if reset:
            self._single_precision = getattr(X, "dtype", None) == np.float32
        return table

    def _prepare(self, X: Array) -> None:
        centre = X.mean(axis=0)
        names = "mean_prior", "degrees_of_freedom_prior", "covariance_prior"
        mean, degrees, covariance = data_driven_prior(self, X, names)
        auto = isinstance(self.covariance_prior, str)
        default = 0.001 if auto else 1.0
        precision = default if self.mean_precision_prior is None else self.mean_precision_prior
        kind, d = self._kind, X.shape[1]
        scale = covariance + self.reg_covar * kind.identity(d)
        if not (smallest := kind.smallest(scale)) > 0:
            raise ValueError(
                f"covariance_prior must be positive definite; its smallest eigenvalue is "
                f"{smallest}. Raise reg_covar, or give another prior."
            )
        likelihood = self._likelihood()
        component = kind.prior(likelihood, mean - centre, precision, degrees, scale)
        each = np.broadcast_to(component, (self.n_components, component.size))
        _refuse_improper(likelihood, each, "prior")
        self._centre, self._component_prior = centre, component
        self._scale = np.asarray(scale) if auto else None
        self.mean_prior_, self.mean_precision_prior_ = mean, precision
        self.degrees_of_freedom_prior_, self.covariance_prior_ = degrees, covariance
        self.weight_concentration_prior_ = self._concentration

    @property
    def _kind(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    def _likelihood(self) -> Likelihood:
        return self._kind.likelihood(self.n_features_in_, self.n_components)

    def _starts(self, model: Mixture, X: Array, rng: np.random.RandomState) -> Natural:
        posterior = best_start(model, X, self.init_params, rng)
        _refuse_improper(model.likelihood, posterior.components, "start")
        return posterior

    def _another_start(self, model: Mixture, X: Array, rng: np.random.RandomState) -> Natural:
        return another_start(model, X, self.init_params, rng)

    def _cause(self, X: Array) -> str:
        prior = "covariance_prior or reg_covar"
        return (self._kind.matrices and dependent_columns(X, prior)) or super()._cause(X)

    def _check_loaded(self) -> None:
        expect_kinds(self, _scale=Array | None)
        if self._scale is not None:
            expect_shape(self, "_scale", self._kind.shape(self.n_features_in_))
        super()._check_loaded()

    def _learned(self) -> LearnedScale | None:
        if self._scale is None:
            return None
        return LearnedScale.starting_from(self.covariance_type, self._scale)

    def _summarise(self, result: Result) -> None:
        super()._summarise(result)
        self.lower_bounds_ = [*result.history["elbo"][1:].tolist(), result.elbo]

    def _expose(self, model: Mixture, data: Any = None) -> None:
        self._expose_weights(model)
        kind = self._kind
        if model.learned is not None:
            self._component_prior = model.prior().components[0]
            prior = kind.describe(model.likelihood, model.prior().components)
            scale = prior[3] * np.ravel(prior[2])[0]
            self.covariance_prior_ = scale[0] if self.covariance_type != "tied" else scale
        described = kind.describe(model.likelihood, self._state.posterior.components)
        means, self.mean_precision_, self.degrees_of_freedom_, self.covariances_ = described
        self.means_ = means + self._centre
        self.precisions_ = kind.inverse(self.covariances_)
        self.precisions_cholesky_ = kind.precision_factors(self.covariances_)
        if getattr(self, "_single_precision", False):  # of the type of the data, as scikit-learn's
            told = "weights_", "means_", "precisions_", "covariances_", "precisions_cholesky_"
            for name in told:
                setattr(self, name, getattr(self, name).astype(np.float32))


def _refuse_improper(likelihood: Likelihood, components: Array, name: str) -> None:
    """Raise unless each component has a proper distribution, which rounding may have spoilt."""
    if not likelihood.conjugate.is_valid(components).all():
        raise FloatingPointError(f"the {name} is lost in rounding")
