"""Arithmetic on the exchangeable components of a model's statistics.

A model declares along which axes of its statistics the components lie: ``{"weights": 0, "means":
0}``, or ``(0, 1)`` for a transition matrix. A search moves components by these axes alone, so it
needs no other knowledge of the model. All functions take statistics as plain dictionaries of
arrays, and those that change them do so in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from tempering.inference.sources import ArraySource
from tempering.models.base import Array, Model, start_of
from tempering.models.natural import Natural, permuted

Statistics = dict[str, Array]


@dataclass(frozen=True)
class Components:
    """K exchangeable components, and where they lie in the statistics.

    Attributes
    ----------
    axes : mapping of str to tuple of int
        The axes of each part.
    n : int
        Number of components K.
    """

    axes: Mapping[str, tuple[int, ...]]
    n: int

    @classmethod
    def of(cls, model: Model) -> Components | None:
        """Return the components that a model declares, or None without any."""
        if not isinstance(model.components, Mapping):
            raise ValueError(
                f"components of {type(model).__name__} must map parts of the statistics to axes, "
                f"such as {{'weights': 0}}; got {type(model.components).__name__}."
            )
        prior = model.unpack_components({name: np.asarray(p) for name, p in model.prior().items()})
        shapes = {name: part.shape for name, part in prior.items()}
        axes: dict[str, tuple[int, ...]] = {}
        for name, axis in model.components.items():
            along = axis if isinstance(axis, tuple) else (axis,)
            # With a global step of its own, λ may have parts that the statistics have not.
            known = name in shapes or model.provides("global_step")
            ndim = len(shapes.get(name, ()))
            right = all(isinstance(a, int) and (name not in shapes or a < ndim) for a in along)
            if not (known and right):
                parts = ", ".join(f"{part!r} of shape {shape}" for part, shape in shapes.items())
                raise ValueError(
                    f"components of {type(model).__name__} must map parts of the statistics to "
                    f"axes, whole numbers; got {name!r}: {axis!r}, and the parts are {parts}."
                )
            axes[name] = along
        axes = {name: along for name, along in axes.items() if name in shapes}
        sizes = {shapes[name][axis] for name, along in axes.items() for axis in along}
        if not sizes:
            return None
        if len(sizes) > 1:
            raise ValueError(
                f"components of {type(model).__name__} must name axes of one length; "
                f"got {dict(model.components)} with lengths {sorted(sizes)}."
            )
        n = sizes.pop()
        return cls(axes, n) if n > 1 else None

    @classmethod
    def found(cls, model: Model, data: Any, rng: np.random.Generator) -> Components | None:
        """Return the components that a model has without declaring them, or None.

        Axes of one length are those of components if every order of them leaves the local step of
        some data, and the divergence, as they are.
        """
        prior = model.prior()
        posterior = start_of(model, ArraySource(data), rng).posterior
        if not (isinstance(prior, Natural) and isinstance(posterior, Natural)):
            return None
        if {n: p.shape for n, p in prior.items()} != {n: p.shape for n, p in posterior.items()}:
            return None
        places = [(name, axis) for name, part in prior.items() for axis in range(part.ndim)]
        step = model.local_step(data, model.expectations(posterior), 1.0)
        here = step.energies, step.statistics, model.divergence(posterior)
        for k in sorted({prior[name].shape[axis] for name, axis in places} - {1}, reverse=True):
            along = [place for place in places if prior[place[0]].shape[place[1]] == k]
            order, drawn = np.arange(k), rng.permutation(k)
            order[drawn] = np.roll(drawn, 1)  # no component stays in its place
            for chosen in _subsets(along):
                axes = {name: tuple(a for n, a in chosen if n == name) for name, _ in chosen}
                there = Natural(**permuted(posterior, axes, order))
                if any(np.array_equal(there[name], posterior[name]) for name in axes):
                    continue
                try:
                    step = model.local_step(data, model.expectations(there), 1.0)
                    divergence = model.divergence(there)
                except (ValueError, ArithmeticError, IndexError):
                    continue  # λ with a covariance in another order, say
                expected = permuted(here[1], axes, order)
                if (
                    np.allclose(step.energies, here[0], rtol=1e-8)
                    and np.isclose(divergence, here[2], rtol=1e-8)
                    and all(_alike(step.statistics[name], part) for name, part in expected.items())
                ):
                    return cls(axes, k)
        return None

    def views(self, statistics: Statistics) -> list[Array]:
        """Return the parts with the component as first axis, once for each of their axes."""
        return [
            np.moveaxis(statistics[name], axis, 0)
            for name, along in self.axes.items()
            for axis in along
        ]

    def masses(self, statistics: Statistics) -> Array:
        """Return the share of each component in the statistics, [K], which sum to 1."""
        total = np.zeros(self.n)
        for view in self.views(statistics):
            size = np.abs(view).reshape(self.n, -1).sum(axis=1)
            total += size / max(size.sum(), 1e-300)
        return total / max(total.sum(), 1e-300)

    def empty(self, statistics: Statistics, out: int, into: int | None = None) -> None:
        """Set component ``out`` to nothing, or add it to component ``into``."""
        for view in self.views(statistics):
            if into is not None:
                view[into] += view[out]
            view[out] = 0.0

    def halve(self, statistics: Statistics, component: int, out: int) -> None:
        """Share a component equally between its own place and ``out``."""
        for view in self.views(statistics):
            view[component] *= 0.5
            view[out] = view[component]

    def lean(self, statistics: Statistics, place: int, sample: Statistics, component: int) -> None:
        """Give the component at a place the direction of a sample's, with the mass that it has."""
        for name, along in self.axes.items():
            if len(along) != 1 or statistics[name].ndim == 1:
                continue
            mine = np.moveaxis(statistics[name], along[0], 0)
            theirs = np.moveaxis(np.asarray(sample[name]), along[0], 0)[component]
            size = np.abs(theirs).sum()
            if size > 1e-9:
                mine[place] = theirs * (np.abs(mine[place]).sum() / size)

    def take_over(
        self,
        statistics: Statistics,
        places: NDArray[np.intp],
        other: Statistics,
        matched: NDArray[np.intp],
    ) -> None:
        """Replace the components at some places by the matched ones of another solution."""
        for name, along in self.axes.items():
            mine, theirs = statistics[name], other[name]
            for axis in along:
                theirs = np.take(theirs, matched, axis=axis)
            for axis in along:
                np.moveaxis(mine, axis, 0)[places] = np.moveaxis(theirs, axis, 0)[places]

    def distances(self, model: Model, one: Any, two: Any) -> Array:
        """Return how far the components of two solutions are apart, [K, K].

        By the symmetric Kullback-Leibler divergence of their families, where the model declares
        them; otherwise by the distance of their normalised natural parameters.
        """
        total = np.zeros((self.n, self.n))
        for name, along in self.axes.items():
            if len(along) != 1 or np.ndim(one.statistics[name]) == 1:
                continue
            family = model.families.get(name)
            if family is not None and name in one.posterior:
                mine, theirs = (
                    np.moveaxis(np.asarray(p.posterior[name]), along[0], 0) for p in (one, two)
                )
                if _along_components(family, mine):
                    total += _divergences(family, mine, theirs)
                    continue
            mine, theirs = (
                np.moveaxis(p.statistics[name], along[0], 0).reshape(self.n, -1) for p in (one, two)
            )
            mine, theirs = (
                part / (np.abs(part).sum(axis=1, keepdims=True) + 1e-300) for part in (mine, theirs)
            )
            total += np.linalg.norm(mine[:, None] - theirs[None], axis=2)
        return total

    def match(self, distances: Array) -> NDArray[np.intp]:
        """Return the component of the second solution for each of the first, [K]."""
        return linear_sum_assignment(distances)[1]


def _subsets(places: list[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yield sets of all but a few places, the largest first."""
    for size in range(len(places), max(0, len(places) - 3), -1):
        yield from combinations(places, size)


def _alike(one: Array, two: Array) -> bool:
    return np.allclose(one, two, rtol=1e-6, atol=1e-8 * (1.0 + np.abs(two).max()))


def _along_components(family: Any, part: Array) -> bool:
    """Return whether each component has separate distributions of the family."""
    axes = (family.axes,) if isinstance(family.axes, int) else family.axes
    return part.ndim > len(axes)


def _divergences(family: Any, mine: Array, theirs: Array) -> Array:
    """KL in both directions, [K, K], summed over what else a component has."""
    a, b = mine[:, None], theirs[None]
    with np.errstate(all="ignore"):
        both = family.divergence(a, b) + family.divergence(b, a)
    both = np.asarray(both).reshape(len(mine), len(theirs), -1).sum(axis=2)
    return np.nan_to_num(both, nan=1e300, posinf=1e300)
