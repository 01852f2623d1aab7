"""NumPyro handlers: one raises the densities of chosen sites to a power, another gives each datum a
temperature of its own (LVT), for robust fits.

The log density itself is multiplied, not the site's ``scale``: so scales of plates that subsample
stay what they are, and labels that are summed out weigh p(z) p(x | z)^s. Temperatures of data are
summed out, as in :class:`tempering.LocalTempering`:

    p(x_i | z) = Σ_m π_m p(x_i | z)^{s_m} / c_i(s_m),    c_i(s) = ∫ p(x | z)^s dx.

A datum that is far off is hot: the gradient of its term is E[1/T_i] ∇ log p(x_i | z).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike
from numpyro import handlers
from numpyro.primitives import Messenger

from tempering.blackbox.normalizers import base_of, log_normalizer
from tempering.models.arguments import shown
from tempering.temperature import even_inverse_temperatures
from tempering.temperature.grid import check_grid

Sites = Literal["likelihood", "joint"] | Collection[str]


class Wrapped(dist.Distribution):
    """A distribution that draws as another one does; subclasses have a density of their own."""

    def __init__(self, base_dist: Any) -> None:
        self.base_dist = base_dist
        super().__init__(base_dist.batch_shape, base_dist.event_shape, validate_args=False)

    @property
    def support(self) -> Any:
        return self.base_dist.support

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        return self.base_dist.sample(*args, **kwargs)


class TemperedDistribution(Wrapped):
    """p(x)^s, not normalised."""

    pytree_data_fields = ("base_dist", "inverse_temperature")

    def __init__(self, base_dist: Any, inverse_temperature: ArrayLike) -> None:
        self.inverse_temperature = inverse_temperature
        super().__init__(base_dist)

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:
        return self.base_dist.has_enumerate_support

    def enumerate_support(self, *args: Any, **kwargs: Any) -> Any:
        return self.base_dist.enumerate_support(*args, **kwargs)

    def log_prob(self, value: Any, intermediates: Any = None) -> Any:
        more = (intermediates,) if intermediates else ()
        log_prob = self.base_dist.log_prob(value, *more)
        # Of a factor of whole numbers too, for which s would be 0 until it is 1.
        dtype = jnp.result_type(log_prob, float)
        return jnp.asarray(self.inverse_temperature, dtype) * log_prob


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
        self.sites = checked_sites("sites", sites, "likelihood", "joint")
        super().__init__(fn)

    def process_message(self, msg: Any) -> None:
        if is_tempered(msg, self.sites):
            msg["fn"] = TemperedDistribution(msg["fn"], self.inverse_temperature)


def checked_sites(argument: str, sites: Sites, *known: str) -> Sites:
    """The same; one name of a site is refused, as it would be taken for all that are observed."""
    if not isinstance(sites, Collection) or (isinstance(sites, str) and sites not in known):
        names = ", ".join(map(repr, known))
        raise ValueError(f"{argument} must be {names} or a list of sites; got {shown(sites)}.")
    return sites


def is_tempered(site: Any, sites: Sites) -> bool:
    """Whether a site of a trace is among those that are tempered."""
    # NumPyro adds the Jacobian of a transform where MCMC moves in unconstrained space: it is no
    # part of the model.
    if site["type"] != "sample" or re.fullmatch("_.*_log_det", site["name"]):
        return False
    if isinstance(sites, str):
        return sites == "joint" or site["is_observed"]
    return site["name"] in sites


class LocallyTempered(Wrapped):
    """A mixture of p(x)^s / c(s) over a grid of s."""

    pytree_data_fields = ("base_dist", "grid", "log_prior")

    def __init__(self, base_dist: Any, grid: jax.Array, log_prior: jax.Array) -> None:
        self.grid, self.log_prior = grid, log_prior
        super().__init__(base_dist)

    def log_prob(self, value: Any, intermediates: Any = None) -> Any:
        return jax.scipy.special.logsumexp(self._scores(value), axis=0)

    def inverse_temperature(self, value: Any) -> jax.Array:
        """E[1/T_i] of each datum."""
        scores = self._scores(value)
        return jnp.sum(jax.nn.softmax(scores, axis=0) * _in_front(self.grid, scores.ndim - 1), 0)

    def _scores(self, value: Any) -> jax.Array:
        log_prob = self.base_dist.log_prob(value)
        s, prior = (_in_front(each, log_prob.ndim) for each in (self.grid, self.log_prior))
        normalizer = jax.vmap(lambda s: log_normalizer(self.base_dist, s))(self.grid)
        # The value may have more axes than the batch, in front of them.
        more = log_prob.ndim - normalizer.ndim + 1
        normalizer = normalizer.reshape(len(self.grid), *(1,) * more, *normalizer.shape[1:])
        return prior + s * log_prob - normalizer


class temper_locally(Messenger):
    """Give each datum of the observed sites a temperature, which is summed out.

    Parameters
    ----------
    fn : callable, optional
        The model; or use the handler as a context.
    inverse_temperatures : array [M], optional
        The grid of 1/T, as in :class:`~tempering.LocalTempering`: 100 values evenly spaced in
        (0, 1], all as probable as each other.
    sites : {"likelihood"} or collection of str
        The observed sites, or those named. They must be Normal or Laplace, or vectors of these
        (``to_event``), masked or not. Each ``numpyro.factor`` stays as it is.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> from numpyro.infer.autoguide import AutoNormal
    >>> from tempering.blackbox import TemperedSVI, temper_locally
    >>> def model(x):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    ...     numpyro.sample("x", dist.Normal(mean, 1.0), obs=x)
    >>> x = jnp.array([2.5, 3.0, 3.5, 3.0, 30.0])  # the last one is wrong
    >>> for each in (model, temper_locally(model)):
    ...     svi = TemperedSVI(each, AutoNormal(each), numpyro.optim.Adam(0.1), temperature=None)
    ...     result = svi.run(jax.random.key(0), 600, x, progress_bar=False)
    ...     print(f"{result.params['mean_auto_loc']:.0f}")
    8
    3
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        inverse_temperatures: ArrayLike | None = None,
        sites: Sites = "likelihood",
    ) -> None:
        if inverse_temperatures is None:
            inverse_temperatures = even_inverse_temperatures()
        grid, weights = check_grid(inverse_temperatures, None)
        self.grid, self.log_prior = jnp.asarray(grid, float), jnp.log(jnp.asarray(weights, float))
        self.sites = checked_sites("sites", sites, "likelihood")
        super().__init__(fn)

    def __enter__(self) -> None:
        self.missing = set() if isinstance(self.sites, str) else set(self.sites)
        super().__enter__()

    def __exit__(self, exc_type: Any, *rest: Any) -> None:
        super().__exit__(exc_type, *rest)
        if exc_type is None and self.missing:
            raise ValueError(
                f"sites names {sorted(self.missing)}, which the model does not sample."
            )

    def process_message(self, msg: Any) -> None:
        named = not isinstance(self.sites, str)
        if not is_tempered(msg, self.sites) or (isinstance(msg["fn"], dist.Unit) and not named):
            return
        density = base_of(msg["fn"])
        # Heat widens these and leaves their place. Powers of a Bernoulli come nearer to 1/2, so a
        # fit makes up for them by larger logits: these were far off where no label was wrong.
        if not isinstance(density, dist.Normal | dist.Laplace):
            raise ValueError(
                f"the site {msg['name']!r} is {type(density).__name__}, and temper_locally takes "
                "Normal and Laplace, or vectors of them: name such sites in sites=, or write a "
                "likelihood that allows for outliers."
            )
        msg["fn"] = LocallyTempered(msg["fn"], self.grid, self.log_prior)
        self.missing.discard(msg["name"])


