"""``tempering transform``: topic proportions of documents, to a file."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Any

import typer

from tempering.cli.options import CorpusPath, Jobs, Json, ModelPath, Overwrite, TextOptions
from tempering.cli.printing import error_console, print_either

#: A name, and the topic proportions, of some documents.
Block = tuple[list[str], Any]


def transform(
    model: ModelPath,
    corpus: CorpusPath,
    out: Annotated[Path, typer.Option(help="A file that ends in .csv or .parquet.")],
    overwrite: Overwrite = False,
    jobs: Jobs = None,
    as_json: Json = False,
    *,
    texts: TextOptions,
) -> None:
    """Write the topic proportions of documents.

    Text is counted as that of the fit, with the words of the model. The table has a column doc_id
    and a column for each topic. Ids are those of the column --id, the names of text files, or the
    numbers of the rows, from 0.

    \b
    Examples:
      tempering transform model 20news.npz --out proportions.parquet
      tempering transform model new-texts/ --out proportions.csv
    """
    from tempering.cli.corpora import ModelCorpus, Reading, load_topics
    from tempering.storage.atomic import atomic_file, check_free

    write = WRITERS.get(out.suffix)
    if write is None:
        raise ValueError(f"--out must end in {', '.join(WRITERS)}; got {out}.")
    fitted = load_topics(model).set_params(n_jobs=jobs)
    check_free(out, overwrite, "--overwrite")
    documents = ModelCorpus(Reading(corpus, texts), fitted)
    n_documents, n_topics = documents.stored.shape[0], fitted.n_components
    status = error_console().status(f"Inferring topics of {n_documents:,} documents")
    with status, atomic_file(out) as aside:
        write(aside, _blocks(fitted, documents), n_topics)
    facts = {"out": str(out), "n_documents": n_documents, "n_topics": n_topics}
    line = f"{out}: {n_topics} topic proportions of {n_documents:,} documents"
    print_either(facts, line, as_json)


def _blocks(fitted: Any, documents: Any) -> Iterator[Block]:
    """Names and proportions, some documents at a time."""
    given = documents.stored.names
    names = map(str, count()) if given is None else iter(given)
    for block in documents.blocks():
        if n := block.shape[0]:
            yield list(islice(names, n)), fitted.transform(block).astype("f4")


def _columns(n_topics: int) -> list[str]:
    return [f"topic_{k}" for k in range(n_topics)]


def _write_csv(path: Path, blocks: Iterable[Block], n_topics: int) -> None:
    import csv

    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["doc_id", *_columns(n_topics)])
        for names, proportions in blocks:
            for name, row in zip(names, proportions):
                writer.writerow([name, *(f"{value:.6g}" for value in row)])


def _write_parquet(path: Path, blocks: Iterable[Block], n_topics: int) -> None:
    from tempering.corpus.parquet import load_pyarrow

    pyarrow, parquet = load_pyarrow()
    topics = [(column, pyarrow.float32()) for column in _columns(n_topics)]
    schema = pyarrow.schema([("doc_id", pyarrow.string()), *topics])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for names, proportions in blocks:
            columns = [pyarrow.array(names, pyarrow.string()), *map(pyarrow.array, proportions.T)]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))


WRITERS: dict[str, Callable[[Path, Iterable[Block], int], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
