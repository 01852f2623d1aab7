"""Hidden Markov models: what is asked of one whose parameters are attributes, which may come from a
fit or be set by hand; and where a fit begins, from clusters or draws.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tempering.estimators.engine_estimator import EngineEstimator
from tempering.estimators.mixture import LARGEST_SAMPLE
from tempering.estimators.parameters import check_unchanged
from tempering.estimators.starts import column_metric, kmeans_labels
from tempering.families import Likelihood
from tempering.families.base import safe_log
from tempering.inference import ArraySource
from tempering.models import HiddenMarkov, Sequences
from tempering.models.arguments import as_numbers, check_choice, check_number
from tempering.models.hmm.chains import Chain, best_paths, draw_paths, solve_paths, stationary
from tempering.models.hmm.model import block_rows
from tempering.models.natural import Array, Natural, emit
from tempering.models.threads import one_blas_thread

#: The bounds of some sequences after the other, and their log p(x_t | z_t = k).
Blocks = Iterator[tuple[NDArray[np.int64], Array]]


class ChainQueries(EngineEstimator):
    """Methods that read the attributes alone."""

    #: The attributes that a letter of ``init_params`` stands for.
    _letters: ClassVar[dict[str, str]]

    startprob_: Array
    transmat_: Array

    def __sklearn_is_fitted__(self) -> bool:
        return not self._missing()

    def _missing(self) -> list[str]:
        """The parameters that are not set."""
        return [f"{n.strip('_')}_" for n in self._letters.values() if not hasattr(self, n)]

    def _check_set(self) -> None:
        missing = ", ".join(self._missing())
        check_is_fitted(self, msg=f"This %(name)s is not fitted yet: fit it, or set {missing}.")
        self._check_states()

    def _check_states(self) -> None:
        """Raise if ``n_components`` was changed after a fit, and the attributes were not."""
        fitted = vars(self).get("_fitted_form", {}).get("n_components")
        if np.shape(self.transmat_) == (fitted, fitted):
            check_unchanged(self, n_components=fitted)

    @abstractmethod
    def _point(self) -> tuple[Likelihood, Any]:
        """The likelihood and its parameters, of the attributes that people read and may set."""

    @abstractmethod
    def _n_emission_parameters(self) -> int:
        """Free numbers in the emissions of all states."""

    def _observed(self, X: Array) -> Any:
        """The rows as the likelihood sees them at the parameters of :meth:`_point`."""
        return X

    def _emitted(self, rows: Any) -> Any:
        """Draws of the likelihood as a table."""
        return rows

    def _probabilities(self, name: str, shape: tuple[int, ...]) -> Array:
        """An attribute of rows that sum to 1, which may have been set by hand."""
        weights = as_numbers(getattr(self, name), name, "probabilities")
        right = weights.shape == shape and bool(np.all(weights >= 0))
        totals = weights.sum(axis=-1, keepdims=True)
        if not right or not np.allclose(totals, 1.0):
            raise ValueError(
                f"{name} must hold probabilities that sum to 1, of the shape {shape}; got "
                f"{weights}."
            )
        # Draws ask for more digits than single precision, or a printed table, has.
        return np.where(np.abs(totals - 1.0) > 1e-9, weights / totals, weights)

    def _chain(self) -> Chain:
        """The chain at the attributes, which may have been set by hand."""
        k = self.n_components
        start, moves = (("startprob_", (k,)), ("transmat_", (k, k)))
        return Chain(*(safe_log(self._probabilities(*part)) for part in (start, moves)))

    def _blocks(self, X: Any, lengths: ArrayLike | None) -> Blocks:
        self._check_set()
        yield from self._log_emissions(self._validated(X, reset=False), lengths)

    def _log_emissions(self, X: Array, lengths: ArrayLike | None) -> Blocks:
        """The same for rows that have been validated."""
        with one_blas_thread():
            likelihood, parameters = self._point()
        data = Sequences(self._observed(X), lengths)
        likelihood.check(data.rows)
        for _, block in data.blocks(block_rows(likelihood, self.n_components)):
            with one_blas_thread():
                logs = likelihood.log_likelihood(block.rows, parameters).T
            yield block.bounds, logs

    def score_samples(self, X: Any, lengths: ArrayLike | None = None) -> tuple[float, Array]:
        """The log likelihood of all sequences, and the probability of each state at each row."""
        solved = [
            solve_paths(self._chain(), log_emissions, bounds)
            for bounds, log_emissions in self._blocks(X, lengths)
        ]
        total = sum(float(paths.log_normalizers.sum()) for paths in solved)
        return total, np.concatenate([paths.marginals for paths in solved])

    def score(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """The log likelihood of all sequences at the posterior's central parameters."""
        return sum(
            float(solve_paths(self._chain(), log_emissions, bounds).log_normalizers.sum())
            for bounds, log_emissions in self._blocks(X, lengths)
        )

    def aic(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """Akaike's information criterion, 2 (number of parameters − log likelihood): lower is
        better. ``elbo_``, higher is better, needs no such penalty.
        """
        return 2.0 * (self._n_parameters() - self.score(X, lengths))

    def bic(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """The Bayesian information criterion, which counts log(rows) for 2: lower is better."""
        n_rows = len(self._validated(X, reset=False))
        return self._n_parameters() * float(np.log(n_rows)) - 2.0 * self.score(X, lengths)

    def _n_parameters(self) -> int:
        self._check_set()
        k = self.n_components
        return k * k - 1 + self._n_emission_parameters()

    def predict_proba(self, X: Any, lengths: ArrayLike | None = None) -> Array:
        """The probability of each state at each row, (n_samples, n_components)."""
        return self.score_samples(X, lengths)[1]

    def decode(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        algorithm: Literal["viterbi", "map"] = "viterbi",
    ) -> tuple[float, NDArray[np.int64]]:
        """The best states of all sequences, (n_samples,), after the number that makes them best.

        "viterbi": the most probable path of each sequence; the number is the log joint of all.
        "map": the most probable state of each row by itself; the number is how many of them are
        expected to be right.
        """
        check_choice(algorithm, "algorithm", "viterbi", "map")
        if algorithm == "map":
            marginals = self.predict_proba(X, lengths)
            return float(marginals.max(axis=1).sum()), marginals.argmax(axis=1)
        found = [
            best_paths(self._chain(), log_emissions, bounds)
            for bounds, log_emissions in self._blocks(X, lengths)
        ]
        total = sum(float(log_joints.sum()) for log_joints, _ in found)
        return total, np.concatenate([states for _, states in found])

    def predict(self, X: Any, lengths: ArrayLike | None = None) -> NDArray[np.int64]:
        """The states on the most probable path of each sequence, (n_samples,)."""
        return self.decode(X, lengths)[1]

    def get_stationary_distribution(self) -> Array:
        """The share of each state in the long run, (n_components,): π with π · transmat_ = π."""
        check_is_fitted(self, "transmat_")
        self._check_states()
        moves = self._probabilities("transmat_", (self.n_components, self.n_components))
        return stationary(moves)

    def sample(
        self, n_samples: int = 1, random_state: Any = None, currstate: int | None = None
    ) -> tuple[np.ndarray, NDArray[np.int64]]:
        """Draw one sequence, and its states, at the posterior's central parameters.

        ``random_state`` is by default that of the estimator; ``currstate`` is the state of the
        first observation, which is drawn by default.
        """
        self._check_set()
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
            start = np.eye(k)[int(currstate)]
        states = draw_paths(start, moves, np.array([0, n_samples]), rng)
        with one_blas_thread():
            rows = emit(*self._point(), states, rng)
        return self._emitted(rows), states


def cold_start(
    model: HiddenMarkov, data: Sequences, init: str, rng: np.random.RandomState
) -> Natural:
    """λ at step 0: clusters of the observations for states, or states drawn at random.

    Where moves are forbidden, a few passes in which none is give the states their order.
    """
    if not model.allows_all:
        free, few = model.without_zeros(), _enough(data, lambda n: data[:n])
        posterior = cold_start(free, data, init, rng)
        for _ in range(20):  # they say which state is which
            found = free.local_step(few, free.expectations(posterior), 1.0).statistics
            posterior = free.prior() + len(data.rows) / len(few.rows) * found
        return model.prior() + model.restricted(posterior - free.prior())
    source, generator = ArraySource(data), np.random.default_rng(rng.randint(2**31))
    if init == "random" or len(data.rows) < model.n_components:
        return model.initialize(source, generator)
    sample = _enough(data, lambda n: source.sample(n, generator))
    rows = sample.rows
    if rows.ndim == 1:  # symbols, none of which is nearer to another
        points: Any = csr_matrix((np.ones(len(rows)), rows, np.arange(len(rows) + 1)))
    else:
        points = rows @ column_metric(rows)
    labels = kmeans_labels(points, model.n_components, rng)
    assignment = np.eye(model.n_components)[labels]
    return model.prior() + len(data.rows) / len(rows) * model.statistics(sample, assignment)


def _enough(data: Sequences, some: Callable[[int], Sequences]) -> Sequences:
    """Of ``some`` sequences as many as have about 20,000 rows; more, where those are short ones.

    Yet more rows would change the centres of k-means little.
    """
    enough, total = 20_000, len(data.rows)
    n = max(1, len(data) * enough // total)
    while len((found := some(n)).rows) < min(enough, total) / 2:
        n *= 2
    return found
