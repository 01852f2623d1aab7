"""What a local step leaves behind: statistics, energies and entropy, which add up over shards."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from tempering.models.natural import Array, Natural
from tempering.storage.classes import stored


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
        if np.ndim(energies) != 1:
            raise ValueError(f"energies must be [n], one a datum; got shape {np.shape(energies)}.")
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


def join_temperatures(first: LocalStep, second: LocalStep) -> float | Array:
    """The inverse temperatures of two steps as one: a common one stays a number."""
    mine, theirs = first.inverse_temperature, second.inverse_temperature
    if np.ndim(mine) == 0 and np.ndim(theirs) == 0:
        return mine
    return np.concatenate(
        [np.broadcast_to(s, step.n) for s, step in ((mine, first), (theirs, second))]
    )
