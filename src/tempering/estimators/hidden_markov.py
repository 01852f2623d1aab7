"""What the hidden Markov estimators share: parameters and the fit."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tempering.estimators.chains import ChainQueries, cold_start
from tempering.estimators.devices import model_on, on_cpu
from tempering.estimators.parameters import (
    DEFAULTS,
    Count,
    CountFromZero,
    CountInterval,
    NotNegative,
    Numbers,
    Positive,
    Tempering,
    as_policy,
    check_unchanged,
    form_of,
)
from tempering.estimators.saving import expect_kinds, expect_shape
from tempering.estimators.state_operators import STATE_OPERATORS
from tempering.families import Likelihood
from tempering.gpu.jax_device import Backend
from tempering.inference import Result
from tempering.inference.checkpoint import CheckpointLike, alone_with_checkpoint
from tempering.inference.fitting import FitOptions
from tempering.inference.run import State
from tempering.models.hmm.chains import solve_paths
from tempering.models.hmm.model import HiddenMarkov, concentrations
from tempering.models.hmm.sequences import Sequences
from tempering.models.natural import Array, Natural
from tempering.storage.state import expect
from tempering.temperature import Annealing, TemperaturePolicy, Untempered, schedules

#: T at which "annealing" begins; more heat makes all states alike.
HOTTEST = 1.1

#: States at most; there is a transition for each two of them.
MOST_STATES = 10**4

#: Letters of ``init_params`` that all have, and the attributes that they stand for.
CHAIN_LETTERS = {"s": "startprob_", "t": "transmat_"}

#: What stands in the docstring of each estimator.
SHARED_PARAMETERS = """startprob_prior : float or array of shape (n_components,), default=1.0
        Concentration of the Dirichlet prior of the first state; 0 where no sequence begins.
    transmat_prior : float or array of shape (n_components, n_components), default=1.0
        Concentrations of the Dirichlet priors of the transitions, a row for each state. Where it is
        0, the transition never happens: ``transmat_`` is 0 there. So a left-right model has zeros
        below the diagonal, ``np.triu(np.ones((K, K)))``.
    sticky : float, default=0.0
        Added to the concentration of staying in a state, as if the prior had seen so many stays.
    init : {{"kmeans", "random"}}, default="{init}"
        Where states start: from clusters of the observations, taken one by one, or each from one
        observation drawn at random.
    tempering : {{"adaptive", "annealing", "variational", "local"}}, policy or None, \
default=None
        Temperature policy: a name for its default setting, an object such as
        ``tempering.Annealing(...)``, or None for T = 1 throughout. See the notes.
    init_params : str, default="{letters}"
        What the start computes, a letter for each attribute: {meanings}. If a letter is left
        out, its attribute keeps the value that you set or that the last fit gave it, and the fit
        begins from the states that follow from it. Zeros in a ``startprob_`` or ``transmat_`` that
        was kept stay zeros.
    params : str, default="{letters}"
        What the fit changes, by the same letters. If one is left out, its attribute is known: set
        it before the fit.{together}
    n_iter : int, default=None
        The most passes over the data, by default 1,000; in minibatches all are made, by default
        200. With 0 the result is the start alone.
    piece_length : int, default=None
        Cut sequences into pieces of at most this many rows, for few, long sequences. A datum is
        then a piece: with ``batch_size=10`` a step solves, and needs the memory of, ten pieces.
        Where moves are forbidden the start solves whole sequences, whose order it needs.
    buffer : int, default=20
        Rows before (one at least) and after a piece that are solved with it but do not count. It
        should be longer than the memory of the chain: if states last 100 rows, 20 is too short.
    n_init : int, default=4
        Work of a fit, in plain fits: at T = 1 a search (:func:`tempering.search`) takes as many
        passes over the data as this number of fits, and returns the best solution that it finds.
        In minibatches, with a temperature policy, and where states are not alike (transitions
        that never happen, parameters that are given), it is the number of starts, of which the
        fit with the best ELBO is returned.
    backend : {{"cpu", "auto", "jax", "gpu"}}, default="cpu"
        Where a fit runs: on the CPU, on whatever device JAX finds ("jax"), or only on a GPU.
    tol, batch_size, learning_offset, learning_decay, random_state, n_jobs, verbose
        As in :class:`tempering.BayesianGaussianMixture`; a minibatch consists of sequences.

    Attributes
    ----------
    startprob_ : array of shape (n_components,)
        Probability of each state at the beginning of a sequence.
    transmat_ : array of shape (n_components, n_components)
        Probability of going from one state (the row) to another.
    startprob_posterior_, transmat_posterior_ : arrays of the same shapes
        Concentrations of the Dirichlet posteriors of which these are the means.
    {attributes}
    trail_ : list of Trial
        The rounds of a search, as a table: ``pandas.DataFrame(hmm.trail_)``. See the notes.
    elbo_, restart_elbos_, history_, temperature_, inverse_temperatures_, converged_, n_iter_, \
