"""One import line changed: scikit-learn's LDA and ours with the number of topics and nothing else.

    python benchmarks/lda_drop_in.py --corpus arxiv.npz [--documents 20000] [--topics 100]

Both make ten passes by default, scikit-learn's in batch mode and on one thread, ours on all cores.
They take turns, and their seconds of the clock and of the processor are told, with held-out nats a
word (exact proportions by Gibbs sampling, α = 0.1) on the 2,000 documents that follow.
"""

import argparse
import statistics
import time
from pathlib import Path

from sklearn.decomposition import LatentDirichletAllocation as ScikitLearn

from lda_common import load_corpus, print_table, write_json
from tempering import LatentDirichletAllocation
from tempering.evaluation import completion_score, split_documents

TEST_DOCUMENTS = 2000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="counts, by scipy's save_npz")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the results here too")
    options = parser.parse_args()
    corpus = load_corpus(options.corpus)
    train, rest = corpus[: options.documents], corpus[options.documents :]
    test = split_documents(rest[:TEST_DOCUMENTS], seed=0)
    LatentDirichletAllocation(options.topics, max_iter=1).fit(train[:1000])  # loads the kernels
    runs = {"scikit-learn": [], "tempering": []}
    for seed in range(options.turns):
        for name, program in (
            ("scikit-learn", ScikitLearn),
            ("tempering", LatentDirichletAllocation),
        ):
            wall, processor = time.perf_counter(), time.process_time()
            model = program(n_components=options.topics, random_state=seed).fit(train)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
            runs[name].append((wall, processor, completion_score(*test, topics, 0.1, "gibbs")))
            print(name, seed, *runs[name][-1], flush=True)
    rows = []
    for name, values in runs.items():
        wall, processor, score = (statistics.mean(column) for column in zip(*values))
        rows.append({"program": name, "wall, s": wall, "CPU s": processor, "held-out": score})
    for row in rows:
        row["x wall"] = rows[0]["wall, s"] / row["wall, s"]
        row["x CPU"] = rows[0]["CPU s"] / row["CPU s"]
    print_table(f"{options.documents} documents, {options.topics} topics", rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
