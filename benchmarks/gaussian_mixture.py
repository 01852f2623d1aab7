"""Does a Bayesian Gaussian mixture find its clusters? Side by side with scikit-learn.

    python benchmarks/gaussian_mixture.py --seeds 20 --output results.jsonl

Both fit the same model with the same priors (finite Dirichlet weights, full covariances). For each
data set, one after the other in one process:

* ``found``: clusters with a component of their own, whose mean is nearer to the cluster's centre
  than half the way to the next centre, and whose weight is at least half of the cluster's;
* ``gap``: the ELBO below the best known for these data, in nats a datum. Every posterior, also
  scikit-learn's, is judged by the same function; the best known includes a fit from the true
  labels;
* ``seconds``: of the whole fit; ``CPU`` of all cores;
* ``ms/iteration``: of the fit without its start, divided by its iterations. For a fit with moves it
  includes the moves, also those that were tried and reverted.

A run that was stopped goes on where it was: what stands in the output is not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn import mixture as sklearn_mixture
from sklearn.exceptions import ConvergenceWarning

from tempering import BayesianGaussianMixture
from tempering.inference import ArraySource, evaluate_elbo, fit
from tempering.models import Mixture, Natural

FIRST_SEED = 100
MAX_ITER = 500


class Data(NamedTuple):
    """Data with known clusters."""

    X: np.ndarray
    centres: np.ndarray
    labels: np.ndarray


def grid(seed: int, std: float) -> Data:
    """25 round clusters on a 5 × 5 grid in the plane."""
    rng = np.random.default_rng(seed)
    centres = np.array([(i, j) for i in range(5) for j in range(5)], float)
    labels = rng.integers(0, 25, size=25_000)
    return Data(centres[labels] + std * rng.standard_normal((25_000, 2)), centres, labels)


def ten_dimensions(seed: int) -> Data:
    """20 clusters in 10 dimensions, each with a covariance of its own, Σ = GG', G 10 × 12."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((20, 10))
    factors = rng.standard_normal((20, 10, 12)) / np.sqrt(12)
    labels = rng.integers(0, 20, size=20_000)
    noise = rng.standard_normal((20_000, 12))
    return Data(centres[labels] + np.einsum("nij,nj->ni", factors[labels], noise), centres, labels)


CASES: dict[str, Callable[[int], Data]] = {
    "grid 0.12": lambda seed: grid(seed, 0.12),
    "grid 0.20": lambda seed: grid(seed, 0.20),
    "10-D": ten_dimensions,
}


class TimedPeer(sklearn_mixture.BayesianGaussianMixture):
    """scikit-learn's mixture, which notes how long its start takes."""

    def _initialize_parameters(self, *arguments: Any, **options: Any) -> None:
        began = time.perf_counter()
        super()._initialize_parameters(*arguments, **options)
        self.start_seconds_ = time.perf_counter() - began


class TimedOurs(BayesianGaussianMixture):
    """Ours, likewise."""

    def _starts(self, *arguments: Any) -> Natural:
        began = time.perf_counter()
        start = super()._starts(*arguments)
        self.start_seconds_ = time.perf_counter() - began
        return start


METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    "scikit-learn, k-means": (TimedPeer, {"init_params": "kmeans"}),
    "ours, k-means, no moves": (TimedOurs, {"init_params": "kmeans", "merge_split": False}),
    "ours, annealed, no moves": (TimedOurs, {"init_params": "annealed", "merge_split": False}),
    "ours, default": (TimedOurs, {}),
    "scikit-learn, random": (TimedPeer, {"init_params": "random"}),
}
TRUTH = "from the true labels"

NUMBERS = (
    "seeds",
    "all found",
    "mean found",
    "gap",
    "largest gap",
    "seconds",
    "CPU",
    "iterations",
    "ms/iteration",
)


def run(method: str, data: Data, seed: int) -> dict[str, Any]:
    """Fit once, and measure."""
    kind, options = METHODS[method]
    estimator = kind(
        n_components=len(data.centres),
        weight_concentration_prior_type="dirichlet_distribution",
        max_iter=MAX_ITER,
        random_state=seed,
        **options,
    )
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(data.X)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "found": clusters_found(data, estimator.means_, estimator.weights_),
        "elbo": common_elbo(data.X, estimator),
        "seconds": wall,
        "cpu": cpu,
        "start": estimator.start_seconds_,
        "iterations": estimator.n_iter_,
        "converged": bool(estimator.converged_),
        "rounds": getattr(estimator, "n_merge_split_", 0),
    }


