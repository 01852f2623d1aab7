"""Checkpoints: a run is kept, to go on and end in the same bits.

A checkpoint is a directory, which appears whole or not at all: the run between two steps, what
earlier restarts came to, and a description of the data and of all parameters, by which that of
another fit is refused. The last two are kept.
"""

from __future__ import annotations

import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from tempering.inference.executors import ClusterLost
from tempering.inference.fingerprint import describe, describe_source, differences, follows
from tempering.inference.run import Result, Run
from tempering.inference.sources import Source
from tempering.models.arguments import check_number
from tempering.models.base import Model
from tempering.storage.atomic import (
    Terminated,
    alone_in,
    as_path,
    atomic_file,
    postponed_interrupt,
    raising_sigterm,
    remove,
)
from tempering.storage.state import WRONG, StorageError, check_types, read_tree, reading, write_tree

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


#: What stands for a checkpoint: the object, or its path alone.
CheckpointLike = Checkpoint | str | os.PathLike[str] | None


def as_checkpoint(checkpoint: CheckpointLike) -> Checkpoint | None:
    """A path as a checkpoint with the default intervals."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    return Checkpoint(checkpoint)


def remembered_seed(random_state: Any, checkpoint: CheckpointLike, resume: bool) -> Any:
    """A random state as given; for None, with a checkpoint, the seed that its first run drew."""
    checkpoint = as_checkpoint(checkpoint)
    if random_state is not None or checkpoint is None:
        return random_state
    file = Path(checkpoint.path) / "seed.txt"
    if resume and file.exists():
        with reading(file):
            return int(file.read_text())
    with atomic_file(file) as aside:
        aside.write_text(str(seed := secrets.randbelow(2**31)))
    return seed


def part_of(checkpoint: CheckpointLike, part: str) -> Checkpoint | None:
    """The checkpoint of one of several calls of ``fit``: a directory in that of all."""
    checkpoint = as_checkpoint(checkpoint)
    return checkpoint and replace(checkpoint, path=Path(checkpoint.path) / part)


def alone_with_checkpoint(fit: Method) -> Method:
    """Have the ``fit`` of an estimator, all of it, refuse a checkpoint that another one uses."""

    @wraps(fit)
    def run(self: Any, *arguments: Any, checkpoint: CheckpointLike = None, **options: Any) -> Any:
        kept = as_checkpoint(checkpoint)
        with alone_in(kept.path) if kept else nullcontext():
            return fit(self, *arguments, checkpoint=checkpoint, **options)

    return run  # pyright: ignore[reportReturnType]


def check_posterior(model: Model, posterior: Any) -> None:
    """Raise ``ValueError`` unless a model of this package, all of which is known, can have it."""
    if type(model).__module__.startswith("tempering."):
        model.check_posterior(posterior)


KEPT = 2
KIND = "checkpoint"


def checkpoints_in(directory: Path) -> list[Path]:
    """The checkpoints of a fit, oldest first."""
    return sorted(directory.glob(f"checkpoint-{'[0-9]' * 8}"))


class Restarts:
    """The results of restarts: in memory, and in checkpoints where they are wanted."""

    def __init__(
        self, checkpoint: CheckpointLike, source: Source, model: Model, settings: dict[str, Any]
    ):
        self.best: Result | None = None
        self.elbos: list[float] = []
        self.latest: Run | None = None  # of the restart that is under way
        self._checkpoint = as_checkpoint(checkpoint)
        self._given = model
        self._good: list[Path] = []  # checkpoints
        self._begun_from: Path | None = None  # until there is a newer one
        self._full = False
        self._steps, self._written = 0, time.monotonic()
        if self._checkpoint is not None:
            self._directory = Path(self._checkpoint.path)
            self._fingerprint = {
                "data": describe_source(source),
                "parameters": describe({"model": model, **settings}),
            }

    @contextmanager
    def at_work(self, resume: bool) -> Iterator[Self]:
        """Alone in the directory; a fit that is stopped is kept, and the error tells where."""
        with ExitStack() as stack:
            if self._checkpoint is not None:
                stack.enter_context(alone_in(self._directory))
                if resume:
                    self._load()
                stack.enter_context(raising_sigterm())
            try:
                yield self
            except ClusterLost as error:
                raise ClusterLost(f"{error} {self._hope()}") from error
            except (KeyboardInterrupt, SystemExit) as error:
                if self.latest is not None:
                    self._save()
                if not self._good or not isinstance(error, KeyboardInterrupt | Terminated):
                    raise
                what = "terminated" if isinstance(error, Terminated) else "interrupted"
                raise type(error)(f"{what}; {self._hope()}") from error

    @contextmanager
    def whole_step(self) -> Iterator[None]:
        """A step, which sets ``latest`` when it is complete.

        With checkpoints Ctrl-C waits for it: posteriors change in place, and a torn one is lost.
        """
        if self._checkpoint is None:
            yield
            return
        self.latest = None
        try:
            with postponed_interrupt():
                yield
        except WRONG as error:
            if self._begun_from is None:
                raise
            raise StorageError(
                f"{self._begun_from}: the fit could not go on from it: {error} Remove it, or pass "
                "resume=False to start anew."
            ) from error
        self._steps += 1
        every_steps, minutes = self._checkpoint.every_steps, self._checkpoint.every_minutes
        due = every_steps is not None and self._steps >= every_steps
        if due or (minutes is not None and time.monotonic() - self._written >= 60 * minutes):
            self._save()

    def add(self, result: Result) -> None:
        """A restart is over."""
        self.elbos.append(result.elbo)
        if self.best is None or np.isnan(self.best.elbo) or result.elbo > self.best.elbo:
            self.best = result
        self.latest = None
        self._save()

    def _hope(self) -> str:
        """What is left of a fit that cannot go on, and what to do."""
        if self._checkpoint is None:
            return "Nothing of the fit was kept: give it a checkpoint, to be able to resume it."
        kept = f"The checkpoint {self._directory} holds nothing of the fit yet."
        if self._good:
            kept = f"{self._good[-1]} holds the fit{', but for its last steps' * self._full}."
        again = f"call fit again with checkpoint={str(self._directory)!r}"
        return f"{kept} To go on from there, {again}, the same data and the same parameters."

    def _save(self) -> None:
        """Write a checkpoint. Where it cannot be written, say so once: the fit goes on."""
        if self._checkpoint is None:
            return
        try:
            self._write()
            self._full = False
        except OSError as error:
            if not self._full:
                kept = f"{self._good[-1]} is the last." if self._good else "There is none yet."
                warnings.warn(
                    f"a checkpoint could not be written: {error} The fit goes on. {kept}",
                    CheckpointWarning,
                    stacklevel=4,
                )
            self._full = True
        self._steps, self._written = 0, time.monotonic()

    def _write(self) -> None:
        run = best = None
        if self.latest is not None:
            run = {**self.latest._asdict(), "model": self._learned(self.latest.model)}
        if self.best is not None:
            best = {**vars(self.best), "model": self._learned(self.best.model)}
        there = checkpoints_in(self._directory)
        number = int(there[-1].name[-8:]) + 1 if there else 1
        path = self._directory / f"checkpoint-{number:08d}"
        content = {"fingerprint": self._fingerprint, "elbos": self.elbos, "best": best, "run": run}
        write_tree(path, KIND, content)
        self._begun_from = None
        # Only the last good ones stay, and nothing of what killed processes left half written.
        self._good = [*self._good, path][-KEPT:]
        for path in [*there, *self._directory.glob(".partial-*-checkpoint-*")]:
            if path not in self._good:
                remove(path)

    def _load(self) -> None:
        """Take up the newest checkpoint that is whole, if there is one."""
        damaged: list[str] = []
        for path in reversed(checkpoints_in(self._directory)):
            try:
                content = read_tree(path, KIND)
                with reading(path):
                    other = self._other_fit(content["fingerprint"])
                    if not other:
                        self.elbos = content["elbos"]
                        self.best = self._made(Result, content["best"])
                        self.latest = self._made(Run, content["run"])
            except StorageError as error:
                damaged.append(str(error))
                continue
            if other:
                raise StorageError(f"{path}: {other}")
            if damaged:
                warnings.warn(
                    f"{' '.join(damaged)} The fit goes on from the one before, {path}.",
                    CheckpointWarning,
                    stacklevel=4,
                )
            # The second newest is kept only if it is good too, which the next load would find out.
            self._good = [path]
            self._begun_from = path if self.latest is not None else None
            return
        if damaged:
            raise StorageError(
                f"no checkpoint in {self._directory} can be read. {' '.join(damaged)} Remove them, "
                "or pass resume=False to start anew."
            )

    def _other_fit(self, fingerprint: dict[str, Any]) -> str:
        """Why a checkpoint, which is whole, is not of this fit; nothing if it is."""
        for part, what in (("data", "other data"), ("parameters", "a fit with other parameters")):
            places = differences(fingerprint[part], self._fingerprint[part])
            if places:
                # Another start and other step sizes mostly follow from the rest.
                places.sort(key=lambda place: place.startswith(("initial", "learning_rate")))
                return (
                    f"it belongs to {what}: {'; '.join(places[:3])}. Fit the same data with the "
                    "same parameters to go on, choose another directory for a new fit, or pass "
                    "resume=False to start anew in this one."
                )
        return ""

    def _made(self, cls: Any, parts: dict[str, Any] | None) -> Any:
        """A run, or its result, with the model that was given and what that had learned."""
        if parts is None:
            return None
        model = deepcopy(self._given)
        attributes = {**_attributes(model), **parts["model"]}
        vars(model).clear()
        vars(model).update(attributes)
        model.check_parameters()
        parts = {**parts, "model": model}
        check_types(parts, cls)
        made = cls(**parts)
        check_posterior(model, getattr(made, "state", made).posterior)
        return made

    def _learned(self, model: Model) -> dict[str, Any]:
        """The attributes in which a model differs from the one that was given."""
        given, own = _attributes(self._given), _attributes(model)
        same = {name for name in given.keys() & own if describe(own[name]) == describe(given[name])}
        return {name: value for name, value in own.items() if name not in same}


def _attributes(model: Model) -> dict[str, Any]:
    """All of a model but for what follows from it, which would be that of another state."""
    return {name: value for name, value in vars(model).items() if not follows(model, name)}
