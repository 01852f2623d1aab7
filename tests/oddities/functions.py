"""Measures, schedules, `fit`, reports and pictures: odd topics, counts, words, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tempering
from oddities import Case, tables
from oddities.estimators import DATA, fitted
from oddities.policies import POLICY_WORDS, policies
from tempering import evaluation, schedules
from tempering.evaluation import completion
from tempering.families import Dirichlet, IsotropicGaussian
from tempering.models import Mixture

TOPICS = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]])
COUNTS = tables.honest("counts")
#: A count of 65,504 is as many tokens, in each sweep.
QUICK = {"burn_in": 1, "n_sweeps": 2, "n_threads": 1}
THETA = np.full((20, 2), 0.5)


def score_from_theta(held_out: Any, topics: Any, theta: Any) -> float:
    """The score with given topic proportions."""
    return evaluation.completion_score(COUNTS, held_out, topics, inference=lambda observed: theta)


def cases() -> Iterator[Case]:
    """All of them, part by part."""
    yield from _measures()
    yield from _schedules()
    yield from _fit()
    yield from _partition()
    yield from _report()
    yield from _plots()


def _measures() -> Iterator[Case]:
    takes_topics: dict[str, Callable[[Any], Any]] = {
        "npmi": lambda t: evaluation.npmi(t, COUNTS, 2),
        "top_words": lambda t: evaluation.top_words(t, 2),
        "match_topics": lambda t: tuple(evaluation.match_topics(t, TOPICS)),
        "match_topics, second": lambda t: tuple(evaluation.match_topics(TOPICS, t)),
        "topic_stability": lambda t: evaluation.topic_stability(t, TOPICS),
        "completion_score": lambda t: evaluation.completion_score(COUNTS, COUNTS, t, n_threads=1),
        "from theta": lambda t: score_from_theta(COUNTS, t, THETA),
        "gibbs": lambda t: evaluation.gibbs_proportions(COUNTS, t, n_threads=1),
        "mean field": lambda t: completion.mean_field_proportions(COUNTS, t, n_threads=1),
    }
    takes_counts: dict[str, Callable[[Any], Any]] = {
        "npmi": lambda X: evaluation.npmi(TOPICS, X, 2),
        "split": lambda X: tuple(evaluation.split_documents(X)),
        "observed": lambda X: evaluation.completion_score(X, COUNTS, TOPICS, **QUICK),
        "held out": lambda X: evaluation.completion_score(COUNTS, X, TOPICS, n_threads=1),
        "from theta": lambda X: score_from_theta(X, TOPICS, THETA),
        "gibbs": lambda X: evaluation.gibbs_proportions(X, TOPICS, **QUICK),
        "mean field": lambda X: completion.mean_field_proportions(X, TOPICS, n_threads=1),
    }
    names = ("topics", "must be", "a and b", " a ", " b ", "a must", "b must")
    for odd, change in tables.ALL.items():
        for name, call in takes_topics.items():
            yield Case(f"topics of {name}, {odd}", lambda c=call, g=change: c(g(TOPICS)), names)
        for name, call in takes_counts.items():
            told = (*DATA, "observed", "held_out", "theta")
            yield Case(f"counts of {name}, {odd}", lambda c=call, g=change: c(g(COUNTS)), told)
        yield Case(
            f"theta, {odd}",
            lambda g=change: score_from_theta(COUNTS, TOPICS, g(THETA)),
            ("theta",),
        )
    options: dict[str, tuple[Any, ...]] = {
        "alpha": (0, -1, np.nan, np.inf, 1e-300, 1e300, "odd", None, [], [0.1] * 3, [[0.1, 0.1]]),
        "seed": (-1, 1.5, 2**70, "odd", None, np.nan),
        "burn_in": (-1, 0, 1.5, "odd", None),
        "n_sweeps": (-1, 0, 1.5, "odd", None),
        "n_threads": (-1, 0, 1.5, "odd", 10**9),
        "inference": ("odd", None, 1),
    }
    for name, values in options.items():
        for value in values:
            yield Case(
                f"completion_score({name}={value!r})",
                lambda n=name, v=value: evaluation.completion_score(
                    COUNTS, COUNTS, TOPICS, **{"n_threads": 1, n: v}
                ),
                (name,),
            )
    for n in (0, 1, -1, 5, 2.5, "2", None, np.nan, True, 10**12):
        yield Case(
            f"npmi(n_words={n!r})", lambda n=n: evaluation.npmi(TOPICS, COUNTS, n), ("n_words",)
        )
        yield Case(f"top_words({n!r})", lambda n=n: evaluation.top_words(TOPICS, n), ("n_words",))
    for seed in (-1, 1.5, "odd", None, 2**70, np.random.default_rng(0), np.random.RandomState(0)):
        yield Case(
            f"split_documents(seed={type(seed).__name__} {str(seed)[:20]})",
            lambda s=seed: tuple(evaluation.split_documents(COUNTS, s)),
            ("seed",),
        )


def _schedules() -> Iterator[Case]:
    odd = (0, -1, 0.5, np.nan, np.inf, 1e300, "odd", None, [2.0], 1j)
    told = ("start", "end", "temperature", "points", "boundaries", "schedules", "progress")

    def walk(schedule: Callable[[float], float]) -> list[float]:
        return [schedule(u) for u in (0.0, 0.3, 1.0)]

    for name in ("constant", "linear", "linear_inverse", "geometric"):
        make = getattr(schedules, name)
        for value in odd:
            yield Case(f"{name}({value!r})", lambda m=make, v=value: walk(m(v)), told)
            if name != "constant":
                yield Case(f"{name}(5, {value!r})", lambda m=make, v=value: walk(m(5.0, v)), told)
    one = schedules.constant(2.0)
    for arguments in (
        ([], []),
        ([one], []),
        ([one], [0.5]),
        ([one, one], [0.0]),
        ([one, one], [1.5]),
        ([one, one], [np.nan]),
        ([one, one], ["odd"]),
        ([one, one], 0.5),
        ([1.0, 2.0], [0.5]),
        ([one, lambda: 2.0], [0.5]),
        (one, []),
        (None, None),
        ("ab", [0.5]),
    ):
        shown = f"join({type(arguments[0]).__name__} {str(arguments[0])[:12]}, {arguments[1]})"
        yield Case(
            shown + f" {len(repr(arguments[0]))}",
            lambda a=arguments: walk(schedules.join(*a)),
            told,
        )


def honest_model() -> Mixture:
    """A mixture of two, for four columns."""
    return Mixture(IsotropicGaussian(4, 1.0), Dirichlet(2), [1.0, 1.0], [0.0] * 4 + [0.1])


def _tried(model: Any, data: Any, **options: Any) -> Any:
    result = tempering.fit(model, data, **{"max_passes": 4, "n_threads": 1, **options})
    return result.elbo, dict(result.posterior.items())


def _fit() -> Iterator[Case]:
    X = tables.honest("real")
    for odd, change in tables.ALL.items():
        yield Case(
            f"fit, data: {odd}", lambda g=change: _tried(honest_model(), g(X)), (*DATA, "datum")
        )
    for model in (None, 3, "odd", Mixture, object(), fitted, [], {}):
        yield Case(f"fit, model={str(model)[:30]}", lambda m=model: _tried(m, X), ("model",))
    yield Case(
        "fit, an estimator for a model",
        lambda: _tried(tempering.BayesianGaussianMixture(2), X),
        ("model", "estimator"),
    )
    options: dict[str, tuple[Any, ...]] = {
        "temperature": ("auto", 3.0, schedules.linear(3.0), tempering.Annealing, []),
        "learning_rate": (
            0.5,
            "odd",
            lambda: 0.5,
            lambda t: -1.0,
            lambda t: np.nan,
            lambda t: "a",
            lambda t: 2,
        ),
        "batch_size": (0, -1, 2.5, "odd", 10**12, np.nan, True, []),
        "max_passes": (0, -1, np.nan, "odd", None, 0.5, []),
        "tolerance": (-1, np.nan, np.inf, "odd", None, []),
        "initial": (0, "odd", [], np.ones(3), {}, tempering.Natural(weights=np.ones(3))),
        "n_init": (0, -1, 1.5, "odd", None, np.nan),
        "seed": (-1, 1.5, "odd", None, np.nan, 2**70, []),
        "n_threads": (0, -1, 1.5, "odd", np.nan),
        "executor": ("odd", 3, object()),
        "elbo_every": (0, -1, 1.5, "odd", None, np.nan),
        "callbacks": (None, 3, ["odd"], [None], lambda report: None, [lambda: None]),
        "checkpoint": (3, "", "\0", b"odd", [], object()),
        "progress": ("odd", None, []),
    }
    for name, values in options.items():
        for i, value in enumerate(values):
            yield Case(
                f"fit({name}={str(value)[:12]}) {i}",
                lambda n=name, v=value: _tried(honest_model(), X, **{n: v}),
                (name, "path"),
            )
    for name, build in policies().items():
        yield Case(
            f"fit, {name}", lambda b=build: _tried(honest_model(), X, temperature=b()), POLICY_WORDS
        )
    for name, value in (
        ("IsotropicGaussian", (0, 1.0)),
        ("IsotropicGaussian", (4, -1.0)),
        ("IsotropicGaussian", (4, np.nan)),
        ("IsotropicGaussian", ("odd", 1.0)),
        ("Dirichlet", (0,)),
        ("Dirichlet", (-1,)),
        ("Dirichlet", (1.5,)),
        ("Dirichlet", ("odd",)),
    ):
        yield Case(
            f"families.{name}{value!r}",
            lambda n=name, v=value: getattr(tempering.families, n)(*v),
            ("n_", "dimension", "variance", "size", "must"),
        )
    for weights, components in (
        ([1.0], [0.0] * 4 + [0.1]),
        ([1.0, -1.0], [0.0] * 4 + [0.1]),
        ([1.0, np.nan], [0.0] * 4 + [0.1]),
        ([1.0, 1.0], [0.0]),
        ([1.0, 1.0], [np.nan] * 5),
        ([1.0, 1.0], [0.0] * 4 + [-0.1]),
        ("odd", [0.0] * 4 + [0.1]),
        ([1.0, 1.0], None),
    ):
        yield Case(
            f"Mixture({weights}, {components})",
            lambda w=weights, c=components: _tried(
                Mixture(IsotropicGaussian(4, 1.0), Dirichlet(2), w, c), X
            ),
            ("prior",),
        )


def _partition() -> Iterator[Case]:
    told = ("inverse_temperatures", "n_data", "method", "n_samples", "rng", "model")

    def table(*arguments: Any, **options: Any) -> Any:
        found = tempering.log_partition(*arguments, **options)
        return vars(found) if hasattr(found, "__dict__") else found

    for grid in ([], [0.0], [np.nan], [-1.0], [np.inf], "odd", None, 0.5, [[0.5]], [2.0, 1.0]):
        yield Case(f"log_partition({grid})", lambda g=grid: table(honest_model(), g, 20), told)
    for n in (0, -1, 1.5, np.nan, "odd", None, 10**15):
        yield Case(
            f"log_partition(n_data={n!r})", lambda n=n: table(honest_model(), [0.5, 1.0], n), told
        )
    for options in ({"method": "odd"}, {"n_samples": 0}, {"n_samples": -1}, {"rng": "odd"}):
        yield Case(
            f"log_partition({options})",
            lambda o=options: table(honest_model(), [0.5, 1.0], 20, **o),
            told,
        )
    yield Case("log_partition, no model", lambda: table(None, [0.5, 1.0], 20), told)


#: Words for four columns, or not.
VOCABULARIES: dict[str, Any] = {
    "none": None,
    "empty": [],
    "too short": ["a"],
    "too long": list("abcde"),
    "equal": ["a"] * 4,
    "blank": ["", " ", "\t", "\n"],
    "hostile": ["</script>", "<img onerror=x>", "\x1b[31m", "$\\frac{1}{2}$"],
    "half a formula": ["$", "$x", "\\", "a_b^c"],
    "astral": ["😀", "e\u0301", "\u202e", "\u0000"],
    "surrogates": ["\ud800", "\udfff", "a", "b"],
    "long": ["a" * 100_000] * 4,
    "numbers": [1, 2, 3, 4],
    "None inside": [None, "a", "b", "c"],
    "NaN inside": [np.nan, "a", "b", "c"],
    "bytes": [b"a", b"b", b"c", b"d"],
    "an array": np.array(["a", "b", "c", "d"]),
    "objects": np.array(["a", 1, None, 2.5], object),
    "a text": "abcd",
    "a dict": {"a": 0, "b": 1, "c": 2, "d": 3},
    "a set": {"a", "b", "c", "d"},
    "a number": 4,
    "2-d": [["a", "b"], ["c", "d"]],
    "a generator": "generator",
}


def words(name: str) -> Any:
    return (word for word in "abcd") if name == "a generator" else VOCABULARIES[name]


def _report() -> Iterator[Case]:
    from tempering import report
    from tempering.report.page import render

    model, told = "topics, local", ("vocabulary", "word", "X", "model", "names", "texts", "row")

    def page(*arguments: Any, **options: Any) -> Any:
        return len(render(report.collect(*arguments, **options)))

    for name in VOCABULARIES:
        yield Case(
            f"report, words: {name}",
            lambda n=name: page(fitted(model), COUNTS, vocabulary=words(n)),
            told,
        )
    for odd, change in tables.ALL.items():
        yield Case(
            f"report, X: {odd}", lambda g=change: page(fitted(model), g(COUNTS)), (*told, *DATA)
        )
    for option, values in {
        "names": ([], ["a"], [None] * 20, [3] * 20, "a" * 20, 3, ["\ud800"] * 20),
        "texts": ([], ["a"], [None] * 20, [3] * 20, "a" * 20, 3, ["<b>"] * 20),
        "validation": ([], [(1.0, np.nan)], [(1, 2, 3)], "odd", [3], 3),
        "title": ("", None, 3, "<script>", "\ud800"),
        "max_documents": (0, -1, 1.5, "odd", None, 10**12),
    }.items():
        for value in values:
            yield Case(
                f"report({option}={str(value)[:40]})",
                lambda o=option, v=value: page(fitted(model), COUNTS, **{o: v}),
                (option,),
            )
    for path in ("", "\0", "no/such/folder/r.html", 3, None, "."):
        yield Case(
            f"write_report({path!r})",
            lambda p=path: report.write_report(fitted(model), p, COUNTS, overwrite=True),
            ("path", "folder", "directory", "file", "r.html"),
        )
    for thing in (None, 3, "odd", {}, tempering.LatentDirichletAllocation()):
        yield Case(
            f"report of {str(thing)[:30]}", lambda t=thing: page(t), ("model", "fit", "estimator")
        )


def drawn(figure: Any) -> None:
    """Draw a picture, and forget it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure.canvas.draw()
    pyplot.close("all")


