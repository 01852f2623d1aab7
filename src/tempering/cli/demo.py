"""``tempering demo``: what tempering is for, in a minute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tempering.cli.landscape import run_landscape
from tempering.estimators import BayesianGaussianMixture
from tempering.plots.mixtures import draw_mixtures

GRID_SIDE = 5
SPREAD = 0.2


def grid_of_clusters(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n points in 25 round clusters on a grid, and the centres."""
    rng = np.random.default_rng(seed)
    side = np.arange(GRID_SIDE, dtype=float)
    centres = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    labels = rng.integers(len(centres), size=n)
    return centres[labels] + SPREAD * rng.standard_normal((n, 2)), centres


def clusters_found(mixture: BayesianGaussianMixture, centres: np.ndarray) -> int:
    """Centres that have exactly one component within a quarter of the distance to the next."""
    used = mixture.means_[mixture.weights_ > 0.5 / len(centres)]
    distances = np.linalg.norm(used[:, None] - centres, axis=2)
    return int(np.sum((distances < 0.25).sum(axis=0) == 1))


def run_demo(out: Path, seed: int) -> None:
    """Figure 1, and a mixture of 25 clusters fitted plainly and annealed."""
    console = Console()
    console.rule("Figure 1: why annealing works")
    run_landscape(out, seed, starts=50)
    console.rule("25 clusters: plain variational Bayes and an annealed start")
    X, centres = grid_of_clusters(25_000, seed)
    settings = {
        "plain, from k-means": {"init_params": "kmeans", "merge_split": False},
        "annealed (the default)": {},
    }
    fitted = {}
    for name, options in settings.items():
        with console.status(f"Fitting 25,000 points: {name}"):
            mixture = BayesianGaussianMixture(len(centres), random_state=seed, **options)
            fitted[name] = mixture.fit(X)
    table = Table(title="A Bayesian Gaussian mixture with 25 components")
    for column in ("start", "clusters found", "ELBO"):
        table.add_column(column, justify="left" if column == "start" else "right")
    for name, mixture in fitted.items():
        found = clusters_found(mixture, centres)
        table.add_row(name, f"{found} of {len(centres)}", f"{mixture.elbo_:,.0f}")
    console.print(table)
    draw_mixtures(out / "mixtures.png", X, fitted)
    console.print(f"Look at {out}/landscape.png and {out}/mixtures.png")
