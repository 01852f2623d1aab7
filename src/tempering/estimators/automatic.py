"""What ``LatentDirichletAllocation`` chooses where nothing is said; see docs/choosing.md."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.integrate import trapezoid

from tempering.inference import BlockSource, RobbinsMonro, Settling
from tempering.inference.learning_rate import LearningRate
from tempering.models.lda.model import LatentDirichlet, Settled, Update
from tempering.models.lda.start import SAMPLE, document_contrast, starting_inverse_temperature
from tempering.temperature import Annealing, schedules

#: The part of a run in which ``tempering="auto"`` comes down to T = 1, and how much longer it takes
#: at most where topics are many.
TEMPERED_PART, LONGER_PART = 0.4, 0.1

#: In a document that is nearly sure of its topics, a short chain of samples does not move: α is at
#: least the first, up to as many topics as the second says, and falls from there as K to the third.
#: But where documents are short, it counts for no more than a share of their words, the fourth.
SMALLEST_PRIOR, MANY_TOPICS, PRIOR_DECAY, LARGEST_SHARE = 0.05, 100, -0.5, 0.5

#: The first steps of sampled topics are held back by this part of the run, within these bounds:
#: large ones would lose the topics that it starts from.
HELD_PART, SMALLEST_OFFSET, LARGEST_OFFSET = 0.1, 16.0, 200.0

#: Topics that start from words are lost where it is so hot that they part anew. 1/T is at least the
#: first, with as many words a topic in a document as the second says; with fewer, less in
#: proportion: short documents fall for any topic unless they are far hotter.
HOTTEST_START, ENOUGH_WORDS = 0.45, 0.5

#: κ, the decay of the step sizes. Sampled topics want large steps, to go on moving, and an end that
#: averages what they draw: the part of the run after which λ settles.
DECAY, SAMPLED_DECAY, SETTLED_PART = 0.7, 0.55, 0.8

#: Topics that are learned from few words each are too sharp. From so many topics on, with each
#: doubling and for so many doublings, κ rises by the first step below, and the power to which
#: topics enter where they are sampled falls by the second.
SEVERAL_TOPICS, MOST_DOUBLINGS = 50, 3.0
DECAY_RISE, POWER_FALL = 0.05, 0.05

#: With less than so many documents a topic, topics at such a power become copies of each other.
FEWEST_DOCUMENTS = 10

#: Where topics are many, and λ settles: how many times as much the power falls, at which topics
#: would not have parted, and what is left of α. All of it where topics have so many words each, or
#: fewer; half of it where documents are short.
SETTLED_FALL, SETTLED_PRIOR, FEW_WORDS = 2.0, 0.6, 2500

#: Topics of frequent words occur in most documents, others in few: α that says so makes topics more
#: coherent. A part of it follows the documents, at most this. The rest, which keeps small topics
#: alive, is as large as FEW_WORDS are among the words of a topic.
FOLLOWED_PART = 0.8


#: Steps whose sizes are added up one by one: a long stream may have a thousand times as many.
COUNTED_STEPS = 1_000_000


def default_doc_topic_prior(n_topics: int, update: Update, mean_length: float) -> float:
    """α where none is given, for documents of this many words on average.

    >>> [default_doc_topic_prior(n_topics, "sampled", 60.0) for n_topics in (10, 100)]
    [0.1, 0.05]
    >>> default_doc_topic_prior(400, "sampled", 60.0), default_doc_topic_prior(400, "sampled", 6.0)
    (0.025, 0.0075)
    >>> default_doc_topic_prior(100, "variational", 60.0)
    0.01
    """
    if update != "sampled":
        return 1.0 / n_topics
    smallest = SMALLEST_PRIOR * max(1.0, n_topics / MANY_TOPICS) ** PRIOR_DECAY
    return max(1.0 / n_topics, min(smallest, LARGEST_SHARE * mean_length / n_topics))


def default_followed_part(n_topics: int, n_documents: float, mean_length: float) -> float:
    """The part of α that follows the documents, where none is given and topics are sampled.

    >>> [default_followed_part(n_topics, 2e4, 60.0) for n_topics in (40, 96, 240, 500)]
    [0.8, 0.8, 0.5, 0.0]
    """
    return min(FOLLOWED_PART, 1.0 - _few_words(n_topics, n_documents, mean_length))


def default_decay(n_topics: int) -> float:
    """κ of a fit (not of a stream) with sampled topics, where none is given.

    >>> [round(default_decay(n_topics), 3) for n_topics in (20, 100, 200, 1000)]
    [0.55, 0.6, 0.65, 0.7]
    """
    return min(DECAY, SAMPLED_DECAY + DECAY_RISE * _doublings(n_topics))


def default_word_power(
    n_topics: int, n_documents: float, mean_length: float, prior_length: float
) -> float:
    """The power to which the topics enter where they are sampled.

    Parameters
    ----------
    n_topics : int
        K.
    n_documents : float
        Of the corpus, or of the stream as far as it is known.
    mean_length : float
        Words of a document.
    prior_length : float
        Words that the prior of its proportions counts for. In short documents it decides much of
        them, and words that said still less would leave topics alike.

    Examples
    --------
    >>> round(default_word_power(500, 2e4, 60.0, 11.0), 3)
    0.873
    >>> default_word_power(500, 2e3, 60.0, 11.0), default_word_power(50, 2e4, 60.0, 2.5)
    (1.0, 1.0)
    """
    enough = np.clip(n_documents / (FEWEST_DOCUMENTS * n_topics) - 1.0, 0.0, 1.0)
    return 1.0 - _fall(n_topics, mean_length, prior_length) * float(enough)


def default_settled(
    n_topics: int, n_documents: float, mean_length: float, prior_length: float, keep_prior: bool
) -> Settled | None:
    """What holds when λ settles; None where topics are not many.

    However few documents there are: topics have parted, and few of them become copies any more.

    Parameters
    ----------
    n_topics, n_documents, mean_length, prior_length
        As in :func:`default_word_power`.
    keep_prior : bool
        Whether α stays as it is, as it was given or is learned.

    Examples
    --------
    >>> default_settled(100, 2e4, 60.0, 5.0, keep_prior=False)
    >>> default_settled(400, 1e4, 60.0, 10.0, keep_prior=False)
    Settled(part=0.8, word_power=0.7428571428571429, doc_topic_prior=0.015)
    """
    if n_topics <= MANY_TOPICS:
        return None
    few_words = _few_words(n_topics, n_documents, mean_length)
    extent = few_words * _many(n_topics) * (0.5 + 0.5 * _long(mean_length, prior_length))
    times = 1.0 + extent * (SETTLED_FALL - 1.0)
    power = 1.0 - times * _fall(n_topics, mean_length, prior_length)
    prior = (1.0 - extent * (1.0 - SETTLED_PRIOR)) * prior_length / n_topics
    return Settled(SETTLED_PART, power, None if keep_prior else prior)


def tempered_part(n_topics: int, mean_length: float, prior_length: float) -> float:
    """The part of a run in which it comes down to T = 1.

    Many topics take longer to part. Where documents are short, the steps at T = 1 that this costs
    were worth more.

    Parameters
    ----------
    n_topics : int
        K. Above ``MANY_TOPICS`` the part grows, up to four times as many.
    mean_length, prior_length : float
        Words of a document, and words that the prior of its proportions counts for.

    Examples
    --------
    >>> [tempered_part(n_topics, 60.0, 7.0) for n_topics in (100, 200, 400, 1000)]
    [0.4, 0.45, 0.5, 0.5]
    >>> tempered_part(400, 7.0, 3.5)
    0.4
    """
    return TEMPERED_PART + LONGER_PART * _many(n_topics) * _long(mean_length, prior_length)


def _few_words(n_topics: int, n_documents: float, mean_length: float) -> float:
    """``FEW_WORDS`` as a part of those that topics have each; 1 where they have fewer."""
    return min(1.0, FEW_WORDS * n_topics / (n_documents * mean_length))


def _many(n_topics: int) -> float:
    """From 0, up to ``MANY_TOPICS``, to 1, with four times as many."""
    return float(np.clip(np.log2(n_topics / MANY_TOPICS) / 2.0, 0.0, 1.0))


def _long(mean_length: float, prior_length: float) -> float:
    """From 0, where the prior counts for half of a document's words, to 1, where for a quarter."""
    return float(np.clip(mean_length / (2.0 * prior_length) - 1.0, 0.0, 1.0))


