"""Tempered stochastic variational inference for NumPyro models and JAX log densities.

Needs the extra ``tempering[numpyro]``; the names here load it on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "TemperedSVI": "tempering.blackbox.tempered_svi",
    "TemperedVI": "tempering.blackbox.tempered_functions",
    "local_inverse_temperatures": "tempering.blackbox.handlers",
    "log_normalizer": "tempering.blackbox.normalizers",
    "temper": "tempering.blackbox.handlers",
    "temper_locally": "tempering.blackbox.handlers",
}

__all__ = [
    "TemperedSVI",
    "TemperedVI",
    "local_inverse_temperatures",
    "log_normalizer",
    "temper",
    "temper_locally",
]

if TYPE_CHECKING:
    from tempering.blackbox.handlers import local_inverse_temperatures, temper, temper_locally
    from tempering.blackbox.normalizers import log_normalizer
    from tempering.blackbox.tempered_functions import TemperedVI
    from tempering.blackbox.tempered_svi import TemperedSVI


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tempering.blackbox' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("jax", "numpyro", "optax"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs NumPyro, and {error.name} is not installed. "
            "Install it with: pip install 'tempering[numpyro]'",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return __all__
