"""What estimators share that run the engine on a table: parameters, fits, online steps, results."""

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tempering.estimators.moves import model_on
from tempering.estimators.parameters import (
    Auto,
    Count,
    Decay,
    Jobs,
    NotNegative,
    RandomState,
    Tempering,
    Total,
    TypedParameters,
    Verbose,
    as_policy,
    check_n_components,
    kept_whole,
)
from tempering.estimators.saving import SaveMixin
from tempering.families import GaussianParameters
from tempering.families.checks import LARGEST_VALUE, naming_the_table, refuse
from tempering.gpu.jax_device import Backend
from tempering.inference import (
    Algorithm,
    ArraySource,
    Batch,
    History,
    Result,
    RobbinsMonro,
    SaddleWarning,
    evaluate_elbo,
    fit,
)
from tempering.inference.callbacks import Callback, Report, describe_elbo
from tempering.inference.checkpoint import (
    CheckpointLike,
    alone_with_checkpoint,
    part_of,
    remembered_seed,
)
from tempering.inference.executors import Executor, open_executor
from tempering.inference.fitting import FitOptions
from tempering.inference.run import State, usual_rate
from tempering.inference.saddle import AT_SADDLE
from tempering.models.arguments import as_numbers
from tempering.models.base import Array, Model
from tempering.models.threads import one_blas_thread
from tempering.search import search
from tempering.temperature import COLD, Heat, TemperaturePolicy, Untempered

#: τ of a stream, of which nobody knows the length.
OFFSET_OF_STREAMS = 10.0


