"""Bayesian Gaussian mixture with scikit-learn's parameters, tempering, and online fitting; and the
kinds of covariances that it and hidden Markov models have."""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from tempering.estimators.merge_split import merge_and_split
from tempering.estimators.mixture import MixtureEstimator, WeightPrior
from tempering.estimators.moves import Move, MovedResult
from tempering.estimators.parameters import (
    Count,
    CountFromZero,
    Flag,
    NotNegative,
    Numbers,
    Positive,
    Tempering,
)
from tempering.estimators.starts import (
    Start,
    dependent_columns,
    reannealing,
    rounding_of,
    start_assignment,
)
from tempering.families import (
    DiagonalGaussian,
    FullGaussian,
    Likelihood,
    SphericalGaussian,
    TiedGaussian,
)
from tempering.families.checks import LARGEST_VALUE
from tempering.families.normal_wishart import is_positive_definite
from tempering.inference import Result
from tempering.models import Mixture, Natural
from tempering.models.arguments import as_numbers, shown
from tempering.models.base import Array
from tempering.temperature import Untempered

#: Added to variances in the default prior of covariances, in units of the column's variance.
VARIANCE_FLOOR = 1e-6


class CovarianceType(NamedTuple):
    """What ``covariance_type`` stands for: a likelihood, a prior, and attributes that people read.

    The parameters are scikit-learn's: a component with degrees of freedom ν and scale Ψ has the
    central covariance Ψ/ν, whatever its type.
    """

    likelihood: Callable[[int, int], Any]  # of D and K
    shape: Callable[[int], tuple[int, ...]]  # of a covariance, for D columns
    of_data: Callable[[Array], Array]  # from the covariance matrix of the data
    part: Callable[[int], float]  # of ν and Ψ that are shape and rate, where there are such

    @property
    def matrices(self) -> bool:
        return len(self.shape(2)) == 2

    def n_free(self, dimension: int) -> int:
        """Numbers of a covariance that are free."""
        if self.matrices:  # they are symmetric
            return dimension * (dimension + 1) // 2
        return math.prod(self.shape(dimension))

    def identity(self, dimension: int) -> Array:
        """The covariance of unit variances."""
        return np.eye(dimension) if self.matrices else np.ones(self.shape(dimension))

    def inverse(self, covariances: Array) -> Array:
        """Return the precisions of these covariances."""
        inverse = np.linalg.inv(covariances) if self.matrices else 1.0 / covariances
        return np.asarray(inverse, float)

    def precision_factors(self, covariances: Array) -> Array:
        """Upper triangular U with precision UU', or the roots of the precisions."""
        if not self.matrices:
            return 1.0 / np.sqrt(covariances)
        factor = np.linalg.cholesky(covariances)
        return np.asarray(np.triu(np.swapaxes(np.linalg.inv(factor), -1, -2)), float)

    def smallest(self, covariance: Array) -> float:
        """The smallest variance in any direction; NaN for a matrix that is not symmetric."""
        if not self.matrices:
            return float(np.min(covariance))
        if not np.allclose(covariance, covariance.T):
            return np.nan
        smallest = float(np.linalg.eigvalsh(covariance)[0])
        # Of columns of very different sizes it may be lost in the rounding of the largest.
        lost = smallest <= 0 and is_positive_definite(covariance)
        return np.finfo(float).tiny if lost else smallest

    def prior(
        self, likelihood: Any, mean: Array, precision: float, degrees: float, scale: Array
    ) -> Array:
        """η of one component from m, κ, ν and Ψ."""
        part, family = self.part(likelihood.dimension), likelihood.conjugate
        natural = family.natural(mean, precision, part * degrees, part * scale)
        # Rows of components that share Ψ are alike: each has its share of what all have together.
        return natural[0] if natural.ndim == 2 else natural

    def describe(self, likelihood: Any, components: Array) -> tuple[Array, Array, Array, Array]:
        """Return means, κ, ν and central covariances Ψ/ν, from η of all components."""
        mean, kappa, degrees, scale = likelihood.conjugate.standard(components)
        # Ψ/ν without an inverse: nearly collinear columns leave few correct digits in one.
        covariances = scale / (degrees[..., None, None] if self.matrices else degrees)
        degrees = degrees / self.part(likelihood.dimension)
        if kappa.ndim == 2:  # columns that are independent have seen the same data
            kappa, degrees = kappa[:, 0], degrees[:, 0]
        return mean, kappa, degrees, covariances


