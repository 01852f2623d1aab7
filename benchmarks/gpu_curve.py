"""What more documents buy: topics of the default from 20 thousand to millions of drawn documents.

    python benchmarks/gpu_curve.py [--sizes 20000 100000 1000000 3600000] [--start-words 3e7]

200 topics of 20,000 words, documents of 100 words that mix them (α = 0.1, so that the prior counts
for 20 words). Held-out nats a word (exact proportions, α = 0.1) and the agreement with the true
topics: of what a fit starts from, and of what it ends with, beside those of the true topics and of
the frequencies of words alone. `--start-words` says how many words the start looks at and
shares out, `--candidates` of how many it counts pairs, where it is not what the package has.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from gpu_corpus import GENERATED_TOPICS, generate
from gpu_lda import levels, print_device
from gpu_tasks import Task, exact_score, prepare
from lda_common import print_table, write_json
from tempering import LatentDirichletAllocation
from tempering.evaluation import topic_stability
from tempering.inference import ArraySource
from tempering.models.lda import start
from tempering.models.lda.model import LatentDirichlet


def main() -> None:
    """Fit to more and more of one corpus."""
    options = _parse_options()
    print_device()
    if options.start_words:
        start.MOST_START_WORDS = int(options.start_words)
        start.START_WORDS_OF_A_TOPIC, start.WORDS_OF_A_TOPIC = start.MOST_START_WORDS, 1
    if options.candidates:
        start.MOST_PAIRED_WORDS = options.candidates
    corpus, topics = generate(max(options.sizes) + options.test_documents)
    whole = prepare(corpus, options)
    rows = []
    for n in options.sizes:
        task = whole._replace(train=whole.train[:n])
        rows.append(started(task, topics))
        print(rows[-1], flush=True)
        for prior in (None, 0.1) if options.known_prior else (None,):
            rows.append(fitted(task, topics, prior, options))
            print(rows[-1], flush=True)
    print_table("What more documents buy", rows)
    results = {"curve": rows, "levels": levels(whole, topics)}
    print_table("What those scores lie between", results["levels"])
    write_json(options.json, results)


def started(task: Task, truth: np.ndarray) -> dict[str, Any]:
    """The topics that a fit starts from."""
    model = LatentDirichlet(
        GENERATED_TOPICS,
        task.train.shape[1],
        0.1,
        1.0 / GENERATED_TOPICS,
        start="words",
        mean_length=task.tokens / task.visits,
    )
    began = time.perf_counter()
    topics = model.initialize(ArraySource(task.train), np.random.default_rng(0)).parameters()
    return described(task, "start", time.perf_counter() - began, topics, truth)


def fitted(
    task: Task, truth: np.ndarray, prior: float | None, options: argparse.Namespace
) -> dict[str, Any]:
    """The topics of a whole fit."""
    model = LatentDirichletAllocation(
        GENERATED_TOPICS,
        doc_topic_prior=prior,
        max_iter=int(options.passes),
        backend=options.backend,
        random_state=options.seed,
    )
    began = time.perf_counter()
    model.fit(task.train)
    name = "fit" if prior is None else f"fit, α = {prior}"
    return described(task, name, time.perf_counter() - began, model.components_.T, truth)


def described(
    task: Task, what: str, seconds: float, topics: np.ndarray, truth: np.ndarray
) -> dict[str, Any]:
    """A row of the table."""
    return {
        "documents": task.train.shape[0],
        "what": what,
        "s": seconds,
        "exact": exact_score(task, topics),
        "agreement": float(topic_stability(truth, np.ascontiguousarray(topics.T))),
    }


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    sizes = [20_000, 100_000, 1_000_000, 3_600_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, help="of the corpus")
    parser.add_argument("--passes", type=float, default=10.0)
    parser.add_argument("--start-words", type=float, help="words that the start may look at")
    parser.add_argument("--candidates", type=int, help="words whose pairs the start counts")
    parser.add_argument("--known-prior", action="store_true", help="with the true α too")
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test-documents", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    parser.set_defaults(documents=None)
    return parser.parse_args()


if __name__ == "__main__":
    main()
