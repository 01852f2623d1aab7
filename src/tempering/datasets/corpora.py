"""Known corpora: files fetched once and checked, and the bags of words of UCI."""

from pathlib import Path

from tempering.corpus import CorpusError, open_corpus
from tempering.storage import cache_directory

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words"
#: Documents and words, as the repository tells them.
SHAPES = {
    "kos": (3_430, 6_906),
    "nips": (1_500, 12_419),
    "enron": (39_861, 28_102),
    "nytimes": (300_000, 102_660),
    "pubmed": (8_200_000, 141_043),
}


def fetched(url: str, folder: Path | None = None) -> Path:
    """A file from the network, or from where it was kept, of the hash that it had at first."""
    try:
        import pooch
    except ImportError:
        raise ImportError("Fetching data needs pooch: pip install 'tempering[data]'.") from None
    folder = cache_directory() if folder is None else Path(folder)
    name = url.rsplit("/", 1)[-1]
    remembered = folder / f"{name}.sha256"
    known_hash = f"sha256:{remembered.read_text().strip()}" if remembered.is_file() else None
    try:
        path = pooch.retrieve(url, known_hash, fname=name, path=folder)
    except OSError as error:
        raise OSError(f"{url} could not be fetched: {error}") from error
    if known_hash is None:
        remembered.write_text(f"{pooch.file_hash(path)}\n")
    return Path(path)


def fetch_uci(name: str, folder: Path | None = None, url: str = URL) -> Path:
    """Fetch a bag of words, a ``docword`` file and the words beside it, unless it is here.

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
    fetched(f"{url}/vocab.{name}.txt", folder)
    path = fetched(f"{url}/docword.{name}.txt.gz", folder)
    shape = open_corpus(path).shape
    if shape != SHAPES[name]:
        raise CorpusError(
            f"{path} has {shape[0]} documents and {shape[1]} words instead of {SHAPES[name][0]} "
            f"and {SHAPES[name][1]}: delete it, and fetch it again."
        )
    return path
