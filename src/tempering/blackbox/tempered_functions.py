"""Tempered variational inference for plain JAX functions: a likelihood and a prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from numpyro.infer.autoguide import AutoNormal

from tempering.blackbox.tempered_svi import TemperedSVI
from tempering.models.arguments import shown


class TemperedVI(TemperedSVI):
    """Fit q(z) to log p(x | z) + log p(z), two functions of JAX, with the first one tempered.

    Parameters
    ----------
    log_likelihood : callable
        log p(x | z), a function of z, and of the data that ``run`` is given.
    log_prior : callable
        log p(z), a function of z alone; z is unconstrained.
    like : array or pytree of arrays
        Something of z's shape; its values do not matter.
    optim : optimizer
        As for :class:`TemperedSVI`.
    guide : callable, optional
        Makes a guide from a NumPyro model, as the automatic guides do; independent Gaussians
        (``AutoNormal``) by default. Its only site, ``"z"``, is z as one vector.
    log_normalizer : callable, optional
        log ∫ p(x | z)^s dx, a function of z, s and the data; only ``VariationalTempering`` asks.
    **options
        ``loss``, ``temperature`` and ``num_steps`` of :class:`TemperedSVI`.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import optax
    >>> from tempering import schedules
    >>> from tempering.blackbox import TemperedVI
    >>> def log_likelihood(z, x):
    ...     return -0.5 * jnp.sum((x - z["mean"]) ** 2)
    >>> def log_prior(z):
    ...     return -0.5 * z["mean"] ** 2 / 100
    >>> vi = TemperedVI(log_likelihood, log_prior, {"mean": 0.0}, optax.adam(0.05))
    >>> result = vi.run(jax.random.key(0), 900, jnp.full(50, 3.0), progress_bar=False)
    >>> draws = vi.sample(jax.random.key(1), result.params, 1000)
    >>> print(f"{draws['mean'].mean():.1f}")
    3.0
    """

    def __init__(
        self,
        log_likelihood: Callable[..., Any],
        log_prior: Callable[[Any], Any],
        like: Any,
        optim: Any,
        guide: Callable[[Callable[..., Any]], Any] = AutoNormal,
        log_normalizer: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        flat, shape_again = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), like))
        if not flat.size:
            raise ValueError(f"like must hold a number at least, as z does; got {shown(like)}.")
        anywhere = dist.ImproperUniform(dist.constraints.real_vector, (), flat.shape)

        def model(*args: Any, **kwargs: Any) -> None:
            z = shape_again(numpyro.sample("z", anywhere))
            numpyro.factor("prior", log_prior(z))
            numpyro.factor("likelihood", log_likelihood(z, *args, **kwargs))

        self._shape_again, self._normalizer = shape_again, log_normalizer
        super().__init__(model, guide(model), optim, temper=["likelihood"], **options)

    def _log_normalizer(self, s: jax.Array, sites: Any, drawn: Any, args: Any, kwargs: Any) -> Any:
        if self._normalizer is None:
            return super()._log_normalizer(s, sites, drawn, args, kwargs)
        return self._normalizer(self._shape_again(drawn["z"]["value"]), s, *args, **kwargs)

    def sample(self, rng_key: jax.Array, params: dict[str, Any], n: int) -> Any:
        """Draws from q(z), in z's own shape, stacked along a new first axis."""
        draws = self.guide.sample_posterior(rng_key, params, sample_shape=(n,))
        return jax.vmap(self._shape_again)(draws["z"])
