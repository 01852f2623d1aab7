"""What the hidden Markov estimators share: fitting, decoding, scores and draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from tempering.estimators.engine_estimator import EngineEstimator
from tempering.estimators.mixture import LARGEST_SAMPLE
from tempering.estimators.parameters import (
    DEFAULTS,
    NOT_NEGATIVE,
    POSITIVE,
    WHOLE,
    PolicyNames,
    as_policy,
)
from tempering.estimators.starts import column_metric, kmeans_labels
from tempering.families import Likelihood
from tempering.inference import ArraySource
from tempering.inference.checkpoint import CheckpointLike, alone_with_checkpoint
from tempering.models import HiddenMarkov, Natural, Sequences
from tempering.models.arguments import as_numbers, check_number
from tempering.models.base import Array
from tempering.models.hmm.chains import Chain, best_paths, draw_paths, solve_paths
from tempering.models.hmm.model import BLOCK_ROWS
from tempering.models.parts import emit
from tempering.temperature import Annealing, TemperaturePolicy, schedules

#: Rows that k-means looks at; more would change its centres little.
MOST_KMEANS_ROWS = 20_000


#: Names of policies; more heat than this makes all states alike.
POLICIES: PolicyNames = {
    **DEFAULTS,
    "annealing": lambda: Annealing(schedules.linear(1.1), fraction=1 / 3),
}


#: What stands in the docstring of each estimator.
SHARED_PARAMETERS = """startprob_prior : float or array of shape (n_components,), default=1.0
        Concentration of the Dirichlet prior of the first state.
    transmat_prior : float or array of shape (n_components, n_components), default=1.0
        Concentrations of the Dirichlet priors of the transitions, a row for each state.
    sticky : float, default=0.0
        Added to the concentration of staying in a state: how many stays the prior has seen.
    init : {{"kmeans", "random"}}, default="{init}"
        The start: states that are the clusters of the observations by themselves, or states that
        each begin from one observation drawn at random.
    tempering : {{"adaptive", "annealing", "variational", "local"}}, policy or None, \
default="annealing"
        Temperature policy: a name for its default setting, an object such as
        ``tempering.Annealing(...)``, or None for T = 1 throughout. See the notes.
    n_iter : int, default=200
        Most passes over the data.
    tol, n_init, batch_size, learning_offset, learning_decay, random_state, n_jobs, verbose
        As in :class:`tempering.BayesianGaussianMixture`; a minibatch is one of sequences.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
        Probability of each state at the beginning of a sequence.
    transmat_ : array of shape (n_components, n_components)
        Probability to go from one state (the row) to another.
    {attributes}
    elbo_, history_, temperature_, inverse_temperatures_, converged_, n_iter_, n_features_in_
        As in :class:`tempering.BayesianGaussianMixture`; a datum is a sequence.

    Notes
    -----
    Scores, paths and draws are those at the attributes above, the central parameters of the
    posterior; they may be set by hand instead of fitted, as in hmmlearn.

    A hidden Markov model bears little heat: above a temperature that may be as low as 1.3 all
    states become alike, and they stay alike when it cools. So "annealing" begins at T = 1.1 here,
    which in trials found more optima than T = 1 throughout, and lost none.
