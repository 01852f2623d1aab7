"""Tokens of documents, which decide whether and in which groups their topics are sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def count_tokens(data: Any) -> NDArray[np.float64]:
    """Tokens of each document of a CSR matrix; not a number where a count is not whole.

    >>> from scipy.sparse import csr_matrix
    >>> count_tokens(csr_matrix([[1.0, 2.0], [0.5, 1.0], [0.0, 0.0]]))
    array([ 3., nan,  0.])
    """
    tokens = np.asarray(data.sum(axis=1), float).ravel()
    if not np.issubdtype(data.dtype, np.integer):
        broken = np.flatnonzero(data.data != np.floor(data.data))
        tokens[np.searchsorted(data.indptr, broken, side="right") - 1] = np.nan
    return tokens
