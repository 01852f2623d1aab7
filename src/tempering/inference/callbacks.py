"""What is told while a fit runs: callbacks, and the progress bar, which is one."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tempering.inference.run import Record
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


def data_a_second() -> Callable[[Record], float]:
    """A speed that leaves out the first step of a run, in which kernels may be compiled."""
    first: Record | None = None

    def speed(record: Record) -> float:
        nonlocal first
        if first is None or record.step <= first.step:
            first = record
            return record.data_seen / max(record.seconds, 1e-9)
        return (record.data_seen - first.data_seen) / max(record.seconds - first.seconds, 1e-9)

    return speed


@contextmanager
def progress_bar(
    enabled: bool, name: str = "", more: Callable[[], str] = str
) -> Iterator[Callback | None]:
    """A bar with passes, data a second, temperature and ELBO on a terminal; nothing elsewhere."""
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
        elbo, speed = "", data_a_second()

        def show(report: Report) -> None:
            nonlocal elbo
            record = report.record
            if math.isfinite(record.elbo):
                elbo = f"  ELBO {record.elbo:,.1f}"
            where = f"pass {record.passes:.2f}/{report.planned_passes:g}  {speed(record):,.0f}/s"
            where += f"  T {record.temperature:.3f}{elbo}{more()}"
            if report.restart:
                where += f"  restart {report.restart + 1}"
            phase = "T = 1" if record.phase == "final" else "tempered"
            bar.update(
                task,
                description=name or report.heat.telling or phase,
                completed=record.passes,
                total=report.planned_passes,
                where=where,
            )

        yield show
