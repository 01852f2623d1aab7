"""``tempering convert``: a corpus, or text, in another format."""

from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.options import Counting, Jobs, Json, Overwrite, TextOptions, as_given
from tempering.cli.printing import error_console, print_written


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", parser=as_given, help="A corpus, or text.")
    ],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Its name tells the format: .npz, .parquet, .mtx, .ldac, .svmlight, "
            "docword.NAME.txt; .gz too.",
        ),
    ],
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
    from tempering.cli.corpora import Reading, counter, say_if_counted
    from tempering.corpus import write
    from tempering.corpus.formats import check_target

    reading = Reading(source, texts)
    # Before the work of counting.
    check_target(target, overwrite)
    with error_console().status(f"Converting {source}"):
        stored = reading.open(counter(counting), phrases=counting.phrases, jobs=jobs)
        write(target, stored, overwrite=overwrite)
    say_if_counted(stored, reading, counting)
    print_written(target, stored.shape, as_json)
