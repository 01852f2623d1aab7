"""Programs here run for milliseconds, and would take seconds to compile."""

from importlib.util import find_spec

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick_compilation():
    if not find_spec("jax"):
        yield
        return
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
