"""Documents as text: a folder of ``.txt`` files, or a column of CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tempering.corpus.arrow import column_names, column_values
from tempering.corpus.corpus import fail
from tempering.corpus.lines import text_lines

#: The column that is read where none is named.
TEXT_COLUMN = "text"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson", ".json")
# Python's csv module refuses fields of more than 131,072 characters unless told otherwise.
LONGEST_FIELD = 1 << 30


class Document(NamedTuple):
    """A text with a name.

    Examples
    --------
    >>> from tempering.corpus import Document, from_texts
    >>> from_texts([Document("first.txt", "the cat sat")]).names
    ['first.txt']
    """

    name: str
    text: str


def text_kind(path: Path) -> str | None:
    """ "folder", "table", "json" or "parquet" for a source of text, None for anything else."""
    if path.is_dir():
        return "folder"
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix in DELIMITERS:
        return "table"
    if suffix in JSON_LINES:
        return "json"
    return "parquet" if suffix == ".parquet" else None


def read_texts(
    path: Path, column: str | None = None, name_column: str | None = None
) -> Iterator[Document]:
    """The documents of a folder or a file, one after another.

    Parameters
    ----------
    path : Path
        A folder, of which each ``.txt`` file is a document; or a file that ends in ``.csv``,
        ``.tsv``, ``.jsonl`` (these also gzipped) or ``.parquet``.
    column : str, optional
        The column that holds the text; "text" unless told otherwise.
    name_column : str, optional
        The column that holds names; without it, documents have the numbers of their lines.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.corpus import read_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "a.txt").write_text("the cat sat")
    ...     list(read_texts(Path(folder)))
    11
    [Document(name='a.txt', text='the cat sat')]
    """
    column = TEXT_COLUMN if column is None else column
    kind = text_kind(path)
    if kind == "folder":
        return _folder(path)
    if kind == "table":
        return _table(path, column, name_column)
    if kind == "json":
        return _json_lines(path, column, name_column)
    if kind == "parquet":
        return _parquet(path, column, name_column)
    fail(path, "", "text is read from a folder of .txt files, .csv, .tsv, .jsonl or .parquet.")


def _folder(path: Path) -> Iterator[Document]:
    files = sorted(path.rglob("*.txt"))
    if not files:
        fail(path, "", "there is no .txt file in this folder.")
    for file in files:
        lines = [line for _, line in text_lines(file)]
        yield Document(file.relative_to(path).as_posix(), "\n".join(lines))


def _table(path: Path, column: str, name_column: str | None) -> Iterator[Document]:
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    if csv.field_size_limit() < LONGEST_FIELD:
        csv.field_size_limit(LONGEST_FIELD)
    lines = (f"{line}\n" for _, line in text_lines(path))
    reader = csv.reader(lines, delimiter=DELIMITERS[bare.suffix], strict=True)
    header: list[str] | None = None
    chosen: list[int] = []
    while True:
        # A record may go over several lines; this is where it begins.
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            fail(path, f"line {line}", f"it is no CSV: {error}.")
        if row is None:
            break
        if header is None:
            header = row
            for name in [column, name_column] if name_column else [column]:
                if name not in header:
                    no_column(path, "line 1", name, header)
                chosen.append(header.index(name))
        elif row:
            if len(row) != len(header):
                problem = f"it has {len(row)} fields, but the header has {len(header)}."
                fail(path, f"line {line}", problem)
            yield Document(row[chosen[1]] if name_column else str(line), row[chosen[0]])
    if header is None:
        fail(path, "line 1", "the header is missing.")


def _json_lines(path: Path, column: str, name_column: str | None) -> Iterator[Document]:
    for number, row in json_rows(path):
        text = text_field(row, column, path, f"line {number}")
        if name_column and name_column not in row:
            no_column(path, f"line {number}", name_column, row)
        yield Document(str(row[name_column]) if name_column else str(number), text)


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file of JSON lines, with the numbers of their lines."""
    for number, line in text_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            fail(path, f"line {number}", f"it is no JSON: {error}.")
        if not isinstance(row, dict):
            fail(path, f"line {number}", f"it should be an object; it is a {type(row).__name__}.")
        yield number, row


def text_field(row: Any, column: str, path: Any, place: str) -> str:
    """The text in a column of a row."""
    if column not in row:
        no_column(path, place, column, row)
    text = row[column]
    if not isinstance(text, str):
        problem = f"column {column!r} should be text; it is of type {type(text).__name__}."
        fail(path, place, problem)
    return text


def _parquet(path: Path, column: str, name_column: str | None) -> Iterator[Document]:
    columns = [column, name_column] if name_column else [column]
    there = column_names(path)
    for name in columns:
        if name not in there:
            no_column(path, "", name, there)
    for number, (place, values) in enumerate(column_values(path, columns)):
        text = text_field(dict(zip(columns, values)), column, path, place)
        yield Document(str(values[1]) if name_column else str(number), text)


def no_column(path: Any, place: str, name: str, there: Iterable[str]) -> NoReturn:
    """Say that a column is missing, and how to name another."""
    shown = ", ".join(sorted(map(repr, there))[:20])
    remedy = "name the column of the text by column (--column), that of ids by name_column (--id)."
    fail(path, place, f"there is no column {name!r} among {shown}; {remedy}")
