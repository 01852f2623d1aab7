"""Hidden states and lines: symbols, lengths, attributes set by hand, targets, pictures of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from oddities import Case, tables
from oddities.estimators import DATA, ESTIMATORS, WITH_PARAMETERS, fitted
from oddities.functions import drawn
from tempering import RegressionMixture

REAL = tables.honest("real")
LENGTHS: tuple[Any, ...] = (
    *([], [20], [10, 10], [5, 5], [25], [-5, 25], [0, 20], [2.5, 17.5], [10.0, 10.0]),
    *("odd", ["a"], [[10, 10]], [np.nan], [np.inf], 20, [10**30], True, object(), {}, [None]),
    np.array([10, 10], np.uint8),
)
NEVER = np.zeros((3, 4))
VALUES: tuple[Any, ...] = (
    *(None, "odd", 3.0, [], [0.5, 0.5], np.full(3, np.nan), -np.ones(3), np.zeros(3), np.ones(3)),
    *(np.full(3, 1 / 3), np.eye(3), np.ones((3, 3)), np.full((3, 3), np.nan), NEVER),
    *(np.full((3, 4), np.inf), np.full((3, 4), 1e300), np.full((3, 4), -1.0), [[1], [2, 3]]),
    np.zeros((3, 4, 4)),
)
ATTRIBUTES = {
    "Gaussian states": ("startprob_", "transmat_", "means_", "covars_"),
    "Poisson states": ("startprob_", "transmat_", "lambdas_"),
    "symbol states": ("startprob_", "transmat_", "emissionprob_"),
}


def cases() -> Iterator[Case]:
    """All of them, part by part."""
    yield from _symbols()
    yield from _chains()
    yield from _targets()
    yield from _pictures()


def _model(name: str) -> tuple[Any, Any]:
    """An honest model, and its data."""
    make, kind = WITH_PARAMETERS[name]
    X = tables.honest(kind)
    return (fitted(name) if name in ESTIMATORS else make().fit(X)), X


def _all_uses(model: Any, X: Any, *lengths: Any) -> list[Any]:
    return [getattr(model, use)(X, *lengths) for use in ("predict", "predict_proba", "score")]


def _symbols() -> Iterator[Case]:
    make, _ = WITH_PARAMETERS["symbol states"]
    honest = tables.honest("counts")
    for odd, change in tables.ALL.items():

        def column(change: Callable[..., Any] = change) -> Any:
            return tables.column_of(change(honest))

        yield Case(f"symbol states, {odd}: fit", lambda c=column: make().fit(c()), DATA)
        yield Case(
            f"symbol states, {odd}: use",
            lambda c=column: _all_uses(_model("symbol states")[0], c()),
            DATA,
        )


def _chains() -> Iterator[Case]:
    for name, attributes in ATTRIBUTES.items():
        for i, lengths in enumerate(LENGTHS):
            shown = f"{name}, lengths={str(lengths)[:20]} {i}: "
            yield Case(
                shown + "fit",
                lambda n=name, v=lengths: WITH_PARAMETERS[n][0]().fit(_model(n)[1], v),
                ("lengths",),
            )
            yield Case(
                shown + "use",
                lambda n=name, v=lengths: _all_uses(*_model(n), v),
                ("lengths",),
            )
        for attribute in attributes:
            for i, value in enumerate(VALUES):
                if attribute == "lambdas_" and value is NEVER:
                    continue  # counts of a rate of 0 do have the log likelihood −∞

                def use(n: str = name, a: str = attribute, v: Any = value) -> Any:
                    model, X = _model(n)
                    model = deepcopy(model)
                    setattr(model, a, v)
                    return _all_uses(model, X), model.sample(3)

                # Means of other columns are told as such.
                told = (*attributes, "column", "data")
                yield Case(f"{name}, {attribute} set to value {i}", use, told)
        for option, values in {
            "currstate": (-1, 3, 1.5, "odd", np.nan, [], True),
            "random_state": (-1, 1.5, "odd", [], np.nan),
        }.items():
            for value in values:
                yield Case(
                    f"{name}, sample({option}={value!r})",
                    lambda n=name, o=option, v=value: _model(n)[0].sample(3, **{o: v}),
                    (option, "seed", "Seed"),
                )


def _targets() -> Iterator[Case]:
    y = np.linspace(-1.0, 1.0, len(REAL))

    def line() -> RegressionMixture:
        return RegressionMixture(3, max_iter=5, random_state=0, n_jobs=1)

    def used(model: Any, targets: Any) -> list[Any]:
        return [
            model.score(REAL, targets),
            model.predict_proba(REAL, targets),
            model.predict_log_density(REAL, targets),
        ]

    def streamed(targets: Any) -> list[Any]:
        return used(line().partial_fit(REAL, y).partial_fit(REAL, targets), y)

    told = (*DATA, "y")
    for odd, change in tables.ALL.items():

        def targets(change: Callable[..., Any] = change) -> Any:
            found = tables.column_of(change(REAL))
            return found.ravel() if isinstance(found, np.ndarray) and found.ndim == 2 else found

        yield Case(f"lines, y {odd}: fit", lambda t=targets: line().fit(REAL, t()), told)
        yield Case(f"lines, y {odd}: use", lambda t=targets: used(line().fit(REAL, y), t()), told)
        yield Case(f"lines, y {odd}: partial_fit", lambda t=targets: streamed(t()), told)
        yield Case(
            f"lines, X and y {odd}: partial_fit",
            lambda c=change: (
                used(line().partial_fit(REAL, REAL[:, 0]).partial_fit(c(REAL), c(REAL)[:, 0]), y)
                if isinstance(c(REAL), np.ndarray) and c(REAL).shape == REAL.shape
                else None
            ),
            told,
        )


def _pictures() -> Iterator[Case]:
    from tempering import plots

    factors, hmm = "factors", "Gaussian states"
    for odd, change in tables.ALL.items():
        yield Case(
            f"plot_state_sequence, {odd}",
            lambda c=change: drawn(plots.plot_state_sequence(fitted(hmm), c(REAL))),
            DATA,
        )
    for i, names in enumerate(
        (
            *(
                None,
                [],
                ["a"],
                list("abcd"),
                list("abcde"),
                "abcd",
                [None] * 4,
                [1, 2, 3, 4],
                3,
                {},
            ),
            *(["$"] * 4, ["\ud800"] * 4, {"a", "b", "c", "d"}, np.array(list("abcd"))),
        )
    ):
        yield Case(
            f"plot_state_sequence, names {i}",
            lambda n=names: drawn(plots.plot_state_sequence(fitted(hmm), REAL, n)),
            ("names",),
        )
        yield Case(
            f"plot_loadings, names {i}",
            lambda n=names: drawn(plots.plot_loadings(fitted(factors), n)),
            ("names",),
        )
    for i, thing in enumerate((None, 3, "odd", {}, [], ESTIMATORS[hmm][0](), fitted)):
        told = ("hmm", "factors", "history", "fit")
        for name in ("plot_transition_matrix", "plot_loadings", "plot_temperature_path"):
            yield Case(
                f"{name} of thing {i}", lambda p=name, t=thing: drawn(getattr(plots, p)(t)), told
            )
        yield Case(
            f"plot_state_sequence of thing {i}",
            lambda t=thing: drawn(plots.plot_state_sequence(t, REAL)),
            told,
        )
    yield Case(
        "plot_temperature_path of an untempered fit",
        lambda: drawn(plots.plot_temperature_path(fitted("topics, plain").history_)),
        ("history",),
    )
