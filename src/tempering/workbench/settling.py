"""A few passes at T = 1 after an edit, in which words move to where they now belong."""

from __future__ import annotations

from typing import Any

from tempering.inference.fitting import fit
from tempering.models.arguments import check_whole


def settled(model: Any, X: Any, passes: int, **options: Any) -> Any:
    """The model itself, changed by so many passes over all of the documents; not without any.

    Options are those of :func:`tempering.inference.fit`: a ``batch_size``, a ``learning_rate``.
    """
    check_whole(0, passes=passes)
    if X is None or passes == 0:
        return model
    documents = model._counts(X, reset=False)
    if not documents.sum() > 0:
        raise ValueError("X must hold at least one word for topics to settle.")
    result = fit(
        model._model,
        documents,
        initial=model._state.posterior,
        max_passes=passes,
        tolerance=0.0,
        seed=0,
        n_threads=1,  # the kernels have threads of their own
        elbo_every=10**9,
        final_elbo=False,
        progress=False,
        **options,
    )
    model._model = result.model
    model._state = model._state._replace(posterior=result.posterior)
    return model
