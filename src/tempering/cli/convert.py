"""``tempering convert``: a corpus, or text, in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.options import (
    Column,
    Json,
    MaxDf,
    MaxWords,
    MinDf,
    NameColumn,
    Overwrite,
    StopWords,
    Vocabulary,
)


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A corpus, or text.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Its name tells the format: .npz, .parquet, .csr, .mtx, .ldac, .svmlight, "
            "docword.NAME.txt; .gz too.",
        ),
    ],
    from_format: Annotated[
        str | None, typer.Option("--from", help="Format of IN, where its name does not tell it.")
    ] = None,
    to_format: Annotated[
        str | None, typer.Option("--to", help="Format of OUT, where its name does not tell it.")
    ] = None,
    vocabulary: Vocabulary = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    column: Column = None,
    name_column: NameColumn = None,
    stop_words: StopWords = True,
    min_df: MinDf = "2",
    max_df: MaxDf = "0.5",
    max_words: MaxWords = None,
) -> None:
    """Turn a corpus, or text, into another format.

    Words go to OUT.vocab.txt and names of documents to OUT.documents.txt, beside OUT. Text, and
    most formats, are read in pieces: memory does not grow with the number of documents.

    \b
    Examples:
      tempering convert docword.kos.txt.gz kos.npz
      tempering convert posts.jsonl posts.parquet --column body --min-df 5
    """
    from tempering.cli.corpora import read_words, word_counter
    from tempering.cli.printing import console, error_console, print_json
    from tempering.corpus import convert as convert_corpus

    counter = word_counter(read_words(vocabulary), stop_words, min_df, max_df, max_words)
    with error_console().status(f"Converting {source}"):
        n_documents, n_words = convert_corpus(
            source,
            target,
            source_format=from_format,
            target_format=to_format,
            column=column,
            name_column=name_column,
            vectorizer=counter,
            overwrite=overwrite,
        )
    if as_json:
        print_json({"out": str(target), "n_documents": n_documents, "n_words": n_words})
    else:
        line = f"{target}: {n_documents:,} documents, {n_words:,} words"
        console().print(line, markup=False)
