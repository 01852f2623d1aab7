"""Versions of JAX that compute wrongly."""

import warnings
from functools import cache
from importlib import import_module

#: What they do on a CPU (jax-ml/jax, issues 39103 and 39257); `pyproject.toml` excludes them.
BROKEN = {
    "0.10.2": "sums some products wrongly, and crashes or hangs in others",
    "0.11.0": "crashes or hangs in some products",
}


@cache
def warn_of_broken_jax() -> None:
    """Warn, once, if the JAX that is imported is one of them."""
    version = import_module("jax").__version__
    if version in BROKEN:
        others = ",".join(f"!={each}" for each in BROKEN)
        warnings.warn(
            f"JAX {version} is installed, which {BROKEN[version]} on a CPU. Install another "
            f"version: pip install 'jax{others}'.",
            RuntimeWarning,
            stacklevel=3,
        )
