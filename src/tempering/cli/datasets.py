"""``tempering datasets``: known corpora, and one that is on every machine."""

from pathlib import Path
from typing import Annotated

import typer

from tempering.cli.options import Json, Overwrite, Seed
from tempering.cli.printing import error_console, print_facts, print_json, print_written, reported

datasets = typer.Typer(help="List, fetch or make data sets.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="The corpus; its name tells the format.")]


@datasets.command("list")
@reported
def list_datasets(as_json: Json = False) -> None:
    """List what there is.

    \b
    Example:
      tempering datasets list
    """
    from tempering.datasets import cache_directory
    from tempering.datasets.corpora import SHAPES

    if as_json:
        shapes = {name: {"n_documents": n, "n_words": v} for name, (n, v) in SHAPES.items()}
        print_json({"fetch": shapes, "cache": str(cache_directory())})
        return
    bags = [
        (f"fetch {name}", f"UCI bag of words: {n:,} documents, {v:,} words")
        for name, (n, v) in SHAPES.items()
    ]
    own = ("docstrings", "docstrings of the installed scientific packages; no network")
    drawn = ("synthetic", "drawn from a topic model, of any size")
    kept = ("", f"What is fetched is kept in {cache_directory()} (TEMPERING_CACHE).")
    print_facts([own, drawn, *bags, kept])


@datasets.command()
@reported
def fetch(
    name: Annotated[str, typer.Argument(help="kos, nips, enron, nytimes or pubmed.")],
    out: Annotated[
        Path | None, typer.Option(help="Convert it to this corpus; its name tells the format.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Fetch a bag of words of the UCI repository.

    One that is here already is not fetched again.

    \b
    Examples:
      tempering datasets fetch kos
      tempering datasets fetch pubmed --out pubmed.parquet
    """
    from tempering.corpus import open_corpus, write
    from tempering.corpus.formats import check_target
    from tempering.datasets import fetch_uci

    if out is not None:
        check_target(out, overwrite)
    with error_console().status(f"Fetching {name}"):
        path = fetch_uci(name)
        corpus = open_corpus(path)
        if out is not None:
            write(out, corpus, overwrite=overwrite)
    print_written(out or path, corpus.shape, as_json)


@datasets.command()
@reported
def docstrings(out: Out, overwrite: Overwrite = False, as_json: Json = False) -> None:
    """Write the docstrings on this machine as a corpus.

    They are those of the installed scientific packages; it takes no network.

    \b
    Example:
      tempering datasets docstrings --out docstrings.npz
    """
    from tempering.corpus import write
    from tempering.corpus.formats import check_target
    from tempering.datasets import load_docstrings

    check_target(out, overwrite)
    with error_console().status("Reading docstrings"):
        corpus = load_docstrings()
    write(out, corpus, overwrite=overwrite)
    print_written(out, corpus.shape, as_json)


@datasets.command()
@reported
def synthetic(
    out: Out,
    documents: Annotated[int, typer.Option(min=1, help="Documents.")] = 10_000,
    topics: Annotated[int, typer.Option(min=1, help="Topics.")] = 20,
    words: Annotated[int, typer.Option(min=1, help="Words of the vocabulary.")] = 2_000,
    length: Annotated[
        float, typer.Option(min=1, max=1e5, help="Words of a document, mean.")
    ] = 100.0,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Draw a corpus from a topic model.

    Memory does not grow with the number of documents.

    \b
    Example:
      tempering datasets synthetic --documents 1000000 --out million.parquet
    """
    from tempering.corpus import write
    from tempering.datasets import LDAStream

    stream = LDAStream(documents, topics, words, length, seed=seed)
    with error_console().status(f"Drawing {documents:,} documents"):
        write(out, stream, overwrite=overwrite)
    print_written(out, stream.shape, as_json)
