"""log ∫ p(x)^s dx of NumPyro's distributions, which learned temperatures need.

Most are closed: p^s is of p's own kind, and what the two differ by at one place they differ by
everywhere. The others are sums, and for mixtures a mean over draws.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from numpyro.distributions.util import sum_rightmost


@singledispatch
def log_normalizer(density: Any, s: Any) -> jax.Array:
    """log ∫ p(x)^s dx, for each place of a NumPyro distribution's batch, with 0 < s ≤ 1.

    ``VariationalTempering`` needs it for each tempered site. To add a distribution of your own,
    register a function for its class.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpyro.distributions as dist
    >>> from tempering.blackbox import log_normalizer
    >>> print(f"{log_normalizer(dist.Bernoulli(0.2), 0.5):.3f}")  # log(√0.2 + √0.8)
    0.294
    >>> @log_normalizer.register(dist.Uniform)
    ... def _(density, s):
    ...     return (1 - s) * jnp.log(density.high - density.low)
    >>> print(f"{log_normalizer(dist.Uniform(0.0, 4.0), 0.5):.3f}")
    0.693
    """
    if density.has_enumerate_support:
        return logsumexp(s * density.log_prob(density.enumerate_support(expand=False)), axis=0)
    hot, place = tempered(density, s)
    return s * density.log_prob(place) - hot.log_prob(place)


def of_sites(sites: dict[str, Any], s: Any) -> jax.Array:
    """log ∫ p(x)^s dx of all data of these sites, or an error that names the site without it."""
    total = jnp.zeros(())
    for name, site in sites.items():
        kind = type(base_of(site["fn"])).__name__
        try:
            each = log_normalizer(site["fn"], s)
        except NotImplementedError:
            raise ValueError(
                f"the site {name!r} is {kind}, of which log ∫ p(x)^s dx is not known, as "
                "VariationalTempering needs: give temperature='adaptive', or the function by "
                "log_normalizer.register (for TemperedVI by log_normalizer=)."
            ) from None
        scale = 1.0 if site["scale"] is None else site["scale"]
        total += scale * jnp.sum(jnp.broadcast_to(each, jnp.shape(site["log_prob"])))
    return total


def base_of(density: Any) -> Any:
    """Without the axes that plates and ``to_event`` gave it, and without a mask."""
    wrapped = dist.Independent | dist.ExpandedDistribution | dist.MaskedDistribution
    while isinstance(density, wrapped):
        density = density.base_dist
    return density


@singledispatch
def tempered(density: Any, s: Any) -> tuple[Any, Any]:
    """The distribution whose density is p(x)^s, normalised, and a place where it is not small."""
    raise NotImplementedError


tempered.register(dist.Normal, lambda p, s: (dist.Normal(p.loc, p.scale / jnp.sqrt(s)), p.loc))
tempered.register(dist.Laplace, lambda p, s: (dist.Laplace(p.loc, p.scale / s), p.loc))
tempered.register(dist.Exponential, lambda p, s: (dist.Exponential(s * p.rate), 1 / p.rate))
tempered.register(
    dist.MultivariateNormal,
    lambda p, s: (dist.MultivariateNormal(p.loc, scale_tril=p.scale_tril / jnp.sqrt(s)), p.loc),
)


@tempered.register
def _(density: dist.LogNormal, s: Any) -> tuple[Any, Any]:
    loc = density.loc + (1 - s) / s * density.scale**2
    return dist.LogNormal(loc, density.scale / jnp.sqrt(s)), jnp.exp(density.loc)


@tempered.register
def _(density: dist.StudentT, s: Any) -> tuple[Any, Any]:
    # So hot that the integral is infinite: as good as that, but a number.
    df = jnp.maximum(s * (density.df + 1) - 1, 1e-30)
    return dist.StudentT(df, density.loc, density.scale * jnp.sqrt(density.df / df)), density.loc


@tempered.register
def _(density: dist.Gamma, s: Any) -> tuple[Any, Any]:
    shape = s * (density.concentration - 1) + 1
    return dist.Gamma(shape, s * density.rate), shape / (s * density.rate)


@tempered.register
def _(density: dist.Beta, s: Any) -> tuple[Any, Any]:
    a, b = (s * (each - 1) + 1 for each in (density.concentration1, density.concentration0))
    return dist.Beta(a, b), a / (a + b)


@tempered.register(dist.Independent)
@tempered.register(dist.ExpandedDistribution)
def _(density: Any, s: Any) -> tuple[Any, Any]:
    hot, place = tempered(density.base_dist, s)
    if isinstance(density, dist.Independent):
        return hot.to_event(density.reinterpreted_batch_ndims), place
    return hot.expand(density.batch_shape), place


@log_normalizer.register
def _(density: dist.Independent, s: Any) -> jax.Array:
    base = density.base_dist
    whole = jnp.broadcast_to(log_normalizer(base, s), base.batch_shape)
    return sum_rightmost(whole, density.reinterpreted_batch_ndims)


log_normalizer.register(dist.ExpandedDistribution, lambda p, s: log_normalizer(p.base_dist, s))
log_normalizer.register(
    dist.MaskedDistribution, lambda p, s: jnp.where(p._mask, log_normalizer(p.base_dist, s), 0.0)
)


@log_normalizer.register
def _(density: dist.MixtureSameFamily, s: Any) -> jax.Array:
    """Σ_k w_k^s ∫ p_k^s times the mean of p^s / Σ_k (w_k p_k)^s, which is never far from 1.

    The mean is over draws of the tempered components, the same ones for all s.
    """
    components = density.component_distribution
    log_weights = jax.nn.log_softmax(density.mixing_distribution.logits)
    hot, _ = tempered(components, s)
    axis, n = -1 - len(components.event_shape), 32
    draws = jnp.moveaxis(hot.sample(jax.random.key(0), (n,)), axis, 0)
    joint = log_weights + components.log_prob(jnp.expand_dims(draws, axis))
    ratios = s * logsumexp(joint, axis=-1) - logsumexp(s * joint, axis=-1)  # [K, draw, ...]
    bounds = jnp.moveaxis(s * log_weights + log_normalizer(components, s), -1, 0)
    return logsumexp(bounds + logsumexp(ratios, axis=1) - jnp.log(n), axis=0)


@log_normalizer.register(dist.BinomialProbs)
@log_normalizer.register(dist.BinomialLogits)
@log_normalizer.register(dist.Poisson)
def _(density: Any, s: Any) -> jax.Array:
    """Σ p(k)^s over counts that weigh; where these are many, some stand for their neighbours."""
    n_terms = 128
    # Bernstein's inequality: what is left out is below exp(−12) of what weighs most.
    reach = 4 / s + jnp.sqrt(16 / s**2 + 24 * density.variance / s)
    first = jnp.maximum(jnp.floor(density.mean - reach), 0.0)
    last = jnp.minimum(jnp.ceil(density.mean + reach), getattr(density, "total_count", jnp.inf))
    step = jnp.maximum(jnp.ceil((last - first) / (n_terms - 1)), 1.0)
    count = first + step * jnp.arange(n_terms).reshape(-1, *(1,) * jnp.ndim(step))
    ends = jnp.maximum(count - step / 2, first - 0.5), jnp.minimum(count + step / 2, last + 0.5)
    log_probs = density.log_prob(jnp.minimum(count, last))
    return logsumexp(s * log_probs, axis=0, b=jnp.maximum(ends[1] - ends[0], 0.0))
