"""What is asked of several models: compared, extended, fitted again or through time, drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oddities import Case, tables
from oddities.estimators import DATA, fitted
from oddities.functions import drawn
from oddities.workbench import MODEL, NUMBERS, SHORT, THINGS, X
from tempering import GaussianHMM, LatentDirichletAllocation, PoissonMixture, workbench

QUICK = LatentDirichletAllocation(max_iter=2, n_jobs=1)
TIMES = np.arange(len(X))
REAL = tables.honest("real")


def _compared(a: Any, b: Any, data: Any = X, **options: Any) -> Any:
    found = workbench.compare_models(a, b, data, **options)
    return found.difference, found.error, str(found)


def _through_time(data: Any = X, times: Any = TIMES, n: Any = 2, bins: Any = 2, **more: Any) -> Any:
    given = {"estimator": QUICK, **more}
    return workbench.topics_through_time(data, times, n, bins, **given).models


#: Each with an honest model, and what it takes beside one.
CALLS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "compare_models": (
        lambda data=X, **o: _compared(fitted(MODEL), fitted("topics"), data, **o),
        ("least_shared", "n_words", "prior_weight", "random_state"),
    ),
    "extend_topics": (
        lambda data=X, n_new=1, **o: workbench.extend_topics(fitted(MODEL), data, n_new, **o),
        ("n_new", "strength", "random_state"),
    ),
    "topics_across_seeds": (
        lambda data=X, n_seeds=1, **o: workbench.topics_across_seeds(
            fitted(MODEL), data, n_seeds, **o
        ),
        ("n_seeds", "random_state"),
    ),
    "topics_through_time": (_through_time, ("n", "strength", "random_state", "bins")),
}


def cases() -> Iterator[Case]:
    """All of them, part by part."""
    for name, (call, options) in CALLS.items():
        for odd, change in SHORT.items():
            yield Case(f"{name}, {odd}", lambda c=call, g=change: c(g(X)), (*DATA, "n_components"))
        for option in options:
            for value in NUMBERS:
                if value == 10**12 and option in ("n_seeds", "n_new"):
                    continue  # so many were asked for
                told = (option, "n_components", "seed")
                yield Case(
                    f"{name}, {option}={value!r}",
                    lambda c=call, o=option, v=value: c(**{o: v}),
                    told,
                )
    for i, thing in enumerate((*THINGS, PoissonMixture())):
        for name, call in {
            "compare_models": lambda t: _compared(t, fitted(MODEL)),
            "compare_models, second": lambda t: _compared(fitted(MODEL), t),
            "extend_topics": lambda t: workbench.extend_topics(t, X, 1),
            "topics_across_seeds": lambda t: workbench.topics_across_seeds(t, X, 1),
        }.items():
            yield Case(f"{name} of thing {i}", lambda c=call, t=thing: c(t), ("fit", "model"))
        if thing is not None:
            yield Case(
                f"topics_through_time, estimator {i}",
                lambda t=thing: _through_time(estimator=t),
                ("estimator",),
            )
    for i, times in enumerate(
        (None, 3, "odd", [], [1], [None] * 40, [np.nan] * 40, ["a"] * 40, TIMES[:20], TIMES * 1e300)
    ):
        yield Case(
            f"topics_through_time, times {i}", lambda t=times: _through_time(times=t), ("times",)
        )
    yield from _emissions()


def _emissions() -> Iterator[Case]:
    from tempering import plots

    def picture(table: Any = None, names: Any = None) -> None:
        hmm = GaussianHMM(2, n_iter=5, random_state=0).fit(REAL[:, :2])
        drawn(plots.plot_emissions(hmm, table, names))

    def pair(table: Any) -> Any:
        return table[:, :2] if isinstance(table, np.ndarray) and table.ndim == 2 else table

    for odd, change in tables.ALL.items():
        yield Case(
            f"plot_emissions, {odd}",
            lambda g=change: picture(pair(g(REAL))),
            DATA,
        )
    for i, names in enumerate(([], ["a"], ["a", "b"], "ab", [None] * 2, 3, {}, ["\ud800"] * 2)):
        yield Case(
            f"plot_emissions, names {i}",
            lambda n=names: picture(names=n),
            ("names",),
        )
    for i, thing in enumerate(THINGS):
        yield Case(
            f"plot_emissions of thing {i}",
            lambda t=thing: drawn(plots.plot_emissions(t)),
            ("hmm", "fit"),
        )
