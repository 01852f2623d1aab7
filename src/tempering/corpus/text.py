"""A corpus out of any iterable of documents."""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Unpack, overload

from sklearn.feature_extraction.text import CountVectorizer

from tempering.corpus.corpus import Corpus, gather
from tempering.corpus.counting import CountingOptions, StopWords, chosen_vectorizer
from tempering.corpus.files import CorpusError
from tempering.corpus.formats import STREAMING, check_target, open_source, write
from tempering.corpus.text_counts import TextCounts, counted_bags
from tempering.corpus.text_files import TEXT_COLUMN, Document, check_columns
from tempering.inference.sources import BlockSource
from tempering.models.arguments import takes
from tempering.storage.atomic import as_path


class TextsOptions(CountingOptions, total=False):
    """Options of :func:`from_texts` but for ``out``."""

    dictionary: Mapping[int, str] | None


@overload
def from_texts(texts: Any, *, out: None = None, **options: Unpack[TextsOptions]) -> Corpus: ...


@overload
def from_texts(
    texts: Any, *, out: str | os.PathLike[str], **options: Unpack[TextsOptions]
) -> BlockSource: ...


def from_texts(
    texts: Any,
    *,
    stop_words: StopWords = "english",
    keep_numbers: bool = False,
    vectorizer: CountVectorizer | None = None,
    phrases: bool = False,
    column: str | None = None,
    name_column: str | None = None,
    dictionary: Mapping[int, str] | None = None,
    n_jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Corpus | BlockSource:
    """Count the words of documents, of which a few are in memory at a time.

    Parameters
    ----------
    texts : iterable, or function without arguments that makes one
        Strings; lists of words, which are taken as they are; mappings with a column of text, such
        as a Hugging Face data set; or lists of (word number, count), such as a gensim corpus. It is
        gone through once. A pandas or polars DataFrame, or a table of Arrow, is its column of
        text.
    stop_words : "english", list of str or None, default="english"
        The words to leave out: the commonest English ones, others, or none.
    keep_numbers : bool, default=False
        Whether what is digits alone counts as a word.
    vectorizer : CountVectorizer, optional
        scikit-learn's, in the place of these two, for its tokeniser, ``stop_words``, ``min_df``,
        ``max_df``, ``max_features`` and the rest. The counts are those of its ``fit_transform``
        (of a ``TfidfVectorizer``, before they are weighted); the object is not fitted.
        ``WordCounting().vectorizer(min_df=2)`` is the default, but for words that are in one
        document alone.
    phrases : bool, default=False
        Whether two words that stick together ("new york") count as a word too, beside each of
        them: pairs that occur five times or more, with a normalised pointwise mutual information
        (NPMI) of 0.5 or more.
    column : str, optional
        The column that holds the text of a mapping, or of a DataFrame; "text" unless told
        otherwise.
    name_column : str, optional
        The column that holds its name.
    dictionary : mapping from number to word, optional
        The words of a gensim corpus.
    n_jobs : int, optional
        Processes that count the words of more than 16,000 texts, -1 for one a core; by default this
        process alone. The counts are the same.
    out : path, optional
        A file that ends in ``.parquet``, to write the counts to: what comes back is a source of
        batches that streams from there, and memory does not grow with the number of documents.

    Examples
    --------
    >>> from tempering.corpus import from_texts
    >>> corpus = from_texts(["the cat sat", "the dog sat down", "the cat"])
    >>> corpus.vocabulary
    ['cat', 'dog', 'sat']
    >>> corpus.counts.toarray()[0]
    array([1, 0, 1], dtype=int32)
    >>> from_texts(["the cat sat"], stop_words=None).vocabulary
    ['cat', 'sat', 'the']
    """
    if out is not None and check_target(as_path(out), overwrite=None) != STREAMING:
        raise CorpusError(f"out must end in .parquet, which streams; got {out}.")
    chosen = chosen_vectorizer(vectorizer, stop_words, keep_numbers, phrases)
    documents = _documents_of(texts, column or TEXT_COLUMN, name_column)
    # Up to the first that is not empty, which tells what they are.
    seen = []
    for document in documents:
        seen.append(document)
        if not (isinstance(document, (list, tuple)) and len(document) == 0):
            break
    if seen and isinstance(seen[-1], Iterator):
        seen[-1] = list(seen[-1])  # it can be looked at once
    every = chain(seen, documents)
    if seen and _is_bag(seen[-1]):
        stored = counted_bags(every, dictionary)
    else:
        stored = TextCounts(every, chosen, column, name_column, phrases=phrases, n_jobs=n_jobs)
    if out is None:
        return gather(stored)
    write(out, stored)
    return open_source(out)


def _documents_of(texts: Any, column: str, name_column: str | None) -> Iterator[Any]:
    """The documents of whatever holds some."""
    wanted = "texts must be an iterable of documents"
    if isinstance(texts, (str, bytes)):
        problem = "not one string; read a file or a folder with tempering.corpus.read."
        raise CorpusError(f"{wanted}, {problem}")
    if callable(texts) and not takes(texts):
        problem = f"or a function without arguments that makes one; got {texts!r:.100}."
        raise CorpusError(f"{wanted}, {problem}")
    made: Any = texts() if callable(texts) else texts
    if isinstance(made, Mapping):
        part = column if column in made or not made else next(iter(made))  # such as "train"
        problem = f"not one mapping: pass its list of texts, as texts[{part!r}]."
        raise CorpusError(f"{wanted}, {problem}")
    if hasattr(made, "with_format"):  # of Hugging Face: documents as mappings, in any format
        made = made.with_format(None)
    if hasattr(made, "to_batches"):  # of Arrow
        made = chain.from_iterable(batch.to_pylist() for batch in made.to_batches())
    elif hasattr(made, "columns"):
        made = _rows(made, column, name_column)
    if not isinstance(made, Iterable):
        raise CorpusError(f"{wanted}; got {made!r:.100}.")
    return iter(made)


def _rows(table: Any, column: str, name_column: str | None) -> Iterator[dict[str, Any]]:
    """The rows of a DataFrame, of which iteration would give the names of the columns."""
    columns = [column] if name_column is None else [column, name_column]
    check_columns("texts", "", columns, list(table.columns))
    for values in zip(*(table[name] for name in columns)):
        missing = [
            type(v).__name__ in ("NAType", "NaTType") or (isinstance(v, float) and v != v)
            for v in values
        ]
        known = [None if gone else value for gone, value in zip(missing, values)]
        yield dict(zip(columns, known))


def _is_bag(item: Any) -> bool:
    """Whether a document is a list of pairs."""
    if isinstance(item, (str, bytes, Mapping, Document)) or not isinstance(item, Iterable):
        return False
    pairs = list(item)
    return bool(pairs) and all(
        not isinstance(pair, (str, bytes)) and isinstance(pair, Iterable) for pair in pairs
    )
