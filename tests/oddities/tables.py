"""Tables that nobody should give, made from an honest one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")


def honest(kind: str, n: int = 20, columns: int = 4, seed: int = 0) -> np.ndarray:
    """A table of the kind that a model is for."""
    rng = np.random.default_rng(seed)
    if kind == "binary":
        return (rng.random((n, columns)) < 0.4).astype(float)
    if kind == "counts":
        return rng.poisson(3.0, (n, columns)).astype(float)
    if kind == "symbols":
        return rng.integers(3, size=(n, 1)).astype(float)
    return rng.normal(np.where(np.arange(n) % 2, -3.0, 3.0)[:, None], 1.0, (n, columns))


def column_of(table: Any) -> Any:
    """The column in which odd tables have their odd value; what is no table as it is."""
    return table[:, 1:2] if isinstance(table, np.ndarray) and table.ndim == 2 else table


def _with(X: np.ndarray, value: Any, where: Any = (-1, 1)) -> np.ndarray:
    changed = X.copy()
    changed[where] = value
    return changed


def _locked(X: np.ndarray) -> np.ndarray:
    locked = X.copy()
    locked.flags.writeable = False
    return locked


#: Numbers at the ends of what there is: each is made of the honest table.
VALUES: dict[str, Callable[[np.ndarray], Any]] = {
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "nothing": lambda X: X[:0, :0],
    "one row": lambda X: X[:1],
    "two rows": lambda X: X[:2],
    "one column": lambda X: X[:, :1],
    "one cell": lambda X: X[:1, :1],
    "a column more": lambda X: np.column_stack([X, X[:, 0]]),
    "a column less": lambda X: X[:, :-1],
    "all 0": lambda X: 0 * X,
    "all 1": lambda X: np.ones_like(X),
    "all 7": lambda X: np.full_like(X, 7.0),
    "all -0.0": lambda X: np.full_like(X, -0.0),
    "a row repeated": lambda X: np.repeat(X[:1], len(X), axis=0),
    "two rows repeated": lambda X: np.tile(X[:2], (len(X) // 2, 1)),
    "a column repeated": lambda X: np.repeat(X[:, :1], X.shape[1], axis=1),
    "a constant column": lambda X: _with(X, 1.0, (slice(None), -2)),
    "a column of 0": lambda X: _with(X, 0.0, (slice(None), -2)),
    "half of the rows 0": lambda X: _with(X, 0.0, slice(None, None, 2)),
    **{f"times {s:g}": (lambda X, s=s: X * s) for s in (1e300, 1e150, 1e90, 1e30, 1e18, 1e9)},
    **{f"times {s:g}": (lambda X, s=s: X * s) for s in (1e-9, 1e-30, 1e-150, 1e-300, 5e-324)},
    **{
        f"one {value}": (lambda X, value=value: _with(X, value))
        for value in (np.nan, np.inf, -np.inf, -1.0, 0.5, 1e9, 1e15, 1e99, 1e101, 1e308, 5e-324)
    },
    "all NaN": lambda X: np.full_like(X, np.nan),
    "all infinite": lambda X: np.full_like(X, np.inf),
    "a row of NaN": lambda X: _with(X, np.nan, -1),
    "a column of NaN": lambda X: _with(X, np.nan, (slice(None), 1)),
    "negative": lambda X: -np.abs(X),
    "columns of all sizes": lambda X: X * np.logspace(-90, 90, X.shape[1]),
    "far from 0": lambda X: X + 1e12,
    "bool": lambda X: X > 0,
    "int8 at its end": lambda X: np.full(X.shape, 127, np.int8),
    "int8 below 0": lambda X: np.full(X.shape, -128, np.int8),
    "uint8": lambda X: np.abs(X).astype(np.uint8),
    "uint64 at its end": lambda X: np.full(X.shape, 2**64 - 1, np.uint64),
    "int64 at its end": lambda X: np.full(X.shape, 2**63 - 1, np.int64),
    "float16": lambda X: X.astype(np.float16),
    "float16 at its end": lambda X: np.full(X.shape, 65504, np.float16),
    "float32": lambda X: X.astype(np.float32),
    "float32 at its end": lambda X: np.full(X.shape, 3.4e38, np.float32),
    "long double": lambda X: X.astype(np.longdouble),
    "long double beyond float64": lambda X: np.full(X.shape, np.longdouble("1e4000")),
    "big-endian": lambda X: X.astype(">f8"),
    "every second": lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1],
    "Fortran order": np.asfortranarray,
    "locked": _locked,
    "broadcast": lambda X: np.broadcast_to(X[:1], X.shape),
}

#: Things that are not quite a table.
SHAPES: dict[str, Callable[[np.ndarray], Any]] = {
    "objects": lambda X: X.astype(object),
    "objects with None": lambda X: _with(X.astype(object), None),
    "objects with text": lambda X: _with(X.astype(object), "many"),
    "objects with a list": lambda X: _with(X.astype(object), [1, 2]),
    "objects with a large int": lambda X: _with(X.astype(object), 10**400),
    "numbers as text": lambda X: X.astype(str),
    "words": lambda X: np.full(X.shape, "word"),
    "bytes": lambda X: np.full(X.shape, b"word"),
    "complex": lambda X: X + 1j,
    "dates": lambda X: np.full(X.shape, np.datetime64("2020-01-01")),
    "durations": lambda X: np.full(X.shape, np.timedelta64(3, "s")),
    "records": lambda X: np.zeros(len(X), [("a", float), ("b", int)]),
    "masked": lambda X: np.ma.masked_greater(X, 1.0),
    "masked entirely": lambda X: np.ma.masked_all(X.shape),
    "np.matrix": np.asmatrix,
    "a scalar": lambda X: 3.0,
    "0-d": lambda X: np.array(3.0),
    "1-d": lambda X: X[0],
    "3-d": lambda X: X[:, :, None],
    "a column of rows": lambda X: X[:, None, :],
    "None": lambda X: None,
    "text": lambda X: "a table",
    "texts": lambda X: ["a table", "of words"],
    "bytes alone": lambda X: b"table",
    "a dict": lambda X: {"a": 1},
    "a set": lambda X: {1, 2},
    "a generator": lambda X: (row for row in X),
    "an iterator of lists": lambda X: iter(X.tolist()),
    "a function": lambda X: len,
    "a class": lambda X: np.ndarray,
    "an empty list": lambda X: [],
    "a list of empty lists": lambda X: [[], []],
    "lists": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X)),
    "ragged lists": lambda X: [[1, 2], [3], [4, 5, 6]],
    "nested too deeply": lambda X: [[[[1.0]]]],
    "a list of arrays": list,
    "a frame": pd.DataFrame,
    "a frame with words for names": lambda X: pd.DataFrame(X).add_prefix("c"),
    "a frame with mixed names": lambda X: _named(X, ["a", 1, 2.5, None]),
    "a frame with equal names": lambda X: _named(X, ["a"] * 4),
    "a frame with odd names": lambda X: _named(X, ["", " ", "\x1b[31m", "<b>"]),
    "a frame with tuples for names": lambda X: _named(X, [("a", i) for i in range(4)]),
    "a frame with a column of words": lambda X: pd.DataFrame(X).assign(w="word"),
    "a frame with categories": lambda X: pd.DataFrame(X).astype("category"),
    "a frame with nullable integers": lambda X: _nullable(X),
    "a sparse frame": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
    "an empty frame": lambda X: pd.DataFrame(),
    "a series": lambda X: pd.Series(X[:, 0]),
    "an Arrow table": lambda X: pa.table({f"c{i}": column for i, column in enumerate(X.T)}),
}


def _named(X: np.ndarray, names: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(X[:, :4])
    frame.columns = pd.Index(names[: X.shape[1]], tupleize_cols=True)
    return frame


def _nullable(X: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(np.abs(X).astype(int)).astype("Int64")
    frame.iloc[-1, 1] = pd.NA
    return frame


def _raw(X: np.ndarray, make: Callable[..., Any] = sparse.csr_matrix, **changed: Any) -> Any:
    """A CSR matrix put together of arrays, some of them changed; scipy looks at few of them."""
    csr = sparse.csr_matrix(X)
    parts = {"data": csr.data.copy(), "indices": csr.indices.copy(), "indptr": csr.indptr.copy()}
    for name, change in changed.items():
        parts[name] = change(parts[name])
    matrix = make(X.shape)
    matrix.data, matrix.indices, matrix.indptr = parts["data"], parts["indices"], parts["indptr"]
    return matrix


def _data(X: np.ndarray, dtype: Any) -> Any:
    return _raw(X, data=lambda data: data.astype(dtype))


def _doubled(X: np.ndarray) -> Any:
    coo = sparse.coo_matrix(X)
    twice = np.tile(coo.row, 2), np.tile(coo.col, 2)
    return sparse.coo_matrix((np.tile(coo.data, 2), twice), shape=X.shape)


#: Sparse matrices that are unusual, and some that lie.
SPARSE: dict[str, Callable[[np.ndarray], Any]] = {
    **{f"{f}_matrix": (lambda X, f=f: getattr(sparse, f"{f}_matrix")(X)) for f in FORMATS},
    **{f"{f}_array": (lambda X, f=f: getattr(sparse, f"{f}_array")(X)) for f in FORMATS},
    "duplicates": _doubled,
    "duplicates in CSR": lambda X: _raw(
        np.ones_like(X), indices=lambda i: np.where(np.arange(i.size) % 4 == 1, 0, i)
    ),
    "unsorted": lambda X: _raw(np.ones_like(X), indices=lambda i: X.shape[1] - 1 - i),
    "explicit zeros": lambda X: _raw(np.ones_like(X), data=lambda d: 0 * d),
    "some explicit zeros": lambda X: _raw(np.ones_like(X), data=lambda d: d * (d.cumsum() % 2)),
    "an index too large": lambda X: _raw(X, indices=lambda i: _with(i, 10**6, 5)),
    "an index one too large": lambda X: _raw(X, indices=lambda i: _with(i, X.shape[1], 5)),
    "a negative index": lambda X: _raw(X, indices=lambda i: _with(i, -1, 5)),
    "an index too large in CSC": lambda X: _raw(
        X.T, lambda s: sparse.csc_matrix(s[::-1]), indices=lambda i: _with(i, 10**6, 5)
    ),
    "an index too large in COO": lambda X: _wrong_coo(X),
    "indptr that falls": lambda X: _raw(X, indptr=lambda p: _with(p, 10**6, 1)),
    "indptr below 0": lambda X: _raw(X, indptr=lambda p: _with(p, -5, 1)),
    "indptr that begins late": lambda X: _raw(X, indptr=lambda p: _with(p, 3, 0)),
    "indptr that ends late": lambda X: _raw(X, indptr=lambda p: _with(p, 10**6, -1)),
    "indptr too short": lambda X: _raw(X, indptr=lambda p: p[:-3]),
    "indptr of float": lambda X: _raw(X, indptr=lambda p: p.astype(float)),
    "data too short": lambda X: _raw(X, data=lambda d: d[:-4]),
    "indices too short": lambda X: _raw(X, indices=lambda i: i[:-4]),
    "int64 indices": lambda X: _raw(
        X, indices=lambda i: i.astype(np.int64), indptr=lambda p: p.astype(np.int64)
    ),
    "mixed indices": lambda X: _raw(X, indices=lambda i: i.astype(np.int64)),
    "uint8 indices": lambda X: _raw(X, indices=lambda i: i.astype(np.uint8)),
    **{f"of {t}": (lambda X, t=t: _data(X, t)) for t in ("bool", "int8", "uint64", "float16")},
    **{f"of {t}": (lambda X, t=t: _data(X, t)) for t in ("float32", "complex", "object")},
    **{
        f"sparse with {value}": (lambda X, value=value: _raw(X, data=lambda d: _with(d, value, 5)))
        for value in (np.nan, np.inf, -3.0, 1e300, 5e-324)
    },
    "sparse without rows": lambda X: sparse.csr_matrix((0, X.shape[1])),
    "sparse without columns": lambda X: sparse.csr_matrix((len(X), 0)),
    "sparse without entries": lambda X: sparse.csr_matrix(X.shape),
    "sparse and 1-d": lambda X: sparse.coo_array(X[0]),
    "a list of sparse rows": lambda X: [sparse.csr_matrix(row) for row in X],
}


def _wrong_coo(X: np.ndarray) -> Any:
    coo = sparse.coo_matrix(X)
    coo.col = _with(coo.col, 10**6, 5)
    return coo


ALL = {**VALUES, **SHAPES, **SPARSE}
