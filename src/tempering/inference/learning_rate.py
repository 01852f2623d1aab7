"""Step sizes ρ_t of the global update, t = 1, 2, …"""

from collections.abc import Callable
from dataclasses import dataclass

from tempering.models.arguments import check_number

LearningRate = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """ρ_t = ρ. With ρ = 1 and the whole data as the batch: coordinate ascent.

    >>> Constant(1.0)(7)
    1.0
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.rate, "rate", "above 0 and at most 1", above=0, most=1)

    def __call__(self, t: int) -> float:
        return self.rate


@dataclass(frozen=True)
class RobbinsMonro:
    """ρ_t = (τ + t)^−κ (Hoffman et al., 2013).

    Parameters
    ----------
    delay : float
        τ >= 0: makes the first steps smaller.
    decay : float
        κ in [0.5, 1]; above 0.5, for convergence.

    Examples
    --------
    >>> RobbinsMonro(delay=15.0, decay=0.5 + 0.25)(1)
    0.125
    """

    delay: float = 1024.0
    decay: float = 0.7

    def __post_init__(self) -> None:
        check_number(self.delay, "delay", "0 or more", least=0)
        check_number(self.decay, "decay", "from 0.5 to 1", least=0.5, most=1)

    def __call__(self, t: int) -> float:
        return (float(self.delay) + t) ** -self.decay


@dataclass(frozen=True)
class Settling:
    """ρ_t of another rule up to a step; from there on λ is the mean of what the steps find.

    With the step size ρ, λ remembers the last 1/ρ steps. From the step ``start`` on it remembers
    them all: 1/ρ grows by 1 a step. What is random in single steps cancels out.

    Parameters
    ----------
    rule : callable
        ρ_t up to ``start``.
    start : int
        The last step of the rule, at least 1.

    Examples
    --------
    >>> rates = Settling(Constant(0.1), start=100)
    >>> rates(100), rates(101), rates(110)
    (0.1, 0.09090909090909091, 0.05)
    """

    rule: LearningRate
    start: int

    def __post_init__(self) -> None:
        check_number(self.start, "start", "at least 1", least=1)

    def __call__(self, t: int) -> float:
        if t <= self.start:
            return self.rule(t)
        return 1.0 / (1.0 / self.rule(self.start) + t - self.start)
