"""Options that several commands have, and how their values are read."""

from __future__ import annotations

from enum import StrEnum
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


def as_range(text: str) -> tuple[int, int]:
    """How many words are counted together: "2" for one and two, "2,3" for two and three.

    >>> as_range("2"), as_range("2,3")
    ((1, 2), (2, 3))
    """
    least, comma, most = text.partition(",")
    try:
        return (int(least), int(most)) if comma else (1, int(least))
    except ValueError:
        message = f"--ngrams {text!r} is neither a number, nor two such as 1,2."
        raise typer.BadParameter(message) from None


def as_new(path: Path) -> Path:
    """A directory that can be made, beside others: not this one, which "" is too, nor the root."""
    if not path.name:
        raise typer.BadParameter(f"it must name a directory of its own; got {str(path)!r}.")
    return path


def as_character(text: str | None) -> str | None:
    """A character, also where the shell gives it as a backslash and a letter."""
    return "\t" if text in ("\\t", "tab") else text


class Trouble(StrEnum):
    """What becomes of a record that cannot be read."""

    fail = "fail"
    skip = "skip"


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
Id = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Of text in a table: the column of the documents' ids; by default rows are numbered "
        "from 0.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Of text: how its characters are stored, such as latin-1; utf-8 by default.",
    ),
]
OnError = Annotated[
    Trouble | None,
    typer.Option(
        help="Of text: end at a record that cannot be read (fail, the default), or leave it out "
        "and say how many there were.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="Of .csv and .tsv: what stands between two columns, such as ';' or '\\t'.",
        callback=as_character,
    ),
]
StopWords = Annotated[
    str | None,
    typer.Option(
        metavar="english|none|FILE",
        help="Of text: words to leave out: the commonest English ones (the default), none, or "
        "those of a file, one a line.",
    ),
]
NGrams = Annotated[
    str | None,
    typer.Option(
        "--ngrams",
        metavar="N|MIN,MAX",
        help="Of text: count up to N words that follow each other as one, too; 1 by default.",
    ),
]
TokenPattern = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="Of text: what a word is; by default two letters or digits and more, but not digits "
        "alone.",
    ),
]
KeepNumbers = Annotated[
    bool, typer.Option("--keep-numbers", help="Of text: count numbers as words.")
]
MinDf = Annotated[
    str | None,
    typer.Option(
        metavar="N|SHARE",
        help="Of text: leave out words in fewer documents: a number, or a share such as 0.001.",
    ),
]
MaxDf = Annotated[
    str | None,
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
