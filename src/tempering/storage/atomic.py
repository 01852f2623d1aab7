"""Files and directories that appear whole, or not at all; one process at a time in a directory;
and signals that wait for what is to be whole.

What is written is written aside, forced to disk and renamed. A process that is killed in between
may leave something named ``.partial-…``, safe to delete. A file ``lock`` tells who is at work in a
directory; the system holds the lock, so it ends with the process: one that a killed process left
stops nobody.
"""

import errno
import os
import secrets
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
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


def check_free(path: Path, overwrite: bool, how: str = "overwrite=True") -> None:
    """Refuse, before the work, to replace what is there, unless that is asked for."""
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists already: pass {how} to replace it, or choose another path."
        )
    check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse, before the work, a path in what is no folder, or in one that is read-only."""
    parent = next((each for each in path.absolute().parents if each.exists()), path)
    if parent.is_dir() and os.access(parent, os.W_OK):
        return
    problem = "is read-only" if parent.is_dir() else "is no folder"
    raise OSError(f"{path} cannot be written, as {parent} {problem}: choose another path.")


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside ``path``, which takes its place if the block ends well, or is removed.

    It ends as ``path`` does, for writers that look at suffixes.
    """
    path = Path(path).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    mark = f"{secrets.token_hex(4)}-{path.name}"
    aside, replaced = path.parent / f".partial-{mark}", path.parent / f".replaced-{mark}"
    try:
        yield aside
        if not aside.exists():
            raise FileNotFoundError(f"nothing was written to {aside}, which was to become {path}.")
        for part in [*aside.rglob("*"), aside]:
            _flush(part)
        if aside.is_dir() and os.path.lexists(path):  # a link to no file is in the way too
            os.rename(path, replaced)
        os.replace(aside, path)
    except BaseException as error:
        remove(aside)
        if not isinstance(error, OSError) or error.errno not in FULL:
            raise
        raise OSError(
            error.errno,
            f"no room to write {path} ({os.strerror(error.errno)}); it is as it was before. "
            "Make room on the disk, or choose a path on another one.",
        ) from error
    remove(replaced)
    _flush(path.parent)


@contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty directory beside ``path`` to fill, which takes its place if the block ends well.

    An error inside the block leaves ``path`` as it was and removes what was written. To replace a
    directory takes two renames: a process that is killed between them leaves the old one beside the
    new one's place, as ``.replaced-…``.
    """
    with atomic_file(path) as aside:
        aside.mkdir()
        yield aside


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Force a file, or the names in a directory, to the disk.

    Windows flushes files that are open for writing, and neither can nor needs to flush directories.
    """
    folder = path.is_dir()
    if folder and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


#: The directories that this process holds, and the thread. The system's lock does not part threads.
_held: dict[tuple[str, int], list[int]] = {}


class InUse(OSError):
    """Another process, or another thread, is at work in a directory."""


@contextmanager
def alone_in(directory: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a directory while the block runs; :class:`InUse` at once if another thread does."""
    path = Path(directory).resolve()
    # By the process, for what a parent held before it was forked is not ours.
    place, mine = (str(path), os.getpid()), [threading.get_ident()]
    holder = _held.setdefault(place, mine)
    if holder is not mine:
        if holder != mine:
            raise _in_use(directory, f"another thread of this process ({os.getpid()})")
        yield
        return
    try:
        missing, lock = not path.exists(), path / "lock"
        path.mkdir(parents=True, exist_ok=True)
        file = _opened(lock, directory)
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
            os.close(file)
            with suppress(OSError):
                if os.name == "nt":  # which removes only what is closed
                    lock.unlink()
                if missing:
                    path.rmdir()
    finally:
        del _held[place]


def _opened(path: Path, directory: str | os.PathLike[str]) -> int:
    """The file, locked: its descriptor."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            free = _locked(file)
            os.lseek(file, 0, os.SEEK_SET)
            if not free:
                raise _in_use(directory, os.read(file, 200).decode(errors="replace").strip())
            # Who held it before may have removed it after we opened it.
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                os.ftruncate(file, 0)
                with suppress(OSError):  # a full disk; the lock holds without the text
                    os.write(file, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _locked(file: int) -> bool:
    """Lock an open file, unless another process has; True where the file system knows no locks."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(file, 2**30, os.SEEK_SET)  # nobody could read text that is locked
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
        else:
            import fcntl

            # Of the process, not of the open file: a child that outlives it does not keep it.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError | PermissionError)
    return True


def _in_use(directory: str | os.PathLike[str], holder: str) -> InUse:
    return InUse(
        f"{directory} is in use by {holder or 'another process'}: wait until that fit has ended, "
        "or choose another directory for this one."
    )


class Terminated(SystemExit):
    """SIGTERM has ended a fit; the message tells what is kept of it."""

    def __init__(self, message: str = "terminated."):
        super().__init__(128 + signal.SIGTERM)  # as a shell reports it
        self.message = message

    def __str__(self) -> str:
        return self.message


def _handlers() -> dict[int, Any]:
    """What Ctrl-C and SIGTERM do now; only the main thread may change it."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


@contextmanager
def postponed_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM wait until the block is done; the second acts at once."""
    handlers = {number: handler for number, handler in _handlers().items() if callable(handler)}
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            handlers[number](number, frame)
        waiting.append(number)

    for number in handlers:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if waiting:
        signal.raise_signal(waiting[0])


@contextmanager
def raising_sigterm() -> Iterator[None]:
    """Have SIGTERM raise :class:`Terminated`, unless the program has its own way with it."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    free = _handlers().get(signal.SIGTERM) is signal.SIG_DFL
    if free:
        signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        if free:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