def run_from_truth(data: Data) -> dict[str, Any]:
    """The ELBO that coordinate ascent reaches from the true labels."""
    model, X, _ = common_model(data.X, len(data.centres))
    initial = model.prior() + model.statistics(X, np.eye(len(data.centres))[data.labels])
    return {"elbo": fit(model, X, initial=initial, max_passes=MAX_ITER).elbo}


def common_model(X: np.ndarray, n_components: int) -> tuple[Mixture, np.ndarray, np.ndarray]:
    """The model that all are judged by, the data as it sees them, and their offset."""
    ours = BayesianGaussianMixture(
        n_components, weight_concentration_prior_type="dirichlet_distribution"
    )
    ours.n_features_in_ = X.shape[1]
    ours._prepare(X)
    return ours._model(), ours._transformed(X), ours._centre


def common_elbo(X: np.ndarray, estimator: Any) -> float:
    """The ELBO of a fitted posterior of either library, from its usual parameters."""
    model, data, centre = common_model(X, estimator.n_components)
    degrees = estimator.degrees_of_freedom_
    posterior = Natural(
        weights=estimator.weight_concentration_,
        components=model.likelihood.conjugate.natural(
            estimator.means_ - centre,
            estimator.mean_precision_,
            degrees,
            estimator.covariances_ * degrees[:, None, None],
        ),
    )
    return evaluate_elbo(model, posterior, ArraySource(data))


def clusters_found(data: Data, means: np.ndarray, weights: np.ndarray) -> int:
    """Clusters that have a component of their own."""
    apart = cdist(data.centres, data.centres)
    np.fill_diagonal(apart, np.inf)
    shares = np.bincount(data.labels, minlength=len(data.centres)) / len(data.labels)
    distances = cdist(data.centres, means)
    near = distances < 0.5 * apart.min(axis=1)[:, None]
    fits = near & (weights > 0.5 * shares[:, None])
    return int(fits[linear_sum_assignment(-fits.astype(float))].sum())


def table(rows: list[dict[str, Any]]) -> Table:
    """Means over the seeds, a line for each case and method."""
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        place = row["case"], row["seed"]
        best[place] = max(best.get(place, -np.inf), row["elbo"])
    sheet = Table(title="Bayesian Gaussian mixture: does it find its clusters?")
    sheet.add_column("case")
    sheet.add_column("method")
    for column in NUMBERS:
        sheet.add_column(column, justify="right")
    for case in CASES:
        for method in METHODS:
            some = [row for row in rows if row["case"] == case and row["method"] == method]
            if not some:
                continue
            get = lambda name, some=some: np.array([row[name] for row in some], float)  # noqa: E731
            k = some[0]["clusters"]
            gaps = np.array([best[case, row["seed"]] - row["elbo"] for row in some])
            gaps /= [row["n"] for row in some]
            per_iteration = np.sum(get("seconds") - get("start")) / np.sum(get("iterations"))
            sheet.add_row(
                case,
                method,
                str(len(some)),
                f"{np.mean(get('found') == k):.0%}",
                f"{np.mean(get('found')):.2f}/{k}",
                f"{gaps.mean():.5f}",
                f"{gaps.max():.5f}",
                f"{np.mean(get('seconds')):.2f}",
                f"{np.mean(get('cpu')):.2f}",
                f"{np.mean(get('iterations')):.1f}",
                f"{1e3 * per_iteration:.1f}",
            )
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--output", type=Path, help="JSON lines, one a fit; taken up if it exists")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.output and arguments.output.exists():
        rows = [json.loads(line) for line in arguments.output.read_text().splitlines()]
    done = {(row["case"], row["seed"], row["method"]) for row in rows}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for case in arguments.cases:
            data = CASES[case](seed)
            for method in (TRUTH, *arguments.methods):
                if (case, seed, method) in done:
                    continue
                row = run_from_truth(data) if method == TRUTH else run(method, data, seed)
                row |= {"case": case, "seed": seed, "method": method}
                row |= {"clusters": len(data.centres), "n": len(data.X)}
                rows.append(row)
                if arguments.output:
                    with arguments.output.open("a") as lines:
                        lines.write(json.dumps(row) + "\n")
    Console(width=150).print(table(rows))


if __name__ == "__main__":
    main()
