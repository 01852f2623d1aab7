"""Files and directories that appear whole, or not at all: written aside, forced to disk, renamed.

A process that is killed in between may leave something named ``.partial-…``, safe to delete.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: What the system answers when there is no more room.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def as_path(path: Any) -> Path:
    """A path of a user; raise ``ValueError`` for what cannot be one."""
    try:
        if not (text := os.fspath(path)) or not isinstance(text, str) or "\0" in text:
            raise TypeError
    except TypeError:
        problem = f"path must be the name of a file or a folder; got {path!r:.100}."
        raise ValueError(problem) from None
    return Path(path)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside ``path``, which takes its place if the block ends well, or is removed."""
    path = Path(path).absolute()
    with _aside(path) as aside:
        yield aside
        if not aside.is_file():
            raise FileNotFoundError(f"nothing was written to {aside}, which was to become {path}.")
        _flush_file(aside)
        os.replace(aside, path)


@contextmanager
def atomic_directory(path: str | os.PathLike[str], overwrite: bool = False) -> Iterator[Path]:
    """An empty directory beside ``path`` to fill, which appears there when the block ends well.

    An error inside the block leaves ``path`` as it was and removes what was written. To overwrite
    takes two renames: a process that is killed between them leaves the old directory beside the new
    one's place, as ``.replaced-…``.
    """
    path = Path(path).absolute()
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already: remove it, or choose another path.")
    with _aside(path) as aside:
        aside.mkdir()
        yield aside
        for folder, _, files in os.walk(aside):
            for name in files:
                _flush_file(Path(folder, name))
            _flush_directory(Path(folder))
        replaced = _hidden_name(path, "replaced")
        if path.exists():
            os.rename(path, replaced)
        os.rename(aside, path)
        _remove(replaced)


@contextmanager
def _aside(path: Path) -> Iterator[Path]:
    """An unused name beside ``path``: removed if the block fails, made to last if it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = _hidden_name(path, "partial")
    try:
        yield aside
    except OSError as error:
        _remove(aside)
        if error.errno not in FULL:
            raise
        raise OSError(
            error.errno,
            f"no room to write {path} ({os.strerror(error.errno)}); it is as it was before. "
            "Make room on the disk, or choose a path on another one.",
        ) from error
    except BaseException:
        _remove(aside)
        raise
    _flush_directory(path.parent)


def _hidden_name(path: Path, purpose: str) -> Path:
    """A name beside ``path`` that ends as it does, for writers that look at suffixes."""
    return path.parent / f".{purpose}-{secrets.token_hex(4)}-{path.name}"


def _remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush_file(path: Path) -> None:
    """Force a file to the disk. (Windows flushes only what is open for writing.)"""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _flush_directory(path: Path) -> None:
    """Make a rename last; Windows neither can nor needs to."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
