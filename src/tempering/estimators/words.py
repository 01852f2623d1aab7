"""The words that the columns of a fitted model stand for; and topics that are led by hand: by words
that are to be in one, words that are not, or a whole prior matrix.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tempering.evaluation.checks import as_counts, check_word_list, is_corpus
from tempering.inference import BlockSource
from tempering.models.arguments import as_numbers
from tempering.models.lda.topics import KEPT_OUT, Guide, split_prior

#: Of a fit to a corpus, or of a model that was saved with words; of a fit to a DataFrame.
WORD_ATTRIBUTES = ("vocabulary_", "feature_names_in_")


def remember_words(estimator: Any, X: Any) -> None:
    """Keep the words of a corpus and how text was made into them; forget those of another fit."""
    told = is_corpus(X) or isinstance(X, BlockSource)
    words, counting = (X.vocabulary, X.counting) if told else (None, None)
    for name, value in (
        ("vocabulary_", None if words is None else np.array(words, dtype=object)),
        # Plain values, which can be stored.
        ("counting_", None if counting is None else counting.as_dict()),
    ):
        if value is None:
            vars(estimator).pop(name, None)
        else:
            setattr(estimator, name, value)


def check_words(estimator: Any, X: Any, path: Path | None = None) -> None:
    """Refuse a corpus, in memory or at a path, whose words are not those of the fit."""
    if path is None and not is_corpus(X):
        return
    corpus, at, of, remedy = f"{path}", f"{path}: ", "", "."
    if path is None:
        corpus, at, of = "the corpus", "", " of the corpus"
        remedy = "; count the text over the words of the model, with "
        remedy += "vectorizer=tempering.corpus.model_vectorizer(model)."
    found, expected = X.shape[1], estimator.n_features_in_
    if found != expected:
        raise ValueError(
            f"{corpus} has {found} words, but the model {expected}: it was fitted to another "
            f"one{remedy}"
        )
    ours = words_of(estimator)
    if X.vocabulary is None or ours is None:
        return
    for column, (theirs, word) in enumerate(zip(X.vocabulary, ours)):
        if theirs != word:
            raise ValueError(
                f"{at}column {column}{of} is {theirs!r:.80}, but {str(word)!r:.80} in the model: "
                f"it was fitted to other words{remedy}"
            )


def counts_over_words(estimator: Any, X: Any) -> sparse.csr_array:
    """Counts of documents over the words of the fit; a corpus or a frame over others is refused."""
    check_words(estimator, X)
    check_columns(estimator, X)
    return as_counts(X, "X", estimator.n_features_in_)


def check_columns(estimator: Any, X: Any) -> None:
    """Refuse a frame whose columns are named in another way than those of the fit."""
    ours, columns = getattr(estimator, "feature_names_in_", None), getattr(X, "columns", None)
    ours = words_of(estimator) if ours is None else ours
    if ours is not None and columns is not None and len(columns) == len(ours):
        for place, (theirs, word) in enumerate(zip(columns, ours)):
            # As scikit-learn has it, only text names a column.
            if isinstance(theirs, str) and theirs != word:
                raise ValueError(
                    f"column {place} of X is {theirs!r:.80}, but {str(word)!r:.80} in the model: "
                    "give the columns of the fit, in their order."
                )


def words_of(estimator: Any, vocabulary: Sequence[str] | None = None) -> Sequence[str] | None:
    """The words that are given, or those that the model knows; None for none."""
    for name in WORD_ATTRIBUTES:
        if vocabulary is None:
            vocabulary = getattr(estimator, name, None)
    if vocabulary is not None:
        check_word_list(vocabulary)
    if vocabulary is not None and len(vocabulary) != estimator.n_features_in_:
        raise ValueError(
            f"vocabulary has {len(vocabulary)} words; the estimator was fitted to "
            f"{estimator.n_features_in_} columns."
        )
    return vocabulary


EXPECTED = (
    'seed_topics must name topics and their words, as {"economy": ["market", "bank"]}, or '
    '{"economy": {"words": ["market", "bank"], "without": ["river"]}}'
)


def is_guided(estimator: Any) -> bool:
    """Whether some topics have a prior of their own."""
    return estimator.seed_topics is not None or np.ndim(estimator.topic_word_prior) > 0


def check_guidance(estimator: Any) -> None:
    """Raise ``ValueError`` for what does not go together, before X is looked at."""
    if not is_guided(estimator):
        return
    seeded, prior = estimator.seed_topics is not None, estimator.topic_word_prior
    if seeded and prior is not None and (isinstance(prior, str) or np.ndim(prior) > 0):
        raise ValueError(
            "seed_topics and topic_word_prior lead topics both: where there are seeds, "
            f"topic_word_prior must be one number or None; got {prior!r:.60}."
        )
    if seeded and len(seeds_given(estimator.seed_topics)) > estimator.n_components:
        raise ValueError(
            f"seed_topics has {len(estimator.seed_topics)} topics, and n_components="
            f"{estimator.n_components} is less: raise it, or leave some out."
        )
    if estimator.backend in ("jax", "gpu"):
        name = "seed_topics" if seeded else "topic_word_prior"
        raise ValueError(
            f"{name} leads topics on the CPU alone: take backend='cpu' in place of "
            f"{estimator.backend!r}, or leave out {name}."
        )


def seeds_given(seed_topics: Any) -> dict[str, tuple[list[Any], list[Any]]]:
    """Words that lead each topic, and those that it is to be without, as they were given."""
    if not isinstance(seed_topics, Mapping) or not seed_topics:
        raise ValueError(f"{EXPECTED}; got {seed_topics!r:.100}.")
    given = {}
    for name, told in seed_topics.items():
        parts = told if isinstance(told, Mapping) else {"words": told}
        if not parts or parts.keys() - {"words", "without"}:
            raise ValueError(f"{EXPECTED}; got {told!r:.100} for {name!r:.40}.")
        lists = []
        for part in (parts.get("words", ()), parts.get("without", ())):
            if isinstance(part, str) or not isinstance(part, Sequence | np.ndarray | set):
                raise ValueError(f"{EXPECTED}; got {part!r:.100} for {name!r:.40}.")
            lists.append(list(part))
        if not lists[0] and not lists[1]:
            raise ValueError(f"seed_topics[{name!r:.40}] has no words: name some, or leave it out.")
        if both := sorted(map(str, set(lists[0]) & set(lists[1]))):
            raise ValueError(
                f"seed_topics[{name!r:.40}] is to be with and without {both[0]!r:.40}: choose one."
            )
        if str(name) in given:
            raise ValueError(f"seed_topics names two topics {str(name)!r:.40}: choose other names.")
        given[str(name)] = (lists[0], lists[1])
    return given


def columns_of_seeds(estimator: Any) -> list[tuple[list[int], list[int]]]:
    """:func:`seeds_given` as columns of X; raise ``ValueError`` with words that are not there."""
    vocabulary, n_words = words_of(estimator), estimator.n_features_in_
    places = {} if vocabulary is None else {str(w): v for v, w in enumerate(vocabulary)}
    missing: list[str] = []

    def column(word: Any) -> int:
        if isinstance(word, Integral) and not isinstance(word, bool):
            if 0 <= int(word) < n_words:
                return int(word)
        elif str(word) in places:
            return places[str(word)]
        missing.append(repr(word)[:40])
        return -1

    given = seeds_given(estimator.seed_topics)
    seeds = [([column(w) for w in a], [column(w) for w in b]) for a, b in given.values()]
    if missing:
        why = (
            f"not among the {n_words} words of X: leave them out, or count words with a smaller "
            "min_df"
            if places
            else f"no columns of X, whose words are not known: give numbers from 0 to "
            f"{n_words - 1}, or a corpus with its words, as tempering.corpus.from_texts makes it"
        )
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        raise ValueError(f"seed_topics has {', '.join(missing[:10])}{more}, {why}.")
    return seeds


def guided_prior(estimator: Any, source: Any, n_data: float) -> tuple[float, Guide | None]:
    """η and the guide of a fit, of statistics that are scaled to ``n_data`` documents."""
    k, n_words = estimator.n_components, estimator.n_features_in_
    if estimator.seed_topics is not None:
        eta = 1.0 / k if estimator.topic_word_prior is None else float(estimator.topic_word_prior)
        seeds = columns_of_seeds(estimator)
        words = np.unique([v for own in seeds for part in own for v in part]).astype(np.int64)
        # Seeds are worth what they have in X: neither the size of a corpus nor how common its
        # words are should ask for another strength.
        worth = estimator.seed_strength * counts_of_words(source, words, n_data)
        counts = np.zeros((words.size, k), np.float32)
        for topic, own in enumerate(seeds):
            led, out = (np.searchsorted(words, part) for part in own)
            counts[led, topic] = worth[led]
            counts[out, topic] = (KEPT_OUT - 1.0) * eta
        return eta, Guide(words, counts)
    expected = f"one number, or {k} rows of {n_words} that are 0 or above, one for each word"
    matrix = as_numbers(estimator.topic_word_prior, "topic_word_prior", expected)
    largest = float(np.finfo(np.float32).max)
    right = matrix.shape == (k, n_words) and np.all((matrix >= 0) & (matrix <= largest / n_words))
    if not right:
        problem = f"shape {matrix.shape}" if matrix.shape != (k, n_words) else "other numbers"
        raise ValueError(f"topic_word_prior must be {expected}; got {problem}.")
    if not matrix.any(axis=1).all():
        topic = int(np.argmin(matrix.any(axis=1)))
        raise ValueError(f"topic_word_prior keeps all words out of topic {topic}: leave it some.")
    if not matrix.any(axis=0).all():
        word = int(np.argmin(matrix.any(axis=0)))
        raise ValueError(
            f"topic_word_prior keeps the word in column {word} out of all topics: leave it one, or "
            "drop the column from X."
        )
    return split_prior(matrix)


def counts_of_words(source: Any, words: NDArray[np.int64], n_data: float) -> NDArray[np.float64]:
    """How often words occur in so many documents as these; at least once in those looked at."""
    if isinstance(source, BlockSource):
        source = source.sample(10_000, np.random.default_rng(0))
    counts = np.asarray(source[:, words].sum(axis=0, dtype=np.float64)).ravel()
    return np.maximum(counts, 1.0) * (n_data / source.shape[0])


def remember_labels(estimator: Any) -> None:
    """Call topics that were led by their names, others by none; forget those of another fit."""
    vars(estimator).pop("topic_labels_", None)
    if estimator.seed_topics is not None:
        names = [*map(str, estimator.seed_topics)]
        names += [""] * (estimator.n_components - len(names))
        estimator.topic_labels_ = np.array(names, dtype=object)
