"""Natural parameters and statistics of a model: named arrays in one vector space."""

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
