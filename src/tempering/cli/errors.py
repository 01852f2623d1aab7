"""What the commands say when something goes wrong: one line, and an exit code.

0 all is well; 1 a known error; 2 a command line that cannot be understood; 130 Ctrl-C; 143 SIGTERM.
"""

import traceback
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from tempering.cli.options import with_groups

KNOWN_ERROR = 1
INTERRUPTED = 130
#: What the package and the system raise with a message for the user; anything else is a bug.
KNOWN = (ValueError, OSError, ImportError, MemoryError)

#: What `tempering --traceback` sets.
show_traceback = False


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose known errors, warnings and Ctrl-C are told in one line each."""
    command = with_groups(command)

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: say(f"warning: {message}")
            try:
                command(*arguments, **options)
            except BrokenPipeError:
                # Whoever read our output has seen enough; Typer ends quietly.
                raise
            except KeyboardInterrupt as interrupt:
                say(str(interrupt) or "interrupted.")
                raise typer.Exit(INTERRUPTED) from None
            except SystemExit as end:
                # A fit that SIGTERM has ended tells what is kept of it.
                if hasattr(end, "message"):
                    say(str(end))
                raise
            except KNOWN as error:
                if show_traceback:
                    typer.echo(_cleaned(traceback.format_exc()), err=True)
                say(str(error) or type(error).__name__)
                raise typer.Exit(KNOWN_ERROR) from None

    return run


def say(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"tempering: {_cleaned(' '.join(message.split()))}", err=True)


def _cleaned(text: str) -> str:
    # Not at the top: the help of a command should not wait for what prints tables.
    from tempering.cli.printing import cleaned

    return cleaned(text)
