"""Shares of topics in groups and over time: their intervals hold the truth."""

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.evaluation import match_topics
from tempering.workbench import TopicShares, topics_by_group, topics_over_time
from tempering.workbench.shares import called

K, GROUPS = 4, 3


def drawn(seed, n_documents=500, length=40):
    """Documents of groups that hold topics in different parts; their topics, groups and θ."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(150, 0.05), K)
    base = rng.dirichlet(np.full(K, 3.0), GROUPS)
    groups = rng.integers(0, GROUPS, n_documents)
    theta = np.array([rng.dirichlet(0.8 * base[group]) for group in groups])
    counts = [rng.multinomial(1 + rng.poisson(length), row @ topics) for row in theta]
    return sparse.csr_array(np.array(counts)), topics, groups, theta


@pytest.mark.slow
def test_intervals_hold_the_truth():
    """95% of 180 shares and of 60 ratios, but for the luck of the draw."""
    held, ratios_held = [], []
    for seed in range(15):
        X, topics, groups, theta = drawn(seed)
        model = LatentDirichletAllocation(K, max_iter=5, random_state=0).fit(X)
        matching = match_topics(topics, model.components_)
        if matching.similarities.min() < 0.95:
            continue  # a topic was not found, so that there is no share of it
        truth = np.array([theta[groups == group].mean(axis=0) for group in range(GROUPS)])
        shares = topics_by_group(model, X, groups, n_draws=40)
        ends = shares.interval()[:, matching.indices]
        held += ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).ravel().tolist()
        ends, ratios = shares.ratio(0, 1)[matching.indices], truth[0] / truth[1]
        ratios_held += ((ends[:, 0] <= ratios) & (ratios <= ends[:, 1])).tolist()
    assert len(held) >= 120
    print(f"shares {np.mean(held):.3f} of {len(held)}, ratios {np.mean(ratios_held):.3f}")
    assert 0.90 <= np.mean(held) < 1
    assert np.mean(ratios_held) >= 0.86


def test_intervals_of_single_documents_hold_the_truth():
    """With its own θ in the prior of a document, 84% of them did."""
    X, topics, _, theta = drawn(0, n_documents=400, length=15)
    model = LatentDirichletAllocation(K, random_state=0).fit(X)
    places = match_topics(topics, model.components_).indices
    ends = topics_by_group(model, X, range(400), n_draws=60).interval()[:, places]
    # A topic that is not in a document at all has a share that no interval reaches down to.
    held = (ends[..., 0] <= np.maximum(theta, 1e-3)) & (theta <= ends[..., 1])
    assert held.mean() >= 0.92


@pytest.fixture(scope="module")
def two_topics():
    X = np.repeat([[4, 3, 0, 0], [0, 0, 5, 4]], 50, axis=0)
    model = LatentDirichletAllocation(2, random_state=0).fit(X)
    return model, X, int(model.transform(X[:1])[0].argmax())


def test_shares_as_a_frame():
    draws = np.random.default_rng(0).dirichlet([1, 2, 3], (50, 2))
    years = [(np.datetime64("1990"), np.datetime64("1991")), (np.datetime64("1991"), None)]
    shares = TopicShares(years, np.array([4, 6]), draws)
    frame = shares.to_frame(level=0.8)
    assert list(frame["topic"]) == [0, 1, 2, 0, 1, 2]
    assert frame["n_documents"].tolist() == [4, 4, 4, 6, 6, 6]
    assert frame["group"].dt.year.tolist() == [1990] * 3 + [1991] * 3
    np.testing.assert_array_equal(frame[["low", "high"]], shares.interval(0.8).reshape(6, 2))
    np.testing.assert_array_equal(frame["share"], shares.mean().ravel())
    with pytest.raises(ValueError, match="library must be 'pandas' or 'polars'; got 'numpy'"):
        shares.to_frame("numpy")


def test_ratios_and_differences_are_those_of_the_draws(two_topics):
    model, X, sea = two_topics
    groups = np.where(np.arange(100) < 75, "most", "rest")
    shares = topics_by_group(model, X, groups, n_draws=30)
    assert shares.names == ["most", "rest"]
    assert shares.n_documents.tolist() == [75, 25]
    np.testing.assert_allclose(shares.draws.sum(axis=2), 1)
    low, high = shares.ratio("rest", "most")[1 - sea]
    assert 2 < low < high < 4  # 25 of 25 documents, beside 25 of 75
    low, high = shares.difference("rest", "most")[1 - sea]
    assert 0.5 < low < high < 0.8


def test_new_documents_take_the_topics_of_the_fit(two_topics):
    model, X, sea = two_topics
    shares = topics_by_group(model, X[:5], np.ones(5), new_documents=True, n_draws=20)
    assert shares.mean()[0, sea] > 0.9


def test_time_goes_on(two_topics):
    model, X, sea = two_topics
    days = np.datetime64("2020-01-01") + np.arange(100)
    shares = topics_over_time(model, X, days, bins=4, n_draws=10)
    assert (shares.mean()[:, sea] > 0.5).tolist() == [True, True, False, False]
    assert shares.names[0][0] == days[0]
    assert shares.names[-1][1] == days[-1]
    assert shares.n_documents.sum() == 100
    by_edges = topics_over_time(model, X, np.arange(100.0), bins=[0, 50, 60, 99], n_draws=2)
    assert by_edges.n_documents.tolist() == [50, 10, 40]
    gap = topics_over_time(model, X, np.repeat([0, 9], 50), bins=3, n_draws=2)
    assert gap.names == [(0, 3), (6, 9)]


def test_groups_may_be_dates(two_topics):
    model, X, _ = two_topics
    days = np.repeat(np.array(["2020-01-01", "2021-01-01"], "datetime64[ns]"), 50)
    shares = topics_by_group(model, X, days, n_draws=3)
    assert [str(name)[:10] for name in shares.names] == ["2020-01-01", "2021-01-01"]
    assert shares.ratio(days[0], days[-1]).shape == (2, 2)


def test_the_same_seed_gives_the_same_draws(two_topics):
    model, X, _ = two_topics
    first, second, other = (
        topics_by_group(model, X, np.arange(100) % 2, n_draws=3, seed=seed).draws
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_the_interval_of_few_draws_is_not_too_narrow():
    draws = np.random.default_rng(0).normal(size=(59, 4000, 1))
    ends = TopicShares(["all"], np.array([1]), draws).interval(0.9)
    new = np.random.default_rng(1).normal(size=(4000, 1))
    assert np.mean((ends[..., 0] <= new) & (new <= ends[..., 1])) == pytest.approx(0.9, abs=0.015)


def test_the_picture(two_topics):
    pytest.importorskip("matplotlib")
    model, X, _ = two_topics
    shares = topics_over_time(model, X, np.arange(100), bins=4, n_draws=5)
    axis = shares.plot([1]).axes[0]
    assert axis.get_legend_handles_labels()[1] == ["topic 1"]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0", "25", "50", "75"]
    # Of bins of one length no digits that say nothing, and all that tell them apart.
    assert called((1.404761904, 2.809523809)) == "1.4"
    assert called((1.7e9 + 5939.7, 1.7e9 + 11879.4)) == "1700005940"
    assert called((3.0, 3.0)) == "3"
    assert [called((-np.inf, 2.5)), called((2.5, np.inf))] == ["-inf", "2.5"]
    shares = topics_over_time(model, X, np.linspace(1990, 2000, 100), bins=3, n_draws=5)
    labels = [text.get_text() for text in shares.plot().axes[0].get_xticklabels()]
    assert labels == str(shares).split()[1:4] == ["1990", "1993.33", "1996.67"]


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("groups must hold one value", lambda m, X: topics_by_group(m, X, ["a"])),
        ("n_draws must be", lambda m, X: topics_by_group(m, X, np.ones(100), n_draws=1)),
        ("times must be numbers or dates", lambda m, X: topics_over_time(m, X, ["x"] * 100)),
        (
            "times must be known, but document 0",
            lambda m, X: topics_over_time(m, X, [np.nan] * 100),
        ),
        ("times must be numbers or dates", lambda m, X: topics_over_time(m, X, [True] * 100)),
        ("groups must be all text, or", lambda m, X: topics_by_group(m, X, [None] * 100)),
        (
            r"groups must be known, but document 99 has nan \(1 ",
            lambda m, X: topics_by_group(m, X, ["a"] * 99 + [np.nan]),
        ),
        ("model must be a LatentDirichlet", lambda m, X: topics_by_group(None, X, np.ones(100))),
        ("bins must be a whole number", lambda m, X: topics_over_time(m, X, np.ones(100), 10**12)),
        ("dates if times are", lambda m, X: topics_over_time(m, X, np.ones(100), ["a", "b"])),
        ("rising edges", lambda m, X: topics_over_time(m, X, np.ones(100), [0, np.nan])),
        ("bins must hold all", lambda m, X: topics_over_time(m, X, np.arange(100), [0, 5])),
        ("bins must be a number, or", lambda m, X: topics_over_time(m, X, np.ones(100), [2, 1])),
        ("say new_documents=True", lambda m, X: topics_by_group(m, X[:9], np.ones(9))),
        ("X must hold whole counts", lambda m, X: topics_by_group(m, X / 2, np.ones(100))),
        ("X holds 8e", lambda m, X: topics_by_group(m, X * 10**7, np.ones(100))),
        ("X has 3 columns", lambda m, X: topics_by_group(m, X[:, :3], np.ones(100))),
        ("no group 'x'", lambda m, X: topics_by_group(m, X, np.ones(100)).ratio("x", 1)),
        ("topics must be", lambda m, X: topics_by_group(m, X, np.ones(100)).plot("odd")),
        ("level must be", lambda m, X: topics_by_group(m, X, np.ones(100)).interval(1.0)),
    ],
)
def test_what_cannot_be_told_is_refused(two_topics, message, call):
    with pytest.raises(ValueError, match=message):
        call(*two_topics[:2])


def test_the_ratio_to_a_topic_that_is_absent_is_a_number():
    draws = np.full((50, 2, 2), [[0.9, 1e-310], [1e-310, 1e-310]])
    ratios = TopicShares(["sea", "land"], np.array([4, 6]), draws).ratio("sea", "land")
    assert np.isfinite(ratios).all()
    assert ratios[0, 0] > 1e100
    assert ratios[1].tolist() == [1.0, 1.0]


def test_shares_are_printed_as_a_table_and_compared():
    draws = np.array([[[0.25, 0.75], [0.5, 0.5]]] * 2)
    shares = TopicShares(["sea", "land"], np.array([4, 6]), draws)
    assert str(shares).splitlines() == [
        "topic             sea            land",
        "    0  0.250 to 0.250  0.500 to 0.500",
        "    1  0.750 to 0.750  0.500 to 0.500",
    ]
    assert shares.ratio("land", "sea")[0].tolist() == [2.0, 2.0]
