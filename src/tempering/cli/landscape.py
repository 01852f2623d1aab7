"""``tempering reproduce landscape``: run it, and print what it found."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from tempering.cli.printing import console, error_console, print_json
from tempering.experiments.landscape import run
from tempering.plots.canvas import require_drawing


def run_landscape(out: Path, seed: int, starts: int, as_json: bool) -> None:
    """Figure 1 to ``out``, and the success table to the terminal."""
    require_drawing()
    with error_console().status("Figure 1") as status:
        numbers = run(
            out,
            seed=seed,
            n_starts=starts,
            report=lambda part: status.update(f"Figure 1: {part}"),
        )
    if as_json:
        print_json(numbers)
        return
    optima = ", ".join(f"{len(at)} at T = {float(T):g}" for T, at in numbers["optima"].items())
    printed = console()
    printed.print(f"Local optima of the annealed ELBO: {optima}.")
    table = Table(title=f"Coordinate ascent from {starts} random starts (seed {seed})")
    table.add_column("schedule")
    table.add_column("global optimum", justify="right")
    table.add_column("mean ELBO", justify="right")
    table.add_column("iterations", justify="right")
    for row in numbers["success"]:
        table.add_row(
            row["schedule"],
            f"{row['global_optimum']} of {row['runs']}",
            f"{row['mean_elbo']:.1f}",
            f"{row['iterations']:.0f}",
        )
    printed.print(table)
    printed.print(f"Wrote {out}/landscape.png, .json and .csv")
