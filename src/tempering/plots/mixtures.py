"""Pictures of two-dimensional Gaussian mixtures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tempering.estimators import BayesianGaussianMixture
from tempering.plots.canvas import new_figure


def _draw(axis: Any, X: np.ndarray, mixture: BayesianGaussianMixture) -> None:
    """The data, and each component as its ellipse of two standard deviations."""
    from matplotlib.patches import Ellipse

    axis.plot(X[:, 0], X[:, 1], ",", color="0.6", rasterized=True)
    covariances = mixture.covariances_
    if mixture.covariance_type == "tied":
        covariances = [covariances] * mixture.n_components
    for weight, mean, covariance in zip(mixture.weights_, mixture.means_, covariances):
        if weight * len(X) < 1:
            continue
        if covariance.ndim < 2:
            covariance = np.eye(2) * covariance
        variances, directions = np.linalg.eigh(covariance)
        width, height = 4 * np.sqrt(variances)
        angle = np.degrees(np.arctan2(directions[1, 0], directions[0, 0]))
        ellipse = Ellipse(mean, width, height, angle=angle, fill=False, color="crimson", lw=1.5)
        axis.add_patch(ellipse)
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])


def plot_mixtures(X: np.ndarray, mixtures: Mapping[str, BayesianGaussianMixture]) -> Any:
    """Several mixtures of the same two-dimensional data, side by side; returns the figure.

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
        _draw(axis, X, mixture)
        axis.set_title(f"{title}\nELBO {mixture.elbo_:,.0f}", fontsize=11)
    return figure
