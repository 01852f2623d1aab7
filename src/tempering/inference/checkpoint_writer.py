"""What the restarts of a fit came to, in memory or in checkpoints too; Ctrl-C waits.

A checkpoint is one file, which appears whole or not at all: the run between two steps, what earlier
restarts came to, and a description of the data and of all parameters. The last two are kept.
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
from typing import Any

from tempering.inference.checkpoint import (
    Checkpoint,
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
from tempering.storage.atomic import alone_in
from tempering.storage.classes import check_types, declared
from tempering.storage.errors import WRONG, StorageError, expect, reading
from tempering.storage.tree import read_tree, write_tree

#: What a shell reports of a process that SIGTERM has ended.
TERMINATED = 128 + signal.SIGTERM


class Terminated(SystemExit):
    """SIGTERM has ended a fit; the message tells what is kept of it."""

    def __init__(self, message: str = "terminated."):
        super().__init__(TERMINATED)
        self.message = message

    def __str__(self) -> str:
        return self.message


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def catching_sigterm() -> Iterator[None]:
    """Have SIGTERM raise :class:`Terminated` in the main thread, unless the program handles it."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def postponed_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM wait until the block is done; the second acts at once."""
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        handlers = {number: handler for number, handler in found.items() if callable(handler)}
    waiting: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            handlers[number](number, frame)
        waiting.append((number, frame))

    for number in handlers:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if waiting:
        number, frame = waiting[0]
        handlers[number](number, frame)


KEPT = 2
KIND = "checkpoint"
NAMES = f"checkpoint-{'[0-9]' * 8}.safetensors"
ANEW = "Remove it, or pass resume=False to start anew."


class OtherFit(StorageError):
    """A checkpoint is whole, and belongs to another fit."""


class ClusterLost(ConnectionError):
    """The cluster that a fit runs on is gone, or cannot finish a step."""


class Restarts:
    """The results of restarts, in memory: a fit without checkpoints."""

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

    def hope(self) -> str:
        """What is left of a fit that cannot go on, and what to do."""
        return "Nothing of the fit was kept: give it a checkpoint, to be able to resume it."


@contextmanager
def open_restarts(
    checkpoint: CheckpointLike, resume: bool, source: Source, model: Model, **settings: Any
) -> Iterator[Restarts]:
    """The results of restarts, on disk or in memory alone where no checkpoint is wanted."""
    checkpoint = as_checkpoint(checkpoint)
    with ExitStack() as stack:
        restarts = Restarts()
        if checkpoint is not None:
            restarts = CheckpointWriter(checkpoint, model, source, settings)
            stack.enter_context(restarts.at_work(resume))
        try:
            yield restarts
        except ClusterLost as error:
            raise ClusterLost(f"{error} {restarts.hope()}") from error


