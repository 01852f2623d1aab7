"""Directories of a CSR matrix, which stream: what ``write_csr`` makes and ``MappedCSR`` reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scipy import sparse

from tempering.corpus.beside import read_names, read_vocabulary
from tempering.corpus.checks import reading
from tempering.corpus.corpus import BLOCK_SIZE, CorpusError, Stored, canonical
from tempering.inference.csr_files import CSRFiles, write_csr

DESCRIPTION = "meta.json"


class CSRDirectory:
    """A matrix in a directory, read in blocks."""

    def __init__(self, path: Path):
        self.path = path
        with reading(path):
            self.files = CSRFiles(path)
        self.shape = self.files.shape
        self.dtype = self.files.data.dtype
        self.vocabulary = read_vocabulary(path, self.shape[1])
        self.names = read_names(path, self.shape[0])

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        for start in range(0, self.shape[0], BLOCK_SIZE):
            with reading(self.path):
                rows = self.files.rows(start, min(start + BLOCK_SIZE, self.shape[0]))
            yield canonical(rows, self.path)


def write_directory(path: Path, stored: Stored) -> None:
    """Write a matrix as a directory, which must not be there yet."""
    try:
        write_csr(path, stored.blocks())
    except CorpusError:
        raise
    except ValueError as error:
        raise CorpusError(f"{path}: {error}") from error
