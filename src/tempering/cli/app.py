"""The command ``tempering``: the list of its commands; and the options of two long ones."""

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

import tempering
from tempering.cli import errors
from tempering.cli.convert import convert
from tempering.cli.datasets import datasets
from tempering.cli.evaluate import evaluate
from tempering.cli.info import info
from tempering.cli.options import (
    CorpusPath,
    Counting,
    Format,
    Jobs,
    Json,
    Keeping,
    Seed,
    Settings,
    TextOptions,
    Vocabulary,
    as_new,
)
from tempering.cli.report import report
from tempering.cli.topics import topics
from tempering.cli.transform import transform

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tempering {tempering.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where in the code an error came from.")
    ] = False,
) -> None:
    """Topic models by variational inference that does not get stuck: tempered, and fast.

    \b
    From text to topics to look at:
      tempering fit folder-of-text/ --topics 20
      tempering report model folder-of-text/ --out report.html
    """
    errors.show_traceback = traceback


def fit(
    corpus: CorpusPath,
    *,
    settings: Settings,
    vocabulary: Vocabulary = None,
    keeping: Keeping,
    as_json: Json = False,
    format: Format = None,
    texts: TextOptions,
    counting: Counting,
) -> None:
    """Fit topics to a corpus, and save the model.

    Of text, English stop words, numbers, words in a single document and words in more than half of
    the documents are left out. The model remembers how words were counted.

    Ctrl-C saves a checkpoint; the same command goes on from there, and ends in the same bits as if
    it had never been interrupted. A .parquet corpus is streamed: memory does not grow with the
    number of its documents.

    \b
    Examples:
      tempering fit 20news.npz --topics 50 --out news
      tempering fit folder-of-text/ --topics 20
      tempering fit folder-of-text/ --topics auto
      tempering fit posts.csv --column body --id post --topics 100 --ngrams 2
      tempering fit big.parquet --topics 100 --batch-size 4096 --scheduler tcp://host:8786
    """
    from tempering.cli.corpora import Reading
    from tempering.cli.fitting import run_fit

    with keeping.alone():
        run_fit(Reading(corpus, format, texts), vocabulary, counting, settings, keeping, as_json)


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the model and the report.", callback=as_new)
    ] = Path("demo"),
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Fit topics plainly and tempered, and compare.

    The corpus is the docstrings of the installed scientific packages. Both fits make the same
    steps on the same documents. The tempered model is saved, with a report. It takes about a
    minute, and no network.

    \b
    Example:
      tempering demo --out demo
    """
    from tempering.cli.demo import run_demo

    run_demo(out, seed, jobs, as_json)


for command in (fit, topics, transform, evaluate, report, convert):
    app.command()(errors.reported(command))
app.add_typer(datasets, name="datasets")
app.command()(errors.reported(info))
app.command()(errors.reported(demo))


def main() -> None:
    """Entry point."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character shows another one, and the command goes on.
            stream.reconfigure(errors="replace")
    app()
