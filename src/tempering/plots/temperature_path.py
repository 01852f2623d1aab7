"""The path of a tempered fit: temperature, energy, and where optima split, in one picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempering.inference import History
from tempering.plots.canvas import new_figure


def plot_temperature_path(history: History) -> Any:
    """Temperature, energy and heat capacity by passes; where the temperature is held is shaded.

    The energy E is the expected log likelihood. The heat capacity is its rise for a rise of log s,
    s = 1/T: it peaks where components separate.

    Parameters
    ----------
    history : History
        ``history`` of a batch fit, or ``history_`` of an estimator, with the ELBO of each step.

    Returns
    -------
    matplotlib figure

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import AdaptiveTempering, Mixture, fit
    >>> from tempering.families import Dirichlet, IsotropicGaussian
    >>> from tempering.plots import plot_temperature_path
    >>> data = np.random.default_rng(0).normal(np.repeat([-3.0, 3.0], 100))[:, None]
    >>> model = Mixture(IsotropicGaussian(1, 1.0), Dirichlet(2), [1.0, 1.0], [0.0, 0.1])
    >>> result = fit(model, data, temperature=AdaptiveTempering())
    >>> [axis.get_ylabel() for axis in plot_temperature_path(result.history).axes]
    ['temperature', 'energy', 'heat capacity']
    """
    s = np.asarray(history["inverse_temperature"], float)
    elbo, tempered = history["elbo"], history["tempered_elbo"]
    hot = s < 1.0
    if not np.any(hot & np.isfinite(elbo)):
        raise ValueError(
            "history must hold tempered steps with an ELBO; this one has none. Fit with a "
            "temperature policy, and evaluate the ELBO at each step (elbo_every=1)."
        )
    passes = history["passes"]
    energy = np.full(s.size, np.nan)
    # L(s) = s E + S, and the ELBO is E + S.
    energy[hot] = (elbo[hot] - tempered[hot]) / (1.0 - s[hot])
    capacity = np.full(s.size, np.nan)
    rises = np.flatnonzero(hot[1:] & hot[:-1] & (s[1:] > s[:-1])) + 1
    capacity[rises] = (energy[rises] - energy[rises - 1]) / np.log(s[rises] / s[rises - 1])
    held = np.r_[False, hot[1:] & (s[1:] == s[:-1])]

    figure = new_figure(figsize=(7, 6))
    axes = figure.subplots(3, sharex=True)
    columns = {"temperature": 1.0 / s, "energy": energy, "heat capacity": capacity}
    for axis, (label, values) in zip(axes, columns.items(), strict=True):
        marker = "." if label == "heat capacity" else None
        axis.plot(passes, values, marker=marker, linewidth=1.2, markersize=3)
        axis.set_ylabel(label)
        for start, end in _stretches(held):
            axis.axvspan(passes[start - 1], passes[end], color="tab:orange", alpha=0.2, linewidth=0)
    axes[0].set_yscale("log")
    axes[0].set_title("shaded: held, components are separating", fontsize="small", loc="left")
    axes[-1].set_xlabel("passes over the data")
    return figure


def _stretches(flags: np.ndarray) -> list[tuple[int, int]]:
    """First and last place of each run of true flags."""
    edges = np.flatnonzero(np.diff(np.r_[0, flags.astype(int), 0]))
    return [(int(start), int(end) - 1) for start, end in edges.reshape(-1, 2)]
