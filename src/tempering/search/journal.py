"""Checkpoints of a search: its state between two rounds."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tempering.inference.checkpoint import Checkpoint, CheckpointWarning
from tempering.inference.fingerprint import describe, describe_source, differences
from tempering.inference.sources import Source
from tempering.models.base import Model
from tempering.storage.atomic import alone_in, raising_sigterm, remove
from tempering.storage.state import StorageError, read_tree, write_tree

KIND = "search"


class Journal:
    """The directory in which a search saves its state, as often as a checkpoint says."""

    def __init__(
        self, checkpoint: Checkpoint | None, source: Source, model: Model, settings: dict[str, Any]
    ):
        self._checkpoint = checkpoint
        self._state: Any = None  # not saved yet
        self._written = time.monotonic()
        self._rounds = 0
        self._stack = ExitStack()
        if checkpoint is not None:
            self._directory = Path(checkpoint.path)
            self._fingerprint = {
                "data": describe_source(source),
                "parameters": describe({"model": model, **settings}),
            }

    def __enter__(self) -> Self:
        if self._checkpoint is not None:
            self._stack.enter_context(alone_in(Path(self._checkpoint.path)))
            self._stack.enter_context(raising_sigterm())
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._write()
        finally:
            self._stack.close()

    def _saved(self) -> list[Path]:
        """Return the states that were saved, oldest first."""
        return sorted(self._directory.glob(f"rounds-{'[0-9]' * 8}"))

    def load(self) -> Any:
        """Return the state that was saved last, or None."""
        if self._checkpoint is None or not (saved := self._saved()):
            return None
        content = read_tree(saved[-1], KIND)
        for part, what in (("data", "other data"), ("parameters", "other parameters")):
            places = differences(content["fingerprint"][part], self._fingerprint[part])
            if places:
                raise StorageError(
                    f"{saved[-1]}: it belongs to a search with {what}: {'; '.join(places[:3])}. "
                    "Repeat the call with the same data and parameters, choose another directory, "
                    "or pass resume=False to start over."
                )
        return content["state"]

    def save(self, state: Any) -> None:
        """Save the state after a round, if a checkpoint is due."""
        if self._checkpoint is None:
            return
        self._state, self._rounds = state, self._rounds + 1
        every, minutes = self._checkpoint.every_steps, self._checkpoint.every_minutes
        due = every is not None and self._rounds >= every
        if due or (minutes is not None and time.monotonic() - self._written >= 60 * minutes):
            self._write()

    def _write(self) -> None:
        if self._checkpoint is None or self._state is None:
            return
        path = self._directory / f"rounds-{len(self._state.trail):08d}"
        try:
            remove(path)
            write_tree(path, KIND, {"fingerprint": self._fingerprint, "state": self._state})
            for older in self._saved():
                if older != path:
                    remove(older)
        except OSError as error:
            warnings.warn(
                f"a checkpoint could not be written: {error} The search continues.",
                CheckpointWarning,
                stacklevel=4,
            )
        self._state, self._rounds, self._written = None, 0, time.monotonic()
