"""The picture of a tempered fit's path."""

from __future__ import annotations

import numpy as np
import pytest

from tempering import AdaptiveTempering, Annealing, Mixture, VariationalTempering, fit, schedules
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.plots import plot_temperature_path


def fitted(policy, **options):
    data = np.random.default_rng(0).normal(np.repeat([-3.2, 3.2], 150))[:, None]
    model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    options = {"max_passes": 1000, **options}
    return fit(model, data, temperature=policy, progress=False, n_threads=1, **options)


def test_the_heat_capacity_peaks_where_two_gaussians_separate():
    """That begins at T = Var(x), about 11."""
    history = fitted(AdaptiveTempering()).history
    temperature, _, capacity = plot_temperature_path(history).axes
    hot = np.asarray(temperature.lines[0].get_ydata(), float)
    heat = np.asarray(capacity.lines[0].get_ydata(), float)
    heat[hot > 1000] = np.nan  # where data outweigh the prior, E rises too
    assert 3 < hot[np.nanargmax(heat)] < 11


def test_the_heat_capacity_of_minibatches_is_left_out():
    history = fitted(Annealing(schedules.linear(30.0)), batch_size=20, max_passes=6).history
    _, energy, capacity = plot_temperature_path(history).axes
    assert np.isfinite(energy.lines[0].get_ydata()).any()
    assert not np.isfinite(capacity.lines[0].get_ydata()).any()


def test_holds_are_shaded():
    held, cooled = (
        plot_temperature_path(fitted(policy).history).axes[0].patches
        for policy in (AdaptiveTempering(), Annealing(schedules.linear(5.0), passes=20))
    )
    assert len(held) > 0
    assert len(cooled) == 0


def test_a_fit_without_temperatures_is_refused():
    with pytest.raises(ValueError, match="history must hold tempered steps"):
        plot_temperature_path(fitted(None).history)


def test_learned_temperatures_are_refused():
    """Their q(T) is a part of the tempered ELBO: an energy that was read from it was nonsense."""
    with pytest.raises(ValueError, match="do not tell the energy: take plot_temperature"):
        plot_temperature_path(fitted(VariationalTempering()).history)


def test_the_energy_is_that_of_the_model():
    """One Gaussian of known variance: E log p(x | mean) is written out."""
    data = np.array([[0.0], [1.0], [5.0]])
    model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(1), [1.0], [0.0, 1.0])
    history = fit(model, data, temperature=Annealing(schedules.constant(2.0)), max_passes=9).history
    mean, variance = 3.0 / 2.5, 1 / 2.5  # at s = 1/2: precision 1 + 3 / 2, sum 6 / 2
    expected = -0.5 * np.sum((data - mean) ** 2 + variance + np.log(2 * np.pi))
    energy = np.asarray(plot_temperature_path(history).axes[1].lines[0].get_ydata(), float)
    assert energy[4] == pytest.approx(expected)
