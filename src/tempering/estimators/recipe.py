"""What ``LatentDirichletAllocation`` goes by where nothing is said.

The numbers stand in :class:`Rules`, and each earns its place: ``lab/`` has the study. What they
come to for a corpus and K topics is a :class:`Recipe`, the ``recipe_`` of a fitted estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tempering.inference import RobbinsMonro, Settling
from tempering.inference.run import LearningRate
from tempering.models.lda.model import Update
from tempering.models.lda.sampling import Settled
from tempering.storage.state import stored
from tempering.temperature import Annealing, TemperaturePolicy, Untempered

#: Steps of streams, and of fits whose topics are not sampled, have the size (16 + t)^−0.7.
OFFSET, DECAY = 16.0, 0.7

#: First steps that are held back by more than this do nothing.
LARGEST_OFFSET = 200.0

#: Topics are many from here on; to four times as many, what holds for many topics grows.
MANY_TOPICS = 100


@dataclass(frozen=True)
class Rules:
    """The numbers behind the default, for any corpus and any number of topics K."""

    #: α is at least this, as topics that are sampled by short chains need some; above 100 topics it
    #: falls with the root of K. It is 1 / K where that is more,
    prior: float = 0.05
    #: but in all it counts for no more than this share of a document's words.
    prior_share: float = 0.5
    #: The part of α that goes to topics as documents use them, which makes them more coherent.
    adapted_part: float = 0.8
    #: With fewer words a topic, α is shared evenly.
    few_words: float = 2500.0
    #: The first steps are held back by this part of the run, so as not to lose the start.
    held_part: float = 0.1
    #: κ, the decay of the step sizes: small, as sampled topics are to go on moving.
    decay: float = 0.55
    #: What κ rises by with each doubling of K from 50 to 400: topics of few words are too sharp.
    decay_rise: float = 0.05
    #: What the power of words falls by with each doubling, for the same reason.
    power_fall: float = 0.05
    #: The part of the run after which λ is only averaged,
    averaged_from: float = 0.8
    #: how many times as much the power falls there with many topics of few words each,
    averaged_fall: float = 2.0
    #: and what is left of α there.
    averaged_prior: float = 0.6

    def doc_topic_prior(self, n_topics: int, update: Update, mean_length: float) -> float:
        """α, for documents of this many words on average."""
        if update != "sampled":
            return 1.0 / n_topics
        smallest = self.prior * (MANY_TOPICS / max(n_topics, MANY_TOPICS)) ** 0.5
        return max(1.0 / n_topics, min(smallest, self.prior_share * mean_length / n_topics))

    def adapts(self, size: Size) -> float:
        """The part of α that goes to topics as documents use them."""
        return min(self.adapted_part, 1.0 - self._scarcity(size))

    def word_power(self, size: Size) -> float:
        """The power to which topics enter where they are sampled."""
        return 1.0 - self._fall(size)

    def settled(self, size: Size, keep_prior: bool) -> Settled | None:
        """What holds when λ is only averaged; None where topics are not many."""
        if size.n_topics <= MANY_TOPICS:
            return None
        extent = self._scarcity(size) * _many(size) * (0.5 + 0.5 * _long(size))
        power = 1.0 - (1.0 + extent * (self.averaged_fall - 1.0)) * self._fall(size)
        factor = 1.0 if keep_prior else 1.0 - extent * (1.0 - self.averaged_prior)
        return Settled(self.averaged_from, power, factor)

    def learning_rate(
        self,
        offset: float | Literal["auto"],
        decay: float | Literal["auto"],
        n_topics: int,
        update: Update,
        n_steps: int | None,
        mixed: bool = False,
    ) -> LearningRate:
        """ρ_t of a run of so many steps, or of a stream, whose end is not known.

        ``mixed`` says whether the start tells topics apart that documents mix many of.
        """
        if update != "sampled" or n_steps is None:
            offset = OFFSET if offset == "auto" else offset
            return RobbinsMonro(offset, DECAY if decay == "auto" else decay)
        if offset == "auto":
            offset = float(np.clip(self.held_part * n_steps, OFFSET, LARGEST_OFFSET))
            # By the whole run where very many topics are known that documents mix.
            offset = max(offset, float(n_steps)) if mixed else offset
        if decay == "auto":
            decay = min(DECAY, round(self.decay + self.decay_rise * _doublings(n_topics), 12))
        return Settling(RobbinsMonro(offset, decay), max(1, int(self.averaged_from * n_steps)))

    def _scarcity(self, size: Size) -> float:
        """``few_words`` as a part of those that topics have each; 1 where they have fewer."""
        return min(1.0, self.few_words * size.n_topics / (size.n_documents * size.mean_length))

    def _fall(self, size: Size) -> float:
        """What the power of the words falls by, for the share of a document that they decide."""
        decided_by_words = size.mean_length / (size.mean_length + size.prior_length)
        return self.power_fall * _doublings(size.n_topics) * decided_by_words


@dataclass(frozen=True)
class Size:
    """How large a problem is."""

    n_topics: int
    n_documents: float  # of the corpus, or of the stream as far as it is known
    mean_length: float  # words of a document
    prior_length: float  # words that the prior of its proportions counts for, Σ_k α_k


def _many(size: Size) -> float:
    """From 0, up to ``MANY_TOPICS``, to 1, with four times as many."""
    return float(np.clip(np.log2(size.n_topics / MANY_TOPICS) / 2.0, 0.0, 1.0))


def _long(size: Size) -> float:
    """From 0, where the prior counts for half of a document's words, to 1, where for a quarter."""
    return float(np.clip(size.mean_length / (2.0 * size.prior_length) - 1.0, 0.0, 1.0))


