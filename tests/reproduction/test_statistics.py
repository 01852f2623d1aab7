"""Paired comparisons, against enumeration of all signs and against their own definitions."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata, ttest_rel

from reproduction.statistics import better, compare, mean_text, no_worse, pairs, weakest


def signed_rank_p(differences):
    """Wilcoxon's two-sided p by going through all signs."""
    ranks = rankdata(np.abs(differences))
    centre = ranks.sum() / 2
    seen = abs(ranks[differences > 0].sum() - centre)
    sums = [np.dot(signs, ranks) for signs in product((0, 1), repeat=len(ranks))]
    return np.mean(np.abs(np.array(sums) - centre) >= seen - 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_from_ten_pairs_on_it_is_wilcoxons(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(0.4, 1, 11), rng.normal(0, 1, 11)
    paired = compare(first, second)
    assert paired.test == "Wilcoxon"
    assert paired.p == pytest.approx(signed_rank_p(first - second))
    assert paired.mean == pytest.approx(np.mean(first - second))
    assert paired.wins == sum(first > second)


def test_with_fewer_it_is_the_t_test():
    first, second = [3.0, 5.0, 4.5], [1.0, 2.0, 3.0]
    paired = compare(first, second)
    assert paired.p == pytest.approx(ttest_rel(first, second).pvalue)
    assert "paired t p =" in paired.text(1)
    assert "higher in 3 of 3" in paired.text(1)


def test_what_cannot_be_tested_is_not():
    assert math.isnan(compare([1.0], [0.0]).p)
    assert math.isnan(compare([2.0, 3.0], [1.0, 2.0]).p)
    assert compare([1.0, 2.0], [1.0, 2.0]).p == 1.0
    assert "p =" not in compare([1.0], [0.0]).text()
    with pytest.raises(ValueError, match="no pair"):
        compare([], [])


def test_pairs_meet_where_both_were_run():
    rows = [
        {"method": "a", "seed": 0, "k": 1, "score": 1.0},
        {"method": "a", "seed": 1, "k": 1, "score": 5.0},
        {"method": "b", "seed": 1, "k": 1, "score": 2.0},
        {"method": "b", "seed": 1, "k": 2, "score": 9.0},
    ]
    paired = pairs(rows, "a", "b", "score", by=("seed", "k"))
    assert (paired.n, paired.mean) == (1, 3.0)
    with pytest.raises(ValueError, match="'a' and 'c' were never run on the same seed"):
        pairs(rows, "a", "c", "score")


def test_the_rules():
    clear = compare([3.0, 4.1, 5.0], [1.0, 2.0, 3.1])
    unclear = compare([3.0, 1.0, 5.0], [1.0, 2.0, 3.0])
    worse = compare([1.0, 2.0, 3.1], [3.0, 4.1, 5.0])
    slightly = compare([1.0, 2.0, 3.0], [3.0, 1.0, 5.0])
    assert [better(each)[0] for each in (clear, unclear, worse)] == [
        "holds",
        "holds in part",
        "does not hold",
    ]
    assert [no_worse(each)[0] for each in (clear, slightly, worse)] == [
        "holds",
        "holds in part",
        "does not hold",
    ]
    parts = [better(clear), better(worse)]
    assert weakest(parts) == "holds in part"
    assert weakest(parts[:1]) == "holds"
    assert weakest(parts[1:]) == "does not hold"
    assert weakest([better(unclear), better(unclear)]) == "holds in part"
    assert weakest([better(unclear), better(worse)]) == "does not hold"


def test_numbers_as_text():
    assert mean_text([-1.0]) == "−1"
    assert mean_text([-1000.0, -3000.0]) == "−2,000 ± 1,414"
