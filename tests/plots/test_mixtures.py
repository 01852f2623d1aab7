"""Each component that holds data is drawn as an ellipse where it is."""

import numpy as np
import pytest

from tempering import BayesianGaussianMixture

pytest.importorskip("matplotlib")


def test_components_are_drawn_where_they_are():
    from tempering.plots import plot_mixtures

    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-3, 1, (100, 2)), rng.normal(3, 0.5, (100, 2))])
    mixture = BayesianGaussianMixture(n_components=2, random_state=0).fit(X)
    figure = plot_mixtures(X, {"two": mixture, "again": mixture})
    assert [axis.get_title().split("\n")[0] for axis in figure.axes] == ["two", "again"]
    for axis in figure.axes:
        _, *drawn = (line.get_xydata() for line in axis.lines)
        for mean, covariance, edge in zip(mixture.means_, mixture.covariances_, drawn, strict=True):
            from_center = edge - mean
            distances = np.einsum(
                "ni,ij,nj->n", from_center, np.linalg.inv(covariance), from_center
            )
            np.testing.assert_allclose(distances, 4.0)
            np.testing.assert_allclose(from_center[:-1].mean(axis=0), 0.0, atol=1e-9)


def test_a_mixture_that_is_not_fitted_is_named():
    from tempering.plots import plot_mixtures

    with pytest.raises(ValueError, match=r"mixtures\['two'\] must be a fitted model"):
        plot_mixtures(np.eye(2), {"two": BayesianGaussianMixture()})
