"""Pictures of what the states of a hidden Markov model emit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, poisson

from tempering.plots.canvas import new_figure
from tempering.plots.hidden import column_names, learned


def plot_emissions(hmm: Any, X: ArrayLike | None = None, names: Sequence[str] | None = None) -> Any:
    """What each state emits: densities, ellipses or probabilities, whichever the model has.

    Real numbers and counts in one column are drawn as the density of each state times the share of
    time that the chain spends in it, and their sum; real numbers in two columns as ellipses of two
    standard deviations; symbols, and counts in several columns, as a table of colours.

    Parameters
    ----------
    hmm : hidden Markov model
        Fitted, or with attributes set by hand.
    X : array of shape (n_samples, n_features), optional
        Observations to draw behind densities and ellipses.
    names : sequence of str, optional
        Names of the columns, or of the symbols.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import CategoricalHMM
    >>> from tempering.plots import plot_emissions
    >>> hmm = CategoricalHMM(n_components=2)
    >>> hmm.emissionprob_ = np.array([[0.75, 0.25], [0.05, 0.95]])
    >>> [text.get_text() for text in plot_emissions(hmm, names=["no", "yes"]).axes[0].texts]
    ['0.75', '0.25', '0.05', '0.95']
    """
    rows = None if X is None else np.asarray(X)
    what = next((name for name in ("emissionprob_", "lambdas_") if hasattr(hmm, name)), "means_")
    points = learned(hmm, "hmm", what)
    columns = points.shape[1]
    names = column_names(names, columns) or None
    if what == "emissionprob_":
        return _table(points, "probability", "symbol", names)
    if rows is not None and (rows.ndim != 2 or rows.shape[1] != columns):
        raise ValueError(f"X must be a table of {columns} columns; got the shape {rows.shape}.")
    if rows is not None and not (rows.dtype.kind in "biuf" and np.isfinite(rows).all()):
        raise ValueError("X must hold finite numbers, to be drawn.")
    if what == "lambdas_":
        if columns > 1:
            return _table(points, "expected count", "column", names)
        return _counts(hmm, rows, names)
    if columns > 2:
        raise ValueError(
            f"Emissions of {columns} columns cannot be drawn: fit the model to one or two of them."
        )
    return _curves(hmm, rows, names) if columns == 1 else _ellipses(hmm, rows, names)


def _curves(hmm: Any, rows: np.ndarray | None, names: Sequence[str] | None) -> Any:
    means, deviations = hmm.means_[:, 0], np.sqrt(hmm.covars_[:, 0, 0])
    x = np.linspace((means - 4 * deviations).min(), (means + 4 * deviations).max(), 400)
    shares = hmm.get_stationary_distribution()
    densities = shares[:, None] * norm.pdf(x, means[:, None], deviations[:, None])
    figure, axis = _axis(names)
    if rows is not None:
        axis.hist(rows[:, 0], bins="auto", density=True, color="0.85")
    _draw_shares(axis, x, densities)
    axis.set(ylabel="density")
    return figure


def _counts(hmm: Any, rows: np.ndarray | None, names: Sequence[str] | None) -> Any:
    rates = np.asarray(hmm.lambdas_)[:, 0]
    x = np.arange(int(np.ceil(rates.max() + 4 * np.sqrt(rates.max()))) + 2)
    probabilities = hmm.get_stationary_distribution()[:, None] * poisson.pmf(x, rates[:, None])
    figure, axis = _axis(names)
    if rows is not None:
        seen, times = np.unique(rows[:, 0], return_counts=True)
        axis.bar(seen, times / len(rows), width=0.9, color="0.85")
    _draw_shares(axis, x, probabilities)
    axis.set(ylabel="probability")
    return figure


def _draw_shares(axis: Any, x: np.ndarray, parts: np.ndarray) -> None:
    for k, part in enumerate(parts):
        axis.plot(x, part, color=f"C{k % 10}", label=f"state {k}")
    axis.plot(x, parts.sum(axis=0), color="0.2", lw=0.8, ls="--", label="together")
    axis.legend(frameon=False)


def _ellipses(hmm: Any, rows: np.ndarray | None, names: Sequence[str] | None) -> Any:
    figure, axis = _axis(names)
    if rows is not None:
        colours = [f"C{k % 10}" for k in hmm.predict(rows)]
        axis.scatter(rows[:, 0], rows[:, 1], s=3, c=colours, alpha=0.4, lw=0)
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    for k, (mean, covariance) in enumerate(zip(hmm.means_, hmm.covars_, strict=True)):
        edge = mean + 2 * circle @ np.linalg.cholesky(covariance).T
        axis.plot(edge[:, 0], edge[:, 1], color=f"C{k % 10}", label=f"state {k}")
    axis.legend(frameon=False)
    return figure


def _table(values: np.ndarray, what: str, columns: str, names: Sequence[str] | None) -> Any:
    k, n = values.shape
    words = 0.0 if names is None else 0.08 * max(map(len, names))
    figure = new_figure(figsize=(2.5 + 0.6 * min(n, 30), 1.4 + 0.5 * k + words))
    axis = figure.subplots()
    image = axis.imshow(values, cmap="Blues", vmin=0, aspect="auto")
    if n <= 12:
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value > 0.6 * values.max() else "black"
            axis.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
    if names is not None:
        axis.set_xticks(range(n), names, rotation=90)
    axis.set(yticks=range(k), xlabel=columns, ylabel="state")
    figure.colorbar(image, ax=axis, label=what)
    return figure


def _axis(names: Sequence[str] | None) -> tuple[Any, Any]:
    figure = new_figure(figsize=(6, 4))
    axis = figure.subplots()
    if names is not None:
        axis.set(xlabel=names[0])
        if len(names) > 1:
            axis.set(ylabel=names[1])
    return figure, axis
