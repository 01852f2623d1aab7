"""As many topics as the documents bear out: fit too many, and join them as the bound proposes.

The model is the hierarchical Dirichlet process with point estimates of its weights: documents draw
topics by α = α₀ w, where w are shares of the topics in the whole corpus. Such weights alone never
empty a topic; joining two halves in one move does. For expected counts n_kv of words and n_dk in
documents, and responsibilities φ of the tokens, the bound is

    Σ_k log ∫ p(n_k | β) Dir(β; η) dβ + Σ_d log ∫ p(n_d | θ) Dir(θ; α) dθ + Σ_i H(φ_i),

and topics a and b that become one have n_a + n_b, α_a + α_b and φ_a + φ_b. The prior of the weights
themselves is left out. As the bound goes on to join where more topics predict better, held-out
words are asked after each round, and what they clearly speak against is undone.

Teh, Jordan, Beal and Blei (2006), "Hierarchical Dirichlet processes", JASA 101. Bryant and Sudderth
(2012), "Truly nonparametric online variational inference for hierarchical Dirichlet processes",
NIPS. Hughes, Kim and Sudderth (2015), "Reliable and scalable variational inference for the
hierarchical Dirichlet process", AISTATS.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from tempering.estimators import LatentDirichletAllocation
from tempering.estimators.words import remember_words
from tempering.evaluation.checks import normalised
from tempering.evaluation.completion import fill_probabilities
from tempering.inference import RobbinsMonro, Settling
from tempering.models.arguments import check_whole, shown
from tempering.models.compilation import ENTRY, njit
from tempering.models.lda.priors import prior_draws
from tempering.models.lda.topics import Topics
from tempering.models.threads import in_blocks
from tempering.workbench.comparing import Judged, best_weight, compared, document_scores, held_out
from tempering.workbench.editing import fitted_anew, plain_topics, settled
from tempering.workbench.number_of_topics import TopicNumber

#: Passes over all documents after each round of joining.
PASSES = 2

#: By how many standard errors held-out words must get worse to speak against what the bound asks,
#: and in how many rounds on end: in one of them they may by chance.
CLEAR_ERRORS, CLEAR_ROUNDS = 1.5, 2

#: A token that is less than this with either of two topics loses next to nothing as they join.
LEAST_PART = 1e-4


class Counts(NamedTuple):
    """What the documents hold of the topics, and the priors that suit it."""

    gamma: NDArray[np.float64]  # γ, [D, K]
    documents: NDArray[np.float64]  # n_dk, [D, K]
    words: NDArray[np.float64]  # n_kv, [K, V]
    weights: NDArray[np.float64]  # w, [K], of sum 1
    total: float  # α₀
    word_prior: float  # η


def find_topics(
    X: Any,
    most: int = 150,
    *,
    estimator: LatentDirichletAllocation | None = None,
    random_state: int = 0,
) -> LatentDirichletAllocation:
    """Fitted topics, as many as the documents bear out, in about three fits with ``most``.

    A fit with ``most`` topics splits the real ones into parts. Then, in rounds, similar topics
    become one if that raises the evidence lower bound under a prior with learned weights of the
    topics (as in a hierarchical Dirichlet process). A fifth of the documents, 2,000 at most, is
    held out, and the rounds end when their words are predicted worse by 1.5 standard errors or
    more, twice on end. Real documents often bear out as many topics as you allow; then a warning
    says so.

    Parameters
    ----------
    X : sparse matrix or array [D, V], or Corpus
        Whole counts.
    most : int
        Topics of the fit to begin with: half as many again as you expect, or more. Too many cost
        time, and do no other harm.
    estimator : LatentDirichletAllocation, optional
        What to fit, apart from ``n_components``.
    random_state : int
        Seeds the fits, and decides which documents are held out.

    Returns
    -------
    LatentDirichletAllocation
        A fitted one, whose ``n_components`` is the number that was found.

    Examples
    --------
    >>> from tempering.datasets import make_lda
    >>> from tempering.workbench import find_topics
    >>> X = make_lda(300, n_topics=4, n_words=100, document_length=50, seed=1).counts
    >>> find_topics(X, 12).n_components
    4
    """
    answer, model, counts = _joined(X, most, estimator, random_state)
    if answer.n_topics == most:  # All that it lacks are the documents that were held out.
        return model.set_params(n_components=int(most)).fit(X)
    documents = model._counts(X, reset=True)
    remember_words(model, X)
    _with_topics(model, documents, counts)
    length = documents.sum(dtype=np.float64) / documents.shape[0]
    size = model._batch_size(documents.shape[0] * model.max_iter, "numba", float(length))
    passes = 4  # and λ is averaged over the second half of them
    n_steps = passes * -(-documents.shape[0] // size)
    rates = Settling(RobbinsMonro(50.0, 0.55), max(1, n_steps // 2))
    return settled(model, X, passes, batch_size=size, learning_rate=rates)


def joined_number(
    X: Any, most: int = 150, *, estimator: Any = None, random_state: int = 0
) -> TopicNumber:
    """How many topics are left of ``most``, and a trial a round."""
    return _joined(X, most, estimator, random_state)[0]


def _joined(
    X: Any, most: int, estimator: Any, random_state: int
) -> tuple[TopicNumber, Any, Counts]:
    """The answer, what was fitted, and what documents held of the topics that are left.

    What was fitted may have joined more of them by then.
    """
    plain: Any = plain_topics(estimator, X)
    check_whole(2, most=most)
    check_whole(0, random_state=random_state)
    for name in ("seed_topics", "doc_topic_prior", "topic_word_prior"):
        value = getattr(plain, name)
        if np.ndim(value) > 0 or isinstance(value, dict):
            raise ValueError(
                "estimator must treat its topics alike, as their number changes: leave out "
                f"{name}, which is {shown(value)}."
            )
    inside, split = held_out(X, random_state)
    # Of which there are to be too many.
    own = {"n_components": int(most), "random_state": int(random_state)}
    model: Any = fitted_anew(plain, inside, **own)
    documents = model._counts(inside, reset=False)
    weight = best_weight([Judged(model.components_, split)])
    part = documents.shape[0] / (documents.shape[0] + split.observed.shape[0])
    numbers, costs = [int(most)], [part]
    scores = [document_scores(model.components_, split, weight)]
    now = left = take_in(model, documents)
    worse = 0
    while worse < CLEAR_ROUNDS and (pairs := best_joins(model, documents, now)):
        settled(_with_topics(model, documents, joined(now, pairs)), inside, PASSES)
        numbers.append(model.n_components)
        costs.append(part * PASSES / model.max_iter)
        scores.append(document_scores(model.components_, split, weight))
        last = compared(0, numbers, costs, scores)[-1]
        worse = worse + 1 if last.behind > CLEAR_ERRORS * last.error else 0
        now = take_in(model, documents)
        left = left if worse else now
    if len(left.words) == most:
        warnings.warn(
            f"held-out words bear out all of most={most} topics, so there may be more: try twice "
            "as many.",
            stacklevel=3,
        )
    trials = compared(0, numbers, costs, scores)
    return TopicNumber(len(left.words), trials, weight), model, left


def take_in(model: Any, documents: Any) -> Counts:
    """What the documents hold of each topic at T = 1, and the priors that make it most likely."""
    lda = model._model
    step = lda.local_step(documents, lda.expectations(model._state.posterior), 1.0)
    alpha = np.array(lda.doc_topic_prior)
    gamma = step.gamma.astype(np.float64)
    held = np.maximum(gamma - alpha.astype(np.float32), 0.0)
    words = np.zeros((lda.n_topics, lda.n_words))
    words[:, step.statistics.words] = step.statistics.factor * step.statistics.values.T
    alpha = likely_prior(held, alpha)
    eta = float(likely_prior(words, np.full(lda.n_words, lda.topic_word_prior), alike=True)[0])
    return Counts(gamma, held, words, alpha / alpha.sum(), float(alpha.sum()), eta)


def likely_prior(
    counts: NDArray[np.float64], start: NDArray[np.float64], alike: bool = False
) -> NDArray[np.float64]:
    """The Dirichlet prior under which rows of counts are most likely, nearly (Minka 2000)."""
    prior, lengths = start, counts.sum(axis=1)
    for _ in range(5):  # priors follow the counts
        draws = prior_draws(counts, prior)
        # What is drawn by none keeps a trace, as a prior of 0 says never.
        draws = np.full(draws.size, draws.mean()) if alike else np.maximum(draws, 1e-3)
        prior = draws / np.sum(digamma(lengths + prior.sum()) - digamma(prior.sum()))
    return prior


def best_joins(model: Any, documents: Any, counts: Counts) -> list[tuple[int, int]]:
    """Pairs of topics, none in two of them, each of which raises the bound as it becomes one."""
    pairs = similar_pairs(counts.words + counts.word_prior)
    promised = count_gains(counts, pairs)
    taken = np.zeros(len(counts.words), bool)
    chosen = []
    for place in np.argsort(-promised, kind="stable"):
        # Entropy is only lost, so that what the counts do not gain, nothing does.
        if promised[place] > 0 and not taken[pairs[place]].any():
            taken[pairs[place]] = True
            chosen.append(place)
    pairs = pairs[chosen]
    gains = promised[chosen] - lost_entropy(model, documents, counts.gamma, pairs)
    return [(int(a), int(b)) for a, b in pairs[gains > 0]]


def similar_pairs(topics: NDArray[np.float64]) -> NDArray[np.intp]:
    """Each topic with the five nearest to it by Hellinger's distance, first < second."""
    roots = np.sqrt(normalised(topics))
    likeness = roots @ roots.T
    np.fill_diagonal(likeness, -1.0)
    nearest = np.argsort(-likeness, axis=1, kind="stable")[:, : min(5, len(topics) - 1)]
    first = np.repeat(np.arange(len(topics)), nearest.shape[1])
    pairs = np.sort(np.stack([first, nearest.ravel()], axis=1), axis=1)
    return np.unique(pairs, axis=0)


