"""Variational inference that gets stuck in poor local optima less often.

Annealed variational inference (AVI), variational tempering (VT) and local variational tempering
(LVT) for conditionally conjugate models, after Mandt, McInerney, Abrol, Ranganath and Blei,
"Variational Tempering", AISTATS 2016.

Public names load on first use, so that ``import tempering`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    name: home
    for home, names in {
        "tempering.temperature": "AdaptiveTempering Annealing LocalTempering TemperaturePolicy "
        "Untempered VariationalTempering log_partition schedules",
        "tempering.models": "LocalStep Mixture Model Natural",
        "tempering.inference": "Checkpoint RobbinsMonro fit",
        "tempering.estimators": "BayesianFactorAnalysis BayesianGaussianMixture BernoulliMixture "
        "CategoricalHMM FactorialMixture GaussianHMM LatentDirichletAllocation "
        "PoissonFactorization PoissonHMM PoissonMixture RegressionMixture",
        "tempering.estimators.saving": "load",
        "tempering.search": "SearchResult search",
        "tempering.storage.state": "StorageError",
    }.items()
    for name in names.split()
}

_ROOMS = [
    "blackbox",
    "cluster",
    "corpus",
    "datasets",
    "estimators",
    "evaluation",
    "families",
    "gpu",
    "inference",
    "models",
    "plots",
    "report",
    "search",
    "storage",
    "temperature",
    "testing",
    "workbench",
]

__all__ = [
    "AdaptiveTempering",
    "Annealing",
    "BayesianFactorAnalysis",
    "BayesianGaussianMixture",
    "BernoulliMixture",
    "CategoricalHMM",
    "Checkpoint",
    "FactorialMixture",
    "GaussianHMM",
    "LatentDirichletAllocation",
    "LocalStep",
    "LocalTempering",
    "Mixture",
    "Model",
    "Natural",
    "PoissonFactorization",
    "PoissonHMM",
    "PoissonMixture",
    "RegressionMixture",
    "RobbinsMonro",
    "SearchResult",
    "StorageError",
    "TemperaturePolicy",
    "Untempered",
    "VariationalTempering",
    "__version__",
    "fit",
    "load",
    "log_partition",
    "schedules",
    "search",
]

if TYPE_CHECKING:
    from tempering.estimators import (
        BayesianFactorAnalysis,
        BayesianGaussianMixture,
        BernoulliMixture,
        CategoricalHMM,
        FactorialMixture,
        GaussianHMM,
        LatentDirichletAllocation,
        PoissonFactorization,
        PoissonHMM,
        PoissonMixture,
        RegressionMixture,
    )
    from tempering.estimators.saving import load
    from tempering.inference import Checkpoint, RobbinsMonro, fit
    from tempering.models import LocalStep, Mixture, Model, Natural
    from tempering.search import SearchResult, search
    from tempering.storage.state import StorageError
    from tempering.temperature import (
        AdaptiveTempering,
        Annealing,
        LocalTempering,
        TemperaturePolicy,
        Untempered,
        VariationalTempering,
        log_partition,
        schedules,
    )


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"tempering.{name}")
    raise AttributeError(f"module 'tempering' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
