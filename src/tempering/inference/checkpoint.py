"""Checkpoints: where, how often and by whom a run is kept, to go on and end in the same bits."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from tempering.models.arguments import check_number
from tempering.storage.atomic import as_path
from tempering.storage.errors import StorageError
from tempering.storage.lock import alone_in
from tempering.storage.tree import read_tree, write_tree

SEED_FILE = "seed.safetensors"

Method = TypeVar("Method", bound=Callable[..., Any])


class CheckpointWarning(UserWarning):
    """A checkpoint could not be used as it stands."""


@dataclass(frozen=True)
class Checkpoint:
    """Where, and how often, a fit saves its state.

    Parameters
    ----------
    path : path
        A directory for this one fit.
    every_minutes : float, optional
        Time between two checkpoints; they are written after a step.
    every_steps : int, optional
        Steps between two checkpoints. Whichever comes first counts.

    Examples
    --------
    >>> Checkpoint("fit-of-monday", every_minutes=5)
    Checkpoint(path='fit-of-monday', every_minutes=5, every_steps=None)
    """

    path: str | os.PathLike[str]
    every_minutes: float | None = 10.0
    every_steps: int | None = None

    def __post_init__(self) -> None:
        if self.every_minutes is not None:
            check_number(self.every_minutes, "every_minutes", "0 or more", least=0)
        if self.every_steps is not None:
            check_number(self.every_steps, "every_steps", "at least 1", least=1)
        as_path(self.path)
        if Path(self.path).exists() and not Path(self.path).is_dir():
            raise ValueError(f"checkpoint must be a directory, or not exist yet; got {self.path}.")

    def part(self, name: str) -> Checkpoint:
        """A checkpoint in a directory of this one, for one of several calls of ``fit``."""
        return replace(self, path=Path(self.path) / name)

    def seed(self, resume: bool) -> int:
        """The seed that the first run with this checkpoint drew, for fits that were given none."""
        file = Path(self.path) / SEED_FILE
        if resume and file.exists():
            seed = read_tree(file, "seed")
            if not isinstance(seed, int) or not 0 <= seed < 2**31:
                raise StorageError(f"{file}: it must hold a seed; got {seed!r:.60}.")
            return seed
        seed = secrets.randbelow(2**31)
        write_tree(file, "seed", seed)
        return seed


#: What stands for a checkpoint: the object, or its path alone.
CheckpointLike = Checkpoint | str | os.PathLike[str] | None


def as_checkpoint(checkpoint: CheckpointLike) -> Checkpoint | None:
    """A path as a checkpoint with the default intervals."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    return Checkpoint(checkpoint)


def remembered_seed(random_state: Any, checkpoint: CheckpointLike, resume: bool) -> Any:
    """A random state as given; where None is, with a checkpoint, the seed that belongs to it."""
    checkpoint = as_checkpoint(checkpoint)
    if random_state is not None or checkpoint is None:
        return random_state
    return checkpoint.seed(resume)


def keeping(checkpoint: CheckpointLike, resume: bool, part: str) -> dict[str, Any]:
    """The arguments of ``fit`` for one of the several calls that an estimator makes."""
    checkpoint = as_checkpoint(checkpoint)
    return {} if checkpoint is None else {"checkpoint": checkpoint.part(part), "resume": resume}


def alone_with_checkpoint(fit: Method) -> Method:
    """Have the ``fit`` of an estimator, all of it, refuse a checkpoint that another one uses."""

    @wraps(fit)
    def run(self: Any, *arguments: Any, checkpoint: CheckpointLike = None, **options: Any) -> Any:
        kept = as_checkpoint(checkpoint)
        with ExitStack() as stack:
            if kept is not None:
                stack.enter_context(alone_in(kept.path))
            return fit(self, *arguments, checkpoint=checkpoint, **options)

    return run  # pyright: ignore[reportReturnType]
