"""Counts out of documents, in memory that does not grow with their number.

The first pass, over texts from any iterator, counts some texts at a time, here or in other
processes, and puts the counts of all words aside on disk. That decides the vocabulary. The second
pass reads them again, and keeps the columns of the vocabulary.
"""

import json
import shutil
import tempfile
import warnings
import weakref
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from tempering.corpus.corpus import LARGEST_COUNT, Corpus, canonical, checked_rows
from tempering.corpus.counting import WordCounting, sticks_together
from tempering.corpus.files import CorpusError, Lines, fail, one_line
from tempering.corpus.text_files import TEXT_COLUMN, Document, Texts, text_field

#: Texts that are counted at a time, and characters: a text may be a whole book.
TEXTS_OF_A_BLOCK, MOST_CHARACTERS = 4096, 16_000_000
#: Blocks that are counted here before other processes start, which takes them some seconds.
BLOCKS_COUNTED_HERE = 4
#: Different words that are held in memory; with more, the rarest are given up.
MOST_DISTINCT = 5_000_000


class NamedText(NamedTuple):
    """A text, or a list of words; its name, and where it stands, for errors."""

    place: str
    name: str | None
    text: Any


class TextBlock(NamedTuple):
    """Counts of some documents, and the words of their columns; whether a text was such a list."""

    names: list[str | None]
    counts: Any
    words: list[str]
    had_words: bool


def count_words(
    texts: Iterable[NamedText], analyze: Callable[[Any], Iterable[str]], binary: bool
) -> TextBlock:
    """Count the words that an analyzer finds in texts; ``binary`` counts each once a text."""
    columns: dict[str, int] = defaultdict(count().__next__)
    names, counts, found, ends, had_words = [], [], [], [0], False
    for place, name, text in texts:
        words = text
        if isinstance(text, (str, bytes)):
            try:
                words = analyze(text)
            except UnicodeDecodeError as error:
                fail("texts", place, f"it is not {error.encoding} ({error.reason}).")
        else:
            had_words = True
        bag = dict.fromkeys(words, 1) if binary else Counter(words)
        names.append(name)
        counts.extend(bag.values())
        found.extend(map(columns.__getitem__, bag))
        ends.append(len(found))
    shape = (len(names), len(columns))
    table = sparse.csr_array((np.array(counts, np.int32), found, ends), shape)
    return TextBlock(names, table, list(columns), had_words)


def counted_blocks(
    texts: Iterator[NamedText],
    how: Callable[[Iterable[NamedText]], TextBlock],
    n_jobs: int | None,
) -> Iterator[TextBlock]:
    """Count all texts in order; many of them in ``n_jobs`` processes, -1 for one a core."""
    chunks = iter(lambda: list(_block(texts)), [])
    n_processes = effective_n_jobs(n_jobs)
    yield from map(how, chunks if n_processes == 1 else islice(chunks, BLOCKS_COUNTED_HERE))
    pool = Parallel(n_processes, return_as="generator")
    n_blocks = 2 * n_processes  # that are counted before all are waited for
    group = list(islice(chunks, n_blocks))
    while group:
        results = pool(delayed(how)(chunk) for chunk in group)
        # Read while they count.
        group = list(islice(chunks, n_blocks))
        yield from results


def _block(texts: Iterator[NamedText]) -> Iterator[NamedText]:
    """The next texts, as many as are counted at a time."""
    n_characters = 0
    for each in islice(texts, TEXTS_OF_A_BLOCK):
        yield each
        n_characters += len(each.text)
        if n_characters > MOST_CHARACTERS:
            return


