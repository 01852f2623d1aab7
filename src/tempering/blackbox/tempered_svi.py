"""NumPyro's SVI with the likelihood tempered:  max_q  s E_q[log p(x | z)] − KL(q(z) ‖ p(z)).

This is Eq. 4 of Mandt et al. (2016) for any model whose ELBO NumPyro can estimate. s = 1/T ends
at 1, so what comes back is a posterior of the model that was given.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.core import Tracer
from numpyro import handlers
from numpyro.infer import SVI, Trace_ELBO, TraceEnum_ELBO, init_to_uniform
from numpyro.infer.svi import SVIState
from numpyro.infer.util import get_importance_trace

from tempering.blackbox.handlers import Sites, checked_sites, is_tempered, temper
from tempering.blackbox.heat import HOTTEST, Adaptive, Learned, Scheduled, hot_start, policy_of
from tempering.blackbox.normalizers import base_of, of_sites
from tempering.blackbox.runs import (
    Evidence,
    Restarts,
    TemperedRunResult,
    TemperedState,
    better_of_two,
)
from tempering.models.arguments import check_whole
from tempering.temperature import Annealing, TemperingWarning


class TemperedSVI(SVI):
    """:class:`numpyro.infer.SVI` with a temperature; the methods and their arguments are the same.

    Parameters
    ----------
    model, guide : callable
        As for SVI; but an automatic guide starts from the key of each run, and does not keep the
        start of its first call. One that a function calls keeps it: make a new one for each run.
    optim : optimizer
        Of ``numpyro.optim``, of optax or of JAX, as for SVI.
    loss : ELBO, optional
        ``Trace_ELBO()`` by default.
    temperature : {"adaptive"}, AdaptiveTempering, Annealing, VariationalTempering, callable or None
        "adaptive" finds a hot start and cools by itself; ``run`` then also makes a plain run, and
        keeps the better one: ``tempered`` of the result says which. A ``TemperingWarning`` says if
        the start is at T = 1, or at the hottest T of the search. Passes of an
        :class:`~tempering.Annealing` are steps here; a function from progress 0 … 1 to a
        temperature, such as an optax schedule with ``transition_steps=1``, stands for one.
        :class:`~tempering.VariationalTempering` learns T, by :func:`log_normalizer` of each
        tempered site. None is plain SVI.
    temper : {"likelihood", "joint"} or collection of str
        What to temper: the observed sites, these and the priors, or the named sites. An
        ``Annealing(temper="joint")`` tempers the priors too, whatever is said here.
        ``numpyro.factor`` counts as observed: name the sites if one belongs to the prior.
    num_steps : int, optional
        How many steps you plan, if you write your own loop over ``update``; ``run`` knows it.
    **static_kwargs
        As for SVI.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> from numpyro.infer.autoguide import AutoNormal
    >>> from tempering import schedules
    >>> from tempering.blackbox import TemperedSVI
    >>> def model(x):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    ...     numpyro.sample("x", dist.Normal(mean, 1.0), obs=x)
    >>> optim = numpyro.optim.Adam(0.05)
    >>> svi = TemperedSVI(model, AutoNormal(model), optim, temperature=schedules.linear(5.0))
    >>> result = svi.run(jax.random.key(0), 900, jnp.full(50, 3.0), progress_bar=False)
    >>> print(f"{result.params['mean_auto_loc']:.1f}")
    3.0
    >>> [round(float(t), 1) for t in result.temperatures[::300]]
    [5.0, 3.0, 1.0]
    """

    def __init__(
        self,
        model: Callable[..., Any],
        guide: Callable[..., Any],
        optim: Any,
        loss: Any = None,
        *,
        temperature: Any = "adaptive",
        temper: Sites = "likelihood",
        num_steps: int | None = None,
        **static_kwargs: Any,
    ) -> None:
        loss = Trace_ELBO() if loss is None else loss
        super().__init__(model, guide, optim, loss, **static_kwargs)
        checked_sites("temper", temper, "likelihood", "joint")
        if num_steps is not None:
            check_whole(num_steps=num_steps)
        self.policy = policy_of(temperature)
        joint = isinstance(temperature, Annealing) and temperature.temper == "joint"
        self.sites: Sites = "joint" if joint else temper
        self.num_steps = num_steps
        self._from_cold = False

    def init(
        self, rng_key: jax.Array, *args: Any, init_params: Any = None, **kwargs: Any
    ) -> TemperedState:
        """The state before the first step. Give ``num_steps`` to the class if not to ``run``."""
        if self.num_steps is None and not self._is_plain:
            raise ValueError(
                "num_steps is None, and a temperature needs to know how many steps are planned: "
                "use run, or give num_steps to TemperedSVI."
            )
        starting = self
        if not _traced(rng_key, args, kwargs):
            for guide in _automatic(self.guide):
                guide.prototype_trace = None
        elif getattr(self.guide, "prototype_trace", None) is not None:
            # The start of this guide must be no traced values, which other programs cannot read.
            starting = self._fresh()
        plain = SVI.init(starting, rng_key, *args, init_params=init_params, **kwargs)
        self.constrain_fn = starting.constrain_fn
        start = None
        if not self._is_plain:
            finds = self.policy.finds_start and not self._from_cold
            # One place would do to see that there is something to temper.
            values = self._log_likelihoods(rng_key, 64 if finds else 1, args, kwargs)
            if self.policy.finds_start:
                start = hot_start(values) if finds else jnp.ones((), values.dtype)
        num_steps = 1 if self.num_steps is None else self.num_steps
        if isinstance(self.policy, Scheduled):
            self.policy.check_length(num_steps)
        heat = self.policy.begin(num_steps, start)
        if start is not None and not self._from_cold and not isinstance(start, Tracer):
            _warn_of_start(float(heat.inverse_temperature))
        return TemperedState(plain.optim_state, plain.mutable_state, plain.rng_key, heat)

    def update(self, svi_state: TemperedState, *args: Any, **kwargs: Any) -> Any:
        """One step at the state's temperature: the next state, and the tempered loss."""
        return self._step(SVI.update, svi_state, args, kwargs)

    def stable_update(self, svi_state: TemperedState, *args: Any, **kwargs: Any) -> Any:
        """As :meth:`update`, but parameters stay what they are if a value becomes invalid."""
        return self._step(SVI.stable_update, svi_state, args, kwargs)

    def run(
        self, rng_key: jax.Array, num_steps: int, *args: Any, **kwargs: Any
    ) -> TemperedRunResult:
        """As SVI's: ``progress_bar``, ``stable_update``, ``init_state``, ``init_params`` and all.

        From an ``init_state`` the temperature goes on where that state is: at T = 1, if its run
        was over. An adaptive run without one takes nearly the time of two: see ``temperature``.
        """
        check_whole(num_steps=num_steps)
        before = kwargs.get("init_state")
        new = before is None and _traced(rng_key, args, kwargs)
        planned = self._fresh() if new else copy.copy(self)
        planned.num_steps = num_steps
        if isinstance(self.policy, Adaptive) and before is None:
            result = planned._run_two(rng_key, num_steps, args, kwargs)
            self.constrain_fn = planned.constrain_fn
            return result
        result = SVI.run(planned, rng_key, num_steps, *args, **kwargs)
        self.constrain_fn = planned.constrain_fn
        first = 0 if before is None else before.heat.step
        return self._result(result.state, result.losses, first + jnp.arange(num_steps))

    def _run_two(
        self, rng_key: jax.Array, num_steps: int, args: Any, kwargs: dict[str, Any]
    ) -> TemperedRunResult:
        """A plain and a tempered run, of which the better one is kept."""
        plain, tempered = copy.copy(self), self._fresh()
        plain._from_cold = True
        own, key = _of_the_model(kwargs), jax.random.fold_in(rng_key, num_steps + 1)
        at = {"init_params": kwargs.get("init_params"), **own}
        first, second = plain.init(rng_key, *args, **at), tempered.init(key, *args, **at)
        self.constrain_fn = plain.constrain_fn
        stable = kwargs.get("stable_update", False)
        method = SVI.stable_update if stable else SVI.update
        own["forward_mode_differentiation"] = kwargs.get("forward_mode_differentiation", False)
        state, losses = better_of_two(
            lambda state: plain._at_temperature(method, state, args, own),
            # The same noise in both: what differs is not chance, and a few losses tell it.
            (first, second._replace(rng_key=first.rng_key)),
            num_steps,
            progress_bar=kwargs.get("progress_bar", True),
            skip_nan=stable,
        )
        return self._result(state, losses, jnp.arange(num_steps))

    def _result(self, state: TemperedState, losses: jax.Array, steps: jax.Array) -> Any:
        temperatures = 1.0 / self.policy.along(state.heat, steps)
        return TemperedRunResult(self.get_params(state), state, losses, temperatures)

    def run_restarts(
        self,
        rng_key: jax.Array,
        num_steps: int,
        n_restarts: int,
        *args: Any,
        keep_all: bool = False,
        n_evaluations: int = 100,
        **kwargs: Any,
    ) -> Restarts:
        """Several runs in one program, each from a start of its own; the best ELBO wins.

        Parameters
        ----------
        rng_key : key
            Split into one for each run.
        num_steps, n_restarts : int
            Steps of each run, and runs.
        *args, **kwargs
            Of the model, or of :meth:`run`, but no ``init_state``: from one all runs are the same.
        keep_all : bool
            Whether to return all runs too, their arrays stacked along a new first axis.
        n_evaluations : int
            ELBOs at T = 1, each by the loss with a key of its own, whose mean judges a run.

        Returns
        -------
        Restarts
        """
        check_whole(num_steps=num_steps, n_restarts=n_restarts, n_evaluations=n_evaluations)
        if kwargs.get("init_state") is not None:
            raise ValueError(
                "init_state is one state, from which all restarts would be the same: give it to "
                "run, or leave it out."
            )
        # What the guide remembers of its first call, and the transforms, must be no traced values.
        ready = copy.copy(self)
        ready.num_steps = num_steps
        ready.init(rng_key, *args, **_of_the_model(kwargs))
        self.constrain_fn = ready.constrain_fn
        each = copy.copy(self)

        def one(key: jax.Array) -> tuple[TemperedRunResult, jax.Array]:
            run_key, judge_key = jax.random.split(key)
            result = each.run(run_key, num_steps, *args, **{**kwargs, "progress_bar": False})
            keys = jax.random.split(judge_key, n_evaluations)
            params = {**result.params, **(result.state.mutable_state or {})}
            return result, -jnp.mean(self._losses(self.loss, keys, params, args, kwargs))

        results, elbos = jax.jit(jax.vmap(one))(jax.random.split(rng_key, n_restarts))
        best = int(jnp.argmax(jnp.where(jnp.isnan(elbos), -jnp.inf, elbos)))
        kept = jax.tree.map(lambda values: values[best], results)
        return Restarts(kept, elbos, results if keep_all else None)

    def _fresh(self) -> TemperedSVI:
        """Return a copy with a guide that has no start yet."""
        fresh = copy.copy(self)
        fresh.guide = _forgetful(self.guide)
        return fresh

    def log_evidence(
        self, rng_key: jax.Array, params: dict[str, Any], n_draws: int, *args: Any, **kwargs: Any
    ) -> Evidence:
        """log p(x) by importance sampling: draws of the guide, each weighed by p(x, z) / q(z).

        Parameters
        ----------
        rng_key : key
            For the draws.
        params : dict
            Of a fitted guide that is no point, ``result.params``; and for a model with a mutable
            state ``{**result.params, **result.state.mutable_state}``.
        n_draws : int
            Some thousands, where the model is cheap.
        *args, **kwargs
            Of the model. All data are needed: a plate that subsamples them is refused.

        Returns
        -------
        Evidence
            Draw more, or trust it less, where ``effective_draws`` is below a hundred: then a few
            draws have all the weight, and what the guide misses is missed here too.
        """
        check_whole(2, n_draws=n_draws)
        known = params if isinstance(params, dict) else {}
        own = {**_of_the_model(kwargs), **self.static_kwargs}
        # An automatic guide sets itself up in its first call: that must not be one of many at once.
        guide = handlers.substitute(self.guide, known)
        one, other = (
            handlers.trace(handlers.seed(guide, key)).get_trace(*args, **own)
            for key in (rng_key, jax.random.fold_in(rng_key, 1))
        )
        sites = one | self._somewhere(rng_key, args, kwargs)
        for name, site in sites.items():
            if site["type"] == "plate" and len(site["value"]) < site["args"][0]:
                raise ValueError(
                    f"the plate {name!r} subsamples, and the evidence needs all data: make a "
                    "TemperedSVI of the model with the whole plate, and give it these params."
                )
        fitted = {name for name, site in sites.items() if site["type"] in ("param", "mutable")}
        if fitted - set(known):
            raise ValueError(
                f"params lacks {sorted(fitted - set(known))}: give result.params, and with a "
                "mutable state {**result.params, **result.state.mutable_state}."
            )
        # There p(x, z) would count as if q(z) were 1, with the same weight for all draws.
        points = [
            name
            for name, site in one.items()
            if isinstance(base_of(site.get("fn")), dist.Delta)
            and jnp.array_equal(site["value"], other[name]["value"])
        ]
        if points:
            raise ValueError(
                f"the guide has one place for {points}, as AutoDelta has, and the evidence needs "
                "its density: fit one that has a width, such as AutoMultivariateNormal."
            )
        # With one particle a loss is −log(p(x, z) / q(z)), labels summed out where that is asked.
        loss = TraceEnum_ELBO() if isinstance(self.loss, TraceEnum_ELBO) else Trace_ELBO()
        keys = jax.random.split(rng_key, n_draws)
        log_weights = -self._losses(loss, keys, params, args, kwargs)
        total = jax.scipy.special.logsumexp(log_weights)
        shares = jnp.exp(log_weights - total)
        effective = 1.0 / jnp.sum(shares**2)
        # The standard deviation of the mean weight in parts of it: 1/ESS − 1/n.
        error = jnp.sqrt(jnp.maximum(1.0 / effective - 1.0 / n_draws, 0.0))
        return Evidence(float(total - jnp.log(n_draws)), float(error), float(effective))

    def _losses(
        self, loss: Any, keys: jax.Array, params: dict[str, Any], args: Any, kwargs: dict[str, Any]
    ) -> jax.Array:
        def one(key: jax.Array) -> jax.Array:
            own = {**_of_the_model(kwargs), **self.static_kwargs}
            return loss.loss(key, params, self.model, self.guide, *args, **own)

        return jax.vmap(one)(keys)

    @property
    def _is_plain(self) -> bool:
        return isinstance(self.policy, Scheduled) and self.policy.policy is None

    def _step(self, method: Any, state: TemperedState, args: Any, kwargs: Any) -> Any:
        state, loss = self._at_temperature(method, state, args, kwargs)
        heat, policy = state.heat, self.policy
        if isinstance(policy, Learned):
            s = jax.lax.cond(
                policy.is_due(heat),
                lambda: policy.learn(heat, *self._energies(policy.grid, state, args, kwargs)),
                lambda: heat.inverse_temperature,
            )
            heat = heat._replace(inverse_temperature=s)
        return state._replace(heat=policy.next(heat, loss)), loss

    def _energies(self, grid: jax.Array, state: TemperedState, args: Any, kwargs: Any) -> Any:
        """log p(x | z) at a draw of the guide, and log C(s) there."""
        keys = jax.random.split(jax.random.fold_in(state.rng_key, 0))
        model, guide = map(handlers.seed, (self.model, self.guide), keys)
        own = {**_of_the_model(kwargs), **self.static_kwargs}
        params = {**self.get_params(state), **(state.mutable_state or {})}
        trace, drawn = get_importance_trace(model, guide, args, own, params)
        sites = {name: site for name, site in trace.items() if is_tempered(site, self.sites)}
        latent = {name for name, site in trace.items() if site["type"] == "sample"}
        latent -= {name for name in latent if trace[name]["is_observed"]}
        if latent - set(drawn) or latent & set(sites):
            raise ValueError(
                "VariationalTempering tempers observed sites only, and needs a guide that draws "
                f"all others; got {sorted((latent - set(drawn)) | (latent & set(sites)))}."
            )
        energy = sum((jnp.sum(site["log_prob"]) for site in sites.values()), start=jnp.zeros(()))
        return energy, jax.vmap(lambda s: self._log_normalizer(s, sites, drawn, args, own))(grid)

    def _log_normalizer(self, s: jax.Array, sites: Any, drawn: Any, args: Any, kwargs: Any) -> Any:
        return of_sites(sites, s)

    def _at_temperature(self, method: Any, state: TemperedState, args: Any, kwargs: Any) -> Any:
        """A step that leaves the temperature what it is."""
        if not isinstance(state, TemperedState):
            raise ValueError(
                f"the state must be one of TemperedSVI; got {type(state).__name__}, which has no "
                "temperature. Start from its parameters: init_params=svi.get_params(state)."
            )
        tempered = copy.copy(self)
        if not self._is_plain:
            tempered.model = temper(self.model, state.heat.inverse_temperature, self.sites)
        plain, loss = method(tempered, SVIState(*state[:3]), *args, **kwargs)
        return state._replace(**plain._asdict()), loss

    def _somewhere(self, rng_key: jax.Array, args: Any, kwargs: Any) -> dict[str, Any]:
        """The model's trace at a random place, one from which NumPyro starts its chains."""
        seeded = handlers.seed(self.model, rng_key)
        placed = handlers.substitute(seeded, substitute_fn=init_to_uniform)
        return handlers.trace(placed).get_trace(*args, **kwargs, **self.static_kwargs)

    def _log_likelihoods(
        self, rng_key: jax.Array, n_places: int, args: Any, kwargs: Any
    ) -> jax.Array:
        """What is tempered, at random places."""

        def one(key: jax.Array) -> jax.Array:
            trace = self._somewhere(key, args, kwargs)
            tempered = {name: site for name, site in trace.items() if is_tempered(site, self.sites)}
            self._check_sites(tempered)
            total = jnp.zeros(())
            for site in tempered.values():
                scale = 1.0 if site["scale"] is None else site["scale"]
                total += jnp.sum(scale * site["fn"].log_prob(site["value"]))
            return total

        # One after the other: together they could take more memory than the fit.
        return jax.lax.map(one, jax.random.split(rng_key, n_places))

    def _check_sites(self, tempered: dict[str, Any]) -> None:
        names = set() if isinstance(self.sites, str) else set(self.sites)
        if names - set(tempered):
            raise ValueError(
                f"temper names {sorted(names - set(tempered))}, which the model does not sample."
            )
        if not tempered:
            raise ValueError(
                "the model has no observed site, so there is no likelihood to temper: give the "
                "data with obs=, or temperature=None."
            )


