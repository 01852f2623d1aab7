"""The chain of shares draws from the posterior: against enumeration of all topics of all words."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln

from tempering.workbench import share_chain
from tempering.workbench.share_chain import ShareChain, next_weight

COUNTS = sparse.csr_array(np.array([[2, 1, 0, 0], [0, 1, 2, 0], [1, 0, 0, 0]]))
PLACES = np.array([0, 1, 1])
KNOWN = np.array([[1.0, 0.4, 0.2, 6.0], [0.3, 0.5, 0.8, 0.1]])
PRIORS = np.array([[0.6, 0.4], [0.3, 0.9]])


def log_dirichlet_multinomial(counts, parameters):
    both = counts + parameters
    return np.sum(gammaln(both) - gammaln(parameters)) + (
        gammaln(parameters.sum()) - gammaln(both.sum())
    )


def exact_moments():
    """Mean and variance of the shares [G, K], with θ and topics summed out."""
    tokens = [(d, v) for d, v in zip(*COUNTS.nonzero()) for _ in range(COUNTS[d, v])]
    logs, means, squares = [], [], []
    for topics in product(range(2), repeat=len(tokens)):
        of_documents, of_words = np.zeros((3, 2)), np.zeros((2, 4))
        for (d, v), k in zip(tokens, topics):
            of_documents[d, k] += 1
            of_words[k, v] += 1
        parameters = of_documents + PRIORS[PLACES]
        logs.append(
            sum(log_dirichlet_multinomial(of_documents[d], PRIORS[PLACES[d]]) for d in range(3))
            + sum(log_dirichlet_multinomial(of_words[k], KNOWN[k]) for k in range(2))
        )
        totals = parameters.sum(axis=1, keepdims=True)
        theta = parameters / totals
        variance = theta * (1 - theta) / (totals + 1)
        sizes = np.array([1, 2])
        mean, spread = np.zeros((2, 2)), np.zeros((2, 2))
        np.add.at(mean, PLACES, theta)
        np.add.at(spread, PLACES, variance)
        mean, spread = mean / sizes[:, None], spread / sizes[:, None] ** 2
        means.append(mean)
        squares.append(spread + mean**2)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    mean = np.tensordot(weights, means, 1)
    return mean, np.tensordot(weights, squares, 1) - mean**2


def new_chain(seed=0, counts=COUNTS, places=PLACES):
    return ShareChain(counts, places, KNOWN, 10 * KNOWN, np.random.default_rng(seed))


@pytest.mark.parametrize("most", [share_chain.MOST_MASSES, 0])  # 0: as with very many groups
def test_shares_are_those_of_the_posterior(monkeypatch, most):
    monkeypatch.setattr(share_chain, "MOST_MASSES", most)
    chain = new_chain()
    draws = np.array([chain.draw(PRIORS, 1) for _ in range(3000)])[10:]
    mean, variance = exact_moments()
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.02)
    np.testing.assert_allclose(draws.var(axis=0), variance, atol=0.008)


def test_every_word_is_kept():
    chain = new_chain()
    for _ in range(3):
        chain.draw(PRIORS, 2)
        kept = chain._parameters - KNOWN[:, [0, 1, 2]].T
        np.testing.assert_allclose(kept.sum(axis=1), COUNTS.sum(axis=0)[:3])


def test_neither_threads_nor_room_change_a_bit(monkeypatch):
    rng = np.random.default_rng(3)
    counts = sparse.csr_array(rng.poisson(0.8, (300, 4)))
    told = []
    for threads, room in ((1, 2**23), (3, 2**23), (2, 100)):
        monkeypatch.setattr(share_chain, "number_of_threads", lambda _, threads=threads: threads)
        monkeypatch.setattr(share_chain, "ROOM", room)
        chain = new_chain(5, counts, np.arange(300) % 2)
        told.append([chain.draw(PRIORS, 2) for _ in range(3)])
    np.testing.assert_array_equal(told[0], told[1])
    np.testing.assert_array_equal(told[0], told[2])


@pytest.mark.parametrize("shape", [(2, 4), (1, 4)])
def test_documents_without_words_have_their_prior(shape):
    chain = new_chain(0, sparse.csr_array(shape, dtype=int), np.zeros(shape[0], int))
    draws = np.array([chain.draw(PRIORS[:1], 1) for _ in range(400)])
    assert draws.mean(axis=0)[0] == pytest.approx(PRIORS[0] / PRIORS[0].sum(), abs=0.08)


def test_weights_of_priors_are_those_of_the_documents():
    """Drawn with weights of 3 and of 0.2 a word, from which the fixed point starts far away."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.2), 3)
    base = np.array([[0.5, 0.3, 0.2]])
    theta = rng.dirichlet(3 * base[0], 300)
    counts = sparse.csr_array(np.array([rng.multinomial(60, row @ topics) for row in theta]))
    known = np.full((3, 60), 1.0)
    chain = ShareChain(counts, np.zeros(300, int), known, 1e6 * topics, rng)
    weight, eta = 0.5, 1.0
    for _ in range(60):
        chain.draw(weight * base, 1)
        weight = next_weight(*chain.mixing, weight, 0.5)
        eta = next_weight(*chain.sparsity(eta, 60), eta, 1.0)
        chain.know(eta)
    assert weight == pytest.approx(3.0, rel=0.2)
    assert eta == pytest.approx(0.2, rel=0.2)
    np.testing.assert_allclose(chain._known, eta)
