"""What the numbers of a topic model, and of its posterior, must be: kernels trust them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempering.models.arguments import check_number, check_whole

LARGEST_NUMBER = float(np.finfo(np.float64).max)


def check_parameters(model: Any) -> None:
    """Raise ``ValueError`` if the numbers of a model cannot be."""
    alpha = np.asarray(model.doc_topic_prior)
    with np.errstate(over="ignore"):
        narrow = alpha.astype(np.float32)  # as the kernels hold it
    proper = alpha.shape == (model.n_topics,) and alpha.dtype == np.float64
    if not proper or not np.all(np.isfinite(narrow) & (narrow > 0)):
        raise ValueError(
            f"doc_topic_prior must hold {model.n_topics} positive numbers; got {alpha!r:.60}."
        )
    for name in ("topic_word_prior", "mean_length"):
        check_number(
            getattr(model, name), name, "positive and finite", above=0, most=LARGEST_NUMBER
        )
    if model.guide is not None:
        model.guide.check(model.n_words, model.n_topics, model.topic_word_prior)
        if model.learn_topic_word_prior:
            raise ValueError("a prior of words that a guide is beside of cannot be learned.")
    check_number(model.word_power, "word_power", "from 0.5 to 1", least=0.5, most=1)
    check_whole(max_iterations=model.max_iterations)


def check_topics(model: Any, topics: Any) -> None:
    """Raise ``ValueError`` if these cannot be topics of the model."""
    shape = model.n_words, model.n_topics
    if not isinstance(topics, model.posterior_type):
        raise ValueError(f"the topics must be {model.posterior_type.__name__}; got {topics!r:.60}.")
    if topics.shape != shape or topics.totals().shape != shape[1:]:
        raise ValueError(f"the topics have the shape {topics.shape}; {shape} is asked for.")
    parameters = topics.parameters()
    proper = np.isfinite(parameters).all() and (parameters >= 0).all() and parameters.any(axis=0)
    if not np.all(proper):
        raise ValueError("the topics must be proper distributions.")
