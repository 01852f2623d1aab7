"""Temperature policies: none, annealing (AVI), one learned temperature (VT), one a datum (LVT)."""

from tempering.temperature import schedules
from tempering.temperature.annealing import Annealing, AnnealingHeat
from tempering.temperature.grid import even_inverse_temperatures, exponential_temperatures
from tempering.temperature.local import LocalHeat, LocalTempering
from tempering.temperature.partition import LogPartition, log_partition
from tempering.temperature.policy import (
    COLD,
    Heat,
    Progress,
    Surroundings,
    TemperaturePolicy,
    Untempered,
)
from tempering.temperature.tempering import TemperingHeat, VariationalTempering

__all__ = [
    "COLD",
    "Annealing",
    "AnnealingHeat",
    "Heat",
    "LocalHeat",
    "LocalTempering",
    "LogPartition",
    "Progress",
    "Surroundings",
    "TemperaturePolicy",
    "TemperingHeat",
    "Untempered",
    "VariationalTempering",
    "even_inverse_temperatures",
    "exponential_temperatures",
    "log_partition",
    "schedules",
]
