"""The number of topics of drawn corpora is found, at the cost that is told."""

import itertools
import warnings

import numpy as np
import pytest

from tempering import LatentDirichletAllocation, PoissonMixture
from tempering.corpus import Corpus
from tempering.datasets import make_lda
from tempering.evaluation import split_documents
from tempering.workbench import TopicNumber, Trial, choose_n_topics
from tempering.workbench.comparing import Judged, best_weight, compared, document_scores
from tempering.workbench.number_of_topics import _looked_around, merged_topics


@pytest.fixture(scope="module")
def corpus():
    return make_lda(600, n_topics=6, n_words=300, document_length=60, seed=0).counts


@pytest.fixture(scope="module")
def answer(corpus):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of trials that have topics to spare, say
        return choose_n_topics(corpus, (2, 30))


def test_the_number_that_was_drawn_from(answer):
    assert abs(answer.n_topics - 6) <= 1


def test_the_search_has_the_passes_of_less_than_two_fits(answer):
    """Starts and scores take time beside them: three fits in all."""
    assert 0.5 < answer.cost <= 2
    assert "as many passes as" in str(answer)


def test_coherence_and_diversity_stand_beside_the_scores_of_fits(answer):
    fits = [trial for trial in answer.trials if trial.cost > 0]
    right = max(fits, key=lambda trial: (trial.n_topics == 6, trial.round))
    most = max(fits, key=lambda trial: trial.n_topics)
    assert right.npmi > most.npmi
    assert 1 >= right.diversity > most.diversity
    assert f"{right.npmi:.2f}       {right.diversity:.2f}" in str(answer)


def test_the_second_round_begins_at_the_best_of_the_first_and_goes_up(answer):
    first, second = (
        [trial for trial in answer.trials if trial.round == round_] for round_ in (0, 1)
    )
    best = min(first, key=lambda trial: trial.behind).n_topics
    tried = [trial.n_topics for trial in second]
    assert tried[0] == best
    assert all(b >= 1.2 * a for a, b in itertools.pairwise(tried))
    # The last is worse, and what is merged is the best.
    assert [trial.n_topics for trial in second if trial.behind == 0] == tried[-2:-1]
    assert max(trial.n_topics for trial in answer.trials if trial.round == 2) == tried[-2]


@pytest.mark.parametrize(
    ("best", "looked_at"),
    [
        (6, [20, 40, 10, 5, 2]),  # 40 is clearly worse, so that 80 and 160 are never fitted
        (30, [20, 40, 80]),
        (200, [20, 40, 80, 160]),
        (1, [20, 40, 10, 5, 2]),
    ],
)
def test_no_number_is_fitted_far_from_the_best(best, looked_at):
    tried = []

    def fit(n_topics):
        tried.append(n_topics)
        behind = [abs(np.log(n / best)) for n in tried]
        return [Trial(0, n, 0.1, -b, b - min(behind), 0.1) for n, b in zip(tried, behind)]

    _looked_around(fit, [2, 5, 10, 20, 40, 80, 160])
    assert tried == looked_at


def test_the_smallest_within_one_error_is_chosen(answer):
    last = [trial for trial in answer.trials if trial.round == answer.trials[-1].round]
    good = [trial.n_topics for trial in last if trial.behind <= trial.error]
    assert answer.n_topics == min(good)


def test_an_answer_at_the_end_of_the_range_says_so(answer):
    assert not answer.at_the_end
    assert "the most that was tried" not in str(answer)
    rising = [Trial(0, k, 0.1, -6 - behind, behind, 0.01) for k, behind in [(5, 0.2), (9, 0.0)]]
    assert str(TopicNumber(9, rising)).endswith(
        "9, the most that was tried, predicts best: more may predict better."
    )


def test_the_same_seed_gives_the_same_answer(corpus):
    first, second = (choose_n_topics(corpus[:200], [2, 4, 8]) for _ in range(2))
    assert first == second
    assert {trial.n_topics for trial in first.trials if trial.round < 2} <= {2, 4, 8}


def test_documents_of_many_topics_each_do_not_hide_their_number():
    """With a prior weight of 2 in the place of 8, two topics predict as well as eight."""
    # Of 400, a fifth of which are held out, one draw in six leaves it to chance.
    made = make_lda(600, n_topics=8, n_words=150, document_length=60, alpha=1.0, seed=0)
    answer = choose_n_topics(made.counts, [2, 4, 8])
    assert answer.n_topics == 8
    assert 4 <= answer.prior_weight <= 32


