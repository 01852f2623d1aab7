"""``tempering convert``: a corpus, or text, in another format."""

from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.options import Counting, Jobs, Json, Overwrite, TextOptions, Vocabulary


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A corpus, or text.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Its name tells the format: .npz, .parquet, .mtx, .ldac, .svmlight, "
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
    jobs: Jobs = None,
    as_json: Json = False,
    *,
    texts: TextOptions,
    counting: Counting,
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
    from tempering.cli.corpora import Reading, counter, read_words, say_if_counted
    from tempering.cli.printing import error_console, print_either
    from tempering.corpus import write
    from tempering.corpus.formats import READABLE, check_target, known_format

    reading = Reading(source, from_format, texts)
    # Before the work of counting.
    check_target(target, to_format, overwrite, "--to")
    if from_format is not None:
        known_format(from_format, "--from", READABLE)
    with error_console().status(f"Converting {source}"):
        how = counter(counting, read_words(vocabulary))
        stored = reading.open(how, phrases=counting.phrases, jobs=jobs)
        write(target, stored, to_format, overwrite)
    say_if_counted(stored, reading, counting)
    n_documents, n_words = stored.shape
    facts = {"out": str(target), "n_documents": n_documents, "n_words": n_words}
    print_either(facts, f"{target}: {n_documents:,} documents, {n_words:,} words", as_json)
