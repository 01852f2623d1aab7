"""Counts out of documents, in memory that does not grow with their number.

The first pass, over texts from any iterator, counts some texts at a time, here or in other
processes, and puts the counts of all words aside on disk. That decides the vocabulary. The second
pass reads them again, and keeps the columns of the vocabulary.
"""

import shutil
import tempfile
import warnings
import weakref
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from numbers import Integral
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from tempering.corpus.checks import CorpusError, fail
from tempering.corpus.corpus import MOST_WORDS, Corpus, canonical, check_counts, checked_rows
from tempering.corpus.counting import WordCounting, sticks_together
from tempering.corpus.lines import Lines, one_line
from tempering.corpus.text_files import TEXT_COLUMN, Document, text_field

#: Texts that are counted at a time, and characters: a text may be a whole book.
TEXTS_OF_A_BLOCK, MOST_CHARACTERS = 4096, 16_000_000
#: Blocks that are counted here before other processes start, which takes them some seconds.
BLOCKS_COUNTED_HERE = 4
#: Blocks that a process is given before all are waited for.
BLOCKS_OF_A_PROCESS = 2


class NamedText(NamedTuple):
    """A text, or a list of words; its name, and where it stands, for errors."""

    place: str
    name: str | None
    text: Any


class DocumentBlock(NamedTuple):
    """Some documents: their names, and counts of words, which are numbers, one after another."""

    names: list[str | None]
    counts: NDArray[Any]
    words: NDArray[np.int32]
    ends: NDArray[np.int64]


class CountedTexts(NamedTuple):
    """A block whose numbers are places in a list of words, and whether a text was such a list."""

    block: DocumentBlock
    words: list[str]
    had_words: bool


class WordCounter:
    """Counts the words that an analyzer finds in texts; ``binary`` counts each once a text."""

    def __init__(self, analyze: Callable[[Any], Iterable[str]], binary: bool):
        self.analyze = analyze
        self.binary = binary

    def __call__(self, texts: Iterable[NamedText]) -> CountedTexts:
        """Count some texts."""
        places: dict[str, int] = defaultdict(count().__next__)
        names, words, counts, ends, had_words = [], [], [], [0], False
        for place, name, text in texts:
            if isinstance(text, (str, bytes)):
                try:
                    bag = Counter(self.analyze(text))
                except UnicodeDecodeError as error:
                    fail("texts", place, f"it is not {error.encoding} ({error.reason}).")
            else:
                bag, had_words = Counter(text), True
            names.append(name)
            words.extend(map(places.__getitem__, bag))
            # Before the words are ranked by how often they count.
            counts.extend([1] * len(bag) if self.binary else bag.values())
            ends.append(len(words))
        arrays = np.array(counts, np.int32), np.array(words, np.int32), np.array(ends, np.int64)
        return CountedTexts(DocumentBlock(names, *arrays), list(places), had_words)

    def count(self, texts: Iterable[NamedText], n_jobs: int | None) -> Iterator[CountedTexts]:
        """Count all texts in order; many of them in ``n_jobs`` processes, -1 for one a core."""
        texts = iter(texts)
        n_processes = effective_n_jobs(n_jobs)
        for _ in count() if n_processes == 1 else range(BLOCKS_COUNTED_HERE):
            counted = self(_block(texts))
            if not counted.block.names:
                return
            yield counted
        pool = Parallel(n_processes, return_as="generator")
        chunks = iter(lambda: list(_block(texts)), [])
        group = list(islice(chunks, BLOCKS_OF_A_PROCESS * n_processes))
        while group:
            results = pool(delayed(self)(chunk) for chunk in group)
            # Read while they count.
            group = list(islice(chunks, BLOCKS_OF_A_PROCESS * n_processes))
            yield from results


def _block(texts: Iterator[NamedText]) -> Iterator[NamedText]:
    """The next texts, as many as are counted at a time."""
    n_characters = 0
    for each in islice(texts, TEXTS_OF_A_BLOCK):
        yield each
        n_characters += len(each.text)
        if n_characters > MOST_CHARACTERS:
            return


#: Different words that are held in memory; with more, the rarest are given up.
MOST_DISTINCT = 5_000_000


