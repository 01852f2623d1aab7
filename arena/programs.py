"""The programs, each with the settings that its own guide recommends.

A program is a generator that yields twice: first nothing, when the documents are in the form that
it takes, and then its topics [K, V]. What it does in between is timed. Only topics are compared:
the score brings proportions and a prior of its own. Nothing is imported before it is needed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

#: Sweeps of all Gibbs samplers; passes of those that go through documents in batches.
SWEEPS, PASSES = 500, 10


class Task(NamedTuple):
    """What a program is given."""

    counts: sparse.csr_array
    n_topics: int
    seed: int
    threads: int
    room: Path  # an empty folder


class Program(NamedTuple):
    """How a program is run, and what has to be installed for it."""

    run: Callable[[Task], Iterator[Any]]
    package: str  # a Python package, or a command
    settings: str


def installed(name: str) -> str | None:
    """The version of a program that is here; None if it is not."""
    package = PROGRAMS[name].package
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown" if which(package) or find_spec(package) else None


def tempering(task: Task) -> Iterator[Any]:
    """This package, nothing set."""
    from tempering import LatentDirichletAllocation

    settings = {"n_jobs": task.threads, "random_state": task.seed}
    # Kernels are compiled, or loaded; documents without words would be refused.
    some = task.counts[np.diff(task.counts.indptr) > 0][:50]
    LatentDirichletAllocation(2, max_iter=2, **settings).fit(some)
    yield
    yield LatentDirichletAllocation(task.n_topics, **settings).fit(task.counts).components_


def scikit_learn(task: Task, **settings: Any) -> Iterator[Any]:
    """scikit-learn with its defaults, or in minibatches."""
    from sklearn.decomposition import LatentDirichletAllocation

    settings |= {"max_iter": PASSES, "n_jobs": task.threads, "random_state": task.seed}
    counts = task.counts.astype(np.float64)
    yield
    yield LatentDirichletAllocation(task.n_topics, **settings).fit(counts).components_


def gensim(task: Task) -> Iterator[Any]:
    """gensim with the settings of its tutorial; it has one thread, however many are asked for."""
    from gensim.models import LdaModel
    from gensim.utils import FakeDict

    texts = [[(int(word), int(n)) for word, n in zip(*row)] for row in _rows(task.counts)]
    settings = {"alpha": "auto", "eta": "auto", "chunksize": 2000, "passes": 20, "iterations": 400}
    settings |= {"id2word": FakeDict(task.counts.shape[1]), "eval_every": None}
    yield
    yield LdaModel(texts, task.n_topics, random_state=task.seed, **settings).get_topics()


def tomotopy(task: Task) -> Iterator[Any]:
    """tomotopy: collapsed Gibbs sampling with a learned α."""
    from tomotopy import LDAModel

    # A seed of 0 would be a new one each time.
    model = LDAModel(k=task.n_topics, alpha=1 / task.n_topics, eta=0.05, seed=task.seed + 1)
    for tokens in _texts(task.counts):
        model.add_doc(tokens)
    yield
    model.train(SWEEPS, workers=task.threads)
    seen = np.array([model.get_topic_word_dist(k) for k in range(task.n_topics)])
    yield _spread(seen, model.used_vocabs, task)


def topica(task: Task, sampler: str) -> Iterator[Any]:
    """topica: a port of MALLET's sampler, or Warp."""
    from topica import LDA

    texts = _texts(task.counts)
    settings = {"seed": task.seed, "num_threads": task.threads, "burn_in": 100}
    yield
    model = LDA(task.n_topics, sampler=sampler, **settings)
    model.fit(texts, iters=SWEEPS, keep_theta_draws=False)
    yield _spread(np.asarray(model.topic_word), model.vocabulary, task)