n_features_in_
        As in :class:`tempering.BayesianGaussianMixture`; a datum is a sequence.

    Notes
    -----
    Scores, paths and draws use the attributes above, which are the central parameters of the
    posterior. You can also set them by hand instead of fitting, as in hmmlearn.

    A search also empties states without which the ELBO is higher. So the number of states is
    learned: ask for more than there can be. Those that are left over have no rows; with
    ``transmat_prior=0.1`` they cost little.

    After a search ``history_`` has the steps of the first run and, where another solution is the
    best, those of the last run, from there. ``n_iter_`` counts all passes of the search up to the
    last step, ``converged_`` refers to the run that ends in the solution, and ``restart_elbos_``
    has its ELBO alone. ``n_iter`` limits the passes of each run.

    Above a temperature that may be as low as 1.3 all states become alike, and stay alike when the
    fit cools. So "annealing" begins at T = 1.1 here.
"""


@dataclass(eq=False, repr=False)
class HiddenMarkovEstimator(ChainQueries):
    """A hidden Markov model with hmmlearn's interface. Subclasses say of what."""

    _letters: ClassVar[dict[str, str]] = CHAIN_LETTERS
    _operators = STATE_OPERATORS

    n_components: Annotated[int, CountInterval(1, MOST_STATES)] = 1
    _: KW_ONLY
    startprob_prior: Numbers | Positive = 1.0
    transmat_prior: Numbers | Positive = 1.0
    sticky: NotNegative = 0.0
    tempering: Tempering = None
    init: Literal["kmeans", "random"] = "kmeans"
    n_iter: CountFromZero | None = None
    n_init: Count = 4
    init_params: str = "st"
    params: str = "st"
    piece_length: Count | None = None
    buffer: CountFromZero = 20

    backend: Backend = "cpu"

    executor = None  # they are fitted in this process
    total_samples = None  # a stream of sequences has no known end

    @property
    def max_iter(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """``n_iter`` or its default, by the name that it has elsewhere."""
        if self.n_iter is not None:
            return self.n_iter
        return 1000 if self.batch_size is None else 200

    def _policy(self, planned_passes: float) -> TemperaturePolicy:
        # Fits that take many passes to converge are not tempered for longer than others.
        passes = min(200, planned_passes or 200) / 3
        own = {"annealing": lambda: Annealing(schedules.linear(HOTTEST), passes=passes)}
        return as_policy(self.tempering, {**DEFAULTS, **own})

    @abstractmethod
    def _prepare(self, X: Array) -> None:
        """Fix from the data what the model needs to know: its priors, above all."""

    @abstractmethod
    def _likelihood(self) -> Likelihood:
        """The likelihood of an observation, of the sizes that :meth:`_prepare` fixed."""

    @abstractmethod
    def _expose_emissions(self, model: HiddenMarkov, posterior: Natural) -> None:
        """Set the attributes of the emissions from the posterior."""

    def _model(self) -> HiddenMarkov:
        k = self.n_components
        start = concentrations(self.startprob_prior, "startprob_prior", (k,))
        transitions = concentrations(self.transmat_prior, "transmat_prior", (k, k))
        transitions = transitions + self.sticky * np.eye(k) * (transitions > 0)
        kept = self._kept()
        if "startprob_" in kept:
            start = start * (self._probabilities("startprob_", (k,)) > 0)
        if "transmat_" in kept:
            transitions = transitions * (self._probabilities("transmat_", (k, k)) > 0)
        likelihood, prior, fixed = self._likelihood(), self._emission_prior, self._fixed()
        return HiddenMarkov(likelihood, k, start, transitions, emission_prior=prior, fixed=fixed)

    def _fixed(self) -> dict[str, Any]:
        """The parts of the model that ``params`` leaves out, at the values of their attributes."""
        self._check_letters("params")
        known = {key: name for key, name in self._letters.items() if key not in self.params}
        emissions, k = [key for key in self._letters if key not in "st"], self.n_components
        if not self.params or 0 < len(known.keys() & emissions) < len(emissions):
            raise ValueError(
                f"params={self.params!r} must name what is to be fitted, of {''.join(emissions)} "
                "all or none."
            )
        for key, name in known.items():
            if not hasattr(self, name):
                raise ValueError(
                    f"params={self.params!r} leaves out {key!r}: set {name.strip('_')}_ before the "
                    "fit."
                )
        fixed: dict[str, Any] = {}
        if "s" in known:
            fixed["start"] = self._probabilities("startprob_", (k,))
        if "t" in known:
            fixed["transitions"] = self._probabilities("transmat_", (k, k))
        if known.keys() >= set(emissions):
            likelihood, parameters = self._point()
            if likelihood.dimension != (own := self._likelihood().dimension):
                names = " and ".join(f"{known[key].strip('_')}_" for key in emissions)
                raise ValueError(
                    f"{names} must have {own} columns, as X has or n_features asks for; got "
                    f"{likelihood.dimension}."
                )
            fixed["emissions"] = self._centred(parameters)
        return fixed

    def _centred(self, parameters: Any) -> Any:
        """Parameters of X as those of the rows that the model sees."""
        return parameters

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
        checkpoint, resume
            As in :meth:`tempering.BayesianGaussianMixture.fit`.
        """
        return self._fit_rows(X, checkpoint, resume, partial(self._cut, lengths=lengths))

    def _new_model(self, X: Array) -> HiddenMarkov:
        self._prepare(X)
        self._fitted_form = form_of(self)
        return self._model()

    @property
    def _not_converged(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (
            f"The best fit did not converge in n_iter={self.max_iter} iterations. Raise n_iter "
            "or tol."
        )

    def _kept(self) -> dict[str, Any]:
        """The attributes that ``init_params`` leaves as they are, for the fit to begin from."""
        self._check_letters("init_params")
        computed = set(self.init_params) & set(self.params)
        kept = [name for key, name in self._letters.items() if key not in computed]
        return {name: getattr(self, name) for name in kept if hasattr(self, name)}

    def _check_letters(self, parameter: str) -> None:
        given = getattr(self, parameter)
        if unknown := sorted(set(given) - set(self._letters)):
            letters = self._letters.items()
            known = ", ".join(f"{letter} ({name.strip('_')}_)" for letter, name in letters)
            raise ValueError(f"{parameter}={given!r} must hold letters of {known}; got {unknown}.")

    def _cut(self, rows: Any, lengths: ArrayLike | None) -> Sequences:
        """The data of the model: whole sequences, or pieces of them."""
        data = Sequences(rows, lengths, piece_length=self.piece_length, buffer=self.buffer)
        model = self._model()
        if "emissions" in model.fixed:
            model.check(data)
            _refuse_impossible(model, data)
        return data

    def _n_starts(self) -> int:
        # With one state, or with all parameters given, each start is the same.
        computed = set(self.init_params) & set(self.params)
        return self.n_init if self.n_components > 1 and computed else 1

    def _starts(self, model: HiddenMarkov, data: Sequences, rng: np.random.RandomState) -> Natural:
        """λ at step 0. For it pieces are sequences by themselves, unless moves are forbidden: only
        whole sequences show the order of states. Parameters that are kept have no posterior to
        begin from; the states that they give the data do.
        """
        lengths, kept = data.inner_lengths, self._kept()
        if not model.allows_all:
            lengths = np.add.reduceat(lengths, np.flatnonzero(data.begins))
        data = Sequences(data.table, lengths)
        posterior = cold_start(model, data, self.init, rng)
        if not kept:
            return posterior
        before = dict(vars(self))
        self._expose_at(model, posterior)
        for name, value in kept.items():
            setattr(self, name, value)
        X = self._emitted(data.rows) + getattr(self, "_centre", 0)
        posterior, chain, first = model.prior(), self._chain(), 0
        for bounds, log_emissions in self._log_emissions(X, data.lengths):
            block = data[first : first + len(bounds) - 1]
            paths = solve_paths(chain, log_emissions, bounds)
            posterior, first = posterior + model.path_statistics(block, paths), first + len(block)
        self.__dict__ = before  # for the next start
        return posterior

    def _run(self, model: HiddenMarkov, data: Sequences, options: FitOptions) -> Result:
        solver = model_on(self.backend, model, len(data.table))
        result = super()._run(solver, data, options)
        return replace(result, model=on_cpu(result.model))

    def _searches(self, policy: TemperaturePolicy) -> bool:
        # A state whose parameters are given, or whose moves are restricted, is not like others.
        alike = not self._kept() and self._model().allows_all and self._model().components
        untempered = isinstance(policy, Untempered) and self.batch_size is None
        return untempered and self._n_starts() > 1 and bool(alike)

    def _search(self, model: HiddenMarkov, data: Sequences, options: FitOptions) -> Result:
        solver = model_on(self.backend, model, len(data.table))
        result = super()._search(solver, data, options)
        return replace(result, model=on_cpu(result.model))

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, lengths: ArrayLike | None = None) -> Self:
        """Update the model with more sequences: one step of stochastic variational inference.

        The first call fixes the data-driven priors and the start. Each call brings sequences that
        begin in it; with ``piece_length`` a call may bring a part of one that never ends. All steps
        are made at T = 1.
        """
        first = not hasattr(self, "_state")
        with self._all_or_nothing(X) as X:
            if not first:
                check_unchanged(self, **self._fitted_form)
            model = self._new_model(X) if first else self._model()
            data = self._cut(self._transformed(X), lengths)
            model.check(data)
            self._advance(model, data, check_random_state(self.random_state))
            self._expose(model)
        return self

    def _check_loaded(self: Any) -> None:
        """Hold a fit against the parameters, and keep attributes that were set by hand."""
        check_is_fitted(self)
        self._chain()
        self._point()
        if not hasattr(self, "_state"):
            return
        expect_kinds(self, _state=State, _emission_prior=Array, _fitted_form=dict)
        check_unchanged(self, **self._fitted_form)
        posterior, d = self._state.posterior, self.n_features_in_
        # Before anything is made in the sizes that the parameters tell.
        expect(isinstance(posterior, Natural), "the posterior is missing.")
        shape, prior = np.shape(posterior.get("emissions")), self._emission_prior.shape
        expect(
            prior == shape[1:] and shape == (self.n_components, *prior) and prior[0] >= d,
            f"the emissions have the shape {shape}, and their prior {prior}; the parameters ask "
            f"for {self.n_components} states of {d} columns.",
        )
        if hasattr(self, "_centre"):
            expect_shape(self, "_centre", (d,))
        self._model().check_posterior(posterior)

    @property
    def startprob_posterior_(self) -> Array:
        """Concentrations of the posterior of the first state, a Dirichlet distribution."""
        check_is_fitted(self, "_state")
        return self._state.posterior.start

    @property
    def transmat_posterior_(self) -> Array:
        """Those of the transitions, a row for each state."""
        check_is_fitted(self, "_state")
        return self._state.posterior.transitions

    def _expose(self, model: HiddenMarkov, data: Any = None) -> None:
        self._expose_at(model, self._state.posterior)

    def _expose_at(self, model: HiddenMarkov, posterior: Natural) -> None:
        if "start" not in model.fixed:
            self.startprob_ = model.states.mean_weights(posterior.start)
        if "transitions" not in model.fixed:
            self.transmat_ = model.states.mean_weights(posterior.transitions)
        if "emissions" not in model.fixed:
            self._expose_emissions(model, posterior)


def _refuse_impossible(model: HiddenMarkov, data: Sequences) -> None:
    """Raise unless each sequence has a path: no fit lifts a zero."""
    solved = model.solve(data, model.expectations(model.prior()))
    logs = np.concatenate([paths.log_normalizers for _, paths in solved])
    if (impossible := logs == -np.inf).any():
        sequence = int(np.cumsum(data.begins)[np.argmax(impossible)]) - 1
        raise ValueError(
            f"X must be possible with what params holds fixed: sequence {sequence} has the "
            "probability 0 on every path of states."
        )
