"""Whether topics stay on the subject of their seeds, by the strength of the seeds.

    python benchmarks/seeded_topics.py [--topics 20] [--seeds 2]
    python benchmarks/seeded_topics.py --corpus 20news.npz --vocabulary 20news.vocab.txt
    python benchmarks/seeded_topics.py --texts BBC_News.tsv.gz
    python-with-topica benchmarks/seeded_topics.py --rivals --strengths none 0.3 --texts ...

Five subjects have three seeds each. Drawn corpora: a topic stays if the true topic of its seeds is
the nearest to it (cosine of words, without the prior), and "found" is the mean cosine of all true
topics with the nearest found. A corpus: "in topic" is the part of the uses of other words of the
subject that are the topic's, and it stays if it has more of them than any other topic. Texts with
labels in the last column: it stays if most of its fifty first documents have the label, and "in
topic" is the part that do. Without seeds the topics that suit the subjects best are taken.
`--rivals`: topica's SeededLDA and KeyATM, too, with their defaults.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import csv
import gzip
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from tempering import LatentDirichletAllocation
from tempering.corpus import from_texts
from tempering.datasets import make_lda

STRENGTHS = ("none", "0.03", "0.1", "0.3", "1", "3")
RIVALS = ("SeededLDA", "KeyATM")

#: Three seeds of each subject, then words that tell whether it is there.
NEWS = {
    "hockey": "hockey nhl playoff; puck goalie leafs bruins rangers penguins ice coach",
    "space": "orbit nasa shuttle; moon launch spacecraft lunar satellite solar mission rocket",
    "guns": "gun guns firearms; weapons handgun militia amendment crime criminals nra defense",
    "medicine": "patients disease doctor; medical treatment drug symptoms pain cancer diet blood",
    "church": "jesus church bible; christ faith christian christians scripture holy sin heaven",
}
LABELS = {
    "business": "market bank economy",
    "entertainment": "film music actor",
    "politics": "election party minister",
    "sport": "match coach cup",
    "tech": "software computer internet",
}


class Fit(NamedTuple):
    """Words of each topic [K, V], and the topics of documents [D, K]."""

    counts: np.ndarray
    theta: np.ndarray


def fitted(X: Any, topics: int, seeds: Any, how: str, seed: int) -> Fit:
    """Topics with seeds, which are columns of X, of a strength; or without; or of a rival."""
    if how in RIVALS:
        return rival(X, topics, seeds, how, seed)
    options = {} if how == "none" else {"seed_topics": seeds, "seed_strength": float(how)}
    model = LatentDirichletAllocation(topics, random_state=seed, n_jobs=1, **options).fit(X)
    return Fit(np.maximum(model.components_ - model.topic_word_prior_, 0.0), model.transform(X))


def rival(X: Any, topics: int, seeds: Any, how: str, seed: int) -> Fit:
    import topica

    X = sparse.csr_matrix(X, dtype=np.int64)
    documents = [list(map(str, np.repeat(row.indices, row.data))) for row in X]
    named = {name: [str(v) for v in columns] for name, columns in seeds.items()}
    if how == "KeyATM":
        model = topica.KeyATM(named, num_topics=topics, seed=seed)
    else:
        model = topica.SeededLDA(named, residual=topics - len(named), seed=seed)
    model.fit(documents)
    theta = np.asarray(model.doc_topic)
    counts = np.zeros((topics, X.shape[1]))
    sizes = theta.T @ X.sum(axis=1)
    counts[:, [int(v) for v in model.vocabulary]] = np.asarray(sizes) * model.topic_word
    return Fit(counts, theta)


def chosen(fits: np.ndarray, how: str) -> np.ndarray:
    """The topic of each subject, of how well topics fit subjects [subjects, K]."""
    return linear_sum_assignment(-fits)[1] if how == "none" else np.arange(len(fits))


def drawn_corpus(topics: int, seed: int, how: str) -> tuple[float, float]:
    drawn = make_lda(1000, n_topics=topics, n_words=800, document_length=60, seed=seed)
    special = drawn.topics / drawn.topics.sum(axis=0)
    subjects = np.random.default_rng(seed).choice(topics, 5, replace=False)
    seeds = {}
    for k in subjects:
        frequent = np.argsort(-drawn.topics[k])[:40]
        seeds[str(k)] = [int(v) for v in frequent[np.argsort(-special[k, frequent])[:3]]]
    found = fitted(drawn.counts, topics, seeds, how, seed).counts
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    cosines = drawn.topics @ found.T / np.linalg.norm(drawn.topics, axis=1, keepdims=True)
    own = chosen(cosines[subjects], how)
    return float(np.mean(cosines[:, own].argmax(axis=0) == subjects)), cosines.max(axis=1).mean()


def news(X: Any, words: list[str], topics: int, seed: int, how: str) -> tuple[float, float]:
    place = {word: v for v, word in enumerate(words)}
    lists = {name: [part.split() for part in told.split(";")] for name, told in NEWS.items()}
    seeds = {name: [place[word] for word in first] for name, (first, _) in lists.items()}
    counts = fitted(X, topics, seeds, how, seed).counts
    uses = np.array([counts[:, [place[w] for w in others]].sum(1) for _, others in lists.values()])
    own = chosen(uses, how)
    parts = uses[range(5), own] / uses.sum(axis=1)
    return float(np.mean(uses.argmax(axis=1) == own)), float(parts.mean())


def texts(corpus: Any, labels: np.ndarray, topics: int, seed: int, how: str) -> Any:
    place = {word: v for v, word in enumerate(corpus.vocabulary)}
    seeds = {name: [place[word] for word in told.split()] for name, told in LABELS.items()}
    theta = fitted(corpus.counts, topics, seeds, how, seed).theta
    first = labels[np.argsort(-theta, axis=0)[:50]]  # [50, K]
    parts = np.array([(first == name).mean(axis=0) for name in seeds])
    own = chosen(parts, how)
    return float(np.mean(parts[range(5), own] > 0.5)), float(parts[range(5), own].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus")
    parser.add_argument("--vocabulary")
    parser.add_argument("--documents", type=int, default=6000)
    parser.add_argument("--texts")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--strengths", nargs="+", default=STRENGTHS)
    parser.add_argument("--rivals", action="store_true")
    given = parser.parse_args()
    if given.corpus:
        X = sparse.csr_matrix(sparse.load_npz(given.corpus)[: given.documents], dtype=np.float32)
        words = Path(given.vocabulary).read_text().split()
        run, second = partial(news, X, words, given.topics), "in topic"
    elif given.texts:
        with gzip.open(given.texts, "rt") as file:
            rows = list(csv.reader(file, delimiter="\t"))
        corpus, labels = from_texts([row[0] for row in rows]), np.array([row[-1] for row in rows])
        run, second = partial(texts, corpus, labels, given.topics), "in topic"
    else:
        run, second = partial(drawn_corpus, given.topics), "found"
    print(f"strength   stay  {second}  CPU s")
    for how in [*given.strengths, *(RIVALS if given.rivals else ())]:
        begun = time.process_time()
        stay, mean = np.mean([run(seed, how) for seed in range(given.seeds)], axis=0)
        seconds = (time.process_time() - begun) / given.seeds
        print(f"{how:>9}  {stay:4.0%}  {mean:.3f}  {seconds:5.1f}", flush=True)


if __name__ == "__main__":
    main()
