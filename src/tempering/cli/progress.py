"""How far a fit is: a bar on a terminal, a line a pass elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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


class Gauge:
    """What is told of a fit: speed, temperature, held-out score."""

    def __init__(self, validation: Validation | None):
        self._validation = validation
        self._since: tuple[float, int] | None = None

    def read(self, report: Report) -> str:
        """The state after a step, in a few words."""
        record = report.record
        now = working_seconds()
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


class Lines:
    """A line on standard error after each pass: a callback of ``fit``."""

    def __init__(self, gauge: Gauge):
        self._gauge, self._passes = gauge, 0

    def compiling(self) -> None:
        """Say why it takes its time."""
        error_console().print(COMPILING)

    def __call__(self, report: Report) -> None:
        state = self._gauge.read(report)
        passes = int(report.record.passes + 1e-9)
        if passes > self._passes:
            self._passes = passes
            line = f"pass {passes} of {report.planned_passes:g}  {state}"
            error_console().print(line, soft_wrap=True)


class TimeLeft(TimeRemainingColumn):
    """The time that is left, once there is something to tell it from."""

    def render(self, task: Task) -> Text:
        """The column of a task."""
        return super().render(task) + Text(" left") if task.total else Text("")


class Bar:
    """A bar with the time that is left: a callback of ``fit``."""

    def __init__(self, gauge: Gauge, progress: Progress, name: str):
        self._gauge, self._progress = gauge, progress
        self._task = progress.add_task(name, total=None, state="starting")

    def compiling(self) -> None:
        """Say why it takes its time."""
        self._progress.update(self._task, state=COMPILING)

    def __call__(self, report: Report) -> None:
        record = report.record
        total = round(record.data_seen / record.passes * report.planned_passes)
        state = self._gauge.read(report)
        self._progress.update(self._task, total=total, completed=record.data_seen, state=state)


@contextmanager
def shown(validation: Validation | None, name: str = "fit") -> Iterator[Bar | Lines]:
    """What shows the progress of one fit."""
    console, gauge = error_console(), Gauge(validation)
    if not console.is_terminal:
        lines = Lines(gauge)
        with telling(lines.compiling):
            yield lines
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[state]}"),
        TimeLeft(compact=True),
    )
    with Progress(*columns, console=console, expand=True) as progress:
        bar = Bar(gauge, progress, name)
        with telling(bar.compiling):
            yield bar
