"""Each component that holds data is drawn as an ellipse where it is."""

import numpy as np
import pytest

from tempering import BayesianGaussianMixture

pytest.importorskip("matplotlib")


def test_components_are_drawn_where_they_are():
    from matplotlib.patches import Ellipse

    from tempering.plots import plot_mixtures

    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-3, 1, (100, 2)), rng.normal(3, 0.5, (100, 2))])
    mixture = BayesianGaussianMixture(n_components=2, random_state=0).fit(X)
    figure = plot_mixtures(X, {"two": mixture, "again": mixture})
    assert [axis.get_title().split("\n")[0] for axis in figure.axes] == ["two", "again"]
    for axis in figure.axes:
        drawn = [patch for patch in axis.patches if isinstance(patch, Ellipse)]
        centers = sorted(tuple(patch.center) for patch in drawn)
        np.testing.assert_allclose(centers, sorted(map(tuple, mixture.means_)))
        widest = max(max(patch.width, patch.height) for patch in drawn)
        assert widest == pytest.approx(4 * np.sqrt(np.linalg.eigvalsh(mixture.covariances_)).max())
