"""Is black-box VI stuck? Plain SVI, restarts, schedules made by hand and the adaptive temperature.

    python benchmarks/blackbox.py --seeds 20 --steps 2000 --file blackbox.jsonl

Each target and method is a line of the file; what stands there is not run again. All fits have the
guide ``AutoNormal`` (but ``AutoDAIS``) and the optimizer Adam(0.02); all seeds of a method run as
one program, and a seed has the same start in all methods. For each target and method:

* ``ELBO``: mean over seeds of the final ELBO at T = 1 (mean of 100 draws), and its standard error;
* ``best``: share of seeds within 3 nats of the best ELBO that a method with the guide found;
* ``held out``: mean log predictive density of a new datum, in nats, where the target has such data;
* ``time``: of the processor, in parts of plain SVI's, for all seeds, without compilation;
* ``p``: of Wilcoxon's test that the method's ELBOs, seed by seed, are those of the adaptive one,
  with a sign in front: + where the adaptive one is ahead on the average.

An adaptive run is a tempered and a plain one; before their end the worse is given up. So the
restarts ``2 x steps`` and ``8 x steps/4`` have a little more than its time. Of schedules by hand
the one with the best mean ELBO is shown, chosen afterwards. A learned temperature is one run, with
q(T) on 40 temperatures after one step in fifty.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro.infer import SVI, RenyiELBO, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoDAIS, AutoNormal
from rich.console import Console
from rich.table import Table
from scipy.stats import wilcoxon

from blackbox_targets import TARGETS, Target
from tempering import Annealing, VariationalTempering, schedules
from tempering.blackbox import TemperedSVI, temper
from tempering.blackbox.heat import Scheduled
from tempering.blackbox.tempered_svi import _forgetful
from tempering.temperature import exponential_temperatures

KEY = jax.random.key(17)
ADAM = numpyro.optim.Adam(0.02)

NEAR = 3.0

#: Runs of a seed, and their length in parts of the planned steps.
RESTARTS = {"2 x steps": (2, 1.0), "8 x steps/4": (8, 0.25), "8 x steps": (8, 1.0)}
KL = {f"KL weight 0 to 1, {part:.0%}": part for part in (0.25, 0.5, 0.75)}
LIKELIHOOD = {
    "linear, s 0.1 to 1": Annealing(schedules.linear_inverse(10.0), fraction=0.5),
    "geometric, s 0.01 to 1": Annealing(schedules.geometric(100.0), fraction=0.5),
}
LEARNED = {
    f"learned, T to {most:.0f}": VariationalTempering(exponential_temperatures(most, 40), every=50)
    for most in (10.0, 100.0)
}
RENYI = "Rényi, 8 particles"
METHODS = ["plain", "adaptive", *RESTARTS, *KL, *LIKELIHOOD, *LEARNED, RENYI, "AutoDAIS"]
#: Of each of these only the best is shown.
GRIDS = {"KL weight by hand": list(KL), "likelihood by hand": list(LIKELIHOOD)}


class Bench:
    """A target with its programs. All that differs only in weights or steps is one program."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.guide = AutoNormal(target.model, init_loc_fn=target.start)
        self.plain = TemperedSVI(target.model, self.guide, ADAM, temperature=None)
        self.plain.init(jax.random.key(0), *target.data)
        self.fresh = _forgetful(self.guide)
        with numpyro.handlers.seed(rng_seed=0), numpyro.handlers.trace() as trace:
            target.model(*target.data)
        sites = [site for site in trace.values() if site["type"] == "sample"]
        self.latent = [site["name"] for site in sites if not site["is_observed"]]
        self.programs: dict[Any, Any] = {}

    def _weighted(
        self, key: jax.Array, likelihoods: jax.Array, kls: jax.Array, n_steps: jax.Array
    ) -> Any:
        """SVI of which each step has a weight of the likelihood and one of the KL.

        The losses are part of what a run gives: left out, they would not even be computed.
        """
        svi = SVI(self.target.model, copy.copy(self.fresh), ADAM, Trace_ELBO())
        first = svi.init(jax.random.split(key)[0], *self.target.data)  # as in run_restarts

        def step(i: jax.Array, run: Any) -> Any:
            state, losses = run
            each = copy.copy(svi)
            each.model = temper(temper(self.target.model, likelihoods[i]), kls[i], self.latent)
            each.guide = temper(self.guide, kls[i], "joint")
            state, loss = each.update(state, *self.target.data)
            return state, jax.lax.dynamic_update_index_in_dim(losses, loss, i, 0)

        run = first, jnp.zeros(likelihoods.size)
        state, losses = jax.lax.fori_loop(0, n_steps, step, run)
        return svi.get_params(state), losses

    def fit(self, name: str, keys: jax.Array, steps: int) -> tuple[Any, Any, float]:
        """Parameters of a run for each key, their guide, and the seconds without compilation."""
        if name in ("adaptive", *LEARNED, RENYI, "AutoDAIS"):
            guide, one = self._tempered(name, steps)
            arguments: tuple[Any, ...] = (keys,)
        else:
            guide, one = self.guide, self._weighted
            weights = [jnp.ones(steps), jnp.ones(steps)]
            if name in LIKELIHOOD:
                weights[0] = path(LIKELIHOOD[name], steps)
            elif name in KL:
                policy = Annealing(schedules.linear_inverse(100.0), fraction=KL[name])
                weights[1] = path(policy, steps)
            n_steps = int(steps * RESTARTS.get(name, (1, 1.0))[1])
            arguments = (keys, *weights, n_steps)
            name = "weighted"
        (params, _), seconds = self._timed(name, one, arguments)
        return params, guide, seconds

    def _tempered(self, name: str, steps: int) -> tuple[Any, Any]:
        """What ``run_restarts`` makes of each key."""
        svi = TemperedSVI(
            self.target.model,
            AutoDAIS(self.target.model, init_loc_fn=self.target.start)
            if name == "AutoDAIS"
            else self.guide,
            ADAM,
            RenyiELBO(alpha=0.5, num_particles=8) if name == RENYI else None,
            temperature="adaptive" if name == "adaptive" else LEARNED.get(name),
            num_steps=steps,
        )
        if name == "AutoDAIS":
            svi.init(KEY, *self.target.data)
        fresh = svi._fresh()

        def one(key: jax.Array) -> Any:
            run_key, _ = jax.random.split(key)
            result = fresh.run(run_key, steps, *self.target.data, progress_bar=False)
            return result.params, result.losses

        return svi.guide, one

    def elbos(self, guide: Any, params: Any, keys: jax.Array) -> np.ndarray:
        """ELBOs at T = 1, one measure for all, whatever they maximise."""
        svi = TemperedSVI(self.target.model, guide, ADAM, temperature=None)
        elbo = partial(svi._elbo, n=100, args=self.target.data, kwargs={})
        values, _ = self._timed(("elbo", type(guide)), elbo, (keys, params))
        return np.where(np.isnan(values), -np.inf, np.asarray(values))

    def _timed(self, name: Any, one: Any, arguments: tuple[Any, ...]) -> tuple[Any, float]:
        """For all seeds in one program, which is compiled when it is first called for."""
        if name not in self.programs:
            common = (None,) * (len(arguments) - 1) if name == "weighted" else (0,)
            axes = (0, *common)[: len(arguments)]
            self.programs[name] = jax.jit(jax.vmap(one, axes)).lower(*arguments).compile()
        begin = time.process_time()
        result = jax.block_until_ready(self.programs[name](*arguments))
        return result, time.process_time() - begin


