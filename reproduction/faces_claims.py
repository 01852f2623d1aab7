"""Verdicts on what is said about the factorial mixture on faces."""

from __future__ import annotations

import numpy as np

from reproduction.experiment import Claim, Row, Verdict
from reproduction.statistics import Paired, better, mean_text, no_worse, pairs, weakest

FAST, SLOW = "AVI 6→1 in 5", "AVI 6→1 in 50"
PRINTED, DEFAULT = "VT, printed log C", "default"
METHODS = (FAST, SLOW, "VT", "LVT", DEFAULT)
#: The rule for "comes close": a lag of so much of what the best schedule gains over VI.
CLOSE = 0.1
#: What the printed log C moves the temperature by: log 2πσ² with σ² = 0.5.
MOVES = float(np.log(np.pi))


def claims(rows: list[Row]) -> list[Claim]:
    """Each claim with its verdict."""
    gains = {name: _pairs(rows, name, "VI") for name in METHODS}
    best = max((FAST, SLOW), key=lambda name: gains[name].mean)
    lag = _pairs(rows, "VT", best)
    moved = pairs(rows, PRINTED, "VT", "first_temperature", by=("seed", "n_features"))
    literal = _pairs(rows, "VT", PRINTED)
    ahead = _pairs(rows, DEFAULT, best)
    local = _pairs(rows, "LVT", "VT")
    falling = [_falls(row["temperatures"]) for row in rows if row["method"] == "VT"]
    ran = _ran(rows)
    return [
        Claim(
            "faces",
            "AVI finds improved predictive likelihoods on held-out images, compared to VI.",
            ran,
            f"nats a pixel: {_ends(rows, 'VI')}; minus VI: "
            + "; ".join(f"{name} {gains[name].text(4)}" for name in (FAST, SLOW)),
            weakest(better(gains[name]) for name in (FAST, SLOW)),
            "Holds if both schedules are higher on average with p < 0.05.",
        ),
        Claim(
            "faces",
            "VT finds improved predictive likelihoods on held-out images, compared to VI.",
            ran,
            f"VT − VI: {gains['VT'].text(4)}",
            *better(gains["VT"]),
        ),
        Claim(
            "faces",
            "VT comes close to the best linear schedule.",
            ran,
            f"VT − {best}: {lag.text(4)}; {best} − VI: {gains[best].text(4)}",
            _close(lag, gains[best]),
            "Holds if VT is not lower on average, or by less than a tenth of what the best "
            "schedule gains over VI; in part if it has at least half of that gain.",
        ),
        Claim(
            "faces",
            "Expected temperatures of VT decrease during learning.",
            ran,
            f"never rises by more than 1% of itself in {sum(falling)} of {len(falling)} runs; "
            f"first temperature {mean_text(_column(rows, 'VT', 'first_temperature'), 2)}, tenth "
            f"{mean_text(_column(rows, 'VT', 'tenth_temperature'), 2)}",
            "holds" if all(falling) else ("holds in part" if any(falling) else "does not hold"),
            "Holds if so in all runs, in part if in some.",
        ),
        Claim(
            "faces",
            "Erratum: the printed log C moves the temperature that VT finds by log 2πσ², here up: "
            "only the end of the run brings T to 1.",
            ran,
            f"temperature after the first iteration, printed − corrected: {moved.text(3)}, "
            f"log 2πσ² = {MOVES:.3f}; after the tenth, printed "
            f"{mean_text(_column(rows, PRINTED, 'tenth_temperature'), 2)}, corrected "
            f"{mean_text(_column(rows, 'VT', 'tenth_temperature'), 2)}; held-out score corrected − "
            f"printed {literal.text(4)}",
            "holds" if abs(moved.mean - MOVES) < 0.1 * MOVES else "does not hold",
            "Holds if the first temperatures differ by log 2πσ², to a tenth of it.",
            added=True,
        ),
        Claim(
            "faces",
            "Added: LVT on faces (not in the paper) is better than VI, and as good as VT.",
            ran,
            f"LVT − VI: {gains['LVT'].text(4)}; LVT − VT: {local.text(4)}",
            weakest([better(gains["LVT"]), no_worse(local)]),
            "Holds if higher than VI with p < 0.05, and not lower than VT on average.",
            added=True,
        ),
        Claim(
            "faces",
            "Added: the package's default is as good as the better of the paper's schedules.",
            ran,
            f"default − {best}: {ahead.text(4)}; default − VI: {gains[DEFAULT].text(4)}; CPU s a "
            "fit with its scores: "
            + ", ".join(
                f"{name} {np.mean(_column(rows, name, 'cpu')):.0f}"
                for name in ("VI", SLOW, "VT", "LVT", DEFAULT)
            ),
            *no_worse(ahead),
            added=True,
        ),
    ]


def _pairs(rows: list[Row], first: str, second: str) -> Paired:
    return pairs(rows, first, second, "held_out", by=("seed", "n_features"))


def _close(lag: Paired, gain: Paired) -> Verdict:
    if lag.mean >= 0 or (gain.mean > 0 and -lag.mean < CLOSE * gain.mean):
        return "holds"
    return "holds in part" if gain.mean > 0 and -lag.mean <= 0.5 * gain.mean else "does not hold"


def _column(rows: list[Row], method: str, column: str) -> list[float]:
    return [row[column] for row in rows if row["method"] == method]


def _falls(temperatures: list[float]) -> bool:
    path = np.asarray(temperatures)
    return bool(np.all(path[1:] <= 1.01 * path[:-1]))


def _ends(rows: list[Row], method: str) -> str:
    sizes = sorted({row["n_features"] for row in rows})
    of_size = {k: [r for r in rows if r["n_features"] == k] for k in sizes}
    return ", ".join(
        f"{method} at K = {k} {mean_text(_column(some, method, 'held_out'), 4)}"
        for k, some in of_size.items()
    )


def _ran(rows: list[Row]) -> str:
    sizes = sorted({row["n_features"] for row in rows})
    seeds = len({row["seed"] for row in rows})
    row = rows[0]
    return (
        f"{row['data']}: {row['n_images']:,} images of {row['pixels']:,} pixels; K = "
        f"{', '.join(map(str, sizes))}; {seeds} seeds (split and start), paired over seeds and "
        "K (pairs of a seed share its split)"
    )
