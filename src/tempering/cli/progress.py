"""How far a fit is: a bar on a terminal, a line a pass elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tempering.cli.printing import error_console, minus
from tempering.cli.validation import Validation
from tempering.inference import Report
from tempering.inference.callbacks import Callback, progress_bar
from tempering.inference.compilation import COMPILING, telling


@contextmanager
def shown(validation: Validation | None, name: str = "fit") -> Iterator[Callback]:
    """What shows the progress of one fit."""

    def held_out() -> str:
        scores = [] if validation is None else validation.scores
        return f"  held-out {minus(scores[-1][1])}" if scores else ""

    last = 0

    def print_pass(report: Report) -> None:
        nonlocal last
        record = report.record
        passes = int(record.passes + 1e-9)
        if passes > last:
            last = passes
            speed = record.data_seen / max(record.seconds, 1e-9)
            line = f"pass {passes} of {report.planned_passes:g}  {speed:,.0f} documents/s"
            line += f"  T {record.temperature:.2f}{held_out()}"
            error_console().print(line, soft_wrap=True)

    with progress_bar(True, name, held_out) as bar:
        if bar is not None:
            yield bar
            return
        with telling(lambda: error_console().print(COMPILING)):
            yield print_pass
