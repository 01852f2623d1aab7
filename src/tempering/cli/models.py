"""Models as the commands take them."""

from __future__ import annotations

from pathlib import Path

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.saving import load
from tempering.storage.errors import StorageError


def load_topics(path: Path) -> LatentDirichletAllocation:
    """A saved topic model."""
    model = load(path)
    if not isinstance(model, LatentDirichletAllocation):
        raise StorageError(f"{path} is a {type(model).__name__}; this command is for topic models.")
    return model
