"""Verdicts on priors, start temperatures and schedules of topic models."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.experiment import Claim, Row, Verdict
from reproduction.lda_claims import described
from reproduction.statistics import better, compare

PRIOR_METHODS = ("SVI", "AVI, tA = 1", "VT")
#: α and η in units of the paper's 1/K.
FACTORS = (0.2, 1.0, 5.0)
#: First temperatures of AVI; 1 is plain SVI.
STARTS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)
SHAPES = ("linear in T", "linear in 1/T", "geometric")
#: Of schedules, in passes over the data.
LENGTHS = (0.03, 0.1, 0.3, 1.0, 2.0)


def part_of(rows: list[Row], part: str) -> list[Row]:
    """The runs of one part."""
    return [row for row in rows if row["part"] == part]


def cell_mean(rows: list[Row], value: str = "vi", **where: Any) -> float:
    """The mean score of the runs with these parameters."""
    return float(np.mean(scores(rows, value, **where)))


def scores(rows: list[Row], value: str = "vi", **where: Any) -> list[float]:
    """Scores of the runs with these parameters, by seed."""
    own = [row for row in rows if all(row[name] == wanted for name, wanted in where.items())]
    return [row[value] for row in sorted(own, key=lambda row: row["seed"])]


def claims(rows: list[Row]) -> list[Claim]:
    seeds = len({row["seed"] for row in rows})
    what = f"{described(rows[0])}, K = {rows[0]['topics']}, {seeds} seed{'s' * (seeds > 1)}"
    priors = part_of(rows, "priors")
    return [
        _no_sensitivity(priors, what),
        _too_hot(part_of(rows, "start"), what),
        _too_slow(part_of(rows, "schedule"), what),
        _shape(part_of(rows, "schedule"), what),
    ]


def _no_sensitivity(rows: list[Row], what: str) -> Claim:
    settings = sorted({(row["alpha"], row["eta"]) for row in rows})
    table = {
        method: np.array([cell_mean(rows, method=method, alpha=a, eta=e) for a, e in settings])
        for method in PRIOR_METHODS
    }
    ranges = {method: np.ptp(means) for method, means in table.items()}
    gains = {method: table[method] - table["SVI"] for method in PRIOR_METHODS[1:]}
    same_sign = all(np.all(gain > 0) or np.all(gain < 0) for gain in gains.values())
    largest_gain = max(np.abs(gain).max() for gain in gains.values())
    small = max(ranges.values()) < largest_gain
    verdict: Verdict = (
        "holds"
        if same_sign and small
        else "holds in part"
        if same_sign or small
        else "does not hold"
    )
    ranking = "; ".join(
        f"{method} − SVI from {gain.min():+.3f} to {gain.max():+.3f}"
        for method, gain in gains.items()
    )
    return Claim(
        "lda-sensitivity",
        "Other hyperparameters α and η were tested, and no sensitivity was found.",
        f"{what}; α and η each {', '.join(f'{a:g}' for a in sorted({a for a, _ in settings}))} "
        "times 1/K",
        (
            "range of the score over (α, η): "
            + "; ".join(f"{method} {size:.3f}" for method, size in ranges.items())
            + f"; {ranking}"
        ).replace("-", "−"),
        verdict,
        "no method may change its sign against SVI, and the score may range by less than methods "
        "differ at most; one of the two for “in part”",
    )


def _too_hot(rows: list[Row], what: str) -> Claim:
    plain = scores(rows, start=1.0)
    starts = sorted({row["start"] for row in rows} - {1.0})
    differences = {start: np.subtract(scores(rows, start=start), plain) for start in starts}
    hot = np.concatenate([gap for start, gap in differences.items() if start > 5])
    mild = np.concatenate([gap for start, gap in differences.items() if start <= 5])
    worse = int((hot < 0).sum())
    verdict: Verdict = (
        "holds" if 2 * worse >= hot.size else "holds in part" if worse else "does not hold"
    )
    numbers = ", ".join(f"{start:g}: {gap.mean():+.3f}" for start, gap in differences.items())
    hot_starts = [start for start in starts if start > 5]
    exact = np.subtract(
        [score for start in hot_starts for score in scores(rows, "gibbs", start=start)],
        scores(rows, "gibbs", start=1.0) * len(hot_starts),
    )
    return Claim(
        "lda-sensitivity",
        "Annealing performs worse than SVI in many cases when the temperature is larger than 5.",
        f"{what}; linear in T over one pass",
        (
            f"AVI − SVI by T at the start, {numbers}; worse than SVI in {worse} of {hot.size} runs "
            f"from above 5 (by exact θ in {int((exact < 0).sum())}), in {int((mild < 0).sum())} of "
            f"{mild.size} from 5 and below"
        ).replace("-", "−"),
        verdict,
        "at least half of the runs that start above 5 are worse than SVI; some for “in part”",
    )


def _too_slow(rows: list[Row], what: str) -> Claim:
    lengths = sorted({row["length"] for row in rows})
    means = [cell_mean(rows, shape="linear in T", length=length) for length in lengths]
    best = int(np.argmax(means))
    inner = 0 < best < len(lengths) - 1
    longest = best == len(lengths) - 1
    verdict: Verdict = "holds" if inner else "does not hold"
    numbers = ", ".join(f"{length:g}: {mean:.3f}" for length, mean in zip(lengths, means))
    return Claim(
        "lda-sensitivity",
        "A schedule can be too slow: with a falling learning rate the fit converges before T is 1.",
        f"{what}; linear in T",
        f"score by length in passes, {numbers}".replace("-", "−"),
        verdict,
        f"the best length must be neither the shortest nor the longest: it is {lengths[best]:g}"
        + (", the longest that was run" if longest else ""),
    )


def _shape(rows: list[Row], what: str) -> Claim:
    lengths = sorted({row["length"] for row in rows})[-2:]
    inverse, straight = (
        [score for length in lengths for score in scores(rows, shape=shape, length=length)]
        for shape in ("linear in 1/T", "linear in T")
    )
    paired = compare(inverse, straight)
    verdict, reason = better(paired)
    return Claim(
        "lda-sensitivity",
        "A schedule linear in 1/T is better than one linear in T of the same length and start.",
        f"{what}; the two longest schedules",
        f"linear in 1/T − linear in T: {paired.text(3)}",
        verdict,
        reason,
        added=True,
    )
