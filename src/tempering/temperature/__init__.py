"""Temperature policies: none, annealing (AVI), adaptive, one learned (VT), one a datum (LVT)."""

from tempering.temperature import schedules
from tempering.temperature.adaptive import AdaptiveTempering
from tempering.temperature.annealing import Annealing
from tempering.temperature.grid import (
    LogPartition,
    even_inverse_temperatures,
    exponential_temperatures,
    log_partition,
)
from tempering.temperature.local import LocalTempering
from tempering.temperature.policy import (
    COLD,
    USUAL_PASSES,
    Heat,
    Perturbation,
    Progress,
    Surroundings,
    TemperaturePolicy,
    TemperingWarning,
    Untempered,
)
from tempering.temperature.tempering import VariationalTempering

__all__ = [
    "COLD",
    "USUAL_PASSES",
    "AdaptiveTempering",
    "Annealing",
    "Heat",
    "LocalTempering",
    "LogPartition",
    "Perturbation",
    "Progress",
    "Surroundings",
    "TemperaturePolicy",
    "TemperingWarning",
    "Untempered",
    "VariationalTempering",
    "even_inverse_temperatures",
    "exponential_temperatures",
    "log_partition",
    "schedules",
]
