"""Checkpoints: a run that was killed goes on where it was, and ends in the same bits.

A checkpoint is one file, ``checkpoint-NUMBER.safetensors``, which appears whole or not at all. It
holds the run between two steps, what earlier restarts came to, and a description of the data and of
all parameters; the last two are kept. The position in the data follows from the step.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tempering import __version__
from tempering.inference.fingerprint import describe, describe_source, differences
from tempering.inference.run import Result, Run
from tempering.inference.sources import Source
from tempering.models.base import Model
from tempering.storage.tensors import StorageError, naming, read_tree, write_tree

FORMAT = 1
KEPT = 2
NAME = re.compile(r"checkpoint-(\d{8,})\.safetensors")
SEED_FILE = "seed.safetensors"


class CheckpointWarning(UserWarning):
    """A checkpoint could not be used as it stands.

    Examples
    --------
    To have it end the program instead:

    >>> import warnings
    >>> from tempering.inference import CheckpointWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", CheckpointWarning)
    """


@dataclass(frozen=True)
class Checkpoint:
    """Where, and how often, a fit keeps its state.

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
        if self.every_minutes is not None and not self.every_minutes >= 0:
            raise ValueError(f"every_minutes must be 0 or more; got {self.every_minutes}.")
        if self.every_steps is not None and self.every_steps < 1:
            raise ValueError(f"every_steps must be at least 1; got {self.every_steps}.")
        if Path(self.path).exists() and not Path(self.path).is_dir():
            raise ValueError(f"checkpoint must be a directory, or not exist yet; got {self.path}.")

    def part(self, name: str) -> Checkpoint:
        """A checkpoint in a directory of this one, for one of several calls of ``fit``."""
        return replace(self, path=Path(self.path) / name)

    def seed(self, resume: bool) -> int:
        """The seed that the first run with this checkpoint drew, for fits that were given none."""
        file = Path(self.path) / SEED_FILE
        if resume and file.exists():
            seed = read_tree(file)
            if not isinstance(seed, int) or not 0 <= seed < 2**31:
                raise StorageError(f"{file}: it must hold a seed; got {seed!r:.60}.")
            return seed
        seed = secrets.randbelow(2**31)
        write_tree(file, seed)
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


class Keeper:
    """Keeps the results of restarts in memory, and nothing on disk: a fit without checkpoints."""

    def __init__(self) -> None:
        self.best: Result | None = None
        self.elbos: list[float] = []
        self.latest: Run | None = None

    def unfinished(self, model: Model) -> Run | None:
        """The restart that a checkpoint holds; what it had learned is set in the model."""
        return None

    @contextmanager
    def whole_step(self, model: Model) -> Iterator[None]:
        """A step, which sets ``latest`` when it is complete."""
        yield

    def add(self, result: Result) -> None:
        """A restart is over."""
        self.elbos.append(result.elbo)
        if self.best is None or result.elbo > self.best.elbo:
            self.best = result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


def open_keeper(
    checkpoint: CheckpointLike, resume: bool, source: Source, model: Model, **settings: Any
) -> Keeper:
    """What keeps a fit: on disk, or in memory alone where no checkpoint is wanted."""
    checkpoint = as_checkpoint(checkpoint)
    if checkpoint is None:
        return Keeper()
    fingerprint = {
        "data": describe_source(source),
        "parameters": describe({"model": model, **settings}),
    }
    return DiskKeeper(checkpoint, resume, model, fingerprint)


