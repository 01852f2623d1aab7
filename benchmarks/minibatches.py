"""Policies in minibatches: plain inference, schedules and adaptive tempering, on twenty-one beds.

    python benchmarks/minibatches.py --seeds 20 --first-seed 100 --jobs 16 --out runs.json
    python benchmarks/minibatches.py --passes 10 --batch-size 20 --beds grid digits

"VI, shrinking" and so on have steps that shrink from the first on, (τ + t)^−0.7 with τ a tenth of
them: the others have those of `fit`. Told is the mean gap of the final ELBO to the best that
anything reached for that seed; and for adaptive tempering on how many seeds it is ahead and behind,
by more than a nat, with Wilcoxon's p. Set ``OMP_NUM_THREADS=1`` with more than one job.
"""

from __future__ import annotations

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon
from sklearn.datasets import load_digits

from beds import centres_in_ten_dimensions, clusters, grid_of_centres
from fresh_models import LARGE as FRESH
from minibatch_models import MarkovChains, MixedColumns, ShiftedCurves
from own_models import MixedRegressions, PoissonFactors
from strangers_models import LARGE
from tempering import AdaptiveTempering, Annealing, Mixture, RobbinsMonro, fit, schedules
from tempering.families import Bernoulli, Dirichlet, FullGaussian, Poisson

#: Nats by which two fits differ that ended in one optimum.
SAME = 1.0
POLICIES = {
    "VI": None,
    **{f"T {first}": Annealing(schedules.linear(first)) for first in (1.5, 3.0, 10.0)},
    "adaptive": AdaptiveTempering(),
}
SHRINKING = ", shrinking"


def mixture(likelihood: Any, k: int, prior: Any) -> Mixture:
    return Mixture(likelihood, Dirichlet(k), np.ones(k), prior)


def shifted_curves(seed: int) -> Any:
    rng = np.random.default_rng(1000 + seed)
    templates = rng.normal(size=(6, 32))
    smooth = [np.convolve(np.tile(t, 3), np.ones(5) / 5, "same")[32:64] for t in templates]
    kinds, shifts = rng.integers(6, size=1500), rng.integers(32, size=1500)
    rows = [np.roll(2 * smooth[kind], shift) for kind, shift in zip(kinds, shifts, strict=True)]
    return ShiftedCurves(6, 32), np.stack(rows) + 0.5 * rng.normal(size=(1500, 32))


def mixed_columns(seed: int) -> Any:
    rng = np.random.default_rng(1000 + seed)
    z = rng.integers(10, size=3000)
    counts = rng.poisson(rng.gamma(1.0, 4.0, (10, 3))[z])
    reals = 1.5 * rng.normal(size=(10, 3))[z] + 0.7 * rng.normal(size=(3000, 3))
    tables = rng.dirichlet(np.full(4, 0.5), (10, 4))
    answers = [[rng.choice(4, p=tables[kind, column]) for column in range(4)] for kind in z]
    return MixedColumns(10), np.c_[counts, reals, answers].astype(float)


def markov_chains(seed: int) -> Any:
    rng = np.random.default_rng(1000 + seed)
    moves, z = rng.dirichlet(np.full(8, 0.5), (8, 8)), rng.integers(8, size=2000)
    data = np.empty((2000, 25), int)
    data[:, 0] = rng.integers(8, size=2000)
    for step in range(1, 25):
        shares = moves[z, data[:, step - 1]].cumsum(axis=1)
        data[:, step] = (rng.random((2000, 1)) > shares).sum(axis=1).clip(max=7)
    return MarkovChains(8, 8), data


def counts(seed: int) -> Any:
    rng = np.random.default_rng(1000 + seed)
    data = rng.poisson(rng.gamma(1.0, 5.0, size=(12, 6))[rng.integers(12, size=3000)])
    likelihood = Poisson(6)
    prior = np.r_[np.ones(likelihood.conjugate.size - 1), 0.2]
    return mixture(likelihood, 12, prior), data.astype(float)


def digits(seed: int) -> Any:
    likelihood = Bernoulli(64)
    data = (load_digits().data > 7).astype(float)
    return mixture(likelihood, 40, np.ones(likelihood.conjugate.size)), data