class TextCounts:
    """Texts as counts of words, equal to ``vectorizer.fit_transform(texts)``, read in blocks."""

    dtype = np.dtype(np.int32)

    def __init__(
        self,
        texts: Iterable[Any],
        vectorizer: CountVectorizer | None = None,
        column: str | None = None,
        name_column: str | None = None,
        *,
        phrases: bool = False,
        n_jobs: int | None = None,
    ):
        chosen: Any = WordCounting().vectorizer() if vectorizer is None else vectorizer
        if not isinstance(chosen, CountVectorizer):
            raise CorpusError(f"vectorizer must be a CountVectorizer(...); got {chosen!r:.100}.")
        chosen._validate_params()
        chosen._validate_ngram_range()
        chosen._validate_vocabulary()
        named = _named_texts(texts, column or TEXT_COLUMN, name_column)
        how = partial(count_words, analyze=chosen.build_analyzer(), binary=chosen.binary)
        fixed = chosen.vocabulary_ if chosen.fixed_vocabulary_ else None
        # What is put aside stays for as long as this object lives.
        folder = Path(tempfile.mkdtemp(prefix="tempering-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._counts, self._words = folder / "counts", folder / "words"
        names_path = folder / "names"
        tally, n_documents, any_word, has_names, had_words = Tally(), 0, False, False, False
        with (
            open(self._counts, "wb") as file,
            open(self._words, "w") as lists,
            open(names_path, "w", encoding="utf-8", errors="replace", newline="\n") as names,
        ):
            for block in counted_blocks(named, how, n_jobs):
                if fixed is None:
                    tally.add(block)
                if n_documents == 0:
                    has_names = block.names[0] is not None
                for array in (block.counts.data, block.counts.indices, block.counts.indptr):
                    np.save(file, array)
                lists.write(f"{json.dumps(block.words)}\n")
                names.writelines(f"{one_line(name or '')}\n" for name in block.names)
                n_documents += len(block.names)
                any_word = any_word or any(fixed is None or w in fixed for w in block.words)
                had_words = had_words or block.had_words
        if not any_word:
            fail(
                texts.path if isinstance(texts, Texts) else "texts",
                "",
                f"there is not one word to count in the {n_documents} documents. (Stop words "
                "and numbers do not count unless told otherwise; with a vocabulary, only its words "
                "do.)",
            )
        if phrases and had_words:
            raise CorpusError(
                "texts hold lists of words, which are taken as they are, and phrases=True needs "
                "text: join the words, as by ' '.join(words), or leave phrases out."
            )
        if fixed is None:
            self.vocabulary = tally.vocabulary(chosen, n_documents, phrases=phrases)
        else:
            self.vocabulary = sorted(fixed, key=fixed.__getitem__)
        self.shape = (n_documents, len(self.vocabulary))
        self.names = Lines(names_path) if has_names else None
        self.counting = None if had_words else WordCounting.of(chosen)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        places = {word: place for place, word in enumerate(self.vocabulary)}
        with open(self._counts, "rb") as file, open(self._words) as lists:
            for line in lists:
                counts, words, ends = (np.load(file, allow_pickle=False) for _ in range(3))
                columns = np.array([places.get(word, -1) for word in json.loads(line)], np.int32)
                kept = columns[words] >= 0
                arrays = counts[kept], columns[words[kept]], np.append(0, np.cumsum(kept))[ends]
                yield canonical(sparse.csr_array(arrays, (ends.size - 1, self.shape[1])))


def _named_texts(texts: Iterable[Any], column: str, name_column: str | None) -> Iterator[NamedText]:
    """Texts or lists of words, whatever the texts are."""
    for number, item in enumerate(texts):
        place = f"document {number} (from 0)"
        name, text = None, item
        if isinstance(item, Document):
            name, text = item
        elif isinstance(item, Mapping):
            text = text_field(item, column, "texts", place)
            told = item.get(name_column)
            name = None if name_column is None else str(number if told is None else told)
        listed = isinstance(text, (list, tuple)) and all(isinstance(word, str) for word in text)
        if not listed and not isinstance(text, (str, bytes)):
            problem = f"it should be text, or a list of words; it is a {type(text).__name__}."
            fail("texts", place, problem)
        yield NamedText(place, name, text)


def counted_bags(bags: Iterable[Any], dictionary: Mapping[int, str] | None = None) -> Corpus:
    """The corpus of documents that are lists of (word number, count), as gensim has them."""
    words, counts, ends = array("q"), array("d"), [0]
    for number, bag in enumerate(bags):
        try:
            for word, times in bag:
                words.append(int(word))
                counts.append(float(times))
        except (TypeError, ValueError, OverflowError) as error:
            problem = f"it should be a list of pairs (word, count): {error}."
            fail("bags", f"document {number} (from 0)", problem)
        ends.append(len(words))
    vocabulary = None
    if dictionary is not None:
        try:
            vocabulary = [dictionary[number] for number in range(len(dictionary))]
        except KeyError as error:
            raise CorpusError(
                f"dictionary must have the numbers 0 to {len(dictionary) - 1}; {error} is missing."
            ) from None
    n_words = max(words, default=-1) + 1 if vocabulary is None else len(vocabulary)
    arrays = np.asarray(counts), np.asarray(words), np.array(ends)
    rows: Any = checked_rows("bags", arrays, n_words)
    if rows.nnz == 0:
        raise CorpusError(f"there is not one word to count in the {len(ends) - 1} documents.")
    whole = np.all((rows.data == np.floor(rows.data)) & (rows.data <= LARGEST_COUNT))
    return Corpus(rows.astype(np.int32) if whole else rows, vocabulary)


class Tally:
    """Counts words, and the documents that they are in; beyond ``MOST_DISTINCT`` rare ones go."""

    def __init__(self) -> None:
        self._documents: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._given_up = 0

    def add(self, block: TextBlock) -> None:
        """Count the words of some documents."""
        n_documents = np.bincount(block.counts.indices, minlength=len(block.words))
        n_tokens = np.asarray(block.counts.sum(axis=0)).ravel()
        self._documents.update(dict(zip(block.words, n_documents.tolist())))
        self._tokens.update(dict(zip(block.words, n_tokens.tolist())))
        if len(self._documents) > MOST_DISTINCT:
            # Until half as many may come again.
            least = sorted(self._documents.values())[-MOST_DISTINCT // 2]
            for word in [word for word, n in self._documents.items() if n <= least]:
                del self._documents[word], self._tokens[word]
            self._given_up += least

    def vocabulary(self, vectorizer: Any, n_documents: int, *, phrases: bool = False) -> list[str]:
        """The words that a ``CountVectorizer`` chooses, in its order."""
        if self._given_up:
            warnings.warn(
                f"there are more than {MOST_DISTINCT} different words; words in at most "
                f"{self._given_up} documents may be missing, or counted too low. Set min_df above "
                "that to be sure.",
                stacklevel=4,
            )
        words = sorted(self._documents)
        documents = np.array([self._documents[word] for word in words], np.int64)
        tokens = np.array([self._tokens[word] for word in words], np.int64)
        least = _documents_meant(vectorizer.min_df, n_documents)
        most = _documents_meant(vectorizer.max_df, n_documents)
        if most < least:
            raise CorpusError(
                f"max_df={vectorizer.max_df!r} means fewer documents than "
                f"min_df={vectorizer.min_df!r}, {most:g} < {least:g}, of the {n_documents} that "
                "there are: lower min_df, or raise max_df."
            )
        kept = (documents >= least) & (documents <= most)
        if phrases:
            kept &= sticks_together(words, tokens)
        chosen = np.flatnonzero(kept)
        if vectorizer.max_features is not None:
            # As scikit-learn does it, so that ties fall the same way.
            frequent = (-tokens[chosen]).argsort()[: vectorizer.max_features]
            chosen = np.sort(chosen[frequent])
        if chosen.size == 0:
            raise CorpusError(
                f"none of the {len(words)} words is left: lower min_df, raise max_df, or use fewer "
                "stop words."
            )
        return [words[i] for i in chosen]


def _documents_meant(frequency: Any, n_documents: int) -> float:
    """A document frequency as a number of documents."""
    return int(frequency) if isinstance(frequency, Integral) else frequency * n_documents