COVARIANCE_TYPES = {
    "full": CovarianceType(
        lambda d, _: FullGaussian(d), lambda d: (d, d), np.asarray, lambda _: 1.0
    ),
    "tied": CovarianceType(TiedGaussian, lambda d: (d, d), np.asarray, lambda _: 1.0),
    "diag": CovarianceType(
        lambda d, _: DiagonalGaussian(d), lambda d: (d,), np.diag, lambda _: 0.5
    ),
    "spherical": CovarianceType(
        lambda d, _: SphericalGaussian(d),
        lambda _: (),
        lambda matrix: np.diag(matrix).mean(),
        lambda d: d / 2,
    ),
}


def data_driven_prior(
    estimator: Any, X: Array, names: tuple[str, str, str]
) -> tuple[Array, float, Array]:
    """Return m0, ν0 and Ψ0: the parameters of these names, with defaults from the data."""
    kind, d = estimator._kind, X.shape[1]
    mean, degrees, scale = (getattr(estimator, name) for name in names)
    mean = X.mean(axis=0) if mean is None else as_numbers(mean, names[0], f"{d} numbers")
    if mean.shape != (d,):
        raise ValueError(f"{names[0]} must have {d} entries; got shape {mean.shape}.")
    if not np.all(np.abs(mean) <= LARGEST_VALUE):
        raise ValueError(
            f"{names[0]} must hold numbers of at most {LARGEST_VALUE:g}; got {shown(mean)}."
        )
    degrees = d if degrees is None else degrees
    if degrees <= d - 1:
        raise ValueError(
            f"The parameter '{names[1]}' should be greater than {d - 1}, but got {degrees:.3f}. It "
            "must exceed n_features - 1; None stands for n_features."
        )
    if scale is None:
        scatter = np.cov(X.T, ddof=min(1, len(X) - 1)).reshape(d, d)
        variances = np.diag(scatter)
        constant = X.std(axis=0) <= rounding_of(X)
        largest = variances.max(initial=0.0, where=~constant) or 1.0
        # Columns of a matrix may be collinear. A constant column has no unit of its own.
        unit = np.where(constant, largest, variances * kind.matrices)
        return mean, degrees, kind.of_data(scatter + np.diag(VARIANCE_FLOOR * unit))
    scale = as_numbers(scale, names[2], "numbers")
    scale = scale * kind.identity(d) if scale.ndim == 0 else scale
    if scale.shape != kind.shape(d):
        raise ValueError(
            f"{names[2]} must have shape {kind.shape(d)} for "
            f"covariance_type={estimator.covariance_type!r}; got {scale.shape}."
        )
    if not np.isfinite(scale).all():
        raise ValueError(f"{names[2]} must hold finite numbers; got {shown(scale)}.")
    return mean, degrees, scale


