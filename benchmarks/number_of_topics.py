"""Does `choose_n_topics` find how many topics a drawn corpus has?

    python benchmarks/number_of_topics.py --seeds 20 [--topics 10 30 100] [--jobs 2]

Documents of 80 words, Σα = 1 (or `--sum-of-alpha`), η = 0.05; the seed draws the corpus and leads
the search, which looks from 5 to 150 topics. Told are the answers, how many are within 20%, what a
search costs in plain fits, and CPU seconds.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tempering.datasets import make_lda
from tempering.workbench import choose_n_topics

#: Documents and words of a corpus with so many topics.
SIZES = {10: (1000, 1000), 30: (2000, 1500), 100: (5000, 3000)}


def search(n_topics: int, total: float, seed: int) -> tuple[int, float, float]:
    """The answer, its cost in plain fits, and CPU seconds."""
    n_documents, n_words = SIZES[n_topics]
    corpus = make_lda(
        n_documents,
        n_topics,
        n_words=n_words,
        document_length=80,
        alpha=total / n_topics,
        eta=0.05,
        seed=seed,
    )
    started = time.process_time()
    choice = choose_n_topics(corpus.counts, (5, 150), random_state=seed)
    return choice.n_topics, choice.cost, time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--sum-of-alpha", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        for n_topics in options.topics:
            found = list(
                pool.map(
                    search,
                    [n_topics] * options.seeds,
                    [options.sum_of_alpha] * options.seeds,
                    range(options.seeds),
                )
            )
            answers, costs, seconds = zip(*found)
            near = sum(abs(answer - n_topics) <= 0.2 * n_topics for answer in answers)
            print(
                f"{n_topics} topics: {near} of {options.seeds} within 20%, "
                f"{dict(sorted(Counter(answers).items()))}; {max(costs):.2f} plain fits, "
                f"{min(seconds):.0f} to {max(seconds):.0f} CPU seconds",
                flush=True,
            )


if __name__ == "__main__":
    main()
