"""Every family and likelihood once, with random natural parameters and SciPy's view of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import stats

from tempering.families import (
    Bernoulli,
    Beta,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    ExponentialFamily,
    FixedWeights,
    FullGaussian,
    Gamma,
    GaussianParameters,
    IsotropicGaussian,
    Likelihood,
    LinearGaussian,
    MultivariateNormal,
    MultivariateNormalGamma,
    Normal,
    NormalGamma,
    NormalWishart,
    Poisson,
    SphericalGaussian,
    SphericalNormalGamma,
    StickBreaking,
    TiedNormalWishart,
    Wishart,
)


def vectors(length: int, low: float, high: float) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.floats(low, high), min_size=length, max_size=length).map(np.array)


def positives(length: int, low: float = 0.05, high: float = 50.0) -> st.SearchStrategy[np.ndarray]:
    return vectors(length, np.log(low), np.log(high)).map(np.exp)


def normal_gamma(dimension: int, low: float = 0.1) -> st.SearchStrategy[np.ndarray]:
    positive = positives(dimension, low, 20.0)
    return st.builds(
        NormalGamma(dimension).natural, vectors(dimension, -3, 3), positive, positive, positive
    )


def spherical(dimension: int, low: float = 0.1) -> st.SearchStrategy[np.ndarray]:
    number = positives(1, low, 20.0).map(lambda value: value[0])
    return st.builds(
        SphericalNormalGamma(dimension).natural, vectors(dimension, -3, 3), number, number, number
    )


def regression(dimension: int, low: float = 0.1) -> st.SearchStrategy[np.ndarray]:
    def build(mean, root, shape, rate):
        root = root.reshape(dimension, dimension)
        matrix = root @ root.T + 0.2 * np.eye(dimension)
        return MultivariateNormalGamma(dimension).natural(mean, matrix, shape, rate)

    number = positives(1, low, 20.0).map(lambda value: value[0])
    return st.builds(build, vectors(dimension, -3, 3), vectors(dimension**2, -2, 2), number, number)


def normal_wishart(dimension: int, low: float = 0.2) -> st.SearchStrategy[np.ndarray]:
    def build(mean, mean_precision, excess, root):
        root = root.reshape(dimension, dimension)
        scale = root @ root.T + 0.2 * np.eye(dimension)
        degrees = dimension - 1 + excess
        return NormalWishart(dimension).natural(mean, mean_precision, degrees, scale)

    number = positives(1, low, 20.0).map(lambda value: value[0])
    return st.builds(build, vectors(dimension, -3, 3), number, number, vectors(dimension**2, -2, 2))


def multivariate_normal(dimension: int) -> st.SearchStrategy[np.ndarray]:
    def build(mean, root):
        root = root.reshape(dimension, dimension)
        covariance = root @ root.T + 0.2 * np.eye(dimension)
        return MultivariateNormal(dimension).natural(mean, covariance)

    return st.builds(build, vectors(dimension, -3, 3), vectors(dimension**2, -2, 2))


def wishart(dimension: int, low: float = 0.2) -> st.SearchStrategy[np.ndarray]:
    def build(excess, root):
        root = root.reshape(dimension, dimension)
        scale = root @ root.T + 0.2 * np.eye(dimension)
        return Wishart(dimension).natural(dimension - 1 + excess, scale)

    number = positives(1, low, 20.0).map(lambda value: value[0])
    return st.builds(build, number, vectors(dimension**2, -2, 2))


def normal(dimension: int) -> st.SearchStrategy[np.ndarray]:
    variance = positives(1, 0.05, 10.0).map(lambda value: value[0])
    return st.builds(Normal(dimension).natural, vectors(dimension, -3, 3), variance)


def log_density(family: ExponentialFamily, natural: np.ndarray, parameters: Any) -> Any:
    """log p(β | η) from scipy.stats, for one β (or, where SciPy can, for several)."""
    match family:
        case Dirichlet():
            p = np.moveaxis(parameters / parameters.sum(-1, keepdims=True), -1, 0)
            return stats.dirichlet.logpdf(p, natural)
        case Beta() | StickBreaking():
            return stats.beta.logpdf(parameters, *family.standard(natural)).sum(-1)
        case Gamma():
            shape, rate = family.standard(natural)
            return stats.gamma.logpdf(parameters, shape, scale=1 / rate).sum(-1)
        case Normal():
            mean, variance = family.standard(natural)
            return stats.norm.logpdf(parameters, mean, np.sqrt(variance)).sum(-1)
        case NormalGamma():
            mean, kappa, shape, rate = family.standard(natural)
            precision = parameters.precision
            deviation = 1 / np.sqrt(kappa * precision)
            logs = stats.gamma.logpdf(precision, shape, scale=1 / rate)
            return (logs + stats.norm.logpdf(parameters.mean, mean, deviation)).sum(-1)
        case SphericalNormalGamma():
            mean, kappa, shape, rate = family.standard(natural)
            deviation = 1 / np.sqrt(kappa * parameters.precision)[..., None]
            logs = stats.gamma.logpdf(parameters.precision, shape, scale=1 / rate)
            return logs + stats.norm.logpdf(parameters.mean, mean, deviation).sum(-1)
        case MultivariateNormalGamma():
            mean, matrix, shape, rate = family.standard(natural)
            precision = np.asarray(parameters.precision)
            logs = stats.gamma.logpdf(precision, shape, scale=1 / rate)
            scaled = (parameters.mean - mean) * np.sqrt(precision)[..., None]
            logs += stats.multivariate_normal.logpdf(scaled, None, np.linalg.inv(matrix))
            return logs + family.dimension / 2 * np.log(precision)
        case MultivariateNormal():
            return stats.multivariate_normal.logpdf(parameters, *family.standard(natural))
        case Wishart():
            degrees, scale = family.standard(natural)
            matrices = np.moveaxis(parameters, 0, -1) if parameters.ndim > 2 else parameters
            return stats.wishart.logpdf(matrices, float(degrees), np.linalg.inv(scale))
        case NormalWishart():
            mean, kappa, degrees, scale = family.standard(natural)
            if parameters.mean.ndim > 1:
                several = (take(parameters, i) for i in range(len(parameters.mean)))
                return np.array([log_density(family, natural, value) for value in several])
            covariance = np.linalg.inv(kappa * parameters.precision)
            log_wishart = stats.wishart.logpdf(
                parameters.precision, float(degrees), np.linalg.inv(scale)
            )
            log_normal = stats.multivariate_normal.logpdf(parameters.mean, mean, covariance)
            return log_wishart + log_normal
    raise AssertionError(f"no density for {family}")


def take(parameters: Any, index: Any) -> Any:
    """parameters[index], for arrays and for tuples of arrays."""
    if isinstance(parameters, GaussianParameters):
        return GaussianParameters(*(part[index] for part in parameters))
    return parameters[index]


FAMILIES: dict[str, tuple[ExponentialFamily, st.SearchStrategy[np.ndarray]]] = {
    "Dirichlet": (Dirichlet(4), positives(4)),
    "Beta": (Beta(2), positives(4)),
    "Gamma": (Gamma(2), positives(4)),
    "Normal": (Normal(3), normal(3)),
    "NormalGamma": (NormalGamma(2), normal_gamma(2)),
    "SphericalNormalGamma": (SphericalNormalGamma(3), spherical(3)),
    "MultivariateNormalGamma": (MultivariateNormalGamma(2), regression(2)),
    "MultivariateNormal": (MultivariateNormal(2), multivariate_normal(2)),
    "Wishart": (Wishart(2), wishart(2)),
    "NormalWishart1": (NormalWishart(1), normal_wishart(1)),
    "NormalWishart3": (NormalWishart(3), normal_wishart(3)),
    "StickBreaking": (StickBreaking(3), positives(6)),
    "FixedWeights": (FixedWeights([0.2, 0.5, 0.3]), st.just(np.empty(0))),
}

# Away from the edges, where draws of β do not round to 0 or 1 and means of draws settle.
MODERATE: dict[str, tuple[ExponentialFamily, st.SearchStrategy[np.ndarray]]] = {
    "Dirichlet": (Dirichlet(4), positives(4, 0.8, 20.0)),
    "Beta": (Beta(2), positives(4, 0.8, 20.0)),
    "Gamma": (Gamma(2), positives(4, 0.8, 20.0)),
    "Normal": FAMILIES["Normal"],
    "NormalGamma": (NormalGamma(2), normal_gamma(2, 0.8)),
    "SphericalNormalGamma": (SphericalNormalGamma(3), spherical(3, 0.8)),
    "MultivariateNormalGamma": (MultivariateNormalGamma(2), regression(2, 0.8)),
    "MultivariateNormal": FAMILIES["MultivariateNormal"],
    "Wishart": (Wishart(2), wishart(2, 1.0)),
    "NormalWishart1": (NormalWishart(1), normal_wishart(1, 1.0)),
    "NormalWishart3": (NormalWishart(3), normal_wishart(3, 1.0)),
    "StickBreaking": (StickBreaking(3), positives(6, 0.8, 20.0)),
    "FixedWeights": FAMILIES["FixedWeights"],
}


def counts(rows: int, columns: int, high: int) -> st.SearchStrategy[np.ndarray]:
    row = st.lists(st.integers(0, high), min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows).map(np.array)


def reals(rows: int, columns: int) -> st.SearchStrategy[np.ndarray]:
    return vectors(rows * columns, -4, 4).map(lambda values: values.reshape(rows, columns))


@dataclass(frozen=True)
class LikelihoodCase:
    """A likelihood, its prior, its data, and what SciPy says log p(x | β) is."""

    likelihood: Likelihood
    prior: st.SearchStrategy[np.ndarray]
    data: st.SearchStrategy[np.ndarray]
    scipy_log_likelihood: Callable[[np.ndarray, Any], np.ndarray]


def _full_log_likelihood(x: np.ndarray, parameters: GaussianParameters) -> np.ndarray:
    covariance = np.linalg.inv(parameters.precision)
    return np.atleast_1d(stats.multivariate_normal.logpdf(x, parameters.mean, covariance))


LIKELIHOODS: dict[str, LikelihoodCase] = {
    "Categorical": LikelihoodCase(
        Categorical(4),
        positives(4, 0.5, 20.0),
        counts(6, 1, 3).map(lambda x: x[:, 0]),
        lambda x, p: np.log(p)[x],
    ),
    "Bernoulli": LikelihoodCase(
        Bernoulli(3),
        positives(6, 0.5, 20.0),
        counts(6, 3, 1),
        lambda x, p: stats.bernoulli.logpmf(x, p).sum(-1),
    ),
    "Poisson": LikelihoodCase(
        Poisson(2),
        positives(4, 0.5, 20.0),
        counts(6, 2, 30),
        lambda x, rate: stats.poisson.logpmf(x, rate).sum(-1),
    ),
    "IsotropicGaussian": LikelihoodCase(
        IsotropicGaussian(2, 0.7),
        normal(2),
        reals(6, 2),
        lambda x, mean: stats.norm.logpdf(x, mean, np.sqrt(0.7)).sum(-1),
    ),
    "DiagonalGaussian": LikelihoodCase(
        DiagonalGaussian(2),
        normal_gamma(2),
        reals(6, 2),
        lambda x, p: stats.norm.logpdf(x, p.mean, 1 / np.sqrt(p.precision)).sum(-1),
    ),
    "SphericalGaussian": LikelihoodCase(
        SphericalGaussian(2),
        spherical(2),
        reals(6, 2),
        lambda x, p: stats.norm.logpdf(x, p.mean, 1 / np.sqrt(p.precision)).sum(-1),
    ),
    "LinearGaussian": LikelihoodCase(
        LinearGaussian(2),
        regression(2),
        reals(6, 3),
        lambda x, p: stats.norm.logpdf(x[:, 2], x[:, :2] @ p.mean, 1 / np.sqrt(p.precision)),
    ),
    "FullGaussian": LikelihoodCase(
        FullGaussian(2), normal_wishart(2), reals(6, 2), _full_log_likelihood
    ),
}


def parameter_statistics(family: ExponentialFamily, parameters: Any) -> np.ndarray:
    """t(β) of parameters as ``sample`` and ``point`` of a family give them, [..., size]."""
    if isinstance(family, FixedWeights):
        return np.asarray(parameters, float)  # of size 0
    if isinstance(family, Dirichlet | Beta | Gamma | Normal):
        values = np.asarray(parameters, float)
        with np.errstate(divide="ignore"):
            if isinstance(family, Dirichlet):
                return np.log(values)
            if isinstance(family, Beta):
                return np.concatenate([np.log(values), np.log1p(-values)], axis=-1)
            if isinstance(family, Gamma):
                return np.concatenate([np.log(values), -values], axis=-1)
        return np.concatenate([values, -0.5 * np.square(values).sum(-1, keepdims=True)], axis=-1)
    if isinstance(family, MultivariateNormal):
        values = np.asarray(parameters, float)
        outer = values[..., :, None] * values[..., None, :]
        return np.concatenate([values, -0.5 * outer.reshape(*outer.shape[:-2], -1)], axis=-1)
    if isinstance(family, Wishart):
        matrices = np.asarray(parameters, float)
        logs = np.linalg.slogdet(matrices)[1][..., None]
        return np.concatenate([-0.5 * matrices.reshape(*logs.shape[:-1], -1), 0.5 * logs], axis=-1)
    mean, precision = (np.asarray(part, float) for part in parameters)
    if isinstance(family, NormalGamma):
        logs = 0.5 * np.log(precision)
        return np.concatenate(
            [precision * mean, -0.5 * precision, -0.5 * precision * mean**2, logs], axis=-1
        )
    if isinstance(family, NormalWishart | TiedNormalWishart):
        linear = (precision @ mean[..., None])[..., 0]
        quadratic = (linear * mean).sum(-1, keepdims=True)
        logs = np.linalg.slogdet(precision)[1][..., None]
        matrix = precision.reshape(*precision.shape[:-2], -1)
        return np.concatenate([linear, -0.5 * matrix, -0.5 * quadratic, 0.5 * logs], axis=-1)
    precision = precision[..., None]
    if isinstance(family, SphericalNormalGamma):
        square = precision * np.square(mean).sum(-1, keepdims=True)
        logs = family.dimension / 2 * np.log(precision)
        return np.concatenate([precision * mean, -0.5 * precision, -0.5 * square, logs], axis=-1)
    outer = mean[..., :, None] * mean[..., None, :]
    squares = precision * outer.reshape(*outer.shape[:-2], -1)
    logs = 0.5 * np.log(precision)
    return np.concatenate([precision * mean, -0.5 * squares, -0.5 * precision, logs], axis=-1)