def path(policy: Annealing, steps: int) -> jax.Array:
    return Scheduled(policy).begin(steps, None).path


def run(name: str, bench: Bench, n_seeds: int, steps: int, block: int) -> dict[str, Any]:
    """All seeds of one method; restarts are groups of runs, of which the first is plain SVI's."""
    groups, _ = RESTARTS.get(name, (1, 1.0))
    key = jax.random.fold_in(KEY, block) if block else KEY
    keys = jax.random.split(key, groups * n_seeds)
    parts = [keys[n_seeds * i : n_seeds * (i + 1)] for i in range(groups)]
    params, guides, seconds = zip(*(bench.fit(name, part, steps) for part in parts), strict=True)
    judged = zip(guides, params, parts, strict=True)
    elbos = np.stack([bench.elbos(*each) for each in judged])
    best = elbos.argmax(0)

    def pick(*values: jax.Array) -> jax.Array:
        return jnp.stack(values)[best, jnp.arange(n_seeds)]

    return {
        "elbos": elbos.max(0).tolist(),
        "held_out": score(guides[0], bench.target, jax.tree.map(pick, *params)),
        "seconds": sum(seconds),
    }


def score(guide: Any, target: Target, params: Any) -> list[float] | None:
    """Mean log predictive density of held-out data, 200 draws of each posterior."""
    if target.held_out is None:
        return None

    def one(params: Any) -> jax.Array:
        draws = guide.sample_posterior(jax.random.key(5), params, sample_shape=(200,))
        (densities,) = log_likelihood(target.model, draws, *target.held_out).values()
        return jnp.mean(jax.scipy.special.logsumexp(densities, axis=0) - jnp.log(200.0))

    return np.asarray(jax.lax.map(one, params)).tolist()


