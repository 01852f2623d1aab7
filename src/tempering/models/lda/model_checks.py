"""What the numbers of a topic model, and of its posterior, must be: kernels trust them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempering.models.arguments import check_number
from tempering.models.lda.topics import Topics

POSITIVE = "positive and finite"
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
        check_number(getattr(model, name), name, POSITIVE, above=0, most=LARGEST_NUMBER)
    if model.guide is not None:
        model.guide.check(model.n_words, model.n_topics, model.topic_word_prior)
        if model.learn_topic_word_prior:
            raise ValueError("a prior of words that a guide is beside of cannot be learned.")
    powers = [model.word_power]
    if model.settled is not None:
        powers.append(model.settled.word_power)
        for name in ("part", "prior_factor"):
            number = getattr(model.settled, name)
            check_number(number, f"{name} of settled", POSITIVE, above=0, most=LARGEST_NUMBER)
    for power in powers:
        check_number(power, "word_power", "from 0.5 to 1", least=0.5, most=1)
    for name in ("tolerance", "adapted_part"):
        number = getattr(model, name)
        if not 0 <= number < 1:
            raise ValueError(f"{name} must be from 0 to below 1; got {number}.")
    check_number(model.max_iterations, "max_iterations", "at least 1", least=1, whole=True)
    check_number(model.min_iterations, "min_iterations", "0 or more", least=0, whole=True)
    steps, mean = model._steps_at_temperature_one, model._mean_prior_statistics
    check_number(steps, "_steps_at_temperature_one", "0 or more", least=0, whole=True)
    if mean is not None and (np.shape(mean) != alpha.shape or not np.isfinite(mean).all()):
        raise ValueError(f"_mean_prior_statistics must hold {model.n_topics} numbers.")


def check_topics(model: Any, topics: Any) -> None:
    """Raise ``ValueError`` if these cannot be topics of the model."""
    shape = model.n_words, model.n_topics
    if not isinstance(topics, model.posterior_type):
        raise ValueError(f"the topics must be {model.posterior_type.__name__}; got {topics!r:.60}.")
    if isinstance(topics, Topics) and not _parts_agree(topics, shape[1]):
        raise ValueError(f"the parts of the topics must be those of {shape[1]} topics.")
    if topics.shape != shape:
        raise ValueError(
            f"the topics have the shape {topics.shape}; the parameters ask for {shape}."
        )
    parameters = topics.parameters()
    proper = np.isfinite(parameters).all() and (parameters >= 0).all() and parameters.any(axis=0)
    if not np.all(proper):
        raise ValueError("the topics must be proper distributions.")
    # The sums are kept with the topics. Steps round them differently, but not by that much.
    ratio = topics.totals() / parameters.sum(axis=0, dtype=np.float64)
    if not np.all((ratio > 0.5) & (ratio < 2)):
        raise ValueError("the sums kept with the topics must be theirs.")


def _parts_agree(topics: Topics, n_topics: int) -> bool:
    nodes, sums = topics._power_sums or (np.empty(0), np.empty((n_topics, 0)))
    right = topics._values.ndim == 2 and topics._sums.shape == (n_topics,)
    return right and nodes.ndim == 1 and sums.shape == (n_topics, nodes.size)
