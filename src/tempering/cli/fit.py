"""``tempering fit``: its options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.options import (
    Column,
    CorpusPath,
    Delimiter,
    Encoding,
    Format,
    Id,
    Jobs,
    Json,
    KeepNumbers,
    MaxDf,
    MaxWords,
    MinDf,
    NGrams,
    OnError,
    Overwrite,
    Seed,
    StopWords,
    TokenPattern,
    Vocabulary,
    as_new,
)


class Tempering(StrEnum):
    """How the fit is cooled."""

    auto = "auto"
    annealing = "annealing"
    variational = "variational"
    local = "local"
    none = "none"


def fit(
    corpus: CorpusPath,
    topics: Annotated[
        int, typer.Option("--topics", "-k", min=1, metavar="N", help="Number of topics.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The directory of the model.", callback=as_new)
    ] = Path("model"),
    passes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Passes over the documents.")
    ] = 10,
    tempering: Annotated[
        Tempering,
        typer.Option(
            help="auto: cooled from a temperature computed from the corpus. none: plain SVI. The "
            "others are the paper's AVI, VT and LVT."
        ),
    ] = Tempering.auto,
    seed: Seed = 0,
    jobs: Jobs = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Documents of a step; by default 16 to 1024, for 2,000 steps or more in all.",
        ),
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SHARE|N",
            help="Documents to keep out of the fit and to score: a share below 1, or a number; 0 "
            "for none. By default 5%, and 1000 at most.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fit on a Dask cluster: the address of its scheduler, such as tcp://host:8786. "
            "Its workers must see a .parquet or .csr corpus at the same path.",
        ),
    ] = None,
    vocabulary: Vocabulary = None,
    checkpoint_minutes: Annotated[
        float,
        typer.Option(
            min=0, metavar="MINUTES", help="Time between two checkpoints, in OUT.checkpoint."
        ),
    ] = 5.0,
    resume: Annotated[
        bool,
        typer.Option("--resume/--restart", help="Go on with a fit that was interrupted, or anew."),
    ] = True,
    overwrite: Overwrite = False,
    as_json: Json = False,
    format: Format = None,
    column: Column = None,
    id: Id = None,
    encoding: Encoding = None,
    on_error: OnError = None,
    delimiter: Delimiter = None,
    stop_words: StopWords = None,
    ngrams: NGrams = None,
    token_pattern: TokenPattern = None,
    keep_numbers: KeepNumbers = False,
    min_df: MinDf = None,
    max_df: MaxDf = None,
    max_words: MaxWords = None,
) -> None:
    """Fit topics to a corpus, and save the model.

    Of text, English stop words, numbers, words in a single document and words in more than half of
    the documents are left out. The model remembers how words were counted.

    Ctrl-C saves a checkpoint; the same command goes on from there, and ends in the same bits as if
    it had never been interrupted. A .parquet or .csr corpus is streamed: memory does not grow with
    the number of its documents.

    \b
    Examples:
      tempering fit 20news.npz --topics 50 --out news
      tempering fit folder-of-text/ --topics 20
      tempering fit posts.csv --column body --id post --topics 100 --ngrams 2
      tempering fit big.parquet --topics 100 --batch-size 4096 --scheduler tcp://host:8786
    """
    from tempering.cli.corpora import Counting, Reading
    from tempering.cli.fitting import Keeping, Settings, run_fit

    run_fit(
        Reading(corpus, format, column, id, encoding, on_error, delimiter),
        Counting(
            vocabulary, stop_words, ngrams, token_pattern, keep_numbers, min_df, max_df, max_words
        ),
        Settings(
            topics,
            passes,
            None if tempering == Tempering.none else tempering.value,
            batch_size,
            validation,
            seed,
            jobs,
            scheduler,
        ),
        Keeping(out, overwrite, checkpoint_minutes, resume),
        as_json,
    )
