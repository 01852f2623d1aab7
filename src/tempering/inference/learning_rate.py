"""Step sizes ρ_t of the global update, t = 1, 2, …"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LearningRate = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """ρ_t = ρ. With ρ = 1 and the whole data as the batch: coordinate ascent.

    >>> Constant(1.0)(7)
    1.0
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.rate <= 1.0:
            raise ValueError(f"rate must be above 0 and at most 1; got {self.rate}.")

    def __call__(self, t: int) -> float:
        return self.rate


@dataclass(frozen=True)
class RobbinsMonro:
    """ρ_t = (τ + t)^−κ (Hoffman et al., 2013).

    Parameters
    ----------
    delay : float
        τ >= 0: holds the first steps back.
    decay : float
        κ in (0.5, 1], for convergence.

    Examples
    --------
    >>> RobbinsMonro(delay=15.0, decay=0.5 + 0.25)(1)
    0.125
    """

    delay: float = 1024.0
    decay: float = 0.7

    def __post_init__(self) -> None:
        if not self.delay >= 0:
            raise ValueError(f"delay must be 0 or more; got {self.delay}.")
        if not 0.5 < self.decay <= 1.0:
            raise ValueError(f"decay must be above 0.5 and at most 1; got {self.decay}.")

    def __call__(self, t: int) -> float:
        return (self.delay + t) ** -self.decay
