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

import numpy as np

from arena.corpora import named
from arena.page import write_page
from arena.programs import PROGRAMS, installed
from arena.runner import Folder, run_corpus
from arena.tables import cells, losses


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """What was asked for; what is left open depends on --full."""
    parser = argparse.ArgumentParser(
        "python -m arena", None, __doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", nargs="+", metavar="NAME", help="names, files[:documents]")
    parser.add_argument("--topics", type=int, nargs="+", metavar="K")
    parser.add_argument("--seeds", type=int, help="seeds 0 … N − 1 of each fit")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--threads", type=int, default=1, help="of a fit; 0 for all cores")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--limit", type=float, help="seconds after which a fit is stopped")
    parser.add_argument("--full", action="store_true", help="all drawn corpora, in full size")
    parser.add_argument("--out", type=Path, default=Path("arena-results"), help="the output folder")
    options = parser.parse_args(arguments)
    small = not options.full
    options.threads = options.threads or os.cpu_count() or 1
    for name, least in {"seeds": 1, "threads": 1, "jobs": 1, "topics": 2}.items():
        value = getattr(options, name)
        if value is not None and np.min(value) < least:
            parser.error(f"--{name} must be at least {least}; got {value}.")
    if options.limit is not None and not options.limit > 0:
        parser.error(f"--limit must be above 0; got {options.limit:g}.")
    options.corpora = options.corpora or (["eight"] if small else ["drawn"])
    options.topics = options.topics or ([20] if small else [20, 50, 100, 200, 500, 1000])
    options.seeds = options.seeds or (2 if small else 5)
    options.limit = options.limit or (300.0 if small else 7200.0)
    return options


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, write the page, and say how many losses are on it."""
    options = parse(arguments)
    corpora = named(options.corpora)
    here = [name for name in options.programs if installed(name)]
    if missing := [name for name in options.programs if name not in here]:
        print(f"not installed, and skipped: {', '.join(missing)}.")
    cell = {"threads": options.threads}
    groups = [
        [{**cell, "K": k, "program": name, "seed": seed} for seed in range(options.seeds)]
        for k in options.topics
        for name in here
    ]
    folder, smaller = Folder(options.out), 1 if options.full else 5
    for corpus in corpora:
        for row in run_corpus(corpus, groups, folder, smaller, options.jobs, options.limit):
            told = (row[name] for name in ("corpus", "K", "program", "seed"))
            shown = (f"{name} {row[name]:.3f}" for name in ("nats", "npmi", "cpu s") if name in row)
            print(*told, row.get("error") or "  ".join(shown), sep="  ", flush=True)
    found = losses(cells(folder.rows()))
    clear = sum(one.is_clear for one in found)
    page = write_page(folder.rows(), options.out / "arena.html")
    print(f"Another program is ahead in {len(found)} comparisons, in {clear} clearly: {page}")


if __name__ == "__main__":
    main()
