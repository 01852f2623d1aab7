"""The estimators: odd tables for each method, and odd values of each parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from oddities import Case, tables
from oddities.policies import POLICY_WORDS, policies
from tempering import (
    BayesianFactorAnalysis,
    BayesianGaussianMixture,
    BernoulliMixture,
    CategoricalHMM,
    FactorialMixture,
    GaussianHMM,
    LatentDirichletAllocation,
    PoissonFactorization,
    PoissonHMM,
    PoissonMixture,
    RegressionMixture,
)

SMALL = {"max_iter": 5, "random_state": 0, "n_jobs": 1}


def _gaussian(covariance_type: str) -> Callable[..., Any]:
    return lambda **options: BayesianGaussianMixture(
        **{"n_components": 3, "covariance_type": covariance_type, **SMALL, **options}
    )


def _of(kind: Any, **own: Any) -> Callable[..., Any]:
    return lambda **options: kind(**{"n_components": 3, **SMALL, **own, **options})


def _states(kind: Any) -> Callable[..., Any]:
    small = {"n_components": 3, "n_iter": 5, "random_state": 0}
    return lambda **options: kind(**{**small, **options})


class _Lines(RegressionMixture):
    """Regressions of an honest y on an odd X."""

    def fit(self, X: Any, **options: Any) -> Any:
        return super().fit(X, _targets(X), **options)

    def partial_fit(self, X: Any) -> Any:
        return super().partial_fit(X, _targets(X))

    def score(self, X: Any) -> float:
        return super().score(X, _targets(X))


def _targets(X: Any) -> np.ndarray:
    shape = np.shape(X) if isinstance(X, list | tuple) else getattr(X, "shape", ())
    rows = shape[0] if isinstance(shape, tuple) and shape else 20
    return np.linspace(-1.0, 1.0, rows)


#: How each is made, and the kind of table that it is for.
ESTIMATORS: dict[str, tuple[Callable[..., Any], str]] = {
    "topics": (_of(LatentDirichletAllocation), "counts"),
    "topics, plain": (_of(LatentDirichletAllocation, tempering=None), "counts"),
    "topics, local": (
        _of(LatentDirichletAllocation, tempering="local", learning_method="batch"),
        "counts",
    ),
    **{f"{c} mixture": (_gaussian(c), "real") for c in ("full", "tied", "diag", "spherical")},
    "Bernoulli mixture": (_of(BernoulliMixture), "binary"),
    "Poisson mixture": (_of(PoissonMixture), "counts"),
    "features": (_of(FactorialMixture), "real"),
    "count factors": (_of(PoissonFactorization), "counts"),
    "factors": (_of(BayesianFactorAnalysis), "real"),
    "lines": (_of(_Lines), "real"),
    "Gaussian states": (_states(GaussianHMM), "real"),
    "Poisson states": (_states(PoissonHMM), "counts"),
}
#: Those whose parameters are tried.
WITH_PARAMETERS = {
    **{name: ESTIMATORS[name] for name in ("topics", "full mixture", "Bernoulli mixture")},
    **{name: ESTIMATORS[name] for name in ("Poisson mixture", "features", "count factors")},
    **{name: ESTIMATORS[name] for name in ("factors", "lines", "Gaussian states")},
    "Poisson states": ESTIMATORS["Poisson states"],
    "symbol states": (_states(CategoricalHMM), "symbols"),
}

USES = ("transform", "predict", "predict_proba", "score", "score_samples", "perplexity")

#: What a message about data may call them.
DATA = ("X", "row", "array", "data", "feature", "sample", "matrix", "counts", "documents", "texts")

NUMBERS = (0, 1, -1, 2.5, 0.5, 1e-300, 1e300, 10**30, np.nan, np.inf, -np.inf, True, np.int8(2))
OTHERS: tuple[Any, ...] = ("", "odd", "auto", b"odd", None, [], [1, 2], {}, 1j, object(), len)
ARRAYS: tuple[Any, ...] = (
    np.array(2),
    np.ones(3),
    np.ones(4),
    np.full(3, np.nan),
    -np.ones(3),
    np.zeros(3),
    np.ones((4, 4)),
    np.eye(4),
    np.zeros((4, 4)),
    -np.eye(4),
    ["a", "b", "c"],
    [[1], [2, 3]],
)
#: Parameters that may take arrays.
ARRAY_PARAMETERS = {
    "doc_topic_prior",
    "mean_prior",
    "covariance_prior",
    "component_prior",
    "activation_probability",
    "init",
    "startprob_prior",
    "transmat_prior",
    "means_prior",
    "scale_prior",
    "emissionprob_prior",
    "lambdas_prior",
    "lambdas_weight",
}
#: Honest numbers of these run as long as they say.
LENGTHS = {"max_iter", "n_iter", "n_init", "local_restarts", "max_doc_update_iter"}

RANDOM_STATES: tuple[Any, ...] = (
    np.random.RandomState(0),
    np.random.default_rng(0),
    np.random,
    np.random.SeedSequence(0),
    np.int64(3),
    2**32 - 1,
    2**32,
    "0",
)


@cache
def fitted(name: str) -> Any:
    """An honest model, fitted once."""
    make, kind = ESTIMATORS[name]
    return make().fit(tables.honest(kind, 40))


def warm(name: str) -> None:
    """Fit, stream and use an honest model."""
    make, kind = ESTIMATORS[name]
    _use(fitted(name), tables.honest(kind))
    if hasattr(make(), "partial_fit"):
        _stream(make, kind, tables.honest(kind))


def _use(model: Any, X: Any) -> list[Any]:
    return [getattr(model, use)(X) for use in USES if hasattr(model, use)]


def _fit(make: Callable[..., Any], X: Any, use: Any = None, **options: Any) -> Any:
    model = make(**options).fit(X)
    return model, _use(model, X if use is None else use)


def _stream(make: Callable[..., Any], kind: str, X: Any, **options: Any) -> Any:
    """A batch for a model that has seen an honest one, which is then used."""
    good = tables.honest(kind)
    model = make(**options).partial_fit(good).partial_fit(X)
    return model, _use(model, good)


def _first(make: Callable[..., Any], X: Any) -> Any:
    model = make().partial_fit(X)
    return model, _use(model, X)


def cases() -> Iterator[Case]:
    """Odd tables, then odd parameters."""
    yield from _tables()
    yield from _parameters()
    yield from _methods()


def _tables() -> Iterator[Case]:
    for name, (make, kind) in ESTIMATORS.items():
        honest = tables.honest(kind)
        for odd, change in tables.ALL.items():
            label = f"{name}, {odd}: "

            def table(change=change, honest=honest):
                return change(honest)

            if odd not in {"a generator", "an iterator of lists"}:
                yield Case(label + "fit", lambda m=make, t=table: _fit(m, t()), DATA)
            yield Case(label + "use", lambda n=name, t=table: _use(fitted(n), t()), DATA)
            if not hasattr(make(), "partial_fit"):
                continue
            yield Case(
                label + "partial_fit",
                lambda m=make, k=kind, t=table: _stream(m, k, t()),
                DATA,
            )
            if name != "topics, local":
                yield Case(
                    label + "first partial_fit", lambda m=make, t=table: _first(m, t()), DATA
                )


def _parameters() -> Iterator[Case]:
    for name, (make, kind) in WITH_PARAMETERS.items():
        X = tables.honest(kind)
        for parameter in inspect.signature(type(make()).__init__).parameters:
            if parameter == "self":
                continue
            values = [*NUMBERS, *OTHERS]
            if parameter in ARRAY_PARAMETERS:
                values += ARRAYS
            if parameter == "random_state":
                values += RANDOM_STATES
            if parameter in LENGTHS:
                values = [v for v in values if v != 10**30]
            for value in values:
                told = (parameter, *(("seed",) if parameter == "random_state" else ()))
                shown = f"{name}, {parameter}={_shown(value)}"
                yield Case(
                    shown, lambda m=make, X=X, p=parameter, v=value: _fit(m, X, **{p: v}), told
                )
                streams = hasattr(make(), "partial_fit")
                if streams and parameter in {"total_samples", "learning_offset", "learning_decay"}:
                    yield Case(
                        shown + ", a stream",
                        lambda m=make, k=kind, X=X, p=parameter, v=value: _stream(
                            m, k, X, **{p: v}
                        ),
                        told,
                    )
        for policy, build in policies().items():
            told = ("tempering", "local_log_normalizer", *POLICY_WORDS)
            yield Case(
                f"{name}, {policy}",
                lambda m=make, X=X, b=build: _fit(m, X, tempering=b()),
                told,
            )


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {' '.join(repr(value).split())}"[:60]


def _methods() -> Iterator[Case]:
    """What the methods take beside a table, and methods of models that are not fitted."""
    counts = tables.honest("counts")
    for name, (make, kind) in ESTIMATORS.items():
        for use in (*USES, "sample", "save", "topics", "coherence", "inverse_transform"):
            if hasattr(make(), use):
                arguments = {"sample": (), "topics": ()}.get(use, (tables.honest(kind),))
                if (name, use) == ("lines", "sample"):
                    arguments = (tables.honest(kind),)
                if use == "save":
                    arguments = ("unfitted",)
                yield Case(
                    f"{name}, not fitted: {use}",
                    lambda m=make, u=use, a=arguments: getattr(m(), u)(*a),
                    ("fit",),
                )
        yield Case(
            f"{name}, fewer rows than components",
            lambda m=make, k=kind: _fit(m, tables.honest(k, 3), n_components=8),
            ("n_components",),
        )
        yield Case(
            f"{name}, another number of columns",
            lambda n=name, k=kind: _use(fitted(n), tables.honest(k, columns=7)),
            DATA,
        )
        for n in (0, -1, 1, 2.5, "3", None, np.nan, 10**12, True, [3], np.int64(3)):
            if hasattr(make(), "sample") and name != "lines":  # there it takes a table
                yield Case(
                    f"{name}, sample({n!r})",
                    lambda m=name, n=n: fitted(m).sample(n),
                    ("n_samples",),
                )
    topics, told = "topics, plain", ("n_words", "words", "vocabulary")
    for n in (0, -1, 2.5, "3", None, np.nan, 10**9, True, [3]):
        yield Case(f"topics({n!r})", lambda n=n: fitted(topics).topics(n), told)
        yield Case(f"coherence({n!r})", lambda n=n: fitted(topics).coherence(counts, n), told)
    for words in ([], ["a"], ["a"] * 4, list("abcde"), "abcd", [None] * 4, [1, 2, 3, 4], 3, {}):
        yield Case(
            f"topics(vocabulary={words!r})", lambda w=words: fitted(topics).topics(2, w), told
        )
    for options in (
        {"random_state": -1},
        {"random_state": "odd"},
        {"random_state": 1.5},
        {"inference": "odd"},
        {"inference": None},
        {"inference": "gibbs", "alpha": 0},
        {"alpha": -1},
        {"alpha": np.nan},
        {"alpha": "odd"},
        {"alpha": []},
        {"alpha": [0.1, 0.2]},
        {"alpha": 1e300},
        {"alpha": 1e-300},
        {"tempered": "odd"},
    ):
        yield Case(
            f"completion_score({options})",
            lambda o=options: fitted(topics).completion_score(counts, **o),
            (*options, "seed"),
        )
    for odd, change in tables.ALL.items():
        yield Case(
            f"inverse_transform, {odd}",
            lambda c=change: fitted("features").inverse_transform(
                c(tables.honest("binary", 20, 3))
            ),
            DATA,
        )
        yield Case(
            f"coherence, {odd}",
            lambda c=change: fitted("topics, plain").coherence(c(counts), n_words=2),
            DATA,
        )
        for use in ("document_temperatures", "completion_score"):
            yield Case(
                f"{use}, {odd}",
                lambda c=change, u=use: getattr(fitted("topics, local"), u)(c(counts)),
                DATA,
            )
