"""Local variational tempering (LVT): each datum has a temperature of its own.

    p(x_i, z_i | β, s) = p(x_i, z_i | β)^s / c_i(s),
    q(T_i = T_m) ∝ π_m exp{ s_m ℓ_i − log c_i(s_m) },

with ℓ_i = E_q[log p(x_i, z_i | β)] and c_i(s) the normaliser under the current posterior. The
global update weights each datum by E_q[1/T_i] (Section 3.4 of Mandt et al., 2016).
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tempering.models.arguments import check_choice, check_number, check_whole
from tempering.models.base import LocalStep, Model
from tempering.storage.state import stored
from tempering.temperature.grid import GridPolicy, even_inverse_temperatures, weigh
from tempering.temperature.policy import Heat, Progress, Surroundings


@dataclass(frozen=True, eq=False)
class LocalHeat(Heat):
    """The temperatures, and the common factor of all 1/T_i while they are damped."""

    level: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.level, "level", "above 0 and at most 1", above=0, most=1)


@stored("local_tempering")
@dataclass(frozen=True, eq=False)
class LocalTempering(GridPolicy[LocalHeat]):
    """Learn a temperature for each datum.

    Parameters
    ----------
    inverse_temperatures : array [M]
        The grid of 1/T. By default 100 values evenly spaced in (0, 1].
    prior : array [M], optional
        π, the prior over the grid; uniform by default.
    formula : {"calibrated", "paper"}
        "paper" is Eq. 11 as printed, with 1/T_m in front of the whole exponent. It drives every
        temperature to its maximum, and is kept for the record.
    max_alternations : int
        How often q(z_i) and q(T_i) are updated in turn.
    tolerance : float
        Largest change of any E[1/T_i] that ends the alternation.
    damping : float
        Time constant, in passes over the data, with which a common factor of all E[1/T_i] rises to
        1 from the prior's mean; 0 for no such factor, which makes each update exact coordinate
        ascent. Undamped, data that are typical of a poor fit have T_i near 1 at once, and nothing
        is tempered.
    fraction : float or None
        Part of the planned run after which T_i = 1; None leaves the temperatures alone.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import LocalTempering, Mixture, fit
    >>> from tempering.families import Dirichlet, IsotropicGaussian
    >>> data = np.append(np.random.default_rng(0).normal(size=200), 8.0)[:, None]  # one outlier
    >>> model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(1), [1.0], [0.0, 1.0])
    >>> result = fit(model, data, temperature=LocalTempering(), seed=0)
    >>> int(np.argmin(result.heat.inverse_temperature))
    200
    """

    inverse_temperatures: ArrayLike = field(default_factory=even_inverse_temperatures)
    prior: ArrayLike | None = None
    formula: Literal["calibrated", "paper"] = "calibrated"
    max_alternations: int = 10
    tolerance: float = 1e-3
    damping: float = 0.0
    fraction: float | None = 2 / 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.formula, "formula", "calibrated", "paper")
        check_number(self.tolerance, "tolerance", "0 or positive", least=0)
        check_whole(max_alternations=self.max_alternations)

    def begin(self, model: Model, n_data: int, rng: np.random.Generator) -> LocalHeat:
        model.require_learned_temperatures()
        grid, prior = self._grid()
        return LocalHeat(inverse_temperature=float(prior @ grid))

    def cool(self, heat: LocalHeat, progress: Progress) -> LocalHeat:
        length = self.length(progress)
        if progress.passes >= length:
            return LocalHeat(finished=True)
        if not self.damping:
            return heat
        grid, prior = self._grid()
        risen = 1.0 - (1.0 - float(prior @ grid)) * math.exp(-progress.passes / self.damping)
        # A line that reaches 1 with the end of the tempered part: no jump is left for it.
        return replace(heat, level=max(risen, progress.passes / length))

    def solve(
        self,
        heat: LocalHeat,
        model: Model,
        data: Any,
        expectations: Any,
        rows: slice,
        before: LocalStep | None = None,
    ) -> LocalStep:
        """Alternate q(z_i) and q(T_i), ending with q(z_i)."""
        grid, prior = self._grid()
        power = grid if self.formula == "paper" else 1.0
        remembered = heat.inverse_temperature
        s = remembered[rows] if isinstance(remembered, np.ndarray) else float(remembered)
        begun = replace(heat, inverse_temperature=s)
        local = super().solve(begun, model, data, expectations, rows, before)
        for _ in range(self.max_alternations):
            terms = model.temperature_terms(
                local, expectations, grid, data, self.formula, shared=False
            )
            _, learned, bound = weigh(terms.energies, terms.log_normalizers, grid, prior, power)
            damped = heat.level * learned
            change = np.max(np.abs(damped - s), initial=0.0)
            s = damped
            exact = terms.exact and heat.level == 1.0
            local = model.continue_local_step(local, data, expectations, s)
            local.bound = float(np.sum(bound)) if exact else math.nan
            if change < self.tolerance:
                break
        return local

    def update(
        self, heat: LocalHeat, local: LocalStep, surroundings: Surroundings
    ) -> tuple[LocalStep, LocalHeat]:
        """With the whole data as the batch, the next step starts from these temperatures."""
        if surroundings.scale == 1.0:
            heat = replace(heat, inverse_temperature=local.inverse_temperature)
        return local, heat

    def reads_energies(self, heat: LocalHeat) -> bool:
        """Not here: local temperatures were learned with their data."""
        return False