class DiskKeeper(Keeper):
    """Keeps a fit in checkpoints, and takes it up from the last one."""

    def __init__(
        self, checkpoint: Checkpoint, resume: bool, model: Model, fingerprint: dict[str, Any]
    ):
        super().__init__()
        self._checkpoint = checkpoint
        self._directory = Path(checkpoint.path)
        self._given = model
        self._fingerprint = fingerprint
        self._good: list[Path] = []
        self._loaded: dict[str, Any] | None = None
        self._model: Model | None = None
        self._steps, self._written = 0, time.monotonic()
        if resume:
            self._load()

    def unfinished(self, model: Model) -> Run | None:
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            return None
        _learn(model, loaded.pop("model"))
        return Run(**loaded)

    @contextmanager
    def whole_step(self, model: Model) -> Iterator[None]:
        """A step that Ctrl-C does not tear: it comes when the step is complete, or at the second.

        Steps change the posterior in place, so a torn one cannot be kept.
        """
        self.latest, self._model = None, model
        with postponed_interrupt():
            yield
        self._steps += 1
        every_steps, minutes = self._checkpoint.every_steps, self._checkpoint.every_minutes
        elapsed = time.monotonic() - self._written
        if (every_steps is not None and self._steps >= every_steps) or (
            minutes is not None and elapsed >= 60 * minutes
        ):
            self._save()

    def add(self, result: Result) -> None:
        super().add(result)
        self.latest = None
        self._save()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if not isinstance(error, KeyboardInterrupt):
            return
        problem = ""
        if self.latest is not None:
            try:
                self._save()
            except OSError as failure:
                problem = f" The last steps are not in it: {failure}."
        if self._good:
            raise KeyboardInterrupt(
                f"interrupted; {self._good[-1]} holds the fit.{problem} To go on from there, call "
                f"fit again with checkpoint={str(self._directory)!r}, the same data and the same "
                "parameters."
            ) from error

    def _save(self) -> None:
        from tempering.inference.portable_classes import pack

        run = None
        if self.latest is not None:
            run = {**self.latest._asdict(), "model": self._learned(self._model)}
        best = None
        if self.best is not None:
            best = {**vars(self.best), "model": self._learned(self.best.model)}
        numbers = [int(match[1]) for _, match in self._files()]
        path = self._directory / f"checkpoint-{max(numbers, default=0) + 1:08d}.safetensors"
        content = {
            "format": FORMAT,
            "package": __version__,
            "fingerprint": self._fingerprint,
            "elbos": self.elbos,
            "best": pack(best),
            "run": pack(run),
        }
        write_tree(path, content)
        self._good.append(path)
        self._steps, self._written = 0, time.monotonic()
        self._tidy()

    def _tidy(self) -> None:
        """Remove all but the last good ones, and what killed processes left half written."""
        self._good = self._good[-KEPT:]
        for path, _ in self._files():
            if path not in self._good:
                path.unlink(missing_ok=True)
        for path in self._directory.glob(".partial-*-checkpoint-*"):
            path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[Path, re.Match[str]]]:
        """The checkpoints that are there, newest last."""
        paths = self._directory.iterdir() if self._directory.is_dir() else ()
        found = [(path, match) for path in paths if (match := NAME.fullmatch(path.name))]
        return sorted(found, key=lambda entry: int(entry[1][1]))

    def _load(self) -> None:
        """Take up the newest checkpoint that is whole, if there is one."""
        damaged: list[str] = []
        paths = [path for path, _ in reversed(self._files())]
        for path in paths:
            try:
                content = read_checkpoint(path)
            except StorageError as error:
                damaged.append(str(error))
                continue
            self._check_fingerprint(path, content["fingerprint"])
            if damaged:
                warnings.warn(
                    f"{' '.join(damaged)} The fit goes on from the one before, {path}.",
                    CheckpointWarning,
                    stacklevel=4,
                )
            self._take(path, content)
            # The second newest is kept only if it is good too, which the next load would find out.
            self._good = [path]
            return
        if damaged:
            raise StorageError(
                f"no checkpoint in {self._directory} can be read. {' '.join(damaged)} Remove them, "
                "or pass resume=False to start anew."
            )

    def _take(self, path: Path, content: dict[str, Any]) -> None:
        with naming(path):
            best = content["best"]
            if best is not None:
                model = _learn(deepcopy(self._given), best.pop("model"))
                self.best = Result(**best, model=model)
            self.elbos, self._loaded = content["elbos"], content["run"]

    def _check_fingerprint(self, path: Path, stored: dict[str, Any]) -> None:
        if stored["data"] != self._fingerprint["data"]:
            places = differences(stored["data"], self._fingerprint["data"])
            what = "other data"
        else:
            places = differences(stored["parameters"], self._fingerprint["parameters"])
            what = "a fit with other parameters"
        if places:
            raise StorageError(
                f"{path} belongs to {what}: {'; '.join(places[:3])}. Fit the same data with the "
                "same parameters to go on, choose another directory for a new fit, or pass "
                "resume=False to start anew in this one."
            )

    def _learned(self, model: Model | None) -> dict[str, Any]:
        """The attributes in which a model differs from the one that was given."""
        given = vars(self._given)
        return {
            name: value
            for name, value in vars(model).items()
            if name not in given or describe(value) != describe(given[name])
        }


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What a checkpoint holds; :class:`StorageError` if it is damaged or too new."""
    from tempering.inference.portable_classes import unpack

    content = read_tree(path)
    with naming(path):
        if not isinstance(content, dict) or "format" not in content:
            raise StorageError("it is no checkpoint.")
        if content["format"] != FORMAT:
            raise StorageError(
                f"it has format {content['format']!r:.20}, and this version of tempering, "
                f"{__version__}, reads format {FORMAT}: go on with the version that wrote it, "
                f"{content.get('package')!s:.20}."
            )
        if content.keys() != {"format", "package", "fingerprint", "elbos", "best", "run"}:
            raise StorageError("it is no checkpoint: something is missing.")
        return {**content, "best": unpack(content["best"]), "run": unpack(content["run"])}


def _learn(model: Model, attributes: dict[str, Any]) -> Model:
    """Set what a run had learned."""
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


@contextmanager
def postponed_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C wait until the block is done; the second acts at once."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    waiting: list[tuple[int, Any]] = []

    def wait(number: int, frame: Any) -> None:
        if waiting:
            handler(number, frame)
        waiting.append((number, frame))

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if waiting:
        handler(*waiting[0])
