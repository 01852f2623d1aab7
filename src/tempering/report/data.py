"""Everything that the report shows, computed from a fitted model and the documents."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tempering
from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.words import check_words, words_of
from tempering.evaluation.checks import is_corpus
from tempering.inference import History
from tempering.models.arguments import as_numbers, check_whole
from tempering.report.tables import (
    RELEVANCE_STEPS,
    TOP_WORDS,
    ReportedDocuments,
    TopicWords,
    describe,
    share_table,
    short,
    topic_table,
    word_table,
)
from tempering.workbench import TopicShares, hierarchy
from tempering.workbench.editing import check_fitted_topics

#: Points of a curve; a screen shows no more.
POINTS = 400


@dataclass(frozen=True)
class ReportData:
    """What the page shows: numbers, words and lists, ready for JSON.

    ``topics`` stand largest first; they, and the list of the hottest in ``temperatures``, refer to
    ``words`` and ``documents`` by place. ``tree`` holds the two that are joined, nearest first, and
    their distance; of K topics, K + i is the i-th of these.
    """

    title: str
    facts: dict[str, Any]
    parameters: list[tuple[str, str]]
    curves: dict[str, Any]
    words: dict[str, Any]
    topics: list[dict[str, Any]]
    documents: list[dict[str, Any]]
    temperatures: dict[str, Any] | None
    tree: list[tuple[int, int, float]] | None = None
    over_time: dict[str, Any] | None = None
    by_group: dict[str, Any] | None = None


def collect(
    model: LatentDirichletAllocation,
    X: Any = None,
    *,
    vocabulary: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    validation: Sequence[tuple[float, float]] | None = None,
    stability: Sequence[float] | None = None,
    over_time: TopicShares | None = None,
    by_group: TopicShares | None = None,
    n_held_out: int = 0,
    title: str = "Topic model",
    max_documents: int = 20_000,
) -> ReportData:
    """Compute a report.

    Parameters
    ----------
    model : LatentDirichletAllocation
        Fitted.
    X : array, sparse matrix, Corpus or BlockSource of shape (n_documents, n_words), optional
        Documents. Without them the report has no examples, temperatures and coherence.
    vocabulary : sequence of str, optional
        The words; by default those of the fit, or those the model was saved with, or those of the
        corpus X, or the numbers of the columns.
    names, texts : sequence of str, optional
        What the documents of X are called, and say; by default what a corpus X tells of them.
        Without texts, a document is shown by its most telling words.
    validation : sequence of (documents seen, score), optional
        Held-out scores taken during the fit.
    stability : sequence of float, one a topic, optional
        How much of each comes again in other fits, from 0 to 1, as
        :func:`tempering.workbench.topics_across_seeds` tells it.
    over_time, by_group : TopicShares, optional
        What :func:`tempering.workbench.topics_over_time` and
        :func:`tempering.workbench.topics_by_group` give.
    n_held_out : int
        Documents that were kept out of the fit, beside those that it saw.
    title : str
        The page's heading.
    max_documents : int
        Of more documents than this, so many are drawn, always the same ones.

    Examples
    --------
    >>> from tempering import LatentDirichletAllocation
    >>> X = [[4, 3, 0, 0]] * 50 + [[0, 0, 5, 4]] * 50
    >>> lda = LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> report = collect(lda, X, vocabulary=["sun", "sea", "snow", "ice"])
    >>> sorted(topic["prevalence"] > 0.4 for topic in report.topics)
    [True, True]
    """
    check_fitted_topics(model)
    check_whole(max_documents=max_documents)
    check_whole(0, n_held_out=n_held_out)
    n_topics = model.n_components
    told = [("over_time", over_time, True), ("by_group", by_group, False)]
    shares = {
        name: None if given is None else share_table(given, name, n_topics, in_order=in_order)
        for name, given, in_order in told
    }
    all_words = vocabulary_of(model, vocabulary, X)
    if is_corpus(X):
        check_words(model, X)
        names = X.names if names is None else names
        texts = X.texts if texts is None else texts
        X = X.counts
    if X is not None and not hasattr(X, "shape"):
        X = np.asarray(X)
    if X is None and (names is not None or texts is not None):
        raise ValueError("names and texts say what the documents X are; X is missing.")
    names, texts = (_checked(X, "names", names), _checked(X, "texts", texts))

    words = TopicWords.from_parameters(model.components_, model.topic_word_prior_)
    relevant = [words.relevant(k) for k in range(len(words.topics))]
    topics = topic_table(words, relevant)
    if hasattr(model, "topic_labels_"):
        for topic in topics:
            topic["label"] = str(model.topic_labels_[topic["id"]])
    if stability is not None:
        _add_stability(topics, stability)
    described: list[dict[str, Any]] = []
    temperatures = documents = None
    if X is not None:
        documents = ReportedDocuments.read(model, X, max_documents)
        # Coherence is that of pairs: a vocabulary of one word has none.
        n_words = min(10, model.n_features_in_)
        coherence = model.coherence(documents.counts, n_words) if n_words > 1 else None
        spread = documents.spread()
        examples = {topic["id"]: documents.examples(topic["id"]) for topic in topics}
        hottest = documents.hottest()
        chosen = documents.searched(np.unique(np.concatenate([*examples.values(), hottest])))
        quoted = names, texts, all_words, words.marginal
        described = [describe(documents, row, *quoted) for row in chosen]
        for topic in topics:
            k = topic["id"]
            topic["coherence"] = None if coherence is None else short(coherence[k], 3)
            topic["spread"] = short(spread[k], 3)
            topic["documents"] = np.searchsorted(chosen, examples[k]).tolist()
        temperatures = documents.histogram()
        temperatures["hottest"] = np.searchsorted(chosen, hottest).tolist()
    tree = None
    if n_topics > 1:
        tree = [(int(a), int(b), short(far, 3)) for a, b, far, _ in hierarchy(model).linkage]
    return ReportData(
        title=str(title),
        facts=_facts(model, words, documents) | {"held_out": int(n_held_out)},
        parameters=_parameters(model),
        curves=fit_curves(getattr(model, "history_", None), validation),
        words=word_table(words, relevant, all_words),
        topics=topics,
        documents=described,
        temperatures=temperatures,
        tree=tree,
        **shares,
    )


def fit_digest(model: LatentDirichletAllocation) -> str:
    """Return a digest of the topics, by which a report is known to be of this fit."""
    check_fitted_topics(model)
    return hashlib.sha256(model.components_.tobytes()).hexdigest()[:16]


def fit_curves(
    history: History | None, validation: Sequence[tuple[float, float]] | None = None
) -> dict[str, Any]:
    """Curves of (documents seen, value), of :data:`POINTS` points at most, none of them NaN."""
    records = history or History()
    seen = records["data_seen"].astype(float)
    final = next((each.data_seen for each in records if each.phase == "final"), None)
    pairs = "pairs (documents seen, score) of numbers"
    scores = as_numbers([] if validation is None else validation, "validation", pairs)
    if scores.size and (scores.ndim != 2 or scores.shape[1] != 2):
        raise ValueError(f"validation must be {pairs}; got shape {scores.shape}.")
    scores = scores.reshape(-1, 2)
    return {
        "temperature": _thin(seen, records["temperature"]),
        "elbo": _thin(seen, records["elbo"]),
        "validation": _thin(scores[:, 0], scores[:, 1]),
        "final_start": final,
    }


def _thin(places: np.ndarray, values: np.ndarray) -> list[tuple[float, float]]:
    """Finite points, evenly chosen, with the first and the last."""
    finite = np.flatnonzero(np.isfinite(values))
    chosen = np.linspace(0, finite.size - 1, min(POINTS, finite.size)).round().astype(int)
    # An ELBO of millions differs from step to step in its last digits.
    return [(short(places[i], 9), short(values[i], 9)) for i in finite[chosen]]


def vocabulary_of(
    model: LatentDirichletAllocation, vocabulary: Sequence[str] | None, X: Any = None
) -> Sequence[str]:
    """The words that are given, or that the model or the corpus X knows; or numbers."""
    words = words_of(model, vocabulary)
    if words is None and is_corpus(X):
        words = X.vocabulary
    return [f"word {v}" for v in range(model.n_features_in_)] if words is None else words


def _checked(X: Any, argument: str, values: Any) -> Any:
    """One value for each document, by place."""
    if values is None:
        return None
    if not hasattr(values, "__len__"):
        raise ValueError(f"{argument} must be a list, one entry for each document of X.")
    if len(values) != X.shape[0]:
        raise ValueError(f"{argument} has {len(values)} entries, X has {X.shape[0]} documents.")
    # The index of a pandas column need not be the place.
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def _facts(
    model: LatentDirichletAllocation, words: TopicWords, documents: ReportedDocuments | None
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "version": tempering.__version__,
        "fit": fit_digest(model),
        "topics": len(words.topics),
        "vocabulary": words.marginal.size,
        "documents": None,
        "tokens": words.n_tokens,
        "relevance_steps": len(RELEVANCE_STEPS) - 1,
        "top_words": TOP_WORDS,
    }
    history: History | None = getattr(model, "history_", None)
    if history:
        last = history[-1]
        facts["documents"] = round(last.data_seen / last.passes)
        facts["passes"], facts["steps"] = short(last.passes, 4), len(history)
        facts["seconds"] = short(last.seconds, 3)
    if documents is not None:
        facts["given"], facts["read"] = documents.corpus_size, len(documents.numbers)
        if facts["documents"] in (None, documents.corpus_size):
            # These are the documents of the fit, whose words the topics count only nearly.
            facts["documents"], facts["tokens"] = documents.corpus_size, documents.corpus_tokens
    facts["tokens"] = short(facts["tokens"], 7)
    return facts


def _add_stability(topics: list[dict[str, Any]], stability: Sequence[float]) -> None:
    expected = f"from 0 to 1, one number for each of the {len(topics)} topics"
    numbers = as_numbers(stability, "stability", expected)
    if numbers.shape != (len(topics),) or not np.all((numbers >= 0) & (numbers <= 1)):
        raise ValueError(f"stability must be {expected}; got {stability!r:.100}.")
    for topic in topics:
        topic["stability"] = short(numbers[topic["id"]], 3)


def _parameters(model: LatentDirichletAllocation) -> list[tuple[str, str]]:
    """Names and values, those of the learned priors too."""
    values = model.get_params(deep=False)
    rows = [(name, _as_text(value)) for name, value in values.items()]
    for name in ("doc_topic_prior", "topic_word_prior"):
        if values[name] is None or isinstance(values[name], str):
            fitted = np.unique(getattr(model, f"{name}_"))
            low, high = (f"{each:.4g}" for each in (fitted.min(), fitted.max()))
            rows.append((f"{name}_", low if low == high else f"{low} … {high}"))
    return rows


def _as_text(value: Any, width: int = 120) -> str:
    # Where a function lies in memory tells nothing.
    text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))
    return text if len(text) <= width else text[: width - 1] + "…"
