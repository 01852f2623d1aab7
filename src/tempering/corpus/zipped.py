"""Zip files read without trust."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tempering.corpus.corpus import fail
from tempering.corpus.expansion import refuse_expansion

#: Other methods may take gigabytes of memory for a small file.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def open_zip(path: Path, limit: int) -> Iterator[zipfile.ZipFile]:
    """A zip file; whatever is wrong with it becomes a :class:`CorpusError`.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        The most bytes that it may unpack to.
    """
    # Opened here: a file that is missing, or may not be read, is not a damaged one.
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                if sum(info.file_size for info in members) > limit:
                    refuse_expansion(path)
                # A reader takes memory for as many bytes as a member claims to have.
                if sum(info.compress_size for info in members) > path.stat().st_size:
                    fail(path, "", "its members claim more bytes than the file has.")
                if any(info.compress_type not in METHODS for info in members):
                    fail(path, "", "it is packed in a way other than stored or deflated.")
                yield archive
        except (
            zipfile.BadZipFile,
            zlib.error,
            struct.error,
            EOFError,
            NotImplementedError,
            OSError,
            RuntimeError,
            UnicodeDecodeError,
        ) as error:
            fail(path, "", f"it is no zip file (.npz is one), or damaged: {error}.")
