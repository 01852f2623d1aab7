"""The programs, each with the settings that its own guide recommends.

A program is prepared with the documents in the form that it takes, which is not timed; what that
gives is its fit, ready to run, which returns its topics [K, V]. Only these are compared: the score
brings proportions and a prior of its own. Nothing of a program is imported before it is prepared.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

#: Sweeps of all Gibbs samplers; passes of those that go through documents in batches.
SWEEPS, PASSES = 500, 10

Fit = Callable[[], np.ndarray]


class Task(NamedTuple):
    """What a program is given."""

    counts: sparse.csr_array
    n_topics: int
    seed: int
    threads: int
    room: Path  # an empty folder


class Program(NamedTuple):
    """How a program is fitted, and what has to be installed for it."""

    prepare: Callable[[Task], Fit]
    package: str  # a Python package, or a command
    settings: str
    most_words: float = np.inf  # of a document, on average


def installed(name: str) -> str | None:
    """The version of a program that is here; None if it is not."""
    package = PROGRAMS[name].package
    if name == OWN:
        import tempering

        return tempering.__version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "on the path" if which(package) else None


def prepare_tempering(task: Task) -> Fit:
    """This package, nothing set."""
    from tempering import LatentDirichletAllocation

    def fit(counts: Any, k: int, **settings: Any) -> np.ndarray:
        model = LatentDirichletAllocation(
            k, n_jobs=task.threads, random_state=task.seed, **settings
        )
        return model.fit(counts).components_

    fit(task.counts[:50], 2, max_iter=2)  # kernels are compiled, or loaded
    return partial(fit, task.counts, task.n_topics)


def prepare_sklearn(task: Task, **settings: Any) -> Fit:
    """scikit-learn with its defaults, or in minibatches."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        task.n_topics, max_iter=PASSES, n_jobs=task.threads, random_state=task.seed, **settings
    )
    counts = task.counts.astype(np.float64)
    return lambda: model.fit(counts).components_


def prepare_gensim(task: Task) -> Fit:
    """gensim with the settings of its tutorial."""
    from gensim.models import LdaModel
    from gensim.utils import FakeDict

    documents = [
        [(int(word), int(n)) for word, n in zip(words, numbers)]
        for words, numbers in _rows(task.counts)
    ]

    def fit() -> np.ndarray:
        model = LdaModel(
            documents,
            id2word=FakeDict(task.counts.shape[1]),
            num_topics=task.n_topics,
            alpha="auto",
            eta="auto",
            chunksize=2000,
            passes=20,
            iterations=400,
            eval_every=None,
            random_state=task.seed,
        )
        return model.get_topics()

    return fit


def prepare_tomotopy(task: Task) -> Fit:
    """tomotopy: collapsed Gibbs sampling with a learned α."""
    from tomotopy import LDAModel

    # A seed of 0 would be a new one each time.
    model = LDAModel(k=task.n_topics, alpha=1 / task.n_topics, eta=0.05, seed=task.seed + 1)
    for tokens in _texts(task.counts):
        model.add_doc(tokens)

    def fit() -> np.ndarray:
        model.train(SWEEPS, workers=task.threads)
        seen = np.array([model.get_topic_word_dist(k) for k in range(task.n_topics)])
        return _spread(seen, model.used_vocabs, task)

    return fit


def prepare_topica(task: Task, sampler: str) -> Fit:
    """topica: a port of MALLET's sampler, or Warp."""
    from topica import LDA

    model = LDA(
        task.n_topics, sampler=sampler, seed=task.seed, num_threads=task.threads, burn_in=100
    )
    texts = _texts(task.counts)

    def fit() -> np.ndarray:
        model.fit(texts, iters=SWEEPS, keep_theta_draws=False)
        return _spread(np.asarray(model.topic_word), model.vocabulary, task)

    return fit


def prepare_bitermplus(task: Task) -> Fit:
    """bitermplus: topics of pairs of words, for short documents."""
    import bitermplus

    documents = [np.array(tokens, int) for tokens in _texts(task.counts)]
    pairs = bitermplus.get_biterms(documents)
    words = np.arange(task.counts.shape[1]).astype(str)
    counts = sparse.csr_matrix(task.counts.astype(np.int64))
    alpha = 50 / task.n_topics
    model = bitermplus.BTM(counts, words, task.n_topics, alpha=alpha, seed=task.seed)

    def fit() -> np.ndarray:
        model.fit(pairs, iterations=SWEEPS, verbose=False)
        return model.matrix_topics_words_

    return fit


