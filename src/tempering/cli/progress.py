"""How far a fit is: a bar on a terminal, a line a pass elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tempering.cli.printing import error_console, minus
from tempering.cli.validation import Validation
from tempering.inference import Report
from tempering.inference.compilation import COMPILING, telling, working_seconds


class TimeLeft(TimeRemainingColumn):
    """The time that is left, once there is something to tell it from."""

    def render(self, task: Task) -> Text:
        """The column of a task."""
        return super().render(task) + Text(" left") if task.total else Text("")


class Shown:
    """Tells how far a fit is, by a bar or by a line after each pass: a callback of ``fit``."""

    def __init__(self, validation: Validation | None, name: str, bar: Progress | None):
        self._validation, self._bar = validation, bar
        self._since: tuple[float, int] | None = None
        self._passes = 0
        if bar is not None:
            self._task = bar.add_task(name, total=None, state="starting")

    def compiling(self) -> None:
        """Say why it takes its time."""
        if self._bar is None:
            error_console().print(COMPILING)
        else:
            self._bar.update(self._task, state=COMPILING)

    def __call__(self, report: Report) -> None:
        record, state = report.record, self._state(report)
        if self._bar is not None:
            total = round(record.data_seen / record.passes * report.planned_passes)
            self._bar.update(self._task, total=total, completed=record.data_seen, state=state)
            return
        passes = int(record.passes + 1e-9)
        if passes > self._passes:
            self._passes = passes
            line = f"pass {passes} of {report.planned_passes:g}  {state}"
            error_console().print(line, soft_wrap=True)

    def _state(self, report: Report) -> str:
        """Speed, temperature and held-out score, in a few words."""
        record, now = report.record, working_seconds()
        if self._since is None:
            self._since = now, record.data_seen
        began, seen = self._since
        parts = []
        if now > began:
            parts.append(f"{(record.data_seen - seen) / (now - began):,.0f} documents/s")
        parts.append(f"T {record.temperature:.2f}")
        if self._validation is not None and self._validation.scores:
            parts.append(f"held-out {minus(self._validation.scores[-1][1])}")
        return "  ".join(parts)


@contextmanager
def shown(validation: Validation | None, name: str = "fit") -> Iterator[Shown]:
    """What shows the progress of one fit."""
    console = error_console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[state]}"),
        TimeLeft(compact=True),
    )
    bar = Progress(*columns, console=console, expand=True) if console.is_terminal else None
    with bar or nullcontext():
        tells = Shown(validation, name, bar)
        with telling(tells.compiling):
            yield tells
