"""Verdicts on annealing the prior."""

from __future__ import annotations

from reproduction.experiment import Claim, Row, Verdict
from reproduction.lda_claims import described
from reproduction.statistics import better, pairs, weakest

LIKELIHOOD, JOINT = "likelihood", "joint"
TEMPERED = (LIKELIHOOD, JOINT)


def part_of(rows: list[Row], part: str) -> list[Row]:
    """The runs of one part."""
    return [row for row in rows if row["part"] == part]


def claims(rows: list[Row]) -> list[Claim]:
    return [
        _gamma(part_of(rows, "gamma")[0]),
        _features(part_of(rows, "features")),
        _topics(part_of(rows, "topics")),
    ]


def _gamma(row: Row) -> Claim:
    density, natural = row["orders_density"], row["orders_natural"]
    far = abs(density) > 5 and abs(natural) > 5
    down = density < 0 and natural < 0
    verdict: Verdict = "holds" if far and down else "holds in part" if far else "does not hold"
    return Claim(
        "prior",
        "Annealing a gamma(0.05) at T = 2 reduces its median by over five orders of magnitude.",
        f"gamma with shape {row['shape']:g} and rate 1, T = {row['temperature']:g}, by its "
        "quantile function",
        f"median {row['median']:.2g}; of the density to the power 1/T {row['median_density']:.2g} "
        f"({density:+.2f} orders of magnitude); with the shape divided by T "
        f"{row['median_natural']:.2g} ({natural:+.2f})".replace("-", "−"),
        verdict,
        "both readings must move it by more than five orders, and downwards; the size alone for "
        "“in part”: the density to the power 1/T moves it up",
    )


def _features(rows: list[Row]) -> Claim:
    numbers, verdicts = [], []
    for start in dict.fromkeys(row["start"] for row in rows):
        own = [row for row in rows if row["start"] == start]
        gain = pairs(own, LIKELIHOOD, JOINT, "elbo")
        found = pairs(own, LIKELIHOOD, JOINT, "found")
        verdicts.append(better(gain))
        numbers.append(
            f"features {start} at the start: ELBO at T = 1 {gain.text(0)}, features found "
            f"{found.text(2)}"
        )
    seeds = len({row["seed"] for row in rows})
    return Claim(
        "prior",
        "Annealing the prior too can lead to practical problems (factorial mixture).",
        f"toy images, N = {rows[0]['n_images']:,}, {seeds} seeds, linear in T from 10 in 100 "
        "iterations",
        "likelihood − joint: " + "; ".join(numbers),
        weakest(verdicts),
        "annealing the likelihood only must be better with p < 0.05, from both starts",
    )


def _topics(rows: list[Row]) -> Claim:
    numbers, verdicts = [], []
    for factor in dict.fromkeys(row["eta"] for row in rows):
        own = [row for row in rows if row["eta"] == factor]
        gain = pairs(own, LIKELIHOOD, JOINT, "vi")
        verdicts.append(better(gain))
        exact = pairs(own, LIKELIHOOD, JOINT, "gibbs")
        numbers.append(f"η = {factor:g}/K: {gain.text(4)}, by exact θ {exact.mean:+.4f}")
    seeds = len({row["seed"] for row in rows})
    return Claim(
        "prior",
        "Annealing the prior too can lead to practical problems (topic model).",
        f"{described(rows[0])}, K = {rows[0]['topics']}, {seeds} seed{'s' * (seeds > 1)}, AVI with "
        "tA = 1",
        ("likelihood − joint, nats a word: " + "; ".join(numbers)).replace("-", "−"),
        weakest(verdicts),
        "annealing the likelihood only must be better with p < 0.05, at each η",
    )
