"""Hidden Markov models of symbols and of counts, in the vocabulary of hmmlearn."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from tempering.estimators.hidden_markov import SHARED_PARAMETERS, HiddenMarkovEstimator
from tempering.estimators.parameters import POSITIVE, WHOLE
from tempering.estimators.policies import Tempering
from tempering.families import Categorical, Poisson
from tempering.families.checks import check_counts, refuse
from tempering.models import HiddenMarkov, Natural
from tempering.models.arguments import as_numbers
from tempering.models.base import Array


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

    _parameter_constraints: ClassVar[dict] = {
        **HiddenMarkovEstimator._parameter_constraints,
        "n_features": [WHOLE, None],
        "emissionprob_prior": ["array-like", POSITIVE],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_features: int | None = None,
        startprob_prior: ArrayLike = 1.0,
        transmat_prior: ArrayLike = 1.0,
        sticky: float = 0.0,
        emissionprob_prior: ArrayLike = 1.0,
        init: Literal["kmeans", "random"] = "random",
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
        self.n_features = n_features
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.sticky = sticky
        self.emissionprob_prior = emissionprob_prior
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

    def _validated(self, X: Any, *, reset: bool) -> Array:
        X = super()._validated(X, reset=reset)
        if X.shape[1] != 1:
            raise ValueError(f"X must hold symbols in one column; got {X.shape[1]} columns.")
        check_counts(X, "CategoricalHMM: symbols as")
        if reset and self.n_features is not None:
            self._refuse_unseen(X, self.n_features)
        return X

    def _refuse_unseen(self, X: Array, n_features: int) -> None:
        refuse(
            n_features <= X,
            X,
            f"X must hold the symbols 0 to {n_features - 1} of this model: raise n_features for a "
            "fit, or leave these rows out",
        )

    def _likelihood(self) -> Categorical:
        return Categorical(len(self._emission_prior))

    def _prepare(self, X: Array) -> None:
        v = int(X.max()) + 1 if self.n_features is None else self.n_features
        prior = as_numbers(self.emissionprob_prior, "emissionprob_prior", "numbers")
        if prior.shape not in ((), (v,)) or not np.all(prior > 0):
            raise ValueError(
                f"emissionprob_prior must be one positive number, or {v} of them; got {prior}."
            )
        self._emission_prior = np.broadcast_to(prior, v).copy()

    def _transformed(self, X: Array) -> np.ndarray:
        return X[:, 0].astype(np.int64)

    def _observed(self, X: Array) -> np.ndarray:
        self._refuse_unseen(X, np.shape(self.emissionprob_)[1])
        return self._transformed(X)

    def _emitted(self, rows: Any) -> Any:
        return rows[:, None]

    def _expose_emissions(self, model: HiddenMarkov, posterior: Natural) -> None:
        self.emissionprob_ = model.likelihood.conjugate.point(posterior.emissions)

    def _point(self) -> tuple[Categorical, Array]:
        weights = _rows_of_states(self.emissionprob_, "emissionprob_", self.n_components)
        if not np.allclose(weights.sum(axis=1), 1.0):
            raise ValueError(f"the rows of emissionprob_ must sum to 1; got {weights}.")
        return Categorical(weights.shape[1]), weights


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

    _parameter_constraints: ClassVar[dict] = {
        **HiddenMarkovEstimator._parameter_constraints,
        "lambdas_prior": ["array-like", POSITIVE, None],
        "lambdas_weight": ["array-like", POSITIVE, None],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        startprob_prior: ArrayLike = 1.0,
        transmat_prior: ArrayLike = 1.0,
        sticky: float = 0.0,
        lambdas_prior: ArrayLike | None = None,
        lambdas_weight: ArrayLike | None = None,
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
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.sticky = sticky
        self.lambdas_prior = lambdas_prior
        self.lambdas_weight = lambdas_weight
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

    def _validated(self, X: Any, *, reset: bool) -> Array:
        X = super()._validated(X, reset=reset)
        check_counts(X, "PoissonHMM")
        return X

    def _likelihood(self) -> Poisson:
        return Poisson(len(self._emission_prior) // 2)

    def _prepare(self, X: Array) -> None:
        d, prior = X.shape[1], []
        # An empty column has no scale of its own; its rate is then learned from the counts alone.
        mean = X.mean(axis=0)
        defaults = (1.0, 1.0 / np.where(mean > 0, mean, 1.0))
        for name, default in zip(("lambdas_prior", "lambdas_weight"), defaults):
            given = getattr(self, name)
            part = as_numbers(default if given is None else given, name, "numbers")
            if part.shape not in ((), (d,)) or not np.all(part > 0):
                raise ValueError(
                    f"{name} must be one positive number, or {d} of them; got {given!r}."
                )
            prior.append(np.broadcast_to(part, d))
        self._emission_prior = np.concatenate(prior)

    def _expose_emissions(self, model: HiddenMarkov, posterior: Natural) -> None:
        self.lambdas_ = model.likelihood.conjugate.point(posterior.emissions)

    def _point(self) -> tuple[Poisson, Array]:
        rates = _rows_of_states(self.lambdas_, "lambdas_", self.n_components)
        return Poisson(rates.shape[1]), rates


def _rows_of_states(values: ArrayLike, name: str, n_components: int) -> Array:
    """Numbers that are not negative, a row for each state."""
    rows = as_numbers(values, name, "numbers")
    if rows.ndim != 2 or len(rows) != n_components or not np.all(rows >= 0):
        raise ValueError(
            f"{name} must hold numbers of 0 or more, a row for each of {n_components} states; got "
            f"{rows}."
        )
    return rows
