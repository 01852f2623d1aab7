"""One process at a time in a directory: the system holds the lock, so it ends with the process.

A file ``lock`` tells whose it is; one that a killed process left stops nobody.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FILE = "lock"

#: Where Windows locks a byte: nobody could read the text if it were in the locked part.
BEYOND_THE_TEXT = 2**30

#: The directories that threads of this process hold. The system's lock does not part threads.
_held: dict[Path, tuple[int, int]] = {}
_registry = threading.Lock()


class InUse(OSError):
    """Another process, or another thread, is at work in a directory."""


@contextmanager
def alone_in(directory: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a directory while the block runs; :class:`InUse` at once if another thread does."""
    path = Path(directory).resolve()
    me = os.getpid(), threading.get_ident()
    with _registry:
        # What a parent held before it was forked is not ours.
        holder = _held.get(path) if _held.get(path, me)[0] == me[0] else None
        if holder is None:
            _held[path] = me
    if holder == me:
        yield
        return
    if holder is not None:
        raise _in_use(directory, f"another thread of this process ({me[0]})")
    try:
        missing = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        file = _opened(path / FILE, directory)
        try:
            yield
        finally:
            _remove(path / FILE, file)
            if missing:
                with suppress(OSError):
                    path.rmdir()
    finally:
        del _held[path]


def _opened(path: Path, directory: str | os.PathLike[str]) -> int:
    """The file, locked: its descriptor."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _locked(file):
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

            os.lseek(file, BEYOND_THE_TEXT, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # pyright: ignore[reportAttributeAccessIssue]
            finally:
                os.lseek(file, 0, os.SEEK_SET)
        else:
            import fcntl

            # Of the process, not of the open file: a child that outlives it does not keep it.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


def _remove(path: Path, file: int) -> None:
    """Remove the file, then let go of it; Windows removes only what is closed."""
    with suppress(OSError):
        path.unlink()
    os.close(file)
    if os.name == "nt":
        with suppress(OSError):
            path.unlink()


def _in_use(directory: str | os.PathLike[str], holder: str) -> InUse:
    return InUse(
        f"{directory} is in use by {holder or 'another process'}: wait until that fit has ended, "
        "or choose another directory for this one."
    )
