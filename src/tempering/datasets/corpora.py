"""Known corpora: files fetched once and checked, the bags of words of UCI; and a real one that is
on every machine, the docstrings of the installed scientific packages.

The latter are taken out of the source files: nothing is imported.
"""

import ast
import gc
import hashlib
import importlib.util
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from tempering.corpus import (
    Corpus,
    CorpusError,
    Document,
    from_texts,
    open_corpus,
    read,
    read_texts,
    write,
)
from tempering.storage import cache_directory
from tempering.storage.atomic import atomic_directory

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
    ``corpus.write("pubmed.parquet", corpus.open_corpus(fetch_uci("pubmed")))``, then
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


#: The first four come with this package.
PACKAGES = ("numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib")
#: Words that tell of the form of docstrings, not of what they are about.
BOILERPLATE = """
    arg args argument arguments attribute attributes autosummary bool callable class default
    defaults deprecated dict dictionary doi example examples false float following function
    generated given http https iff ignored instance int integer kwargs like list method methods
    note notes object objects optional options org param parameter parameters raise raises ref
    reference references return returned returns see self shape specified str string toctree
    true tuple type types use used uses using value values version versionadded versionchanged
    warning www
"""
#: Directories that hold tests, or other projects' code.
PASSED_OVER = {"tests", "test", "_tests", "testing", "_vendor", "vendored", "externals"}
# To be raised when the corpus changes for the same packages.
EDITION = 1


def load_docstrings(
    packages: Iterable[str] | None = None,
    cache: bool = True,
    folder: str | os.PathLike[str] | None = None,
) -> Corpus:
    """The docstrings of installed packages as a corpus: real text, without a network.

    One document for each module, class or function (``names``) whose docstring (``texts``) has 20
    words at least; about 7,000 documents and a million words with numpy, scipy and scikit-learn
    alone. Source files are parsed, never run. Left out are stop words, words of the form
    ("parameters", "returns"), words in fewer than 5 or more than a quarter of the documents, and
    the code of examples.

    Parameters
    ----------
    packages : iterable of str, optional
        Names to import; by default numpy, scipy, sklearn, numba, and pandas and matplotlib where
        they are installed.
    cache : bool
        Whether to keep the corpus on disk, and take it from there: it is made anew only when a
        package changes its version.
    folder : path, optional
        Where it is kept; by default :func:`cache_directory`.

    Examples
    --------
    >>> from tempering.datasets import load_docstrings
    >>> corpus = load_docstrings(["safetensors", "joblib"], cache=False)
    >>> "joblib.memory.Memory" in corpus.names
    True
    """
    chosen = tuple(PACKAGES if packages is None else packages)
    places = {package: place for package in chosen if (place := _package_directory(package))}
    if not places:
        raise CorpusError(f"none of these packages is installed: {', '.join(chosen)}.")
    if not cache:
        return _build(places)
    kept = Path(folder or cache_directory()) / f"docstrings-{_key(places)}"
    if kept.exists():
        try:
            corpus = read(kept / "corpus.npz")
            texts = [document.text for document in read_texts(kept / "texts.jsonl")]
            return Corpus(corpus.counts, corpus.vocabulary, corpus.names, texts)
        except (CorpusError, OSError):
            # Damaged: it is made anew.
            pass
    corpus = _build(places)
    try:
        with atomic_directory(kept) as aside:
            write(aside / "corpus.npz", corpus)
            with open(aside / "texts.jsonl", "w", encoding="utf-8") as file:
                file.writelines(json.dumps({"text": text}) + "\n" for text in corpus.texts or ())
    except OSError as error:
        warnings.warn(f"the docstrings could not be kept in {kept}: {error}", stacklevel=2)
    return corpus


def _key(places: dict[str, Path]) -> str:
    """A name for the corpus of these packages in these versions."""
    parts = [f"edition {EDITION}"]
    for package, place in places.items():
        try:
            version = metadata.version("scikit-learn" if package == "sklearn" else package)
        except metadata.PackageNotFoundError:
            version = str(place)
        parts.append(f"{package} {version}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _build(places: dict[str, Path]) -> Corpus:
    documents, seen, collects = [], set(), gc.isenabled()
    gc.disable()  # syntax trees are many objects, and no cycles: a third of the time
    try:
        for package, place in places.items():
            for document in docstrings(package, place, least_words=20):
                # Each text once: methods often repeat one another's.
                if document.text not in seen:
                    seen.add(document.text)
                    documents.append(document)
    finally:
        if collects:
            gc.enable()
    vectorizer = CountVectorizer(
        stop_words=[*ENGLISH_STOP_WORDS, *BOILERPLATE.split()],
        token_pattern=r"(?u)\b[a-zA-Z]{3,}\b",
        min_df=5,
        max_df=0.25,
    )
    code = re.compile(r"^\s*(>>>|\.\.\.).*$", re.MULTILINE)
    prose = (Document(name, code.sub("", text)) for name, text in documents)
    corpus = from_texts(prose, vectorizer=vectorizer)
    kept = np.flatnonzero(corpus.counts.sum(axis=1) >= 10)
    return Corpus(
        corpus.counts[kept],
        corpus.vocabulary,
        [documents[i].name for i in kept],
        [documents[i].text for i in kept],
    )


def _package_directory(package: str) -> Path | None:
    """Where a package is installed; None if it is not, or is a single file."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def docstrings(package: str, directory: Path, least_words: int) -> Iterator[Document]:
    """The docstrings of modules, classes and functions, in the order of the source."""
    for path in sorted(directory.rglob("*.py")):
        parts = path.relative_to(directory).with_suffix("").parts
        if PASSED_OVER.intersection(parts) or any(part.startswith("test_") for part in parts):
            continue
        source = path.read_bytes()
        if b'"""' not in source and b"'''" not in source:  # it need not be parsed
            continue
        try:
            tree = ast.parse(source)
        # Templates and files for other versions of Python.
        except (SyntaxError, ValueError):
            continue
        module = ".".join([package, *(part for part in parts if part != "__init__")])
        for document in _in_scope(tree, module):
            if len(re.findall(r"[A-Za-z]{2,}", document.text)) >= least_words:
                yield document


def _in_scope(node: ast.AST, name: str) -> Iterator[Document]:
    """The docstring of a module, class or function, and of those defined in it."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        text = ast.get_docstring(node)
        if text:
            yield Document(name, text)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _in_scope(child, f"{name}.{child.name}")
        elif isinstance(child, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
            yield from _in_scope(child, name)
        elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
            yield from _added(child.value, name)


def _added(call: ast.Call, module: str) -> Iterator[Document]:
    """The docstring that a call gives to a compiled function, as in numpy and scipy."""
    if getattr(call.func, "id", getattr(call.func, "attr", None)) != "add_newdoc":
        return
    texts = [
        part.value
        for argument in call.args
        for part in ast.walk(argument)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    if len(texts) >= 2:
        names = [part for part in texts[:-1] if part.replace(".", "").isidentifier()]
        if texts[0].split(".")[0] != module.split(".")[0]:
            names = [module.rpartition(".")[0], *names[:1]]
        yield Document(".".join(names), max(texts, key=len))