class CheckpointWriter(Restarts):
    """Writes a fit into checkpoints, and takes it up from the last one."""

    def __init__(
        self, checkpoint: Checkpoint, model: Model, source: Source, settings: dict[str, Any]
    ):
        super().__init__()
        self._checkpoint, self._given = checkpoint, model
        self._directory = Path(checkpoint.path)
        self._fingerprint = {
            "data": describe_source(source),
            "parameters": describe({"model": model, **settings}),
        }
        self._good: list[Path] = []
        self._loaded: tuple[Model, Run] | None = None
        self._begun_from: Path | None = None  # until there is a newer one
        self._model: Model | None = None
        self._full = False
        self._steps, self._written = 0, time.monotonic()

    @contextmanager
    def at_work(self, resume: bool) -> Iterator[None]:
        """Alone in the directory; a fit that is stopped is kept, and the error tells where."""
        try:
            with alone_in(self._directory):
                if resume:
                    self._load()
                with catching_sigterm():
                    try:
                        yield
                    except (KeyboardInterrupt, SystemExit):
                        if self.latest is not None:
                            self._save()
                        raise
        except (KeyboardInterrupt, Terminated) as error:
            if not self._good:
                raise
            what = "terminated" if isinstance(error, Terminated) else "interrupted"
            problem = " The last steps are not in it." if self._full else ""
            raise (Terminated if isinstance(error, Terminated) else KeyboardInterrupt)(
                f"{what}; {self._good[-1]} holds the fit.{problem} To go on from there, call fit "
                f"again with checkpoint={str(self._directory)!r}, the same data and the same "
                "parameters."
            ) from error

    def unfinished(self, model: Model) -> Run | None:
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            return None
        learned, run = loaded
        vars(model).update(vars(learned))
        self._begun_from = self._good[-1]
        return run

    @contextmanager
    def whole_step(self, model: Model) -> Iterator[None]:
        """A step that Ctrl-C waits for: posteriors change in place, and a torn one is lost."""
        self.latest, self._model = None, model
        try:
            with postponed_interrupt():
                yield
        except WRONG as error:
            if self._begun_from is None:
                raise
            raise StorageError(
                f"{self._begun_from}: the fit could not go on from it: {error} {ANEW}"
            ) from error
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

    def hope(self) -> str:
        again = "call fit again with the same checkpoint, data and parameters"
        if self._good:
            return f"{self._good[-1]} holds the fit: {again} to go on when the cluster is back."
        return f"The checkpoint {self._directory} holds nothing of the fit yet: {again}."

    def _save(self) -> None:
        """Write a checkpoint. Where it cannot be written, say so once: the fit goes on."""
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
        run = None
        if self.latest is not None:
            run = {**self.latest._asdict(), "model": self._learned(self._model)}
        best = None
        if self.best is not None:
            best = {**vars(self.best), "model": self._learned(self.best.model)}
        numbers = [int(path.stem[-8:]) for path in self._files()]
        path = self._directory / f"checkpoint-{max(numbers, default=0) + 1:08d}.safetensors"
        content = {"fingerprint": self._fingerprint, "elbos": self.elbos, "best": best, "run": run}
        write_tree(path, KIND, content)
        self._begun_from = None
        # Only the last good ones stay, and nothing of what killed processes left half written.
        self._good = [*self._good, path][-KEPT:]
        for path in self._files():
            if path not in self._good:
                path.unlink(missing_ok=True)
        for path in self._directory.glob(".partial-*-checkpoint-*"):
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """The checkpoints that are there, newest last."""
        return sorted(self._directory.glob(NAMES))

    def _load(self) -> None:
        """Take up the newest checkpoint that is whole, if there is one."""
        damaged: list[str] = []
        for path in reversed(self._files()):
            try:
                content = read_checkpoint(path)
                with reading(path):
                    self._check_fingerprint(content["fingerprint"])
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
                    stacklevel=7,
                )
            # The second newest is kept only if it is good too, which the next load would find out.
            self._good = [path]
            return
        if damaged:
            raise StorageError(
                f"no checkpoint in {self._directory} can be read. {' '.join(damaged)} Remove them, "
                "or pass resume=False to start anew."
            )

    def _take_up(self, content: dict[str, Any]) -> None:
        """The restarts that are over, and the one under way; of the types and shapes of the fit."""
        best, loaded = content["best"], None
        if best is not None:
            best = {**best, "model": self._with_learned(best["model"])}
            check_types(best, declared(Result))
            best = Result(**best)
            check_posterior(best.model, best.posterior)
        if content["run"] is not None:
            run = dict(content["run"])
            model = self._with_learned(run.pop("model"))
            check_types(run, declared(Run))
            loaded = model, Run(**run)
            check_posterior(model, loaded[1].state.posterior)
        self.elbos, self.best, self._loaded = content["elbos"], best, loaded

    def _with_learned(self, attributes: dict[str, Any]) -> Model:
        """A copy of the model with what a run had learned."""
        model = deepcopy(self._given)
        vars(model).update(attributes)
        model.check_parameters()
        return model

    def _check_fingerprint(self, stored: dict[str, Any]) -> None:
        if stored["data"] != self._fingerprint["data"]:
            places = differences(stored["data"], self._fingerprint["data"])
            what = "other data"
        else:
            places = differences(stored["parameters"], self._fingerprint["parameters"])
            # Another start mostly follows from the rest.
            places.sort(key=lambda place: place.startswith("initial"))
            what = "a fit with other parameters"
        if places:
            raise OtherFit(
                f"it belongs to {what}: {'; '.join(places[:3])}. Fit the same data with the "
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
    """What a checkpoint holds; :class:`StorageError` if it is damaged or of another format."""
    content = read_tree(path, KIND)
    with reading(path):
        right = content.keys() == {"fingerprint", "elbos", "best", "run"}
        expect(right, "it is no checkpoint: something is missing.")
        right = content["fingerprint"].keys() == {"data", "parameters"}
        expect(right, "it does not tell which fit it belongs to.")
    return content
