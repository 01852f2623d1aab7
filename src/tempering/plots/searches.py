"""Picture of a search."""

from typing import Any

import numpy as np

from tempering.plots.canvas import new_figure
from tempering.search import SearchResult


def plot_trail(result: SearchResult) -> Any:
    """Draw what each round of a search reached, by the passes that all rounds had taken.

    The line is the best ELBO so far. Filled dots are rounds that found a better solution; rounds
    that were abandoned early lie below, or were never run and are left out.

    Parameters
    ----------
    result : SearchResult
        What ``tempering.search`` returned.

    Returns
    -------
    matplotlib.figure.Figure
        The picture.

    Examples
    --------
    >>> from tempering import Mixture, search
    >>> from tempering.families import Dirichlet, Poisson
    >>> from tempering.plots import plot_trail
    >>> model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 0.1])
    >>> result = search(model, [[1], [2], [20], [22]], budget=3)
    >>> plot_trail(result).axes[0].get_ylabel()
    'ELBO below the best (nats)'
    """
    if not isinstance(result, SearchResult):
        raise ValueError(
            f"result must be what tempering.search returns; got {type(result).__name__}."
        )
    trail = result.trail
    passes = np.cumsum([trial.passes for trial in trail])
    elbos = np.array([trial.elbo for trial in trail], float)
    accepted = np.array([trial.accepted for trial in trail])
    best = np.maximum.accumulate(np.where(accepted, elbos, -np.inf))
    # The scale is logarithmic from one nat on, as most rounds end far below the best.
    below = np.nanmax(best) - elbos
    figure = new_figure(figsize=(7, 4))
    axis = figure.subplots()
    axis.step(passes, np.nanmax(best) - best, where="post", color="0.6", linewidth=1.0)
    for number, name in enumerate(dict.fromkeys(trial.operator for trial in trail)):
        own = np.array([trial.operator == name for trial in trail])
        color = f"C{number}"
        axis.plot(
            passes[own], below[own], "o", color=color, fillstyle="none", markersize=5, label=name
        )
        both = own & accepted
        axis.plot(passes[both], below[both], "o", color=color, markersize=7)
    axis.set_yscale("symlog", linthresh=1.0)
    axis.invert_yaxis()
    axis.set_xlabel("passes over the data")
    axis.set_ylabel("ELBO below the best (nats)")
    axis.legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
