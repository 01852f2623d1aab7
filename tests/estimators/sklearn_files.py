"""scikit-learn's own tests, with our classes in the place of its.

A test module of ours takes the tests of one file of scikit-learn's, and a table of those that fail:

    from sklearn_files import borrowed_tests

    globals().update(
        borrowed_tests(
            "sklearn.mixture.tests.test_bayesian_mixture",
            {"sklearn.mixture.BayesianGaussianMixture": tempering.BayesianGaussianMixture},
            {"test_name[parameters]": "why it fails", "test_other": "why, whatever its parameters"},
        )
    )

Each test then runs as one of ours. The table stays true by itself: a listed test that passes, or
that scikit-learn does not have, fails.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import pytest
import sklearn

#: The tables are of the tests of this version; others have other tests.
VERSION = "1.9"


def borrowed_tests(
    name: str,
    replaced: Mapping[str, type],
    failures: Mapping[str, str],
    slow: Collection[str] = (),
    left_out: Collection[str] = (),
) -> dict[str, Any]:
    """What a test module needs to run the tests of the scikit-learn module of this name.

    Parameters
    ----------
    name : str
        The module, by its full name.
    replaced : mapping of str to class
        Full names of scikit-learn's public classes, and what stands in their place.
    failures : mapping of str to str
        Why a test fails, by its name with or without its parameters.
    slow : collection of str
        Names of tests that take seconds: `make test-all` runs them.
    left_out : collection of str
        Names of tests that would only skip themselves.
    """
    if not sklearn.__version__.startswith(VERSION + "."):
        pytest.skip(f"the table of failures is of scikit-learn {VERSION}", allow_module_level=True)
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"this scikit-learn comes without {name}", allow_module_level=True)
    # A module of its own, so that scikit-learn's stays as it is.
    spec = importlib.util.spec_from_file_location(f"{name}_with_ours", found.origin)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with ExitStack() as patches:  # parameters of its tests are made while it is loaded
        for theirs, ours in replaced.items():
            patches.enter_context(mock.patch(theirs, ours))
        spec.loader.exec_module(module)
    tests = {
        key: value
        for key, value in vars(module).items()
        if key.startswith("test_") and inspect.isfunction(value)
    }
    unknown = {key.partition("[")[0] for key in (*failures, *slow, *left_out)} - set(tests)
    assert not unknown, f"{name} has no tests {sorted(unknown)}"

    tests |= {test: pytest.mark.slow(tests[test]) for test in slow}
    for test in left_out:
        del tests[test]

    @pytest.fixture(autouse=True)
    def known_failure(request: pytest.FixtureRequest) -> None:
        test = request.node.name
        reason = failures.get(test, failures.get(test.partition("[")[0]))
        if reason is not None:
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))

    # The two fixtures that scikit-learn's tests have from its conftest.py.
    @pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
    def global_dtype(request: pytest.FixtureRequest) -> Any:
        return request.param

    @pytest.fixture
    def global_random_seed() -> int:
        return 42

    return {
        **tests,
        "known_failure": known_failure,
        "global_dtype": global_dtype,
        "global_random_seed": global_random_seed,
    }
