"""Exponential families: distributions over global variables, and the likelihoods conjugate to them.

========================  ===========================================  ============================
likelihood                of                                           conjugate family
========================  ===========================================  ============================
:class:`Categorical`      one draw from a finite set                   :class:`Dirichlet`
:class:`Multinomial`      a sequence of draws                          :class:`Dirichlet`
:class:`Bernoulli`        binary vectors                               :class:`Beta`
:class:`Poisson`          vectors of counts                            :class:`Gamma`
:class:`IsotropicGaussian`  real vectors, known variance               :class:`Normal`
:class:`DiagonalGaussian`  real vectors, independent columns           :class:`NormalGamma`
:class:`SphericalGaussian`  real vectors, one variance                 :class:`SphericalNormalGamma`
:class:`FullGaussian`     real vectors                                 :class:`NormalWishart`
:class:`TiedGaussian`     real vectors, components of one covariance   :class:`TiedNormalWishart`
========================  ===========================================  ============================

Mixing weights: :class:`Dirichlet`, :class:`StickBreaking`, :class:`FixedWeights`.
"""

from tempering.families.base import Array, ExponentialFamily, Likelihood
from tempering.families.bernoulli import Bernoulli, Beta, BetaParameters
from tempering.families.categorical import Categorical
from tempering.families.dirichlet import Dirichlet
from tempering.families.fixed_weights import FixedWeights
from tempering.families.multinomial import Multinomial
from tempering.families.normal import IsotropicGaussian, Normal, NormalParameters
from tempering.families.normal_gamma import (
    DiagonalGaussian,
    GaussianParameters,
    NormalGamma,
    NormalGammaParameters,
)
from tempering.families.normal_wishart import (
    FullGaussian,
    NormalWishart,
    NormalWishartParameters,
)
from tempering.families.poisson import Gamma, GammaParameters, Poisson
from tempering.families.spherical import SphericalGaussian, SphericalNormalGamma
from tempering.families.stick_breaking import StickBreaking
from tempering.families.tied import TiedGaussian, TiedNormalWishart
from tempering.families.weights import MixingWeights

__all__ = [
    "Array",
    "Bernoulli",
    "Beta",
    "BetaParameters",
    "Categorical",
    "DiagonalGaussian",
    "Dirichlet",
    "ExponentialFamily",
    "FixedWeights",
    "FullGaussian",
    "Gamma",
    "GammaParameters",
    "GaussianParameters",
    "IsotropicGaussian",
    "Likelihood",
    "MixingWeights",
    "Multinomial",
    "Normal",
    "NormalGamma",
    "NormalGammaParameters",
    "NormalParameters",
    "NormalWishart",
    "NormalWishartParameters",
    "Poisson",
    "SphericalGaussian",
    "SphericalNormalGamma",
    "StickBreaking",
    "TiedGaussian",
    "TiedNormalWishart",
]
