"""The result of a search, and its trail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tempering.inference.run import Result
from tempering.storage.state import stored


@stored("search_trial")
class Trial(NamedTuple):
    """One round of a search.

    Attributes
    ----------
    operator : str
        Where the run started: "plain" for plain inference, otherwise the name of an operator.
    elbo : float
        The bound that the run reached; NaN where no start was worth a run.
    passes : float
        Passes over the data that the round took, its other starts included.
    cpu_seconds : float
        CPU time that the round took.
    accepted : bool
        Whether it became the best solution.

    Examples
    --------
    >>> from tempering.search import Trial
    >>> Trial("swap", -1234.5, passes=12.0, cpu_seconds=0.1, accepted=True).operator
    'swap'
    """

    operator: str
    elbo: float
    passes: float
    cpu_seconds: float
    accepted: bool


@dataclass(frozen=True, repr=False)
class SearchResult(Result):
    """The best solution of a search, and the trail that led to it.

    It has all that a :class:`~tempering.inference.Result` has. The history is that of plain
    inference, followed by that of the last run, from the best solution.

    Attributes
    ----------
    trail : sequence of Trial
        All rounds, the first of which is plain inference.
    agreement : int
        Number of fresh starts that reached the best optimum, too. With none, another optimum may
        well be better; search longer.

    Examples
    --------
    >>> from tempering import Mixture, search
    >>> from tempering.families import Dirichlet, Poisson
    >>> model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    >>> result = search(model, [[1], [2], [20], [22]], budget=3)
    >>> result.trail[0].operator, len(result.trail) > 1
    ('plain', True)
    """

    trail: Sequence[Trial] = field(default_factory=list)
    agreement: int = 0

    def __repr__(self) -> str:
        best = [
            trial.operator for trial in self.trail if trial.accepted and trial.operator != "last"
        ]
        row = (
            f"{len(self.trail)} runs, {self.passes:,.0f} passes; best by {best[-1]}; "
            f"{self.agreement} fresh starts agree"
        )
        return f"{super().__repr__()}\n{'search':13}{row}"

    @property
    def passes(self) -> float:
        """Passes over the data in all."""
        return float(sum(trial.passes for trial in self.trail))

    def summary(self) -> str:
        """Return a table of the operators: rounds, passes, and what they found.

        Examples
        --------
        >>> from tempering import Mixture, search
        >>> from tempering.families import Dirichlet, Poisson
        >>> model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
        >>> result = search(model, [[1], [2], [20], [22]], budget=3, progress=False)
        >>> print(result.summary().splitlines()[0])
        operator  rounds  passes  accepted       best ELBO
        """
        lines = [f"{'operator':10}{'rounds':>6}{'passes':>8}{'accepted':>10}{'best ELBO':>16}"]
        for name in dict.fromkeys(trial.operator for trial in self.trail):
            own = [trial for trial in self.trail if trial.operator == name]
            reached = [trial.elbo for trial in own if np.isfinite(trial.elbo)]
            best = f"{max(reached):,.1f}" if reached else ""
            passes, accepted = sum(t.passes for t in own), sum(t.accepted for t in own)
            lines.append(f"{name:10}{len(own):6}{passes:8.0f}{accepted:10}{best:>16}")
        return "\n".join(lines)
