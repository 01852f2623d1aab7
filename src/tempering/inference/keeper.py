"""What keeps a fit: in memory alone, or in checkpoints.

A checkpoint is one file, ``checkpoint-NUMBER.safetensors``, which appears whole or not at all. It
holds the run between two steps, what earlier restarts came to, and a description of the data and of
all parameters; the last two are kept. The position in the data follows from the step. What is read
is held against the fit that is to go on with it, in ``content_checks``.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tempering import __version__
from tempering.inference.checkpoint import (
    Checkpoint,
    CheckpointLike,
    CheckpointWarning,
    as_checkpoint,
)
from tempering.inference.fingerprint import describe, describe_source, differences
from tempering.inference.interrupts import Terminated, catching_sigterm, postponed_interrupt
from tempering.inference.run import Result, Run
from tempering.inference.sources import Source
from tempering.models.base import Model
from tempering.storage.lock import alone_in
from tempering.storage.tensors import StorageError, damage, naming, read_tree, write_tree

if TYPE_CHECKING:
    from tempering.inference.content_checks import Fit

FORMAT = 1
KEPT = 2
NAME = re.compile(r"checkpoint-(\d{8,})\.safetensors")
ANEW = "Remove it, or pass resume=False to start anew."


class OtherFit(StorageError):
    """A checkpoint is whole, and belongs to another fit."""


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

    def hope(self) -> str:
        """What is left of a fit that cannot go on, and what to do."""
        return "Nothing of the fit was kept: give it a checkpoint, to be able to resume it."

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
    # Here, as below: it takes all models with it, which a fit without checkpoints does not need.
    from tempering.inference.content_checks import Fit

    known = ("temperature", "max_passes", "n_init", "final_elbo")
    expected = Fit(model, source, **{name: settings[name] for name in known})
    return DiskKeeper(checkpoint, resume, expected, settings)


class DiskKeeper(Keeper):
    """Keeps a fit in checkpoints, and takes it up from the last one.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where, and how often.
    resume : bool
        Whether to take up what is there.
    fit : Fit
        What a checkpoint is held against.
    settings : dict
        All that the result depends on besides the model and the data.
    """

    def __init__(self, checkpoint: Checkpoint, resume: bool, fit: Fit, settings: dict[str, Any]):
        super().__init__()
        self._checkpoint, self._resume, self._fit = checkpoint, resume, fit
        self._directory = Path(checkpoint.path)
        self._given = fit.model
        self._fingerprint = {
            "data": describe_source(fit.source),
            "parameters": describe({"model": fit.model, **settings}),
        }
        self._good: list[Path] = []
        self._loaded: dict[str, Any] | None = None
        self._begun_from: Path | None = None  # until there is a newer one
        self._tried = True  # whether a step has been made from there
        self._model: Model | None = None
        self._full = False
        self._steps, self._written = 0, time.monotonic()
        self._held = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(alone_in(self._directory))
            if self._resume:
                self._load()
            stack.enter_context(catching_sigterm())
            self._held = stack.pop_all()
        return self

    def unfinished(self, model: Model) -> Run | None:
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            return None
        for name, value in loaded.pop("model").items():
            setattr(model, name, value)
        self._begun_from, self._tried = self._good[-1], False
        return Run(**loaded)

    @contextmanager
    def whole_step(self, model: Model) -> Iterator[None]:
        """A step that Ctrl-C does not tear: it comes when the step is complete, or at the second.

        Steps change the posterior in place, so a torn one cannot be kept.
        """
        self.latest, self._model = None, model
        with postponed_interrupt(), self._going_on():
            yield
            if not self._tried and self.latest is not None:
                with damage():
                    self._fit.check_step(model, self.latest)
        self._tried = True
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
        return (
            f"The checkpoint {self._directory} holds nothing of the fit yet, as one comes every "
            f"{self._checkpoint.interval}: {again} to begin again when the cluster is back."
        )

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        with self._held:
            stopped = isinstance(error, KeyboardInterrupt | SystemExit)
            if stopped and self.latest is not None:
                self._save()
        if not isinstance(error, KeyboardInterrupt | Terminated) or not self._good:
            return
        what = "terminated" if isinstance(error, Terminated) else "interrupted"
        problem = " The last steps are not in it." if self._full else ""
        raise (Terminated if isinstance(error, Terminated) else KeyboardInterrupt)(
            f"{what}; {self._good[-1]} holds the fit.{problem} To go on from there, call fit again "
            f"with checkpoint={str(self._directory)!r}, the same data and the same parameters."
        ) from error

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """The first steps from a checkpoint show whether its numbers are any good."""
        try:
            yield
        except (ValueError, ArithmeticError) as error:
            if self._begun_from is None:
                raise
            raise StorageError(
                f"{self._begun_from}: the fit could not go on from it: {error} {ANEW}"
            ) from error

    def _save(self) -> None:
        """Write a checkpoint. Where it cannot be written, say so once: the fit goes on."""
        try:
            self._write()
        except OSError as error:
            if not self._full:
                kept = f"{self._good[-1]} is the last." if self._good else "There is none yet."
                warnings.warn(
                    f"a checkpoint could not be written: {error} The fit goes on. {kept}",
                    CheckpointWarning,
                    stacklevel=4,
                )
            self._full = True
        else:
            self._full = False
        self._steps, self._written = 0, time.monotonic()

    def _write(self) -> None:
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
        self._begun_from = None
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
                with naming(path), damage():
                    self._check_fingerprint(content["fingerprint"])
                    self._fit.check(content)
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
            self._take(content)
            # The second newest is kept only if it is good too, which the next load would find out.
            self._good = [path]
            return
        if damaged:
            raise StorageError(
                f"no checkpoint in {self._directory} can be read. {' '.join(damaged)} Remove them, "
                "or pass resume=False to start anew."
            )

    def _take(self, content: dict[str, Any]) -> None:
        from tempering.inference.content_checks import with_learned

        best = content["best"]
        if best is not None:
            self.best = Result(**{**best, "model": with_learned(self._given, best["model"])})
        self.elbos, self._loaded = content["elbos"], content["run"]

    def _check_fingerprint(self, stored: dict[str, Any]) -> None:
        if stored["data"] != self._fingerprint["data"]:
            places = differences(stored["data"], self._fingerprint["data"])
            what = "other data"
        else:
            places = differences(stored["parameters"], self._fingerprint["parameters"])
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
    """What a checkpoint holds; :class:`StorageError` if it is damaged or too new."""
    from tempering.inference.portable_classes import unpack

    content = read_tree(path)
    with naming(path), damage():
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
        marks = content["fingerprint"]
        if not isinstance(marks, dict) or marks.keys() != {"data", "parameters"}:
            raise StorageError("it does not tell which fit it belongs to.")
        return {**content, "best": unpack(content["best"]), "run": unpack(content["run"])}
