"""Natural parameters and statistics of a model: named arrays in one vector space; and local steps,
which bring the statistics.

And the parameters that families draw: an array, or a named tuple of arrays (a mean and a
precision). Leading axes of these are draws, then components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tempering.storage.state import stored

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

    def replace(self, **parts: Any) -> Natural:
        """The same, but for these parts."""
        return Natural(**{**self._parts, **parts})

    def __reduce__(self):
        return _natural, (self._parts,)

    def __repr__(self) -> str:
        return f"Natural({', '.join(f'{name}={part.shape}' for name, part in self.items())})"


def _natural(parts: dict[str, Any]) -> Natural:
    return Natural(**parts)


@stored("local_terms")
class LocalTerms(NamedTuple):
    """The parts of the ELBO that the local variables of some data hold."""

    energies: Array  # E_q[log p(x_i, z_i | β)] of each datum, not tempered
    entropy: float  # Σ_i H(q(z_i)) and every other local term that is not tempered


class LocalStep:
    """What the local variables of some data contribute to the global update and to the ELBO.

    Two of them add up, so a batch may be cut into shards that threads or workers solve.

    Parameters
    ----------
    statistics : Natural
        Σ_i s_i E_q[t(x_i, z_i)], weighted by the inverse temperatures.
    energies : array [n]
        E_q[log p(x_i, z_i | β)], not tempered.
    entropy : float
        Σ_i H(q(z_i)) and every other local term that is not tempered.
    inverse_temperature : float or array [n]
        The s_i that the data were solved with.
    bound : float
        What the local temperatures q(T_i) add to the tempered ELBO (0 without them).
    local : array [n, ...], optional
        q(z) of these data, for ``fit(..., keep_local=True)`` and for a step that continues. Sums of
        steps drop it, so that only that of one shard is in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import LocalStep, Natural
    >>> first = LocalStep(Natural(counts=[1.0, 0.0]), np.array([-0.5]), 0.1, 1.0)
    >>> second = LocalStep(Natural(counts=[0.0, 2.0]), np.array([-0.7, -0.3]), 0.2, 1.0)
    >>> both = first + second
    >>> both.statistics.counts, both.energy, both.n
    (array([1., 2.]), -1.5, 3)
    """

    #: q(z), where the model gives it.
    local: Any = None

    def __init__(
        self,
        statistics: Any,
        energies: Array,
        entropy: float,
        inverse_temperature: float | Array,
        bound: float = 0.0,
        local: Any = None,
    ):
        if local is not None:
            self.local = local
        self.statistics = statistics
        self.inverse_temperature = inverse_temperature
        self.bound = bound
        energies = np.asarray(energies)
        if energies.ndim != 1:
            raise ValueError(f"energies must be [n], one a datum; got shape {energies.shape}.")
        if not isinstance(entropy, float) and np.ndim(entropy) != 0:
            raise ValueError(
                f"entropy must be one number, summed over the data; got shape {np.shape(entropy)}."
            )
        # A class of one's own may do as well, if it adds and scales; these do not.
        if type(statistics) in (dict, list, tuple):
            raise ValueError(f"statistics must be a Natural; got a {type(statistics).__name__}.")
        self.n = len(energies)
        self.terms = LocalTerms(energies, entropy)

    @property
    def energies(self) -> Array:
        """E_q[log p(x_i, z_i | β)] of each datum."""
        return self.terms.energies

    @property
    def entropy(self) -> float:
        """Σ_i H(q(z_i)) and every other local term that is not tempered."""
        return self.terms.entropy

    @property
    def energy(self) -> float:
        """Σ_i E_q[log p(x_i, z_i | β)]."""
        return float(np.sum(self.energies))

    @property
    def tempered_energy(self) -> float:
        """Σ_i s_i E_q[log p(x_i, z_i | β)]."""
        return float(np.sum(self.inverse_temperature * self.energies))

    @property
    def mean_inverse_temperature(self) -> float:
        """The mean of s_i over the data."""
        return float(np.mean(self.inverse_temperature))

    def reweighted(self, inverse_temperature: float) -> Self:
        """The same q(z), its statistics weighted with another (common) inverse temperature."""
        if np.ndim(self.inverse_temperature):
            raise ValueError("Data with temperatures of their own have no common one to change.")
        changed = copy(self)
        ratio = inverse_temperature / float(self.inverse_temperature)
        changed.statistics = ratio * self.statistics
        changed.inverse_temperature = inverse_temperature
        return changed

    def __add__(self, other: LocalStep) -> LocalStep:
        return LocalStep(
            self.statistics + other.statistics,
            np.concatenate([self.energies, other.energies]),
            self.entropy + other.entropy,
            join_temperatures(self, other),
            self.bound + other.bound,
        )


#: What is stored of a local step, beside what its class adds.
LOCAL_STEP = {
    "statistics": Natural,
    "terms": LocalTerms,
    "inverse_temperature": float | Array,
    "bound": float,
    "n": int,
}
stored("local_step", constructed=False, attributes={**LOCAL_STEP, "local": Any})(LocalStep)


def join_temperatures(first: LocalStep, second: LocalStep) -> float | Array:
    """The inverse temperatures of two steps as one: a common one stays a number."""
    mine, theirs = first.inverse_temperature, second.inverse_temperature
    if np.ndim(mine) == 0 and np.ndim(theirs) == 0:
        return mine
    return np.concatenate(
        [np.broadcast_to(s, step.n) for s, step in ((mine, first), (theirs, second))]
    )


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


def permuted(parts: Mapping[str, Any], axes: Mapping[str, Any], order: Any) -> dict[str, Array]:
    """Return parts with their components in another order, along the axes that hold them.

    >>> permuted({"moves": np.array([[1, 2], [3, 4]])}, {"moves": (0, 1)}, [1, 0])["moves"].tolist()
    [[4, 3], [2, 1]]
    """
    changed = dict(parts)
    for name in axes.keys() & parts.keys():
        for axis in np.atleast_1d(axes[name]):
            changed[name] = np.take(changed[name], order, axis=axis)
    return changed


def exchangeable(prior: Natural, axes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the axes if the prior is the same for every order of the components, else nothing."""
    sizes = {prior[name].shape[axis] for name in axes for axis in np.atleast_1d(axes[name])}
    n = sizes.pop() if len(sizes) == 1 else 0
    # These two generate all orders.
    orders = np.roll(np.arange(n), 1), np.r_[1, 0, np.arange(2, n)][:n]
    same = n > 1 and all(
        np.array_equal(part, prior[name])
        for order in orders
        for name, part in permuted(prior, axes, order).items()
    )
    return axes if same else {}


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
