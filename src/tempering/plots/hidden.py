"""Pictures of what is not in the data: clusters, states and their moves, loadings."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, poisson

from tempering.estimators import BayesianGaussianMixture
from tempering.evaluation.checks import shown
from tempering.families.checks import naming_the_table
from tempering.plots.canvas import as_drawn, new_figure


def plot_state_sequence(hmm: Any, X: ArrayLike, names: Sequence[str] | None = None) -> Any:
    """One sequence, each column by itself, on the colours of its most probable states.

    Parameters
    ----------
    hmm : fitted hidden Markov model
        Such as :class:`tempering.GaussianHMM`.
    X : array of shape (n_samples, n_features)
        One sequence, of twelve columns at most.
    names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import GaussianHMM
    >>> from tempering.plots import plot_state_sequence
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0], [4.0], [0.0]], 30, axis=0) + rng.normal(size=(90, 1))
    >>> hmm = GaussianHMM(n_components=2, random_state=0).fit(X)
    >>> len(plot_state_sequence(hmm, X).axes)
    1
    """
    learned(hmm, "hmm", "transmat_")
    with naming_the_table():
        table = np.asarray(X)
    if table.ndim != 2 or not 1 <= table.shape[1] <= 12:
        raise ValueError(f"X must be a table of 1 to 12 columns to be drawn; got {table.shape}.")
    labels = column_names(names, table.shape[1]) or [f"column {i}" for i in range(table.shape[1])]
    states = hmm.predict(X)
    starts = np.flatnonzero(np.diff(states, prepend=-1))
    ends = np.append(starts[1:], len(states))
    figure = new_figure(figsize=(9, 1.2 + 1.4 * table.shape[1]))
    axes = np.atleast_1d(figure.subplots(table.shape[1], 1, sharex=True))
    for column, axis in enumerate(axes):
        for start, end in zip(starts, ends, strict=True):
            colour = f"C{states[start] % 10}"
            axis.axvspan(start - 0.5, end - 0.5, color=colour, alpha=0.25, lw=0)
        axis.plot(table[:, column], ".-", color="0.2", lw=0.8, ms=3)
        axis.set_ylabel(labels[column])
        axis.margins(x=0)
    axes[-1].set_xlabel("position in the sequence")
    for k in np.unique(states):
        axes[0].fill_between([], [], color=f"C{k % 10}", alpha=0.25, label=f"state {k}")
    figure.legend(loc="outside upper center", ncols=len(np.unique(states)), frameon=False)
    return figure


def plot_transition_matrix(hmm: Any) -> Any:
    """The probabilities of moves, from a row's state to a column's, with their numbers.

    Parameters
    ----------
    hmm : fitted hidden Markov model
        Anything with ``transmat_``.

    Examples
    --------
    >>> from tempering import CategoricalHMM
    >>> from tempering.plots import plot_transition_matrix
    >>> hmm = CategoricalHMM(n_components=2)
    >>> hmm.transmat_ = [[0.9, 0.1], [0.2, 0.8]]
    >>> [text.get_text() for text in plot_transition_matrix(hmm).axes[0].texts]
    ['0.90', '0.10', '0.20', '0.80']
    """
    moves = learned(hmm, "hmm", "transmat_")
    k = len(moves)
    figure = new_figure(figsize=(1.6 + 0.6 * k, 1.2 + 0.6 * k))
    axis = figure.subplots()
    axis.imshow(moves, cmap="Blues", vmin=0, vmax=1)
    _write_numbers(axis, moves, highest=1.0)
    axis.set(xticks=range(k), yticks=range(k), xlabel="to state", ylabel="from state")
    return figure


def plot_loadings(factors: Any, names: Sequence[str] | None = None) -> Any:
    """The components of a factor model, one a row: how much each column follows each factor.

    Factors that a :class:`tempering.BayesianFactorAnalysis` has switched off are left out.

    Parameters
    ----------
    factors : fitted factor model
        Anything with ``components_``.
    names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import BayesianFactorAnalysis
    >>> from tempering.plots import plot_loadings
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(99, 1)) * [1, -1, 2, 0] + 0.3 * rng.normal(size=(99, 4))
    >>> plot_loadings(BayesianFactorAnalysis().fit(X)).axes[0].images[0].get_array().shape
    (1, 4)
    """
    loadings = learned(factors, "factors", "components_")
    loadings = loadings[: max(1, getattr(factors, "n_relevant_", len(loadings)))]
    largest = np.abs(loadings).max()
    labels, size = column_names(names, loadings.shape[1]), (0.45, 1.2 + 0.45 * len(loadings))
    colours = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
    axis = _table(loadings, labels, "loading", size, **colours)
    axis.set(xlabel="column", ylabel="factor")
    return axis.figure


def plot_mixtures(X: np.ndarray, mixtures: Mapping[str, BayesianGaussianMixture]) -> Any:
    """Several mixtures of the same two-dimensional data, side by side; returns the figure.

    Each component is an ellipse of two standard deviations.

    Parameters
    ----------
    X : array of shape (n_samples, 2)
        The data.
    mixtures : mapping
        Titles to fitted mixtures.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import BayesianGaussianMixture
    >>> from tempering.plots import plot_mixtures
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> fits = {f"K = {k}": BayesianGaussianMixture(n_components=k).fit(X) for k in (1, 2)}
    >>> len(plot_mixtures(X, fits).axes)
    2
    """
    if not isinstance(mixtures, Mapping) or not mixtures:
        raise ValueError(f"mixtures must map titles to fitted mixtures; got {mixtures!r:.100}.")
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have two columns to be drawn; got shape {X.shape}.")
    figure = new_figure(figsize=(4.2 * len(mixtures), 4.6))
    for axis, (title, mixture) in zip(
        np.atleast_1d(figure.subplots(1, len(mixtures))), mixtures.items()
    ):
        axis.plot(X[:, 0], X[:, 1], ",", color="0.6", rasterized=True)
        covariances = learned(mixture, f"mixtures[{title!r:.40}]", "covariances_")
        if mixture.covariance_type == "tied":
            covariances = [covariances] * mixture.n_components
        for weight, mean, covariance in zip(mixture.weights_, mixture.means_, covariances):
            if weight * len(X) >= 1:
                covariance = covariance if covariance.ndim == 2 else np.eye(2) * covariance
                _draw_ellipse(axis, mean, covariance, color="crimson", lw=1.5)
        axis.set_aspect("equal")
        axis.set(xticks=[], yticks=[])
        axis.set_title(f"{title}\nELBO {mixture.elbo_:,.0f}", fontsize=11)
    return figure


def learned(model: Any, name: str, attribute: str) -> np.ndarray:
    """What a fitted model has learned."""
    if not hasattr(model, attribute):
        raise ValueError(f"{name} must be a fitted model, with {attribute}; got {shown(model)}.")
    return np.asarray(getattr(model, attribute))


def column_names(names: Any, n: int) -> list[str]:
    """A name for each of n columns, to be drawn; no names, where none are given."""
    if names is None:
        return []
    listed = isinstance(names, Collection | np.ndarray) and not isinstance(names, str | Mapping)
    if not listed or len(names) != n:
        raise ValueError(f"names must hold one for each of the {n} columns; got {shown(names)}.")
    return [as_drawn(name) for name in names]


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
    >>> from tempering import CategoricalHMM
    >>> from tempering.plots import plot_emissions
    >>> hmm = CategoricalHMM(n_components=2)
    >>> hmm.emissionprob_ = [[0.75, 0.25], [0.05, 0.95]]
    >>> [text.get_text() for text in plot_emissions(hmm, names=["no", "yes"]).axes[0].texts]
    ['0.75', '0.25', '0.05', '0.95']
    """
    what = next((name for name in ("emissionprob_", "lambdas_") if hasattr(hmm, name)), "means_")
    points = learned(hmm, "hmm", what)
    columns = points.shape[1]
    labels = column_names(names, columns)
    if what == "emissionprob_":
        return _states(points, "probability", "symbol", labels)
    rows = None if X is None else np.asarray(X)
    if rows is not None and (rows.ndim != 2 or rows.shape[1] != columns):
        raise ValueError(f"X must be a table of {columns} columns; got the shape {rows.shape}.")
    if rows is not None and not (rows.dtype.kind in "biuf" and np.isfinite(rows).all()):
        raise ValueError("X must hold finite numbers, to be drawn.")
    if what == "lambdas_" and columns > 1:
        return _states(points, "expected count", "column", labels)
    if columns > 2:
        raise ValueError(
            f"Emissions of {columns} columns cannot be drawn: fit the model to one or two of them."
        )
    figure = new_figure(figsize=(6, 4))
    axis = figure.subplots()
    axis.set(**dict(zip(("xlabel", "ylabel"), labels)))
    if columns == 2:
        _draw_ellipses(axis, hmm, rows)
    elif what == "means_":
        _draw_densities(axis, hmm, rows)
    else:
        _draw_counts(axis, hmm, rows)
    axis.legend(frameon=False)
    return figure


