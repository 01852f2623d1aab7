"""The temperature at which tempering a topic model should start, from the data alone.

At a high temperature all topics equal the unigram model. Let them differ a little. A document's
proportions follow, more with each of its sweeps: a difference of γ comes back from a sweep times

    a = s² n ψ'(α + s n),     n = N̄ / K  words a topic in a document of mean length,

on top of what the topics themselves give. After m sweeps, and a full update of the topics by what
they gave, the difference has grown by the factor  s (1 + μ (a + a² + … + a^m)).  Here μ is the
squared second singular value of the document-word matrix, scaled by the roots of its margins: how
much documents differ. Hot, but able to split within the run, is the smallest s for which that
factor exceeds 1 by enough. It is far lower for short documents than for long ones: at few words a
topic ψ' is large, and at a low temperature each document would fall at once for some topic or
other, whatever its words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds
from scipy.special import polygamma

#: Documents that the singular value is computed from.
SAMPLE = 2000

#: By how many e-foldings a perturbation must be able to grow within the run.
FOLDINGS = 8.0


def document_contrast(X: Any, rng: np.random.Generator) -> float:
    """μ: squared largest singular value of D_d^{−1/2} X D_v^{−1/2} after its trivial one, 1.

    0 if all documents are alike; 1 if some share no word with the rest.
    """
    rows = rng.permutation(X.shape[0])[:SAMPLE]
    counts = sparse.csr_matrix(X[np.sort(rows)], dtype=np.float64)
    lengths, totals = (np.asarray(counts.sum(axis=axis)).ravel() for axis in (1, 0))
    counts = counts[lengths > 0][:, totals > 0]
    lengths, totals = lengths[lengths > 0], totals[totals > 0]
    if min(counts.shape) < 3:
        return 0.0
    scaled = sparse.diags(lengths**-0.5) @ counts @ sparse.diags(totals**-0.5)
    # The trivial pair of singular vectors are the roots of the margins; it is taken out.
    left, right = np.sqrt(lengths / lengths.sum()), np.sqrt(totals / totals.sum())
    without = LinearOperator(
        scaled.shape,
        matvec=lambda x: scaled @ np.ravel(x) - left * (right @ np.ravel(x)),
        rmatvec=lambda x: scaled.T @ np.ravel(x) - right * (left @ np.ravel(x)),
        dtype=np.float64,
    )
    if np.linalg.norm(without.matvec(rng.standard_normal(scaled.shape[1]))) < 1e-9:
        return 0.0  # all documents are alike: ARPACK has nothing to iterate on
    start = rng.standard_normal(min(scaled.shape))
    # Not to the last digit: where many documents share no word with others, that took a minute.
    (largest,) = svds(without, k=1, v0=start, tol=1e-6, return_singular_vectors=False)
    return float(np.clip(largest, 0.0, 1.0) ** 2)


def document_feedback(
    s: np.ndarray | float, prior: float, words: float, *, collapsed: bool = False
) -> Any:
    """a: by how much a document's sweep multiplies a difference between its proportions.

    Parameters
    ----------
    s : float or array
        Inverse temperature.
    prior : float
        α, of one topic.
    words : float
        n, words a topic in a document.
    collapsed : bool
        Proportions enter φ as γ itself, not as exp ψ(γ): its logarithm has the slope 1/γ.
    """
    gamma = prior + np.asarray(s) * words
    slope = 1.0 / gamma if collapsed else polygamma(1, gamma)
    return np.asarray(s) ** 2 * words * slope


def growth_factor(
    s: np.ndarray | float,
    contrast: float,
    prior: float,
    words: float,
    *,
    sweeps: int,
    collapsed: bool = False,
) -> Any:
    """By how much a perturbation of equal topics grows in one full update at inverse temperature s.

    Parameters
    ----------
    s : float or array
        Inverse temperature.
    contrast : float
        μ, see :func:`document_contrast`.
    prior, words, collapsed
        As in :func:`document_feedback`.
    sweeps : int
        m, that a document takes at least.
    """
    feedback = document_feedback(s, prior, words, collapsed=collapsed)
    return s * (1.0 + contrast * sum(feedback**j for j in range(1, sweeps + 1)))


def starting_inverse_temperature(
    contrast: float,
    prior: float,
    words: float,
    total_rate: float,
    *,
    sweeps: int,
    collapsed: bool = False,
) -> float:
    """The smallest s at which topics can separate within a run of step sizes that sum to this."""
    grid = np.linspace(0.02, 1.0, 981)
    growth = growth_factor(grid, contrast, prior, words, sweeps=sweeps, collapsed=collapsed)
    grows = growth > 1.0 + FOLDINGS / total_rate
    return float(grid[np.argmax(grows)]) if grows.any() else 1.0
