"""Exponential families: distributions over global variables, and the likelihoods conjugate to them.

========================  ===========================================  ============================
likelihood                of                                           conjugate family
========================  ===========================================  ============================
:class:`Categorical`      one draw from a finite set                   :class:`Dirichlet`
:class:`Bernoulli`        binary vectors                               :class:`Beta`
:class:`Poisson`          vectors of counts                            :class:`Gamma`
:class:`IsotropicGaussian`  real vectors, known variance               :class:`Normal`
:class:`DiagonalGaussian`  real vectors, independent columns           :class:`NormalGamma`
:class:`SphericalGaussian`  real vectors, one variance                 :class:`SphericalNormalGamma`
:class:`FullGaussian`     real vectors                                 :class:`NormalWishart`
:class:`TiedGaussian`     real vectors, components of one covariance   :class:`TiedNormalWishart`
========================  ===========================================  ============================

A number given a vector, linear regression: :class:`LinearGaussian`, with
:class:`MultivariateNormalGamma`.

Without a likelihood here, for custom models: :class:`MultivariateNormal`, :class:`Wishart`,
:class:`Choice`.

Mixing weights: :class:`Dirichlet`, :class:`SparseDirichlet`, :class:`StickBreaking`,
:class:`FixedWeights`.
"""

from tempering.families.base import Array, ExponentialFamily, Likelihood
from tempering.families.bernoulli import Bernoulli, Beta
from tempering.families.multivariate import Choice, MultivariateNormal, Wishart
from tempering.families.normal import IsotropicGaussian, Normal
from tempering.families.normal_gamma import (
    DiagonalGaussian,
    GaussianParameters,
    NormalGamma,
    SphericalGaussian,
    SphericalNormalGamma,
)
from tempering.families.normal_wishart import (
    FullGaussian,
    NormalWishart,
    TiedGaussian,
    TiedNormalWishart,
)
from tempering.families.poisson import Gamma, Poisson
from tempering.families.regression import LinearGaussian, MultivariateNormalGamma
from tempering.families.weights import (
    Categorical,
    Dirichlet,
    FixedWeights,
    MixingWeights,
    SparseDirichlet,
    StickBreaking,
)

__all__ = [
    "Array",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Choice",
    "DiagonalGaussian",
    "Dirichlet",
    "ExponentialFamily",
    "FixedWeights",
    "FullGaussian",
    "Gamma",
    "GaussianParameters",
    "IsotropicGaussian",
    "Likelihood",
    "LinearGaussian",
    "MixingWeights",
    "MultivariateNormal",
    "MultivariateNormalGamma",
    "Normal",
    "NormalGamma",
    "NormalWishart",
    "Poisson",
    "SparseDirichlet",
    "SphericalGaussian",
    "SphericalNormalGamma",
    "StickBreaking",
    "TiedGaussian",
    "TiedNormalWishart",
    "Wishart",
]
