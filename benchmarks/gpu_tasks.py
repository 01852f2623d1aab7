"""What the GPU benchmarks share: documents to learn from and to test on, the model, scores."""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tempering.estimators.recipe import RULES, Size
from tempering.evaluation import Split, completion_score, split_documents
from tempering.inference import RobbinsMonro
from tempering.models.lda.model import LatentDirichlet
from tempering.temperature import Annealing, schedules

RATES = RobbinsMonro(16.0, 0.7)
EXACT_DOCUMENTS = 2000

#: Of topics that start from random draws.
HEAT = Annealing(schedules.linear_inverse(2.0), fraction=0.4)


class Task(NamedTuple):
    """Documents to learn from and to test on."""

    train: sparse.csr_matrix
    test: Split
    passes: float

    @property
    def visits(self) -> float:
        return self.train.shape[0] * self.passes

    @property
    def tokens(self) -> float:
        return float(self.train.sum(dtype=np.float64)) * self.passes


def prepare(corpus: sparse.csr_matrix, options: argparse.Namespace) -> Task:
    """The last documents are for the test."""
    cut = corpus.shape[0] - options.test_documents
    test = split_documents(corpus[cut:], seed=0)
    cut = min(cut, options.documents or cut)
    task = Task(corpus[:cut], test, options.passes)
    print(
        f"{cut} documents, {corpus.shape[1]} words, {task.tokens / options.passes:.4g} tokens, "
        f"{task.train.nnz} entries; {options.passes:g} passes"
    )
    return task


def new_model(task: Task, n_topics: int, tolerance: float, n_threads: int = 1) -> LatentDirichlet:
    """As the estimator makes it by default."""
    length = task.tokens / task.visits
    alpha = RULES.doc_topic_prior(n_topics, "sampled", length)
    size = Size(n_topics, task.train.shape[0], length, alpha * n_topics)
    return LatentDirichlet(
        n_topics,
        task.train.shape[1],
        alpha,
        1.0 / n_topics,
        update="sampled",
        word_power=RULES.word_power(size),
        settled=RULES.settled(size, keep_prior=False),
        mean_length=length,
        tolerance=tolerance,
        n_threads=n_threads,
    )


def score(task: Task, parameters: np.ndarray) -> float:
    """Held-out nats a word, with mean-field proportions at α = 1/K."""
    topics = (parameters / parameters.sum(axis=0)).T
    return completion_score(*task.test, topics, 1.0 / len(topics), "vi")


def exact_score(task: Task, parameters: np.ndarray) -> float:
    """The same with the exact posterior mean of the proportions (Gibbs) at α = 0.1, on fewer."""
    topics = (parameters / parameters.sum(axis=0)).T
    observed, held_out = (part[:EXACT_DOCUMENTS] for part in task.test)
    return completion_score(observed, held_out, topics, 0.1, "gibbs")
