"""A workbench for topics: how many, how they change and differ, editing them, their tree."""

from tempering.workbench.number_of_topics import TopicNumber, Trial, choose_n_topics
from tempering.workbench.shares import TopicShares, topics_by_group, topics_over_time

__all__ = [
    "TopicNumber",
    "TopicShares",
    "Trial",
    "choose_n_topics",
    "topics_by_group",
    "topics_over_time",
]