def _fall(n_topics: int, mean_length: float, prior_length: float) -> float:
    """What the power of the words falls by, for the share of a document that they decide."""
    decided_by_words = mean_length / (mean_length + prior_length)
    return POWER_FALL * _doublings(n_topics) * decided_by_words


def _doublings(n_topics: int) -> float:
    doublings = float(np.log2(max(1.0, n_topics / SEVERAL_TOPICS)))
    return min(MOST_DOUBLINGS, doublings)


def minibatch_steps(
    offset: float | Literal["auto"],
    decay: float | Literal["auto"],
    n_topics: int,
    update: Update,
    n_steps: int | None,
) -> LearningRate:
    """ρ_t of a run of so many steps, or of a stream, whose end is not known.

    >>> minibatch_steps("auto", "auto", 50, "variational", 1000)
    RobbinsMonro(delay=16.0, decay=0.7)
    >>> minibatch_steps("auto", "auto", 50, "sampled", 1000)
    Settling(rule=RobbinsMonro(delay=100.0, decay=0.55), start=800)
    >>> minibatch_steps("auto", "auto", 50, "sampled", None)
    RobbinsMonro(delay=16.0, decay=0.7)
    """
    if update != "sampled" or n_steps is None:
        offset = SMALLEST_OFFSET if offset == "auto" else offset
        return RobbinsMonro(offset, DECAY if decay == "auto" else decay)
    if offset == "auto":
        offset = float(np.clip(HELD_PART * n_steps, SMALLEST_OFFSET, LARGEST_OFFSET))
    steps = RobbinsMonro(offset, default_decay(n_topics) if decay == "auto" else decay)
    return Settling(steps, max(1, int(SETTLED_PART * n_steps)))