@dataclass(eq=False, repr=False)
class EngineEstimator(TypedParameters, SaveMixin, BaseEstimator, ABC):
    """An estimator whose fit is a run of the engine, or a step of it with data of a stream; its
    fields are parameters of all of them.

    A subclass gives the model (:meth:`_new_model`) and reads what was found (:meth:`_expose`); what
    else :meth:`fit` asks for, such as a start, has a default.
    """

    n_components: Count = 1
    _: KW_ONLY
    tempering: Tempering = "annealing"
    tol: NotNegative = 1e-3
    n_init: Count = 1
    batch_size: Count | None = None
    learning_offset: NotNegative | Auto = "auto"
    learning_decay: Decay = 0.7
    random_state: RandomState = None
    n_jobs: Jobs | None = None
    verbose: Verbose = 0

    #: Passes between two printed lines; a parameter of some only.
    verbose_interval = 10

    #: What is said where a batch fit has not converged, if anything.
    _not_converged = ""

    @alone_with_checkpoint
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, *, checkpoint: CheckpointLike = None, resume: bool = True
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        y : Ignored
            Not used, present for API consistency.
        checkpoint : path or Checkpoint, optional
            A directory in which the fit is kept; see :class:`tempering.Checkpoint`.
        resume : bool
            Go on from the checkpoint, if there is one, and end in the same bits; False starts anew.
        """
        return self._fit_rows(X, checkpoint, resume)

    def _fit_rows(
        self,
        X: Any,
        checkpoint: CheckpointLike,
        resume: bool,
        as_data: Callable[[Any], Any] = lambda rows: rows,
    ) -> Self:
        """The way of every fit; ``as_data`` makes data of rows. One that fails changes nothing."""
        # BLAS rounds by its threads, also what is computed beside the engine, such as starts.
        with kept_whole(self), one_blas_thread():
            going_on = self._going_on
            X = self._validated(X, reset=not going_on)
            with self._naming_the_cause(X):
                policy = Untempered() if going_on else self._policy(self._most_passes)
                model, data = self._new_model(X), as_data(self._transformed(X))
                rng = check_random_state(remembered_seed(self.random_state, checkpoint, resume))
                best, elbos = None, []
                searches = not going_on and self._searches(policy)
                for number in range(1 if going_on or searches else self._n_starts()):
                    options: Any = {**self._run_options(), "temperature": policy}
                    # 0 is the start alone
                    if self.batch_size is not None and self.max_iter != 0:
                        options |= self._steps(data.shape[0], policy)
                    kept = part_of(checkpoint, f"restart-{number}")
                    options |= {"checkpoint": kept, "resume": resume}
                    start = self._state.posterior if going_on else self._starts(model, data, rng)
                    options["initial"], options["seed"] = start, int(rng.randint(2**31 - 1))
                    find = self._search if searches else self._run
                    find = self._start_alone if self.max_iter == 0 else find
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", SaddleWarning)  # it may not be the best
                        result = find(model, data, options)
                    elbos += result.restart_elbos
                    best = result if best is None or result.elbo > best.elbo else best
                assert best is not None
                self._summarise(replace(best, restart_elbos=elbos))
                self._state = State(best.posterior, COLD, len(best.history), data.shape[0])
                self._expose(best.model, data)
        if best.at_saddle:
            warnings.warn(AT_SADDLE, SaddleWarning, stacklevel=5)
        if self._not_converged and not (self.converged_ or self.batch_size) and self.max_iter != 0:
            warnings.warn(self._not_converged, ConvergenceWarning, stacklevel=5)
        return self

    @contextmanager
    def _naming_the_cause(self, X: Any) -> Iterator[None]:
        """Turn errors of matrices that rounding has spoilt into one that names the cause."""
        try:
            yield
        except (np.linalg.LinAlgError, FloatingPointError) as error:
            raise ValueError(
                f"X breaks the model ({error}), which stays as it was: {self._cause(X)}"
            ) from error

    def _cause(self, X: Any) -> str:
        """Describe what of X may have spoilt a matrix, and the remedy."""
        row, column = np.unravel_index(np.nanargmax(np.abs(X)), X.shape)
        return (
            f"the largest number is {X[row, column]}, in row {row}. Rescale it, or leave the row "
            "out."
        )

    @property
    def _most_passes(self) -> int:
        """``max_iter``, or what is usual: in minibatches all of them are made."""
        if self.max_iter is not None:
            return self.max_iter
        return 1000 if self.batch_size is None else 100

    @property
    def _going_on(self) -> bool:
        """Whether a fit goes on from the one before."""
        return False

    @abstractmethod
    def _new_model(self, X: Any) -> Any:
        """The model of these rows; what of them it takes to make it again is kept."""

    def _transformed(self, X: Any) -> Any:
        """The rows as the model sees them: centred, where squares of large numbers lose digits."""
        centre = getattr(self, "_centre", None)
        return X if centre is None else X - centre

    def _n_starts(self) -> int:
        """How many starts are worth trying."""
        return self.n_init

    def _starts(self, model: Any, data: Any, rng: np.random.RandomState) -> Any:
        """λ at step 0, from data that stand for all of them; None for the model's own start."""
        return None

    def _another_start(self, model: Any, data: Any, rng: np.random.RandomState) -> Any:
        """Return λ of a fresh start in a search, by default one as the first."""
        return self._starts(model, data, rng)

    def _start_alone(self, model: Any, data: Any, options: FitOptions) -> Result:
        """Return a result at the start, without a run."""
        start = model.revise(options.get("initial"), 0.0, 1.0)
        elbo = evaluate_elbo(model, start, ArraySource(data))
        return Result(start, elbo, History(), False, Heat(finished=True), model)

    def _run(self, model: Any, data: Any, options: FitOptions) -> Result:
        """One run of the engine."""
        return fit(model, data, **options)

    def _searches(self, policy: TemperaturePolicy) -> bool:
        """Return whether a fit is a search, in which ``n_init`` is the work, in plain fits."""
        return False

    def _search(self, model: Any, data: Any, options: FitOptions) -> Result:
        """Search for the best optimum."""
        own: Any = dict(options)
        del own["temperature"]

        def starts(rng: np.random.Generator) -> Any:
            return self._another_start(model, data, np.random.RandomState(rng.integers(2**31)))

        return search(model, data, budget=self._n_starts(), starts=starts, **own)

    @abstractmethod
    def _expose(self, model: Any, data: Any = None) -> None:
        """Set the attributes that people read, from the posterior in ``_state``."""

    def _draws(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """n draws of the parameters from the posterior, in the units of X: [n, ...] by name."""
        own: Any = getattr(self, "_model")  # noqa: B009 (a method that makes it, or the model)
        model: Any = own() if callable(own) else own
        drawn = model.draw(self._state.posterior, n, rng)
        centre = getattr(self, "_centre", 0.0)
        for name, part in drawn.items():
            if isinstance(part, GaussianParameters):
                drawn[name] = part._replace(mean=part.mean + centre)
        return drawn

    def _policy(self, planned_passes: float) -> TemperaturePolicy:
        """The temperature policy that ``tempering`` stands for, in a run of so many passes."""
        return as_policy(self.tempering)

    def _run_options(self) -> FitOptions:
        """The arguments of the engine that are parameters of every estimator."""
        options: FitOptions = {
            "max_passes": self._most_passes,
            "tolerance": self.tol,
            "n_threads": self.n_jobs,
            "executor": self.executor,
            "progress": bool(self.verbose),
        }
        if self.verbose and not sys.stderr.isatty():
            options["callbacks"] = [print_every(self.verbose_interval)]
        return options

    def _steps(self, n_data: int, policy: TemperaturePolicy) -> FitOptions:
        """Minibatches, and how large their steps are."""
        assert self.batch_size is not None
        if self.learning_offset == "auto":
            steps_a_pass = n_data / self.batch_size
            rates = usual_rate(policy, self._most_passes, steps_a_pass, self.learning_decay)
        else:
            rates = RobbinsMonro(self.learning_offset, self.learning_decay)
        return {"batch_size": self.batch_size, "learning_rate": rates}

    def _validated(self, X: Any, *, reset: bool) -> Array:
        with naming_the_table():
            # A DataFrame lies in memory column by column, and its sums would have other bits.
            checks: Any = {"dtype": np.float64, "order": "C", "ensure_all_finite": False}
            X = validate_data(self, X, reset=reset, **checks)
        wrong, others, holes = ~(np.abs(X) <= LARGEST_VALUE), "NaN or infinity", ""
        if "allow_nan" in self._input_tags:
            wrong, others, holes = wrong & ~np.isnan(X), "infinity", ", or NaN where there are none"
        expected = f"X must hold numbers, not {others}, of at most {LARGEST_VALUE:g}{holes}: "
        refuse(wrong, X, expected + "rescale columns, or leave rows out")
        return X

    def _summarise(self, result: Result) -> None:
        """Set the attributes that say how the fit went."""
        self.history_ = result.history
        self.converged_ = result.converged
        self.n_iter_ = int(np.ceil(result.history[-1].passes)) if len(result.history) else 0
        self.elbo_ = result.elbo
        self.restart_elbos_ = list(result.restart_elbos)
        self.temperature_ = 1.0 / float(np.mean(result.heat.inverse_temperature))
        self.inverse_temperatures_ = result.heat.inverse_temperature

    def _start_of_stream(self, model: Any, data: Any, rng: np.random.RandomState) -> Any:
        """λ at step 0."""
        return self._starts(model, data, rng)

    def _advance(self, model: Model, data: Any, rng: np.random.RandomState) -> None:
        """One step."""
        first = not hasattr(self, "_state")
        seen = 0 if first else self._state.data_seen
        n_data = int(max(float(self.total_samples or 0), seen + data.shape[0]))
        policy = self._policy(1.0) if self.total_samples else Untempered()
        # After a fit, or where another policy heated the stream, all else is at T = 1.
        name = type(policy).__name__
        if not first and (self._state.heat.finished or name != vars(self).get("_heated_by")):
            policy, self._state = Untempered(), self._state._replace(heat=COLD)
        offset = OFFSET_OF_STREAMS if self.learning_offset == "auto" else self.learning_offset
        rates = RobbinsMonro(offset, self.learning_decay)
        solver = model_on(self.backend, model, data.shape[0])
        with open_executor(self.executor, self.n_jobs) as executor:
            algorithm = Algorithm(solver, policy, rates, executor, n_data, planned_passes=1.0)
            if first:
                posterior = self._start_of_stream(model, data, rng)
                generator = np.random.default_rng(rng.randint(2**31))
                self._state: State = algorithm.start(posterior, generator)
                self._heated_by = name
                self.history_ = History()
            self._state = algorithm.advance(self._state, Batch(data), evaluate=False).state
        vars(model).update(vars(solver))  # what it has learned
        self.n_iter_ = self._state.step

    @contextmanager
    def _all_or_nothing(self, X: Any) -> Iterator[Array]:
        """Validated rows for a step, which is taken back as a whole if it fails, from them on.

        It fails too where it ends in numbers that are not finite.
        """
        with kept_whole(self), one_blas_thread():
            X = self._validated(X, reset=not hasattr(self, "_state"))
            with self._naming_the_cause(X):
                yield X
                shown = [
                    value
                    for name, value in vars(self).items()
                    if name.endswith("_") and isinstance(value, np.ndarray)
                ]
                numbers = [part for part in shown if part.dtype.kind == "f"]
                parts = [*self._state.posterior.values(), *numbers]
                if not all(np.isfinite(part).all() for part in parts):
                    raise FloatingPointError("the parameters are no longer finite")


class FeatureMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """An estimator of what rows have of some features."""

    #: What the features are called, and the attribute [K, D] that holds them.
    _called, _held = "components", "components_"

    def inverse_transform(self: Any, X: Any) -> Array:
        """Activations (n_samples, n_components) back to expected rows, (n_samples, n_features)."""
        check_is_fitted(self)
        features = getattr(self, self._held)
        wanted = f"activations of {len(features)} {self._called}, at most {LARGEST_VALUE:g}"
        activations = as_numbers(X, "X", wanted)
        if activations.ndim != 2 or activations.shape[1] != len(features):
            raise ValueError(f"X must hold {wanted}; got shape {activations.shape}.")
        refuse(~(np.abs(activations) <= LARGEST_VALUE), activations, f"X must hold {wanted}")
        return activations @ features

    def score(self: Any, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`, in nats a row. Higher is better."""
        return float(np.mean(self.score_samples(X)))

    @property
    def _n_features_out(self) -> int:
        return len(getattr(self, self._held))


@dataclass(eq=False, repr=False)
class OnlineEstimator(EngineEstimator):
    """One that takes a stream too, by minibatches."""

    _: KW_ONLY
    total_samples: Total | None = None
    backend: Backend = "cpu"
    executor: Executor | None = None

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the model with one more minibatch: stochastic variational inference.

        The first call fixes the start, and what the data decide of the priors. With
        ``total_samples`` the tempered part runs over its share of them; without it, the length of
        the stream is not known and every step is made at T = 1. So is every step after a fit, or
        after ``tempering`` was changed.
        """
        with self._all_or_nothing(X) as X:
            check_n_components(self.n_components, max(len(X), self.total_samples or 0), "samples")
            model = self._model_of_stream(X)
            data = self._transformed(X)
            model.check(data)
            self._advance(model, data, check_random_state(self.random_state))
            self._expose(model, data)
        return self

    @abstractmethod
    def _model_of_stream(self, X: Array) -> Any:
        """The model for one more minibatch; the first one decides what the data are to decide."""


def print_every(interval: int) -> Callback:
    """A callback that prints a line after so many passes."""
    last = 0

    def show(report: Report) -> None:
        nonlocal last
        passes = int(report.record.passes + 1e-9)
        if passes != last and passes % interval == 0:
            print(f"pass {passes}  {describe_elbo(report.record)}", flush=True)
        last = passes

    return show
