"""Known corpora: files fetched once and checked, the bags of words of UCI, the dump of arXiv."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from tempering.corpus import CorpusError, Document, open_corpus
from tempering.corpus.text_files import filled_lines, json_object, text_field
from tempering.storage.caches import cache_directory

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words"
#: Documents and words, as the repository tells them.
SHAPES = {
    "kos": (3_430, 6_906),
    "nips": (1_500, 12_419),
    "enron": (39_861, 28_102),
    "nytimes": (300_000, 102_660),
    "pubmed": (8_200_000, 141_043),
}


def fetch(url: str, folder: Path | None = None, known_hash: str | None = None) -> Path:
    """A file from the network, or from where it was kept.

    Parameters
    ----------
    url : str
        Where it is.
    folder : Path, optional
        Where it is kept; by default :func:`cache_directory`.
    known_hash : str, optional
        "sha256:…", to check it against. Without one, the hash of the first download is kept beside
        the file, and later ones must agree.

    Examples
    --------
    A file that is here already, of a known hash, is not fetched again:

    >>> import hashlib
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.datasets import fetch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "words.txt").write_bytes(b"sun")
    ...     digest = hashlib.sha256(b"sun").hexdigest()
    ...     fetch("https://example.org/words.txt", Path(folder), f"sha256:{digest}").name
    'words.txt'
    """
    try:
        import pooch
    except ImportError:
        raise ImportError("Fetching data needs pooch: pip install 'tempering[data]'.") from None
    folder = cache_directory() if folder is None else Path(folder)
    name = url.rsplit("/", 1)[-1]
    remembered = folder / f"{name}.sha256"
    if known_hash is None and remembered.is_file():
        known_hash = f"sha256:{remembered.read_text().strip()}"
    try:
        path = pooch.retrieve(url, known_hash, fname=name, path=folder)
    except OSError as error:
        raise OSError(f"{url} could not be fetched: {error}") from error
    if known_hash is None:
        remembered.write_text(f"{pooch.file_hash(path)}\n")
    return Path(path)


def fetch_uci(name: str, folder: Path | None = None, url: str = URL) -> Path:
    """Fetch a bag of words, unless it is here already.

    ``corpus.read(fetch_uci("kos"))`` reads it. The largest two want to stream:
    ``corpus.convert(fetch_uci("pubmed"), "pubmed.parquet")``, then
    ``corpus.open_source("pubmed.parquet")``.

    Parameters
    ----------
    name : "kos", "nips", "enron", "nytimes" or "pubmed"
        Which: 3,430 blog posts, 1,500 papers, 39,861 e-mails, 300,000 news articles or 8,200,000
        abstracts.
    folder : path, optional
        Where it is kept; by default :func:`cache_directory`.
    url : str
        The directory it is fetched from.

    Returns
    -------
    Path
        The ``docword`` file; the words stand beside it.

    Examples
    --------
    >>> from tempering.datasets import fetch_uci
    >>> fetch_uci("wikipedia")
    Traceback (most recent call last):
        ...
    ValueError: name must be one of kos, nips, enron, nytimes, pubmed; got 'wikipedia'.
    """
    if name not in SHAPES:
        raise ValueError(f"name must be one of {', '.join(SHAPES)}; got {name!r}.")
    fetch(f"{url}/vocab.{name}.txt", folder)
    path = fetch(f"{url}/docword.{name}.txt.gz", folder)
    shape = open_corpus(path).shape
    if shape != SHAPES[name]:
        raise CorpusError(
            f"{path} has {shape[0]} documents and {shape[1]} words instead of {SHAPES[name][0]} "
            f"and {SHAPES[name][1]}: delete it, and fetch it again."
        )
    return path


def read_arxiv(
    path: str | os.PathLike[str], categories: Collection[str] | None = None
) -> Iterator[Document]:
    """The papers of a dump of arXiv's metadata, one after another.

    Count their words with ``corpus.from_texts(read_arxiv(path), out="arxiv.parquet")``.

    Parameters
    ----------
    path : path
        The file of JSON lines that Kaggle has as "arXiv Dataset", plain or gzipped.
    categories : collection of str, optional
        Keep papers in one of these, such as "stat.ML"; or in an archive, such as "stat".

    Yields
    ------
    Document
        Named by the identifier; title and abstract.

    Examples
    --------
    >>> import json
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tempering.datasets import read_arxiv
    >>> paper = {"id": "1411.1810", "title": "Variational Tempering", "abstract": " VI ...",
    ...          "categories": "stat.ML cs.LG"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "arxiv.json"
    ...     _ = path.write_text(json.dumps(paper))
    ...     list(read_arxiv(path, categories=["stat"]))
    [Document(name='1411.1810', text='Variational Tempering\\nVI ...')]
    """
    path = Path(path)
    for number, line in filled_lines(path):
        place, row = f"line {number}", json_object(path, number, line)
        title, abstract, name = (
            text_field(row, column, path, place) for column in ("title", "abstract", "id")
        )
        if categories is not None:
            given = text_field(row, "categories", path, place).split()
            archives = [category.split(".")[0] for category in given]
            if not set(categories).intersection([*given, *archives]):
                continue
        yield Document(name, f"{' '.join(title.split())}\n{abstract.strip()}")