def sum_of_steps(learning_rate: LearningRate, n_steps: int) -> float:
    """Σ_t ρ_t over a run; of steps beyond ``COUNTED_STEPS``, the integral.

    >>> sum_of_steps(lambda step: 1.0, 10**14)
    100000000000000.0
    """
    counted = min(n_steps, COUNTED_STEPS)
    total = sum(learning_rate(t) for t in range(1, counted + 1))
    if n_steps > counted:
        places = np.geomspace(counted, n_steps, 1000).round()
        total += float(trapezoid([learning_rate(int(t)) for t in places], places))
    return total


def automatic_policy(
    documents: Any,
    model: LatentDirichlet,
    learning_rate: LearningRate,
    n_steps: int,
    generator: np.random.Generator,
) -> Annealing:
    """Cool from where topics can just part within the run, or their start is not lost.

    Parameters
    ----------
    documents : CSR matrix or BlockSource
        The documents, of which a sample is looked at.
    model : LatentDirichlet
        Its priors, and its mean length of documents.
    learning_rate : callable
        Step t = 1, 2, … to ρ_t.
    n_steps : int
        Steps of the run.
    generator : Generator
        For the sample.
    """
    if isinstance(documents, BlockSource):
        documents = documents.sample(SAMPLE, generator)
    words = model.mean_length / model.n_topics
    start = starting_inverse_temperature(
        document_contrast(documents, generator),
        float(model.doc_topic_prior.mean()),
        words,
        sum_of_steps(learning_rate, n_steps),
        sweeps=model.min_iterations,
        collapsed=model.update == "collapsed",
    )
    if model.start == "words":
        start = max(start, HOTTEST_START * min(1.0, words / ENOUGH_WORDS))
    part = TEMPERED_PART
    if model.update == "sampled":
        prior_length = float(model.doc_topic_prior.sum())
        part = tempered_part(model.n_topics, model.mean_length, prior_length)
    return Annealing(schedules.linear_inverse(1.0 / start), fraction=part)