class Spool:
    """Documents on disk, with names all of them or none, for as long as this object lives."""

    def __init__(self, blocks: Iterable[DocumentBlock]):
        self.n_documents = 0
        self._sizes: list[int] = []
        self._has_names = False
        folder = Path(tempfile.mkdtemp(prefix="tempering-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._counts_path, names_path = folder / "counts", folder / "names"
        any_word = False
        with (
            open(self._counts_path, "wb") as file,
            open(names_path, "w", encoding="utf-8", errors="replace", newline="\n") as names,
        ):
            for rows in self._rows(names, blocks):
                any_word = any_word or bool(rows.data.any())
                for array in (rows.data, rows.indices, rows.indptr):
                    np.save(file, array)
        if not any_word:
            raise CorpusError(
                f"there is not one word to count in the {self.n_documents} documents. (Stop words "
                "and numbers do not count unless told otherwise; with a vocabulary, only its words "
                "do.)"
            )
        self.names = Lines(names_path) if self._has_names else None

    def _rows(self, names: IO[str], blocks: Iterable[DocumentBlock]) -> Iterator[Any]:
        """Some documents at a time, as they come."""
        for block in blocks:
            if self.n_documents == 0:
                self._has_names = block.names[0] is not None
            names.writelines(f"{one_line(name or '')}\n" for name in block.names)
            check_counts("texts", block.counts, block.ends, self.n_documents)
            self._sizes.append(len(block.names))
            self.n_documents += len(block.names)
            # The number of words is not known yet.
            shape = (len(block.names), MOST_WORDS)
            yield sparse.csr_array((block.counts, block.words, block.ends), shape)

    def blocks(self) -> Iterator[Any]:
        """Some documents at a time, in order."""
        with open(self._counts_path, "rb") as file:
            for size in self._sizes:
                arrays = tuple(np.load(file, allow_pickle=False) for _ in range(3))
                yield sparse.csr_array(arrays, (size, MOST_WORDS))


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
        tally = Tally(chosen.vocabulary_ if chosen.fixed_vocabulary_ else None)
        named = _named_texts(texts, column or TEXT_COLUMN, name_column)
        counter = WordCounter(chosen.build_analyzer(), chosen.binary)
        had_words = False

        def blocks() -> Iterator[DocumentBlock]:
            nonlocal had_words
            for counted in counter.count(named, n_jobs):
                had_words = had_words or counted.had_words
                yield tally.numbered(counted)

        self._spool = Spool(blocks())
        self.vocabulary = tally.vocabulary(chosen, self._spool.n_documents, phrases=phrases)
        self.shape = (self._spool.n_documents, len(self.vocabulary))
        self.names = self._spool.names
        self._columns = tally.columns(self.vocabulary)
        self.counting = None if had_words else WordCounting.of(chosen)

    def blocks(self) -> Iterator[sparse.csr_array]:
        """Some documents at a time, in order."""
        for rows in self._spool.blocks():
            words = rows.indices if self._columns is None else self._columns[rows.indices]
            kept = words >= 0
            ends = np.append(0, np.cumsum(kept))[rows.indptr]
            arrays = rows.data[kept], words[kept], ends
            yield canonical(sparse.csr_array(arrays, (rows.shape[0], self.shape[1])))


def _named_texts(texts: Iterable[Any], column: str, name_column: str | None) -> Iterator[NamedText]:
    """Texts or lists of words, whatever the texts are."""
    for number, item in enumerate(texts):
        place = f"document {number} (from 0)"
        name, text = None, item
        if isinstance(item, Document):
            name, text = item
        elif isinstance(item, Mapping):
            text = text_field(item, column, "texts", place)
            name = str(item.get(name_column)) if name_column else None
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
    vocabulary = None if dictionary is None else _words_in_order(dictionary)
    n_words = max(words, default=-1) + 1 if vocabulary is None else len(vocabulary)
    arrays = np.asarray(counts), np.asarray(words), np.array(ends)
    rows: Any = checked_rows("bags", arrays, n_words)
    if rows.nnz == 0:
        raise CorpusError(f"there is not one word to count in the {len(ends) - 1} documents.")
    whole = np.all(rows.data == np.floor(rows.data))
    return Corpus(rows.astype(np.int32) if whole else rows, vocabulary)


def _words_in_order(dictionary: Mapping[int, str]) -> list[str]:
    """The words by number."""
    try:
        return [dictionary[number] for number in range(len(dictionary))]
    except KeyError as error:
        raise CorpusError(
            f"dictionary must have the numbers 0 to {len(dictionary) - 1}; {error} is missing."
        ) from None


class Tally:
    """Numbers words as they come and counts them; beyond ``MOST_DISTINCT`` rare ones go."""

    def __init__(self, fixed: Mapping[str, int] | None = None):
        self.fixed = fixed
        numbers = count()
        self._numbers: dict[str, int] = defaultdict(numbers.__next__)
        #: For each number, the documents it is in, and how often it occurs.
        self._documents, self._tokens = np.zeros((2, 1024), np.int64)
        self._given_up = 0

    def numbered(self, counted: CountedTexts) -> DocumentBlock:
        """The block with our numbers for its words, which are counted."""
        block, words, _ = counted
        if self.fixed is None:
            numbers = np.array([self._numbers[word] for word in words], np.int32)
            self._observe(numbers, block)
            return block._replace(words=numbers[block.words])
        numbers = np.array([self.fixed.get(word, -1) for word in words], np.int32)
        found = numbers[block.words]
        kept = found >= 0
        ends = np.append(0, np.cumsum(kept))[block.ends]
        return DocumentBlock(block.names, block.counts[kept], found[kept], ends)

    def _observe(self, numbers: NDArray[np.int32], block: DocumentBlock) -> None:
        """Count the words of some documents, which have these numbers."""
        n = int(numbers.max(initial=-1)) + 1
        if n > self._documents.size:
            more = max(self._documents.size, n - self._documents.size)
            self._documents = np.pad(self._documents, (0, more))
            self._tokens = np.pad(self._tokens, (0, more))
        self._documents[numbers] += np.bincount(block.words, minlength=numbers.size)
        tokens = np.bincount(block.words, block.counts, minlength=numbers.size)
        self._tokens[numbers] += tokens.astype(np.int64)
        if len(self._numbers) > MOST_DISTINCT:
            self._give_up_rare()

    def _give_up_rare(self) -> None:
        """Forget the words in the fewest documents, until half as many may come again."""
        numbers = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        frequency = np.sort(self._documents[numbers])
        least = int(frequency[-MOST_DISTINCT // 2])
        rare = [word for word, i in self._numbers.items() if self._documents[i] <= least]
        for word in rare:
            del self._numbers[word]
        self._given_up += least

    def vocabulary(self, vectorizer: Any, n_documents: int, *, phrases: bool = False) -> list[str]:
        """The words that a ``CountVectorizer`` chooses, in its order."""
        if self.fixed is not None:
            return sorted(self.fixed, key=self.fixed.__getitem__)
        if self._given_up:
            warnings.warn(
                f"there are more than {MOST_DISTINCT} different words; words in at most "
                f"{self._given_up} documents may be missing, or counted too low. Set min_df above "
                "that to be sure.",
                stacklevel=4,
            )
        words = sorted(self._numbers)
        numbers = np.array([self._numbers[word] for word in words], np.int64)
        documents, tokens = self._documents[numbers], self._tokens[numbers]
        least = _documents_meant(vectorizer.min_df, n_documents)
        most = _documents_meant(vectorizer.max_df, n_documents)
        if most < least:
            raise CorpusError(
                f"max_df={vectorizer.max_df!r} means fewer documents than "
                f"min_df={vectorizer.min_df!r}: {most} < {least}."
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

    def columns(self, vocabulary: list[str]) -> NDArray[np.int32] | None:
        """The column of each number, -1 for none; None where the numbers are the columns."""
        if self.fixed is not None:
            return None
        columns = np.full(self._documents.size, -1, np.int32)
        columns[[self._numbers[word] for word in vocabulary]] = np.arange(len(vocabulary))
        return columns


def _documents_meant(frequency: Any, n_documents: int) -> float:
    """A document frequency as a number of documents."""
    return int(frequency) if isinstance(frequency, Integral) else frequency * n_documents
