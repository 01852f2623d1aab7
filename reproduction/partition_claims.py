"""Verdicts on log C(T)."""

from __future__ import annotations

import numpy as np

from reproduction.experiment import Claim, Row, Verdict
from reproduction.statistics import mean_text

#: What the paper takes for enough draws.
PAPER_DRAWS = 100
#: log C that is off by a nat changes the odds of temperatures by a factor e.
TOLERABLE = 1.0
BERNOULLI = "10 Bernoulli variables with Beta(1.2, 0.8) priors"


def part_of(rows: list[Row], part: str) -> list[Row]:
    """The numbers of one part."""
    return [row for row in rows if row["part"] == part]


def claims(rows: list[Row]) -> list[Claim]:
    return [
        _few_draws(part_of(rows, "sampling")),
        _rises(part_of(rows, "sampling")),
        _left_out(part_of(rows, "left out")),
        _mode(part_of(rows, "mode")),
        _mode_sign(part_of(rows, "mode")),
        _bounds(part_of(rows, "bounds")[0]),
        _base_measure(part_of(rows, "base measure")),
        _assignments(part_of(rows, "assignments")[0]),
    ]


def _claim(
    sentence: str, ran: str, numbers: str, verdict: Verdict, reason: str, added: bool = False
) -> Claim:
    return Claim("partition", sentence, ran, numbers.replace("-", "−"), verdict, reason, added)


def _few_draws(rows: list[Row]) -> Claim:
    own = [row for row in rows if row["samples"] == PAPER_DRAWS]
    right = [row["largest_error"] < TOLERABLE for row in own]
    verdict: Verdict = "holds" if all(right) else "holds in part" if any(right) else "does not hold"
    numbers = "; ".join(
        f"N = {row['n']:,}: off by {row['error']:,.2f} nats, {row['effective']:.1f} effective draws"
        for row in own
    )
    most = max(rows, key=lambda row: (row["n"], row["samples"]))
    return _claim(
        "100 Monte Carlo samples of C(T) are typically enough.",
        f"{BERNOULLI}, {PAPER_DRAWS} draws, {own[0]['repeats']} repeats, T from 1 to 10, against "
        "quadrature",
        f"{numbers}; with {most['samples']:,} draws at N = {most['n']:,} still by "
        f"{most['error']:,.0f}",
        verdict,
        f"log C off by less than {TOLERABLE:g} nat in every repeat, at every N; at some N for “in "
        "part”. With many data one draw decides the mean",
    )


def _rises(rows: list[Row]) -> Claim:
    rises = [row["rises"] for row in rows]
    return _claim(
        "log C(T) is usually a monotonically increasing function of T.",
        BERNOULLI + ", quadrature",
        f"rises from T = 1 to 10 for {len({row['n'] for row in rows if row['rises']})} of "
        f"{len({row['n'] for row in rows})} sizes N",
        "holds" if all(rises) else "holds in part" if any(rises) else "does not hold",
        "rising from each temperature of the grid to the next",
    )


def _left_out(rows: list[Row]) -> Claim:
    models = list(dict.fromkeys(row["model"] for row in rows))

    def ends(penalised: bool, *names: str) -> list[float]:
        own = [r for r in rows if r["penalised"] == penalised and r["model"] in names]
        return [row["last_temperature"] for row in own]

    stuck = [value > 9.9 for value in ends(False, *models)]
    numbers = "; ".join(
        f"{model}: T ends at {mean_text(ends(False, model), 2)} without C(T), "
        f"{mean_text(ends(True, model), 2)} with it"
        for model in models
    )
    works = all(stuck) and max(ends(True, *models)) < 9.9
    return _claim(
        "Without C(T), all the mass of q(y) goes to the highest temperature.",
        f"toy images and documents drawn from the model, {len(stuck) // len(models)} seeds, "
        "T from 1 to 10",
        numbers,
        "holds" if works else "holds in part" if any(stuck) else "does not hold",
        "T above 9.9 at the end of each run without C(T), and of none with it",
    )