def regressions(seed: int) -> Any:
    rng = np.random.default_rng(1000 + seed)
    weights = 2 * rng.normal(size=(8, 3))
    x = np.c_[rng.normal(size=(2000, 2)), np.ones(2000)]
    y = (weights[rng.integers(8, size=2000)] * x).sum(axis=1) + 0.3 * rng.normal(size=2000)
    return MixedRegressions(8, 3), np.c_[x, y]


def covariances(seed: int) -> Any:
    rng = np.random.default_rng(1000 + seed)
    k, d, n = 8, 3, 3000
    centres, factors = 3 * rng.normal(size=(k, d)), 0.6 * rng.normal(size=(k, d, d))
    z = rng.integers(k, size=n)
    data = centres[z] + np.einsum("nij,nj->ni", factors[z], rng.normal(size=(n, d)))
    data += 0.1 * rng.normal(size=(n, d))
    likelihood = FullGaussian(d)
    prior = likelihood.conjugate.natural(data.mean(0), 0.1, d + 2.0, np.cov(data.T) / k * (d + 2))
    return mixture(likelihood, k, prior), data


def poisson_factors(seed: int) -> Any:
    rng = np.random.default_rng(1000 + seed)
    rates = rng.gamma(0.3, 1 / 0.3, (1000, 5)) @ rng.gamma(0.3, 1 / 0.3, (5, 25))
    return PoissonFactors(5, 25), rng.poisson(rates).astype(float)


#: A model and its data, by a seed.
BEDS = {
    "grid": partial(clusters, grid_of_centres, 2500, 0.12),
    "ten": partial(clusters, centres_in_ten_dimensions, 2000, 0.4),
    "shifted": shifted_curves,
    "mixed": mixed_columns,
    "chains": markov_chains,
    "counts": counts,
    "digits": digits,
    "regressions": regressions,
    "covariances": covariances,
    "factors": poisson_factors,
    **LARGE,
    **FRESH,
}


def run(bed: str, name: str, seed: int, passes: float, batch_size: int) -> dict[str, Any]:
    """One fit, in a process of its own."""
    warnings.simplefilter("ignore")
    model, data = BEDS[bed](seed)
    rates = None
    if name.endswith(SHRINKING):
        rates = RobbinsMonro(min(1024.0, passes * len(data) / batch_size / 10))
    result = fit(
        model,
        data,
        temperature=POLICIES[name.removesuffix(SHRINKING)],
        learning_rate=rates,
        batch_size=batch_size,
        max_passes=passes,
        seed=seed,
        n_threads=1,
        progress=False,
    )
    return {"bed": bed, "policy": name, "seed": seed, "elbo": result.elbo}


def show(rows: list[dict[str, Any]]) -> None:
    """The table: a bed a row."""
    names = list(dict.fromkeys(row["policy"] for row in rows))
    print("| bed | " + " | ".join(names) + " |\n" + "|---" * (1 + len(names)) + "|")
    for bed in dict.fromkeys(row["bed"] for row in rows):
        elbos: dict[str, dict[int, float]] = {}
        for row in rows:
            if row["bed"] == bed:
                elbos.setdefault(row["policy"], {})[row["seed"]] = row["elbo"]
        seeds = sorted(set.intersection(*map(set, elbos.values())))
        table = np.array([[own[seed] for seed in seeds] for own in elbos.values()])
        gaps = dict(zip(elbos, table.max(axis=0) - table, strict=True))
        cells = []
        for name in names:
            text = f"{gaps[name].mean():.0f}"
            if "adaptive" in gaps and name != "adaptive":
                gains = gaps[name] - gaps["adaptive"]
                gains[np.abs(gains) < SAME] = 0.0
                p = wilcoxon(gains).pvalue if np.any(gains) else 1.0
                text += f" ({np.sum(gains > 0)}, {np.sum(gains < 0)}; {p:.0e})"
            cells.append(text)
        print(f"| {bed} ({len(seeds)}) | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beds", nargs="*", default=list(BEDS))
    parser.add_argument("--policies", nargs="*", help="names; all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--passes", type=float, default=40)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("minibatches.json"))
    options = parser.parse_args()
    names = options.policies or [name + end for end in (SHRINKING, "") for name in POLICIES]
    jobs = [
        (bed, name, seed, options.passes, options.batch_size)
        for bed in options.beds
        for name in names
        for seed in range(options.first_seed, options.first_seed + options.seeds)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(run, *zip(*jobs, strict=True)))
    options.out.write_text(json.dumps(rows))
    show(rows)


if __name__ == "__main__":
    main()
