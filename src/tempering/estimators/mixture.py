"""What the mixture estimators share: fitting, online fitting, and prediction."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from tempering.estimators.policies import Tempering, as_policy
from tempering.families import Dirichlet, MixingWeights, StickBreaking
from tempering.inference import Algorithm, Batch, History, Result, RobbinsMonro, State, fit
from tempering.inference.executors import local_executor
from tempering.models import Mixture, Natural
from tempering.models.base import Array
from tempering.temperature import Untempered

#: Rows whose predictive density is computed at a time; bounds the memory, not the result.
PREDICTION_ROWS = 2048


class MixtureEstimator(DensityMixin, BaseEstimator, metaclass=ABCMeta):
    """A mixture with scikit-learn's interface. Subclasses say which, and how it starts."""

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "tempering": [str, Untempered, None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "weight_concentration_prior_type": [
            StrOptions({"dirichlet_process", "dirichlet_distribution"})
        ],
        "weight_concentration_prior": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "learning_offset": [Interval(Real, 0, None, closed="left")],
        "learning_decay": [Interval(Real, 0.5, 1, closed="right")],
        "total_samples": [Interval(Real, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    # What each estimator stores in __init__; named here for the reader and the type checker.
    n_components: int
    tempering: Tempering
    tol: float
    max_iter: int
    n_init: int
    weight_concentration_prior_type: str
    weight_concentration_prior: float | None
    batch_size: int | None
    learning_offset: float
    learning_decay: float
    total_samples: float | None
    random_state: Any
    n_jobs: int | None
    verbose: int

    @abstractmethod
    def _prepare(self, X: Array) -> None:
        """Fix from the first data what the model needs to know: offsets and data-driven priors."""

    def _transformed(self, X: Array) -> Array:
        """The data as the model sees them."""
        return X

    @abstractmethod
    def _model(self) -> Mixture:
        """The model, from the parameters and what :meth:`_prepare` fixed."""

    @abstractmethod
    def _starts(self, model: Mixture, X: Array, rng: np.random.RandomState) -> Natural:
        """λ at step 0, from data that stand for all of them."""

    @abstractmethod
    def _expose(self, model: Mixture, posterior: Natural) -> None:
        """Set the attributes that people read, from the posterior."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self
        """
        X = self._validated(X, reset=True)
        if X.shape[0] < self.n_components:
            raise ValueError(
                f"n_components={self.n_components} is more than n_samples={X.shape[0]}: ask for "
                "fewer components, or give more data."
            )
        policy = as_policy(self.tempering)
        rng = check_random_state(self.random_state)
        self._prepare(X)
        model, data = self._model(), self._transformed(X)
        best = None
        for _ in range(self._n_starts()):
            initial = self._starts(model, data, rng)
            seed = int(rng.randint(np.iinfo(np.int32).max))
            result = self._search(model, data, policy, initial, seed)
            if best is None or result.elbo > best.elbo:
                best = result
        assert best is not None
        self._summarise(best)
        self._state = State(best.posterior, best.heat, len(best.history), X.shape[0])
        self._expose(model, best.posterior)
        return self

    def _n_starts(self) -> int:
        """How many starts are worth trying."""
        return self.n_init

    def _search(
        self, model: Mixture, data: Array, policy: Untempered, initial: Natural, seed: int
    ) -> Result:
        """One run of the engine."""
        return fit(
            model,
            data,
            temperature=policy,
            learning_rate=self._learning_rate() if self.batch_size is not None else None,
            batch_size=self.batch_size,
            max_passes=self.max_iter,
            tolerance=self.tol,
            initial=initial,
            seed=seed,
            n_threads=self.n_jobs,
            progress=bool(self.verbose),
        )

    def _summarise(self, result: Result) -> None:
        """Set the attributes that say how the fit went."""
        self.history_ = result.history
        self.converged_ = result.converged
        self.n_iter_ = int(np.ceil(result.history[-1].passes))
        self.elbo_ = self.lower_bound_ = result.elbo
        self.temperature_ = 1.0 / np.mean(result.heat.inverse_temperature)
        self.inverse_temperatures_ = result.heat.inverse_temperature

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the mixture with one more minibatch: stochastic variational inference.

        The first call fixes the data-driven priors and the start. With ``total_samples`` the
        tempered part runs over its share of them; without it, the length of the stream is not known
        and every step is made at T = 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A minibatch.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self
        """
        first = not hasattr(self, "_state")
        X = self._validated(X, reset=first)
        rng = check_random_state(self.random_state)
        if first:
            self._prepare(X)
        model, data = self._model(), self._transformed(X)
        batch = Batch(data)
        seen = 0 if first else self._state.data_seen
        total = float(self.total_samples or 0)
        policy = as_policy(self.tempering) if self.total_samples else Untempered()
        with local_executor(self.n_jobs) as executor:
            algorithm = Algorithm(
                model,
                policy,
                self._learning_rate(),
                executor,
                n_data=int(max(total, seen + batch.size)),
                planned_passes=1.0,
            )
            if first:
                posterior = self._starts(model, data, rng)
                self._state = algorithm.start(posterior, np.random.default_rng(rng.randint(2**31)))
                self.history_ = History()
            self._state = algorithm.advance(self._state, batch, evaluate=False).state
        self.n_iter_ = self._state.step
        self._expose(model, self._state.posterior)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Posterior probability of each component, shape (n_samples, n_components)."""
        check_is_fitted(self)
        model = self._model()
        data = self._transformed(self._validated(X, reset=False))
        return model.assign(data, model.expectations(self._state.posterior)).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """The most probable component of each sample."""
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, then the most probable component of each sample."""
        return self.fit(X).predict(X)

    def score_samples(self, X: Any) -> Array:
        """Log posterior predictive density of each sample: log Σ_k E[π_k] E[p(x | β_k)].

        The expectation over β_k is exact, by conjugacy: E[p(x | β)] = h(x) exp{a(λ + t(x)) − a(λ)}.
        """
        check_is_fitted(self)
        data = self._transformed(self._validated(X, reset=False))
        model, posterior = self._model(), self._state.posterior
        family, likelihood = model.likelihood.conjugate, model.likelihood
        log_weights = np.log(_normalised_weights(model.weights, posterior))
        base = log_weights - family.log_normalizer(posterior.components)
        scores = []
        for start in range(0, data.shape[0], PREDICTION_ROWS):
            rows = data[start : start + PREDICTION_ROWS]
            updated = posterior.components + likelihood.statistics(rows)[:, None, :]
            log_densities = family.log_normalizer(updated) + base
            scores.append(logsumexp(log_densities, axis=1) + likelihood.log_base_measure(rows))
        return np.concatenate(scores)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log posterior predictive density of the samples."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples from the mixture at the posterior's central parameters.

        Returns
        -------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The component of each.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1; got {n_samples}.")
        seed = check_random_state(self.random_state).randint(2**31)
        rng = np.random.default_rng(seed)
        model, posterior = self._model(), self._state.posterior
        weights = _normalised_weights(model.weights, posterior)
        labels = np.repeat(np.arange(self.n_components), rng.multinomial(n_samples, weights))
        parts = [
            model.likelihood.sample(
                model.likelihood.conjugate.point(posterior.components[k]), rng, int(count)
            )
            for k, count in enumerate(np.bincount(labels, minlength=self.n_components))
            if count
        ]
        return self._untransformed(np.concatenate(parts)), labels

    def _untransformed(self, X: Array) -> Array:
        """Back from what the model sees."""
        return X

    def _validated(self, X: Any, *, reset: bool) -> Array:
        return validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=1)

    def _learning_rate(self) -> RobbinsMonro:
        return RobbinsMonro(self.learning_offset, self.learning_decay)

    def _weights(self) -> tuple[MixingWeights, Array]:
        """The family of the mixing weights, and its prior."""
        k = self.n_components
        concentration = self.weight_concentration_prior
        concentration = 1.0 / k if concentration is None else float(concentration)
        if self.weight_concentration_prior_type == "dirichlet_process":
            return StickBreaking(k), np.repeat([1.0, concentration], k)
        return Dirichlet(k), np.full(k, concentration)

    def _expose_weights(self, model: Mixture, posterior: Natural) -> None:
        self.weights_ = _normalised_weights(model.weights, posterior)
        concentration = posterior.weights
        sticks = isinstance(model.weights, StickBreaking)
        self.weight_concentration_ = tuple(np.split(concentration, 2)) if sticks else concentration


def _normalised_weights(weights: MixingWeights, posterior: Natural) -> Array:
    """E[π_k]; truncated sticks do not quite sum to 1."""
    mean = weights.mean_weights(posterior.weights)
    return mean / mean.sum()
