"""Natural parameters and statistics of a model: named arrays in one vector space.

And the parameters that families draw: an array, or a named tuple of arrays (a mean and a
precision). Leading axes of these are draws, then components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempering.storage.classes import stored

Array = NDArray[np.float64]


@stored("natural", take=dict, make=lambda parts: Natural(**parts))
class Natural(Mapping[str, Array]):
    """Natural parameters, or statistics, of a model: named arrays that add and scale together.

    Both live in one vector space, so that λ̂ = α + (N/B) Σ_i s_i E[t(x_i, z_i)] reads as it stands:

    >>> prior, statistics = Natural(heads=1.0, tails=1.0), Natural(heads=3.0, tails=0.0)
    >>> (prior + 2 * statistics).heads
    array(7.)
    """

    __slots__ = ("_parts",)

    def __init__(self, **parts: Any):
        self._parts = {name: np.asarray(part, dtype=float) for name, part in parts.items()}

    def __getitem__(self, name: str) -> Array:
        try:
            return self._parts[name]
        except KeyError:
            raise KeyError(f"no parameter {name!r} here; there are: {', '.join(self)}") from None

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_") or name not in self._parts:
            raise AttributeError(f"no parameter {name!r} here; there are: {', '.join(self)}")
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __add__(self, other: Natural) -> Natural:
        return Natural(**{name: part + other[name] for name, part in self.items()})

    def __mul__(self, factor: float) -> Natural:
        return Natural(**{name: factor * part for name, part in self.items()})

    __rmul__ = __mul__

    #: Or else a scalar of NumPy's would multiply it entry by entry, as if it were a list of names.
    __array_ufunc__ = None

    def __sub__(self, other: Natural) -> Natural:
        return Natural(**{name: part - other[name] for name, part in self.items()})

    def __reduce__(self):
        return partial(Natural, **self._parts), ()

    def __repr__(self) -> str:
        return f"Natural({', '.join(f'{name}={part.shape}' for name, part in self.items())})"


def check_like_prior(posterior: Any, prior: Natural) -> None:
    """Raise unless a posterior has the parts of the prior, with finite numbers."""
    if not isinstance(posterior, Natural) or posterior.keys() != prior.keys():
        raise ValueError(f"the posterior must be {prior}; got {posterior!r:.60}.")
    for name, part in prior.items():
        if posterior[name].shape != part.shape or not np.isfinite(posterior[name]).all():
            raise ValueError(
                f"{name} of the posterior must hold finite numbers of shape {part.shape}; got "
                f"shape {posterior[name].shape}."
            )


Families = Mapping[str, Any]


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
