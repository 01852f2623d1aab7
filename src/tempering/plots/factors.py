"""Pictures of what is not in the data: states over a sequence, their moves, and loadings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tempering.plots.canvas import new_figure

#: Columns that can be drawn one below the other.
MOST_COLUMNS = 12


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
    table = np.asarray(X)
    if table.ndim != 2 or not 1 <= table.shape[1] <= MOST_COLUMNS:
        raise ValueError(
            f"X must be a table of 1 to {MOST_COLUMNS} columns to be drawn; got {table.shape}."
        )
    states = hmm.predict(table)
    starts = np.flatnonzero(np.diff(states, prepend=-1))
    ends = np.append(starts[1:], len(states))
    figure = new_figure(figsize=(9, 1.2 + 1.4 * table.shape[1]))
    axes = np.atleast_1d(figure.subplots(table.shape[1], 1, sharex=True))
    for column, axis in enumerate(axes):
        for start, end in zip(starts, ends, strict=True):
            colour = f"C{states[start] % 10}"
            axis.axvspan(start - 0.5, end - 0.5, color=colour, alpha=0.25, lw=0)
        axis.plot(table[:, column], ".-", color="0.2", lw=0.8, ms=3)
        axis.set_ylabel(names[column] if names is not None else f"column {column}")
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
    >>> import numpy as np
    >>> from tempering import CategoricalHMM
    >>> from tempering.plots import plot_transition_matrix
    >>> hmm = CategoricalHMM(n_components=2)
    >>> hmm.transmat_ = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> [text.get_text() for text in plot_transition_matrix(hmm).axes[0].texts]
    ['0.90', '0.10', '0.20', '0.80']
    """
    moves = np.asarray(hmm.transmat_)
    k = len(moves)
    figure = new_figure(figsize=(1.6 + 0.6 * k, 1.2 + 0.6 * k))
    axis = figure.subplots()
    axis.imshow(moves, cmap="Blues", vmin=0, vmax=1)
    for (row, column), probability in np.ndenumerate(moves):
        colour = "white" if probability > 0.6 else "black"
        axis.text(column, row, f"{probability:.2f}", ha="center", va="center", color=colour)
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
    loadings = np.asarray(factors.components_)
    loadings = loadings[: max(1, getattr(factors, "n_relevant_", len(loadings)))]
    k, columns = loadings.shape
    largest = np.abs(loadings).max()
    words = 0.0 if names is None else 0.08 * max(map(len, names))  # they stand upright
    figure = new_figure(figsize=(2.5 + 0.45 * min(columns, 30), 1.2 + 0.45 * k + words))
    axis = figure.subplots()
    image = axis.imshow(loadings, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
    if names is not None:
        axis.set_xticks(range(columns), names, rotation=90)
    axis.set(yticks=range(k), xlabel="column", ylabel="factor")
    figure.colorbar(image, ax=axis, label="loading")
    return figure
