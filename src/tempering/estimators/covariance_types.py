"""What ``covariance_type`` stands for: a likelihood, a prior, and the attributes that people read.

The parameters are scikit-learn's: a component with degrees of freedom ν and scale Ψ has the central
covariance Ψ/ν, whatever its type. Spheres have the gamma distribution of shape Dν/2 and rate DΨ/2.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tempering.families import (
    DiagonalGaussian,
    FullGaussian,
    Likelihood,
    SphericalGaussian,
    TiedGaussian,
)
from tempering.models.arguments import as_numbers
from tempering.models.base import Array


class Described(NamedTuple):
    """A posterior in the usual parameters, the precisions at their central value."""

    means: Array
    mean_precision: Array
    degrees_of_freedom: Array
    precisions: Array


class CovarianceType(NamedTuple):
    """One of the types."""

    likelihood: Callable[[int, int], Any]  # of D and K
    shape: Callable[[int], tuple[int, ...]]  # of a covariance, for D columns
    of_data: Callable[[Array], Array]  # from the covariance matrix of the data
    prior: Callable[..., Array]  # η of one component from likelihood, m, κ, ν and Ψ
    describe: Callable[[Any, Array], Described]  # from likelihood and η of all components

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

    def inverse(self, precisions: Array) -> Array:
        """Covariances."""
        inverse = np.linalg.inv(precisions) if self.matrices else 1.0 / precisions
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
        return float(np.linalg.eigvalsh(covariance)[0])


def _one_component(likelihood: Likelihood, mean: Array, *parameters: Any) -> Array:
    return likelihood.conjugate.natural(mean, *parameters)  # pyright: ignore


def _describe_full(likelihood: FullGaussian, components: Array) -> Described:
    standard = likelihood.conjugate.standard(components)
    mean, precisions = likelihood.conjugate.point(components)
    return Described(mean, standard.mean_precision, standard.degrees_of_freedom, precisions)


def _describe_tied(likelihood: TiedGaussian, components: Array) -> Described:
    described = _describe_full(likelihood, components)
    return described._replace(precisions=described.precisions[0])


def _describe_diagonal(likelihood: DiagonalGaussian, components: Array) -> Described:
    standard = likelihood.conjugate.standard(components)
    mean, precisions = likelihood.conjugate.point(components)
    # The columns of a component are independent but have seen the same data.
    return Described(mean, standard.mean_precision[:, 0], 2 * standard.shape[:, 0], precisions)


def _describe_spherical(likelihood: SphericalGaussian, components: Array) -> Described:
    _, kappa, shape, _ = likelihood.conjugate.standard(components)
    mean, precisions = likelihood.conjugate.point(components)
    return Described(mean, kappa, 2 * shape / likelihood.dimension, precisions)


COVARIANCE_TYPES = {
    "full": CovarianceType(
        likelihood=lambda dimension, _: FullGaussian(dimension),
        shape=lambda dimension: (dimension, dimension),
        of_data=np.asarray,
        prior=_one_component,
        describe=_describe_full,
    ),
    "tied": CovarianceType(
        likelihood=TiedGaussian,
        shape=lambda dimension: (dimension, dimension),
        of_data=np.asarray,
        # The rows are alike: each has its share of what all have together.
        prior=lambda *parameters: _one_component(*parameters)[0],
        describe=_describe_tied,
    ),
    "diag": CovarianceType(
        likelihood=lambda dimension, _: DiagonalGaussian(dimension),
        shape=lambda dimension: (dimension,),
        of_data=np.diag,
        prior=lambda likelihood, mean, precision, degrees, scale: _one_component(
            likelihood, mean, precision, degrees / 2, scale / 2
        ),
        describe=_describe_diagonal,
    ),
    "spherical": CovarianceType(
        likelihood=lambda dimension, _: SphericalGaussian(dimension),
        shape=lambda dimension: (),
        of_data=lambda matrix: np.diag(matrix).mean(),
        prior=lambda likelihood, mean, precision, degrees, scale: _one_component(
            likelihood,
            mean,
            precision,
            likelihood.dimension * degrees / 2,
            likelihood.dimension * scale / 2,
        ),
        describe=_describe_spherical,
    ),
}


def data_driven_prior(
    X: Array,
    covariance_type: str,
    mean: Any,
    degrees: Any,
    scale: Any,
    names: tuple[str, str, str],
    ridge: float = 0.0,
) -> tuple[Array, float, Array]:
    """m0, ν0 and Ψ0 as given, or else of the data; the names are what the user calls them."""
    kind, d = COVARIANCE_TYPES[covariance_type], X.shape[1]
    mean = X.mean(axis=0) if mean is None else as_numbers(mean, names[0], f"{d} numbers")
    if mean.shape != (d,):
        raise ValueError(f"{names[0]} must have {d} entries; got shape {mean.shape}.")
    degrees = d if degrees is None else degrees
    if degrees <= d - 1:
        raise ValueError(
            f"The parameter '{names[1]}' should be greater than {d - 1}, but got {degrees:.3f}. It "
            "must exceed n_features - 1; None stands for n_features."
        )
    if scale is None:
        scatter = np.cov(X.T, ddof=min(1, len(X) - 1)).reshape(d, d)
        if ridge:
            scatter = scatter + np.diag(ridge + ridge * np.diag(scatter))
        return mean, degrees, kind.of_data(scatter)
    scale = as_numbers(scale, names[2], "numbers")
    scale = scale * kind.identity(d) if scale.ndim == 0 else scale
    if scale.shape != kind.shape(d):
        raise ValueError(
            f"{names[2]} must have shape {kind.shape(d)} for covariance_type={covariance_type!r}; "
            f"got {scale.shape}."
        )
    return mean, degrees, scale
