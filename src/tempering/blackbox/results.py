"""What a tempered SVI has on its way, and what its methods return."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from tempering.blackbox.heat import Heat


class TemperedState(NamedTuple):
    """The state of NumPyro's SVI, and that of the temperature."""

    optim_state: Any
    mutable_state: Any
    rng_key: jax.Array
    heat: Heat


class TemperedRunResult(NamedTuple):
    """What a run of NumPyro's SVI returns, and the temperature of each step."""

    params: dict[str, Any]
    state: TemperedState
    losses: jax.Array
    temperatures: jax.Array


class Restarts(NamedTuple):
    """The best of several runs, the ELBO of each at T = 1, and all of them where asked for."""

    best: TemperedRunResult
    elbos: jax.Array
    all: TemperedRunResult | None


class Evidence(NamedTuple):
    """An estimate of log p(x), its standard error, and how many draws have its weight."""

    log_evidence: float
    error: float
    effective_draws: float
