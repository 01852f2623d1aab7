"""A workbench for topics: how many, how they change and differ, editing them, their tree."""

from tempering.workbench.editing import (
    drop_topic,
    merge_topics,
    rename_topics,
    split_topic,
    topic_labels,
)
from tempering.workbench.extending import extend_topics
from tempering.workbench.number_of_topics import TopicNumber, Trial, choose_n_topics
from tempering.workbench.shares import TopicShares, topics_by_group, topics_over_time
from tempering.workbench.tree import TopicTree, hierarchy

__all__ = [
    "TopicNumber",
    "TopicShares",
    "TopicTree",
    "Trial",
    "choose_n_topics",
    "drop_topic",
    "extend_topics",
    "hierarchy",
    "merge_topics",
    "rename_topics",
    "split_topic",
    "topic_labels",
    "topics_by_group",
    "topics_over_time",
]