def prepare_vowpal_wabbit(task: Task) -> Fit:
    """Vowpal Wabbit: online variational inference."""
    from vowpalwabbit import Workspace

    data, model = task.room / "documents.vw", task.room / "topics.txt"
    n_documents, n_words = task.counts.shape
    data.write_text(
        "".join(
            f"| {' '.join(f'{word}:{n}' for word, n in zip(words, numbers))}\n"
            for words, numbers in _rows(task.counts)
        )
    )
    arguments = (
        f"--quiet -d {data} --readable_model {model} --cache_file {task.room / 'cache'} "
        f"--passes {PASSES} --lda {task.n_topics} --lda_D {n_documents} --minibatch 256 "
        f"--lda_alpha {1 / task.n_topics} --lda_rho 0.05 --power_t 0.5 --initial_t 1 "
        f"--random_seed {task.seed + 1} -b {max(int(n_words - 1).bit_length(), 1)}"
    )

    def fit() -> np.ndarray:
        Workspace(arguments).finish()
        lines = model.read_text().splitlines()[-(2 ** max(int(n_words - 1).bit_length(), 1)) :]
        weights = np.array([line.split() for line in lines], float)
        assert (weights[:, 0] == np.arange(len(weights))).all()
        return weights[:n_words, 1:].T

    return fit


def prepare_mallet(task: Task) -> Fit:
    """MALLET, by its command, with a learned α; the start of the Java machine is timed too."""
    lines = (f"{d} X {' '.join(tokens)}" for d, tokens in enumerate(_texts(task.counts)))
    (task.room / "documents.txt").write_text("\n".join(lines) + "\n")
    stored, weights = task.room / "documents.mallet", task.room / "weights.txt"

    def mallet(**options: Any) -> None:
        command = [str(which("mallet")), options.pop("command")]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        subprocess.run(command, check=True, capture_output=True)

    mallet(
        command="import-file",
        input=task.room / "documents.txt",
        output=stored,
        keep_sequence="TRUE",
        token_regex=r"\S+",
    )

    def fit() -> np.ndarray:
        mallet(
            command="train-topics",
            input=stored,
            num_topics=task.n_topics,
            num_iterations=SWEEPS,
            optimize_interval=10,
            num_threads=task.threads,
            random_seed=task.seed + 1,
            topic_word_weights_file=weights,
        )
        rows = [line.split("\t") for line in weights.read_text().splitlines()]
        seen = np.array([float(row[2]) for row in rows]).reshape(task.n_topics, -1)
        return _spread(seen, [row[1] for row in rows[: seen.shape[1]]], task)

    return fit


def _rows(counts: sparse.csr_array) -> Sequence[tuple[np.ndarray, np.ndarray]]:
    """Words and their numbers, of each document that has any."""
    ends = zip(counts.indptr, counts.indptr[1:])
    return [(counts.indices[a:b], counts.data[a:b]) for a, b in ends if b > a]


def _texts(counts: sparse.csr_array) -> list[list[str]]:
    """The columns of each document's words, as strings, in the order of the vocabulary."""
    return [
        np.repeat(words, numbers.astype(int)).astype(str).tolist()
        for words, numbers in _rows(counts)
    ]


def _spread(seen: np.ndarray, words: Sequence[str], task: Task) -> np.ndarray:
    """Topics over all columns: words that no document has get what a word without counts gets."""
    topics = np.repeat(seen.min(axis=1, keepdims=True), task.counts.shape[1], axis=1)
    topics[:, np.array(list(words), dtype=int)] = seen
    return topics


ONLINE = {
    "learning_method": "online",
    "learning_offset": 1024.0,
    "learning_decay": 0.7,
    "batch_size": 100,
}

#: The one that the others are compared with.
OWN = "tempering"
PROGRAMS = {
    OWN: Program(prepare_tempering, "tempering", "nothing set"),
    "scikit-learn": Program(prepare_sklearn, "scikit-learn", "its defaults: batch, 10 passes"),
    "scikit-learn, online": Program(
        partial(prepare_sklearn, **ONLINE), "scikit-learn", "10 passes in batches of 100"
    ),
    "gensim": Program(prepare_gensim, "gensim", "its tutorial: 20 passes, learned priors"),
    "tomotopy": Program(prepare_tomotopy, "tomotopy", f"{SWEEPS} sweeps, learned α, η = 0.05"),
    "topica, sparse": Program(
        partial(prepare_topica, sampler="sparse"), "topica", f"{SWEEPS} sweeps, learned priors"
    ),
    "topica, Warp": Program(
        partial(prepare_topica, sampler="warp"), "topica", f"{SWEEPS} sweeps, learned priors"
    ),
    "MALLET": Program(prepare_mallet, "mallet", f"{SWEEPS} sweeps, learned priors"),
    "Vowpal Wabbit": Program(prepare_vowpal_wabbit, "vowpalwabbit", "10 passes in batches of 256"),
    "bitermplus": Program(
        prepare_bitermplus, "bitermplus", f"{SWEEPS} sweeps; short documents only", most_words=30
    ),
}
