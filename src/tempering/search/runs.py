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
#: Steps after which a move is judged; a cooling takes three times as many.
STEPS = 4
#: A step is longer than the one before by this factor, while the bound rises.
STRIDE = 1.3
#: Share of a fresh start that is mixed into each step of a cooling.
PERTURBATION = 0.02
#: A step on some rows costs as much as this number of rows more.
STEP_ROWS = 500
#: Data on which axes of the statistics are tested for components.
FOUND_ROWS = 100


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
    inverse_temperature : float
        With less than 1, the run is cooled from there first.

    Examples
    --------
    >>> from tempering import Natural
    >>> from tempering.search import Candidate
    >>> Candidate(Natural(weights=[2.0, 3.0]), inverse_temperature=0.5).inverse_temperature
    0.5
    """

    posterior: Any
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
        data = self.batch.data
        # Workers of a cluster name the rows of a table that is here, too.
        return isinstance(data, np.ndarray) or (
            self.batch.named is None and hasattr(data, "__getitem__")
        )

    def components_found(self, seed: int) -> Components | None:
        """Return the components that a model has without declaring them, or None."""
        rng = np.random.default_rng(seed)
        try:
            with np.errstate(all="ignore"):
                return Components.found(self.model, self.source.sample(FOUND_ROWS, rng), rng)
        except (ValueError, ArithmeticError, IndexError):
            return None

    @property
    def scores_rows(self) -> bool:
        """True if steps on some rows give the gain of the bound of all data."""
        model = self.model
        return not model.provides("global_step") and model.families.keys() == model.prior().keys()

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
        self, posterior: Any, most: float, floor: float = -math.inf, patience: int = STEPS
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
        plain, stride = None, 1.0
        while True:
            step = algorithm.advance(state, self.batch)
            taken += 1
            gain = step.elbo - before
            if plain is not None and not gain > 0.0 and taken < most:
                # Back to where a step of its own length led, and on from there.
                state, plain = state._replace(posterior=plain), None
                stride, gain_before = 1.0, math.inf
                continue
            left = to_be_gained(gain, gain_before)
            if taken >= patience and (left < enough or step.elbo + HOPE * left < floor + enough):
                break
            if abs(gain) < algorithm.tolerance or taken >= most or not math.isfinite(step.elbo):
                break
            before, gain_before = step.elbo, gain
            longer = self._beyond(state.posterior, step.state.posterior, stride)
            stride = STRIDE if longer is None else STRIDE * stride
            plain, state = None, step.state
            if longer is not None:
                plain, state = state.posterior, state._replace(posterior=longer)
        self.spent += taken
        statistics = self.model.unpack_components(as_arrays(step.local.statistics))
        # Not λ of the last step, which may hold the components in another order than these.
        return Solution(step.elbo, self.posterior(state.posterior, statistics), statistics)

    def _beyond(self, before: Any, after: Any, stride: float) -> Any:
        """Return λ as far as a longer step leads; None where that is no λ of the model.

        Salakhutdinov and Roweis (2003), "Adaptive overrelaxed bound optimization methods", ICML:
        near an optimum, steps of coordinate ascent point the same way and fall geometrically.
        """
        if stride <= 1.0 or not isinstance(after, Natural) or self.model.provides("global_step"):
            return None
        longer = after + (stride - 1.0) * (after - before)
        try:
            self.model.check_posterior(longer)
        except (ValueError, np.linalg.LinAlgError):
            return None
        return longer if all(np.isfinite(part).all() for part in longer.values()) else None

    def cool(self, posterior: Any, inverse_temperature: float, rng: np.random.Generator) -> Any:
        """Cool λ to T = 1, perturbed at each step, and return it."""
        algorithm, s = self.algorithm, inverse_temperature
        steps = 3 * STEPS
        rate = s ** (-1.0 / steps)
        posterior, model = deepcopy(posterior), self.model
        some = self.source.sample(1000, rng)
        for _ in range(steps):
            solve = SolveShard(
                UNTEMPERED, Heat(inverse_temperature=s), model, model.expectations(posterior)
            )
            parts = [(part, None) for part in self.batch.shards(model.shard_size)]
            local = algorithm.executor.add_up(solve, parts)
            local = perturbed(local, model, some, Perturbation(PERTURBATION, 20), rng)
            target = model.prior() + local.statistics
            posterior = model.global_step(posterior, target, 1.0)
            s = min(1.0, s * rate)
        self.spent += steps
        return posterior

    def local_step(self, posterior: Any, rows: Any) -> Any:
        """Return the local step of some rows of the data, or of all with None."""
        batch, model = self.batch if rows is None else Batch(self.batch.data[rows]), self.model
        solve = SolveShard(UNTEMPERED, COLD, model, model.expectations(posterior))
        parts = [(part, None) for part in batch.shards(model.shard_size)]
        self.spent += (batch.size + STEP_ROWS) / (self.batch.size + STEP_ROWS)
        return self.algorithm.executor.add_up(solve, parts)

    def responsibilities(self, posterior: Any, components: Components) -> Array | None:
        """Return q(z) as a table [N, K], or None where the model has no such table.

        Data of several places, as sequences are, have the mean over these.
        """
        if not self.in_memory:
            return None
        model, k = self.model, components.n
        solve = SolveShard(UNTEMPERED, COLD, model, model.expectations(posterior), wanted="local")
        parts = [(part, None) for part in self.batch.shards(model.shard_size)]
        tables = [np.asarray(table) for table in self.algorithm.executor.map(solve, parts)]
        self.spent += 1.0
        if any(table.ndim < 2 or table.shape[-1] != k for table in tables):
            return None
        table = np.concatenate([table.reshape(len(table), -1, k).mean(axis=1) for table in tables])
        # Of sequences it may have a row for each of their rows.
        rows = len(table) == self.batch.size
        shares = rows and np.all(table >= 0.0) and np.allclose(table.sum(axis=1), 1.0, atol=1e-6)
        return table if shares else None

    def refine(
        self,
        best: Solution,
        rows: NDArray[np.intp] | None,
        start: Statistics,
        components: Components,
        before: Any,
        free: int | None = None,
    ) -> tuple[float, Statistics]:
        """Make some steps on the rows that a move concerns; all other q(z) stay as they are.

        Parameters
        ----------
        best : Solution
            Where the move starts.
        rows : array of int or None
            The data whose q(z) the move changes; None for all.
        start : dict of arrays
            Statistics that the move proposes.
        components : Components
            The components of the model.
        before : LocalStep
            The local step of these rows at the best.
        free : int, optional
            A component that is taken to be empty at the best.

        Returns
        -------
        gain : float
            What the bound gains.
        change : dict of arrays
            What the statistics of all data gain.
        """
        model = self.model
        mine = model.unpack_components(as_arrays(before.statistics))
        rest = {name: best.statistics[name] - mine[name] for name in mine}
        least = as_arrays(best.statistics)
        if free is not None:
            components.empty(rest, free)
            components.empty(least, free)
        value = self._value(before, least, best.posterior)
        bound_before, gain_before, bound, statistics = -math.inf, math.inf, -math.inf, least
        posterior = self.posterior(best.posterior, start)
        for step in range(STEPS):
            local = self.local_step(posterior, rows)
            mine = model.unpack_components(as_arrays(local.statistics))
            statistics = {name: rest[name] + mine[name] for name in rest}
            bound = self._value(local, statistics, posterior)
            gain = bound - bound_before
            left = to_be_gained(gain, gain_before)
            if gain < self.algorithm.tolerance or bound + HOPE * left < value:
                break
            if step < STEPS - 1:
                after = self.posterior(posterior, statistics)
                longer = self._beyond(posterior, after, STRIDE ** (step + 1) if step else 1.0)
                posterior = after if longer is None else longer
            gain_before, bound_before = gain, bound
        return float(bound - value), {name: statistics[name] - least[name] for name in statistics}

    def _value(self, local: Any, statistics: Statistics, posterior: Any) -> float:
        """Return the bound, up to what is the same for all q(z) of the rows of the step.

        The bound at the best λ given q(z) is H[q(z)] + E log h(x, z) + a(α + S) − a(α), where
        E log p(x, z | β) = E t(β) · t(x, z) + E log h(x, z) at the λ of the step. Where a is not
        known, it is the bound at this λ, and the step is one of all data.
        """
        model = self.model
        prior = model.prior()
        if not self.scores_rows:
            return local.energy + local.entropy - model.divergence(posterior)
        packed = model.pack_components(statistics)
        value = local.entropy + local.energy
        for name, family in model.families.items():
            expected = family.expected_statistics(posterior[name])
            value -= np.sum(expected * local.statistics[name])
            value += np.sum(family.log_normalizer(prior[name] + packed[name]))
        return float(value)


def to_be_gained(gain: float, gain_before: float) -> float:
    """Return what is left to gain if gains fall geometrically; infinite if they grow."""
    if gain <= 0.0:
        return 0.0
    if not gain < gain_before or gain_before == math.inf:
        return math.inf
    return gain**2 / (gain_before - gain)
