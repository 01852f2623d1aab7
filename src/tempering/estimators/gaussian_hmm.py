"""Hidden Markov models of real vectors, in the vocabulary of hmmlearn."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from tempering.estimators.covariance_types import COVARIANCE_TYPES, CovarianceType
from tempering.estimators.hidden_markov import SHARED_PARAMETERS, HiddenMarkovEstimator
from tempering.estimators.parameters import POSITIVE
from tempering.estimators.policies import Tempering
from tempering.families import GaussianParameters, Likelihood
from tempering.models import HiddenMarkov, Natural
from tempering.models.arguments import as_numbers
from tempering.models.base import Array


class GaussianHMM(HiddenMarkovEstimator):
    __doc__ = (
        """Variational Bayesian hidden Markov model of real vectors.

    Parameters
    ----------
    n_components : int, default=1
        Number of states K.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="diag"
        Whether each state has a covariance matrix of its own, all share one, each has a diagonal
        one, or each has one variance for all columns.
    means_prior : array of shape (n_features,), default=None
        m0; the mean of the data by default.
    beta_prior : float, default=1.0
        How many observations the prior of a mean counts for (κ0).
    dof_prior : float, default=None
        ν0 > n_features − 1, how many the prior of a covariance counts for; n_features by default.
    scale_prior : float or array, default=None
        Ψ0, a matrix ("full", "tied"), the diagonal ("diag"), or a number; ν0 times the variance
        that is expected. By default the covariance of the data.
    """
        + SHARED_PARAMETERS.format(
            init="kmeans",
            attributes="""means_ : array of shape (n_components, n_features)
    covars_ : array of shape (n_components, n_features, n_features)
        The matrices, whatever the type. It may be set in the shape of its type.""",
        )
        + """
    Examples
    --------
    >>> import numpy as np
    >>> from tempering import GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.tile(np.repeat([0.0, 5.0], 20), 10)[:, None] + rng.normal(size=(400, 1))
    >>> hmm = GaussianHMM(n_components=2, random_state=0).fit(X, lengths=[200, 200])
    >>> np.sort(hmm.means_.ravel()).round()
    array([0., 5.])
    >>> states = hmm.predict(X, lengths=[200, 200])
    >>> len(set(states[:20])), bool(states[0] == states[20])
    (1, False)
    """
    )

    _parameter_constraints: ClassVar[dict] = {
        **HiddenMarkovEstimator._parameter_constraints,
        "covariance_type": [StrOptions(set(COVARIANCE_TYPES))],
        "means_prior": ["array-like", None],
        "beta_prior": [POSITIVE],
        "dof_prior": [POSITIVE, None],
        "scale_prior": ["array-like", POSITIVE, None],
    }

    def __init__(
        self,
        n_components: int = 1,
        covariance_type: Literal["full", "tied", "diag", "spherical"] = "diag",
        *,
        startprob_prior: ArrayLike = 1.0,
        transmat_prior: ArrayLike = 1.0,
        sticky: float = 0.0,
        means_prior: ArrayLike | None = None,
        beta_prior: float = 1.0,
        dof_prior: float | None = None,
        scale_prior: ArrayLike | None = None,
        init: Literal["kmeans", "random"] = "kmeans",
        tempering: Tempering = "annealing",
        n_iter: int = 200,
        tol: float = 1e-3,
        n_init: int = 1,
        batch_size: int | None = None,
        learning_offset: float = 10.0,
        learning_decay: float = 0.7,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.sticky = sticky
        self.means_prior = means_prior
        self.beta_prior = beta_prior
        self.dof_prior = dof_prior
        self.scale_prior = scale_prior
        self.init: Literal["kmeans", "random"] = init
        self.tempering = tempering
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.batch_size = batch_size
        self.learning_offset = learning_offset
        self.learning_decay = learning_decay
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _kind(self) -> CovarianceType:
        return COVARIANCE_TYPES[self.covariance_type]

    def _likelihood(self) -> Likelihood:
        return self._kind.likelihood(len(self._centre), self.n_components)

    def _prepare(self, X: Array) -> None:
        kind, d = self._kind, X.shape[1]
        # Second moments of data far from 0 lose digits; the model sees centred data.
        centre = X.mean(axis=0)
        mean = self.means_prior
        mean = centre if mean is None else as_numbers(mean, "means_prior", f"{d} numbers")
        degrees = d if self.dof_prior is None else self.dof_prior
        if self.scale_prior is None:
            scatter = np.cov(X.T, ddof=min(1, len(X) - 1)).reshape(d, d)
            # A constant column has no scale of its own.
            scale = kind.of_data(scatter + np.diag(1e-6 + 1e-6 * np.diag(scatter)))
        else:
            scale = as_numbers(self.scale_prior, "scale_prior", "numbers")
            scale = scale * kind.identity(d) if scale.ndim == 0 else scale
        for name, part, shape in (
            ("means_prior", mean, (d,)),
            ("scale_prior", scale, kind.shape(d)),
        ):
            if np.shape(part) != shape:
                raise ValueError(f"{name} must have the shape {shape}; got {np.shape(part)}.")
        if degrees <= d - 1:
            raise ValueError(
                f"dof_prior must be above n_features - 1 = {d - 1}; got {degrees}. None stands for "
                "n_features."
            )
        if not (smallest := kind.smallest(scale)) > 0:
            raise ValueError(
                f"scale_prior must be positive definite; its smallest eigenvalue is {smallest}."
            )
        self._centre = centre
        self._emission_prior = kind.prior(
            self._likelihood(), mean - centre, self.beta_prior, degrees, scale
        )

    def _transformed(self, X: Array) -> Array:
        return X - self._centre

    def _expose_emissions(self, model: HiddenMarkov, posterior: Natural) -> None:
        described = self._kind.describe(model.likelihood, posterior.emissions)
        self.means_ = described.means + self._centre
        self._covars_ = self._kind.inverse(described.precisions)

    @property
    def covars_(self) -> Array:
        """Covariance matrices of the states."""
        k, d = np.shape(self.means_)
        if self.covariance_type == "full":
            return self._covars_
        if self.covariance_type == "tied":
            return np.repeat(self._covars_[None], k, axis=0)
        return np.reshape(self._covars_, (k, -1, 1)) * np.eye(d)

    @covars_.setter
    def covars_(self, covars: ArrayLike) -> None:
        self._covars_ = as_numbers(covars, "covars_", "numbers")

    def _point(self) -> tuple[Likelihood, GaussianParameters]:
        kind, means = self._kind, np.atleast_2d(as_numbers(self.means_, "means_", "numbers"))
        k, d = means.shape
        shared = self.covariance_type == "tied"
        shape = kind.shape(d) if shared else (k, *kind.shape(d))
        if k != self.n_components or self._covars_.shape != shape:
            raise ValueError(
                f"means_ and covars_ must have the shapes ({self.n_components}, {d}) and {shape} "
                f"for covariance_type={self.covariance_type!r}; got {means.shape} and "
                f"{self._covars_.shape}."
            )
        precisions = kind.inverse(self._covars_)
        if shared:
            precisions = np.repeat(precisions[None], k, axis=0)
        return kind.likelihood(d, k), GaussianParameters(means, precisions)
