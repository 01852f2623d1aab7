"""How text becomes words, as data that a saved model can keep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_extraction.text import CountVectorizer

from tempering.corpus.files import CorpusError

#: Two letters or more; and the same, but for what is digits alone.
WORDS_AND_NUMBERS = r"(?u)\b\w\w+\b"
WORDS = r"(?u)\b(?!\d+\b)\w\w+\b"
#: The most words of an n-gram: more are a mistake, and fill the memory.
LONGEST_NGRAM = 10
#: A phrase occurs so often at least, and is so much more common than chance: NPMI, at most 1.
LEAST_COUNT, LEAST_NPMI = 5, 0.5

StopWords = Literal["english"] | Iterable[str] | None


class CountingOptions(TypedDict, total=False):
    """Where text stands, and how it is counted: options of what reads text."""

    column: str | None
    name_column: str | None
    stop_words: StopWords
    keep_numbers: bool
    vectorizer: CountVectorizer | None
    phrases: bool
    n_jobs: int | None


class ReadingOptions(CountingOptions, total=False):
    """Options of :func:`open_corpus`: how text in a file is read, besides."""

    encoding: str
    on_error: str
    delimiter: str | None


@dataclass(frozen=True)
class WordCounting:
    """How text becomes words: what scikit-learn's ``CountVectorizer`` is told.

    A corpus that was counted from text has it as ``counting``, a model that was fitted to that
    corpus as ``counting_`` (a dictionary), also when it was saved and loaded, so that later text
    can be counted alike.

    Parameters
    ----------
    stop_words : "english", words or None
        What is left out: scikit-learn's list of English words, words of one's own, or nothing.
    token_pattern : str
        A regular expression for a word; by default two letters or digits and more, but not digits
        alone.
    ngrams : pair of int
        The least and the most words that are counted together.
    lowercase : bool
        Whether "The" is "the".
    strip_accents : {"ascii", "unicode"} or None
        Whether "é" is "e".
    analyzer : {"word", "char", "char_wb"}
        Whether n-grams are of words, or of characters.
    binary : bool
        Whether a word counts once in a document.

    Examples
    --------
    >>> from tempering.corpus import WordCounting, from_texts
    >>> counting = WordCounting(stop_words=None, ngrams=(1, 2))
    >>> from_texts(["the cat sat"], vectorizer=counting.vectorizer()).vocabulary
    ['cat', 'cat sat', 'sat', 'the', 'the cat']
    """

    stop_words: StopWords = "english"
    token_pattern: str = WORDS
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True
    strip_accents: str | None = None
    analyzer: str = "word"
    binary: bool = False

    def __post_init__(self) -> None:
        words = self.stop_words
        if words is not None and words != "english":
            listed = list(words) if isinstance(words, Iterable) else [words]
            if isinstance(words, str) or not all(isinstance(word, str) for word in listed):
                raise CorpusError(
                    f"stop_words must be 'english', a list of words, or None; got {words!r:.80}."
                )
            object.__setattr__(self, "stop_words", tuple(listed))
        _check_pattern(self.token_pattern)
        object.__setattr__(self, "ngrams", _as_range(self.ngrams))
        for name, allowed in (
            ("lowercase", (True, False)),
            ("binary", (True, False)),
            ("strip_accents", (None, "ascii", "unicode")),
            ("analyzer", ("word", "char", "char_wb")),
        ):
            if getattr(self, name) not in allowed:
                known = ", ".join(map(repr, allowed))
                raise CorpusError(f"{name} must be one of {known}; got {getattr(self, name)!r:.80}")

    def vectorizer(self, vocabulary: Iterable[str] | None = None, **chosen: Any) -> CountVectorizer:
        """The counter of words of scikit-learn: of a vocabulary, or by default of all words.

        Of these ``min_df``, ``max_df`` and ``max_features`` may keep some.
        """
        settings = self.as_dict()
        del settings["ngrams"]
        words = None if vocabulary is None else [str(word) for word in vocabulary]
        return CountVectorizer(**settings, ngram_range=self.ngrams, vocabulary=words, **chosen)

    @classmethod
    def of(cls, vectorizer: CountVectorizer) -> WordCounting | None:
        """What a vectorizer does; None where a function of one's own is part of it."""
        own: Any = vectorizer
        builders = ("build_analyzer", "build_preprocessor", "build_tokenizer", "get_stop_words")
        same = all(getattr(type(own), name) is getattr(CountVectorizer, name) for name in builders)
        functions = own.preprocessor, own.tokenizer, own.analyzer, own.strip_accents
        if not same or any(callable(function) for function in functions):
            return None
        named = [field.name for field in fields(cls) if field.name != "ngrams"]
        return cls(ngrams=own.ngram_range, **{name: getattr(own, name) for name in named})

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; ``WordCounting(**values)`` is the same again."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


