"""``tempering topics``: the words of each topic."""

from typing import Annotated, Any

import typer

from tempering.cli.options import Json, ModelPath
from tempering.cli.printing import print_json, print_topics


def topics(
    model: ModelPath,
    words: Annotated[int, typer.Option(min=1, help="Words of a topic.")] = 10,
    as_json: Json = False,
) -> None:
    """Print the words of each topic, largest topics first.

    \b
    Example:
      tempering topics model --words 15
    """
    from tempering.cli.corpora import load_topics

    fitted = load_topics(model)
    rows = topic_rows(fitted, words, None)
    if as_json:
        print_json({"model": str(model), "topics": rows})
    else:
        print_topics(rows)


def topic_rows(model: Any, n_words: int, vocabulary: Any) -> list[dict[str, Any]]:
    """Number, share of all words, and top words of each topic, largest first."""
    import numpy as np

    totals = model.components_.sum(axis=1, dtype=float)
    prior = np.broadcast_to(model.topic_word_prior_, (len(totals), model.n_features_in_))
    sizes = np.maximum(totals - prior.sum(axis=1), 0.0)
    shares = sizes / sizes.sum()
    words = model.topics(n_words, vocabulary)
    order = sorted(range(len(shares)), key=lambda k: -shares[k])
    return [{"topic": k, "share": round(float(shares[k]), 6), "words": words[k]} for k in order]