def _doublings(n_topics: int) -> float:
    return float(np.clip(np.log2(n_topics / 50), 0.0, 3.0))


def batch_size_for(n_visits: float, mean_length: float = 0.0, on_gpu: bool = False) -> int:
    """Documents of a minibatch, in a run of so many visits to documents of this many words."""
    # In fewer steps topics have no time to follow the temperature; in a small corpus, more cost
    # time and find nothing better.
    size = n_visits / 2000
    if on_gpu:  # it needs some thousand documents at a time, but larger batches are no faster
        return int(np.clip(size, 16, 8192))
    # There is more to find in a large corpus: batches grow slower, and steps become more.
    if size > 100:
        size = np.sqrt(100 * size)
    # Smaller batches are mostly noise and overhead, larger ones no faster. But a thousand words are
    # enough: with few long documents the topics would hardly move from where they are.
    smallest = np.clip(1000 / max(mean_length, 1.0), 2, 16)
    return int(np.clip(size, smallest, 1024))


RULES = Rules()


@stored("recipe")
@dataclass(frozen=True)
class Recipe:
    """What a fit of topics went by, in the order of a run.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> print(LatentDirichletAllocation(2, random_state=0).fit(X).recipe_)
    topics to start from:     words
    temperature:              T = 1 throughout
    update of documents:      sampled
    prior of proportions (α): 0.5 a topic to begin with
    part of α that adapts:    0%
    prior of words (η):       0.5
    power of words:           1.000
    at the end:               λ is averaged
    step sizes:               Settling(rule=RobbinsMonro(delay=16.0, decay=0.55, hold=0.0, pace=1.0), start=56)
    minibatches:              70 of 16 documents
    """  # noqa: E501 (what is printed is as wide as that)

    start: str
    temperature: str
    update: str
    doc_topic_prior: float
    adapted_part: float
    topic_word_prior: float
    word_power: float
    end: str
    step_sizes: str
    batch_size: int
    n_steps: int

    def __str__(self) -> str:
        lines = {
            "topics to start from": self.start,
            "temperature": self.temperature,
            "update of documents": self.update,
            "prior of proportions (α)": f"{self.doc_topic_prior:.4g} a topic to begin with",
            "part of α that adapts": f"{self.adapted_part:.0%}",
            "prior of words (η)": f"{self.topic_word_prior:.4g}",
            "power of words": f"{self.word_power:.3f}",
            "at the end": self.end,
            "step sizes": self.step_sizes,
            "minibatches": f"{self.n_steps:,} of {self.batch_size:,} documents",
        }
        return "\n".join(f"{name + ':':26}{value}" for name, value in lines.items())


def describe_policy(policy: TemperaturePolicy) -> str:
    """Describe how hot a run is."""
    if isinstance(policy, Untempered):
        return "T = 1 throughout"
    if isinstance(policy, Annealing) and policy.passes is None and policy.start is None:
        first = policy.first_temperature
        return f"from T = {first:.2f} to 1 in the first {policy.fraction:.0%} of the run"
    return type(policy).__name__


def told_end(learning_rate: LearningRate, settled: Settled | None) -> str:
    """What holds at the end of a run, in words."""
    if not isinstance(learning_rate, Settling):
        return "as before"
    if settled is None:
        return "λ is averaged"
    power, left = settled.word_power, settled.prior_factor
    return f"λ is averaged, with words to the power {power:.3f} and {left:.0%} of α"
