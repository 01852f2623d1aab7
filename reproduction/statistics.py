"""Numbers for the verdicts: means with spreads, and paired tests over seeds.

Methods are compared on the same seeds (the same data, the same start), so tests are paired. With
ten pairs or more it is Wilcoxon's signed-rank test, which asks for no shape of the differences;
with fewer that test can hardly reject anything, and it is the paired t-test. Both are two-sided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reproduction.experiment import Row, Verdict

#: Below this p a difference counts as shown.
LEVEL = 0.05
#: From so many pairs on, Wilcoxon's test.
ENOUGH_FOR_RANKS = 10


@dataclass(frozen=True)
class Paired:
    """Differences of two methods over the same cases.

    Parameters
    ----------
    n : int
        Pairs.
    mean : float
        Mean difference, first minus second.
    deviation : float
        Standard deviation of the differences; NaN of a single pair.
    wins : int
        Pairs in which the first was higher.
    p : float
        Two-sided p; NaN where there are too few pairs for a test.
    test : str
        Which test it is of.
    """

    n: int
    mean: float
    deviation: float
    wins: int
    p: float
    test: str

    def text(self, digits: int = 0, unit: str = "") -> str:
        """The difference, its spread and p, for a table."""
        spread = "" if math.isnan(self.deviation) else f" ± {self.deviation:,.{digits}f}"
        shown = f"{self.mean:+,.{digits}f}".replace("-", "−") + spread + unit
        ending = f"higher in {self.wins} of {self.n}; {self.test}"
        return f"{shown} ({ending}{'' if math.isnan(self.p) else f' p = {self.p:.2g}'})"


def compare(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Two methods on the same cases, in the same order.

    Parameters
    ----------
    first, second : sequence of float
        What each reached.

    Examples
    --------
    >>> paired = compare([3.0, 5.0, 4.0], [1.0, 2.0, 3.0])
    >>> paired.mean, paired.wins, round(paired.p, 3)
    (2.0, 3, 0.074)
    """
    differences = np.asarray(first, float) - np.asarray(second, float)
    n = differences.size
    if n == 0:
        raise ValueError("there is no pair to compare.")
    deviation = float(differences.std(ddof=1)) if n > 1 else math.nan
    p, test = _test(differences)
    return Paired(n, float(differences.mean()), deviation, int((differences > 0).sum()), p, test)


def _test(differences: np.ndarray) -> tuple[float, str]:
    from scipy.stats import ttest_1samp, wilcoxon

    n = differences.size
    if n == 1:
        return math.nan, "no test of one pair"
    if not differences.any():
        return 1.0, "no difference,"
    if n >= ENOUGH_FOR_RANKS:
        return float(wilcoxon(differences).pvalue), "Wilcoxon"
    if np.ptp(differences) < 1e-12 * np.abs(differences).max():
        return math.nan, "no spread to test by"
    return float(ttest_1samp(differences, 0.0).pvalue), "paired t"


def pairs(
    rows: Iterable[Row],
    first: str,
    second: str,
    value: str,
    by: Sequence[str] = ("seed",),
    of: str = "method",
) -> Paired:
    """Compare two methods of an experiment where both were run.

    Parameters
    ----------
    rows : iterable of rows
        Of the experiment.
    first, second : str
        Methods.
    value : str
        The column to compare.
    by : sequence of str
        Columns that are the same within a pair.
    of : str
        The column of the methods.
    """
    table: dict[str, dict[tuple, float]] = {first: {}, second: {}}
    for row in rows:
        if row[of] in table:
            table[row[of]][tuple(row[name] for name in by)] = float(row[value])
    both = sorted(table[first].keys() & table[second].keys())
    if not both:
        raise ValueError(f"{first!r} and {second!r} were never run on the same {', '.join(by)}.")
    return compare([table[first][key] for key in both], [table[second][key] for key in both])


def better(paired: Paired) -> tuple[Verdict, str]:
    """The rule for "first is better than second"."""
    if paired.mean > 0 and paired.p < LEVEL:
        return "holds", "higher on average, and p < 0.05"
    if paired.mean > 0:
        return "holds in part", "higher on average, but not shown at p < 0.05 with these seeds"
    return "does not hold", "not higher on average"


def no_worse(paired: Paired) -> tuple[Verdict, str]:
    """The rule for "first is as good as second, or better"."""
    if paired.mean >= 0:
        return "holds", "not lower on average"
    if paired.p < LEVEL:
        return "does not hold", "lower on average, with p < 0.05"
    return "holds in part", "lower on average, but not shown at p < 0.05 with these seeds"


def weakest(verdicts: Iterable[tuple[Verdict, str]]) -> Verdict:
    """Of several parts of a claim: in part if some hold, or none fails outright."""
    found = [verdict for verdict, _ in verdicts]
    if all(verdict == "holds" for verdict in found):
        return "holds"
    some = "holds" in found or "does not hold" not in found
    return "holds in part" if some else "does not hold"


def mean_text(values: Iterable[float], digits: int = 0, unit: str = "") -> str:
    """A mean with its standard deviation over the cases.

    Examples
    --------
    >>> mean_text([1.0, 2.0, 3.0], 1)
    '2.0 ± 1.0'
    """
    array = np.asarray(list(values), float)
    spread = f" ± {array.std(ddof=1):,.{digits}f}" if array.size > 1 else ""
    return f"{array.mean():,.{digits}f}".replace("-", "−") + spread + unit