def _draw_densities(axis: Any, hmm: Any, rows: np.ndarray | None) -> None:
    means, deviations = np.asarray(hmm.means_)[:, 0], np.sqrt(hmm.covars_[:, 0, 0])
    x = np.linspace((means - 4 * deviations).min(), (means + 4 * deviations).max(), 400)
    if rows is not None:
        axis.hist(rows[:, 0], bins="auto", density=True, color="0.85")
    _draw_shares(axis, hmm, x, norm.pdf(x, means[:, None], deviations[:, None]))
    axis.set(ylabel="density")


def _draw_counts(axis: Any, hmm: Any, rows: np.ndarray | None) -> None:
    rates = np.asarray(hmm.lambdas_)[:, 0]
    low, high = rates.min() - 4 * np.sqrt(rates.min()), rates.max() + 4 * np.sqrt(rates.max())
    # Of large counts not each, of which there may be millions.
    x = np.unique(np.linspace(max(low, 0), np.ceil(high) + 1, 2000).astype(int))
    if rows is not None:
        seen, times = np.unique(rows[:, 0], return_counts=True)
        axis.bar(seen, times / len(rows), width=0.9, color="0.85")
    _draw_shares(axis, hmm, x, poisson.pmf(x, rates[:, None]))
    axis.set(ylabel="probability")


