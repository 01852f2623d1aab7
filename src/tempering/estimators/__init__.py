"""scikit-learn estimators: validate, build model, policy and source, call the engine.

Each loads on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tempering.estimators.factorial_mixture import FactorialMixture
    from tempering.estimators.factors import BayesianFactorAnalysis, PoissonFactorization
    from tempering.estimators.gaussian_mixture import BayesianGaussianMixture
    from tempering.estimators.hmms import CategoricalHMM, GaussianHMM, PoissonHMM
    from tempering.estimators.lda import LatentDirichletAllocation
    from tempering.estimators.mixture import BernoulliMixture, PoissonMixture
    from tempering.estimators.regression_mixture import RegressionMixture

_HOMES = {
    "BayesianFactorAnalysis": "factors",
    "BayesianGaussianMixture": "gaussian_mixture",
    "BernoulliMixture": "mixture",
    "CategoricalHMM": "hmms",
    "FactorialMixture": "factorial_mixture",
    "GaussianHMM": "hmms",
    "LatentDirichletAllocation": "lda",
    "PoissonFactorization": "factors",
    "PoissonHMM": "hmms",
    "PoissonMixture": "mixture",
    "RegressionMixture": "regression_mixture",
}

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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"tempering.estimators.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tempering.estimators' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
