"""The parts of one step of a fit on the device, compiled once for each shape."""

from functools import cache, partial
from typing import Any, Literal, NamedTuple

from tempering.gpu import jax_functions, pallas_kernels
from tempering.gpu.device_data import Rectangle, gather
from tempering.gpu.jax_device import has_gpu, jax, jnp, special
from tempering.gpu.jax_functions import (
    NEVER,
    SMALLEST_PARAMETER,
    SweepLimits,
    digamma,
    log_word_table,
    padded_topics,
)
from tempering.models.lda.model import LatentDirichlet

#: Which code runs a group: the GPU kernels, the same interpreted (for tests), or plain JAX.
Kernel = Literal["pallas", "interpreted", "plain"]

#: Documents of a group: many for kernels that take them one by one, few where they share a loop.
GROUP_SIZES: dict[Kernel, int] = {"pallas": 8192, "interpreted": 8192, "plain": 256}

#: Documents, and words of the vocabulary, whose part of the ELBO is computed at a time.
DOCUMENTS_AT_ONCE, WORDS_AT_ONCE = 64, 256


class CompiledSteps(NamedTuple):
    """The compiled parts."""

    draw: Any  # (seed) → λ [n_words, padded topics]
    table: Any  # (λ) → log β
    # Documents are a rectangle, or a packed group and the width of the one that is returned.
    solve: Any  # (documents, s, log β, α, statistics, γ to start from) → statistics, γ, rectangle
    sample: Any  # (documents, log β, its power, α, statistics) → statistics, γ, rectangle
    prior_draws: Any  # (γ, α, sum so far) → Σ_d of draws from the prior, [padded topics]
    log_proportions: Any  # (γ, documents, sum so far) → Σ_d E log θ_d, [padded topics]
    terms: Any  # (rectangle, s, log β, α, γ) → energies, entropies less divergences, [size]
    divergence: Any  # (λ, w η, η) → parts of words in KL(q(β) ‖ p(β)^w) [n_words], Σ_v λ

    def n_compiled(self) -> int:
        """How many shapes were compiled."""
        return sum(part._cache_size() for part in self)


def default_kernel() -> Kernel:
    """The GPU kernels where there is a GPU."""
    return "pallas" if has_gpu() else "plain"


def settings_of(model: LatentDirichlet) -> SweepLimits:
    """How the documents of a model iterate."""
    return SweepLimits(float(model.tolerance), int(model.min_iterations), int(model.max_iterations))


def group_functions(kernel: Kernel) -> tuple[Any, Any]:
    """What solves a group, and what samples its topics, to be called inside compiled code."""
    if kernel == "plain":
        return jax_functions.solve_group, jax_functions.sample_group
    interpret = kernel == "interpreted"
    return (
        partial(pallas_kernels.solve_group, interpret=interpret),
        partial(pallas_kernels.sample_group, interpret=interpret),
    )


def steps_of(model: LatentDirichlet, kernel: Kernel) -> CompiledSteps:
    """The compiled parts for this model."""
    # They take the log of the posterior mean of β, instead of E log β.
    mean_topics = model.update != "variational"
    return compiled_steps(model.n_words, model.n_topics, mean_topics, settings_of(model), kernel)


