"""What a run is made of: its state from step to step, all that it must remember, its result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tempering.inference.history import History
from tempering.models.base import LocalStep, Model
from tempering.storage.classes import stored
from tempering.temperature import Heat


@stored("state", check=lambda state: _check_counts(state))
class State(NamedTuple):
    """All that changes from one step to the next.

    Examples
    --------
    >>> from tempering import Natural
    >>> from tempering.inference import State
    >>> from tempering.temperature import Heat
    >>> State(Natural(counts=[1.0]), Heat()).step
    0
    """

    posterior: Any
    heat: Heat
    step: int = 0
    data_seen: int = 0
    solved: tuple[LocalStep, ...] = ()  # of the shards, where the next step starts from them


def _check_counts(state: State) -> None:
    if state.step < 0 or state.data_seen < 0:
        raise ValueError("step and data_seen must be 0 or more.")


class Run(NamedTuple):
    """One restart between two steps: with its model, all that it takes to go on from there."""

    state: State
    tempered_heat: Heat
    history: History
    previous: float = -math.inf  # the bound, when it was evaluated last
    cooled: bool = False  # whether the policy was left because its bound had settled
    converged: bool = False
    over: bool = False
    seconds: float = 0.0
    kept: State | None = None  # where a policy may go back to
    escapes: int = 0  # how often it was pushed off a saddle


@dataclass(frozen=True)
class Result:
    """A fitted posterior.

    Attributes
    ----------
    posterior : Natural
        λ, the natural parameters of q(β).
    elbo : float
        ELBO of the original model (T = 1) at the posterior, over all data.
    history : History
        Step by step.
    converged : bool
        Whether the ELBO rose by less than the tolerance at the end (batch inference only).
    heat : Heat
        The temperatures at the end of the tempered phase.
    model : Model
        The model with the hyperparameters that the best restart has learned.
    restart_elbos : list of float
        The ELBO that each restart reached; the posterior is that of the best.

    Examples
    --------
    >>> from tempering import Mixture, fit
    >>> from tempering.families import Dirichlet, Poisson
    >>> model = Mixture(Poisson(1), Dirichlet(1), [1.0], [1.0, 1.0])
    >>> result = fit(model, [[1], [2]])
    >>> result.posterior.components, round(result.elbo, 3), result.converged
    (array([[4., 3.]]), -3.296, True)
    """

    posterior: Any
    elbo: float
    history: History
    converged: bool
    heat: Heat
    model: Model
    restart_elbos: list[float] = field(default_factory=list)
