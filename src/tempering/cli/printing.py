"""What the commands print: tables for people, one JSON object for machines, one line for an error.

Exit codes: 0 all is well; 1 a known error; 2 a command line that cannot be understood; 130 Ctrl-C;
143 SIGTERM.
"""

import json
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tempering.cli.options import with_groups
from tempering.storage.atomic import raising_sigterm

#: What `tempering --traceback` sets.
show_traceback = False

#: Characters that a terminal obeys, or that turn the order of a line round; not tab and line feed.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


#: What errors call a parameter, and what sets it here.
SET_BY = {"min_df": "--min-df", "max_df": "--max-df", "n_components": "--topics"}


def cleaned(text: str) -> str:
    """Text as it may go to a terminal: words of a corpus hold whatever its authors liked."""
    return OBEYED.sub("", text)


class CleanConsole(Console):
    """A console on which nothing that is printed can command the terminal."""

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """What goes out, piece by piece; styles and moves of the console's own are apart."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=cleaned(segment.text))


def console() -> Console:
    """Standard output; lines are broken on a terminal only, not in files and pipes."""
    return CleanConsole(width=None if sys.stdout.isatty() else 10_000, highlight=False)


def error_console() -> Console:
    """Standard error, where progress is shown."""
    return CleanConsole(stderr=True, highlight=False)


def print_json(value: dict[str, Any]) -> None:
    """One object, in characters that every terminal and pipe can take."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_either(facts: dict[str, Any], line: str, as_json: bool) -> None:
    """Facts for machines, or a line for people."""
    if as_json:
        print_json(facts)
    else:
        console().print(line, soft_wrap=True, markup=False)


def print_written(path: Path, shape: tuple[int, int], as_json: bool) -> None:
    """That a corpus was written."""
    n_documents, n_words = shape
    facts = {"out": str(path), "n_documents": n_documents, "n_words": n_words}
    print_either(facts, f"{path}: {n_documents:,} documents, {n_words:,} words", as_json)


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one a line."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        table.add_row(Text(name, style="dim"), Text(shown))
    print_table(table)


def print_topics(topics: Sequence[dict[str, Any]]) -> None:
    """Topics with their shares and words, one a line."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("topic", justify="right")
    table.add_column("share", justify="right")
    # Else rich cuts words that are wide, such as Chinese ones, where a line ends.
    table.add_column("words", overflow="fold")
    # Words that belong together have spaces of their own.
    between = ", " if any(" " in str(word) for topic in topics for word in topic["words"]) else " "
    for topic in topics:
        words = Text(between.join(map(str, topic["words"])))
        table.add_row(str(topic["topic"]), f"{topic['share']:.1%}", words)
    print_table(table)


def print_table(table: Table) -> None:
    """A table; in a pipe without the blanks that fill its lines, as a pager would wrap them."""
    out = console()
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().removesuffix("\n").split("\n"):
        print(line.rstrip())


def minus(number: float, digits: int = 3) -> str:
    """A number with a minus sign that is as wide as a digit."""
    return f"{number:.{digits}f}".replace("-", "−")


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose known errors, warnings and Ctrl-C are told in one line each."""
    command = with_groups(command)

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        # So that SIGTERM, too, leaves nothing behind that was put aside.
        with warnings.catch_warnings(), raising_sigterm():
            warnings.showwarning = lambda message, *_: say(f"warning: {message}")
            try:
                command(*arguments, **options)
            except BrokenPipeError:
                # Whoever read our output has seen enough; Typer ends quietly.
                raise
            except KeyboardInterrupt as interrupt:
                say(str(interrupt) or "interrupted.")
                raise typer.Exit(130) from None
            except SystemExit as end:
                # What SIGTERM has ended; a fit tells what is kept of it.
                if hasattr(end, "message"):
                    say(str(end))
                raise
            # With a message for the user; anything else is a bug.
            except (ValueError, OSError, ImportError, MemoryError) as error:
                if show_traceback:
                    typer.echo(cleaned(traceback.format_exc()), err=True)
                say(str(error) or type(error).__name__)
                raise typer.Exit(1) from None

    return run


def say(message: str) -> None:
    """One line on standard error, in which parameters are called by their options."""
    for name, option in SET_BY.items():
        message = message.replace(f"{name}=", f"{option} ").replace(name, option)
    typer.echo(f"tempering: {cleaned(' '.join(message.split()))}", err=True)
