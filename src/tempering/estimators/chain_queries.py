"""What is asked of a hidden Markov model whose parameters are attributes: scores, paths, draws.

The attributes may come from a fit, or be set by hand.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tempering.estimators.mixture import LARGEST_SAMPLE
from tempering.families import Likelihood
from tempering.models import Sequences
from tempering.models.arguments import as_numbers, check_number, shown
from tempering.models.base import Array
from tempering.models.hmm.chains import Chain, best_paths, draw_paths, solve_paths, stationary
from tempering.models.hmm.model import block_rows
from tempering.models.natural import emit


class ChainQueries:
    """Methods that read the attributes alone."""

    n_components: int
    random_state: Any
    startprob_: Array
    transmat_: Array

    @abstractmethod
    def _validated(self, X: Any, *, reset: bool) -> Array:
        """X as a table of numbers, or an error."""

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
        if not right or not np.allclose(weights.sum(axis=-1), 1.0):
            raise ValueError(
                f"{name} must hold probabilities that sum to 1, of the shape {shape}; got "
                f"{weights}."
            )
        return weights

    def _chain(self) -> Chain:
        """The chain at the attributes, which may have been set by hand."""
        k = self.n_components
        parts = [
            self._probabilities(name, shape)
            for name, shape in (("startprob_", (k,)), ("transmat_", (k, k)))
        ]
        with np.errstate(divide="ignore"):  # what cannot happen has the logarithm −∞
            return Chain(*(np.log(part) for part in parts))

    def _blocks(
        self, X: Any, lengths: ArrayLike | None
    ) -> Iterator[tuple[NDArray[np.int64], Array]]:
        """The bounds of some sequences after the other, and their log p(x_t | z_t = k)."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        likelihood, parameters = self._point()
        data = Sequences(self._observed(X), lengths)
        likelihood.check(data.rows)
        for _, block in data.blocks(block_rows(likelihood, self.n_components)):
            yield block.bounds, likelihood.log_likelihood(block.rows, parameters).T

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
        check_is_fitted(self)
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
        if algorithm == "map":
            marginals = self.predict_proba(X, lengths)
            return float(marginals.max(axis=1).sum()), marginals.argmax(axis=1)
        if algorithm != "viterbi":
            raise ValueError(f"algorithm must be 'viterbi' or 'map'; got {algorithm!r}.")
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
        moves = self._probabilities("transmat_", (self.n_components, self.n_components))
        return stationary(moves)

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
            start = np.eye(k)[int(currstate)]
        states = draw_paths(start, moves, np.array([0, n_samples]), rng)
        rows = emit(*self._point(), states, rng)
        return self._emitted(rows), states


def rows_of_states(values: ArrayLike, name: str, n_components: int) -> Array:
    """Numbers that are not negative, a row for each state."""
    rows = as_numbers(values, name, "numbers")
    right = np.all((rows >= 0) & (rows < np.inf))
    if rows.ndim != 2 or len(rows) != n_components or not right:
        raise ValueError(
            f"{name} must hold finite numbers of 0 or more, a row for each of {n_components} "
            f"states; got {shown(rows)}."
        )
    return rows