def count_gains(counts: Counts, pairs: NDArray[np.intp]) -> NDArray[np.float64]:
    """What the probabilities of words and of topics gain as pairs become one."""
    alpha, eta = counts.total * counts.weights, counts.word_prior

    def of_words(n: NDArray[np.float64]) -> NDArray[np.float64]:
        """log ∫ p(n | β) Dir(β; η) dβ of each row."""
        whole = n.shape[-1] * eta
        own = np.sum(gammaln(n + eta), axis=-1) - n.shape[-1] * gammaln(eta)
        return own + gammaln(whole) - gammaln(n.sum(axis=-1) + whole)

    def of_documents(n: NDArray[np.float64], prior: Any) -> NDArray[np.float64]:
        """Σ_d log Γ(n_d + α) / Γ(α) of each column."""
        return np.sum(gammaln(n + prior) - gammaln(prior), axis=0)

    apart = of_words(counts.words) + of_documents(counts.documents, alpha)
    gains = np.empty(len(pairs))
    for place, (a, b) in enumerate(pairs):
        gains[place] = of_words(counts.words[a] + counts.words[b]) - apart[a] - apart[b]
        both = counts.documents[:, a] + counts.documents[:, b]
        gains[place] += of_documents(both, alpha[a] + alpha[b])
    return gains


