"""Corpora of every format: read, written, and turned into one another."""

import gzip
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from sklearn.feature_extraction.text import CountVectorizer

from tempering.corpus.corpus import (
    UCI_NAME,
    Corpus,
    Stored,
    gather,
    read_counting,
    write_sidecars,
)
from tempering.corpus.counting import ReadingOptions, StopWords, chosen_vectorizer
from tempering.corpus.files import CorpusError, check_regular, fail, open_bytes, reading
from tempering.corpus.matrices import (
    UCIFile,
    open_lda_c,
    open_matrix_market,
    open_npz,
    open_svmlight,
    write_lda_c,
    write_matrix_market,
    write_npz,
    write_svmlight,
    write_uci,
)
from tempering.corpus.parquet import (
    COUNTS,
    IDS,
    ParquetRows,
    column_names,
    load_pyarrow,
    write_parquet,
)
from tempering.corpus.text_counts import TextCounts
from tempering.corpus.text_files import FAIL, LINES, read_texts, text_kind
from tempering.inference.sources import BlockSource
from tempering.storage.atomic import as_path, atomic_file, check_folder


class Format(NamedTuple):
    """How a kind of file is told, opened and written."""

    suffixes: tuple[str, ...]
    open: Callable[[Path], Stored]
    write: Callable[[Any, Stored], None]
    #: Whether the file may be gzipped; names stand in the file itself.
    may_be_packed: bool = True
    holds_names: bool = False


FORMATS = {
    "npz": Format((".npz",), open_npz, write_npz, may_be_packed=False),
    "parquet": Format(
        (".parquet",), ParquetRows, write_parquet, may_be_packed=False, holds_names=True
    ),
    "mtx": Format((".mtx", ".mm"), open_matrix_market, write_matrix_market),
    "uci": Format((".docword",), UCIFile, write_uci),
    "lda-c": Format((".ldac", ".lda-c", ".dat"), open_lda_c, write_lda_c),
    "svmlight": Format((".svmlight", ".libsvm", ".svm"), open_svmlight, write_svmlight),
}
#: What batches can be drawn from without reading all of it.
STREAMING = "parquet"
#: What is not counted yet.
TEXT = "text"
#: What can be read beside FORMATS.
READABLE = (TEXT, LINES)


def open_corpus(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    column: str | None = None,
    name_column: str | None = None,
    stop_words: StopWords = "english",
    keep_numbers: bool = False,
    vectorizer: CountVectorizer | None = None,
    phrases: bool = False,
    n_jobs: int | None = None,
    encoding: str = "utf-8",
    on_error: str = FAIL,
    delimiter: str | None = None,
) -> Stored:
    """A corpus on disk, to be read in blocks.

    Parameters
    ----------
    path : path
        A corpus, or text: ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``, a folder of such files or
        of ``.txt`` files, or one ``.txt`` with a document a line.
    format : str, optional
        One of ``FORMATS``, "text", or "lines" for text with a document a line; None to tell it from
        the name, or else the content.
    column, name_column : str, optional
        For text in a table: the columns of the text ("text" unless told otherwise) and of the name.
    stop_words, keep_numbers, vectorizer, phrases, n_jobs
        For text: how it is counted, as in :func:`from_texts`. The commonest English words are left
        out by default, and ``stop_words=None`` keeps them; so are numbers.
    encoding, on_error, delimiter
        For text: how it is read, and whether bad records are skipped, as in :func:`read_texts`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.corpus import open_corpus
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "reviews.csv"
    ...     _ = path.write_text("title,review\\nA,good food\\nB,slow food\\n")
    ...     stored = open_corpus(path, column="review")
    ...     stored.shape, stored.vocabulary
    ((2, 3), ['food', 'good', 'slow'])
    """
    if not isinstance(path, str | os.PathLike):
        raise CorpusError(
            f"path must be the name of a file or a folder; got {type(path).__name__}: what is in "
            "memory is counted by tempering.corpus.from_texts(texts, column=...)."
        )
    path = as_path(path)
    check_regular(path)
    if format is not None:
        if format not in (*FORMATS, *READABLE):
            known = ", ".join([*FORMATS, *READABLE])
            raise CorpusError(f"format must be one of {known}; got {format!r}.")
        name = format
    elif delimiter is not None or (column is not None and text_kind(path) is not None):
        name = TEXT
    else:
        name = detect(path)
    if name in (TEXT, LINES):
        records: Any = {"encoding": encoding, "on_error": on_error, "delimiter": delimiter}
        kind = LINES if name == LINES else None
        texts = read_texts(path, column, name_column, format=kind, **records)
        chosen = chosen_vectorizer(vectorizer, stop_words, keep_numbers, phrases)
        return TextCounts(texts, chosen, phrases=phrases, n_jobs=n_jobs)
    if path.is_dir():
        fail(path, "", f"it is a directory, not a file of format {name}.")
    stored = FORMATS[name].open(path)
    object.__setattr__(stored, "counting", read_counting(path))  # a Corpus is frozen
    return stored


def read(
    path: str | os.PathLike[str], format: str | None = None, **options: Unpack[ReadingOptions]
) -> Corpus:
    """Read a corpus into memory.

    Parameters
    ----------
    path, format, options
        As in :func:`open_corpus`. Of text the commonest English words, and numbers, are left out
        unless ``stop_words=None`` and ``keep_numbers=True`` keep them.

    Examples
    --------
    >>> import tempfile
    >>> from tempering.corpus import from_texts, read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/corpus.npz", from_texts(["the cat sat", "the dog"]))
    ...     read(f"{folder}/corpus.npz").vocabulary
    ['cat', 'dog', 'sat']
    """
    return gather(open_corpus(path, format, **options))


