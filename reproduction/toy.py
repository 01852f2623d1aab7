"""Figures 3 (left) and 4: the factorial mixture on toy images.

8 binary 4 × 4 images, each with a weight from U[0.5, 1]; N = 10,000, σ² = 0.1, π = 0.3 and
σ_μ² = 0.35. Each seed draws weights, data and the start anew; all methods of a seed have the same
data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.experiment import Case, Experiment, Row, Setting
from reproduction.factorial import (
    COLOURS,
    EXACT,
    MEAN_FIELD,
    RESTARTED,
    agreement,
    global_tempering,
    local_tempering,
    mean_curve,
)
from reproduction.toy_claims import CHECK, FAST, NOISE, SLOW, claims
from tempering.datasets import ToyImages, make_toy_images
from tempering.estimators import FactorialMixture
from tempering.models.factorial_mixture import FactorialModel
from tempering.temperature import Annealing, schedules

SHAPE = (4, 4)
FEATURES, ACTIVE = 0.35, 0.3
#: Maximum number of iterations: the slow schedule alone takes 100.
ITERATIONS = 400

POLICIES: dict[str, Any] = {
    "VI": None,
    FAST: Annealing(schedules.linear(10.0), passes=10),
    SLOW: Annealing(schedules.linear(10.0), passes=100),
    "VT": global_tempering(),
    "VT, printed log C": global_tempering(formula="paper"),
    "LVT": local_tempering(),
    "LVT, printed": local_tempering(formula="paper"),
}
#: Parameters of the estimator for each method; from "VI + restarts" on they are ours.
METHODS: dict[str, dict[str, Any]] = {
    **{name: {"tempering": policy, **MEAN_FIELD} for name, policy in POLICIES.items()},
    **{
        f"{name} + restarts": {"tempering": POLICIES[name], **RESTARTED}
        for name in ("VI", "VT", "LVT")
    },
    **{f"{name}, joint q(z)": {"tempering": POLICIES[name], **EXACT} for name in ("VI", "VT")},
    "default": {},
}
#: Fits from the true features: the best that each kind of q(z) is known to reach.
TRUTHS = {"truth": MEAN_FIELD, "truth + restarts": RESTARTED, "truth, joint q(z)": EXACT}
#: The paper's 0.1 and 0.35 read as standard deviations.
DEVIATIONS = {f"{name}, deviations": METHODS[name] for name in ("VI", SLOW, "VT")}
#: Inverse temperatures at which log C is checked.
CHECKED = (0.1, 0.2, 0.5, 0.8, 1.0)


def cases(setting: Setting) -> list[Case]:
    quick = setting.scale == "quick"
    methods = [*METHODS, *TRUTHS, *(() if quick else DEVIATIONS)]
    n_images = 1000 if quick else 10_000
    fits = [
        {"method": method, "seed": seed, "n_images": n_images}
        for seed in range(setting.seeds)
        for method in methods
    ]
    return [{"method": CHECK, "seed": 0, "n_images": n_images}, *fits]


def run_case(case: Case, setting: Setting) -> dict[str, Any]:
    method = case["method"]
    if method == CHECK:
        return check_log_partition()
    squared = method in DEVIATIONS
    noise, features = (NOISE**2, FEATURES**2) if squared else (NOISE, FEATURES)
    data = make_toy_images(case["n_images"], noise, ACTIVE, seed=case["seed"])
    if method in TRUTHS:
        options = {"tempering": None, "init": data.features, **TRUTHS[method]}
    else:
        options = {**METHODS, **DEVIATIONS}[method]
    estimator = FactorialMixture(
        len(data.features),
        noise_variance=noise,
        feature_variance=features,
        activation_probability=ACTIVE,
        max_iter=ITERATIONS,
        tol=1e-5 * len(data.X),
        random_state=case["seed"],
        n_jobs=1,
        **options,
    ).fit(data.X)
    return measure(estimator, data)


def measure(estimator: FactorialMixture, data: ToyImages) -> dict[str, Any]:
    """What the figures and the claims need of a fit."""
    history = estimator.history_
    found, error = agreement(data.features, estimator.features_)
    return {
        "elbo": estimator.elbo_,
        "found": found,
        "error": error,
        "iterations": estimator.n_iter_,
        "misfit": misfit(estimator, data.X),
        "first_temperature": float(history["temperature"][0]),
        "last_temperature": estimator.temperature_,
        "elbos": np.round(history["elbo"], 1).tolist(),
        "temperatures": np.round(history["temperature"], 4).tolist(),
        "features": np.round(estimator.features_, 3).tolist(),
    }


def misfit(estimator: FactorialMixture, X: np.ndarray) -> float:
    """The expected squared error of a pixel over σ²: the temperature at which VT would be."""
    z, means = estimator.transform(X), estimator.features_
    errors = np.square(X - z @ means).sum()
    lengths = np.square(means).sum(axis=1)
    errors += (z * (1 - z) @ lengths).sum()
    errors += X.shape[1] * (z @ estimator.feature_variances_).sum()
    return float(errors / X.size / estimator.noise_variance_)


def check_log_partition() -> dict[str, Any]:
    """log c(s) of a datum by quadrature, for K = 2 and D = 1, and by both formulas.

    The density of a datum factorises over pixels given z, and the formulas are linear in D, so one
    pixel is enough to tell them apart.
    """
    from scipy.integrate import quad

    means = np.array([0.9, -0.4])
    model = FactorialModel(2, 1, NOISE, FEATURES, ACTIVE)
    numbers = []
    for s in CHECKED:
        total = 0.0
        for z in np.ndindex(2, 2):
            centre = float(np.dot(z, means))
            prior = float(np.prod(np.where(z, ACTIVE, 1 - ACTIVE)))
            width = 12 * np.sqrt(NOISE / s)

            def density(x: float, centre: float = centre, prior: float = prior, s: float = s):
                peak = np.exp(-((x - centre) ** 2) / (2 * NOISE)) / np.sqrt(2 * np.pi * NOISE)
                return (prior * peak) ** s

            total += quad(density, centre - width, centre + width, epsabs=1e-13)[0]
        grid = np.array([s])
        numbers.append(
            [
                float(np.log(total)),
                float(model.log_partition(grid, 1)[0]),
                float(model.printed_log_partition(grid, 1)[0]),
            ]
        )
    quadrature, corrected, printed = np.transpose(numbers)
    return {
        "inverse_temperatures": list(CHECKED),
        "log_c_quadrature": quadrature,
        "log_c_corrected": corrected,
        "log_c_printed": printed,
        "corrected_error": float(np.abs(corrected - quadrature).max()),
        "printed_error": float(np.abs(printed - quadrature).max()),
    }


#: What Figure 3 shows, with the colours of its lines.
SHOWN = {
    "VI": COLOURS["VI"],
    FAST: COLOURS["AVI fast"],
    SLOW: COLOURS["AVI slow"],
    "VT": COLOURS["VT"],
    "VT, printed log C": COLOURS["VT, printed log C"],
    "LVT": COLOURS["LVT"],
    "default": COLOURS["default"],
}


def draw(rows: list[Row], out: Path) -> None:
    """``toy.png``: ELBO and temperature by iteration, and features found; ``toy_features.png``."""
    from tempering.plots.canvas import new_figure

    fits = {name: [row for row in rows if row["method"] == name] for name in (*METHODS, *TRUTHS)}
    figure = new_figure(figsize=(13.0, 4.2))
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1.0, 0.9))
    for name, colour in SHOWN.items():
        style = "--" if name in ("default", "VT, printed log C") else "-"
        for axis, column in ((left, "elbos"), (middle, "temperatures")):
            curve = mean_curve([row[column] for row in fits[name]])
            steps = np.arange(1, len(curve) + 1)
            axis.plot(steps, curve, style, color=colour, label=name, lw=1.6)
    best = np.mean([row["elbo"] for row in fits["truth + restarts"]])
    left.axhline(best, color="0.5", lw=0.8, ls=":", label="from the true features")
    depth = best - np.mean([row["elbo"] for row in fits["VI"]])
    left.set_xlim(4, None)
    left.set_ylim(best - 2.5 * depth, best + 0.4 * depth)
    left.set_ylabel(f"ELBO at T = 1, mean of {len(fits['VI'])} seeds")
    left.legend(fontsize=8, loc="upper left")
    middle.set_ylabel("expected temperature")
    middle.set_yscale("log")
    middle.set_yticks([1, 2, 3, 5, 10], ["1", "2", "3", "5", "10"])
    middle.minorticks_off()
    for axis in (left, middle):
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda step, _: f"{step:g}")
        axis.set_xlabel("iteration")
        axis.spines[["top", "right"]].set_visible(False)
    _draw_found(right, {name: fits[name] for name in METHODS})
    figure.savefig(out / "toy.png", dpi=110)
    draw_found_features(fits, out / "toy_features.png")


def _draw_found(axis: Any, fits: dict[str, list[Row]]) -> None:
    """Bars: the share of the seeds in which a method found all features."""
    shares = [np.mean([row["found"] == 8 for row in each]) for each in fits.values()]
    colours = [SHOWN.get(name, "0.75") for name in fits]
    axis.barh(np.arange(len(fits)), shares, color=colours, height=0.7)
    axis.set_yticks(np.arange(len(fits)), list(fits), fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0, 1)
    axis.set_xlabel("seeds with all 8 features found")
    axis.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.spines[["top", "right"]].set_visible(False)


def draw_found_features(fits: dict[str, list[Row]], path: Path) -> None:
    """Figure 4, for the seed at the lower quartile of plain VI: a run that went badly."""
    from reproduction.features import draw_features

    ranked = sorted(fits["VI"], key=lambda row: row["elbo"])
    seed = ranked[len(ranked) // 4]["seed"]
    shown = {
        f"{name}: {row['found']} of 8 found (seed {seed}, VI's lower quartile)": row["features"]
        for name in ("VI", "VT", "default")
        for row in fits[name]
        if row["seed"] == seed
    }
    # The true features of a seed do not depend on how many images there are.
    draw_features(path, shown, SHAPE, make_toy_images(1, seed=seed).features, columns=8)


EXPERIMENT = Experiment(
    name="toy",
    title="Figures 3 (left) and 4: factorial mixture, toy images",
    claims_of=(
        "On toy images AVI and VT converge to better optima of the untempered ELBO than VI, and VT "
        "finds much cleaner features."
    ),
    cases=cases,
    run=run_case,
    draw=draw,
    claims=claims,
    default_seeds={"quick": 2, "full": 40},
)