def _draw_shares(axis: Any, hmm: Any, x: np.ndarray, densities: np.ndarray) -> None:
    parts = hmm.get_stationary_distribution()[:, None] * densities
    for k, part in enumerate(parts):
        axis.plot(x, part, color=f"C{k % 10}", label=f"state {k}")
    axis.plot(x, parts.sum(axis=0), color="0.2", lw=0.8, ls="--", label="together")


def _draw_ellipses(axis: Any, hmm: Any, rows: np.ndarray | None) -> None:
    if rows is not None:
        colours = [f"C{k % 10}" for k in hmm.predict(rows)]
        axis.scatter(rows[:, 0], rows[:, 1], s=3, c=colours, alpha=0.4, lw=0)
    for k, (mean, covariance) in enumerate(zip(hmm.means_, hmm.covars_, strict=True)):
        _draw_ellipse(axis, mean, covariance, color=f"C{k % 10}", label=f"state {k}")


def _draw_ellipse(axis: Any, mean: np.ndarray, covariance: np.ndarray, **style: Any) -> None:
    """Two standard deviations around the mean."""
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    edge = mean + 2 * circle @ np.linalg.cholesky(covariance).T
    axis.plot(edge[:, 0], edge[:, 1], **style)


def _states(values: np.ndarray, what: str, column: str, names: list[str]) -> Any:
    """What each state emits, with its numbers where there is room for them."""
    axis = _table(values, names, what, (0.6, 1.4 + 0.5 * len(values)), cmap="Blues", vmin=0)
    axis.set(xlabel=column, ylabel="state")
    if values.shape[1] <= 12:
        _write_numbers(axis, values, highest=values.max())
    return axis.figure


def _table(
    values: np.ndarray, names: list[str], what: str, size: tuple[float, float], **colours: Any
) -> Any:
    """A table of colours with a bar that tells ``what`` they mean, of this width a column."""
    k, n = values.shape
    words = 0.08 * max(map(len, names), default=0.0)  # they stand upright
    width, height = size
    figure = new_figure(figsize=(2.5 + width * min(n, 30), height + words))
    axis = figure.subplots()
    image = axis.imshow(values, aspect="auto", **colours)
    if names:
        axis.set_xticks(range(n), names, rotation=90)
    axis.set_yticks(range(k))
    figure.colorbar(image, ax=axis, label=what)
    return axis


def _write_numbers(axis: Any, values: np.ndarray, highest: float) -> None:
    for (row, column), value in np.ndenumerate(values):
        colour = "white" if value > 0.6 * highest else "black"
        axis.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