def _plots() -> Iterator[Case]:
    from tempering import plots

    model = "topics, local"
    for name in VOCABULARIES:
        if name != "long":  # a picture a mile wide, as asked for
            yield Case(
                f"plot_topics, words: {name}",
                lambda n=name: drawn(plots.plot_topics(fitted(model), words(n))),
                ("vocabulary", "word"),
            )
    for option, values in {
        "n_words": (0, -1, 2.5, "odd", None, 10**9, np.nan),
        "topics": ([], [99], [-1], [-99], ["a"], [0.5], "odd", 1, [0, 0]),
        "columns": (0, -1, 2.5, "odd", None, 10**9),
    }.items():
        for value in values:
            yield Case(
                f"plot_topics({option}={value!r})",
                lambda o=option, v=value: drawn(plots.plot_topics(fitted(model), **{o: v})),
                (option,),
            )
    for thing in (None, 3, "odd", {}, [], tempering.LatentDirichletAllocation()):
        shown = str(thing)[:30]
        told = ("model", "history", "fit", "estimator")
        yield Case(f"plot_topics({shown})", lambda t=thing: drawn(plots.plot_topics(t)), told)
        yield Case(
            f"plot_temperature({shown})", lambda t=thing: drawn(plots.plot_temperature(t)), told
        )
        yield Case(
            f"plot_mixtures(X, {shown})",
            lambda t=thing: drawn(plots.plot_mixtures(tables.honest("real", 20, 2), t)),
            ("mixtures",),
        )
    yield Case(
        "plot_mixtures of four columns",
        lambda: drawn(plots.plot_mixtures(tables.honest("real"), {"m": fitted("full mixture")})),
        ("X", "column"),
    )
