"""A JAX that computes wrongly is warned of, once."""

import importlib
import re
import warnings
from pathlib import Path

import pytest

from tempering.models.jax_versions import BROKEN, warn_of_broken_jax

jax = pytest.importorskip("jax")


@pytest.fixture(params=sorted(BROKEN))
def broken(request, monkeypatch):
    monkeypatch.setattr(jax, "__version__", request.param)
    warn_of_broken_jax.cache_clear()
    yield request.param
    warn_of_broken_jax.cache_clear()


def import_blackbox():
    pytest.importorskip("numpyro")
    import tempering.blackbox

    importlib.reload(tempering.blackbox)


def use_gpu():
    from tempering.gpu.jax_device import platform

    platform()


@pytest.mark.parametrize("use", [import_blackbox, use_gpu])
def test_a_broken_version_is_warned_of_once(broken, use):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
        use()
    (warning,) = [each for each in caught if each.category is RuntimeWarning]
    assert re.search(rf"JAX {broken} is installed, .*pip install 'jax!=", str(warning.message))


def test_the_broken_versions_are_those_that_the_package_excludes():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    excluded = set(re.findall(r'"(jax>=[^"]*)"', project))
    assert len(excluded) == 1
    assert set(re.findall(r"!=([\d.]+)", excluded.pop())) == set(BROKEN)
