"""Whether JAX is there, what it runs on, where it keeps what it compiles; models made for it; and
one step of a fit on all devices of this machine, with the bits that one device gives.
"""

import logging
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache, partial, wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from tempering.models.arguments import check_choice
from tempering.models.compilation import add_compilation, begin_compilation
from tempering.models.jax_versions import warn_of_broken_jax
from tempering.storage import cache_directory

Backend = Literal["auto", "cpu", "jax", "gpu"]

Own = TypeVar("Own")

logger = logging.getLogger("tempering")

#: What the drivers of GPUs leave in the file system: NVIDIA's, the same under Windows (WSL), AMD's.
DRIVER_FILES = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg", "/dev/kfd")

INSTALL = "Install it with: pip install 'tempering[gpu]'"


class LazyModule:
    """A module that is loaded when something of it is used: JAX takes seconds, or is not there."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        warn_of_broken_jax()
        return getattr(import_module(self._name), attribute)


jax: Any = LazyModule("jax")
jnp: Any = LazyModule("jax.numpy")
special: Any = LazyModule("jax.scipy.special")


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled when it is called; arguments by keyword alone are constants of it."""
    parameters = signature(function).parameters.values()
    constants = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    jitted = cache(lambda: jax.jit(function, static_argnames=constants))
    return wraps(function)(lambda *arrays, **given: jitted()(*arrays, **given))


class JaxUnavailable(ImportError):
    """JAX is not installed, or finds no GPU where one was asked for."""


def choose_backend(backend: Backend, *, worthwhile: bool = True) -> Literal["numba", "jax"]:
    """What runs the local steps: "auto" is JAX with a GPU, if the work is ``worthwhile``."""
    check_choice(backend, "backend", *get_args(Backend))
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
    return jax.default_backend()


@cache
def keep_compiled() -> None:
    """Have JAX keep what it compiles in the user's cache, unless it was told where to keep it."""
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
    # JAX's own second would leave most kernels out.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def _on_duration(event: str, duration_secs: float, **_: Any) -> None:
    compilation = ("jaxpr_to_mlir_module_duration", "backend_compile_duration")
    if event.removeprefix("/jax/core/compile/") in compilation:
        add_compilation(duration_secs)
        if duration_secs >= 0.5:  # JAX tells afterwards; more is to come then
            begin_compilation()


def counterpart(model: Any, kind: type[Own], **more: Any) -> Own:
    """The model as one of another class of its family: it shares all attributes, and has more."""
    made = kind.__new__(kind)
    vars(made).update(vars(model), **more)
    return made


def with_attributes_of(other: Any, model: Own) -> Own:
    """A copy of the model, with all that its counterpart has learned since it was made of it."""
    made = copy(model)
    vars(made).update((name, getattr(other, name)) for name in vars(model))
    return made


def device_mesh() -> Any:
    """All devices of this process; None if there is one, or if JAX was told which one to take."""
    devices = jax.local_devices()
    if len(devices) == 1 or jax.config.jax_default_device is not None:  # pyright: ignore
        return None
    return jax.sharding.Mesh(devices, "devices")


def on_all_devices(array: Any) -> Any:
    """The array in the memory of each device."""
    mesh = device_mesh()
    if mesh is None:
        return jax.device_put(array)
    return jax.device_put(array, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))


def share_out(function: Callable[..., Any], rows: Sequence[Any], whole: Sequence[Any]) -> Any:
    """``function(*rows, *whole)``, each device with some of the rows, and the results with all.

    Rows are documents while they settle or are sampled, and words while their statistics are
    summed: each is done on one device, so that no sum depends on how many devices there are.
    """
    mesh = device_mesh()
    if mesh is None:
        return function(*rows, *whole)
    n_rows = rows[0].shape[0]
    missing = -n_rows % mesh.size

    def part(*arrays):
        gather = partial(jax.lax.all_gather, axis_name="devices", tiled=True)
        return jax.tree.map(gather, function(*arrays))

    cut, uncut = jax.sharding.PartitionSpec("devices"), jax.sharding.PartitionSpec()
    in_specs = (*[cut] * len(rows), *[uncut] * len(whole))
    everywhere = partial(
        jax.lax.with_sharding_constraint, shardings=jax.sharding.NamedSharding(mesh, uncut)
    )
    # Or XLA would share out what comes before and after too, and sum up in another order.
    # Rows of zeros fill up: documents without words, and words that no document has.
    filled = [
        everywhere(jnp.pad(everywhere(own), [(0, missing)] + [(0, 0)] * (own.ndim - 1)))
        for own in rows
    ]
    # JAX cannot tell that what is gathered is alike on all devices, and is not to check it.
    specs: Any = {"in_specs": in_specs, "out_specs": uncut, "check_vma": False}
    found = jax.shard_map(part, mesh=mesh, **specs)(*filled, *whole)
    return jax.tree.map(lambda array: everywhere(array[:n_rows]), found)
