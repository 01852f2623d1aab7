"""Options that several commands have, and how their values are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def as_frequency(text: str | float) -> int | float:
    """A number of documents (5), or a share of them (0.25)."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise typer.BadParameter(f"{text!r} is neither a whole number nor a share from 0 to 1.")
    return share


ModelPath = Annotated[Path, typer.Argument(help="A model that `tempering fit` saved.")]
CorpusPath = Annotated[
    Path,
    typer.Argument(
        help="Counts (.npz, .mtx, .parquet, .csr, .ldac, .svmlight, docword.NAME.txt, also .gz), "
        "or text: a folder of .txt files, or .csv, .tsv, .jsonl, .parquet with a column of text.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Seed = Annotated[
    int, typer.Option(min=0, metavar="N", help="The same seed gives the same numbers.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Threads; one a core by default. Never changes a result."
    ),
]
Format = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The format, where neither name nor content tell it."),
]
Column = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Of text in a table: its column; `text` by default.",
    ),
]
NameColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Of text in a table: the column of the documents' names.",
    ),
]
StopWords = Annotated[
    bool,
    typer.Option(
        "--stop-words/--all-words",
        help="Of text: leave out the commonest English words.",
    ),
]
MinDf = Annotated[
    str,
    typer.Option(
        metavar="N|SHARE",
        help="Of text: leave out words in fewer documents: a number, or a share such as 0.001.",
    ),
]
MaxDf = Annotated[
    str,
    typer.Option(
        metavar="N|SHARE",
        help="Of text: leave out words in more documents: a number, or a share such as 0.5.",
    ),
]
MaxWords = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Of text: keep the most frequent words only.",
    ),
]
Vocabulary = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The words, one a line: names of the columns, or the words of a text to count. By "
        "default those beside the corpus (NAME.vocab.txt), or all that a text has.",
    ),
]
