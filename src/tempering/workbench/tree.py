"""The tree of topics: which are near each other, and what joins them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram, fcluster, linkage
from scipy.spatial.distance import pdist

from tempering.evaluation.checks import normalised
from tempering.models.arguments import check_number
from tempering.plots.canvas import new_figure
from tempering.workbench.editing import check_fitted_topics, topic_labels


@dataclass(frozen=True)
class TopicTree:
    """The answer of :func:`hierarchy`: topics joined two by two, the nearest first.

    Attributes
    ----------
    linkage : array [K − 1, 4]
        As scipy's: the two that are joined, their distance, and how many topics are below.
    labels : list of str
        The names of the topics.
    """

    linkage: NDArray[np.float64]
    labels: list[str]

    def cut(self, n_groups: int) -> list[list[int]]:
        """So many groups of topics, by the number of their first: what lies below a level."""
        most = len(self.labels)
        expected = f"a whole number from 1 to {most}, the topics"
        check_number(n_groups, "n_groups", expected, least=1, most=most, whole=True)
        # Joined in this order, so that of equal distances, too, no more than asked for are joined.
        order = self.linkage.copy()
        order[:, 2] = np.arange(1, most)
        groups = fcluster(order, most - n_groups, criterion="distance")
        members = [np.flatnonzero(groups == group).tolist() for group in np.unique(groups)]
        return sorted(members)

    def plot(self, axis: Any = None) -> Any:
        """Draw the tree, the distance from left to right; return the figure."""
        size = (7, 1 + 0.25 * len(self.labels))
        axis = new_figure(figsize=size).add_subplot() if axis is None else axis
        dendrogram(
            self.linkage, labels=self.labels, orientation="right", ax=axis, color_threshold=0
        )
        axis.set_xlabel("Hellinger distance")
        return axis.figure


def hierarchy(model: Any) -> TopicTree:
    """Join the topics of a model by their distance, up to one tree.

    The distance of two topics is Hellinger's, from 0 to 1 (no word in common); of two groups, the
    mean over their topics.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted topics, two at least.

    Examples
    --------
    >>> import numpy as np
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.workbench import hierarchy
    >>> X = np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    >>> tree = hierarchy(LatentDirichletAllocation(2, random_state=0).fit(X))
    >>> tree.cut(1), tree.cut(2)
    ([[0, 1]], [[0], [1]])
    """
    check_fitted_topics(model)
    topics = normalised(model.components_.astype(np.float64))
    if len(topics) < 2:
        raise ValueError("model must have two topics at least: one alone makes no tree.")
    distances = pdist(np.sqrt(topics)) / np.sqrt(2)
    return TopicTree(linkage(distances, method="average"), topic_labels(model))
