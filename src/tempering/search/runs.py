"""Runs of Algorithm 1 as a search makes them: at T = 1 or cooled, on all data or on some rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tempering.inference.engine import UNTEMPERED, Algorithm
from tempering.inference.executors import SolveShard
from tempering.inference.run import State
from tempering.inference.sources import Batch, Source
from tempering.models.base import Array, Model, start_of
from tempering.models.natural import Natural
from tempering.search.components import Components, Statistics
from tempering.storage.state import stored
from tempering.temperature import COLD, Heat, Perturbation
from tempering.temperature.perturbation import perturbed

#: A run is abandoned where this many times the gain that its last two steps promise is not enough.
HOPE = 3.0
#: Bounds are compared up to this many times the tolerance of a fit. What is left to gain then is
#: left to the last run of a search, from the best solution.
MARGIN = 100.0
#: Steps of a cooling, and share of a fresh start that is mixed into each of them.
COOLING_STEPS, PERTURBATION = 12, 0.02
#: Steps on the rows that a move concerns, at most.
ROW_STEPS = 6


@stored("search_solution")
class Solution(NamedTuple):
    """The state at the end of a run."""

    bound: float
    posterior: Any
    statistics: dict[str, Any]  # E_q[t(x, z)], summed over all data


class Candidate(NamedTuple):
    """A start that an operator proposes.

    Attributes
    ----------
    posterior : Natural
        λ to start from.
    rows : array of int, optional
        The data whose q(z) the move changes. Its first steps are made on these rows alone.
    inverse_temperature : float
        With less than 1, the run is cooled from there first.

    Examples
    --------
    >>> from tempering import Natural
    >>> from tempering.search import Candidate
    >>> Candidate(Natural(weights=[2.0, 3.0]), inverse_temperature=0.5).rows is None
    True
    """

    posterior: Any
    rows: NDArray[np.intp] | None = None
    inverse_temperature: float = 1.0


class Trial(Heat):
    """T = 1 in a run that learns no hyperparameters, so that its bound can be compared."""

    @property
    def revises(self) -> bool:
        return True


def as_arrays(statistics: Any) -> Statistics:
    """Return a copy of statistics as a dictionary of arrays."""
    return {name: np.array(part) for name, part in statistics.items()}


@dataclass
class Runs:
    """Runs of one model on the same data, and the passes that they took."""

    algorithm: Algorithm
    source: Source
    batch: Batch  # all data
    starts: Callable[[np.random.Generator], Any] | None = None
    spent: float = 0.0

    @property
    def model(self) -> Model:
        """The model, with what it has learned."""
        return self.algorithm.model

    @property
    def margin(self) -> float:
        """The difference from which one bound counts as better than another."""
        return MARGIN * self.algorithm.tolerance

    @property
    def in_memory(self) -> bool:
        """True if rows of the data can be indexed in this process."""
        return self.batch.named is None and hasattr(self.batch.data, "__getitem__")

    def fresh_start(self, rng: np.random.Generator) -> Any:
        """Return λ of a fresh start."""
        given = None if self.starts is None else self.starts(rng)
        if given is not None:
            return given
        return start_of(self.model, self.source, rng).posterior

    def posterior(self, like: Any, statistics: Statistics) -> Any:
        """Return the λ that the model makes of the statistics of all data."""
        statistics = self.model.pack_components(statistics)
        target = self.model.prior() + Natural(**statistics)
        return self.model.global_step(deepcopy(like), target, 1.0)

    def climb(
        self, posterior: Any, most: float, floor: float = -math.inf, patience: int = 3
    ) -> Solution:
        """Run at T = 1 until next to nothing is left to gain.

        Parameters
        ----------
        posterior : Natural
            λ to start from.
        most : float
            Number of passes after which the run ends in any case.
        floor : float
            The run is abandoned where its bound cannot rise above this.
        patience : int
            Number of passes before that is judged.
        """
        algorithm, enough = self.algorithm, self.margin
        state = State(deepcopy(posterior), Trial())
        before, gain_before, taken = -math.inf, math.inf, 0
        while True:
            step = algorithm.advance(state, self.batch)
            state, taken = step.state, taken + 1
            gain = step.elbo - before
            left = to_be_gained(gain, gain_before)
            if taken >= patience and (left < enough or step.elbo + HOPE * left < floor + enough):
                break
            if abs(gain) < algorithm.tolerance or taken >= most or not math.isfinite(step.elbo):
                break
            before, gain_before = step.elbo, gain
        self.spent += taken
        statistics = self.model.unpack_components(as_arrays(step.local.statistics))
        return Solution(step.elbo, state.posterior, statistics)

    def cool(self, posterior: Any, inverse_temperature: float, rng: np.random.Generator) -> Any:
        """Cool λ to T = 1, perturbed at each step, and return it."""
        algorithm, s = self.algorithm, inverse_temperature
        rate = s ** (-1.0 / COOLING_STEPS)
        posterior, model = deepcopy(posterior), self.model
        some = self.source.sample(1000, rng)
        for _ in range(COOLING_STEPS):
            solve = SolveShard(
                UNTEMPERED, Heat(inverse_temperature=s), model, model.expectations(posterior)
            )
            parts = [(part, None) for part in self.batch.shards(model.shard_size)]
            local = algorithm.executor.add_up(solve, parts)
            local = perturbed(local, model, some, Perturbation(PERTURBATION, 20), rng)
            target = model.prior() + local.statistics
            posterior = model.global_step(posterior, target, 1.0)
            s = min(1.0, s * rate)
        self.spent += COOLING_STEPS
        return posterior

    def local_step(self, posterior: Any, rows: Any) -> Any:
        """Return the local step of some rows of the data."""
        data, model = self.batch.data[rows], self.model
        solve = SolveShard(UNTEMPERED, COLD, model, model.expectations(posterior))
        parts = [(part, None) for part in Batch(data).shards(model.shard_size)]
        self.spent += data.shape[0] / self.batch.size
        return self.algorithm.executor.add_up(solve, parts)

    def responsibilities(self, posterior: Any, components: Components) -> Array | None:
        """Return q(z) as a table [N, K], or None where the model has no such table."""
        if not self.in_memory:
            return None
        model = self.model
        solve = SolveShard(UNTEMPERED, COLD, model, model.expectations(posterior), wanted="local")
        parts = [(part, None) for part in self.batch.shards(model.shard_size)]
        tables = self.algorithm.executor.map(solve, parts)
        self.spent += 1.0
        if any(np.ndim(table) != 2 or np.shape(table)[1] != components.n for table in tables):
            return None
        table = np.concatenate(tables)
        # Of sequences it has a row for each of their rows.
        rows = len(table) == self.batch.size
        shares = rows and np.all(table >= 0.0) and np.allclose(table.sum(axis=1), 1.0, atol=1e-6)
        return table if shares else None

    def refine(self, best: Solution, candidate: Candidate) -> tuple[float, Any]:
        """Make some steps on the rows that a move concerns; all other q(z) stay as they are.

        Returns
        -------
        gain : float
            What the bound gains; approximate for a model that does not declare its families.
        posterior : Natural
            λ at the end.
        """
        rows, model = candidate.rows, self.model
        before = self.local_step(best.posterior, rows)
        mine = model.unpack_components(as_arrays(before.statistics))
        rest = {name: best.statistics[name] - mine[name] for name in mine}
        least = self._value(before, best.posterior, best.statistics)
        posterior = candidate.posterior
        bound_before, gain_before, bound = -math.inf, math.inf, -math.inf
        for _ in range(ROW_STEPS):
            local = self.local_step(posterior, rows)
            mine = model.unpack_components(as_arrays(local.statistics))
            statistics = {name: rest[name] + mine[name] for name in rest}
            bound = self._value(local, posterior, statistics)
            gain = bound - bound_before
            posterior = self.posterior(posterior, statistics)
            left = to_be_gained(gain, gain_before)
            if gain < self.algorithm.tolerance or bound + HOPE * left < least:
                break
            gain_before, bound_before = gain, bound
        return float(bound - least), posterior

    def _value(self, local: Any, posterior: Any, statistics: Statistics) -> float:
        """Return the bound, up to what is the same for all q(z) of the rows of the step.

        The bound at the best λ given q(z) is H[q(z)] + a(α + S) − a(α) + Σ log h(x). Where a is not
        known, the energies of other rows are taken to stay as they are.
        """
        model = self.model
        prior = model.prior()
        if model.provides("global_step") or model.families.keys() != prior.keys():
            return local.energy + local.entropy - model.divergence(posterior)
        packed = model.pack_components(statistics)
        parts = (
            np.sum(family.log_normalizer(prior[name] + packed[name]))
            for name, family in model.families.items()
        )
        return local.entropy + float(sum(parts))


def to_be_gained(gain: float, gain_before: float) -> float:
    """Return what is left to gain if gains fall geometrically; infinite if they grow."""
    if gain <= 0.0:
        return 0.0
    if not gain < gain_before or gain_before == math.inf:
        return math.inf
    return gain**2 / (gain_before - gain)
