"""The workbench for topics, measures that compare models, and `check_model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tempering
from oddities import Case, tables
from oddities.estimators import DATA, fitted
from oddities.functions import COUNTS, THETA, TOPICS, VOCABULARIES, drawn, honest_model, words
from tempering import LatentDirichletAllocation, evaluation, workbench
from tempering.testing import check_model

MODEL = "topics, plain"
#: What it was fitted to.
X = tables.honest("counts", 40)
TEXTS = [["a", "b", "a", "c"], ["c", "d", "b", "a"], ["d", "d", "a", "b"]]
#: Without the table of 5 million tokens, which are gone through in each sweep.
SHORT = {odd: change for odd, change in tables.ALL.items() if odd != "float16 at its end"}
NUMBERS: tuple[Any, ...] = (0, -1, 1, 2, 4, 2.5, "2", None, np.nan, np.inf, True, 10**12, [], [2])
THINGS: tuple[Any, ...] = (None, 3, "odd", {}, [], LatentDirichletAllocation(), fitted)


def cases() -> Iterator[Case]:
    """All of them, part by part."""
    yield from _measures()
    yield from _windows()
    yield from _labels()
    yield from _number_of_topics()
    yield from _joined_topics()
    yield from _shares()
    yield from _edits()
    yield from _checks()


def _measures() -> Iterator[Case]:
    takes_topics: dict[str, Callable[[Any], Any]] = {
        "umass": lambda t: evaluation.umass(t, COUNTS, 2),
        "c_v": lambda t: evaluation.c_v(t, TEXTS, list("abcd"), n_words=2),
        "diversity": lambda t: evaluation.topic_diversity(t, 2),
        "inverted_rbo": lambda t: evaluation.inverted_rbo(t, 2),
        "measures": lambda t: evaluation.topic_measures(t, COUNTS, n_words=2).of_model,
    }
    takes_counts: dict[str, Callable[[Any], Any]] = {
        "umass": lambda X: evaluation.umass(TOPICS, X, 2),
        "measures": lambda X: evaluation.topic_measures(TOPICS, X, n_words=2).of_topics,
    }
    for odd, change in tables.ALL.items():
        for name, call in takes_topics.items():
            yield Case(
                f"topics of {name}, {odd}",
                lambda c=call, g=change: c(g(TOPICS)),
                ("topics", "n_words"),
            )
        for name, call in takes_counts.items():
            yield Case(f"counts of {name}, {odd}", lambda c=call, g=change: c(g(COUNTS)), DATA)
        yield Case(
            f"theta of purity, {odd}",
            lambda g=change: evaluation.purity(g(THETA), [0] * 20),
            ("theta", "labels"),
        )
    for n in NUMBERS:
        for name, call in {
            "umass": lambda n: evaluation.umass(TOPICS, COUNTS, n),
            "topic_diversity": lambda n: evaluation.topic_diversity(TOPICS, n),
            "inverted_rbo": lambda n: evaluation.inverted_rbo(TOPICS, n),
            "c_npmi": lambda n: evaluation.c_npmi(TOPICS, TEXTS, list("abcd"), n_words=n),
            "topic_measures": lambda n: evaluation.topic_measures(TOPICS, X, n_words=n).of_model,
        }.items():
            yield Case(f"{name}, n_words={n!r}", lambda c=call, n=n: c(n), ("n_words",))
    for weight in (0, 1, -1, 1e-300, 0.5, 1 - 1e-16, np.nan, "odd", None, []):
        yield Case(
            f"inverted_rbo(weight={weight!r})",
            lambda w=weight: evaluation.inverted_rbo(TOPICS, 2, w),
            ("weight",),
        )


def _windows() -> Iterator[Case]:
    def counted(texts: Any, vocabulary: Any = None, **options: Any) -> Any:
        options = {"n_words": 2, **options}
        values = evaluation.c_v(TOPICS, texts, vocabulary, **options)
        return values, evaluation.c_npmi(TOPICS, texts, vocabulary, **options)

    odd: tuple[Any, ...] = (
        *(None, 3, "text", [], [[]], [[], []], [["z"]], TEXTS, ["a b", "c d"], [None], [3], {}),
        *([[None, "a"]], [[1, 2], [3]], [["a", 1.5]], [[["a"]]], [b"ab"], [["\ud800"]], len),
        *(np.array(TEXTS), [np.array(["a", "b"])], COUNTS, [{"a", "b"}], [{"a": 1}], object()),
    )
    for i, texts in enumerate(odd):
        for name, vocabulary in (("words", list("abcd")), ("columns", None)):
            yield Case(
                f"windows of texts {i}, {name}",
                lambda t=texts, v=vocabulary: counted(t, v),
                ("texts",),
            )
    for name in VOCABULARIES:
        yield Case(
            f"windows, words: {name}",
            lambda n=name: evaluation.c_v(TOPICS, TEXTS, words(n), n_words=2),
            ("vocabulary",),
        )
    for window in NUMBERS:
        yield Case(
            f"windows of {window!r}",
            lambda w=window: counted(TEXTS, list("abcd"), window=w),
            ("window",),
        )


def _labels() -> Iterator[Case]:
    odd: tuple[Any, ...] = (
        *(None, 3, "odd", [], [1], [1] * 20, ["a"] * 20, [None] * 20, [np.nan] * 20, [1.5] * 20),
        *(["a", 1] * 10, [[1]] * 20, {}, np.zeros(20, bool), np.full(20, "2020", "M8[Y]")),
        *(list(range(20)), [object()] * 20, [np.inf] * 20, np.ma.masked_all(20)),
    )
    for i, labels in enumerate(odd):
        for name in ("purity", "label_nmi"):
            yield Case(
                f"{name}, labels {i}",
                lambda n=name, v=labels: getattr(evaluation, n)(THETA, v),
                ("labels",),
            )
        yield Case(
            f"topics_by_group, groups {i}",
            lambda v=labels: _drawn_shares(workbench.topics_by_group, COUNTS, v),
            ("groups",),
        )
        yield Case(
            f"topics_over_time, times {i}",
            lambda v=labels: _drawn_shares(workbench.topics_over_time, COUNTS, v),
            ("times",),
        )


def _drawn_shares(function: Any, counts: Any, of_each: Any, *bins: Any, **options: Any) -> Any:
    given = {"n_draws": 2, "new_documents": True, **options}
    found = function(fitted(MODEL), counts, of_each, *bins, **given)
    return found.draws, found.interval(), str(found)


def _number_of_topics() -> Iterator[Case]:
    quick = LatentDirichletAllocation(max_iter=2, n_jobs=1)

    def chosen(data: Any = X, candidates: Any = (2, 3), **options: Any) -> Any:
        return workbench.choose_n_topics(data, candidates, **{"estimator": quick, **options}).trials

    for odd, change in SHORT.items():
        yield Case(
            f"choose_n_topics, {odd}", lambda g=change: chosen(g(COUNTS)), (*DATA, "n_components")
        )
    for i, candidates in enumerate(
        (
            *(
                (),
                [],
                (3, 2),
                (2, 2),
                [2],
                [0, 2],
                [-1, 3],
                [1.5, 2],
                "ab",
                3,
                None,
                [None],
                [[2, 3]],
            ),
            *([np.nan, 2], [2, 2, 2], {2, 3}, iter([2, 3, 4]), np.array([2, 3]), [True, 3], (1, 4)),
        )
    ):
        yield Case(
            f"choose_n_topics, candidates {i}", lambda c=candidates: chosen(X, c), ("candidates",)
        )
    for option, values in {
        "estimator": (3, "odd", LatentDirichletAllocation, tempering.PoissonMixture(), {}),
        "prior_weight": (0, -1, 1e-300, 1e300, np.nan, "odd", None, []),
        "random_state": (-1, 1.5, "odd", None, np.nan, 2**70, np.random.RandomState(0)),
    }.items():
        for i, value in enumerate(values):
            yield Case(
                f"choose_n_topics, {option} {i}",
                lambda o=option, v=value: chosen(**{o: v}),
                (option, "seed"),
            )


def _joined_topics() -> Iterator[Case]:
    quick = LatentDirichletAllocation(max_iter=2, n_jobs=1)

    def joined(data: Any = X, most: Any = 3, **options: Any) -> Any:
        return workbench.find_topics(data, most, **{"estimator": quick, **options}).components_

    for odd, change in SHORT.items():
        yield Case(f"find_topics, {odd}", lambda g=change: joined(g(COUNTS)), DATA)
    for most in NUMBERS:
        yield Case(f"find_topics, most={most!r}", lambda m=most: joined(X, m), ("most",))
    for value in (3, "odd", LatentDirichletAllocation, tempering.PoissonMixture(), {}):
        yield Case(
            f"find_topics, estimator {value!r:.20}",
            lambda v=value: joined(estimator=v),
            ("estimator",),
        )


def _shares() -> Iterator[Case]:
    groups, times = ["a", "b"] * 10, np.arange(20)
    for odd, change in SHORT.items():
        yield Case(
            f"topics_by_group, {odd}",
            lambda g=change: _drawn_shares(workbench.topics_by_group, g(COUNTS), groups),
            (*DATA, "groups"),
        )
    for i, bins in enumerate(
        (
            *(*NUMBERS, [0, 19], [19, 0], [0, 0, 19], [0, 5], [np.nan, 19], ["a", "b"], [[0, 19]]),
            *(np.array(["2020", "2021"], "M8[Y]"), {}, [None, 19], [0, np.inf]),
        )
    ):
        yield Case(
            f"topics_over_time, bins {i}",
            lambda b=bins: _drawn_shares(workbench.topics_over_time, COUNTS, times, b),
            ("bins",),
        )
    for i, own in enumerate(
        (
            *(times * 1e300, times + 2**62, times.astype(np.uint8), times.astype("M8[s]")),
            *(np.full(20, np.datetime64("NaT")), times.astype("m8[s]"), np.full(20, 7), times * 1j),
        )
    ):
        yield Case(
            f"topics_over_time, odd times {i}",
            lambda t=own: _drawn_shares(workbench.topics_over_time, COUNTS, t, 3),
            ("times", "bins"),
        )
    for option in ("n_draws", "seed"):
        for value in NUMBERS:
            if value != 10**12:  # so many draws were asked for
                yield Case(
                    f"topics_by_group, {option}={value!r}",
                    lambda o=option, v=value: _drawn_shares(
                        workbench.topics_by_group, COUNTS, groups, **{o: v}
                    ),
                    (option,),
                )
    shares = workbench.TopicShares(["a", "b"], np.array([4, 6]), np.full((5, 2, 3), 1 / 3))
    for level in NUMBERS:
        yield Case(f"interval({level!r})", lambda v=level: shares.interval(v), ("level",))
    for name in ("c", None, 3, [], np.nan, np.ones(2)):
        yield Case(
            f"ratio of group {name!r}", lambda n=name: shares.ratio("a", n), ("group", "choose")
        )
    for topics in ([], [0], [5], [-1], ["a"], "odd", 1, [0.5], None):
        yield Case(
            f"plot of shares of topics {topics!r}",
            lambda t=topics: drawn(shares.plot(t)),
            ("topics",),
        )
    for i, thing in enumerate(THINGS):
        yield Case(
            f"topics_by_group of thing {i}",
            lambda t=thing: workbench.topics_by_group(t, COUNTS, groups),
            ("fit", "model"),
        )


def _edits() -> Iterator[Case]:
    told = ("topics", "topic", "labels", "n_groups")

    def used(model: Any) -> Any:
        return model, model.transform(X), workbench.topic_labels(model)

    for i, topics in enumerate(
        (
            *([], [0], [0, 0], [0, 9], [-1, 0], [0.0, 1], ["a", "b"], "01", 3, None, [True, 2]),
            *([[0, 1]], {0, 1}, {0: 1, 1: 2}, (0, 2), np.array([0, 2]), [None, 1], [np.nan, 1]),
        )
    ):
        yield Case(
            f"merge_topics {i}",
            lambda t=topics: used(workbench.merge_topics(fitted(MODEL), t)),
            told,
        )
    for topic in NUMBERS:
        yield Case(
            f"drop_topic({topic!r})",
            lambda t=topic: used(workbench.drop_topic(fitted(MODEL), t)),
            told,
        )
        yield Case(
            f"split_topic({topic!r})",
            lambda t=topic: used(workbench.split_topic(fitted(MODEL), t, X)),
            told,
        )
        yield Case(
            f"cut({topic!r})", lambda n=topic: workbench.hierarchy(fitted(MODEL)).cut(n), told
        )
    for odd, change in tables.ALL.items():
        yield Case(
            f"split_topic, {odd}",
            lambda g=change: used(workbench.split_topic(fitted(MODEL), 0, g(COUNTS))),
            (*DATA, "topic"),
        )
    for seed in (-1, 1.5, "odd", np.nan, 2**70, []):
        yield Case(
            f"split_topic, random_state={seed!r}",
            lambda s=seed: used(workbench.split_topic(fitted(MODEL), 0, X, random_state=s)),
            ("random_state",),
        )
    for i, labels in enumerate(
        (
            *(
                [],
                ["a"],
                list("abc"),
                "abc",
                {},
                {0: "a"},
                {9: "a"},
                {"a": "b"},
                {None: "a"},
                None,
                3,
            ),
            *([None] * 3, [1, 2, 3], ["\ud800"] * 3, {0: None}, [["a"]] * 3, {"a", "b", "c"}),
            *(np.array(list("abc")), iter("abc")),
        )
    ):
        yield Case(
            f"rename_topics {i}",
            lambda v=labels: used(workbench.rename_topics(fitted(MODEL), v)),
            told,
        )
    for i, thing in enumerate(THINGS):
        for name, call in {
            "merge_topics": lambda t: workbench.merge_topics(t, [0, 1]),
            "drop_topic": lambda t: workbench.drop_topic(t, 0),
            "split_topic": lambda t: workbench.split_topic(t, 0, X),
            "rename_topics": lambda t: workbench.rename_topics(t, ["a"]),
            "topic_labels": workbench.topic_labels,
            "hierarchy": workbench.hierarchy,
        }.items():
            yield Case(f"{name} of thing {i}", lambda c=call, t=thing: c(t), ("fit", "model"))


def _checks() -> Iterator[Case]:
    data = tables.honest("real")
    for odd, change in tables.ALL.items():
        yield Case(
            f"check_model, {odd}", lambda g=change: check_model(honest_model(), g(data)), DATA
        )
    for i, thing in enumerate((*THINGS, tempering.Mixture)):
        yield Case(f"check_model of thing {i}", lambda t=thing: check_model(t, data), ("model",))
    for option, values in {
        "seed": (-1, 1.5, "odd", None, np.nan, 2**70),
        "tolerance": (-1, np.nan, np.inf, "odd", None, []),
    }.items():
        for value in values:
            yield Case(
                f"check_model({option}={value!r})",
                lambda o=option, v=value: check_model(honest_model(), data, **{o: v}),
                (option,),
            )
