"""Features of images as a grid."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from tempering.plots.canvas import new_figure


def match_features(features: ArrayLike, reference: ArrayLike) -> NDArray[np.intp]:
    """For each feature of the reference the one nearest to it, one to one (Hungarian method)."""
    features, reference = np.asarray(features, float), np.asarray(reference, float)
    lengths = np.square(features).sum(axis=1)
    # |r − f|² without |r|², which all partners of r share.
    _, partners = linear_sum_assignment(lengths - 2 * reference @ features.T)
    return partners


def draw_features(
    path: Path,
    features: ArrayLike | Mapping[str, ArrayLike],
    shape: tuple[int, int],
    reference: ArrayLike | None = None,
    columns: int = 10,
) -> None:
    """Draw features [K, D] as images, the fits below each other, in the order of the reference."""
    fits = dict(features) if isinstance(features, Mapping) else {"features": features}
    groups = {name: np.asarray(each, float) for name, each in fits.items()}
    if reference is not None:
        truth = np.asarray(reference, float)
        groups = {name: _in_order(each, truth) for name, each in groups.items()}
        groups = {"reference": truth, **groups}
    rows = [-(-len(each) // columns) for each in groups.values()]
    width, height = 0.9 * columns, 0.9 * shape[0] / shape[1]
    figure = new_figure(figsize=(width, height * sum(rows) + 0.4 * len(rows)))
    parts = np.atleast_1d(figure.subfigures(len(rows), 1, height_ratios=rows))
    for part, count, (name, each) in zip(parts, rows, groups.items()):
        part.suptitle(name, fontsize=9)
        # One scale for all images of a fit, with 0 in its middle: their sizes can be compared.
        largest = float(np.max(np.abs(each), initial=1e-12))
        axes = np.ravel(part.subplots(count, columns, squeeze=False))
        for axis in axes:
            axis.set_axis_off()
        for axis, image in zip(axes, each):
            axis.imshow(image.reshape(shape), cmap="RdBu_r", vmin=-largest, vmax=largest)
    figure.savefig(path, dpi=120)


def _in_order(features: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Partners of the reference first, in its order, then the others."""
    partners = match_features(features, reference)
    others = np.setdiff1d(np.arange(len(features)), partners)
    return features[np.concatenate([partners, others])]
