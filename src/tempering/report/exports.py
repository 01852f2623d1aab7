"""What was fitted, of any model, for ArviZ."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.engine_estimator import EngineEstimator
from tempering.evaluation import top_words
from tempering.inference import ArraySource, Result
from tempering.models.arguments import check_whole
from tempering.models.natural import arrays_of, entry
from tempering.report.data import vocabulary_of


def to_arviz(
    model: LatentDirichletAllocation | EngineEstimator | Result,
    draws: int = 500,
    *,
    X: Any = None,
    vocabulary: Sequence[str] | None = None,
    n_words: int | None = 20,
) -> Any:
    """Independent draws from the variational posterior q, for ArviZ.

    They are those of ``topics`` (chain, draw, topic, word) and, with X, of ``proportions`` (chain,
    draw, document, topic); of another estimator or a ``Result``, of the parts of its model.

    Parameters
    ----------
    model : estimator or Result
        A fitted estimator, or what :func:`tempering.fit` made of any model that tells its
        ``families`` (or has ``draw``).
    draws : int
        How many.
    X : array, sparse matrix or Corpus of shape (n_documents, n_words), optional
        Documents whose topic proportions are drawn too. Of a ``Result``, data whose
        ``log_likelihood`` and ``posterior_predictive`` are added, where the model has
        ``log_likelihood`` and ``simulate``. Of other estimators, X is not taken.
    vocabulary : sequence of str, optional
        The words; by default those of the fit, or numbers. For topics alone, as is ``n_words``.
    n_words : int or None
        Only words among so many most probable ones of a topic are kept, which does not change
        their distribution; None keeps all, draws × topics × words numbers.

    Examples
    --------
    ArviZ is no dependency of this package:

    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.report import to_arviz
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> posterior = to_arviz(lda, draws=10)  # doctest: +SKIP

    """
    try:
        library = import_module("arviz")
    except ImportError as error:
        raise ImportError(
            f"to_arviz needs arviz, which cannot be imported ({error}). Install it with: pip "
            "install arviz"
        ) from error
    check_whole(draws=draws)
    if isinstance(model, Result):
        return _as_arviz(library, groups_of(model, draws, X))
    check_is_fitted(model)
    if not isinstance(model, LatentDirichletAllocation):
        if X is not None:
            raise ValueError(
                f"X is for topics, or for the Result of a fit; {type(model).__name__} is neither."
            )
        drawn = arrays_of(model._draws(draws, np.random.default_rng(0)))
        return _as_arviz(library, {"posterior": {name: each[None] for name, each in drawn}})
    words = vocabulary_of(model, vocabulary, X)
    rng = np.random.default_rng(0)
    parameters = model.components_.astype(np.float64)
    n_all = parameters.shape[1]
    kept = np.unique(top_words(parameters, n_all if n_words is None else min(n_words, n_all)))
    posterior = {"topics": _dirichlet_draws(parameters, kept, draws, rng)}
    coords = {"topic": np.arange(len(parameters)), "word": [str(words[v]) for v in kept]}
    dims = {"topics": ["topic", "word"]}
    if X is not None:
        proportions = model.transform(X, normalize=False)
        every = np.arange(len(parameters))
        posterior["proportions"] = _dirichlet_draws(proportions, every, draws, rng)
        coords["document"] = np.arange(len(proportions))
        dims["proportions"] = ["document", "topic"]
    return _as_arviz(library, {"posterior": posterior}, coords=coords, dims=dims)


def groups_of(result: Result, n_draws: int, data: Any) -> dict[str, dict[str, Any]]:
    """The groups of ArviZ, as far as the model has what they need: [chain, draw, ...]."""
    model, draws = result.model, result.draw(n_draws)
    groups = {"posterior": {name: each[None] for name, each in arrays_of(draws)}}
    if data is None:
        return groups
    if model.provides("log_likelihood"):
        rows = ArraySource(data).data
        model.check(rows)
        logs = [model.log_likelihood(rows, entry(draws, i)) for i in range(n_draws)]
        groups["log_likelihood"] = {"x": np.stack(logs)[None]}
    if model.provides("simulate"):
        made = (getattr(each, "rows", each) for each in result.simulate(data, n_draws))
        groups["posterior_predictive"] = {"x": np.stack([np.asarray(each) for each in made])[None]}
    return groups


def _as_arviz(library: Any, groups: dict[str, dict[str, Any]], **names: Any) -> Any:
    # ArviZ 1.0 made the groups a level of the first argument.
    if int(version("arviz").split(".")[0]) >= 1:
        return library.from_dict(groups, **names)
    return library.from_dict(**groups, **names)


def _dirichlet_draws(
    parameters: np.ndarray, kept: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draws of some columns of Dirichlet rows, [1, draws, rows, kept]: the one chain is first.

    Those that are not kept are as one, with the sum of their parameters.
    """
    rest = np.maximum(parameters.sum(axis=1) - parameters[:, kept].sum(axis=1), 0.0)
    whole = np.column_stack([parameters[:, kept], rest])
    return np.stack([rng.dirichlet(row, draws)[:, :-1] for row in whole], axis=1)[None]
