"""From the ``tempering`` argument of an estimator to a temperature policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tempering.temperature import (
    Annealing,
    LocalTempering,
    TemperaturePolicy,
    Untempered,
    VariationalTempering,
)

Tempering = TemperaturePolicy | str | None

PolicyNames = Mapping[str, Callable[[], TemperaturePolicy]]

DEFAULTS: PolicyNames = {
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
