"""A NumPyro handler that raises the densities of chosen sites to a power.

The log density itself is multiplied, not the site's ``scale``: so scales of plates that subsample
stay what they are, labels that are summed out weigh p(z) p(x | z)^s, and an analytic KL to a prior
that is tempered too is not taken, as it would be that of the prior at T = 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Literal

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike
from numpyro.primitives import Messenger

#: The Jacobian of a site's transform, as NumPyro names it.
JACOBIAN = re.compile("_.*_log_det")
Sites = Literal["likelihood", "joint"] | Collection[str]


class TemperedDistribution(dist.Distribution):
    """p(x)^s, not normalised: it draws as p does."""

    pytree_data_fields = ("base_dist", "inverse_temperature")

    def __init__(self, base_dist: Any, inverse_temperature: ArrayLike) -> None:
        self.base_dist = base_dist
        self.inverse_temperature = inverse_temperature
        super().__init__(base_dist.batch_shape, base_dist.event_shape, validate_args=False)

    @property
    def support(self) -> Any:
        return self.base_dist.support

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:
        return self.base_dist.has_enumerate_support

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        return self.base_dist.sample(*args, **kwargs)

    def enumerate_support(self, *args: Any, **kwargs: Any) -> Any:
        return self.base_dist.enumerate_support(*args, **kwargs)

    def log_prob(self, value: Any, intermediates: Any = None) -> Any:
        more = (intermediates,) if intermediates else ()
        log_prob = self.base_dist.log_prob(value, *more)
        return jnp.asarray(self.inverse_temperature, jnp.result_type(log_prob)) * log_prob


class temper(Messenger):
    """Raise the densities of a model's sites to the power s = 1/T.

    Parameters
    ----------
    fn : callable, optional
        The model; or use the handler as a context.
    inverse_temperature : float or array
        s; a value that JAX traces will do.
    sites : {"likelihood", "joint"} or collection of str
        The observed sites (and each ``numpyro.factor``, which is one), all sites, or those named.

    Examples
    --------
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> from numpyro.infer.util import log_density
    >>> from tempering.blackbox import temper
    >>> def model():
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    ...     numpyro.sample("x", dist.Normal(mean, 1.0), obs=2.0)
    >>> for s in (0.0, 0.5, 1.0):
    ...     value, _ = log_density(temper(model, s), (), {}, {"mean": 0.0})
    ...     print(f"{value:.3f}")
    -0.919
    -2.378
    -3.838
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        inverse_temperature: ArrayLike = 1.0,
        sites: Sites = "likelihood",
    ) -> None:
        self.inverse_temperature = inverse_temperature
        self.sites = sites
        super().__init__(fn)

    def process_message(self, msg: Any) -> None:
        if is_tempered(msg, self.sites):
            msg["fn"] = TemperedDistribution(msg["fn"], self.inverse_temperature)


def is_tempered(site: Any, sites: Sites) -> bool:
    """Whether a site of a trace is among those that are tempered."""
    # NumPyro adds a factor where MCMC moves in unconstrained space: it is no part of the model.
    if site["type"] != "sample" or JACOBIAN.fullmatch(site["name"]):
        return False
    if isinstance(sites, str):
        return sites == "joint" or site["is_observed"]
    return site["name"] in sites
