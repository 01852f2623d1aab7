"""Models: the contract, and the models of the package."""

from tempering.models.base import LocalStep, Model, Natural, UnsupportedTemperature
from tempering.models.mixture import Mixture

__all__ = ["LocalStep", "Mixture", "Model", "Natural", "UnsupportedTemperature"]
