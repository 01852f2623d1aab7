"""Programs here run for milliseconds, and would take seconds to compile."""

import mmap
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

#: By these JAX compiles for the CPU in a third of the time; what it makes is hardly slower.
FLAGS = (
    "--xla_backend_optimization_level=1",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_cpu_use_fusion_emitters=false",
)


def ask_for_quick_compilation() -> None:
    """Add the flags that this JAX knows: it ends the process at one that it does not know."""
    flags = [os.environ.get("XLA_FLAGS", ""), *filter(_is_known, FLAGS)]
    os.environ["XLA_FLAGS"] = " ".join(filter(None, flags))


def _is_known(flag: str) -> bool:
    found = find_spec("jaxlib")
    places = found.submodule_search_locations if found else None
    name = flag.strip("-").partition("=")[0].encode()
    return any(_holds(file, name) for place in places or () for file in Path(place).glob("*.so"))


def _holds(file: Path, text: bytes) -> bool:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(text) >= 0


@pytest.fixture(scope="module")
def without_optimizations():
    """For programs so quick that it is not worth it to compile them well."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