def chosen_vectorizer(
    vectorizer: CountVectorizer | None,
    stop_words: StopWords,
    keep_numbers: bool,
    phrases: bool = False,
) -> CountVectorizer:
    """The vectorizer that is given, or else one that leaves out stop words and numbers."""
    if phrases not in (True, False):
        raise CorpusError(f"phrases must be True or False; got {phrases!r:.80}.")
    if vectorizer is None:
        pattern = WORDS_AND_NUMBERS if keep_numbers else WORDS
        return WordCounting(stop_words, pattern, (1, 2 if phrases else 1)).vectorizer()
    if phrases and not (vectorizer.analyzer == "word" and vectorizer.ngram_range[1] > 1):
        raise CorpusError(
            "phrases=True needs a vectorizer that counts words together: set its ngram_range to "
            f"(1, 2), or leave it out; got analyzer {vectorizer.analyzer!r:.40} and ngram_range "
            f"{vectorizer.ngram_range!r:.40}."
        )
    if stop_words != "english" or keep_numbers:
        raise CorpusError(
            "a vectorizer says itself which words it leaves out: set its stop_words and "
            "token_pattern, or pass stop_words and keep_numbers without a vectorizer."
        )
    if getattr(vectorizer, "token_pattern", None) is not None:
        _check_pattern(vectorizer.token_pattern)
    return vectorizer


def model_vectorizer(model: Any) -> CountVectorizer:
    """What counts text over the words of a fitted model, as the text of the fit was counted.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted to a :class:`Corpus`, or saved with its words.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> from tempering.corpus import from_texts, model_vectorizer
    >>> corpus = from_texts(["the cat sat", "a dog ran", "cats ran"] * 10)
    >>> lda = LatentDirichletAllocation(2, random_state=0).fit(corpus)
    >>> new = from_texts(["a cat and a dog", "an ox"], vectorizer=model_vectorizer(lda))
    >>> lda.transform(new).shape
    (2, 2)
    """
    words = getattr(model, "vocabulary_", getattr(model, "feature_names_in_", None))
    if words is None:
        raise CorpusError(
            "the model has no words to count: fit it to a Corpus, or save it with its vocabulary."
        )
    known = getattr(model, "counting_", None)
    if known is None:
        longest = max(str(word).count(" ") for word in words) + 1
        ngrams = (1, min(longest, LONGEST_NGRAM))
        lowercase = all(str(word) == str(word).lower() for word in words)
        return WordCounting(None, WORDS_AND_NUMBERS, ngrams, lowercase).vectorizer(words)
    if not isinstance(known, Mapping):
        raise CorpusError(f"counting_ must be a dictionary; got {type(known).__name__}.")
    try:
        return WordCounting(**known).vectorizer(words)
    except TypeError as error:
        raise CorpusError(f"counting_ of the model is damaged: {error}.") from None


def _check_pattern(pattern: Any) -> None:
    try:
        groups = re.compile(pattern).groups
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise CorpusError(
            f"token_pattern must be a regular expression; got {pattern!r:.80}: {error}."
        ) from None
    if groups > 1:
        raise CorpusError(
            f"token_pattern must have one group at most; {pattern!r:.80} has {groups}: begin the "
            "others with (?:."
        )


def _as_range(ngrams: Any) -> tuple[int, int]:
    pair: tuple[Any, ...] = tuple(ngrams) if isinstance(ngrams, (tuple, list)) else ()
    whole = len(pair) == 2 and all(type(n) is int for n in pair)
    if not whole or not 1 <= pair[0] <= pair[1] <= LONGEST_NGRAM:
        raise CorpusError(
            f"ngrams must be two whole numbers that do not fall, from 1 to {LONGEST_NGRAM}; "
            f"got {ngrams!r:.80}."
        )
    return pair[0], pair[1]


def sticks_together(words: Sequence[str], counts: ArrayLike) -> NDArray[np.bool_]:
    """Whether each is one word, or several, between spaces, that occur together for a reason.

    The measure is NPMI = log(p(phrase) / Π p(word)) / −(n − 1) log p(phrase), with p the part of
    all single words: 0 if words meet by chance, 1 if they only occur together. A word of a phrase
    that is not among the words was never counted alone, and the phrase is not kept.
    """
    numbers = np.asarray(counts, np.float64)
    places = {word: place for place, word in enumerate(words)}
    several = [place for place, word in enumerate(words) if " " in word]
    kept = np.ones(len(words), bool)
    kept[several] = False
    # Of one word, or none, that occurs there is nothing to compare.
    total = numbers[kept].sum()
    for place in several:
        parts = [places.get(part) for part in words[place].split(" ")]
        if numbers[place] < LEAST_COUNT or None in parts or numbers[place] >= total:
            continue
        own = np.log(numbers[place] / total)
        alone = sum(np.log(numbers[part] / total) for part in parts)
        kept[place] = (own - alone) / (-(len(parts) - 1) * own) >= LEAST_NPMI
    return kept
