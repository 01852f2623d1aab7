"""The factorial mixture: each datum is a sum of the features that are active in it.

    μ_k ~ N(0, σ_μ²·1),   z_nk ~ Bern(π_k),   x_n ~ N( Σ_k z_nk μ_k, σ²·1 ),

with **variances** σ_μ² and σ². The complete conditional of all features is a Gaussian,

    P = (σ²/σ_μ²)·1 + Σ_n s_n E[z_n z_n'],     H = Σ_n s_n E[z_n] x_n'     (in units of 1/σ²),

and the factorised q(μ_k) = N(m_k, v_k·1) nearest to it have m = P⁻¹H and v_k = σ²/P_kk: one system
for K updates in turn. Ghahramani (1995); Doshi-Velez et al. (2009); log C: Mandt et al. (2016),
with the term it lacks.
"""

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from tempering.families.checks import check_table
from tempering.models.arguments import as_numbers, check_choice, shown
from tempering.models.base import Array, DataSource, LocalStep, Model
from tempering.models.factorial.activations import (
    MAX_ENUMERATED,
    TABLE_SIZE,
    Activations,
    all_states,
    enumerate_activations,
    settle_activations,
)
from tempering.models.natural import LOCAL_STEP, Natural, check_like_prior
from tempering.storage.state import stored

LocalMethod = Literal["mean-field", "exact"]
Start = Literal["small", "prior", "data"]

#: Entries of the data that one worker solves at a time.
SHARD_ENTRIES = 2**19

#: Hyperparameters with closed-form updates.
LEARNABLE = ("noise_variance", "feature_variance", "activation_probability")


class FeatureExpectations(NamedTuple):
    """What the local step needs of q(μ)."""

    means: Array  # m_k, [K, D]
    variances: Array  # v_k, [K]
    products: Array  # m_j · m_k, [K, K]