@pytest.mark.parametrize("weight", [0.5, 5.0])
def test_the_weight_that_documents_were_drawn_with_is_found(weight):
    made = make_lda(400, n_topics=4, n_words=2000, document_length=60, alpha=weight / 4, seed=0)
    split = split_documents(made.counts)
    found = best_weight([Judged(topics, split) for topics in (made.topics[:2], made.topics)])
    assert weight / 2 <= found <= 2 * weight


def test_errors_are_those_of_paired_documents(corpus):
    """The standard error of a ratio of sums, against drawing the documents again."""
    split = split_documents(corpus[:300])
    topics = [
        LatentDirichletAllocation(k, max_iter=2, random_state=0).fit(corpus[300:]).components_
        for k in (3, 6)
    ]
    scores = [document_scores(table, split, 2.0) for table in topics]
    worse = max(compared(0, [3, 6], [1.0, 1.0], scores), key=lambda trial: trial.behind)
    rng = np.random.default_rng(0)
    again = []
    for _ in range(400):
        some = rng.integers(0, 300, 300)
        means = [logs[some].sum() / words[some].sum() for logs, words in scores]
        again.append(abs(means[0] - means[1]))
    assert worse.behind == pytest.approx(np.mean(again), rel=0.05)
    assert worse.error == pytest.approx(np.std(again), rel=0.2)


def test_numbers_may_come_one_by_one(corpus):
    answer = choose_n_topics(corpus[:100], (k for k in (2, 3, 5)))
    assert {trial.n_topics for trial in answer.trials} <= {2, 3, 5}


def test_seeds_are_words_of_the_corpus(corpus):
    words = [f"w{v}" for v in range(corpus.shape[1])]
    by_word, by_column = (
        LatentDirichletAllocation(max_iter=3, seed_topics={"led": {"words": own, "without": out}})
        for own, out in ((["w3", "w5"], ["w7"]), ([3, 5], [7]))
    )
    found = choose_n_topics(Corpus(corpus[:100], words), [2, 3, 5], estimator=by_word)
    assert found.trials == choose_n_topics(corpus[:100], [2, 3, 5], estimator=by_column).trials


def test_merging_undoes_what_was_split():
    rng = np.random.default_rng(0)
    whole = rng.dirichlet(np.full(50, 0.1), 4) * 1000
    parts = np.repeat(whole, 2, axis=0) * rng.uniform(0.2, 0.8, (8, 1))
    path = list(merged_topics(parts))
    assert [len(topics) for topics in path] == [7, 6, 5, 4, 3, 2, 1]
    found = path[3] / path[3].sum(axis=1, keepdims=True)
    expected = whole / whole.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(expected, axis=0), atol=1e-12)
    for topics in path:
        np.testing.assert_allclose(topics.sum(axis=0), parts.sum(axis=0))


def test_the_picture():
    pytest.importorskip("matplotlib")
    trials = [Trial(0, 5, 0.1, -6.0, 0.5, 0.1), Trial(0, 9, 0.1, -5.5, 0.0, 0.0)]
    axis = TopicNumber(9, trials).plot().axes[0]
    assert axis.get_xlabel() == "topics"
    both = [*axis.get_xticklabels(), *axis.get_xticklabels(minor=True)]
    assert [label.get_text() for label in both] == ["5", "9"]
    assert axis.get_legend_handles_labels()[1] == ["round 1: 10% of a fit each"]


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("candidates must be", {"candidates": (20, 5)}),
        ("candidates must be", {"candidates": []}),
        ("candidates must be", {"candidates": [2.5, 3, 4]}),
        ("estimator must be a LatentDirichletAllocation", {"estimator": PoissonMixture()}),
        ("prior_weight must be positive", {"prior_weight": 0}),
        ("random_state must be", {"random_state": -1}),
        ("X must hold whole counts", {"X": [[0.5, 1.0]] * 20}),
        ("too few documents.*choose the number", {"X": [[1, 2], [3, 4]]}),
        ("too few documents.*choose the number", {"X": [[1, 2]] * 9}),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(corpus, message, arguments):
    with pytest.raises(ValueError, match=message):
        choose_n_topics(**{"X": corpus, **arguments})
