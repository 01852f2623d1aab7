"""What the LDA benchmarks share: corpora, timing, tables."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse


class Timed(NamedTuple):
    """What a call returned, and the CPU seconds that it took, over all threads."""

    value: Any
    seconds: float


def timed(work: Callable[[], Any]) -> Timed:
    """Call and measure. CPU time, as other programs may run on the same cores."""
    start = time.process_time()
    value = work()
    return Timed(value, time.process_time() - start)


def take_turns(
    work: Mapping[Any, Callable[[], Any]], repeats: int, warm_up: bool = True
) -> dict[Any, np.ndarray]:
    """CPU seconds of each piece of work in each round; a round runs them one after the other."""
    if warm_up:
        for run in work.values():
            run()
    seconds: dict[Any, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, run in work.items():
            seconds[name].append(timed(run).seconds)
    return {name: np.array(values) for name, values in seconds.items()}


def reaches(ratio: float, target: float | None) -> bool | None:
    """Whether a ratio is as large as wished for; None where there is no wish."""
    return None if target is None else ratio >= target


def load_corpus(path: Path) -> sparse.csr_matrix:
    """Counts [D, V] from a file of `scipy.sparse.save_npz`."""
    return sparse.csr_matrix(sparse.load_npz(path))


def is_installed(package: str) -> bool:
    """Whether a peer can be measured; says so if not."""
    if importlib.util.find_spec(package) is not None:
        return True
    print(f"{package} is not installed: skipped.")
    return False


def gensim_documents(counts: sparse.csr_matrix) -> list[list[tuple[int, int]]]:
    """Documents as gensim wants them: lists of (word, count)."""
    return [
        [(int(v), int(n)) for v, n in zip(row.indices, row.data)]
        for row in (counts[d] for d in range(counts.shape[0]))
    ]


def print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Columns as wide as their widest entry; numbers to the right, words to the left."""
    print(f"\n{title}")
    if not rows:
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_as_text(row.get(name)) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells)]
    numeric = [not isinstance(rows[0].get(name), str) for name in columns]
    for line in [columns, *cells]:
        aligned = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric)
        ]
        print("  ".join(aligned).rstrip(), flush=True)


def _as_text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "reached" if value else "NOT reached"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e-2 or abs(value) >= 1e4 else f"{value:.3f}"
    return str(value)


def write_json(path: Path | None, result: Any) -> None:
    """The results as JSON, where a file was asked for."""
    if path is not None:
        path.write_text(json.dumps(result, indent=2, default=str) + "\n")
