"""Corpora of the topic-model experiments: those given by path, or one drawn from the model."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from scipy import sparse

from reproduction.experiment import Case, Row, Setting
from tempering.datasets import make_lda
from tempering.evaluation import Split, split_documents

#: The corpus of the quick form.
GENERATED = "generated"
GENERATED_DOCUMENTS, GENERATED_TOPICS = 400, 10
#: Documents of a corpus, its last ones, that no topics are fitted to.
HELD_OUT, GENERATED_HELD_OUT = 1000, 200


class Documents(NamedTuple):
    """Documents to learn from, and others to score on."""

    train: sparse.csr_matrix
    held_out: sparse.csr_matrix
    split: Split
    vocabulary: list[str] | None


def corpus_names(setting: Setting) -> list[str]:
    """Names of the corpora to run on; the full form needs some."""
    if setting.scale == "quick":
        return [GENERATED]
    if not setting.corpora:
        raise ValueError(
            "topic models at full scale need a corpus: give --corpus PATH, counts as a file such "
            "as scipy.sparse.save_npz writes (or --scale quick)."
        )
    names = [path.stem for path in setting.corpora]
    if len(set(names)) < len(names):
        raise ValueError(f"--corpus: two corpora have one name, {', '.join(names)}: rename a file.")
    return names


def first_corpus(setting: Setting, most: int) -> Case:
    """The part of a case that says on which documents: at most so many of the first corpus."""
    (name, *_) = corpus_names(setting)
    if setting.scale == "quick":
        return {"corpus": name, "documents": GENERATED_DOCUMENTS}
    return {"corpus": name, "documents": min(most, count_documents(name, setting))}


def load_documents(case: Case, setting: Setting) -> Documents:
    """The documents of a case: ``case["documents"]`` of the corpus named ``case["corpus"]``."""
    return _load(_path_of(case["corpus"], setting), case["documents"])


def count_documents(name: str, setting: Setting) -> int:
    """How many documents of a corpus can be learned from."""
    path = _path_of(name, setting)
    n = _read(path)[0].shape[0]
    if n <= HELD_OUT:
        raise ValueError(
            f"{path} has {n} documents, of which the last {HELD_OUT} are held out: give a corpus "
            "of more."
        )
    return n - HELD_OUT


def described(row: Row) -> str:
    """The data and the size of a run, in words."""
    source = "documents drawn from the model" if row["corpus"] == GENERATED else row["corpus"]
    return f"{source}: {row['documents']:,} documents, {row['passes']:g} passes"


def _path_of(name: str, setting: Setting) -> Path | None:
    return next((path for path in setting.corpora if path.stem == name), None)


@lru_cache(maxsize=2)
def _load(path: Path | None, documents: int) -> Documents:
    counts, vocabulary = _read(path)
    held_out = counts[counts.shape[0] - (GENERATED_HELD_OUT if path is None else HELD_OUT) :]
    return Documents(counts[:documents], held_out, split_documents(held_out, seed=0), vocabulary)


@lru_cache(maxsize=2)
def _read(path: Path | None) -> tuple[Any, list[str] | None]:
    if path is not None:
        from tempering.corpus import read  # formats that generated documents do not need

        corpus = read(path)
        return sparse.csr_matrix(corpus.counts), corpus.vocabulary
    made = make_lda(
        GENERATED_DOCUMENTS + GENERATED_HELD_OUT,
        GENERATED_TOPICS,
        n_words=300,
        document_length=50.0,
        seed=0,
    )
    return sparse.csr_matrix(made.counts), None
