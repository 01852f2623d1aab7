"""Whether JAX is there, and what it runs on."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

Backend = Literal["auto", "cpu", "jax", "gpu"]

INSTALL = "Install it with: pip install 'tempering[gpu]'"


class JaxUnavailable(ImportError):
    """JAX is not installed, or finds no GPU where one was asked for."""


def choose_backend(backend: Backend) -> Literal["numba", "jax"]:
    """What runs the local steps.

    Parameters
    ----------
    backend : {"auto", "cpu", "jax", "gpu"}
        "cpu" is Numba; "jax" is JAX on whatever device it finds; "gpu" insists on a GPU; "auto" is
        JAX where it finds a GPU, and Numba elsewhere.

    Returns
    -------
    {"numba", "jax"}
    """
    if backend not in ("auto", "cpu", "jax", "gpu"):
        raise ValueError(f"backend must be 'auto', 'cpu', 'jax' or 'gpu'; got {backend!r}.")
    if backend == "cpu":
        return "numba"
    if backend == "auto":
        return "jax" if find_spec("jax") is not None and has_gpu() else "numba"
    require_jax(gpu=backend == "gpu")
    return "jax"


def require_jax(*, gpu: bool = False) -> None:
    """Raise, before any work, if JAX is missing, or a GPU where it is needed."""
    if find_spec("jax") is None:
        raise JaxUnavailable(f"This backend needs JAX. {INSTALL}")
    if gpu and not has_gpu():
        raise JaxUnavailable(
            "backend='gpu' needs a GPU that JAX can use, and JAX found only "
            f"{platform()}. {INSTALL}, check that the driver works (nvidia-smi), or take "
            "backend='jax' or backend='cpu'."
        )


def has_gpu() -> bool:
    """Whether JAX runs on a GPU here."""
    return platform() == "gpu"


def platform() -> str:
    """What JAX runs on: "cpu", "gpu" or "tpu"."""
    import jax

    return jax.default_backend()
