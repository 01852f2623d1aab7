"""Pictures of topic models, by what they draw."""

import warnings

import numpy as np
import pytest

from tempering import BayesianFactorAnalysis, LatentDirichletAllocation
from tempering.inference import History

pytest.importorskip("matplotlib")

from tempering.plots import (
    plot_loadings,
    plot_temperature,
    plot_topics,
)
from tempering.workbench import TopicShares, hierarchy, rename_topics


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.repeat(np.kron(np.eye(3, dtype=int), np.arange(1, 5)), 20, axis=0) + rng.poisson(
        0.1, size=(60, 12)
    )


@pytest.fixture(scope="module")
def model(X):
    return LatentDirichletAllocation(
        n_components=3,
        tempering="annealing",
        update="variational",
        max_iter=20,
        batch_size=20,
        random_state=0,
    ).fit(X)


def test_the_temperature_is_drawn_step_by_step(model):
    (axis,) = plot_temperature(model.history_).axes
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), model.history_["passes"])
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), model.history_["temperature"])
    (final,) = axis.patches
    began = model.history_[model.history_.final_phase_start].passes
    assert final.get_x() == pytest.approx(began)


def test_a_grid_of_topics_shows_their_words(model):
    vocabulary = [f"w{v}" for v in range(12)]
    figure = plot_topics(model, vocabulary, n_words=4, columns=2)
    assert len(figure.axes) == 4
    assert not figure.axes[3].axison
    names = model.topics(4, vocabulary)
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    for k, axis in enumerate(figure.axes[:3]):
        assert axis.get_title(loc="left") == f"topic {k}"
        assert [label.get_text() for label in axis.get_yticklabels()] == names[k]
        widths = [bar.get_width() for bar in axis.patches]
        np.testing.assert_allclose(widths, np.sort(topics[k])[::-1][:4], rtol=1e-6)


def test_words_without_end_do_not_widen_the_picture_without_end(model):
    vocabulary = [f"{v:02d}{'agct' * 500}" for v in range(12)]
    figure = plot_topics(model, vocabulary, n_words=4)
    assert figure.get_size_inches()[0] < 15
    words = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert [word[:2] for word in words] == [word[:2] for word in model.topics(4, vocabulary)[0]]


def shown(figure):
    """The text that stands in a picture, where none of it is a formula."""
    from matplotlib.backends.backend_agg import RendererAgg

    seen = []

    class Renderer(RendererAgg):
        def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
            assert not ismath
            seen.append(s)

    figure.draw(Renderer(800, 600, 100))
    return seen


def test_words_with_dollars_are_no_formulas(model):
    words = ["$5", "$x^2$", r"$\foo$", r"\$", *map(str, range(8))]
    drawn = shown(plot_topics(model, words, n_words=12, topics=[0]))
    assert set(words) <= set(drawn)
    named = rename_topics(model, ["$5 to $9", r"$\foo$", "tax"])
    assert {"$5 to $9", r"$\foo$", "tax"} <= set(shown(hierarchy(named).plot()))
    groups = [r"A$AP $\x$", "B"]
    shares = TopicShares(groups, np.array([1, 1]), np.full((3, 2, 3), 1 / 3))
    assert set(groups) <= set(shown(shares.plot()))
    factors = BayesianFactorAnalysis()
    factors.components_ = np.eye(2)
    columns = ["from $5 to $9", r"$\foo$"]
    assert set(columns) <= set(shown(plot_loadings(factors, columns)))


def test_long_phrases_leave_room_for_the_bars(model):
    figure = plot_topics(model, [f"{'some words ' * 4}{v}" for v in range(12)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that axes collapsed
        figure.draw_without_rendering()
    widths = [axis.get_position().width * figure.get_figwidth() for axis in figure.axes]
    assert min(widths) > 0.5


def test_some_topics(model):
    figure = plot_topics(model, topics=[2], n_words=100)
    (axis,) = figure.axes
    assert axis.get_title(loc="left") == "topic 2"
    assert len(axis.patches) == 12


def test_bad_arguments_are_named(model):
    with pytest.raises(ValueError, match="history is empty"):
        plot_temperature(History())
    with pytest.raises(ValueError, match="numbers from 0 to 2"):
        plot_topics(model, topics=[3])