def vowpal_wabbit(task: Task) -> Iterator[Any]:
    """Vowpal Wabbit, online. Its start is always the same: a seed is an order of documents."""
    from vowpalwabbit import Workspace

    n_documents, n_words = task.counts.shape
    bits = max(int(n_words - 1).bit_length(), 1)
    rows = _rows(task.counts[np.random.default_rng(task.seed).permutation(n_documents)])
    pairs = (" ".join(f"{word}:{n}" for word, n in zip(*row)) for row in rows)
    (task.room / "documents").write_text("".join(f"| {line}\n" for line in pairs))
    yield
    Workspace(
        f"--quiet -d {task.room}/documents --readable_model {task.room}/topics --passes {PASSES} "
        f"--cache_file {task.room}/cache --lda {task.n_topics} --lda_D {n_documents} -b {bits} "
        f"--lda_alpha {1 / task.n_topics} --lda_rho 0.05 --minibatch 256 --power_t 0.5 "
        "--initial_t 1"
    ).finish()
    lines = (task.room / "topics").read_text().splitlines()[-(2**bits) :]
    yield np.array([line.split() for line in lines], float)[:n_words, 1:].T


def mallet(task: Task) -> Iterator[Any]:
    """MALLET, by its command, with a learned α; the start of the Java machine is timed too."""

    def call(command: str) -> None:
        words = [str(which("mallet")), *command.split()]
        subprocess.run(words, check=True, capture_output=True, cwd=task.room)

    lines = (f"{d} X {' '.join(tokens)}\n" for d, tokens in enumerate(_texts(task.counts)))
    (task.room / "documents").write_text("".join(lines))
    call(r"import-file --input documents --output stored --keep-sequence --token-regex \S+")
    yield
    call(
        f"train-topics --input stored --num-topics {task.n_topics} --num-iterations {SWEEPS} "
        f"--optimize-interval 10 --num-threads {task.threads} --random-seed {task.seed + 1} "
        "--topic-word-weights-file weights"
    )
    rows = [line.split("\t") for line in (task.room / "weights").read_text().splitlines()]
    seen = np.array([float(row[2]) for row in rows]).reshape(task.n_topics, -1)
    yield _spread(seen, [row[1] for row in rows[: seen.shape[1]]], task)


def _rows(counts: sparse.csr_array) -> list[tuple[np.ndarray, np.ndarray]]:
    """Words and their numbers, of each document that has any."""
    ends = zip(counts.indptr, counts.indptr[1:])
    return [(counts.indices[a:b], counts.data[a:b]) for a, b in ends if b > a]


def _texts(counts: sparse.csr_array) -> list[list[str]]:
    """The columns of each document's words, as strings, in the order of the vocabulary."""
    return [np.repeat(words, n.astype(int)).astype(str).tolist() for words, n in _rows(counts)]


def _spread(seen: np.ndarray, words: Sequence[str], task: Task) -> np.ndarray:
    """Topics over all columns: words that no document has get what a word without counts gets."""
    topics = np.repeat(seen.min(axis=1, keepdims=True), task.counts.shape[1], axis=1)
    topics[:, np.array(list(words), dtype=int)] = seen
    return topics


#: The one that the others are compared with.
OWN = "tempering"
ONLINE = {"learning_method": "online", "learning_offset": 1024.0, "batch_size": 100}
GIBBS = f"{SWEEPS} sweeps, learned α"
PROGRAMS = {
    OWN: Program(tempering, "tempering", "nothing set"),
    "scikit-learn": Program(scikit_learn, "scikit-learn", "nothing set: batch, 10 passes"),
    "scikit-learn, online": Program(
        partial(scikit_learn, **ONLINE), "scikit-learn", "10 passes in batches of 100"
    ),
    "gensim": Program(gensim, "gensim", "its tutorial's: 20 passes, learned priors"),
    "tomotopy": Program(tomotopy, "tomotopy", f"{GIBBS}, η = 0.05"),
    "topica, sparse": Program(partial(topica, sampler="sparse"), "topica", GIBBS),
    "topica, Warp": Program(partial(topica, sampler="warp"), "topica", GIBBS),
    "MALLET": Program(mallet, "mallet", GIBBS),
    "Vowpal Wabbit": Program(vowpal_wabbit, "vowpalwabbit", "10 passes in batches of 256"),
}
