"""log C(T) by quadrature against other oracles, and the rules of its verdicts."""

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import beta

from pictures import drawn
from reproduction import partition
from reproduction.experiment import Setting
from reproduction.partition_numbers import (
    DIMENSION,
    FAILURES,
    SUCCESSES,
    compare_assignments,
    compare_base_measure,
    exact_log_partition,
)
from reproduction.runner import run_experiment


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("partition")
    return out, run_experiment(partition.EXPERIMENT, Setting(seeds=1), out)


@pytest.mark.slow
def test_the_quick_form_runs_draws_and_judges(quick):
    out, rows = quick
    assert drawn(out / "partition.png")
    judged = json.loads((out / "partition.json").read_text())["claims"]
    assert all("nan" not in claim["numbers"] for claim in judged)
    errata = [claim for claim in judged if claim["added"]]
    assert len(errata) == 4
    assert {claim["verdict"] for claim in errata} == {"holds"}
    few, *_, many = [row for row in rows if row["part"] == "sampling" and row["samples"] == 1000]
    assert few["error"] < 0.5 < many["error"]
    assert many["effective"] < 2 < few["effective"]


def test_quadrature_of_one_datum_is_a_sum_of_beta_functions():
    s = np.array([0.1, 0.5, 1.0])
    norm = betaln(SUCCESSES, FAILURES)
    moments = np.exp(betaln(SUCCESSES + s, FAILURES) - norm)
    moments += np.exp(betaln(SUCCESSES, FAILURES + s) - norm)
    np.testing.assert_allclose(exact_log_partition(s, 1), DIMENSION * np.log(moments), atol=1e-9)


@pytest.mark.parametrize("s", [0.2, 0.7])
@pytest.mark.parametrize("n", [3, 200])
def test_quadrature_in_the_logit_is_quadrature_in_the_probability(s, n):
    def integrand(b):
        return beta.pdf(b, SUCCESSES, FAILURES) * ((b**s + (1 - b) ** s) / 2 ** (1 - s)) ** n

    integral = quad(integrand, 0, 1, epsabs=1e-13, limit=400, points=[0.5])[0]
    exact = DIMENSION * (np.log(integral) + n * (1 - s) * np.log(2))
    assert exact_log_partition(np.array([s]), n)[0] == pytest.approx(exact, rel=1e-7)


def test_without_the_base_measure_the_identity_fails():
    numbers = compare_base_measure(0.5)
    assert numbers["with_base_measure"] == pytest.approx(numbers["quadrature"], abs=1e-10)
    assert numbers["printed_identity"] < 0 < numbers["quadrature"]


def test_counts_in_the_exponent_cost_evidence():
    numbers = compare_assignments(5, seed=1)
    assert numbers["elbo"] > numbers["printed_elbo"] + 1e-3


@pytest.mark.parametrize(
    ("change", "sentence", "verdict"),
    [
        ({"largest_error": 5.0}, "100 Monte Carlo", "does not hold"),
        ({"largest_error": 0.5}, "100 Monte Carlo", "holds"),
        ({"rises": False}, "log C(T) is usually", "does not hold"),
        ({"last_temperature": 3.0}, "Without C(T)", "does not hold"),
    ],
)
@pytest.mark.slow
def test_verdicts_follow_the_numbers(quick, change, sentence, verdict):
    _, rows = quick
    changed = [{**row, **{k: v for k, v in change.items() if k in row}} for row in rows]
    (claim,) = [each for each in partition.claims(changed) if each.sentence.startswith(sentence)]
    assert claim.verdict == verdict