def lost_entropy(
    model: Any, documents: Any, gamma: NDArray[np.float64], pairs: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Σ_i h(φ_ia) + h(φ_ib) − h(φ_ia + φ_ib) over all tokens, h(x) = −x log x, for each pair."""
    indptr, columns = documents.indptr.astype(np.int64), documents.indices.astype(np.int32)
    rows = np.ascontiguousarray(normalised(model.components_.astype(np.float64)).T)
    masses = np.empty(columns.size)
    fill_probabilities(indptr, columns, rows, gamma, masses)
    lost = np.zeros(len(pairs))
    entries = (indptr, columns, documents.data.astype(np.float64), masses)
    # A pair is added up by one thread, so that the number of threads changes no bit.
    arguments = (*entries, rows, gamma, pairs.astype(np.int64), lost)
    in_blocks(fill_lost_entropy, len(pairs), model._n_threads(), 1, arguments)
    return lost


@njit(**ENTRY)
def fill_lost_entropy(start, stop, indptr, columns, counts, masses, rows, gamma, pairs, lost):
    """Set the entropy that the pairs from `start` to `stop` lose."""
    for pair in range(start, stop):
        first, second = pairs[pair, 0], pairs[pair, 1]
        total = 0.0
        for d in range(gamma.shape[0]):
            for entry in range(indptr[d], indptr[d + 1]):
                v = columns[entry]
                a = gamma[d, first] * rows[v, first] / masses[entry]
                b = gamma[d, second] * rows[v, second] / masses[entry]
                if a > LEAST_PART and b > LEAST_PART:
                    part = (a + b) * np.log(a + b) - a * np.log(a) - b * np.log(b)
                    total += counts[entry] * part
        lost[pair] = total


def joined(counts: Counts, pairs: list[tuple[int, int]]) -> Counts:
    """The counts with one topic for each pair, in the place of the first of it."""
    words, weights = counts.words.copy(), counts.weights.copy()
    for first, second in pairs:
        words[first] += words[second]
        weights[first] += weights[second]
    gone = [second for _, second in pairs]
    return counts._replace(words=np.delete(words, gone, 0), weights=np.delete(weights, gone))


def _with_topics(model: Any, documents: Any, counts: Counts) -> Any:
    """The model itself with these topics, and the priors that a fit with as many would have."""
    model.n_components = len(counts.words)
    n = documents.shape[0]
    length = float(documents.sum(dtype=np.float64)) / n
    lda = model._new_model(documents, n, length, "random")
    lda.settled = None
    if model.doc_topic_prior is None or isinstance(model.doc_topic_prior, str):
        lda.doc_topic_prior = lda.doc_topic_prior.sum() * counts.weights
    eta = lda.topic_word_prior
    topics = Topics(np.ascontiguousarray(counts.words.T) + eta, eta)
    model._model, model._state = lda, model._state._replace(posterior=topics, solved=())
    return model
