"""Whether JAX is there, and what it runs on."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from tempering.gpu.jax_compilation import keep_compiled

Backend = Literal["auto", "cpu", "jax", "gpu"]

logger = logging.getLogger("tempering")

#: What the drivers of GPUs leave in the file system: NVIDIA's, the same under Windows (WSL), AMD's.
DRIVER_FILES = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg", "/dev/kfd")

INSTALL = "Install it with: pip install 'tempering[gpu]'"


class JaxUnavailable(ImportError):
    """JAX is not installed, or finds no GPU where one was asked for."""


def choose_backend(backend: Backend, *, worthwhile: bool = True) -> Literal["numba", "jax"]:
    """What runs the local steps.

    Parameters
    ----------
    backend : {"auto", "cpu", "jax", "gpu"}
        "cpu" is Numba; "jax" is JAX on whatever device it finds; "gpu" insists on a GPU; "auto" is
        JAX where it finds a GPU, and Numba elsewhere.
    worthwhile : bool
        Whether the work is large enough for "auto" to load JAX and to compile for a GPU, which
        takes some ten seconds.

    Returns
    -------
    {"numba", "jax"}
    """
    if backend not in ("auto", "cpu", "jax", "gpu"):
        raise ValueError(f"backend must be 'auto', 'cpu', 'jax' or 'gpu'; got {backend!r}.")
    if backend == "cpu":
        return "numba"
    if backend == "auto":
        reason = _why_not_a_gpu(worthwhile)
        if reason is None:
            keep_compiled()
            return "jax"
        logger.info("backend='auto': fitting on the CPU, as %s.", reason)
        return "numba"
    require_jax(gpu=backend == "gpu")
    return "jax"


def require_jax(*, gpu: bool = False) -> None:
    """Raise, before any work, if JAX is missing, or a GPU where it is needed."""
    if find_spec("jax") is None:
        raise JaxUnavailable(f"This backend needs JAX. {INSTALL}")
    keep_compiled()
    if gpu and not has_gpu():
        raise JaxUnavailable(
            "backend='gpu' needs a GPU that JAX can use, and JAX found only "
            f"{platform()}. {INSTALL}, check that the driver works (nvidia-smi), or take "
            "backend='jax' or backend='cpu'."
        )


def _why_not_a_gpu(worthwhile: bool) -> str | None:
    """Why "auto" stays on the CPU; None if it does not. JAX is loaded where it may find a GPU."""
    if not worthwhile:
        return "that takes less time than to compile for a GPU"
    if not any(Path(file).exists() for file in DRIVER_FILES):
        return "there is no driver of a GPU"
    if find_spec("jax") is None:
        return "JAX is not installed (pip install 'tempering[gpu]')"
    if not has_gpu():
        return f"JAX found no GPU, only {platform()}"
    return None


def has_gpu() -> bool:
    """Whether JAX runs on a GPU here."""
    return platform() == "gpu"


def platform() -> str:
    """What JAX runs on: "cpu", "gpu" or "tpu"."""
    import jax

    return jax.default_backend()
