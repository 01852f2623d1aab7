"""Counts put aside on disk while they come, to be read again in blocks."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tempering.corpus.corpus import MOST_WORDS, CorpusError
from tempering.corpus.lines import Lines, one_line
from tempering.inference.csr_files import CSRFiles, write_csr

#: Documents that are put aside at a time.
SPOOL_BLOCK = 1024


class Bag(NamedTuple):
    """The words of a document, as numbers, and how often each occurs."""

    name: str | None
    words: list[int]
    counts: list[Any]


class Spool:
    """Documents on disk, in a temporary directory that is removed with this object.

    Parameters
    ----------
    bags : iterable of Bag
        Either all have names, or none; the first decides.
    dtype : type
        Of the counts.
    observe : function, optional
        Called with each block of documents when it is put aside.

    Attributes
    ----------
    n_documents : int
        How many there are.
    names : Lines or None
        Their names.
    """

    def __init__(
        self,
        bags: Iterable[Bag],
        dtype: Any,
        observe: Callable[[sparse.csr_array], None] | None = None,
    ):
        self.n_documents = 0
        self._n_entries = 0
        self._has_names = False
        folder = Path(tempfile.mkdtemp(prefix="tempering-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        try:
            write_csr(folder / "counts", self._put_aside(folder / "names", bags, dtype, observe))
        except CorpusError:
            raise
        except ValueError as error:
            if self._n_entries == 0:
                raise CorpusError(
                    f"there is not one word to count in the {self.n_documents} documents. (Stop "
                    "words and numbers do not count unless told otherwise; with a vocabulary, only "
                    "its words do.)"
                ) from None
            raise CorpusError(f"the documents cannot be counted: {error}") from error
        self.names = Lines(folder / "names") if self._has_names else None
        self._counts = CSRFiles(folder / "counts")

    def _put_aside(
        self, names_path: Path, bags: Iterable[Bag], dtype: Any, observe: Any
    ) -> Iterator[sparse.csr_array]:
        bags = iter(bags)
        with open(names_path, "w", encoding="utf-8", errors="replace", newline="\n") as names:
            while group := list(islice(bags, SPOOL_BLOCK)):
                if self.n_documents == 0:
                    self._has_names = group[0].name is not None
                names.writelines(f"{one_line(bag.name or '')}\n" for bag in group)
                ends = np.cumsum([0, *(len(bag.words) for bag in group)])
                words = np.array([word for bag in group for word in bag.words], np.int32)
                counts = np.array([count for bag in group for count in bag.counts], dtype)
                # The number of words is not known yet.
                block = sparse.csr_array((counts, words, ends), (len(group), MOST_WORDS))
                self.n_documents += len(group)
                self._n_entries += words.size
                if observe is not None:
                    observe(block)
                yield block

    def blocks(self) -> Iterator[Any]:
        """Some documents at a time, in order."""
        for start in range(0, self.n_documents, SPOOL_BLOCK):
            yield self._counts.rows(start, min(start + SPOOL_BLOCK, self.n_documents))
