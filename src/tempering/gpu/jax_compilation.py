"""What JAX compiles, kept on disk for the next process, and no part of the time of a fit."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from tempering.inference.compilation import add_compilation, begin_compilation
from tempering.storage.caches import cache_directory

logger = logging.getLogger("tempering")

#: Seconds of compilation from which it is kept; JAX's own 1 would leave most kernels out.
WORTH_KEEPING = 0.1
#: Seconds from which it is told. JAX says what it has compiled afterwards; more is to come then.
WORTH_TELLING = 0.5

EVENTS = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


@cache
def keep_compiled() -> None:
    """Have JAX keep what it compiles in the user's cache, unless it was told where to keep it."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(_on_duration)
    if jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore
        return
    place = cache_directory() / "jax"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        logger.info("what JAX compiles is not kept: %s.", error)
        return
    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)


def _on_duration(event: str, duration_secs: float, **_: Any) -> None:
    if event in EVENTS:
        add_compilation(duration_secs)
        if duration_secs >= WORTH_TELLING:
            begin_compilation()