def _mode(rows: list[Row]) -> Claim:
    gaps = [abs(row["map"] - row["exact"]) for row in rows]
    errors = [gap / abs(row["exact"]) for gap, row in zip(gaps, rows)]
    falls = bool(np.all(np.diff(errors) < 0))
    verdict: Verdict = (
        "holds" if falls else "holds in part" if errors[-1] < errors[0] else "does not hold"
    )
    return _claim(
        "The MAP approximation of log C gets better for large data.",
        f"{BERNOULLI}, T = 10, against quadrature; sign corrected",
        "; ".join(
            f"N = {row['n']:,}: {error:.2%}, {gap:,.1f} nats"
            for row, error, gap in zip(rows, errors, gaps)
        ),
        verdict,
        "the relative error falls with each N; lower at the last than at the first for “in part”. "
        "The integrand's mode leaves that of the prior as N grows",
    )


def _mode_sign(rows: list[Row]) -> Claim:
    row = rows[-1]
    flipped = np.sign(row["printed_map"]) != np.sign(row["exact"])
    return _claim(
        "The sign of the printed MAP approximation is flipped.",
        f"{BERNOULLI}, N = {row['n']:,}, T = 10",
        f"log C by quadrature {row['exact']:,.0f}, MAP {row['map']:,.0f}, as printed "
        f"{row['printed_map']:,.0f}",
        "holds" if flipped else "does not hold",
        "the printed value and the exact one differ in sign",
        added=True,
    )


def _bounds(row: Row) -> Claim:
    exact, printed = np.array(row["monte_carlo"]), np.array(row["printed_upper"])
    upper, lower = np.array(row["upper"]), np.array(row["lower"])
    hot = slice(1, None)  # at T = 1 all of them are 0
    # A log-mean-exp is too low on average, so an "upper bound" below it is none.
    wrong = bool(np.all(printed[hot] < exact[hot]))
    valid = bool(np.all(upper[hot] >= exact[hot]) and np.all(lower[hot] <= printed[hot]))
    return _claim(
        "The supplement's upper bound of log C is a second lower bound; D N (1 − 1/T) log V is an "
        "upper one.",
        f"topic model with K = 5, V = 30, 2 documents of 5 words, {row['samples']:,} draws "
        f"({row['effective']:.0f} effective)",
        f"at T = {row['temperatures'][-1]:.1f}: lower {lower[-1]:.2f}, “upper” as printed "
        f"{printed[-1]:.2f}, log C {exact[-1]:.2f} ± {row['spread']:.2f}, valid upper "
        f"{upper[-1]:.2f}",
        "holds" if wrong and valid else "does not hold",
        "the printed “upper” bound is below log C, and (1 − 1/T) log V a word above it, at each T",
        added=True,
    )


def _base_measure(rows: list[Row]) -> Claim:
    wrong = [abs(row["printed_identity"] - row["quadrature"]) for row in rows]
    right = [abs(row["with_base_measure"] - row["quadrature"]) for row in rows]
    return _claim(
        "The general identity for C(T) drops the base measure h^(1/T), and fails for a Gaussian.",
        "log ∫ N(x; 1.5, 1)^(1/T) dx against quadrature",
        "; ".join(
            f"1/T = {row['inverse_temperature']:g}: quadrature {row['quadrature']:.4f}, with h "
            f"{row['with_base_measure']:.4f}, as printed {row['printed_identity']:.4f}"
            for row in rows
        ),
        "holds" if min(wrong) > 0.01 and max(right) < 1e-8 else "does not hold",
        "with h equal to quadrature within 1e-8, as printed off by more than 0.01",
        added=True,
    )


def _assignments(row: Row) -> Claim:
    gap = row["elbo"] - row["printed_elbo"]
    return _claim(
        "The supplement's update of q(z) for a word has its count in the exponent: it does not "
        "maximise the ELBO.",
        f"{row['documents']} documents drawn from the model, topics known, T = 1",
        f"ELBO a word {row['elbo']:.4f}, with the count in the exponent {row['printed_elbo']:.4f}",
        "holds" if gap > 1e-4 else "does not hold",
        "the ELBO of the printed update is lower",
        added=True,
    )
