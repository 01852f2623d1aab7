"""Where a topic model is fitted: by the engine, or as a whole on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tempering.inference import BlockSource, Result, fit
from tempering.inference.callbacks import Callback
from tempering.inference.checkpoint import CheckpointLike
from tempering.models.lda.model import LatentDirichlet
from tempering.scale.device_fit import fit_on_device, fits_on_device
from tempering.scale.jax_device import Backend, choose_backend
from tempering.scale.jax_lda import JaxLatentDirichlet
from tempering.temperature import Untempered


def model_class(backend: Backend) -> type[LatentDirichlet]:
    """The model for a backend; an error if that is not there."""
    return JaxLatentDirichlet if choose_backend(backend) == "jax" else LatentDirichlet


def on_cpu(model: LatentDirichlet) -> LatentDirichlet:
    """The model as it serves fitted topics: anywhere."""
    return model.on_cpu() if isinstance(model, JaxLatentDirichlet) else model


def fit_topics(
    model: LatentDirichlet,
    source: Any,
    *,
    temperature: Untempered,
    learning_rate: Any,
    batch_size: int | None,
    max_passes: float,
    seed: int,
    n_init: int,
    callbacks: Sequence[Callback],
    checkpoint: CheckpointLike,
    evaluate: bool,
    **engine_options: Any,
) -> Result:
    """Fit on the device, with all data there, where the run asks for nothing but topics.

    The engine does the rest, step by step: restarts, callbacks, checkpoints, bounds, data on disk.
    """
    common: dict[str, Any] = {
        "temperature": temperature,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "max_passes": max_passes,
        "seed": seed,
    }
    plain = n_init == 1 and not callbacks and checkpoint is None and not evaluate
    in_memory = batch_size is not None and not isinstance(source, BlockSource)
    if (
        isinstance(model, JaxLatentDirichlet)
        and plain
        and in_memory
        and fits_on_device(model, temperature)
    ):
        return fit_on_device(model, source, **common)
    options = {"n_init": n_init, "callbacks": callbacks, "checkpoint": checkpoint}
    return fit(model, source, **common, **options, **engine_options)
