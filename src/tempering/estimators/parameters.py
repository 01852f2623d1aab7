"""Parameters that all estimators have: what they may be, and what they stand for."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import get_annotations
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from tempering.gpu.jax_device import Backend
from tempering.inference.executors import Executor
from tempering.models.arguments import MOST_THREADS, as_numbers
from tempering.models.base import Array
from tempering.temperature import (
    AdaptiveTempering,
    Annealing,
    LocalTempering,
    TemperaturePolicy,
    Untempered,
    VariationalTempering,
    schedules,
)

Tempering = str | TemperaturePolicy | None

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


def cooling(temperature: float, passes: float, planned: float) -> Callable[[], Annealing]:
    """Down from a temperature, linearly in 1/T, in so many passes or half of those planned."""
    schedule = schedules.linear_inverse(temperature)
    return lambda: Annealing(schedule, passes=min(float(passes), planned / 2))


class CountInterval(Interval):
    """Integers from ``least``, booleans excepted, that a C integer of any machine can hold."""

    def __init__(self, least: int, most: int = 2**31 - 1):
        super().__init__(Integral, least, most, closed="both")

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and super().is_satisfied_by(val)


# Types of parameters, with what scikit-learn checks before a fit.
Count = Annotated[int, CountInterval(1)]
CountFromZero = Annotated[int, CountInterval(0)]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
Auto = Literal["auto"]
NotNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Decay = Annotated[float, Interval(Real, 0.5, 1, closed="right")]
# Of a stream: none is longer, and statistics scaled to it stay within float32.
Total = Annotated[float, Interval(Real, 1, 1e15, closed="both")]
Numbers = Annotated[ArrayLike, "array-like"]
Flag = Annotated[bool, "boolean"]
RandomState = Annotated[Any, "random_state"]
Verbose = Annotated[int, "verbose"]
#: Threads: so many; or, as in joblib, -1 for one a core, -2 for one less, and so on.
Jobs = Annotated[
    int,
    CountInterval(1, MOST_THREADS),
    Interval(Integral, None, -1, closed="right"),
]


class TypedParameters:
    """An estimator whose parameters are fields of its class; their types say what they may be."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    # Not all of them have these.
    max_iter: int | None
    executor: Executor | None
    total_samples: float | None
    backend: Backend

    #: What is true of the data that it takes, by scikit-learn's names.
    _input_tags: ClassVar[tuple[str, ...]] = ()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # pyright: ignore[reportAttributeAccessIssue]
        for name in self._input_tags:
            setattr(tags.input_tags, name, True)
        return tags

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A child that somebody else wrote may have types that cannot be looked up.
        ours = cls.__module__.startswith("tempering.")
        own = get_annotations(cls, eval_str=True) if ours else {}
        names = [name for name in own if not name.startswith("_") and not name.endswith("_")]
        told = {name: constraints_of(own[name]) for name in names}
        cls._parameter_constraints = {**cls._parameter_constraints, **told}


@contextmanager
def kept_whole(estimator: Any) -> Iterator[None]:
    """Have a fit that fails within leave the estimator as it was."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


def constraints_of(kind: Any) -> list[Any]:
    """A type as scikit-learn's constraints, of which a value has to satisfy one."""
    if get_origin(kind) in (Union, UnionType):
        return [constraint for part in get_args(kind) for constraint in constraints_of(part)]
    if get_origin(kind) is Annotated:
        return list(kind.__metadata__)
    if get_origin(kind) is Literal:
        return [StrOptions(set(get_args(kind)))]
    return [None if kind is NoneType else get_origin(kind) or kind]


def per_column(given: Any, name: str, n: int, expected: str = "") -> Array:
    """A positive number for each of n columns, of as many or of one; or an error."""
    expected = expected or f"one positive number, or {n} of them"
    numbers = as_numbers(given, name, expected)
    if numbers.shape not in ((), (n,)) or not np.all((numbers > 0) & np.isfinite(numbers)):
        raise ValueError(f"{name} must be {expected}; got {given!r}.")
    return np.broadcast_to(numbers, n).copy()


def form_of(estimator: Any) -> dict[str, Any]:
    """The parameters on which it depends what the numbers of a posterior mean."""
    names = "n_components", "covariance_type", "weight_concentration_prior_type"
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


def check_unchanged(estimator: Any, **fitted: Any) -> None:
    """Raise unless these parameters are those of the fit: its posterior says nothing to others."""
    for name, before in fitted.items():
        if (now := getattr(estimator, name)) != before:
            anew = "set warm_start=False" if getattr(estimator, "warm_start", False) else "call fit"
            raise ValueError(
                f"This {type(estimator).__name__} was fitted with {name}={before!r}, which was "
                f"changed to {now!r} since. Set it back, or {anew} to start anew."
            )


def check_n_components(n_components: int, n_data: float, what: str) -> None:
    """Raise if components outnumber what they are to be learned from, and are above a thousand."""
    most = max(1000, int(n_data))
    if n_components > most:
        raise ValueError(
            f"n_components={n_components} is more than the {n_data:,.0f} {what}: most would hold "
            f"nothing, but take memory and time. Ask for {most} at most."
        )
