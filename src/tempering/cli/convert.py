"""``tempering convert``: a corpus, or text, in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.options import (
    Column,
    Delimiter,
    Encoding,
    Id,
    Json,
    KeepNumbers,
    MaxDf,
    MaxWords,
    MinDf,
    NGrams,
    OnError,
    Overwrite,
    StopWords,
    TokenPattern,
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
    """Turn a corpus, or text, into another format.

    Of text, English stop words, numbers, words in a single document and words in more than half of
    the documents are left out. Words go to OUT.vocab.txt, how text became them to OUT.counting.txt,
    and names of documents to OUT.documents.txt, beside OUT. Text, and most formats, are read in
    pieces: memory does not grow with the number of documents.

    \b
    Examples:
      tempering convert docword.kos.txt.gz kos.npz
      tempering convert posts.jsonl posts.parquet --column body --min-df 5
    """
    from tempering.cli.corpora import Counting, Reading, read_words, say_if_counted
    from tempering.cli.printing import console, error_console, print_json
    from tempering.corpus import write
    from tempering.corpus.formats import READABLE, check_target, known_format

    reading = Reading(source, from_format, column, id, encoding, on_error, delimiter)
    counting = Counting(
        vocabulary, stop_words, ngrams, token_pattern, keep_numbers, min_df, max_df, max_words
    )
    # Before the work of counting.
    check_target(target, to_format, overwrite, "--to")
    if from_format is not None:
        known_format(from_format, "--from", READABLE)
    with error_console().status(f"Converting {source}"):
        stored = reading.open(counting.counter(read_words(vocabulary)))
        write(target, stored, to_format, overwrite)
    say_if_counted(stored, reading, counting)
    n_documents, n_words = stored.shape
    if as_json:
        print_json({"out": str(target), "n_documents": n_documents, "n_words": n_words})
    else:
        line = f"{target}: {n_documents:,} documents, {n_words:,} words"
        console().print(line, markup=False)
