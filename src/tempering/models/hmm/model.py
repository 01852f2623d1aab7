"""A hidden Markov model of any conjugate likelihood. A datum is a sequence x_1 … x_L:

    π ~ Dirichlet,   A_k ~ Dirichlet,   β_k ~ the likelihood's conjugate prior,
    z_1 ~ Categorical(π),   z_t ~ Categorical(A_{z_{t−1}}),   x_t ~ p(x | β_{z_t}).

The local step is exact: q(z) ∝ exp{ s (E log π_{z_1} + Σ_t E log A_{z_{t−1} z_t} +
Σ_t E log p(x_t | β_{z_t})) } is a chain again, solved by forward-backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from tempering.families import Likelihood, SparseDirichlet
from tempering.families.base import safe_log
from tempering.models.arguments import as_numbers, check_whole, shown
from tempering.models.base import Array, DataSource, LocalStep, Model
from tempering.models.hmm.chains import Chain, Paths, arranged, draw_paths, solve_paths, stationary
from tempering.models.hmm.sequences import Sequences
from tempering.models.natural import Families, Natural, emit, exchangeable

#: Numbers of the largest array of the sequences that are solved at a time; bounds the memory.
BLOCK_NUMBERS = 2**17


def block_rows(likelihood: Likelihood, n_components: int) -> int:
    """Rows that are solved at a time, unless one sequence has more."""
    return max(1, BLOCK_NUMBERS // max(n_components, likelihood.conjugate.size))


class ChainExpectations(NamedTuple):
    """E_q[t(β)] of a hidden Markov model, with the posterior it came from."""

    posterior: Natural
    chain: Chain  # E log π_k and E log A_jk
    emissions: Array  # E t(β_k), [K, size]

    def log_shares(self) -> Array:
        """Log probabilities of the states in which the middle of a sequence begins, [K]: those of
        the long run; or, where a chain never comes back to some, of all that have been seen."""
        moves = np.exp(self.chain.log_transitions)
        if connected_components(moves > 0, connection="strong", return_labels=False) == 1:
            shares = stationary(moves / moves.sum(axis=1, keepdims=True))
        else:
            visits = self.posterior.start + self.posterior.transitions.sum(axis=0)
            shares = visits / visits.sum()
        return np.log(np.maximum(shares, np.finfo(float).tiny))


class HiddenMarkov(Model):
    """Hidden Markov model of K states; its data are :class:`Sequences`.

    Parameters
    ----------
    likelihood : Likelihood
        The density of an observation given its state.
    n_components : int
        Number of states K.
    start_prior : float or array [K]
        Concentration of the Dirichlet prior of the first state; 0 where no sequence begins.
    transition_prior : float, array [K] or [K, K]
        Concentrations of the Dirichlet priors of the transitions, a row for each state; 0 for what
        never happens.
    emission_prior : array [size] or [K, size]
        Natural parameters of the prior of each state's β.
    fixed : mapping, optional
        Parts that are known, "start", "transitions" or "emissions", with their probabilities or
        parameters β of all states. Their priors do not matter.

    Examples
    --------
    Counts that stay low for a while, then high:

    >>> import numpy as np
    >>> from tempering import fit
    >>> from tempering.families import Poisson
    >>> from tempering.models import HiddenMarkov, Sequences
    >>> rates = np.tile(np.repeat([2.0, 20.0], 10), 10)
    >>> counts = np.random.default_rng(0).poisson(rates)[:, None]
    >>> model = HiddenMarkov(Poisson(1), 2, emission_prior=[1.0, 0.1])
    >>> result = fit(model, Sequences(counts, lengths=[100, 100]))
    >>> np.sort(model.likelihood.conjugate.point(result.posterior.emissions).ravel()).round()
    array([ 2., 20.])
    """

    #: Sequences are long: fewer of them than of rows make work for a thread.
    shard_size = 64

    def __init__(
        self,
        likelihood: Likelihood,
        n_components: int,
        start_prior: ArrayLike = 1.0,
        transition_prior: ArrayLike = 1.0,
        *,
        emission_prior: ArrayLike,
        fixed: Mapping[str, Any] | None = None,
    ):
        check_whole(n_components=n_components)
        self.likelihood, self.fixed = likelihood, dict(fixed or {})
        self.n_components = k = int(n_components)
        self.states = SparseDirichlet(k)
        self._prior = Natural(
            start=concentrations(start_prior, "start_prior", (k,)),
            transitions=concentrations(transition_prior, "transition_prior", (k, k)),
            emissions=_spread(emission_prior, "emission_prior", (k, likelihood.conjugate.size)),
        )
        if not np.all(likelihood.conjugate.is_valid(self._prior.emissions)):
            kind = type(likelihood.conjugate).__name__
            raise ValueError(f"emission_prior is not a proper {kind} prior.")

    def check(self, data: Any) -> None:
        if not isinstance(data, Sequences):
            raise ValueError(
                "data of a hidden Markov model must be tempering.models.Sequences(rows, lengths); "
                f"got {type(data).__name__}."
            )
        self.likelihood.check(data.table)

    @property
    def families(self) -> Families:  # pyright: ignore[reportIncompatibleVariableOverride]
        emissions = self.likelihood.conjugate
        parts = {"start": self.states, "transitions": self.states, "emissions": emissions}
        return {name: family for name, family in parts.items() if name not in self.fixed}

    @property
    def components(self) -> Mapping[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.fixed:
            return {}
        return exchangeable(self._prior, {"start": 0, "transitions": (0, 1), "emissions": 0})

    def prior(self) -> Natural:
        return self._prior

    def initialize(self, source: DataSource, rng: np.random.Generator) -> Natural:
        """Each state begins as the prior with one observation, drawn at random.

        Where all states begin alike they stay alike, so the observations are shared out by what
        those states say of them, times noise: equal observations may start different states.
        """
        data = source.sample(256, rng)
        rows = data.rows[np.sort(rng.choice(len(data.rows), self.n_components))]
        seeded = self._prior.emissions + self.likelihood.statistics(rows)
        expected = self.likelihood.conjugate.expected_statistics(seeded)
        log_weights = self.likelihood.expected_log_likelihood(data.rows, expected)
        log_weights = log_weights + np.log(rng.standard_exponential(log_weights.shape))
        assignment = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
        return self._prior + source.size / len(data) * self.statistics(data, assignment)

    def statistics(self, data: Sequences, assignment: Array) -> Natural:
        """Of states that are independent of each other, with these probabilities [rows, K]."""
        inside = np.ones(len(assignment), bool)
        inside[data.bounds[:-1]] = False
        later = np.flatnonzero(inside)
        return self.restricted(
            Natural(
                start=assignment[data.bounds[:-1]].sum(axis=0),
                transitions=assignment[later - 1].T @ assignment[later],
                emissions=self.likelihood.weighted_statistics(data.rows, assignment),
            )
        )

    def restricted(self, statistics: Natural) -> Natural:
        """Those of a chain without forbidden moves, as statistics of this one: states are numbered
        such that most of their moves are allowed, and the other moves do not count."""
        if self.allows_all:
            return statistics
        begins, follows = allowed = self._prior.start > 0, self._prior.transitions > 0
        start, moves, emissions = statistics.values()
        order = arranged((start, moves), allowed)
        return Natural(
            start=start[order] * begins,
            transitions=moves[np.ix_(order, order)] * follows,
            emissions=emissions[order],
        )

    @property
    def allows_all(self) -> bool:
        """Whether any state may be the first, and follow any other."""
        return bool(np.all(self._prior.start > 0) and np.all(self._prior.transitions > 0))

    def without_zeros(self) -> HiddenMarkov:
        """The model in which nothing is forbidden: priors of 1 in the place of 0."""
        start, transitions, emissions = self._prior.values()
        free = (np.where(part > 0, part, 1.0) for part in (start, transitions))
        return HiddenMarkov(self.likelihood, self.n_components, *free, emission_prior=emissions)

    def path_statistics(self, data: Sequences, paths: Paths) -> Natural:
        """Of states whose probabilities are q(z) of these sequences."""
        own = _own_rows(data)
        return Natural(
            start=paths.start_counts,
            transitions=paths.transition_counts,
            emissions=self.likelihood.weighted_statistics(data.rows[own], paths.marginals[own]),
        )

    def expectations(self, posterior: Natural) -> ChainExpectations:
        parts = (
            safe_log(self.fixed[name])
            if name in self.fixed
            else self.states.expected_log_weights(posterior[name])
            for name in ("start", "transitions")
        )
        emissions = self.likelihood.conjugate.expected_statistics(posterior.emissions)
        return ChainExpectations(posterior, Chain(*parts), emissions)

    def solve(
        self,
        data: Sequences,
        expectations: ChainExpectations,
        inverse_temperature: float | Array = 1.0,
    ) -> Iterator[tuple[Sequences, Paths]]:
        """q(z) of some sequences after the other: only that of a few is in memory."""
        s = np.broadcast_to(inverse_temperature, len(data))
        chain = expectations.chain
        for which, block in data.blocks(block_rows(self.likelihood, self.n_components)):
            likelihood, known = self.likelihood, self.fixed.get("emissions")
            if known is None:
                logs = likelihood.expected_log_likelihood(block.rows, expectations.emissions)
            else:
                logs = likelihood.log_likelihood(block.rows, known).T.copy()
            middle, here = block.in_the_middle, chain
            if middle.any():
                starts = np.where(middle[:, None], expectations.log_shares(), chain.log_start)
                logs[block.bounds[:-1]] += starts
                here = Chain(np.zeros(self.n_components), chain.log_transitions)
            inner = block.inner_bounds, block.begins
            yield block, solve_paths(here, logs, block.bounds, s[which], False, inner, data.n_rows)

    def local_step(
        self, data: Sequences, expectations: ChainExpectations, inverse_temperature: float | Array
    ) -> LocalStep:
        statistics, energies, log_normalizers = 0.0 * self._prior, [], []
        for block, paths in self.solve(data, expectations, inverse_temperature):
            statistics = statistics + self.path_statistics(block, paths)
            energies.append(paths.energies)
            log_normalizers.append(paths.log_normalizers)
        energy = np.concatenate(energies)
        # s · energy + entropy = log Σ_z exp{s log joint}
        entropies = np.concatenate(log_normalizers) - inverse_temperature * energy
        return LocalStep(statistics, energy, float(entropies.sum()), inverse_temperature)

    def local_variables(self, data: Sequences, expectations: ChainExpectations) -> Array:
        """Probabilities of the states, a row for each row of the data: no step keeps them all."""
        solved = self.solve(data, expectations)
        return np.concatenate([paths.marginals[_own_rows(block)] for block, paths in solved])

    def draw(self, posterior: Any, n: int, rng: np.random.Generator) -> dict[str, Any]:
        drawn = super().draw(posterior, n, rng)
        for name, known in self.fixed.items():
            if isinstance(known, tuple):
                drawn[name] = type(known)(*(np.repeat(part[None], n, axis=0) for part in known))
            else:
                drawn[name] = np.repeat(known[None], n, axis=0)
        return drawn

    def log_likelihood(self, data: Sequences, parameters: dict[str, Any]) -> Array:
        """Of each sequence, with all paths summed out; of a piece given the rows before it."""
        known = copy(self)
        known.fixed = parameters
        solved = known.solve(data, known.expectations(self._prior))
        return np.concatenate([paths.log_normalizers for _, paths in solved])

    def simulate(
        self, parameters: dict[str, Any], like: Sequences, rng: np.random.Generator
    ) -> Sequences:
        """Sequences of the lengths of those given, whole ones where these are pieces."""
        first = np.flatnonzero(like.begins | (np.arange(len(like)) == 0))
        lengths = np.add.reduceat(like.inner_lengths, first)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        states = draw_paths(parameters["start"], parameters["transitions"], bounds, rng)
        rows = like.rows[_own_rows(like)]
        return Sequences(emit(self.likelihood, parameters["emissions"], states, rng, rows), lengths)

    def local_log_normalizer(
        self, expectations: ChainExpectations, inverse_temperatures: Array, data: Sequences
    ) -> Array:
        """log Σ_z E[π_{z_1}^s] Π_t E[A_{z_{t−1} z_t}^s] Π_t E[∫ p(x | β_{z_t})^s dx], [n, M].

        A forward pass for each s. Each step takes the expectation by itself, as if π, A and β were
        drawn anew: exact for sequences of one observation, and where q(β) is narrow.
        """
        s = np.asarray(inverse_temperatures, float)
        posterior = expectations.posterior
        start, moves = (  # [M, K] and [M, K, K]
            np.multiply.outer(s, logs)
            if name in self.fixed
            else np.moveaxis(self.states.log_moment(posterior[name], s), -2, 0)
            for name, logs in zip(("start", "transitions"), expectations.chain, strict=True)
        )
        integrals = (
            self.likelihood.log_power_integral(self.fixed["emissions"], s)
            if "emissions" in self.fixed
            else self.likelihood.log_expected_power_integral(posterior.emissions, s)
        ).T
        normalizers = np.empty((len(data), len(s)))
        for begins in np.unique(data.begins):
            # A piece from the middle of a sequence begins where the chain is in the long run.
            first = start if begins else np.multiply.outer(s, expectations.log_shares())
            here = data.begins == begins
            lengths, place = np.unique(data.inner_lengths[here], return_inverse=True)
            forward, at_length = first + integrals, np.empty((len(lengths), len(s)))
            at_length[lengths == 1] = logsumexp(forward, axis=1)
            for length in range(2, lengths[-1] + 1):
                forward = logsumexp(forward[:, :, None] + moves, axis=1) + integrals
                at_length[lengths == length] = logsumexp(forward, axis=1)
            normalizers[here] = at_length[place]
        return normalizers


def _own_rows(data: Sequences) -> Any:
    """The rows of the data without buffers: all of them, unless they are pieces."""
    if data.bounds[-1] == data.inner_lengths.sum():
        return slice(None)
    return np.concatenate([np.arange(*bounds) for bounds in data.inner_bounds])


def concentrations(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    """Those of Dirichlet priors, one a row, in this shape; an error says what is wrong."""
    prior = _spread(values, name, shape)
    expected = f"{name} must hold numbers of 0 or more, and in each row one above 0"
    if not np.all((prior >= 0) & (prior < np.inf)):
        raise ValueError(f"{expected}; got {shown(prior)}.")
    empty = np.atleast_2d(prior).max(axis=-1) == 0
    if empty.any():
        row = int(np.argmax(empty))
        raise ValueError(f"{expected}: a chain could not go on; row {row} holds zeros alone.")
    return prior


def _spread(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    numbers = as_numbers(values, name, "numbers")
    try:
        return np.broadcast_to(numbers, shape).copy()
    except ValueError:
        raise ValueError(
            f"{name} must be one number, or of the shape {shape}; got the shape {numbers.shape}."
        ) from None
