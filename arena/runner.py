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
from tempfile import TemporaryDirectory
from threading import Event, Lock
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse

from arena.corpora import Corpus, open_corpus
from arena.programs import installed
from arena.scores import levels, measure
from arena.tables import TASK, Row

ROOT = Path(__file__).parents[1]
LIBRARIES = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")


class Folder:
    """Results on disk: a line a cell in ``results.jsonl``, and the topics of each."""

    def __init__(self, path: Path):
        self.path, self.file, self.lock = path.resolve(), path / "results.jsonl", Lock()
        (path / "topics").mkdir(parents=True, exist_ok=True)

    def rows(self) -> list[Row]:
        """All cells; the last line of each counts, and one that was cut short does not."""
        rows: dict[tuple, Row] = {}
        for line in self.file.read_bytes().splitlines() if self.file.exists() else ():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            rows[key(row)] = row
        return list(rows.values())

    def add(self, row: Row) -> Row:
        """Write a cell down, on a line of its own whatever the last one looks like."""
        with self.lock, self.file.open("ab") as file:
            file.write(b"\n" + json.dumps(row, ensure_ascii=False).encode())
        return row

    def topics(self, row: Row) -> Path:
        """Where the topics of a cell are."""
        name = re.sub(r"[\W_]+", "-", "_".join(map(str, key(row))))
        return self.path / "topics" / f"{name}.npy"


def key(row: Row) -> tuple:
    """What tells cells apart."""
    return tuple(row[name] for name in (*TASK, "program", "seed"))


def run_corpus(
    name: str, groups: Iterable[list[Row]], folder: Folder, smaller: int, jobs: int, limit: float
) -> Iterator[Row]:
    """Run the missing cells of a corpus, some groups of seeds at a time; rows as they are made."""
    corpus = open_corpus(name, smaller)
    described = {"corpus": corpus.name, "documents": corpus.train.shape[0]}
    entries = corpus.train.tocoo()
    content = crc32(np.stack([entries.row, entries.col, entries.data]).astype(np.int64))
    rows = [row for row in folder.rows() if described.items() <= row.items()]
    if any(row.get("content", content) != content for row in rows):
        raise SystemExit(
            f"{folder.path} has results of other documents of the name {corpus.name!r}; rename the "
            "corpus, or take another folder: --out other."
        )
    described["content"] = content
    done = {key(row) for row in rows if "error" not in row}
    missing = [
        [row for own in group if key(row := {**described, **own}) not in done] for group in groups
    ]
    if not any(missing):
        return
    for found in levels(corpus):
        yield folder.add({**described, "threads": 1, "seed": 0, **found})
    stopped = Event()
    with TemporaryDirectory() as room, ThreadPoolExecutor(jobs) as pool:
        counts = Path(room) / "counts.npz"
        sparse.save_npz(counts, corpus.train)

        def run_group(group: list[Row]) -> list[Row]:
            rows = (row for row in group if not stopped.is_set())
            return [folder.add(_run_cell(corpus, counts, row, folder, limit)) for row in rows]

        try:
            for rows in pool.map(run_group, missing):
                yield from rows
        except BaseException:  # Ctrl-C: the workers have heard it too, and no other one is to start
            stopped.set()
            raise


def _run_cell(corpus: Corpus, counts: Path, row: Row, folder: Folder, limit: float) -> Row:
    """A row with its scores, or with the reason why there are none."""
    row = {**row, "version": installed(row["program"])}
    path = folder.topics(row)
    arguments = [row["program"], counts, row["K"], row["seed"], row["threads"], path]
    environment = {f"{name}_THREADS": str(row["threads"]) for name in LIBRARIES}
    command = [sys.executable, "-m", "arena.worker", *map(str, arguments)]
    settings: Any = {"env": {**os.environ, **environment}, "cwd": ROOT, "timeout": limit}
    try:
        worker = subprocess.run(command, capture_output=True, text=True, **settings)
    except subprocess.TimeoutExpired:
        return {**row, "error": f"stopped after {limit:g} seconds"}
    if worker.returncode:
        return {**row, "error": (worker.stderr.strip().splitlines() or ["it died"])[-1][:300]}
    before = [folder.topics({**row, "seed": seed}) for seed in range(row["seed"])]
    others = [np.load(other) for other in before if other.exists()]
    scores = measure(corpus, np.load(path), others)
    return {**row, **json.loads(worker.stdout.splitlines()[-1]), **scores}
