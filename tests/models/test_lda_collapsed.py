"""The collapsed chain that ends a fit of topics of few words each."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from tempering import LatentDirichletAllocation
from tempering.datasets import make_lda
from tempering.evaluation import topic_stability
from tempering.models.lda.collapsed import (
    Room,
    Tokens,
    likeliest_eta,
    likeliest_sum,
    repeated_words,
    sweep_tokens,
)


def log_joint(z, firsts, words, alpha, eta, n_words):
    """log p(w, z) with topics and proportions summed out, but for constants."""
    n_topics, total = alpha.size, 0.0
    for start, stop in pairwise(firsts):
        held = np.bincount(z[start:stop], minlength=n_topics)
        total += (gammaln(held + alpha) - gammaln(alpha)).sum()
    counts = np.zeros((n_words, n_topics))
    np.add.at(counts, (words, z), 1)
    total += (gammaln(counts + eta) - gammaln(eta)).sum()
    return total - gammaln(counts.sum(axis=0) + n_words * eta).sum()


def test_the_chain_draws_from_the_posterior():
    firsts, words = np.array([0, 3, 5]), np.array([0, 0, 1, 1, 2], np.int32)
    alpha, eta, n_words = np.array([0.3, 0.6], np.float32), 0.2, 4
    states = np.array(list(product((0, 1), repeat=words.size)))
    logs = np.array([log_joint(z, firsts, words, alpha, eta, n_words) for z in states])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    exact = np.zeros((3, 2))
    for z, weight in zip(states, weights):
        np.add.at(exact, (words, z), weight)

    rows = np.full((3, 2), eta, np.float32)
    rows[:, 0] += np.bincount(words)
    totals = rows.sum(axis=0) + np.float32(eta)  # and a word that no document has
    tokens = Tokens(firsts, words, np.zeros(words.size, np.uint32))
    room = Room(rows, totals, *np.empty((3, 2), np.float32), np.zeros((3, 2), np.float32))
    n_sweeps = 20_000
    for sweep in range(n_sweeps):
        sweep_tokens(tokens, alpha, np.uint64(5 * sweep), False, False, True, room)
    np.testing.assert_allclose(room.sums / n_sweeps, exact, atol=0.03)
    counts = np.zeros((3, 2))
    np.add.at(counts, (words, tokens.topics), 1)
    np.testing.assert_allclose(room.rows, counts + eta, atol=1e-2)


def test_priors_are_the_likeliest():
    rng = np.random.default_rng(0)
    firsts = np.arange(0, 3001, 10)
    theta = rng.dirichlet([0.2, 0.4, 0.6], 300)
    z = np.concatenate([rng.choice(3, 10, p=own) for own in theta])
    topics = rng.dirichlet(np.full(50, 0.3), 3)
    words = np.array([rng.choice(50, p=topics[k]) for k in z], np.int32)
    alpha, counts = np.array([1.0, 2.0, 3.0]) / 6, np.zeros((50, 3), np.float32)
    np.add.at(counts, (words, z), 1)

    def minus_log(log_prior, of_words):
        prior = np.exp(log_prior)
        own, eta = (alpha, prior) if of_words else (alpha * prior, 0.5)
        norm = firsts.size - 1 if not of_words else 0
        constant = norm * (gammaln(own.sum()) - gammaln(10 + own.sum()))
        constant += 3 * gammaln(50 * eta) if of_words else 0.0
        return -log_joint(z, firsts, words, own, eta, 50) - constant

    found, tokens = alpha, Tokens(firsts, words, z.astype(np.uint32))
    eta = 0.5
    for _ in range(200):
        found, eta = likeliest_sum(tokens, found), likeliest_eta(counts, eta, 50)
    best = [minimize_scalar(minus_log, (-1, 1), args=(own,)) for own in (False, True)]
    assert found.sum() == pytest.approx(float(np.exp(best[0].x)), rel=1e-3)
    np.testing.assert_allclose(found / found.sum(), alpha)
    assert eta == pytest.approx(float(np.exp(best[1].x)), rel=1e-3)


def test_words_come_again_as_the_model_says_or_more_often():
    rng = np.random.default_rng(1)
    words, z = rng.integers(40, size=6000).astype(np.int32), rng.integers(2, size=6000)
    tokens = Tokens(np.arange(0, 6001, 20), words, z.astype(np.uint32))
    assert repeated_words(tokens, 2) == pytest.approx(1.0, abs=0.1)
    twice = Tokens(
        np.arange(0, 6001, 20), np.repeat(words[::2], 2), np.repeat(tokens.topics[::2], 2)
    )
    assert repeated_words(twice, 2) > 3.0


def test_topics_of_documents_that_follow_the_model_are_touched():
    made = make_lda(100, 10, n_words=3000, document_length=150, alpha=0.1, eta=0.05, seed=2)
    settings = {"random_state": 0, "n_jobs": 1}
    touched = LatentDirichletAllocation(10, **settings).fit(made.counts)
    assert touched.recipe_.end.endswith("then a collapsed chain")
    np.testing.assert_allclose(touched.components_.sum(), made.counts.sum(), rtol=0.2)
    as_before = LatentDirichletAllocation(10, seed_topics={"one": [0]}, **settings).fit(made.counts)
    assert "collapsed" not in as_before.recipe_.end
    found = [
        topic_stability(made.topics, own.components_ / own.components_.sum(axis=1, keepdims=True))
        for own in (as_before, touched)
    ]
    assert found[1] > found[0] + 0.005
    bursts = LatentDirichletAllocation(10, **settings).fit(made.counts * 2)
    assert "collapsed" not in bursts.recipe_.end
