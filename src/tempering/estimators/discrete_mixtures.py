"""Mixtures of binary and of count vectors."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from tempering.estimators.mixture import MixtureEstimator
from tempering.estimators.parameters import Numbers, Tempering, Whole
from tempering.estimators.starts import random_assignment
from tempering.families import Bernoulli, Poisson
from tempering.families.checks import refuse
from tempering.models import Mixture, Natural
from tempering.models.arguments import as_numbers
from tempering.models.base import Array

_PARAMETERS = """
    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    component_prior : pair of floats or of arrays of shape (n_features,), default=None
        {prior}
    tempering : {{"adaptive", "annealing", "variational", "local"}}, policy or None, \
default="adaptive"
        Temperature policy: a name for its default setting, an object such as
        ``tempering.Annealing(...)``, or None for T = 1 throughout.
    max_iter : int, default=1000
        The most passes over the data; "annealing" cools over two thirds of them.
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
    elbo_, lower_bound_, history_, temperature_, inverse_temperatures_, converged_, n_iter_
        As in :class:`tempering.BayesianGaussianMixture`.
"""


@dataclass(eq=False, repr=False)
class _DiscreteMixture(MixtureEstimator):
    """A mixture whose columns are independent, each with a two-parameter conjugate prior."""

    _: KW_ONLY
    tempering: Tempering = "adaptive"
    max_iter: Whole = 1000
    component_prior: Numbers | None = None

    @abstractmethod
    def _default_prior(self, X: Array) -> tuple[Any, Any]:
        """The two parameters of a column's prior."""

    def _prepare(self, X: Array) -> None:
        d = X.shape[1]
        given: Any = self.component_prior
        given = self._default_prior(X) if given is None else given
        parts = [given] if np.isscalar(given) or getattr(given, "ndim", 1) == 0 else list(given)
        pair = [as_numbers(part, "component_prior", "two positive numbers") for part in parts]
        if len(pair) != 2 or any(
            part.shape not in ((), (d,)) or not np.all(part > 0) for part in pair
        ):
            raise ValueError(
                "component_prior must be two positive numbers, or two arrays of "
                f"{d} positive numbers; got {self.component_prior!r}."
            )
        self._component_prior = np.concatenate([np.broadcast_to(part, d) for part in pair])

    def _starts(self, model: Mixture, X: Array, rng: np.random.RandomState) -> Natural:
        return model.prior() + model.statistics(X, random_assignment(X, self.n_components, rng))


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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
