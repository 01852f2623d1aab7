"""The picture of a search."""

from __future__ import annotations

import numpy as np
import pytest

from tempering import fit, search
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.models import Mixture
from tempering.plots import plot_trail


def problem():
    centres = np.array([(x, y) for x in range(3) for y in range(3)])
    noise = np.random.default_rng(0).normal(scale=0.1, size=(180, 2))
    likelihood = IsotropicGaussian(2, 0.01)
    prior = likelihood.conjugate.natural(np.zeros(2), 10.0)
    return Mixture(likelihood, Dirichlet(9), np.ones(9), prior), np.repeat(centres, 20, 0) + noise


def test_the_line_falls_to_zero_and_each_operator_is_named():
    result = search(*problem(), budget=4, seed=1)
    (axis,) = plot_trail(result).axes
    below = axis.lines[0].get_ydata()
    assert np.all(np.diff(below) <= 0)
    assert below[0] > 1
    assert below[-1] == 0
    assert axis.lines[0].get_xdata()[-1] == pytest.approx(result.passes)
    names = {text.get_text() for text in axis.get_legend().get_texts()}
    assert names == {trial.operator for trial in result.trail}


def test_a_result_of_a_single_run_is_refused():
    with pytest.raises(ValueError, match=r"what tempering\.search returns; got Result"):
        plot_trail(fit(*problem()))
