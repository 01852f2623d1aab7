"""What the restarts of a fit came to, in memory or in checkpoints too; Ctrl-C waits.

A checkpoint is a directory, which appears whole or not at all: the run between two steps, what
earlier restarts came to, and a description of the data and of all parameters. The last two are
kept.
"""

import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path
from types import FrameType
from typing import Any, Self

from tempering.inference.checkpoint import (
    CheckpointLike,
    CheckpointWarning,
    as_checkpoint,
    check_posterior,
    describe,
    describe_source,
    differences,
)
from tempering.inference.run import Result, Run
from tempering.inference.sources import Source
from tempering.models.base import Model
from tempering.storage.atomic import alone_in, remove
from tempering.storage.state import (
    WRONG,
    StorageError,
    check_types,
    declared,
    read_tree,
    reading,
    write_tree,
)

KEPT = 2
KIND = "checkpoint"


class OtherFit(StorageError):
    """A checkpoint is whole, and belongs to another fit."""


class ClusterLost(ConnectionError):
    """The cluster that a fit runs on is gone, or cannot finish a step."""


class Terminated(SystemExit):
    """SIGTERM has ended a fit; the message tells what is kept of it."""

    def __init__(self, message: str = "terminated."):
        super().__init__(128 + signal.SIGTERM)  # as a shell reports it
        self.message = message

    def __str__(self) -> str:
        return self.message


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def checkpoints_in(directory: Path) -> list[Path]:
    """The checkpoints of a fit, oldest first."""
    return sorted(directory.glob(f"checkpoint-{'[0-9]' * 8}"))


def _handlers() -> dict[int, Any]:
    """What Ctrl-C and SIGTERM do now; only the main thread may change it."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


@contextmanager
def postponed_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM wait until the block is done; the second acts at once."""
    handlers = {number: handler for number, handler in _handlers().items() if callable(handler)}
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            handlers[number](number, frame)
        waiting.append(number)

    for number in handlers:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if waiting:
        signal.raise_signal(waiting[0])


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
                # Unless the program has its own way with it.
                if _handlers().get(signal.SIGTERM) is signal.SIG_DFL:
                    signal.signal(signal.SIGTERM, _terminate)
                    stack.callback(signal.signal, signal.SIGTERM, signal.SIG_DFL)
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
                problem = " The last steps are not in it." if self._full else ""
                raise type(error)(
                    f"{what}; {self._good[-1]} holds the fit.{problem} To go on from there, call "
                    f"fit again with checkpoint={str(self._directory)!r}, the same data and the "
                    "same parameters."
                ) from error

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
        elapsed = time.monotonic() - self._written
        if (every_steps is not None and self._steps >= every_steps) or (
            minutes is not None and elapsed >= 60 * minutes
        ):
            self._save()

    def add(self, result: Result) -> None:
        """A restart is over."""
        self.elbos.append(result.elbo)
        if self.best is None or result.elbo > self.best.elbo:
            self.best = result
        self.latest = None
        self._save()

    def _hope(self) -> str:
        """What is left of a fit that cannot go on, and what to do."""
        if self._checkpoint is None:
            return "Nothing of the fit was kept: give it a checkpoint, to be able to resume it."
        again = "call fit again with the same checkpoint, data and parameters"
        if self._good:
            return f"{self._good[-1]} holds the fit: {again} to go on when the cluster is back."
        return f"The checkpoint {self._directory} holds nothing of the fit yet: {again}."

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
                    self._take_up(content)
            except OtherFit:
                raise
            except StorageError as error:
                damaged.append(str(error))
                continue
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

    def _take_up(self, content: dict[str, Any]) -> None:
        """The restarts that are over, and the one under way; of the types and shapes of the fit."""
        for part, what in (("data", "other data"), ("parameters", "a fit with other parameters")):
            places = differences(content["fingerprint"][part], self._fingerprint[part])
            if places:
                # Another start mostly follows from the rest.
                places.sort(key=lambda place: place.startswith("initial"))
                raise OtherFit(
                    f"it belongs to {what}: {'; '.join(places[:3])}. Fit the same data with the "
                    "same parameters to go on, choose another directory for a new fit, or pass "
                    "resume=False to start anew in this one."
                )
        best, run = self._made(Result, content["best"]), self._made(Run, content["run"])
        if best is not None:
            check_posterior(best.model, best.posterior)
        if run is not None:
            check_posterior(run.model, run.state.posterior)
        self.elbos, self.best, self.latest = content["elbos"], best, run

    def _made(self, cls: Any, parts: dict[str, Any] | None) -> Any:
        """A run, or its result, with the model that was given and what that had learned."""
        if parts is None:
            return None
        model = deepcopy(self._given)
        vars(model).update(parts["model"])
        model.check_parameters()
        parts = {**parts, "model": model}
        check_types(parts, declared(cls))
        return cls(**parts)

    def _learned(self, model: Model) -> dict[str, Any]:
        """The attributes in which a model differs from the one that was given."""
        given = vars(self._given)
        return {
            name: value
            for name, value in vars(model).items()
            if name not in given or describe(value) != describe(given[name])
        }
