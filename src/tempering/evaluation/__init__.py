"""Measures of topics: held-out document completion, coherence, stability."""

from tempering.evaluation.coherence import npmi, top_words
from tempering.evaluation.completion import (
    Split,
    completion_score,
    completion_score_from_theta,
    mean_field_proportions,
    split_documents,
)
from tempering.evaluation.gibbs import gibbs_proportions
from tempering.evaluation.stability import Matching, match_topics, topic_stability

__all__ = [
    "Matching",
    "Split",
    "completion_score",
    "completion_score_from_theta",
    "gibbs_proportions",
    "match_topics",
    "mean_field_proportions",
    "npmi",
    "split_documents",
    "top_words",
    "topic_stability",
]
