"""Rotations of factors, whose covariance is root · root', towards loadings that a prior favours."""

from __future__ import annotations

import numpy as np

from tempering.models.base import Array


def varimax(loadings: Array, iterations: int = 30) -> Array:
    """The rotation R [K, K] for which the squares of ``loadings @ R`` vary most (Kaiser, 1958)."""
    rotation, before = np.eye(loadings.shape[1]), 0.0
    for _ in range(iterations):
        turned = loadings @ rotation
        gradient = loadings.T @ (turned**3 - turned * np.mean(turned**2, axis=0))
        left, sizes, right = np.linalg.svd(gradient)
        rotation = left @ right
        if sizes.sum() <= before * (1 + 1e-9):
            break
        before = float(sizes.sum())
    return np.asarray(rotation, float)


def right_angles(scatter: Array, root: Array) -> list[Array]:
    """Loadings at right angles to each other, which one relevance a factor suits best."""
    return [np.linalg.eigh(root.T @ scatter @ root)[1][:, ::-1]]


def sparse_turns(loadings: Array, root: Array) -> list[Array]:
    """Few large loadings, or else no turn at all, only factors of unit covariance."""
    left, _, right = np.linalg.svd(root)
    return [varimax(loadings @ root), (left @ right).T]
