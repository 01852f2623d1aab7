"""The bits of a result do not depend on where in memory its arrays happen to lie."""

import ast
from pathlib import Path

import numpy as np
import pytest

import tempering
from tempering.models.lda.sweeps import fill_rows

FILES = sorted(Path(tempering.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("n_topics", [10, 33])
def test_sums_of_rows_that_lie_close_together(n_topics):
    n_words, room = 3, np.zeros(1000, np.float32)
    size = n_words * n_topics
    logs = np.log(np.random.default_rng(0).dirichlet(np.ones(n_topics), n_words))
    seen = set()
    for gap in [0, *range(1, 65), 400]:
        log_rows, rows = (room[i : i + size].reshape(n_words, -1) for i in (0, size + gap))
        log_rows[:] = logs
        maxima, sums = np.empty((2, n_words), np.float32)
        fill_rows(0, n_words, log_rows, np.float32(1), maxima, rows, sums)
        seen.add(sums.tobytes())
    assert len(seen) == 1


def sums_beside_stores(code: str) -> list[str]:
    """Innermost loops of compiled functions that add up a number and store to an array.

    Counts (``n_…``) are exact in any order. A running sum that is itself stored has one order.
    """
    found = []
    for function in ast.walk(ast.parse(code)):
        if not isinstance(function, ast.FunctionDef) or "njit" not in ast.unparse(
            ast.Module(function.decorator_list, [])
        ):
            continue
        for loop in (n for n in ast.walk(function) if isinstance(n, ast.For | ast.While)):
            inside = [n for n in ast.walk(loop) if n is not loop]
            if any(isinstance(n, ast.For | ast.While) for n in inside):
                continue
            changes = [n for n in inside if isinstance(n, ast.Assign | ast.AugAssign)]
            targets = [n.targets[0] if isinstance(n, ast.Assign) else n.target for n in changes]
            stored = [n for n, to in zip(changes, targets) if isinstance(to, ast.Subscript)]
            values = {n.value.id for n in stored if isinstance(n.value, ast.Name)}
            found += [
                f"{function.name}, line {loop.lineno}: {to.id}"
                for n, to in zip(changes, targets)
                if stored and isinstance(n, ast.AugAssign) and isinstance(to, ast.Name)
                if isinstance(n.op, ast.Add | ast.Sub)
                if not to.id.startswith("n_") and to.id not in values
            ]
    return found


def test_compiled_loops_that_add_up_store_nothing():
    found = [f"{file}: {loop}" for file in FILES for loop in sums_beside_stores(file.read_text())]
    assert found == []


def test_a_sum_beside_a_store_is_seen():
    loop = "    for k in range(9):\n        row[k] = k\n        total += row[k]\n"
    assert sums_beside_stores(f"@njit(**KERNEL)\ndef f(row, total):\n{loop}")
    assert not sums_beside_stores(f"def f(row, total):\n{loop}")
