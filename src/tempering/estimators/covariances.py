"""Covariances of Gaussian components: their kinds, and priors of them that the data decide."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tempering.estimators.starts import rounding_of
from tempering.families import (
    DiagonalGaussian,
    FullGaussian,
    SphericalGaussian,
    TiedGaussian,
)
from tempering.families.checks import LARGEST_VALUE
from tempering.families.normal_wishart import is_positive_definite
from tempering.models.arguments import as_numbers, shown
from tempering.models.base import Array

#: Added to variances in the default prior of covariances, in units of the column's variance.
VARIANCE_FLOOR = 1e-6
#: A learned scale is at least this part of the one that it starts from, in every direction.
SMALLEST_SCALE = 0.01


class CovarianceType(NamedTuple):
    """A kind of covariance: its likelihood, its prior, and the attributes of an estimator.

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


@dataclass(frozen=True)
class LearnedScale:
    """A scale Ψ0 of covariances that is learned from the components (empirical Bayes).

    The ELBO is maximised, subject to Ψ0 >= ``least`` in every direction, by

        Ψ0 = ν0 K (Σ_k E[Λ_k])^{−1},

    whose eigenvalues in units of ``least`` are raised to 1. Without the bound, components on
    rows that are alike in a column would let Ψ0 vanish.

    Parameters
    ----------
    covariance_type : str
        A key of :data:`COVARIANCE_TYPES`.
    least : array
        The lower bound, of the shape of a covariance.
    """

    covariance_type: str
    least: Array

    @classmethod
    def starting_from(cls, covariance_type: str, scale: Array) -> "LearnedScale":
        """Return the rule for a scale that starts from this one."""
        return cls(covariance_type, SMALLEST_SCALE * scale)

    def __call__(self, likelihood: Any, prior: Array, posterior: Array) -> Array:
        """Return η of the components' prior with the best Ψ0 for a posterior, [K, size]."""
        kind = COVARIANCE_TYPES[self.covariance_type]
        mean, precision, degrees, _ = kind.describe(likelihood, prior)
        expected = kind.inverse(kind.describe(likelihood, posterior)[3])
        if expected.ndim > self.least.ndim:
            expected = expected.mean(axis=0)
        freedom = float(np.ravel(degrees)[0])
        scale = self._bounded(kind, freedom * kind.inverse(expected))
        component = kind.prior(likelihood, mean[0], float(precision[0]), freedom, scale)
        return np.broadcast_to(component, prior.shape)

    def _bounded(self, kind: CovarianceType, scale: Array) -> Array:
        """Return the scale with its eigenvalues, in units of ``least``, raised to 1."""
        if not kind.matrices:
            return np.maximum(scale, self.least)
        factor = np.linalg.cholesky(self.least)
        half = np.linalg.solve(factor, scale)
        values, vectors = np.linalg.eigh(np.linalg.solve(factor, half.T))
        root = factor @ vectors
        return (root * np.maximum(values, 1.0)) @ root.T


def data_driven_prior(
    estimator: Any, X: Array, names: tuple[str, str, str]
) -> tuple[Array, float, Array]:
    """Return m0, ν0 and Ψ0: the parameters of these names, with defaults from the data.

    A Ψ0 that is "auto" starts from the rule of Fraley and Raftery (2007): the covariance of the
    data, divided by K^(2/D).
    """
    kind, d = estimator._kind, X.shape[1]
    mean, degrees, scale = (getattr(estimator, name) for name in names)
    mean = X.mean(axis=0) if mean is None else as_numbers(mean, names[0], f"{d} numbers")
    if mean.shape != (d,):
        raise ValueError(f"{names[0]} must have {d} entries; got shape {mean.shape}.")
    if not np.all(np.abs(mean) <= LARGEST_VALUE):
        raise ValueError(
            f"{names[0]} must hold numbers of at most {LARGEST_VALUE:g}; got {shown(mean)}."
        )
    auto = isinstance(scale, str)
    degrees = d if degrees is None else degrees
    if degrees <= d - 1:
        raise ValueError(
            f"The parameter '{names[1]}' should be greater than {d - 1}, but got {degrees:.3f}. It "
            "must exceed n_features - 1; None stands for n_features."
        )
    if scale is None or auto:
        scatter = np.cov(X.T, ddof=min(1, len(X) - 1)).reshape(d, d)
        variances = np.diag(scatter)
        constant = X.std(axis=0) <= rounding_of(X)
        largest = variances.max(initial=0.0, where=~constant) or 1.0
        # Columns of a matrix may be collinear. A constant column has no unit of its own.
        unit = np.where(constant, largest, variances * kind.matrices)
        share = estimator.n_components ** (2.0 / d) if auto else 1.0
        return mean, degrees, kind.of_data(scatter + np.diag(VARIANCE_FLOOR * unit)) / share
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
