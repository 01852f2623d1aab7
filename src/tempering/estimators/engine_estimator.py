"""What estimators share that run the engine on a table: parameters, online steps, results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from tempering.estimators.parameters import NOT_NEGATIVE, SHARED_CONSTRAINTS, Tempering, as_policy
from tempering.estimators.table_backend import model_on
from tempering.families.checks import LARGEST_VALUE, naming_the_table, refuse
from tempering.gpu.jax_device import Backend
from tempering.inference import Algorithm, Batch, History, Result, RobbinsMonro, State
from tempering.inference.executors import Executor, open_executor
from tempering.inference.fitting import FitOptions
from tempering.models import Model, Natural
from tempering.models.arguments import as_numbers
from tempering.models.base import Array
from tempering.temperature import TemperaturePolicy, Untempered


def best_of(run: Callable[[int], Result], n_runs: int) -> Result:
    """The result with the highest ELBO, of runs 0, 1, 2, …"""
    return max(map(run, range(n_runs)), key=lambda result: result.elbo)


class _Declared(BaseEstimator):
    """Parameters that not all of them have, for the reader and the type checker."""

    max_iter: int
    total_samples: float | None
    backend: Backend
    executor: Executor | None


@dataclass(eq=False, repr=False)
class EngineEstimator(_Declared):
    """An estimator whose fit is a run of the engine; its fields are parameters of all of them."""

    _parameter_constraints: ClassVar[dict] = {
        **SHARED_CONSTRAINTS,
        "tol": [NOT_NEGATIVE],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "learning_offset": [NOT_NEGATIVE],
        "learning_decay": [Interval(Real, 0.5, 1, closed="right")],
    }

    n_components: int = 1
    _: KW_ONLY
    tempering: Tempering = "annealing"
    tol: float = 1e-3
    n_init: int = 1
    batch_size: int | None = None
    learning_offset: float = 10.0
    learning_decay: float = 0.7
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    def _policy(self, planned_passes: float) -> TemperaturePolicy:
        """The temperature policy that ``tempering`` stands for, in a run of so many passes."""
        return as_policy(self.tempering)

    def _run_options(self) -> FitOptions:
        """The arguments of the engine that are parameters of every estimator."""
        options: FitOptions = {
            "max_passes": self.max_iter,
            "tolerance": self.tol,
            "n_threads": self.n_jobs,
            "executor": self.executor,
            "progress": bool(self.verbose),
        }
        if self.batch_size is not None:
            options["batch_size"] = self.batch_size
            options["learning_rate"] = self._learning_rate()
        return options

    def _learning_rate(self) -> RobbinsMonro:
        return RobbinsMonro(self.learning_offset, self.learning_decay)

    def _validated(self, X: Any, *, reset: bool) -> Array:
        with naming_the_table():
            X = validate_data(
                self,
                X,
                reset=reset,
                dtype=np.float64,
                ensure_min_samples=1,
                ensure_all_finite=False,
            )
        refuse(
            ~(np.abs(X) <= LARGEST_VALUE),
            X,
            f"X must hold numbers, not NaN or infinity, of at most {LARGEST_VALUE:g}: rescale "
            "columns, or leave rows out",
        )
        return X

    def _activations(self, X: Any, what: str) -> Array:
        """What ``inverse_transform`` is given."""
        expected = f"activations, at most {LARGEST_VALUE:g}, of {self.n_components} {what}"
        activations = as_numbers(X, "X", expected)
        if activations.ndim != 2 or activations.shape[1] != self.n_components:
            raise ValueError(
                f"X must hold activations of {self.n_components} {what}; got shape "
                f"{activations.shape}."
            )
        refuse(~(np.abs(activations) <= LARGEST_VALUE), activations, f"X must hold {expected}")
        return activations

    @contextmanager
    def _all_or_nothing(self, X: Array) -> Iterator[None]:
        """Take a step back as a whole if it fails, or ends in numbers that are not finite."""
        before = dict(vars(self))
        try:
            yield
            shown = [
                value
                for name, value in vars(self).items()
                if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f"
            ]
            if not all(
                np.isfinite(part).all() for part in [*self._state.posterior.values(), *shown]
            ):
                raise FloatingPointError("the parameters are no longer finite")
        except BaseException as error:
            self.__dict__ = before
            if not isinstance(error, np.linalg.LinAlgError | FloatingPointError):
                raise
            row, column = np.unravel_index(np.argmax(np.abs(X)), X.shape)
            raise ValueError(
                f"X breaks the model ({error}), which stays as it was: the largest number in X is "
                f"{X[row, column]}, row {row}, column {column}. Rescale it, or leave the row out."
            ) from error

    def _summarise(self, result: Result) -> None:
        """Set the attributes that say how the fit went."""
        self.history_ = result.history
        self.converged_ = result.converged
        self.n_iter_ = int(np.ceil(result.history[-1].passes)) if len(result.history) else 0
        self.elbo_ = result.elbo
        self.temperature_ = 1.0 / float(np.mean(result.heat.inverse_temperature))
        self.inverse_temperatures_ = result.heat.inverse_temperature

    def _advance(
        self, model: Model, data: Array, start: Callable[[], Natural], rng: np.random.RandomState
    ) -> None:
        """One step of stochastic variational inference; at the first, from ``start()``.

        With ``total_samples`` the tempered part runs over its share of them; without it, the length
        of the stream is not known and every step is made at T = 1.
        """
        first = not hasattr(self, "_state")
        seen = 0 if first else self._state.data_seen
        total = float(self.total_samples or 0)
        solver = model_on(self.backend, model, data.shape[0])
        with open_executor(self.executor, self.n_jobs) as executor:
            algorithm = Algorithm(
                solver,
                self._policy(1.0) if self.total_samples else Untempered(),
                self._learning_rate(),
                executor,
                n_data=int(max(total, seen + data.shape[0])),
                planned_passes=1.0,
            )
            if first:
                posterior = start()
                generator = np.random.default_rng(rng.randint(2**31))
                self._state: State = algorithm.start(posterior, generator)
                self.history_ = History()
            self._state = algorithm.advance(self._state, Batch(data), evaluate=False).state
        vars(model).update(vars(solver))  # what it has learned
        self.n_iter_ = self._state.step
