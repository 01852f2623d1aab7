"""Files from the network, checked, and taken up where a download broke off; UCI's corpora."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tempering.corpus import Corpus, CorpusError, open_corpus, read
from tempering.storage.caches import cache_directory

CHUNK_BYTES = 1 << 18
TIMEOUT = 60.0
ATTEMPTS = 3
RANGE_NOT_SATISFIABLE = 416


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
    downloader = Continued(folder / name)
    path = pooch.retrieve(url, known_hash, fname=name, path=folder, downloader=downloader)
    if known_hash is None:
        remembered.write_text(f"{pooch.file_hash(path)}\n")
    return Path(path)


class Continued:
    """A downloader for pooch that takes a download up where it broke off.

    What has come of a file so far is kept beside it, as ``.NAME.partial``, with the server's mark
    of its version in ``.NAME.partial.tag``.
    """

    def __init__(self, path: Path):
        self.partial = path.with_name(f".{path.name}.partial")
        self.tag = path.with_name(f".{path.name}.partial.tag")

    def __call__(self, url: str, output_file: Any, pooch: Any = None) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self._continue(url)
                break
            except (OSError, http.client.HTTPException) as error:
                refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
                if refused or attempt == ATTEMPTS - 1:
                    there = self._n_bytes()
                    kept = f" The {there} bytes that came are kept; call again to go on."
                    message = f"{url} could not be fetched: {error}.{kept if there else ''}"
                    raise OSError(message) from error
        os.replace(self.partial, output_file)
        self.tag.unlink(missing_ok=True)

    def _n_bytes(self) -> int:
        """How much has come."""
        return self.partial.stat().st_size if self.partial.exists() else 0

    def _continue(self, url: str) -> None:
        """Fetch what is missing."""
        there = self._n_bytes()
        headers = {"User-Agent": "tempering"}
        if there and self.tag.is_file():
            # Should the file have changed since, all of it comes again.
            headers |= {"Range": f"bytes={there}-", "If-Range": self.tag.read_text()}
        request = urllib.request.Request(url, headers=headers)
        try:
            answer = urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            if error.code == RANGE_NOT_SATISFIABLE:
                # Longer than the file is: not part of it.
                self.partial.unlink()
                self.tag.unlink()
            raise
        with answer:
            goes_on = answer.status == http.HTTPStatus.PARTIAL_CONTENT
            if not goes_on:
                mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
                self.tag.unlink(missing_ok=True)
                if mark and not mark.startswith("W/"):
                    self.tag.write_text(mark)
            expected = answer.headers.get("Content-Length")
            came = 0
            with open(self.partial, "ab" if goes_on else "wb") as file:
                while chunk := answer.read(CHUNK_BYTES):
                    file.write(chunk)
                    came += len(chunk)
            if expected is not None and came != int(expected):
                raise OSError(f"it broke off after {came} of {expected} bytes")


URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words"
#: Documents and words, as the repository tells them.
SHAPES = {
    "kos": (3_430, 6_906),
    "nips": (1_500, 12_419),
    "enron": (39_861, 28_102),
    "nytimes": (300_000, 102_660),
    "pubmed": (8_200_000, 141_043),
}


def fetch_uci(name: str, folder: Path | None = None, url: str = URL) -> Path:
    """Fetch a bag of words, unless it is here already.

    The largest two want to stream: ``corpus.convert(fetch_uci("pubmed"), "pubmed.parquet")``, then
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


def load_uci(name: str, folder: Path | None = None, url: str = URL) -> Corpus:
    """Fetch a bag of words, unless it is here already, and read it.

    Parameters
    ----------
    name, folder, url
        As in :func:`fetch_uci`.

    Examples
    --------
    ``load_uci("kos")`` is a corpus of 3,430 blog posts.

    >>> from tempering.datasets import load_uci
    >>> load_uci("blogs")
    Traceback (most recent call last):
        ...
    ValueError: name must be one of kos, nips, enron, nytimes, pubmed; got 'blogs'.
    """
    return read(fetch_uci(name, folder, url))
