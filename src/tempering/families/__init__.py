"""Exponential families: distributions over global variables, and the likelihoods conjugate to them.

=========================  ======================================  =========================
likelihood                 of                                      conjugate family
=========================  ======================================  =========================
:class:`Categorical`       one draw from a finite set              :class:`Dirichlet`
:class:`Bernoulli`         binary vectors                          :class:`Beta`
:class:`Poisson`           vectors of counts                       :class:`Gamma`
:class:`IsotropicGaussian`  real vectors, known variance           :class:`Normal`
:class:`DiagonalGaussian`  real vectors, independent columns       :class:`NormalGamma`
:class:`SphericalGaussian`  real vectors, one variance             ``SphericalNormalGamma``
:class:`FullGaussian`      real vectors                            :class:`NormalWishart`
``TiedGaussian``           real vectors, one covariance for all    ``TiedNormalWishart``
:class:`LinearGaussian`    a number given a vector                 ``MultivariateNormalGamma``
=========================  ======================================  =========================

Mixing weights: :class:`Dirichlet`, :class:`StickBreaking`, :class:`FixedWeights`.
"""

from tempering.families.base import Array, ExponentialFamily, Likelihood
from tempering.families.bernoulli import Bernoulli, Beta
from tempering.families.normal import IsotropicGaussian, Normal
from tempering.families.normal_gamma import (
    DiagonalGaussian,
    GaussianParameters,
    NormalGamma,
    SphericalGaussian,
)
from tempering.families.normal_wishart import FullGaussian, NormalWishart
from tempering.families.poisson import Gamma, Poisson
from tempering.families.regression import LinearGaussian
from tempering.families.weights import Categorical, Dirichlet, FixedWeights, StickBreaking

__all__ = [
    "Array",
    "Bernoulli",
    "Beta",
    "Categorical",
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
    "Normal",
    "NormalGamma",
    "NormalWishart",
    "Poisson",
    "SphericalGaussian",
    "StickBreaking",
]
