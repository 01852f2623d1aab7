"""Emissions are drawn as the densities and probabilities that they are."""

import numpy as np
import pytest
from scipy.stats import norm, poisson

from tempering import CategoricalHMM, GaussianHMM, PoissonHMM

pytest.importorskip("matplotlib")

MOVES = np.array([[0.9, 0.1], [0.3, 0.7]])  # the chain is in state 0 for 3/4 of the time


def told(hmm, **attributes):
    hmm.startprob_, hmm.transmat_ = np.array([0.5, 0.5]), MOVES
    for name, value in attributes.items():
        setattr(hmm, name, np.asarray(value))
    return hmm


def lines(axis):
    return {line.get_label(): line.get_xydata() for line in axis.lines}


def test_densities_of_one_column_have_the_share_of_their_state():
    from tempering.plots import plot_emissions

    hmm = told(GaussianHMM(2), means_=[[0.0], [5.0]], covars_=[[1.0], [4.0]])
    X, _ = hmm.sample(300, random_state=0)
    axis = plot_emissions(hmm, X, names=["level"]).axes[0]
    drawn = lines(axis)
    x, first = drawn["state 0"].T
    np.testing.assert_allclose(first, 0.75 * norm.pdf(x))
    second = drawn["state 1"][:, 1]
    np.testing.assert_allclose(second, 0.25 * norm.pdf(x, 5, 2))
    np.testing.assert_allclose(drawn["together"][:, 1], first + second)
    assert sum(bar.get_height() * bar.get_width() for bar in axis.patches) == pytest.approx(1.0)
    assert axis.get_xlabel() == "level"
    hmm.means_ = [[0.0], [5.0]]  # by hand, as a list
    np.testing.assert_array_equal(lines(plot_emissions(hmm).axes[0])["state 0"], drawn["state 0"])


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_ellipses_of_two_columns_lie_two_deviations_away(kind):
    from tempering.plots import plot_emissions

    covars = {
        "full": [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 3.0]]],
        "tied": [[2.0, 0.5], [0.5, 1.0]],
        "diag": [[2.0, 1.0], [1.0, 3.0]],
        "spherical": [2.0, 1.0],
    }
    hmm = told(GaussianHMM(2, kind), means_=[[0.0, 1.0], [5.0, 6.0]], covars_=covars[kind])
    X, states = hmm.sample(200, random_state=0)
    axis = plot_emissions(hmm, X).axes[0]
    drawn = lines(axis)
    for k in range(2):
        away = drawn[f"state {k}"] - hmm.means_[k]
        distance = np.einsum("ni,ij,nj->n", away, np.linalg.inv(hmm.covars_[k]), away)
        np.testing.assert_allclose(distance, 4.0)
    np.testing.assert_array_equal(axis.collections[0].get_offsets(), X)
    colours = axis.collections[0].get_facecolors()
    decoded = hmm.predict(X)
    assert len({tuple(colour) for colour in colours[decoded == 0]}) == 1
    assert np.mean(decoded == states) > 0.9


def test_counts_of_one_column_are_bars_and_of_more_a_table():
    from tempering.plots import plot_emissions

    hmm = told(PoissonHMM(2), lambdas_=[[2.0], [9.0]])
    X, _ = hmm.sample(200, random_state=0)
    axis = plot_emissions(hmm, X).axes[0]
    x, first = lines(axis)["state 0"].T
    np.testing.assert_allclose(first, 0.75 * poisson.pmf(x, 2.0))
    bars = {bar.get_x() + bar.get_width() / 2: bar.get_height() for bar in axis.patches}
    assert bars[X[0, 0]] == pytest.approx(np.mean(X[0, 0] == X))
    assert x.tolist() == list(range(23))
    large = plot_emissions(told(PoissonHMM(2), lambdas_=[[1e9], [1.001e9]])).axes[0]
    x, first = lines(large)["state 0"].T
    assert len(x) <= 2000
    np.testing.assert_allclose(x[first.argmax()], 1e9, rtol=1e-5)
    hmm = told(PoissonHMM(2), lambdas_=[[2.0, 1.0, 4.0], [9.0, 8.0, 0.5]])
    axis = plot_emissions(hmm, names=["a", "b", "c"]).axes[0]
    np.testing.assert_array_equal(axis.images[0].get_array(), hmm.lambdas_)
    assert [label.get_text() for label in axis.get_xticklabels()] == ["a", "b", "c"]


def test_symbols_are_a_table_of_probabilities():
    from tempering.plots import plot_emissions

    hmm = told(CategoricalHMM(2), emissionprob_=[[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    axis = plot_emissions(hmm).axes[0]
    numbers = {text.get_position(): text.get_text() for text in axis.texts}
    assert numbers[(2, 0)] == "0.70"
    assert numbers[(1, 1)] == "0.25"


def test_what_cannot_be_drawn_is_refused():
    from tempering.plots import plot_emissions

    three = told(GaussianHMM(2), means_=np.zeros((2, 3)), covars_=np.ones((2, 3)))
    with pytest.raises(ValueError, match="Emissions of 3 columns cannot be drawn"):
        plot_emissions(three)
    one = told(GaussianHMM(2), means_=[[0.0], [1.0]], covars_=[[1.0], [1.0]])
    with pytest.raises(ValueError, match=r"X must be a table of 1 columns; got the shape \(4, 2\)"):
        plot_emissions(one, np.zeros((4, 2)))


def test_what_cannot_be_drawn_is_named():
    from tempering.plots import plot_emissions

    hmm = GaussianHMM(2)
    hmm.means_ = np.zeros((2, 1))
    with pytest.raises(ValueError, match="hmm must be a fitted model, with means_; got None"):
        plot_emissions(None)
    with pytest.raises(ValueError, match="names must hold one for each of the 1 columns"):
        plot_emissions(hmm, names=["a", "b"])
    with pytest.raises(ValueError, match="X must hold finite numbers"):
        plot_emissions(hmm, [[np.nan]])