def open_source(
    path: str | os.PathLike[str], batch_size: int = 1024, window_blocks: int = 4
) -> BlockSource:
    """A source of batches of a ``.parquet`` file that :func:`write` made.

    How batches are drawn is told at :class:`tempering.inference.BlockSource`; the blocks are the
    row groups of the file, of 8,192 documents. A file of larger ones takes more memory: write
    it again, to make them smaller.

    Parameters
    ----------
    path : path
        The file; its words are read too, if they stand beside it.
    batch_size : int
        Documents in a minibatch, at most.
    window_blocks : int
        Row groups that are shuffled together.

    Examples
    --------
    >>> import tempfile
    >>> from tempering.corpus import open_source, write
    >>> from tempering.datasets import LDAStream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/big.parquet", LDAStream(n_documents=100, n_words=50))
    ...     source = open_source(f"{folder}/big.parquet", batch_size=10)
    ...     source.shape, source.batch_size
    ((100, 50), 10)
    """
    path = as_path(path)
    check_regular(path)
    name = detect(path)
    if name != STREAMING:
        fail(path, "", f"format {name} does not stream; convert it to .parquet first.")
    files = ParquetRows(path)
    if not files.n_tokens > 0:
        fail(path, "", f"there is not one word in its {files.shape[0]} documents.")
    source = BlockSource(files, batch_size, window_blocks)
    source.vocabulary = files.vocabulary
    source.counting = read_counting(path)
    return source


def write(path: str | os.PathLike[str], corpus: Stored, *, overwrite: bool = False) -> None:
    """Write a corpus; beside it its words, how text became them, and the documents' names.

    All of it appears when it is complete, and nothing if something goes wrong.

    Parameters
    ----------
    path : path
        Where to, of a name that tells the format; the directory it stands in is made if need be.
    corpus : Corpus, or what ``open_corpus`` returns
        What to write; some documents are in memory at a time, where the format allows it.
    overwrite : bool
        Whether files may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.corpus import from_texts, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/corpus.mtx", from_texts(["the cat sat", "the dog"]))
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['corpus.counting.txt', 'corpus.mtx', 'corpus.vocab.txt']
    """
    path = as_path(path)
    if not isinstance(corpus, Stored):
        raise CorpusError(
            f"corpus must be a Corpus, or what open_corpus returns; got {type(corpus).__name__}. "
            "Corpus(counts, words) makes one of a matrix of counts, from_texts one of texts."
        )
    form = FORMATS[check_target(path, overwrite)]
    with ExitStack() as stack:
        # What was opened first is put in place last: where the corpus is, its words are.
        aside = stack.enter_context(atomic_file(path))
        write_sidecars(stack, path, corpus, not form.holds_names, overwrite)
        with open(aside, "wb") as file:
            if path.suffix == ".gz" and form.may_be_packed:
                # Without a time, so that the same corpus gives the same bytes.
                with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                    form.write(packed, corpus)
            else:
                form.write(file, corpus)


def check_target(path: Path, overwrite: bool | None) -> str:
    """The format to write, if it is known and nothing is in the way.

    ``overwrite`` is None where there is no option to do so.
    """
    name = detect_by_name(path)
    if name is None or name == TEXT:
        raise CorpusError(
            f"{path}: the name tells no format to write; end it in "
            f"{', '.join(form.suffixes[0] for form in FORMATS.values())}."
        )
    if path.exists() and not (overwrite and path.is_file()):
        problem = f"{path} exists already: choose another path, or remove it"
        if overwrite is not None:
            problem += ", or write it with overwrite=True (--overwrite), which replaces a file"
        raise FileExistsError(f"{problem}.")
    check_folder(path)
    if name == STREAMING:
        load_pyarrow()
    return name


def detect(path: Path) -> str:
    """The format of a file or directory, by its name, or else its content."""
    if path.is_dir():
        return TEXT
    name = detect_by_name(path)
    if name == "parquet":
        names = column_names(path)
        return "parquet" if IDS in names and COUNTS in names else TEXT
    if name == TEXT and text_kind(path) == LINES:
        # Many a corpus of counts is called .txt.
        return _detect_by_content(path) or TEXT
    name = name or _detect_by_content(path)
    if name is None:
        known = ", ".join([*FORMATS, *READABLE])
        fail(path, "line 1", f"neither name nor content tell its format; name it: {known}.")
    return name


def detect_by_name(path: Path) -> str | None:
    """The format that a name tells; None if it tells none."""
    if UCI_NAME.fullmatch(path.name):
        return "uci"
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    for name, form in FORMATS.items():
        if bare.suffix.lower() in form.suffixes and (bare == path or form.may_be_packed):
            return name
    return TEXT if text_kind(path) else None


def _detect_by_content(path: Path) -> str | None:
    """The format that the first bytes tell; None if they tell none."""
    with reading(path), open_bytes(path) as file:
        start = file.read(4096)
    for magic, name in ((b"PK", "npz"), (b"PAR1", "parquet"), (b"%%MatrixMarket", "mtx")):
        if start.startswith(magic):
            return name
    lines = [line.split() for line in start.splitlines()[:3]]
    if len(lines) == 3 and all(len(line) == 1 and line[0].isdigit() for line in lines):
        return "uci"
    head, *pairs = (lines[0] if lines else None) or [b""]
    # The last pair may be cut off.
    whole = pairs[:-1] or pairs
    if not pairs or not all(re.fullmatch(rb"(\d+|qid):[-+.\deE]+", pair) for pair in whole):
        return None
    return "lda-c" if head == b"%d" % len(pairs) else "svmlight"
