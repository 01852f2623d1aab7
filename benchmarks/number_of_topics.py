"""Does `choose_n_topics` find how many topics a drawn corpus has, and at what cost?

    python benchmarks/number_of_topics.py --seeds 20 [--topics 10 30 100] [--jobs 2] [--out a.jsonl]
    python benchmarks/number_of_topics.py --sum-of-alpha 10
    python benchmarks/number_of_topics.py --corpus counts.npz --range 5 100 --seeds 3

Documents of 80 words, Σα = 1 (or `--sum-of-alpha`), η = 0.05; the seed draws the corpus and leads
the search, which looks from 5 to 150 topics. Told are the answers, how many are within 20%, the
passes of a search in those of a plain fit, and CPU seconds, in those of plain fits with as many
topics as the answer and with the most. `--out` gets a line of JSON a search.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import json
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.workbench import choose_n_topics

#: Documents and words of a corpus with so many topics.
SIZES = {10: (1000, 1000), 30: (2000, 1500), 100: (5000, 3000)}


def drawn(n_topics: int, total: float, seed: int) -> Any:
    n_documents, n_words = SIZES[n_topics]
    alpha = total / n_topics
    options = {"n_words": n_words, "document_length": 80, "alpha": alpha, "eta": 0.05}
    return make_lda(n_documents, n_topics, **options, seed=seed).counts


def compile_kernels() -> None:
    """So that no time is told in which kernels are compiled, or read from disk."""
    warnings.simplefilter("ignore")  # of fits with too many topics
    X = drawn(10, 1.0, 0)[:100]
    choose_n_topics(X, [2, 4, 8])
    LatentDirichletAllocation(120, max_iter=3).fit(X)


def search(case: dict[str, Any]) -> dict[str, Any]:
    """The answer, the passes of the search, and CPU seconds of it and of plain fits."""
    seed = case["seed"]
    if "corpus" in case:
        X = sparse.csr_array(sparse.load_npz(case["corpus"])).astype(np.int64)
    else:
        X = drawn(case["topics"], case["sum_of_alpha"], seed)
    plain = LatentDirichletAllocation(n_jobs=1)
    started = time.process_time()
    answer = choose_n_topics(X, tuple(case["range"]), estimator=plain, random_state=seed)
    told = {"answer": answer.n_topics, "weight": answer.prior_weight, "passes": answer.cost}
    told["seconds"] = time.process_time() - started
    for name, n_topics in (("plain", answer.n_topics), ("plain, most", case["range"][1])):
        started = time.process_time()
        LatentDirichletAllocation(n_topics, n_jobs=1, random_state=seed).fit(X)
        told[name] = time.process_time() - started
    trials = [[trial.round, trial.n_topics, round(trial.score, 4)] for trial in answer.trials]
    return {**case, **told, "trials": trials}


def tell(name: str, rows: list[dict[str, Any]], n_topics: int | None) -> None:
    answers = Counter(row["answer"] for row in rows)
    near = ""
    if n_topics is not None:
        n = sum(abs(row["answer"] - n_topics) <= 0.2 * n_topics for row in rows)
        near = f"{n} of {len(rows)} within 20%, "
    by_name = {key: [row["seconds"] / row[key] for row in rows] for key in ("plain", "plain, most")}
    ratios = [f"{np.mean(r):.2f} ({min(r):.2f} to {max(r):.2f})" for r in by_name.values()]
    seconds, passes = [row["seconds"] for row in rows], [row["passes"] for row in rows]
    print(
        f"{name}: {near}{dict(sorted(answers.items()))}; {min(seconds):.1f} to "
        f"{max(seconds):.1f} CPU s, that is {ratios[0]} plain fits, {ratios[1]} with the most "
        f"topics; passes of {max(passes):.2f} at most",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--sum-of-alpha", type=float, nargs="+", default=[1.0])
    parser.add_argument("--corpus", nargs="+", help="counts as scipy.sparse.save_npz writes them")
    parser.add_argument("--range", type=int, nargs=2, default=[5, 150])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    groups: list[dict[str, Any]] = [
        {"topics": n, "sum_of_alpha": total} for total in given.sum_of_alpha for n in given.topics
    ]
    if given.corpus:
        groups = [{"corpus": path} for path in given.corpus]
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    with ProcessPoolExecutor(given.jobs, initializer=compile_kernels) as pool:
        # The longest first, so that none is left over at the end.
        running = [
            (group, [pool.submit(search, group | {"range": given.range, "seed": s}) for s in seeds])
            for group in reversed(groups)
        ]
        for group, searches in running:
            rows = [each.result() for each in searches]
            if given.out is not None:
                with given.out.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)
            tell(", ".join(map(str, group.values())), rows, group.get("topics"))


if __name__ == "__main__":
    main()
