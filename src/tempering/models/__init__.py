"""Models: the contract, and the models of the package."""

from tempering.models.base import LocalStep, Model, Start, UnsupportedTemperature, by_temperature
from tempering.models.hmm.model import HiddenMarkov
from tempering.models.hmm.sequences import Sequences
from tempering.models.mixture import Mixture
from tempering.models.natural import Natural

__all__ = [
    "HiddenMarkov",
    "LocalStep",
    "Mixture",
    "Model",
    "Natural",
    "Sequences",
    "Start",
    "UnsupportedTemperature",
    "by_temperature",
]