@cache
def compiled_steps(
    n_words: int, n_topics: int, mean_topics: bool, settings: SweepLimits, kernel: Kernel
) -> CompiledSteps:
    """The parts for all models that have these in common."""
    real = jnp.arange(padded_topics(n_topics)) < n_topics
    solve_group, sample_group = group_functions(kernel)

    @jax.jit
    def draw(seed):
        """Gamma(100, 1/100) draws, near 1 and not alike."""
        shape = (n_words, padded_topics(n_topics))
        return jax.random.gamma(jax.random.key(seed), 100.0, shape, jnp.float32) * 0.01

    @jax.jit
    def table(topics):
        return jnp.where(real, log_word_table(topics, topics.sum(axis=0), mean_topics), NEVER)

    def rectangle_of(documents, width):
        if isinstance(documents, Rectangle):
            return documents
        return gather(documents, width=width, n_words=n_words)

    @partial(jax.jit, static_argnames="width")
    def solve(documents, s, log_rows, alpha, statistics, start=None, *, width=None):
        columns, counts, lengths = rectangle = rectangle_of(documents, width)
        totals = counts.sum(axis=1, keepdims=True)
        if start is None:
            mass = jnp.where(real, totals / n_topics, 0.0)
        else:
            own_s = jnp.broadcast_to(s, lengths.shape)[:, None]
            mass = jnp.where(real & (totals > 0), (start - alpha) / own_s, 0.0)
        gamma, own, _ = solve_group(columns, counts, lengths, s, mass, log_rows, alpha, settings)
        return own if statistics is None else statistics + own, gamma, rectangle

    @partial(jax.jit, static_argnames="width")
    def sample(documents, log_rows, power, alpha, statistics, *, width=None):
        rectangle = rectangle_of(documents, width)
        gamma, own = sample_group(*rectangle, power * log_rows, alpha)
        return own if statistics is None else statistics + own, gamma, rectangle

    @jax.jit
    def prior_draws(gamma, alpha, so_far):
        """As :func:`tempering.models.lda.priors.prior_draws`."""
        # Rows and columns that only fill up have γ = α, and draw nothing.
        draws = (alpha * (digamma(gamma) - digamma(alpha))).sum(axis=0)
        return draws if so_far is None else so_far + draws

    @jax.jit
    def log_proportions(gamma, n_documents, so_far):
        """As :func:`tempering.models.lda.priors.sum_log_proportions`."""
        totals = jnp.where(real, gamma, 0.0).sum(axis=1, keepdims=True)
        there = jnp.arange(gamma.shape[0])[:, None] < n_documents
        logs = jnp.where(there, digamma(gamma) - digamma(totals), 0.0).sum(axis=0)
        return logs if so_far is None else so_far + logs

    @jax.jit
    def terms(rectangle, s, log_rows, alpha, gamma):
        """What a document adds to the ELBO, with its φ that belongs to γ."""

        def one(document):
            columns, counts, s, gamma = document
            total = jnp.where(real, gamma, 0.0).sum()
            log_theta = jnp.where(real, digamma(gamma) - digamma(total), 0.0)
            rows = log_rows[jnp.minimum(columns, n_words - 1)]
            log_joint = jnp.where(real, log_theta + rows, NEVER)
            phi = jax.nn.softmax(s * log_joint, axis=1)
            energy = counts @ jnp.where(real, phi * log_joint, 0.0).sum(axis=1)
            entropy = counts @ special.entr(phi).sum(axis=1)
            parts = (gamma - alpha) * log_theta + special.gammaln(alpha) - special.gammaln(gamma)
            divergence = jnp.where(real, parts, 0.0).sum() + special.gammaln(total)
            prior_total = jnp.where(real, alpha, 0.0).sum()
            return energy, entropy - (divergence - special.gammaln(prior_total))

        columns, counts, lengths = rectangle
        documents = columns, counts, jnp.broadcast_to(s, lengths.shape), gamma
        return jax.lax.map(one, documents, batch_size=DOCUMENTS_AT_ONCE)

    @jax.jit
    def divergence(topics, tempered_prior, prior):
        totals = topics.sum(axis=0)
        expected_total, log_gamma = digamma(totals), special.gammaln(prior)

        def one(row):
            row = jnp.maximum(row, SMALLEST_PARAMETER)
            parts = (row - tempered_prior) * (digamma(row) - expected_total)
            # Most of λ is next to η: so its errors, alike for all words, do not add up.
            parts = parts - (special.gammaln(row) - log_gamma)
            return jnp.where(real, parts, 0.0).sum()

        return jax.lax.map(one, topics, batch_size=WORDS_AT_ONCE), totals

    return CompiledSteps(
        draw, table, solve, sample, prior_draws, log_proportions, terms, divergence
    )
