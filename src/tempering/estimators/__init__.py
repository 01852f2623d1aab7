"""scikit-learn estimators: validate, build model, policy and source, call the engine."""

from tempering.estimators.factorial_mixture import FactorialMixture
from tempering.estimators.factors import BayesianFactorAnalysis, PoissonFactorization
from tempering.estimators.gaussian_mixture import BayesianGaussianMixture
from tempering.estimators.hmms import CategoricalHMM, GaussianHMM, PoissonHMM
from tempering.estimators.lda import LatentDirichletAllocation
from tempering.estimators.mixture import BernoulliMixture, PoissonMixture
from tempering.estimators.regression_mixture import RegressionMixture

__all__ = [
    "BayesianFactorAnalysis",
    "BayesianGaussianMixture",
    "BernoulliMixture",
    "CategoricalHMM",
    "FactorialMixture",
    "GaussianHMM",
    "LatentDirichletAllocation",
    "PoissonFactorization",
    "PoissonHMM",
    "PoissonMixture",
    "RegressionMixture",
]
