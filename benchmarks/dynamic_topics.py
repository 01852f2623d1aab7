"""Topics whose words drift: time and held-out score beside gensim's and tomotopy's dynamic topics.

    python benchmarks/dynamic_topics.py --out results.jsonl
    python benchmarks/dynamic_topics.py --out results.jsonl --corpus arxiv.npz --programs tempering
    python benchmarks/dynamic_topics.py --documents 1000 --words 300   # gensim ends within minutes

Five slices, ten topics. Without a corpus the documents are drawn: the log weights of the words go
at random from slice to slice, by a normal step of 0.5. Those of a corpus are cut in the order of
the file, over its first words. A fifth of the documents of each slice is held out, and predicted
with the topics of the slice (θ exact, by Gibbs sampling, α = 0.1). Each program runs in a process
of its own on one thread; results are appended, and what is there is not run again. "one model" is
our fit to all slices at once, which knows of no time; "truth" are the topics that documents were
drawn from. What is not installed is left out.
"""

import single_thread  # noqa: F401, I001  before numpy

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.evaluation import completion_score, split_documents
from tempering.workbench import topics_through_time

TOPICS, SLICES, LENGTH, STEP = 10, 5, 60, 0.5
ALPHA = 0.1
#: The step size of tomotopy, 0.01 by default: the best of 0.1, 0.3 and 1 on another drawn corpus.
FASTER = 0.1


def drawn(n_documents, n_words, seed):
    """Counts, slices and topics [T, K, V] of a corpus that drifts."""
    rng = np.random.default_rng([seed, 11])
    logs = np.log(rng.dirichlet(np.full(n_words, 0.1), TOPICS) + 1e-6)
    steps = rng.normal(0.0, STEP, (SLICES, TOPICS, n_words))
    steps[0] = 0.0
    topics = np.exp(logs + np.cumsum(steps, axis=0))
    topics /= topics.sum(axis=2, keepdims=True)
    times = np.sort(np.arange(n_documents) % SLICES)
    theta = rng.dirichlet(np.full(TOPICS, ALPHA), n_documents)
    counts = [rng.multinomial(LENGTH, row @ topics[t]) for row, t in zip(theta, times)]
    return sparse.csr_array(np.array(counts)), times, topics


def opened(path, n_documents, n_words, seed):
    """Documents of a file over its first words, in their order; another part for each seed."""
    counts = sparse.csr_array(sparse.load_npz(path))[:, :n_words].astype(np.int64)
    counts = counts[np.flatnonzero(counts.sum(axis=1) >= 10)]
    counts = counts[seed * n_documents : (seed + 1) * n_documents]
    return counts, np.arange(counts.shape[0]) * SLICES // counts.shape[0], None


def fit_tempering(counts, times, seed):
    return topics_through_time(
        counts,
        times,
        TOPICS,
        np.arange(SLICES + 1),
        estimator=LatentDirichletAllocation(n_jobs=1),
        random_state=seed,
    ).topics()


def fit_one_model(counts, times, seed):
    model = LatentDirichletAllocation(TOPICS, n_jobs=1, random_state=seed).fit(counts)
    return np.repeat(model.components_[None], SLICES, axis=0)


def fit_gensim(counts, times, seed):
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaSeqModel
    from gensim.utils import FakeDict

    corpus = list(Sparse2Corpus(counts, documents_columns=False))
    sizes = np.bincount(times, minlength=SLICES).tolist()
    model = LdaSeqModel(
        corpus, sizes, FakeDict(counts.shape[1]), num_topics=TOPICS, random_state=seed
    )
    chains = [np.exp(chain.e_log_prob) for chain in model.topic_chains]  # [V, T] of each topic
    return np.array(chains).transpose(2, 0, 1)


def fit_tomotopy(counts, times, seed, n_iterations=1000, **options):
    import tomotopy

    model = tomotopy.DTModel(k=TOPICS, t=SLICES, seed=seed, **options)
    for d in range(counts.shape[0]):
        row = counts[[d]]
        words = [str(v) for v in np.repeat(row.indices, row.data)]
        model.add_doc(words, timepoint=int(times[d]))
    model.train(n_iterations, workers=1)
    topics = np.full((SLICES, TOPICS, counts.shape[1]), 1e-12)
    columns = [int(word) for word in model.used_vocabs]
    for t in range(SLICES):
        for k in range(TOPICS):
            topics[t, k, columns] += model.get_topic_word_dist(k, timepoint=t)
    return topics


PROGRAMS = {
    "tempering": fit_tempering,
    "one model": fit_one_model,
    "tomotopy": fit_tomotopy,
    "tomotopy, faster steps": partial(fit_tomotopy, lr_a=FASTER),
    "gensim": fit_gensim,
}


def work(program, folder):
    """In a process of its own: fit, and put topics and CPU seconds aside."""
    given = np.load(folder / "given.npz")
    counts = sparse.csr_array(sparse.load_npz(folder / "counts.npz"))
    if program in ("tempering", "one model"):  # kernels are compiled, or read from disk
        PROGRAMS[program](counts[:50], np.arange(50) % SLICES, 0)
    start = time.process_time()
    topics = PROGRAMS[program](counts, given["times"], int(given["seed"]))
    np.savez(folder / "found.npz", topics=topics, seconds=time.process_time() - start)


def in_a_process(program, counts, times, seed):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sparse.save_npz(folder / "counts.npz", counts)
        np.savez(folder / "given.npz", times=times, seed=seed)
        done = subprocess.run([sys.executable, __file__, "--work", program, name])
        if done.returncode:
            return None
        found = np.load(folder / "found.npz")
        return found["topics"], float(found["seconds"])


def scores(topics, counts, times, seed):
    """Held-out nats a word of each slice."""
    told = []
    for t in range(SLICES):
        own = topics[t] / topics[t].sum(axis=1, keepdims=True)
        split = split_documents(counts[np.flatnonzero(times == t)], seed)
        told.append(completion_score(*split, own, ALPHA))
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--corpus", help="counts as .npz; drawn documents otherwise")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--out", type=Path, default=Path("dynamic-topics.jsonl"))
    given = parser.parse_args()
    if given.work:
        work(given.work[0], Path(given.work[1]))
        return
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    known = [json.loads(line) for line in lines]
    corpus = "drawn" if given.corpus is None else Path(given.corpus).stem
    for seed in given.seeds:
        options = (given.documents, given.words, seed)
        counts, times, truth = opened(given.corpus, *options) if given.corpus else drawn(*options)
        held_out = np.random.default_rng(seed).random(counts.shape[0]) < 0.2
        inside, outside = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        for program in [*given.programs, *(["truth"] if truth is not None else [])]:
            key = {"corpus": corpus, "documents": given.documents, "words": given.words}
            key |= {"seed": seed, "program": program}
            if any(key.items() <= each.items() for each in known):
                continue
            if program == "truth":
                found = truth, 0.0
            else:
                found = in_a_process(program, counts[inside], times[inside], seed)
            if found is None:
                continue
            told = scores(found[0], counts[outside], times[outside], seed)
            key |= {"seconds": round(found[1], 1), "scores": [round(s, 4) for s in told]}
            known.append(key)
            with given.out.open("a") as file:
                file.write(json.dumps(key) + "\n")
    print("corpus     seed  program                  CPU s    mean  slices")
    for each in known:
        slices = " ".join(f"{score:.3f}" for score in each["scores"])
        mean = np.mean(each["scores"])
        print(
            f"{each['corpus']:10}{each['seed']:5}  {each['program']:22}{each['seconds']:8.1f}"
            f"{mean:8.3f}  {slices}"
        )


if __name__ == "__main__":
    main()