def local_inverse_temperatures(
    model: Callable[..., Any], draws: dict[str, Any], *args: Any, **kwargs: Any
) -> dict[str, jax.Array]:
    """E[1/T_i] of each datum, by site: the mean over draws from the posterior.

    Parameters
    ----------
    model : callable
        What :class:`temper_locally` made.
    draws : dict
        Draws of the latent sites, stacked along a first axis, as ``guide.sample_posterior`` and
        ``MCMC.get_samples`` give them.
    *args, **kwargs
        Of the model.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> from tempering.blackbox import local_inverse_temperatures, temper_locally
    >>> def model(x):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    ...     numpyro.sample("x", dist.Normal(mean, 1.0), obs=x)
    >>> draws, x = {"mean": jnp.array([2.9, 3.1])}, jnp.array([3.0, 30.0])
    >>> s = local_inverse_temperatures(temper_locally(model), draws, x)["x"]
    >>> [f"{each:.2f}" for each in s]  # the second one hardly counts
    ['0.60', '0.01']
    """

    trace = handlers.trace(handlers.seed(model, 0)).get_trace(*args, **kwargs)
    samples = {name: site for name, site in trace.items() if site["type"] == "sample"}
    missing = {name for name, site in samples.items() if not site["is_observed"]} - set(draws)
    if missing:  # else draws of the prior would stand for them
        raise ValueError(f"draws must have all latent sites of the model; {sorted(missing)} lack.")

    def one(draw: dict[str, Any]) -> dict[str, jax.Array]:
        placed = handlers.substitute(handlers.seed(model, 0), draw)
        trace = handlers.trace(placed).get_trace(*args, **kwargs)
        found = {
            name: site["fn"].inverse_temperature(site["value"])
            for name, site in trace.items()
            if isinstance(site.get("fn"), LocallyTempered)
        }
        if not found:
            raise ValueError(
                "the model has no site with local temperatures: give temper_locally(model), and "
                "the data."
            )
        return found

    return jax.tree.map(lambda values: values.mean(0), jax.lax.map(one, draws))


def _in_front(values: jax.Array, n_axes: int) -> jax.Array:
    """With so many axes behind them, of length one."""
    return values.reshape(values.shape + (1,) * n_axes)