def read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What was run before, by target and method."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {(each["target"], each["method"]): each for each in map(json.loads, lines)}


def compare(ours: np.ndarray, other: np.ndarray) -> str:
    """The p value of equal pairs, with the sign of the mean difference."""
    differences = ours - other
    if not np.any(differences):
        return "="
    p = wilcoxon(differences).pvalue
    return f"{'+' if differences.mean() > 0 else '-'}{p:.3f}"


def table_of(name: str, lines: dict[str, dict[str, Any]]) -> Table:
    """One target: a row for each method, and for each grid of schedules the best of it."""
    for title, members in GRIDS.items():
        known = [lines.pop(each) for each in members if each in lines]
        if known:
            lines[title] = max(known, key=lambda line: np.mean(line["elbos"]))
    elbos = {method: np.array(line["elbos"]) for method, line in lines.items()}
    best = max(values.max() for method, values in elbos.items() if method != "AutoDAIS")
    first = next(iter(lines.values()))
    table = Table(title=f"{name}: {len(first['elbos'])} seeds, best ELBO {best:.1f}")
    for heading in ("method", "ELBO", "±", "best", "held out", "±", "time", "p"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    plain, ours = lines.get("plain"), elbos.get("adaptive")
    for method, line in lines.items():
        values = elbos[method]
        held_out = "", ""
        if line["held_out"] is not None:
            held_out = mean_and_error(np.array(line["held_out"]), 3)
        table.add_row(
            line["method"] if method in GRIDS else method,
            *mean_and_error(values, 1),
            f"{np.mean(values > best - NEAR):.2f}",
            *held_out,
            "" if plain is None else f"{line['seconds'] / plain['seconds']:.1f}",
            "" if ours is None or method == "adaptive" else compare(ours, values),
        )
    return table


def mean_and_error(values: np.ndarray, digits: int) -> tuple[str, str]:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f}", f"{error:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--block", type=int, default=0, help="other seeds for another number")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    parser.add_argument(
        "--slow-code", action="store_true", help="compile in less time to code that takes more"
    )
    parser.add_argument("--file", type=Path, default=Path("blackbox.jsonl"))
    options = parser.parse_args()
    jax.config.update("jax_disable_most_optimizations", options.slow_code)
    known = read(options.file)
    for name in options.targets:
        bench = None
        for method in options.methods:
            if (name, method) in known:
                continue
            bench = bench or Bench(TARGETS[name]())
            outcome = run(method, bench, options.seeds, options.steps, options.block)
            known[name, method] = {
                "target": name,
                "method": method,
                "steps": options.steps,
                **outcome,
            }
            with options.file.open("a") as file:
                file.write(json.dumps(known[name, method]) + "\n")
        lines = {m: known[name, m] for m in options.methods if (name, m) in known}
        Console(width=110).print(table_of(name, lines))


if __name__ == "__main__":
    main()
