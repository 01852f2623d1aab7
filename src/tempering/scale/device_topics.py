"""Topics that stay on the device from step to step.

They are the posterior of a fit there: the engine blends them as it does those of the host, and a
callback or a checkpoint that looks at them gets a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from tempering.inference.portable import expect, expect_numbers, make_portable
from tempering.models.lda.topics import Topics
from tempering.scale.jax_functions import pad_topics

#: Steps that the host may be ahead of the device.
STEPS_AHEAD = 2


class Blending(NamedTuple):
    """The numbers of one global update; they travel to the device as one array."""

    learning_rate: float
    scale: float  # of the statistics
    prior: float  # η, tempered where the joint is


@dataclass(frozen=True)
class DeviceStatistics:
    """Σ_d s_d n_dv φ_dvk on the device, times a number: [n_words, padded topics]."""

    values: Any
    factor: float = 1.0

    def __mul__(self, factor: float) -> DeviceStatistics:
        return DeviceStatistics(self.values, factor * self.factor)

    __rmul__ = __mul__


class DeviceTopics:
    """λ on the device.

    Parameters
    ----------
    values : array [n_words, padded topics]
        λ, in the memory of the device or still on the host. Columns beyond ``n_topics`` fill up.
    n_topics : int
        K.
    prior : float
        η.
    unfinished : tuple of arrays
        What the last steps made, which the device may still be at.
    """

    def __init__(self, values: Any, n_topics: int, prior: float, unfinished: tuple[Any, ...] = ()):
        self.values = values
        self.n_topics = n_topics
        self.prior = prior
        self.unfinished = unfinished

    @classmethod
    def of(cls, topics: Topics, prior: float) -> DeviceTopics:
        """Topics of the host."""
        return cls(pad_topics(topics.parameters(), 1.0), topics.shape[1], prior)

    @cached_property
    def host(self) -> Topics:
        """The same topics on the host."""
        return Topics(self.parameters(), self.prior)

    @property
    def shape(self) -> tuple[int, int]:
        """(V, K)."""
        return self.values.shape[0], self.n_topics

    def parameters(self) -> np.ndarray:
        """λ, [V, K], on the host."""
        return np.ascontiguousarray(np.asarray(self.values)[:, : self.n_topics])

    def blend(self, target: Any, rate: float) -> DeviceTopics:
        """(1 − ρ) λ + ρ λ̂, begun on the device; waits for the step before the last."""
        statistics = target.statistics
        numbers = Blending(rate, statistics.factor, target.prior.concentration)
        values = compiled_blend()(self.values, statistics.values, np.array(numbers, np.float32))
        if len(self.unfinished) == STEPS_AHEAD:
            self.unfinished[0].block_until_ready()
        unfinished = (*self.unfinished[1 - STEPS_AHEAD :], values)
        return DeviceTopics(values, self.n_topics, self.prior, unfinished)

    def __getattr__(self, name: str) -> Any:
        """All else that topics of the host offer."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.host, name)


@cache
def compiled_blend() -> Any:
    """(λ, statistics, numbers) → λ."""
    import jax

    @jax.jit
    def blend(topics, statistics, numbers):
        rate, scale, prior = numbers
        return (1.0 - rate) * topics + rate * (prior + scale * statistics)

    return blend


def pack_device_topics(topics: DeviceTopics) -> dict[str, Any]:
    return {"parameters": topics.parameters(), "prior": topics.prior}


def unpack_device_topics(parts: dict[str, Any]) -> DeviceTopics:
    parameters = parts["parameters"]
    expect(isinstance(parameters, np.ndarray) and parameters.ndim == 2, "topics must be a table.")
    expect_numbers("topics", parameters, parameters.shape, "float32")
    return DeviceTopics(pad_topics(parameters, 1.0), parameters.shape[1], float(parts["prior"]))


make_portable(DeviceTopics, "device_topics", pack_device_topics, unpack_device_topics)
