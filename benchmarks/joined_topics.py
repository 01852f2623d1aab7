"""How many topics does `find_topics` leave, and how well do they predict?

    python benchmarks/joined_topics.py --topics 10 30 100 --seeds 5 [--most 150]
    python benchmarks/joined_topics.py --corpus counts.npz --grid 25 50 100 150
    python benchmarks/joined_topics.py --gensim --topics 10 30 --seeds 5   # with gensim installed

Drawn corpora: documents of 80 words, Σα = 1 (or `--sum-of-alpha`), η = 0.05; the seed draws the
corpus and leads the fits. Of each is told how many topics are left; nats a held-out word, of 500
other documents (of a real corpus, a tenth) by Gibbs; that of the best of fits with fixed numbers of
topics, all with the same weight Σα of the prior, where the best is chosen on as many documents
again; and CPU seconds, beside those of one fit with `--most` topics. `--gensim` has `HdpModel` in
the place of `find_topics`, and counts its topics of more than 1% of the words.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.evaluation import Split, completion_score, split_documents
from tempering.workbench import find_topics

#: Documents and words of a corpus with so many topics, as in `number_of_topics.py`.
SIZES = {10: (1000, 1000), 30: (2000, 1500), 100: (5000, 3000)}

#: Fixed numbers of topics beside the real one.
NEAR = (0.8, 1.0, 1.25)

N_TEST = 500


class Data(NamedTuple):
    documents: Any
    validation: Split  # chooses among fixed numbers
    test: Split


def cut(counts: Any, n: int) -> Data:
    """The first n documents are the test, the next n the validation."""
    return Data(counts[2 * n :], split_documents(counts[n : 2 * n]), split_documents(counts[:n]))


def drawn(n_topics: int, total: float, seed: int) -> Data:
    n, n_words = SIZES[n_topics]
    alpha = total / n_topics
    options = {"n_words": n_words, "document_length": 80, "alpha": alpha, "eta": 0.05}
    return cut(make_lda(n + 2 * N_TEST, n_topics, **options, seed=seed).counts, N_TEST)


def read(path: str) -> Data:
    counts = sparse.csr_array(sparse.load_npz(path)).astype(np.int64)
    return cut(counts, counts.shape[0] // 10)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    return work(), time.process_time() - started


def fixed(documents: Any, n_topics: int, seed: int) -> tuple[Any, float]:
    model = LatentDirichletAllocation(n_topics, n_jobs=1, random_state=seed)
    return timed(lambda: model.fit(documents))


def score(split: Split, topics: Any, prior: Any) -> float:
    topics = topics / topics.sum(axis=1, keepdims=True, dtype=np.float64)
    return completion_score(*split, topics, prior, n_threads=1)


def joined(data: Data, weight: float, options: Any, seed: int) -> dict[str, Any]:
    estimator = LatentDirichletAllocation(n_jobs=1)
    model, seconds = timed(
        lambda: find_topics(data.documents, options.most, estimator=estimator, random_state=seed)
    )
    n = model.n_components
    prior = model.doc_topic_prior_ / model.doc_topic_prior_.sum()
    even = np.full(n, 1 / n)
    scores = [score(data.test, model.components_, weight * w) for w in (even, prior)]
    plain = fixed(data.documents, options.most, seed)[1]
    return {"topics": n, "score": scores[0], "own": scores[1], "seconds": seconds, "plain": plain}


def gensim_hdp(data: Data, weight: float, options: Any, seed: int) -> dict[str, Any]:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import HdpModel

    corpus = list(Sparse2Corpus(sparse.csc_matrix(data.documents.T)))
    words = {v: str(v) for v in range(data.documents.shape[1])}
    model, seconds = timed(lambda: HdpModel(corpus, words, random_state=seed))
    prior, topics = model.hdp_to_lda()
    # Its weights α, and of what θ holds in the mean: what part of the words.
    shares = np.zeros(len(topics))
    for document in corpus:
        gamma = np.asarray(model.inference([document])[0])
        shares += gamma / gamma.sum() * sum(count for _, count in document)
    n = int(np.sum(shares > 0.01 * shares.sum()))
    return {
        "topics": n,
        "score": score(data.test, topics, weight / len(topics)),
        "own": score(data.test, topics, weight * prior / prior.sum()),
        "seconds": seconds,
    }


def told(name: str, seed: int, data: Data, weight: float, options: Any) -> None:
    find = gensim_hdp if options.gensim else joined
    row = find(data, weight, options, seed)
    near = [round(part * int(name)) for part in NEAR] if name.isdigit() else []
    fits = {n: fixed(data.documents, n, seed)[0].components_ for n in options.grid or near}
    by_validation = {n: score(data.validation, fits[n], weight / n) for n in fits}
    scores = {n: score(data.test, fits[n], weight / n) for n in fits}
    best = max(by_validation, key=by_validation.__getitem__)
    cost = f" of {row['plain']:.1f} a fit" if "plain" in row else ""
    print(
        f"{name} seed {seed}: {row['topics']} topics, score {row['score']:.4f} "
        f"({row['own']:.4f} with its own α); fixed {rounded(scores)}, best {best}, difference "
        f"{row['score'] - scores[best]:+.4f}; {row['seconds']:.1f} CPU s{cost}",
        flush=True,
    )


def rounded(scores: dict[int, float]) -> dict[int, float]:
    return {n: round(value, 4) for n, value in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--sum-of-alpha", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=150)
    parser.add_argument("--corpus", help="counts as scipy.sparse.save_npz writes them")
    parser.add_argument("--weight", type=float, default=4.0, help="Σα, for a corpus")
    parser.add_argument("--grid", type=int, nargs="+", help="fixed numbers of topics")
    parser.add_argument("--gensim", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of fits with too many topics
    LatentDirichletAllocation(2).fit(drawn(10, 1.0, 0).documents[:100])  # compiles
    find_topics(drawn(10, 1.0, 0).documents[:100], 6)
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        if options.corpus:
            told(options.corpus, seed, read(options.corpus), options.weight, options)
            continue
        for n in options.topics:
            weight = options.sum_of_alpha
            told(str(n), seed, drawn(n, weight, seed), weight, options)


if __name__ == "__main__":
    main()
