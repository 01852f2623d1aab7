"""What a corpus is: counts of words in documents; and what stands beside its file: its words, how
text became them, and the names of its documents.

``20news.npz`` has its words in ``20news.vocab.txt`` and names in ``20news.documents.txt``, one a
line; ``docword.kos.txt.gz`` in ``vocab.kos.txt`` and ``documents.kos.txt``. Where it was made of
text, ``20news.counting.txt`` holds a :class:`WordCounting`, as JSON in one line.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.corpus.counting import WordCounting
from tempering.corpus.files import CorpusError, Lines, cut, fail
from tempering.families.checks import canonical_csr, check_compressed
from tempering.storage.atomic import atomic_file

#: Documents that are read, and written, at a time.
BLOCK_SIZE = 8192
LARGEST_COUNT = np.iinfo(np.int32).max
MOST_WORDS = np.iinfo(np.int32).max
UCI_NAME = re.compile(r"docword\.(.+)\.txt(\.gz)?")
WORDS, NAMES, COUNTING = "vocab", "documents", "counting"


@runtime_checkable
class Stored(Protocol):
    """A corpus that can be read in blocks, from the start, as often as wanted."""

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and words."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Type of the counts."""
        ...

    @property
    def vocabulary(self) -> list[str] | None:
        """The words, one a column."""
        ...

    @property
    def names(self) -> Iterable[str] | None:
        """Names of the documents, which can be gone through again and again."""
        ...

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order: sorted words, none twice, no zeros."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Counts of words in documents, in memory.

    Parameters
    ----------
    counts : sparse matrix of shape (n_documents, n_words)
        Finite and not negative. Held as a CSR array with sorted words, none twice, no zeros.
    vocabulary : list of str, optional
        The words, one a column.
    names : list of str, optional
        Names of the documents, one a row.
    texts : list of str, optional
        The documents themselves, where they are at hand. No file format keeps them.
    counting : WordCounting, optional
        How text was made into these words, where it was. It is kept beside a file of the corpus,
        and by a model that is fitted to it.

    Examples
    --------
    >>> from scipy import sparse
    >>> from tempering.corpus import Corpus
    >>> corpus = Corpus(sparse.csr_array([[2, 0], [1, 3]]), vocabulary=["sun", "snow"])
    >>> corpus
    Corpus(2 documents × 2 words, 6 tokens)
    >>> corpus.shape, corpus.n_tokens
    ((2, 2), 6)
    """

    counts: sparse.csr_array
    vocabulary: list[str] | None = None
    names: list[str] | None = None
    texts: list[str] | None = None
    counting: WordCounting | None = None

    def __post_init__(self) -> None:
        if not sparse.issparse(self.counts) or self.counts.dtype.kind not in "biuf":
            kind = f"{type(self.counts).__name__} of {getattr(self.counts, 'dtype', None)}"
            raise CorpusError(f"counts must be a sparse matrix of real numbers; got {kind}.")
        if self.counts.ndim != 2:
            raise CorpusError(f"counts must have a row a document; got shape {self.counts.shape}.")
        try:
            check_compressed(self.counts, "counts")
        except ValueError as error:
            raise CorpusError(str(error)) from None
        if self.counting is not None and not isinstance(self.counting, WordCounting):
            raise CorpusError(f"counting must be a WordCounting or None; got {self.counting!r:.80}")
        counts: Any = sparse.csr_array(self.counts)
        if counts.dtype.kind == "b":
            counts = counts.astype(np.uint8)
        check_counts("counts", counts.data, counts.indptr)
        object.__setattr__(self, "counts", canonical(counts))
        rows, columns = self.shape
        for name, expected in (("vocabulary", columns), ("names", rows), ("texts", rows)):
            value = getattr(self, name)
            # A mapping from words to columns, and a set, have an order of their own.
            unlisted = isinstance(value, str | Mapping | Set) or not isinstance(value, Sized)
            if value is not None and unlisted:
                raise CorpusError(
                    f"{name} must be a list, in the order of counts; got {value!r:.90}."
                )
            if value is not None and len(value) != expected:
                taken = f"but counts has shape {self.shape}, which takes {expected}."
                raise CorpusError(f"{name} has {len(value)} entries, {taken}")

    def __repr__(self) -> str:
        n_documents, n_words = self.shape
        return f"Corpus({n_documents:,} documents × {n_words:,} words, {self.n_tokens:,} tokens)"

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and words."""
        return self.counts.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the counts."""
        return self.counts.dtype

    @property
    def n_tokens(self) -> int | float:
        """Sum of the counts."""
        return self.counts.sum(dtype=np.float64 if self.dtype.kind == "f" else np.int64).item()

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        counts: Any = self.counts
        for start in range(0, self.shape[0], BLOCK_SIZE):
            yield counts[start : start + BLOCK_SIZE]


def gather(stored: Stored) -> Corpus:
    """A stored corpus as a whole in memory."""
    if isinstance(stored, Corpus):
        return stored
    empty = sparse.csr_array((0, stored.shape[1]), dtype=stored.dtype)
    counts = sparse.csr_array(sparse.vstack(list(stored.blocks()) or [empty], format="csr"))
    names = None if stored.names is None else list(stored.names)
    return Corpus(counts, stored.vocabulary, names, counting=getattr(stored, "counting", None))


def canonical(counts: Any, path: Any = "counts") -> Any:
    """Counts with sorted words, none twice, no zeros; what is so already shares its memory."""
    own: Any = canonical_csr(counts)
    if own.nnz < counts.nnz and own.dtype.kind != "f":  # sums of small types are of 64 bits
        check_counts(path, own.data, own.indptr)
        own = own.astype(np.int32)
    if not np.all(own.data):
        own = own.copy()
        own.eliminate_zeros()
    return own


def check_shape(path: Any, place: str, n_documents: int, n_words: int, n_bytes: int) -> None:
    """Refuse a size that a file of ``n_bytes`` cannot have, before memory is taken for it."""
    check_n_words(path, place, n_words)
    # Empty documents take room in memory but none in some formats.
    if not 0 <= n_documents <= n_bytes // 2 + 65536:
        problem = f"{n_documents} documents are claimed, too many for a file of {n_bytes} bytes."
        fail(path, place, problem)


def check_n_words(path: Any, place: str, n_words: int) -> None:
    """Refuse more words than can be numbered."""
    if not 0 <= n_words <= MOST_WORDS:
        fail(path, place, f"a corpus has 0 to {MOST_WORDS} words; got {n_words}.")


def check_counts(path: Any, data: NDArray[Any], indptr: NDArray[Any], first_row: int = 0) -> None:
    """Refuse counts that are negative, not finite, or too large, by document."""
    wrong = ~((data >= 0) & np.isfinite(data))
    if data.dtype.kind in "iu":
        wrong |= data > LARGEST_COUNT
    expected = f"a count must be finite, not negative, and whole ones at most {LARGEST_COUNT}"
    refuse_entry(path, wrong, indptr, first_row, lambda entry: f"{expected}; got {data[entry]}.")


def refuse_entry(
    path: Any,
    wrong: NDArray[np.bool_],
    ends: NDArray[Any],
    first_row: int,
    problem: Callable[[int], str],
) -> None:
    """Raise for the first entry that is wrong, if any is, and name its document."""
    if wrong.any():
        entry = int(np.argmax(wrong))
        row = first_row + int(np.searchsorted(ends, entry, side="right")) - 1
        fail(path, f"document {row} (from 0)", problem(entry))


def checked_rows(
    where: Any, arrays: tuple[Any, Any, Any], n_words: int, first_row: int = 0, first_word: int = 0
) -> sparse.csr_array:
    """Rows of counts, words (from 0) and ends of rows: sorted, none twice, no zeros, or refused."""
    counts, words, ends = (np.asarray(array) for array in arrays)
    if counts.dtype.kind not in "biuf" or {words.dtype.kind, ends.dtype.kind} - set("iu"):
        types = f"counts of {counts.dtype}, words of {words.dtype} and ends of {ends.dtype}"
        fail(where, "", f"it should hold counts that are numbers, and whole numbers; got {types}.")
    check_n_words(where, "", n_words)
    rises = ends.ndim == 1 and ends.size > 0 and ends[0] == 0 and not np.any(ends[1:] < ends[:-1])
    if not rises or not counts.shape == words.shape == (int(ends[-1]),):
        problem = f"rows end at other places than {words.size} words and {counts.size} counts do."
        fail(where, "", problem)
    known = f"is out of range: there are {n_words}, numbered from {first_word}."
    wrong = (words < 0) | (words >= n_words)
    refuse_entry(where, wrong, ends, first_row, lambda i: f"word {words[i] + first_word} {known}")
    check_counts(where, counts, ends, first_row)
    # scipy knows neither half nor extended precision, nor the order of bytes of other machines.
    # Numbers of two bytes, whole ones too, are all held by the float of four.
    native = np.dtype("u1") if counts.dtype.kind == "b" else counts.dtype.newbyteorder("=")
    kind = {2: np.dtype("f4"), 16: np.dtype("f8")}.get(counts.itemsize, native)
    sound = (
        counts.astype(kind, copy=False),
        words.astype(np.int32, copy=False),
        ends.astype(np.int64, copy=False),
    )
    return canonical(sparse.csr_array(sound, (ends.size - 1, n_words)), where)


def _sidecar(path: Path, what: str) -> Path:
    if match := UCI_NAME.fullmatch(path.name):
        return path.with_name(f"{what}.{match[1]}.txt")
    bare = path.with_suffix("") if path.suffix == ".gz" else path
    return path.with_name(f"{bare.stem}.{what}.txt")


def read_vocabulary(path: Path, n_words: int | None) -> list[str] | None:
    """The words of the corpus at ``path``, if they are there; as many as the corpus tells of."""
    lines = Lines(_sidecar(path, WORDS))
    if not lines.path.is_file():
        return None
    vocabulary = list(lines)
    if n_words is not None and len(vocabulary) != n_words:
        problem = f"it holds {len(vocabulary)} words, but {path.name} tells of {n_words}."
        fail(lines.path, f"line {len(vocabulary)}", problem)
    return vocabulary


def read_names(path: Path, n_documents: int) -> Lines | None:
    """The names of the documents of the corpus at ``path``, if they are there."""
    lines = Lines(_sidecar(path, NAMES))
    if not lines.path.is_file():
        return None
    found = sum(1 for _ in lines)
    if found != n_documents:
        problem = f"it holds {found} names, but {path.name} has {n_documents} documents."
        fail(lines.path, f"line {found}", problem)
    return lines


def read_counting(path: Path) -> WordCounting | None:
    """How text became the words of the corpus at ``path``, if it is there."""
    lines = Lines(_sidecar(path, COUNTING))
    if not lines.path.is_file():
        return None
    try:
        return WordCounting(**json.loads("".join(lines)))
    except (TypeError, ValueError, RecursionError) as error:
        fail(lines.path, "", f"it does not say how words were counted: {error}")


def write_sidecars(
    stack: ExitStack, path: Path, corpus: Stored, with_names: bool, overwrite: bool
) -> None:
    """Write what the corpus at ``path`` needs beside it; it appears when the stack is closed."""
    counting: WordCounting | None = getattr(corpus, "counting", None)
    settings = None if counting is None else [json.dumps(counting.as_dict())]
    _write(stack, _sidecar(path, WORDS), corpus.vocabulary, "word", overwrite)
    _write(stack, _sidecar(path, COUNTING), settings, "setting", overwrite)
    if with_names:
        _write(stack, _sidecar(path, NAMES), corpus.names, "name", overwrite)


def _write(
    stack: ExitStack, path: Path, lines: Iterable[str] | None, what: str, overwrite: bool
) -> None:
    """Write the lines, or see that no others are taken for them."""
    if path.exists() and not overwrite:
        if lines is not None and all(a == b for a, b in zip_longest(Lines(path), map(str, lines))):
            return
        raise FileExistsError(
            f"{path} exists already, and would be taken for the {what}s of this corpus: remove it, "
            "or choose another path."
        )
    if lines is None:
        if path.exists():  # it goes once the rest is written, and stays if that fails
            stack.push(lambda problem, *_: path.unlink() if problem is None else None)
        return
    aside = stack.enter_context(atomic_file(path))
    with open(aside, "w", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(map(str, lines)):
            # It would be read as two.
            problem = "holds a line break" if "\n" in line or "\r" in line else ""
            try:
                file.write(f"{line}\n")
            except UnicodeEncodeError as error:
                problem = f"is no text: {error.reason}"
            if problem:
                raise CorpusError(f"{what} {number} (from 0), {cut(line)!r}, {problem}.")
