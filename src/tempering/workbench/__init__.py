"""A workbench for topics: how many, how they change and differ, editing them, their tree."""

from tempering.workbench.certainty import WordInterval, topics_across_seeds, word_intervals
from tempering.workbench.comparing import (
    ModelComparison,
    TopicPair,
    TopicTree,
    Trial,
    compare_models,
    hierarchy,
)
from tempering.workbench.drift import TopicDrift, extend_topics, topics_through_time
from tempering.workbench.editing import (
    drop_topic,
    merge_topics,
    rename_topics,
    split_topic,
    topic_labels,
)
from tempering.workbench.joining import find_topics
from tempering.workbench.number_of_topics import TopicNumber, choose_n_topics
from tempering.workbench.shares import TopicShares, topics_by_group, topics_over_time

__all__ = [
    "ModelComparison",
    "TopicDrift",
    "TopicNumber",
    "TopicPair",
    "TopicShares",
    "TopicTree",
    "Trial",
    "WordInterval",
    "choose_n_topics",
    "compare_models",
    "drop_topic",
    "extend_topics",
    "find_topics",
    "hierarchy",
    "merge_topics",
    "rename_topics",
    "split_topic",
    "topic_labels",
    "topics_across_seeds",
    "topics_by_group",
    "topics_over_time",
    "topics_through_time",
    "word_intervals",
]
