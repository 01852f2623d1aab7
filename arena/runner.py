"""Runs the cells that a file of results does not hold yet, each fit in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from arena.corpora import Corpus, open_corpus
from arena.programs import PROGRAMS, installed
from arena.scores import levels, measure

ROOT = Path(__file__).parents[1]

Row = dict[str, Any]


class Group(NamedTuple):
    """Cells that differ by their seeds alone; these run one after the other."""

    n_topics: int
    program: str
    seeds: int
    threads: int


class Folder:
    """Results on disk: a line a cell in ``results.jsonl``, and the topics of each."""

    def __init__(self, path: Path):
        self.path, self.lock = path, Lock()
        (path / "topics").mkdir(parents=True, exist_ok=True)

    def rows(self) -> list[Row]:
        """All finished cells. A line that was cut short is as if it were not there."""
        rows: dict[tuple, Row] = {}
        file = self.path / "results.jsonl"
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            rows[key(row)] = row
        return list(rows.values())

    def add(self, row: Row) -> None:
        """Write a cell down."""
        with self.lock, (self.path / "results.jsonl").open("ab+") as file:
            if file.tell() and not _ends_a_line(file):
                file.write(b"\n")
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

    def topics(self, row: Row) -> Path:
        """Where the topics of a cell are."""
        name = re.sub(r"[^A-Za-z0-9]+", "-", "_".join(map(str, key(row))))
        return self.path / "topics" / f"{name}.npy"


def _ends_a_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def key(row: Row) -> tuple:
    """What tells cells apart."""
    return tuple(
        row.get(name) for name in ("corpus", "documents", "K", "program", "threads", "seed")
    )


def run_corpus(
    name: str, groups: Iterable[Group], folder: Folder, *, smaller: int, jobs: int, limit: float
) -> Iterator[Row]:
    """Run the missing cells of a corpus, several groups at a time; each row as it is made."""
    corpus = open_corpus(name, smaller)
    done = {key(row) for row in folder.rows() if "error" not in row}
    described = {"corpus": corpus.name, "documents": corpus.train.shape[0]}
    for program, found in levels(corpus).items() if not _has(done, described, "unigram") else ():
        yield _kept(folder, {**described, "program": program, **found})
    length = corpus.train.sum() / corpus.train.shape[0]
    fitting = [group for group in groups if length <= PROGRAMS[group.program].most_words]
    wanted = {
        group: [
            row
            for seed in range(group.seeds)
            if key(row := {**described, **_named(group), "seed": seed}) not in done
        ]
        for group in fitting
    }
    if not any(wanted.values()):
        return
    counts = folder.path / "counts.npz"
    sparse.save_npz(counts, corpus.train)
    with ThreadPoolExecutor(jobs) as pool:
        made = pool.map(
            lambda rows: _run_group(corpus, counts, rows, folder, limit), wanted.values()
        )
        for rows in made:
            yield from rows
    counts.unlink()


def _has(done: set[tuple], described: Row, program: str) -> bool:
    return key({**described, "program": program}) in done


def _named(group: Group) -> Row:
    return {"K": group.n_topics, "program": group.program, "threads": group.threads}


def _run_group(
    corpus: Corpus, counts: Path, rows: list[Row], folder: Folder, limit: float
) -> list[Row]:
    return [_kept(folder, _run_cell(corpus, counts, row, folder, limit)) for row in rows]


def _run_cell(corpus: Corpus, counts: Path, row: Row, folder: Folder, limit: float) -> Row:
    """A row with its scores, or with the reason why there are none."""
    row = {**row, "version": installed(row["program"])}
    path = folder.topics(row)
    arguments = [row["program"], counts, row["K"], row["seed"], row["threads"], path]
    libraries = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
    environment = {f"{name}_NUM_THREADS": str(row["threads"]) for name in libraries}
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        worker = subprocess.run(
            [sys.executable, "-m", "arena.worker", *map(str, arguments)],
            env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(places)},
            capture_output=True,
            timeout=limit,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return {**row, "error": f"stopped after {limit:g} seconds"}
    if worker.returncode:
        return {**row, "error": (worker.stderr.strip().splitlines() or ["it died"])[-1][:300]}
    before = [folder.topics({**row, "seed": seed}) for seed in range(row["seed"])]
    others = [np.load(other) for other in before if other.exists()]
    scores = measure(corpus, np.load(path), others)
    return {**row, **json.loads(worker.stdout.splitlines()[-1]), **scores}


def _kept(folder: Folder, row: Row) -> Row:
    folder.add(row)
    return row
