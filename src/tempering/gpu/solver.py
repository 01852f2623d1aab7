"""The E-step of a group, compiled for the device that is there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from tempering.gpu import jax_e_step, jax_sampling, pallas_e_step, pallas_sampling
from tempering.gpu.jax_device import has_gpu
from tempering.gpu.jax_functions import Settings
from tempering.models.lda.model import LatentDirichlet

#: Which code runs a group: the GPU kernels, the same interpreted (for tests), or plain JAX.
Kernel = Literal["pallas", "interpreted", "plain"]

#: Documents of a group: many for kernels that take them one by one, few where they share a loop.
GROUP_SIZES: dict[Kernel, int] = {"pallas": 8192, "interpreted": 8192, "plain": 256}


def default_kernel() -> Kernel:
    """The GPU kernels where there is a GPU."""
    return "pallas" if has_gpu() else "plain"


def settings_of(model: LatentDirichlet) -> Settings:
    """How the documents of a model iterate."""
    return Settings(
        model.update == "collapsed",
        float(model.tolerance),
        int(model.min_iterations),
        int(model.max_iterations),
    )


def group_solver(kernel: Kernel) -> Callable[..., Any]:
    """The function that solves a group, to be called inside compiled code."""
    if kernel == "plain":
        return jax_e_step.solve_group
    return partial(pallas_e_step.solve_group, interpret=kernel == "interpreted")


def group_sampler(kernel: Kernel) -> Callable[..., Any]:
    """The function that samples the topics of a group, to be called inside compiled code."""
    if kernel == "plain":
        return jax_sampling.sample_group
    return partial(pallas_sampling.sample_group, interpret=kernel == "interpreted")
