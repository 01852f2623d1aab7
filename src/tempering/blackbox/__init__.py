"""Tempered stochastic variational inference for NumPyro models and JAX log densities."""

from importlib.util import find_spec

if not all(map(find_spec, ("jax", "numpyro", "optax"))):
    raise ImportError(
        "tempering.blackbox needs JAX, NumPyro and optax: pip install 'tempering[numpyro]'."
    )

from tempering.blackbox.handlers import local_inverse_temperatures, temper, temper_locally
from tempering.blackbox.normalizers import log_normalizer
from tempering.blackbox.tempered_functions import TemperedVI
from tempering.blackbox.tempered_svi import TemperedSVI
from tempering.models.jax_versions import warn_of_broken_jax

warn_of_broken_jax()

__all__ = [
    "TemperedSVI",
    "TemperedVI",
    "local_inverse_temperatures",
    "log_normalizer",
    "temper",
    "temper_locally",
]
