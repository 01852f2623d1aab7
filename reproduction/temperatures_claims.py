"""Verdicts on learned temperatures."""

from __future__ import annotations

import numpy as np

from reproduction.experiment import Claim, Row, Verdict
from reproduction.lda_claims import ran, values
from reproduction.lda_fits import PRINTED_LVT, PRINTED_VT
from reproduction.statistics import better, compare, mean_text, weakest

#: An area under the curve from which foreign documents count as told apart, and as noticed.
TOLD_APART, NOTICED = 0.9, 0.6


def claims(rows: list[Row]) -> list[Claim]:
    return [_falling(rows), _outliers(rows), _prediction(rows), _printed_local(rows)]


def _own(rows: list[Row], method: str) -> list[Row]:
    return [row for row in rows if row["method"] == method]


def _falling(rows: list[Row]) -> Claim:
    own = _own(rows, "VT")
    falls = [row["last_temperature"] < row["first_temperature"] for row in own]
    steady = [row["falling_share"] >= 0.9 for row in own]
    verdict: Verdict = (
        "holds"
        if all(falls) and all(steady)
        else "holds in part"
        if all(falls)
        else "does not hold"
    )
    printed = mean_text(values(rows, PRINTED_VT, "last_temperature"), 2)
    return Claim(
        "temperatures",
        "The expected temperature of VT decreases during learning.",
        ran(rows),
        f"T from {mean_text(values(rows, 'VT', 'first_temperature'), 2)} to "
        f"{mean_text(values(rows, 'VT', 'last_temperature'), 2)}, "
        f"{np.mean([row['falling_share'] for row in own]):.0%} of its changes downwards; by the "
        f"printed formula to {printed}",
        verdict,
        "lower at the end than at the start, and nine tenths of its changes downwards (corrected "
        "formula); the first alone for “in part”",
    )


def _outliers(rows: list[Row]) -> Claim:
    own = _own(rows, "LVT")
    areas = [row["separation_unigram"] for row in own]
    verdict: Verdict = "does not hold"
    if min(areas) >= NOTICED:
        verdict = "holds" if min(areas) >= TOLD_APART else "holds in part"
    first = own[0]
    traits = ", ".join(
        f"{name} {first['rank_correlation_' + name]:+.2f}"
        for name in ("length", "variety", "rarity")
    ).replace("-", "−")
    return Claim(
        "temperatures",
        "Outliers get a high local temperature.",
        ran(own),
        f"area under the curve, documents with words drawn one by one against real ones: "
        f"{mean_text(areas, 3)} (words by frequency), "
        f"{mean_text([row['separation_uniform'] for row in own], 3)} (any word); median T of "
        f"documents {first['document_temperature_median']:.2f}, 95% below "
        f"{first['document_temperature_95']:.2f}; rank correlation of T with {traits}; hottest: "
        f"{' | '.join(first['hottest'])}; coldest: {' | '.join(first['coldest'])}",
        verdict,
        f"area at least {TOLD_APART} for words drawn by frequency; {NOTICED} for “in part”",
    )


def _prediction(rows: list[Row]) -> Claim:
    numbers, shown = [], []
    for method in ("VT", "LVT"):
        own = _own(rows, method)
        paired = compare([row["tempered"] for row in own], [row["scan"][-1] for row in own])
        numbers.append(f"{method}, at its temperature − at T = 1: {paired.text(4)}")
        shown.append(better(paired))
    return Claim(
        "temperatures",
        "Predicting with the learned temperatures gives even higher likelihoods (footnote).",
        ran(rows),
        "; ".join(numbers),
        weakest(shown),
        "higher with p < 0.05, for VT and for LVT; some of it for “in part”",
    )


def _printed_local(rows: list[Row]) -> Claim:
    printed = values(rows, PRINTED_LVT, "last_temperature")
    corrected = values(rows, "LVT", "last_temperature")
    collapsed = min(printed) > 10 * max(corrected)
    return Claim(
        "temperatures",
        "The printed update of LVT has a stray 1/T before its exponent, and sends documents' "
        "temperatures towards their maximum, 100.",
        ran(rows),
        f"mean temperature at the end: printed {mean_text(printed, 1)}, corrected "
        f"{mean_text(corrected, 2)}; held-out nats a word "
        f"{mean_text(values(rows, PRINTED_LVT), 3)} against {mean_text(values(rows, 'LVT'), 3)}",
        "holds" if collapsed else "does not hold",
        "the printed one ends at more than ten times the temperature",
        added=True,
    )
