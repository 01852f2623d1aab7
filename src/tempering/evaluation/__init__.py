"""Measures of topics: held-out document completion, coherence, diversity, stability, labels."""

from tempering.evaluation.coherence import c_npmi, c_v, npmi, top_words, umass
from tempering.evaluation.completion import (
    Split,
    completion_score,
    gibbs_proportions,
    split_documents,
)
from tempering.evaluation.measures import (
    Matching,
    TopicMeasures,
    inverted_rbo,
    label_nmi,
    match_topics,
    purity,
    topic_diversity,
    topic_measures,
    topic_stability,
)

__all__ = [
    "Matching",
    "Split",
    "TopicMeasures",
    "c_npmi",
    "c_v",
    "completion_score",
    "gibbs_proportions",
    "inverted_rbo",
    "label_nmi",
    "match_topics",
    "npmi",
    "purity",
    "split_documents",
    "top_words",
    "topic_diversity",
    "topic_measures",
    "topic_stability",
    "umass",
]