def _of_the_model(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords that ``run`` passes on."""
    own = {"progress_bar", "stable_update", "init_state", "init_params"}
    own |= {"forward_mode_differentiation"}
    return {name: value for name, value in kwargs.items() if name not in own}


def _warn_of_start(s: float) -> None:
    """Warn if the start that was found is at either end of the range of temperatures."""
    warning = None
    if s >= 1.0:
        warning = (
            "TemperedSVI has tempered nothing: its start is T = 1: the likelihood hardly differs "
            "between random values of the unknowns, or the run is too short."
        )
    elif s <= HOTTEST * 1.0001:
        warning = (
            f"TemperedSVI found no start temperature: even at T = {1 / HOTTEST:.3g} the likelihood "
            "differs much between random values of the unknowns. It starts there; compare the ELBO "
            "with that of a schedule, such as temperature=Annealing()."
        )
    if warning is not None:
        warnings.warn(warning, TemperingWarning, stacklevel=4)


def _traced(rng_key: jax.Array, args: Any, kwargs: Any) -> bool:
    """Return whether JAX is tracing a program that has these values."""
    leaves = jax.tree.leaves((jax.random.fold_in(rng_key, 0), args, kwargs))
    return any(isinstance(leaf, Tracer) for leaf in leaves)


def _automatic(guide: Any) -> Iterator[Any]:
    """Yield an automatic guide and those that it is made of; each caches its first start."""
    if hasattr(guide, "prototype_trace"):
        yield guide
        for part in vars(guide).values():
            for each in part if isinstance(part, list) else [part]:
                yield from _automatic(each)


def _forgetful(guide: Any) -> Any:
    """An automatic guide that takes a start of its own: it remembers that of its first call."""
    if not hasattr(guide, "prototype_trace"):
        return guide
    # Its model is not copied: it may hold data, or what cannot be copied.
    forgetful = copy.copy(guide)
    forgetful.prototype_trace = None
    for name, part in vars(forgetful).items():  # guides that it is made of, which remember theirs
        parts = [_forgetful(each) for each in part] if isinstance(part, list) else _forgetful(part)
        setattr(forgetful, name, parts)
    return forgetful
