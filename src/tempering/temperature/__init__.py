"""Temperature policies: none, annealing (AVI), one learned temperature (VT), one a datum (LVT)."""

from tempering.temperature import schedules
from tempering.temperature.annealing import Annealing
from tempering.temperature.grid import even_inverse_temperatures, exponential_temperatures
from tempering.temperature.local import LocalTempering
from tempering.temperature.partition import LogPartition, log_partition
from tempering.temperature.policy import Heat, Progress, Surroundings, Untempered
from tempering.temperature.tempering import VariationalTempering

__all__ = [
    "Annealing",
    "Heat",
    "LocalTempering",
    "LogPartition",
    "Progress",
    "Surroundings",
    "Untempered",
    "VariationalTempering",
    "even_inverse_temperatures",
    "exponential_temperatures",
    "log_partition",
    "schedules",
]
