"""The programs whose speed is compared, with the same learning rate, and their batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation as SklearnLDA

from tempering import LatentDirichletAllocation

BATCH_SIZE = 256

#: Learning rate of all programs: scikit-learn's default offset, and the decay they share.
OFFSET, DECAY = 10.0, 0.7

Batches = Sequence[sparse.csr_matrix]


def as_batches(corpus: sparse.csr_matrix, size: int, n: int) -> Batches:
    """The first n batches; float64, which scikit-learn would convert them to inside."""
    if n * size > corpus.shape[0]:
        raise SystemExit(f"the corpus must have {n * size} documents; it has {corpus.shape[0]}.")
    return [corpus[i * size : (i + 1) * size].astype(np.float64) for i in range(n)]


def new_sklearn(k: int, n_documents: int) -> SklearnLDA:
    """scikit-learn with its defaults."""
    return SklearnLDA(
        k, learning_offset=OFFSET, learning_decay=DECAY, total_samples=n_documents, random_state=0
    )


def new_own(k: int, n_documents: int, tempering: str | None) -> LatentDirichletAllocation:
    """This package with the bound of the paper, and the same learning rate."""
    return LatentDirichletAllocation(
        k,
        tempering=tempering,
        update="variational",
        learning_offset=OFFSET,
        learning_decay=DECAY,
        total_samples=n_documents,
        batch_size=BATCH_SIZE,
        doc_update_tol=1e-3,
        n_jobs=1,
        random_state=0,
    )


def new_gensim(k: int, n_words: int) -> Callable[[Any], None]:
    """The update of gensim's model, with the same stopping rule as scikit-learn's."""
    from gensim.models import LdaModel
    from gensim.utils import FakeDict

    model = LdaModel(
        id2word=FakeDict(n_words),
        num_topics=k,
        chunksize=BATCH_SIZE,
        passes=1,
        iterations=100,
        gamma_threshold=1e-3,
        offset=OFFSET,
        decay=DECAY,
        eval_every=None,
        random_state=0,
    )
    return lambda documents: model.update(documents, chunksize=BATCH_SIZE)
