"""Annealed priors."""

import json

import numpy as np
import pytest
from scipy.integrate import quad

from pictures import drawn
from reproduction import prior
from reproduction.experiment import Setting
from reproduction.prior_claims import claims
from reproduction.runner import run_experiment


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("prior")
    return out, run_experiment(prior.EXPERIMENT, Setting(seeds=1), out)


@pytest.mark.slow
def test_the_quick_form_runs_draws_and_judges(quick):
    out, _ = quick
    assert drawn(out / "prior.png")
    judged = json.loads((out / "prior.json").read_text())["claims"]
    assert len(judged) == 3
    assert all("nan" not in claim["numbers"] for claim in judged)
    assert judged[0]["verdict"] == "holds in part"


@pytest.mark.parametrize(("shape", "temperature"), [(0.05, 2.0), (0.6, 3.0)])
def test_the_median_of_an_annealed_density_halves_its_mass(shape, temperature):
    medians = prior.annealed_medians(shape, temperature)

    def mass(median, power):
        """Below the median, of all: in log x, where the density has no pole."""

        def density(u):
            return np.exp(power * u - np.exp(u) / temperature)

        cut = np.log(median)
        below = quad(density, cut - 60 / power, cut, limit=500)[0]
        return below / (below + quad(density, cut, 10.0, limit=500)[0])

    assert mass(medians["median_density"], (shape - 1) / temperature + 1) == pytest.approx(0.5)
    assert mass(medians["median_natural"], shape / temperature) == pytest.approx(0.5)


@pytest.mark.slow
def test_verdicts_follow_the_runs(quick):
    _, rows = quick
    better, worse = (
        [
            {**row, "elbo": row.get("elbo", 0.0) + shift * (row.get("method") == "joint")}
            for row in rows
        ]
        for shift in (-1e4, 1e4)
    )
    assert claims(better)[1].verdict != "does not hold"
    assert claims(worse)[1].verdict == "does not hold"
    shrunk = [{**row, "orders_density": -6.0} if row["part"] == "gamma" else row for row in rows]
    assert claims(shrunk)[0].verdict == "holds"
