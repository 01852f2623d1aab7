"""Parameters that all estimators have: what they may be, and what they stand for."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from tempering.inference.executors import Executor
from tempering.models.arguments import MOST_THREADS
from tempering.temperature import (
    AdaptiveTempering,
    Annealing,
    LocalTempering,
    TemperaturePolicy,
    Untempered,
    VariationalTempering,
)

Tempering = TemperaturePolicy | str | None

PolicyNames = Mapping[str, Callable[[], TemperaturePolicy]]

DEFAULTS: PolicyNames = {
    "adaptive": AdaptiveTempering,
    "annealing": Annealing,
    "variational": VariationalTempering,
    "local": LocalTempering,
}


def as_policy(tempering: Tempering, names: PolicyNames = DEFAULTS) -> TemperaturePolicy:
    """A policy object as it is, the policy of a name; None is T = 1 throughout."""
    if tempering is None:
        return Untempered()
    if isinstance(tempering, TemperaturePolicy):
        return tempering
    if isinstance(tempering, str) and tempering in names:
        return names[tempering]()
    raise ValueError(
        f"tempering must be None, one of {', '.join(map(repr, names))}, or a policy such as "
        f"tempering.Annealing(...); got {tempering!r}."
    )


class _Whole(Interval):
    """A whole number, which True is not: NumPy takes it for none."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and super().is_satisfied_by(val)


#: How many of something, at least one.
WHOLE = _Whole(Integral, 1, None, closed="left")

#: A number above 0.
POSITIVE = Interval(Real, 0, None, closed="neither")

#: A number that is 0 or above.
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")

#: So many components are never refused.
FEW_COMPONENTS = 1000

#: Data of a stream at most: no stream is longer, and statistics scaled to it stay within float32.
LARGEST_TOTAL = 1e15

#: Threads: so many; or, as in joblib, -1 for one a core, -2 for one less, and so on.
N_JOBS = [
    Interval(Integral, 1, MOST_THREADS, closed="both"),
    Interval(Integral, None, -1, closed="right"),
    None,
]

#: What the parameters may be that all estimators have which run the engine.
SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [WHOLE],
    "tempering": [str, TemperaturePolicy, None],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "n_init": [WHOLE],
    "total_samples": [Interval(Real, 1, LARGEST_TOTAL, closed="both"), None],
    "backend": [StrOptions({"cpu", "auto", "jax", "gpu"})],
    "n_jobs": N_JOBS,
    "executor": [Executor, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def check_n_components(n_components: int, n_data: float, what: str) -> None:
    """Raise ``ValueError`` if components outnumber what they are to be learned from."""
    most = max(FEW_COMPONENTS, int(n_data))
    if n_components > most:
        raise ValueError(
            f"n_components={n_components} is more than the {n_data:,.0f} {what}: most would hold "
            f"nothing, but take memory and time. Ask for {most} at most."
        )