@stored("activation_step", constructed=False, attributes={"activations": Array, **LOCAL_STEP})
class ActivationStep(LocalStep):
    """A local step that still has its activations."""

    def __init__(self, activations: Array, **terms: Any):
        super().__init__(**terms)
        self.activations = activations

    @property
    def local(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        """E[z]; those from a device have rows that fill up."""
        return np.asarray(self.activations)[: self.n]


@stored("factorial_model", attributes={"_shared_probability": bool})
@dataclass(eq=False, repr=False)
class FactorialModel(Model):
    """The factorial mixture model; ``FactorialMixture`` tells most of its parameters.

    ``local`` is "mean-field", q(z_n) factorised over features with ``local_restarts`` hot starts,
    or "exact", the joint one over all 2^K activations (K <= 12), which has no local optima.
    ``tolerance`` and ``max_sweeps`` are those of a datum's coordinate ascent.
    """

    continues_steps = True

    n_features: int
    dimension: int
    noise_variance: float
    feature_variance: float
    activation_probability: Array  # [K], or one number for all, which is made that
    _: KW_ONLY
    local: LocalMethod = "mean-field"
    local_restarts: int = 0
    start: Start = "small"
    learn: Collection[str] = ()
    tolerance: float = 1e-3
    max_sweeps: int = 10

    def __post_init__(self) -> None:
        k, shared = self.n_features, np.ndim(self.activation_probability) == 0
        # Of the data: fewer than the dimension where the estimator has rotated them.
        self.columns = self.dimension
        self.check_parameters()
        self.noise_variance = float(self.noise_variance)
        self.feature_variance = float(self.feature_variance)
        self.activation_probability = as_probabilities(self.activation_probability, k)
        self.learn = frozenset(self.learn)
        # A row may be an image: then some hundred of them should already occupy several threads. Of
        # short rows, enough that their sweeps take more time than the calls around them.
        self.shard_size = int(np.clip(SHARD_ENTRIES // self.dimension, 512, 5120))
        self._shared_probability = shared
        check_choice(self.local, "local", *get_args(LocalMethod))
        if self.local == "exact" and k > MAX_ENUMERATED:
            raise ValueError(
                f"local='exact' enumerates 2^K activations and is for K <= {MAX_ENUMERATED} "
                f"features; got {k}. Use local='mean-field', with local_restarts."
            )
        check_choice(self.start, "start", *get_args(Start))
        if not self.learn <= set(LEARNABLE):
            raise ValueError(
                f"learn may hold {', '.join(map(repr, LEARNABLE))}; got {sorted(self.learn)}."
            )

    def check_parameters(self) -> None:
        for name in ("noise_variance", "feature_variance"):
            if not 0 < (value := getattr(self, name)) < np.inf:
                raise ValueError(f"{name} must be a positive number (a variance); got {value}.")
        as_probabilities(self.activation_probability, self.n_features)

    def check_posterior(self, posterior: Any) -> None:
        check_like_prior(posterior, self.prior())
        precision = posterior.precision
        symmetric = np.allclose(precision, precision.T, rtol=1e-6, atol=0.0)
        if not symmetric or np.any(np.linalg.eigvalsh(precision) <= 0):
            raise ValueError("the precision of the features must be symmetric and positive.")

    def check(self, data: Any) -> None:
        check_table(data, self.columns, "factorial mixture:")

    @property
    def components(self) -> Mapping[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.n_features < 2 or np.ptp(self.activation_probability) != 0.0:
            return {}
        return {"precision": (0, 1), "precision_mean": 0}

    def prior(self) -> Natural:
        """Precision and precision times mean, in units of 1/σ², and Σ_n s_n |x_n|²."""
        ratio = self.noise_variance / self.feature_variance
        return Natural(
            precision=ratio * np.eye(self.n_features),
            precision_mean=np.zeros((self.n_features, self.columns)),
            squares=0.0,
        )

    def initialize(self, source: DataSource, rng: np.random.Generator) -> Natural:
        """Features as ``start`` says, as sure of themselves as if each had its share of the data.

        With the prior's variance instead, the term D v_k would switch all of them off for ever.
        """
        shape = (self.n_features, self.columns)
        if self.start == "data":
            data = np.asarray(source.sample(self.n_features, rng), float)
            # A datum is the sum of several features, so a part of it is nearer to one of them.
            active = max(1.0, float(self.activation_probability.sum()))
            means = data[np.arange(self.n_features) % len(data)] / active
            means = means + 0.01 * np.sqrt(self.feature_variance) * rng.standard_normal(shape)
        else:
            scale = 0.1 if self.start == "small" else 1.0
            means = scale * np.sqrt(self.feature_variance) * rng.standard_normal(shape)
        counts = source.size * self.activation_probability
        return self.features_at(means, counts)

    def features_at(self, means: Array, counts: ArrayLike) -> Natural:
        """The posterior with these means, as if feature k had been seen ``counts[k]`` times."""
        precision = self.prior().precision + np.diag(np.broadcast_to(counts, self.n_features))
        return Natural(precision=precision, precision_mean=precision @ means, squares=0.0)

    def expectations(self, posterior: Natural) -> FeatureExpectations:
        means = np.asarray(np.linalg.solve(posterior.precision, posterior.precision_mean), float)
        variances = self.noise_variance / np.diag(posterior.precision)
        return FeatureExpectations(means, variances, means @ means.T)

    def local_step(
        self,
        data: Any,
        expectations: FeatureExpectations,
        inverse_temperature: float | Array,
        start: Array | None = None,
    ) -> ActivationStep:
        data = np.asarray(data, float)
        squares = np.einsum("nd,nd->n", data, data)
        means, variances, products = expectations
        offsets, couplings = self.interactions(products, variances)
        # Features first: so the local step has the points side by side.
        fields = (means / self.noise_variance) @ data.T
        fields += offsets[:, None]
        s = np.asarray(inverse_temperature, float)
        if self.local == "exact":
            solved = enumerate_activations(fields.T, couplings, s)
        else:
            solved = self.settle(fields.T, couplings, s, start)
        z = solved.activations
        common, weighted = (1.0, s[:, None] * z) if s.ndim else (float(s), z)
        precision = solved.second_moments
        if precision is None:
            precision = common * (weighted.T @ z)
            np.fill_diagonal(precision, common * weighted.sum(axis=0))
        return ActivationStep(
            solved.activations,
            statistics=Natural(
                precision=precision,
                precision_mean=common * (weighted.T @ data),
                squares=np.sum(s * squares),
            ),
            energies=solved.energies + self._base_energies(squares),
            entropy=float(solved.entropies.sum()),
            inverse_temperature=inverse_temperature,
        )

    def continue_local_step(
        self,
        local: LocalStep,
        data: Any,
        expectations: FeatureExpectations,
        inverse_temperature: float | Array,
    ) -> ActivationStep:
        start = local.activations if isinstance(local, ActivationStep) else local.local
        return self.local_step(data, expectations, inverse_temperature, start)

    def interactions(self, products: Array, variances: Array) -> tuple[Array, Array]:
        """c [K] and J [K, K]: with x·m/σ² + c for b, the log joint of z given E_q, at s = 1."""
        lengths = np.diag(products) + self.dimension * variances
        couplings = products / self.noise_variance
        np.fill_diagonal(couplings, 0.0)
        return self.log_odds - 0.5 * lengths / self.noise_variance, couplings

    def settle(
        self,
        fields: Array,
        couplings: Array,
        inverse_temperature: float | Array = 1.0,
        start: Array | None = None,
    ) -> Activations:
        """The factorised q(z_n); without a start, from the prior's probabilities."""
        start = self.activation_probability if start is None else start
        ends = {"tolerance": self.tolerance, "max_sweeps": self.max_sweeps}
        given = fields, couplings, inverse_temperature, start
        return settle_activations(*given, n_restarts=self.local_restarts, **ends)

    @property
    def log_odds(self) -> Array:
        """logit π_k."""
        return np.log(self.activation_probability) - np.log1p(-self.activation_probability)

    def _base_energies(self, squares: Array) -> Array:
        """log p(x_n, z_n = 0), which is no matter of the features."""
        peak = -self.dimension / 2 * np.log(2 * np.pi * self.noise_variance)
        inactive = np.log1p(-self.activation_probability).sum()
        return peak + inactive - squares / (2 * self.noise_variance)

    def divergence(self, posterior: Natural, prior_weight: float = 1.0) -> float:
        """E_q[log q(μ) − w log p(μ)] of the factorised q."""
        _, variances, products = self.expectations(posterior)
        d, prior = self.dimension, self.feature_variance
        lengths = np.trace(products) + d * variances.sum()
        entropy = d / 2 * np.sum(np.log(2 * np.pi * np.e * variances))
        log_prior = -d * self.n_features / 2 * np.log(2 * np.pi * prior) - lengths / (2 * prior)
        return float(-entropy - prior_weight * log_prior)

    def learn_hyperparameters(self, local: LocalStep, posterior: Natural, rate: float) -> None:
        """Each hyperparameter where it maximises the ELBO at this q(z) and this q(μ)."""
        if not self.learn:
            return
        means, variances, products = self.expectations(posterior)
        moments, d, n = local.statistics, self.dimension, local.n
        counts = np.diag(moments.precision)
        learned = dict[str, Any]()
        if "noise_variance" in self.learn:
            error = moments.squares - 2 * np.sum(moments.precision_mean * means)
            error += np.sum(moments.precision * products) + d * counts @ variances
            # Of data without noise there would be nothing left to divide by.
            learned["noise_variance"] = max(error, 1e-12 * moments.squares, 1e-300) / (n * d)
        if "feature_variance" in self.learn:
            lengths = np.trace(products) + d * variances.sum()
            learned["feature_variance"] = lengths / (d * self.n_features)
        if "activation_probability" in self.learn:
            share = np.full_like(counts, counts.mean()) if self._shared_probability else counts
            # Strictly between 0 and 1, so that no feature is lost for ever.
            learned["activation_probability"] = np.clip(share / n, 1e-6, 1 - 1e-6)
        for name, value in learned.items():
            setattr(self, name, (1 - rate) * getattr(self, name) + rate * value)

    # What learned temperatures need: c(s) does not depend on the features.

    def log_local_constant(self, inverse_temperatures: ArrayLike) -> Array:
        """log c(s) = log ∫ Σ_z p(x, z | μ)^s dx, the same for any μ: [M].

        −(D/2) log s + (D/2)(1 − s) log 2πσ² + Σ_k log( π_k^s + (1 − π_k)^s ).
        """
        s = np.asarray(inverse_temperatures, float)
        constant = self.dimension / 2 * np.log(2 * np.pi * self.noise_variance)
        return self._printed_constant(s) + (1 - s) * constant

    def log_partition(self, inverse_temperatures: Array, n_data: int) -> Array:
        return n_data * self.log_local_constant(inverse_temperatures)

    def printed_log_partition(self, inverse_temperatures: Array, n_data: int) -> Array:
        """The paper's log C, without (D/2)(1 − s) log 2πσ²: that moves the temperature found."""
        return n_data * self._printed_constant(np.asarray(inverse_temperatures, float))

    def local_log_normalizer(
        self, expectations: Any, inverse_temperatures: Array, data: Any
    ) -> Array:
        return self.log_local_constant(inverse_temperatures)[None]

    def _printed_constant(self, s: Array) -> Array:
        active = s[:, None] * np.log(self.activation_probability)
        inactive = s[:, None] * np.log1p(-self.activation_probability)
        return -self.dimension / 2 * np.log(s) + np.logaddexp(active, inactive).sum(axis=1)


def as_probabilities(value: ArrayLike, n_features: int) -> Array:
    """π of each feature, [K]; raise ``ValueError`` if it cannot be that."""
    expected = f"between 0 and 1: one number or {n_features}"
    given = as_numbers(value, "activation_probability", expected)
    right = np.all((given > 0) & (given < 1))
    if given.shape not in ((), (n_features,)) or not right:
        raise ValueError(
            f"activation_probability must be {expected}; got {shown(given)}, of shape "
            f"{given.shape}."
        )
    return np.broadcast_to(given, n_features).copy()


def log_density(model: FactorialModel, data: Array, expectations: FeatureExpectations) -> Array:
    """log E_q[p(x_n | μ)] at T = 1, [n], the features integrated out under q(μ).

    With few features it is the exact sum over all activations; with many, a mean-field lower bound.
    """
    data, (means, variances, products) = np.asarray(data, float), expectations
    squares, projections = np.einsum("nd,nd->n", data, data), data @ means.T
    if model.n_features <= MAX_ENUMERATED:
        return _log_evidence(model, projections, squares, expectations)
    offsets, couplings = model.interactions(products, variances)
    settled = model.settle(projections / model.noise_variance + offsets, couplings)
    # E_q[log N(x_n | Σ_k z_nk μ_k, σ²·1)] over z and μ.
    z, d = settled.activations, model.dimension
    errors = squares - 2 * np.einsum("nk,nk->n", z, projections)
    errors += np.einsum("nj,jk,nk->n", z, products, z, optimize=True)
    errors += (z * (1 - z)) @ np.diag(products) + d * z @ variances
    peak = -d / 2 * np.log(2 * np.pi * model.noise_variance)
    return (peak - errors / (2 * model.noise_variance)) + (
        z @ model.log_odds + np.log1p(-model.activation_probability).sum() + settled.entropies
    )


def _log_evidence(
    model: FactorialModel, projections: Array, squares: Array, expectations: FeatureExpectations
) -> Array:
    """log Σ_S p(S) N(x_n | S M, (σ² + Σ_k S_k v_k)·1)."""
    states, d = all_states(model.n_features), model.dimension
    spread = model.noise_variance + states @ expectations.variances
    log_prior = states @ model.log_odds + np.log1p(-model.activation_probability).sum()
    constant = log_prior - d / 2 * np.log(2 * np.pi * spread)
    lengths = np.einsum("sj,jk,sk->s", states, expectations.products, states, optimize=True)
    result = np.empty(len(squares))
    step = max(1, TABLE_SIZE // len(states))
    for rows in (slice(start, start + step) for start in range(0, len(result), step)):
        distances = squares[rows, None] + lengths
        distances -= 2 * projections[rows] @ states.T
        result[rows] = logsumexp(constant - 0.5 * distances / spread, axis=1)
    return result