"""


@dataclass(eq=False, repr=False)
class HiddenMarkovEstimator(EngineEstimator):
    """A hidden Markov model with hmmlearn's interface. Subclasses say of what."""

    _parameter_constraints: ClassVar[dict] = {
        **EngineEstimator._parameter_constraints,
        "startprob_prior": ["array-like", POSITIVE],
        "transmat_prior": ["array-like", POSITIVE],
        "sticky": [NOT_NEGATIVE],
        "init": [StrOptions({"kmeans", "random"})],
        "n_iter": [WHOLE],
    }

    _: KW_ONLY
    startprob_prior: ArrayLike = 1.0
    transmat_prior: ArrayLike = 1.0
    sticky: float = 0.0
    init: Literal["kmeans", "random"] = "kmeans"
    n_iter: int = 200

    executor = None  # they are fitted in this process

    @property
    def max_iter(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """``n_iter``, by the name that it has elsewhere."""
        return self.n_iter

    def _policy(self, planned_passes: float) -> TemperaturePolicy:
        return as_policy(self.tempering, POLICIES)

    @abstractmethod
    def _prepare(self, X: Array) -> None:
        """Fix from the data what the model needs to know: its priors, above all."""

    @abstractmethod
    def _likelihood(self) -> Likelihood:
        """The likelihood of an observation, of the sizes that :meth:`_prepare` fixed."""

    @abstractmethod
    def _point(self) -> tuple[Likelihood, Any]:
        """The likelihood and its parameters, of the attributes that people read and may set."""

    @abstractmethod
    def _expose_emissions(self, model: HiddenMarkov, posterior: Natural) -> None:
        """Set those attributes from the posterior."""

    def _observed(self, X: Array) -> Any:
        """The rows as the likelihood sees them at the parameters of :meth:`_point`."""
        return X

    def _emitted(self, rows: Any) -> Any:
        """Draws of the likelihood as a table."""
        return rows

    def _model(self) -> HiddenMarkov:
        k = self.n_components
        transitions = as_numbers(self.transmat_prior, "transmat_prior", "numbers")
        try:
            transitions = np.broadcast_to(transitions, (k, k)) + self.sticky * np.eye(k)
        except ValueError:
            raise ValueError(
                f"transmat_prior must be one number, or of the shape ({k}, {k}); got the shape "
                f"{transitions.shape}."
            ) from None
        start = as_numbers(self.startprob_prior, "startprob_prior", "numbers")
        if start.shape not in ((), (k,)):
            raise ValueError(
                f"startprob_prior must be one number, or {k} of them; got the shape {start.shape}."
            )
        return HiddenMarkov(
            self._likelihood(), k, start, transitions, emission_prior=self._emission_prior
        )

    @alone_with_checkpoint
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        checkpoint: CheckpointLike = None,
        resume: bool = True,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The observations of all sequences, one sequence after the other.
        lengths : array-like of int of shape (n_sequences,), optional
            How many of them each sequence has; by default X is one sequence.
        checkpoint : path or Checkpoint, optional
            A directory in which the fit is kept; see :class:`tempering.Checkpoint`.
        resume : bool
            Go on from the checkpoint, if there is one, and end in the same bits; False starts anew.
        """
        return self._fit_rows(X, checkpoint, resume, partial(Sequences, lengths=lengths))

    def _new_model(self, X: Array) -> HiddenMarkov:
        self._prepare(X)
        return self._model()

    @property
    def _not_converged(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (
            f"The best fit did not converge in n_iter={self.n_iter} iterations. Raise n_iter or "
            "tol."
        )

    def _starts(self, model: HiddenMarkov, data: Sequences, rng: np.random.RandomState) -> Natural:
        """λ at step 0: clusters of the observations for states, or states drawn at random."""
        source, generator = ArraySource(data), np.random.default_rng(rng.randint(2**31))
        if self.init == "random" or len(data.rows) < self.n_components:
            return model.initialize(source, generator)
        few = max(1, len(data) * MOST_KMEANS_ROWS // len(data.rows))
        sample = source.sample(few, generator)
        labels = kmeans_labels(sample.rows @ column_metric(sample.rows), self.n_components, rng)
        assignment = np.eye(self.n_components)[labels]
        return model.prior() + len(data) / len(sample) * model.statistics(sample, assignment)

    def _expose(self, model: HiddenMarkov, data: Any = None) -> None:
        posterior = self._state.posterior
        self.startprob_ = model.states.mean_weights(posterior.start)
        self.transmat_ = model.states.mean_weights(posterior.transitions)
        self._expose_emissions(model, posterior)

    def _chain(self) -> Chain:
        """The chain at the attributes, which may have been set by hand."""
        k, parts = self.n_components, []
        for name, shape in (("startprob_", (k,)), ("transmat_", (k, k))):
            weights = as_numbers(getattr(self, name), name, "probabilities")
            right = weights.shape == shape and bool(np.all(weights >= 0))
            if not right or not np.allclose(weights.sum(axis=-1), 1.0):
                raise ValueError(
                    f"{name} must hold probabilities that sum to 1, of the shape {shape}; got "
                    f"{weights}."
                )
            parts.append(weights)
        with np.errstate(divide="ignore"):  # what cannot happen has the logarithm −∞
            return Chain(*(np.log(part) for part in parts))

    def _blocks(self, X: Any, lengths: ArrayLike | None) -> Iterator[tuple[Array, Sequences]]:
        """log p(x_t | z_t = k) of some sequences after the other, with these."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        likelihood, parameters = self._point()
        data = Sequences(self._observed(X), lengths)
        likelihood.check(data.rows)
        for _, block in data.blocks(BLOCK_ROWS):
            yield likelihood.log_likelihood(block.rows, parameters).T, block

    def score_samples(self, X: Any, lengths: ArrayLike | None = None) -> tuple[float, Array]:
        """The log likelihood of all sequences, and the probability of each state at each row."""
        solved = [
            solve_paths(self._chain(), log_emissions, block.bounds)
            for log_emissions, block in self._blocks(X, lengths)
        ]
        total = sum(float(paths.log_normalizers.sum()) for paths in solved)
        return total, np.concatenate([paths.marginals for paths in solved])

    def score(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """The log likelihood of all sequences at the posterior's central parameters."""
        return sum(
            float(solve_paths(self._chain(), log_emissions, block.bounds).log_normalizers.sum())
            for log_emissions, block in self._blocks(X, lengths)
        )

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None) -> Array:
        """The probability of each state at each row, (n_samples, n_components)."""
        return self.score_samples(X, lengths)[1]

    def decode(self, X: Any, lengths: ArrayLike | None = None) -> tuple[float, NDArray[np.int64]]:
        """The log joint of all sequences with their most probable paths, and these (Viterbi)."""
        found = [
            best_paths(self._chain(), log_emissions, block.bounds)
            for log_emissions, block in self._blocks(X, lengths)
        ]
        total = sum(float(log_joints.sum()) for log_joints, _ in found)
        return total, np.concatenate([states for _, states in found])

    def predict(self, X: Any, lengths: ArrayLike | None = None) -> NDArray[np.int64]:
        """The states on the most probable path of each sequence, (n_samples,)."""
        return self.decode(X, lengths)[1]

    def sample(
        self, n_samples: int = 1, random_state: Any = None, currstate: int | None = None
    ) -> tuple[np.ndarray, NDArray[np.int64]]:
        """Draw one sequence, and its states, at the posterior's central parameters.

        ``random_state`` is by default that of the estimator; ``currstate`` is the state of the
        first observation, which is drawn by default.
        """
        check_is_fitted(self)
        expected = f"a whole number, from 1 to {LARGEST_SAMPLE}"
        check_number(n_samples, "n_samples", expected, least=1, most=LARGEST_SAMPLE, whole=True)
        n_samples, k, chain = int(n_samples), self.n_components, self._chain()
        if currstate is not None:
            expected = f"a state, 0 to {k - 1}, or None"
            check_number(currstate, "currstate", expected, least=0, most=k - 1, whole=True)
        given = self.random_state if random_state is None else random_state
        rng = np.random.default_rng(check_random_state(given).randint(2**31))
        start, moves = (np.exp(weights) for weights in chain)
        if currstate is not None:
            start = np.eye(k)[currstate]
        states = draw_paths(start, moves, np.array([0, n_samples]), rng)
        rows = emit(*self._point(), states, rng)
        return self._emitted(rows), states
