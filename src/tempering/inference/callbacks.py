"""Callbacks that a fit calls after each step, and the progress bar, which is one."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tempering.inference.run import Record
from tempering.models.compilation import COMPILING, on_compilation
from tempering.temperature import Heat


class Report(NamedTuple):
    """What a callback sees after each step.

    Examples
    --------
    A callback that ends the run after its third step:

    >>> from tempering import Mixture, fit
    >>> from tempering.families import Dirichlet, Poisson
    >>> model = Mixture(Poisson(1), Dirichlet(2), [1.0, 1.0], [1.0, 1.0])
    >>> def enough(report):
    ...     return report.record.step == 2
    >>> len(fit(model, [[1], [9]], callbacks=[enough], tolerance=0.0).history)
    3
    """

    record: Record
    posterior: Any
    heat: Heat
    planned_passes: float
    restart: int


#: Called after each step; a true return value ends the run there.
Callback = Callable[[Report], bool | None]


def is_cold(record: Record) -> bool:
    """Return whether the temperature of a step is shown as 1."""
    return round(record.temperature, 3) <= 1.0


def describe_elbo(record: Record) -> str:
    """Return the ELBO of a step, with a note if it is not the objective that the step ascends."""
    note = "" if is_cold(record) else " (may fall while T > 1)"
    return f"ELBO {record.elbo:,.1f}{note}"


@contextmanager
def progress_bar(
    enabled: bool, name: str = "", more: Callable[[], str] = str
) -> Iterator[Callback | None]:
    """Show passes, data a second, temperature and ELBO on a terminal; nothing elsewhere.

    The bar is full when the fit ends, as the planned passes are the most that a fit makes.
    """
    if not enabled or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[where]}"),
        TimeLeft(compact=True, elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name or "fit", total=None, where="")
        elbo = phase = end = ""

        def compiling() -> None:
            bar.update(task, where=COMPILING)

        def show(report: Report) -> None:
            nonlocal elbo, phase, end
            record = report.record
            if math.isfinite(record.elbo):
                elbo = f"  {describe_elbo(record)}"
            speed = record.data_seen / max(record.seconds, 1e-9)
            found = f"{elbo}{more()}"
            if report.restart:
                found += f"  restart {report.restart + 1}"
            where = f"pass {record.passes:.2f}/{report.planned_passes:g}  {speed:,.0f}/s"
            where += f"  T {record.temperature:.3f}{found}"
            end = f"done after {record.passes:.4g} passes{found}"
            # The heat is that of the next step, and its phase begins there.
            heated = report.heat.phase if record.step == 0 else phase
            phase = report.heat.phase
            if is_cold(record) and (not heated or heated.startswith("cooling")):
                heated = "T = 1"
            bar.update(
                task,
                description=name or heated or "tempered",
                completed=record.passes,
                total=report.planned_passes,
                where=where,
            )

        with on_compilation(compiling):
            yield show
        bar.update(task, description=name or "fit", total=1.0, completed=1.0, where=end)