@dataclass(eq=False, repr=False)
class BayesianGaussianMixture(MixtureEstimator):
    """Variational Bayesian Gaussian mixture that finds its clusters.

    The model and the parameters are those of :class:`sklearn.mixture.BayesianGaussianMixture`; what
    is added is a start by annealing, merge-split moves, ``tempering``, :meth:`partial_fit`, and
    minibatches (``batch_size``).

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Whether each component has a covariance matrix of its own, all share one, each has a
        diagonal one, or each has one variance for all columns.
    tempering : {"adaptive", "annealing", "variational", "local"}, policy or None, default=None
        A policy, the name of one in its default setting, or None for T = 1 throughout. It helps
        with an informative prior of the covariances, not with the vague default: see the notes.
    init_params : {"annealed", "kmeans", "k-means++", "random", "random_from_data"}, \
default="annealed"
        The start. "annealed" cools a mixture of spheres of known variance (Rose et al., 1990) and
        draws no random number; the others are scikit-learn's.
    merge_split : bool, default=True
        Whether batch fits try merge-split moves at T = 1: two components that share a cluster
        become one, and one that covers two is cut. They are kept only if that raises the ELBO.
    tol : float, default=1e-3
        The fit has converged when the ELBO rises by less than this, in nats.
    max_iter : int, default=200
        The most passes over the data, but for those of the start and of moves that were not kept.
    n_init : int, default=1
        Restarts; the one with the best ELBO is kept. A batch fit at T = 1 from the annealed start
        is the same each time, and is made once.
    weight_concentration_prior_type : {"dirichlet_process", "dirichlet_distribution"}, \
default="dirichlet_process"
        Prior of the weights: truncated stick-breaking, or a finite Dirichlet.
    weight_concentration_prior : float, default=None
        Its concentration (in the literature γ or α0); 1 / n_components by default.
    mean_precision_prior : float, default=None
        How many data the prior of a mean counts for (κ0); 1 by default.
    mean_prior : array-like of shape (n_features,), default=None
        m0; the mean of the data by default.
    degrees_of_freedom_prior : float, default=None
        ν0 > n_features − 1; n_features by default.
    covariance_prior : array-like, default=None
        Ψ0: a matrix ("full", "tied"), the diagonal ("diag"), or a number ("spherical", or for equal
        variances); the covariance of the data by default, of a matrix with variances raised by a
        millionth, so that columns may be collinear or outnumber the rows.
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
        The priors as they were used; ``reg_covar`` is added to the last.
    elbo_, lower_bound_ : float
        Evidence lower bound of the model (T = 1), normalisers included.
    lower_bounds_ : list of float
        The same after each pass on the path that led to the result.
    restart_elbos_ : list of float
        What each of the ``n_init`` runs reached.
    history_ : History
        Temperature, ELBO and more at each step on the path that led to the result.
    n_merge_split_ : int
        Rounds of merge-split moves that were kept.
    temperature_, inverse_temperatures_
        T, and 1/T, at the end of the tempered phase; with local tempering, 1/T of each sample.
    converged_, n_iter_, n_features_in_
        As in scikit-learn.

    Notes
    -----
    Covariances that are learned from a vague prior grow with the temperature and hold the clusters
    together. Tempering helps where they are nearly known (a large ``degrees_of_freedom_prior``).

    References
    ----------
    Rose, Gurewitz and Fox (1990), "Statistical mechanics and phase transitions in clustering",
    Physical Review Letters 65.

    Ueda and Ghahramani (2002), "Bayesian model search for mixture models based on optimizing
    variational bounds", Neural Networks 15.

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
    tempering: Tempering = None
    init_params: Start = "annealed"
    merge_split: Flag = True
    max_iter: CountFromZero = 200
    weight_concentration_prior_type: WeightPrior = "dirichlet_process"
    mean_precision_prior: Positive | None = None
    mean_prior: Numbers | None = None
    degrees_of_freedom_prior: Positive | None = None
    covariance_prior: Numbers | Positive | None = None
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
        precision = 1.0 if self.mean_precision_prior is None else self.mean_precision_prior
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
        self.mean_prior_, self.mean_precision_prior_ = mean, precision
        self.degrees_of_freedom_prior_, self.covariance_prior_ = degrees, covariance
        self.weight_concentration_prior_ = self._concentration

    @property
    def _kind(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    def _likelihood(self) -> Likelihood:
        return self._kind.likelihood(self.n_features_in_, self.n_components)

    def _starts(self, model: Mixture, X: Array, rng: np.random.RandomState) -> Natural:
        start = start_assignment(self.init_params, X, self.n_components, rng, self.n_jobs)
        posterior = sum((model.statistics(X[rows], r) for rows, r in start), model.prior())
        _refuse_improper(model.likelihood, posterior.components, "start")
        return posterior

    def _cause(self, X: Array) -> str:
        prior = "covariance_prior or reg_covar"
        return (self._kind.matrices and dependent_columns(X, prior)) or super()._cause(X)

    def _n_starts(self) -> int:
        # From the annealed start coordinate ascent comes to the same end each time.
        chance = self.init_params != "annealed" or self.batch_size or self.tempering is not None
        return self.n_init if chance else 1

    def _moves(self, data: Array, policy: Any) -> dict[str, Move]:
        moves: dict[str, Move] = {}
        if self.n_components == 1 or self.batch_size is not None:
            return moves
        # A policy that was asked for decides alone how the fit comes to T = 1.
        if self.init_params == "annealed" and isinstance(policy, Untempered):
            moves["anneal"] = reannealing(data)
        if self.merge_split:
            moves["merge_split"] = merge_and_split
        return moves

    def _summarise(self, result: Result) -> None:
        super()._summarise(result)
        accepted = result.accepted if isinstance(result, MovedResult) else {}
        self.n_merge_split_ = accepted.get("merge_split", 0)
        self.lower_bounds_ = [*result.history["elbo"][1:].tolist(), result.elbo]

    def _expose(self, model: Mixture, data: Any = None) -> None:
        self._expose_weights(model)
        kind = self._kind
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
