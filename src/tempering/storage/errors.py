"""What is wrong with a file is told by one error, which names it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class StorageError(ValueError):
    """A file is missing, damaged, too new or not what it should be; or a value cannot be stored."""


def expect(condition: Any, message: str) -> None:
    """Raise :class:`StorageError` unless the condition holds."""
    if not condition:
        raise StorageError(message)


#: What content that should be otherwise may make Python raise.
WRONG = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong with the content of a file is a storage error that names it."""
    try:
        yield
    except StorageError as error:
        raise type(error)(f"{path}: {error}") from None
    except RecursionError:
        raise StorageError(f"{path}: it is damaged: nested too deep.") from None
    except (*WRONG, OSError) as error:
        raise StorageError(f"{path}: it is damaged: {error}") from None


def short(value: Any) -> str:
    """A value with its type, on one line."""
    text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."
