"""Hidden Markov models of real vectors, of symbols and of counts, in hmmlearn's vocabulary."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from tempering.estimators.gaussian_mixture import (
    COVARIANCE_TYPES,
    CovarianceType,
    data_driven_prior,
)
from tempering.estimators.hidden_markov import (
    CHAIN_LETTERS,
    SHARED_PARAMETERS,
    HiddenMarkovEstimator,
)
from tempering.estimators.parameters import CountInterval, Numbers, Positive, per_column
from tempering.families import Categorical, GaussianParameters, Likelihood, Poisson
from tempering.families.checks import LARGEST_VALUE, check_counts, refuse
from tempering.models import HiddenMarkov, Natural
from tempering.models.arguments import as_numbers, shown
from tempering.models.base import Array

#: Symbols at most; each has a probability in each state.
MOST_SYMBOLS = 10**7


@dataclass(eq=False, repr=False)
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
    beta_prior : float, default=0.01
        How many observations the prior of a mean counts for (κ0).
    dof_prior : float, default=None
        ν0 > n_features − 1, how many the prior of a covariance counts for; n_features by default.
    scale_prior : float or array, default=None
        Ψ0, a matrix ("full", "tied"), the diagonal ("diag"), or a number; ν0 times the variance
        that is expected. By default the covariance of the data, of a matrix with variances raised
        by a millionth, over K^(2 / n_features): that of one of K parts that lie side by side.
    """
        + SHARED_PARAMETERS.format(
            init="kmeans",
            letters="stmc",
            together=" Means and covariances are known together.",
            meanings="``startprob_``, ``transmat_``,\n        ``means_`` and ``covars_``",
            attributes="""means_ : array of shape (n_components, n_features)
    covars_ : array of shape (n_components, n_features, n_features)
        The matrices, whatever the type. It may be set in the shape of its type, too.""",
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

    _letters: ClassVar = {**CHAIN_LETTERS, "m": "means_", "c": "_covars_"}

    covariance_type: Literal["full", "tied", "diag", "spherical"] = "diag"
    _: KW_ONLY
    means_prior: Numbers | None = None
    beta_prior: Positive = 0.01
    dof_prior: Positive | None = None
    scale_prior: Numbers | Positive | None = None
    init_params: str = "stmc"
    params: str = "stmc"

    @property
    def _kind(self) -> CovarianceType:
        if self.covariance_type not in COVARIANCE_TYPES:  # a score comes without a fit before it
            raise ValueError(
                f"covariance_type must be one of {sorted(COVARIANCE_TYPES)}; got "
                f"{self.covariance_type!r}."
            )
        return COVARIANCE_TYPES[self.covariance_type]

    def _likelihood(self) -> Likelihood:
        return self._kind.likelihood(len(self._centre), self.n_components)

    def _prepare(self, X: Array) -> None:
        centre, kind = X.mean(axis=0), self._kind
        names = "means_prior", "dof_prior", "scale_prior"
        mean, degrees, scale = data_driven_prior(self, X, names)
        if self.scale_prior is None:
            # The scale of all data is too wide for one of many states, and makes few of them.
            scale = scale / self.n_components ** (2.0 / X.shape[1])
        if not (smallest := kind.smallest(scale)) > 0:
            raise ValueError(
                f"scale_prior must be positive definite; its smallest eigenvalue is {smallest}."
            )
        self._centre = centre
        self._emission_prior = kind.prior(
            self._likelihood(), mean - centre, self.beta_prior, degrees, scale
        )

    def _expose_emissions(self, model: HiddenMarkov, posterior: Natural) -> None:
        described = self._kind.describe(model.likelihood, posterior.emissions)
        means, _, _, self._covars_ = described
        self.means_ = means + self._centre

    @property
    def covars_(self) -> Array:
        """Covariance matrices of the states."""
        return self._matrices(self._covars_, np.shape(self.means_)[1])

    @covars_.setter
    def covars_(self, covars: ArrayLike) -> None:
        given = as_numbers(covars, "covars_", "numbers")
        k, d = self.n_components, given.shape[-1] if given.size and given.ndim else 0
        if self.covariance_type == "spherical" and given.size == k:
            given = given.ravel()
        elif self.covariance_type != "full" and d and given.shape == (k, d, d):
            diagonals = given.diagonal(axis1=1, axis2=2)
            shapes = {"tied": given[0], "diag": diagonals, "spherical": diagonals[:, 0]}
            compact = shapes[self.covariance_type]
            if np.array_equal(self._matrices(compact, d), given):
                given = compact.copy()
        self._covars_: Array = given

    def _matrices(self, covars: Array, d: int) -> Array:
        """A matrix for each state, from covariances in the shape of their type."""
        if self.covariance_type == "full":
            return covars
        if self.covariance_type == "tied":
            return np.repeat(covars[None], self.n_components, axis=0)
        return np.reshape(covars, (self.n_components, -1, 1)) * np.eye(d)

    def _centred(self, parameters: GaussianParameters) -> GaussianParameters:
        return parameters._replace(mean=parameters.mean - self._centre)

    def _n_emission_parameters(self) -> int:
        k, d = np.shape(self.means_)
        return k * d + self._kind.n_free(d) * (1 if self.covariance_type == "tied" else k)

    def _point(self) -> tuple[Likelihood, GaussianParameters]:
        kind, means = self._kind, np.atleast_2d(as_numbers(self.means_, "means_", "numbers"))
        expected = f"numbers of at most {LARGEST_VALUE:g}, a row for each of {self.n_components}"
        if means.ndim != 2 or not np.all(np.abs(means) <= LARGEST_VALUE):
            raise ValueError(f"means_ must hold {expected} states; got {shown(means)}.")
        k, d = means.shape
        shared = self.covariance_type == "tied"
        shape = kind.shape(d) if shared else (self.n_components, *kind.shape(d))
        if k != self.n_components or self._covars_.shape != shape:
            raise ValueError(
                f"means_ and covars_ must have the shapes ({self.n_components}, {d}) and {shape} "
                f"for covariance_type={self.covariance_type!r}; got {means.shape} and "
                f"{self._covars_.shape}."
            )
        each = [self._covars_] if shared else self._covars_
        smallest = np.min([kind.smallest(covariance) for covariance in each])
        if not (smallest > 0 and np.all(self._covars_ < np.inf)):
            raise ValueError(
                f"covars_ must be positive definite, and finite; got {shown(self._covars_)}."
            )
        precisions = kind.inverse(self._covars_)
        if shared:
            precisions = np.repeat(precisions[None], k, axis=0)
        return kind.likelihood(d, k), GaussianParameters(means, precisions)


@dataclass(eq=False, repr=False)
class CategoricalHMM(HiddenMarkovEstimator):
    __doc__ = (
        """Variational Bayesian hidden Markov model of symbols 0, 1, 2, …, in one column.

    Parameters
    ----------
    n_components : int, default=1
        Number of states K.
    n_features : int, default=None
        Number of symbols V; by default one more than the largest of the data.
    emissionprob_prior : float or array of shape (n_features,), default=1.0
        Concentrations of the Dirichlet prior of each state's symbols.
    """
        + SHARED_PARAMETERS.format(
            init="random",
            letters="ste",
            together="",
            meanings="``startprob_``, ``transmat_``\n        and ``emissionprob_``",
            attributes="""emissionprob_ : array of shape (n_components, n_features)
        Probability of each symbol in each state.""",
        )
        + """
    Examples
    --------
    >>> import numpy as np
    >>> from tempering import CategoricalHMM
    >>> X = np.tile(np.repeat([[0], [1], [2]], 20, axis=0), (5, 1))
    >>> hmm = CategoricalHMM(n_components=3, random_state=0).fit(X)
    >>> hmm.emissionprob_.max(axis=1).round(1)
    array([1., 1., 1.])
    """
    )

    _letters: ClassVar = {**CHAIN_LETTERS, "e": "emissionprob_"}

    _: KW_ONLY
    n_features: Annotated[int, CountInterval(1, MOST_SYMBOLS)] | None = None
    emissionprob_prior: Numbers | Positive = 1.0
    init: Literal["kmeans", "random"] = "random"
    init_params: str = "ste"
    params: str = "ste"

    _input_tags = ("categorical", "positive_only")

    def _validated(self, X: Any, *, reset: bool) -> Array:
        X = super()._validated(X, reset=reset)
        if X.shape[1] != 1:
            raise ValueError(f"X must hold symbols in one column; got {X.shape[1]} columns.")
        check_counts(X, "CategoricalHMM symbols")
        wanted = f"X must hold symbols 0, 1, 2, … below {MOST_SYMBOLS}: number them without gaps"
        refuse(MOST_SYMBOLS <= X, X, wanted)
        return X

    def _symbols(self, X: Array, n_features: int) -> np.ndarray:
        wanted = f"X must hold the symbols 0 to {n_features - 1} of this model: give a larger "
        wanted += "n_features to the first fit, or leave these rows out"
        refuse(n_features <= X, X, wanted)
        return X[:, 0].astype(np.int64)

    def _likelihood(self) -> Categorical:
        return Categorical(len(self._emission_prior))

    def _prepare(self, X: Array) -> None:
        v = int(X.max()) + 1 if self.n_features is None else self.n_features
        if self.n_features is None and "emissionprob_" in self._kept():
            v = self._n_symbols()  # known symbols need not all be seen
        self._emission_prior = per_column(self.emissionprob_prior, "emissionprob_prior", v)

    def _transformed(self, X: Array) -> np.ndarray:
        return self._symbols(X, len(self._emission_prior))

    def _observed(self, X: Array) -> np.ndarray:
        return self._symbols(X, self._n_symbols())

    def _emitted(self, rows: Any) -> Any:
        return rows[:, None]

    def _expose_emissions(self, model: HiddenMarkov, posterior: Natural) -> None:
        self.emissionprob_ = model.likelihood.conjugate.point(posterior.emissions)

    def _n_emission_parameters(self) -> int:
        return np.size(self.emissionprob_) - self.n_components

    def _point(self) -> tuple[Categorical, Array]:
        shape = self.n_components, self._n_symbols()
        return Categorical(shape[1]), self._probabilities("emissionprob_", shape)

    def _n_symbols(self) -> int:
        # One number, which is refused by its shape, has no last axis.
        return np.atleast_1d(self.emissionprob_).shape[-1]


@dataclass(eq=False, repr=False)
class PoissonHMM(HiddenMarkovEstimator):
    __doc__ = (
        """Variational Bayesian hidden Markov model of vectors of counts.

    Parameters
    ----------
    n_components : int, default=1
        Number of states K.
    lambdas_prior, lambdas_weight : float or array of shape (n_features,), default=None
        Shape and rate of the gamma prior of each rate; by default shape 1 and the data's mean.
    """
        + SHARED_PARAMETERS.format(
            init="kmeans",
            letters="stl",
            together="",
            meanings="``startprob_``, ``transmat_``\n        and ``lambdas_``",
            attributes="""lambdas_ : array of shape (n_components, n_features)
        Expected count of each column in each state.""",
        )
        + """
    Examples
    --------
    >>> import numpy as np
    >>> from tempering import PoissonHMM
    >>> rates = np.tile(np.repeat([2.0, 20.0], 10), 10)
    >>> X = np.random.default_rng(0).poisson(rates)[:, None]
    >>> hmm = PoissonHMM(n_components=2, random_state=0).fit(X)
    >>> np.sort(hmm.lambdas_.ravel()).round()
    array([ 2., 20.])
    """
    )

    _letters: ClassVar = {**CHAIN_LETTERS, "l": "lambdas_"}

    _: KW_ONLY
    lambdas_prior: Numbers | Positive | None = None
    lambdas_weight: Numbers | Positive | None = None
    init_params: str = "stl"
    params: str = "stl"

    _input_tags = ("positive_only",)

    def _validated(self, X: Any, *, reset: bool) -> Array:
        X = super()._validated(X, reset=reset)
        check_counts(X, "PoissonHMM counts")
        return X

    def _likelihood(self) -> Poisson:
        return Poisson(len(self._emission_prior) // 2)

    def _prepare(self, X: Array) -> None:
        # An empty column has no scale of its own; its rate is then learned from the counts alone.
        d, mean = X.shape[1], X.mean(axis=0)
        shape = 1.0 if self.lambdas_prior is None else self.lambdas_prior
        rate = 1.0 / np.where(mean > 0, mean, 1.0)
        rate = rate if self.lambdas_weight is None else self.lambdas_weight
        parts = per_column(shape, "lambdas_prior", d), per_column(rate, "lambdas_weight", d)
        self._emission_prior = np.concatenate(parts)

    def _expose_emissions(self, model: HiddenMarkov, posterior: Natural) -> None:
        self.lambdas_ = model.likelihood.conjugate.point(posterior.emissions)

    def _n_emission_parameters(self) -> int:
        return np.size(self.lambdas_)

    def _point(self) -> tuple[Poisson, Array]:
        rates, k = as_numbers(self.lambdas_, "lambdas_", "numbers"), self.n_components
        right = np.all((rates >= 0) & (rates < np.inf))
        if rates.ndim != 2 or len(rates) != k or not right:
            raise ValueError(
                f"lambdas_ must hold finite numbers of 0 or more, a row for each of {k} states; "
                f"got {shown(rates)}."
            )
        return Poisson(rates.shape[1]), rates
