"""How often the intervals of topics_over_time hold the shares that documents were drawn with.

    python benchmarks/share_intervals.py [--seeds 10] [--draws 100] [--cases usual ...] [--jobs 2]

Documents of five years, whose shares of topics differ; each θ is drawn around those of its year,
with a concentration Σα. The truth is the mean θ of the documents of a year. "known": topics are
given, as a prior of ten million words each. "learned": topics are fitted, and paired with the true
ones; a corpus of which some topic was not found (cosine below 0.9) is left out. Told are the parts
of the shares, and of the ratios of the last year to the first, within their intervals of 95%, and
the mean width of an interval. `--out` gets a line of JSON for each row.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.evaluation import match_topics
from tempering.workbench import topics_over_time

YEARS = 5
KNOWN_WORDS = 1e7


class Case(NamedTuple):
    topics: int = 5
    documents: int = 500
    length: int = 40
    words: int = 200
    concentration: float = 1.0
    eta: float = 0.05


CASES = {
    "usual": Case(),
    "short": Case(length=12),
    "long": Case(length=200, documents=250),
    "few": Case(documents=100),
    "pure": Case(concentration=0.2),
    "mixed": Case(concentration=5.0),
    "alike": Case(eta=0.5),
    "many": Case(topics=15, documents=1000, words=500),
}


def drawn(case: Case, seed: int):
    """Counts, years, θ and topics."""
    rng = np.random.default_rng([seed, 7])
    topics = rng.dirichlet(np.full(case.words, case.eta), case.topics)
    base = rng.dirichlet(np.full(case.topics, 3.0), YEARS)
    years = rng.integers(0, YEARS, case.documents)
    theta = np.array([rng.dirichlet(case.concentration * base[year]) for year in years])
    counts = [rng.multinomial(1 + rng.poisson(case.length), row @ topics) for row in theta]
    return sparse.csr_array(np.array(counts)), years, theta, topics


def one(case: Case, seed: int, known: bool, draws: int):
    """Whether each share, and each ratio, is held; widths. None if a topic was not found."""
    X, years, theta, topics = drawn(case, seed)
    prior = {"topic_word_prior": KNOWN_WORDS * topics + 1e-3} if known else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LatentDirichletAllocation(case.topics, n_jobs=1, random_state=seed, **prior).fit(X)
    matching = match_topics(topics, model.components_)
    if matching.similarities.min() < 0.9:
        return None
    shares = topics_over_time(model, X, years, np.arange(YEARS + 1), n_draws=draws, seed=seed)
    truth = np.array([theta[years == year].mean(axis=0) for year in range(YEARS)])
    ends = shares.interval()[:, matching.indices]
    first, last = shares.names[0], shares.names[-1]
    ratio = shares.ratio(last, first)[matching.indices]
    true_ratio = truth[-1] / truth[0]
    return (
        ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(),
        ((ratio[:, 0] <= true_ratio) & (true_ratio <= ratio[:, 1])).mean(),
        np.diff(ends, axis=-1).mean(),
        np.abs(shares.mean()[:, matching.indices] - truth).mean(),
    )


def timed(*arguments):
    """What :func:`one` tells, and CPU seconds."""
    begun = time.process_time()
    return one(*arguments), time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = [(name, known) for name in given.cases for known in (True, False)]
    print("case     topics   corpora  shares  ratios   width   error  CPU s", flush=True)
    with ProcessPoolExecutor(given.jobs) as pool:
        running = [
            [pool.submit(timed, CASES[name], s, known, given.draws) for s in range(given.seeds)]
            for name, known in rows
        ]
        for (name, known), corpora in zip(rows, running):
            told, seconds = zip(*(corpus.result() for corpus in corpora))
            found = [each for each in told if each is not None]
            means = np.mean(found, axis=0) if found else np.full(4, np.nan)
            topics = "known" if known else "learned"
            print(
                f"{name:8} {topics:8}{len(found):7}{means[0]:9.3f}{means[1]:8.3f}{means[2]:8.4f}"
                f"{means[3]:8.4f}{sum(seconds):7.1f}",
                flush=True,
            )
            if given.out is not None:
                row = {"case": name, "topics": topics, "corpora": len(found)}
                row |= {"shares": means[0], "ratios": means[1], "width": means[2]}
                with given.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
