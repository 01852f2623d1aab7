"""Documents as text: a folder of ``.txt`` files, a line each, or a column of a table.

A missing value is an empty text, and documents without names are numbered by record, from 0. A
record is bad if it cannot be decoded, has another number of fields than the header, is no JSON,
lacks the column, or holds no text in it.
"""

import csv
import json
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tempering.corpus.files import (
    LINES_IN_LIMIT,
    CorpusError,
    Lines,
    check_decoded,
    check_regular,
    cut,
    fail,
    reading,
    size_limit,
    text_lines,
)
from tempering.corpus.parquet import column_names, column_values
from tempering.storage.atomic import as_path

#: The column that is read where none is named.
TEXT_COLUMN = "text"
#: The format of a file of one document a line.
LINES = "lines"
KINDS = {
    **dict.fromkeys((".csv", ".tsv"), "table"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
    ".parquet": "parquet",
    ".txt": LINES,
}
FAIL, SKIP = "fail", "skip"


class Document(NamedTuple):
    """A text with a name."""

    name: str
    text: str


class TextRecord(NamedTuple):
    """A document, and what else was asked for of its record: None where there is nothing."""

    document: Document
    others: Sequence[Any] = ()


def text_kind(path: Path) -> str | None:
    """ "folder", "table", "json", "parquet" or "lines" for text, None for anything else."""
    return "folder" if path.is_dir() else KINDS.get(_suffix(path))


def _suffix(path: Path) -> str:
    """How a file is called that may be gzipped; some systems write .CSV."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _text_files(folder: Path) -> list[Path]:
    """The ``.txt`` files of a folder, and of those in it."""
    # Pipes and sockets are no documents; opening one would wait for ever.
    return [
        each
        for each in sorted(folder.rglob("*"))
        if _suffix(each) == ".txt" and (each.is_file() or each.is_symlink())
    ]


@dataclass(eq=False)
class Texts(Iterator[Document]):
    """Documents of a file or a folder, one after another; bad ones are skipped, or end it."""

    path: Path
    kind: str
    column: str
    name_column: str | None
    encoding: str
    on_error: str
    delimiter: str | None
    others: Sequence[str] = ()

    def __post_init__(self) -> None:
        #: Bad records that were passed over so far, and what was wrong with the first.
        self.skipped, self.first_skipped = 0, None
        self._columns = (
            [self.column] if self.name_column is None else [self.column, self.name_column]
        )
        #: The same documents with their values in the columns ``others``.
        self.records = self._read(getattr(self, f"_{self.kind}")())

    def __next__(self) -> Document:
        return next(self.records).document

    def _read(self, records: Iterator[TextRecord]) -> Iterator[TextRecord]:
        n_read = 0
        for record in records:
            n_read += 1
            yield record
        if self.skipped:
            told = f"{self.skipped} bad records were skipped. The first: {self.first_skipped}"
            if n_read == 0:
                fail(self.path, "", f"nothing is left: {told}")
            warnings.warn(f"{self.path}: {told}", UserWarning, stacklevel=3)

    @contextmanager
    def _skipping(self) -> Iterator[None]:
        """A bad record within the block ends the reading, or is counted."""
        try:
            yield
        except CorpusError as error:
            if self.on_error == FAIL:
                raise
            self.skipped += 1
            self.first_skipped = self.first_skipped or str(error)

    def _record(self, place: str, row: int, values: Mapping[str, Any]) -> TextRecord:
        """A record, if it is a good one."""
        text = text_field(values, self.column, self.path, place)
        check_columns(self.path, place, self._columns, values)
        name = None if self.name_column is None else values[self.name_column]
        document = Document(str(row) if name is None else str(name), text)
        return TextRecord(document, [values.get(column) for column in self.others])

    def _folder(self) -> Iterator[TextRecord]:
        path, root = self.path, self.path.resolve()
        files = _text_files(path)
        if not files:
            yield from self._folder_of_tables()
        for file in files:
            with self._skipping():
                if not (file.is_file() and file.resolve().is_relative_to(root)):
                    fail(file, "", "it is a link that leads out of the folder, or to no file.")
                text = "\n".join(Lines(file, self.encoding))
                yield TextRecord(Document(file.relative_to(path).as_posix(), text))

    def _folder_of_tables(self) -> Iterator[TextRecord]:
        """Tables of one kind, in the order of their names, as large corpora are stored."""
        tables = ("table", "json", "parquet")
        files = [each for each in sorted(self.path.iterdir()) if text_kind(each) in tables]
        kinds = sorted({_suffix(file) for file in files})
        if len(kinds) != 1:
            found = f"it has {' and '.join(kinds)}" if kinds else "it has none of them"
            known = ".txt, .csv, .tsv, .jsonl or .parquet"
            fail(
                self.path, "", f"a folder should hold files of text of one kind, {known}; {found}."
            )
        for file in files:
            table = replace(self, path=file, kind=KINDS[kinds[0]])
            # Not its records, which end where one file has nothing left: others may have.
            for document, others in getattr(table, f"_{table.kind}")():
                name = document.name if self.name_column else f"{file.name}:{document.name}"
                yield TextRecord(Document(name, document.text), others)
            self.skipped += table.skipped
            self.first_skipped = self.first_skipped or table.first_skipped

    def _lines(self) -> Iterator[TextRecord]:
        for row, (number, line) in enumerate(text_lines(self.path, self.encoding)):
            with self._skipping():
                check_decoded(self.path, f"line {number}", line, self.encoding)
                yield TextRecord(Document(str(row), line))

    def _table(self) -> Iterator[TextRecord]:
        path = self.path
        delimiter = self.delimiter or ("\t" if _suffix(path) == ".tsv" else ",")
        # Python's csv module refuses fields of more than 131,072 characters unless told otherwise.
        csv.field_size_limit(max(csv.field_size_limit(), size_limit() // LINES_IN_LIMIT))
        lines = (f"{line}\n" for _, line in text_lines(path, self.encoding))
        first = next(lines, None)
        if first is None:
            fail(path, "line 1", "the header is missing.")
        # Before anything else is said of it: a spreadsheet's UTF-16 is no CSV either.
        check_decoded(path, "line 1", first, self.encoding)
        reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
        with reading(path, "line 1"):
            header = next(reader)
        read = [*self._columns, *self.others]
        check_columns(path, "line 1", read, header)
        places = [header.index(name) for name in read]
        row = 0
        while True:
            # A record may go over several lines; this is where it begins.
            place = f"line {reader.line_num + 1}"
            fields, problem = [], None
            # A damaged file is no bad record: what comes after it is lost.
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"it is no CSV: {error}."
            if not fields and problem is None:
                continue
            with self._skipping():
                if problem is None and len(fields) != len(header):
                    problem = f"it has {len(fields)} fields, but the header has {len(header)}."
                if problem is not None:
                    fail(path, place, problem)
                chosen = {name: fields[i] for name, i in zip(read, places)}
                # What is beside them makes no record a bad one.
                told = "".join(chosen[name] for name in self._columns)
                check_decoded(path, place, told, self.encoding)
                yield self._record(place, row, chosen)
            row += 1

    def _json(self) -> Iterator[TextRecord]:
        lines = (each for each in text_lines(self.path, self.encoding) if each[1].strip())
        for row, (number, line) in enumerate(lines):
            place = f"line {number}"
            with self._skipping():
                check_decoded(self.path, place, line, self.encoding)
                try:
                    values = json.loads(line)
                except (ValueError, RecursionError) as error:
                    fail(self.path, place, f"it is no JSON: {cut(error)}.")
                if not isinstance(values, dict):
                    kind = type(values).__name__
                    fail(self.path, place, f"it should be an object; it is a {kind}.")
                yield self._record(place, row, values)

    def _parquet(self) -> Iterator[TextRecord]:
        read = list(dict.fromkeys([*self._columns, *self.others]))
        check_columns(self.path, "", read, column_names(self.path))
        for row, (place, values) in enumerate(column_values(self.path, read)):
            with self._skipping():
                with reading(self.path, place):
                    chosen = {name: value.as_py() for name, value in zip(read, values)}
                yield self._record(place, row, chosen)


def read_texts(
    path: str | os.PathLike[str],
    column: str | None = None,
    name_column: str | None = None,
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    on_error: str = FAIL,
    delimiter: str | None = None,
    others: Sequence[str] = (),
) -> Texts:
    """The documents of a folder or a file, one after another.

    Parameters
    ----------
    path : path
        A folder, of which each ``.txt`` file is a document; a file that ends in ``.csv``, ``.tsv``,
        ``.jsonl`` or ``.parquet``, or a folder of such files; or one that ends in ``.txt``, of
        which each line is a document. Files may be gzipped, but for Parquet.
    column : str, optional
        The column that holds the text; "text" unless told otherwise. A value that is missing there
        is an empty text; a record without the column is a bad one.
    name_column : str, optional
        The column that holds names; without it, documents have the numbers of their records, from
        0. Those of a folder have the names of their files.
    format : "lines", optional
        For a file of one document a line, whatever it is called.
    encoding : str
        Of text files; any that Python knows.
    on_error : "fail" or "skip"
        Whether a bad record ends the reading, or is passed over. At the end a warning tells how
        many were, and what was wrong with the first. Damage that hides where records begin, such as
        of a gzip file, ends it in either case.
    delimiter : str, optional
        The character between fields of a table; by the name of the file unless told otherwise.
    others : sequence of str
        Columns of which :attr:`Texts.records` gives the values as well.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.corpus import read_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "notes.txt").write_text("the cat sat\\nthe dog\\n")
    ...     list(read_texts(Path(folder, "notes.txt")))
    [Document(name='0', text='the cat sat'), Document(name='1', text='the dog')]
    """
    path = as_path(path)
    _check_options(encoding, on_error, delimiter)
    check_regular(path)
    kind = text_kind(path) if format is None else format
    if delimiter is not None and kind in (None, LINES) and format is None:
        kind = "table"
    if kind not in ("folder", *KINDS.values()):
        known = (
            ".csv, .tsv, .jsonl, .parquet, a folder of such or of .txt files, or .txt with a "
            "document a line"
        )
        fail(path, "", f'text is read from {known} (format="{LINES}" for one of another name).')
    asked = [name for name in (column, name_column, *others) if name is not None]
    of_files = kind == "folder" and bool(_text_files(path))
    if asked and (of_files or kind == LINES):
        why = " (its .txt files are the documents)" if of_files else ""
        fail(path, "", f"it has no columns{why}, so that there is no {asked[0]!r}.")
    columns = column or TEXT_COLUMN, name_column
    return Texts(path, kind, *columns, encoding, on_error, delimiter, others)


def _check_options(encoding: str, on_error: str, delimiter: str | None) -> None:
    """Refuse what cannot be, before anything is read."""
    if on_error not in (FAIL, SKIP):
        raise CorpusError(f'on_error must be "{FAIL}" or "{SKIP}"; got {on_error!r}.')
    one = isinstance(delimiter, str) and len(delimiter) == 1
    if delimiter is not None and (not one or delimiter in '"\r\n'):
        problem = f"delimiter must be one character, no quote or line break; got {delimiter!r}."
        raise CorpusError(problem)
    try:
        "a".encode(encoding)
    except (LookupError, ValueError):
        raise CorpusError(
            f"encoding must be one that Python knows, such as utf-8, latin-1 or cp1252; "
            f"got {encoding!r}."
        ) from None


def text_field(row: Mapping[str, Any], column: str, path: Any, place: str) -> str:
    """The text in a column of a row; an empty one where the value is missing."""
    check_columns(path, place, [column], row)
    text = row[column]
    if text is None:
        return ""
    if not isinstance(text, str):
        problem = f"column {column!r} should be text; it is of type {type(text).__name__}."
        fail(path, place, problem)
    return text


def check_columns(path: Any, place: str, names: Iterable[str], there: Collection[Any]) -> None:
    """Raise :class:`CorpusError` if a column is missing, or if two columns have its name."""
    for name in names:
        if name not in there:
            shown = cut(", ".join(sorted(repr(cut(column, 30)) for column in there)), 200)
            remedy = "name the column of the text by column (--column), that of ids by name_column"
            problem = f"there is no column {cut(name)!r} among {shown}; {remedy} (--id)."
            fail(path, place, problem)
        if isinstance(there, list) and (n_columns := there.count(name)) > 1:
            fail(path, place, f"{n_columns} columns are named {cut(name)!r}; rename all but one.")
