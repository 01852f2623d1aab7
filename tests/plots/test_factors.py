"""States are drawn where they are, moves with their numbers, loadings without idle factors."""

import numpy as np
import pytest

from tempering import BayesianFactorAnalysis, GaussianHMM

pytest.importorskip("matplotlib")


def test_states_are_drawn_where_they_are():
    from tempering.plots import plot_state_sequence

    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 1.0], [9.0, 1.0], [0.0, 1.0]], 20, axis=0) + rng.normal(size=(60, 2))
    hmm = GaussianHMM(n_components=2, random_state=0).fit(X)
    figure = plot_state_sequence(hmm, X, names=["level", "noise"])
    assert [axis.get_ylabel() for axis in figure.axes] == ["level", "noise"]
    for axis, column in zip(figure.axes, X.T, strict=True):
        spans = [
            patch.get_extents().transformed(axis.transData.inverted()) for patch in axis.patches
        ]
        np.testing.assert_allclose([span.x0 for span in spans], [-0.5, 19.5, 39.5])
        np.testing.assert_allclose([span.x1 for span in spans], [19.5, 39.5, 59.5])
        colours = [patch.get_facecolor() for patch in axis.patches]
        assert colours[0] == colours[2] != colours[1]
        np.testing.assert_array_equal(axis.lines[0].get_ydata(), column)
    with pytest.raises(ValueError, match="1 to 12 columns"):
        plot_state_sequence(hmm, X[:, 0])


def test_moves_have_their_numbers():
    from tempering.plots import plot_transition_matrix

    hmm = GaussianHMM(n_components=2)
    hmm.transmat_ = np.array([[0.9, 0.1], [0.25, 0.75]])
    axis = plot_transition_matrix(hmm).axes[0]
    numbers = {text.get_position(): text.get_text() for text in axis.texts}
    assert numbers == {(0, 0): "0.90", (1, 0): "0.10", (0, 1): "0.25", (1, 1): "0.75"}


def test_idle_factors_are_left_out():
    from tempering.plots import plot_loadings

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(200, 6))
    factors = BayesianFactorAnalysis().fit(X)
    axis = plot_loadings(factors, names=list("abcdef")).axes[0]
    np.testing.assert_array_equal(axis.images[0].get_array(), factors.components_[:2])
    assert [label.get_text() for label in axis.get_xticklabels()] == list("abcdef")


@pytest.mark.parametrize("names", [["a"], "ab", {"a": 0, "b": 1}, 3])
def test_names_must_fit_the_columns(names):
    from tempering.plots import plot_loadings

    factors = BayesianFactorAnalysis()
    factors.components_ = np.ones((1, 2))
    with pytest.raises(ValueError, match="names must hold one for each of the 2 columns"):
        plot_loadings(factors, names)


def test_what_has_learned_nothing_cannot_be_drawn():
    from tempering import plots

    with pytest.raises(ValueError, match=r"hmm must be a fitted model, with transmat_; got None"):
        plots.plot_transition_matrix(None)
    with pytest.raises(ValueError, match="factors must be a fitted model"):
        plots.plot_loadings(BayesianFactorAnalysis())
    with pytest.raises(ValueError, match="hmm must be a fitted model"):
        plots.plot_state_sequence(GaussianHMM(), [[1.0]])
    with pytest.raises(ValueError, match="history must be that of a fit"):
        plots.plot_temperature_path(None)
