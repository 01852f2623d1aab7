"""What follows for a model once the family of each part of λ is known: no model need write it.

Parameters are what families draw: an array, or a named tuple of arrays (a mean and a precision).
Leading axes are draws, then components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Families = Mapping[str, Any]


def divergence_of_parts(
    families: Families, posterior: Any, prior: Any, prior_weight: float
) -> float:
    """Σ KL(q ‖ p^w) over the parts."""
    return float(
        sum(
            np.sum(family.divergence(posterior[name], prior[name], prior_weight))
            for name, family in families.items()
        )
    )


def check_parts(families: Families, posterior: Any) -> None:
    """Raise ``ValueError`` unless each part is a proper distribution."""
    for name, family in families.items():
        if not np.all(family.is_valid(posterior[name])):
            kind = type(family).__name__
            raise ValueError(f"{name} of the posterior must be a proper {kind} distribution.")


def draw_parts(
    families: Families, posterior: Any, n: int, rng: np.random.Generator
) -> dict[str, Any]:
    """n draws of each part, with shape [n, ...]."""
    return {name: family.sample(posterior[name], rng, n) for name, family in families.items()}


def entry(parameters: Any, index: int) -> Any:
    """One of several parameters: one draw, or one component."""
    if isinstance(parameters, dict):
        return {name: entry(part, index) for name, part in parameters.items()}
    if isinstance(parameters, tuple):
        return type(parameters)(*(part[index] for part in parameters))
    return parameters[index]


def arrays_of(parameters: Mapping[str, Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays of draws by name: those of a named tuple as ``part_field``."""
    for name, part in parameters.items():
        if isinstance(part, tuple):
            fields = getattr(part, "_fields", range(len(part)))
            yield from ((f"{name}_{field}", each) for field, each in zip(fields, part, strict=True))
        else:
            yield name, part


def emit(
    likelihood: Any,
    parameters: Any,
    labels: NDArray[np.int64],
    rng: np.random.Generator,
    like: Any = None,
) -> Any:
    """A row for each label, drawn by the likelihood from the parameters [K, ...] of its label."""
    rows: Any = None
    for label in np.unique(labels):
        here, parameter = np.flatnonzero(labels == label), entry(parameters, int(label))
        if like is None:
            drawn = likelihood.sample(parameter, rng, len(here))
        else:
            drawn = likelihood.sample_like(parameter, rng, like[here])
        if rows is None:
            rows = np.empty((len(labels), *drawn.shape[1:]), drawn.dtype)
        rows[here] = drawn
    return rows
