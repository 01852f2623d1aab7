"""Topic programs on the same documents: ``python -m arena``, and a page of what came of it.

    python -m arena                eight small drawn corpora, 20 topics (minutes)
    python -m arena --full         all drawn corpora, 20 to 1,000 topics (days)
    python -m arena --corpora news.npz:5000 octis/ --topics 50 100 --programs tempering tomotopy

Every fit runs in a process of its own; a cell that the output folder has is not run again.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from arena.corpora import named
from arena.page import write_page
from arena.programs import PROGRAMS, installed
from arena.runner import Folder, Group, run_corpus
from arena.tables import cells, losses


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """What was asked for; what is left open depends on --full."""
    parser = argparse.ArgumentParser(
        prog="python -m arena",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpora", nargs="+", metavar="NAME", help="names, files[:documents]")
    parser.add_argument("--topics", type=int, nargs="+", metavar="K")
    parser.add_argument("--seeds", type=int, help="seeds 0 … N − 1 of each fit")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--threads", type=int, default=1, help="of a fit; 0 for all cores")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--limit", type=float, help="seconds after which a fit is stopped")
    parser.add_argument("--full", action="store_true", help="all drawn corpora in full size")
    parser.add_argument("--out", type=Path, default=Path("arena-results"), help="the output folder")
    parser.add_argument("--page-only", action="store_true", help="run nothing: write the page")
    options = parser.parse_args(arguments)
    small = not options.full
    options.corpora = options.corpora or (["eight"] if small else ["drawn"])
    options.topics = options.topics or ([20] if small else [20, 50, 100, 200, 500, 1000])
    options.seeds = options.seeds or (2 if small else 5)
    options.limit = options.limit or (300.0 if small else 7200.0)
    options.threads = options.threads or len(os.sched_getaffinity(0))
    for name in ("seeds", "threads", "jobs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1; got {getattr(options, name)}.")
    if min(options.topics) < 2:
        parser.error(f"--topics must be at least 2; got {min(options.topics)}.")
    return options


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, write the page, and say how many losses are on it."""
    options = parse(arguments)
    folder = Folder(options.out)
    if not options.page_only:
        run(options, folder)
    every = cells(folder.rows())
    page = write_page(folder.rows(), options.out / "arena.html")
    found = losses(every)
    clear = sum(one.is_clear for one in found)
    print(f"{len(every)} cells; another program is ahead in {len(found)} comparisons, ", end="")
    print(f"in {clear} of them by more than two errors: {page}")


def run(options: argparse.Namespace, folder: Folder) -> None:
    """All corpora; programs that are not here are named once."""
    corpora = list(named(options.corpora))
    here = [name for name in options.programs if installed(name)]
    if missing := [name for name in options.programs if name not in here]:
        print(f"not installed, and skipped: {', '.join(missing)}.")
    groups = [
        Group(k, name, options.seeds, options.threads) for k in options.topics for name in here
    ]
    settings = {"jobs": options.jobs, "limit": options.limit, "smaller": 1 if options.full else 5}
    for corpus in corpora:
        for row in run_corpus(corpus, groups, folder, **settings):
            told = (row["corpus"], row.get("K", ""), row["program"], row.get("seed", ""))
            shown = ("nats", "npmi", "cpu s")
            result = "  ".join(f"{name} {row[name]:.3f}" for name in shown if name in row)
            print("  ".join(map(str, told)), row.get("error", result), sep="  ", flush=True)


if __name__ == "__main__":
    main()
