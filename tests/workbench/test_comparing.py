"""Two models side by side."""

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus
from tempering.datasets import make_lda
from tempering.workbench import compare_models, drop_topic, rename_topics


@pytest.fixture(scope="module")
def drawn():
    return make_lda(500, n_topics=5, n_words=200, document_length=60, seed=2)


@pytest.fixture(scope="module")
def model(drawn):
    X = Corpus(sparse.csr_matrix(drawn.counts[:400]), [f"w{v}" for v in range(200)])
    return LatentDirichletAllocation(5, random_state=0).fit(X)


def test_a_model_is_like_itself(model, drawn):
    same = compare_models(model, model, drawn.counts[400:])
    assert sorted((pair.a, pair.b) for pair in same.pairs) == [(k, k) for k in range(5)]
    assert min(pair.shared for pair in same.pairs) == pytest.approx(1)
    assert (same.only_in_a, same.only_in_b, same.difference, same.error) == ([], [], 0.0, 0.0)
    assert all(pair.more_in_a == pair.more_in_b == [] for pair in same.pairs)
    assert str(same).count("(") == 1  # of the head: no words tell these apart


def test_what_is_gone_is_named_and_costs(model, drawn):
    named = rename_topics(model, {2: "harbour"})
    fewer = compare_models(named, drop_topic(named, 2), drawn.counts[400:])
    assert sorted((pair.a, pair.b) for pair in fewer.pairs) == [(0, 0), (1, 1), (3, 2), (4, 3)]
    assert (fewer.only_in_a, fewer.only_in_b) == ([2], [])
    assert fewer.difference < -3 * fewer.error < 0
    assert repr(fewer) == str(fewer)
    assert "harbour: only in a" in str(fewer)
    assert fewer.scores[1] - fewer.scores[0] == pytest.approx(fewer.difference)


def test_the_error_is_that_of_the_difference(drawn, model):
    """Over halves of the documents the difference varies as the error says."""
    other = LatentDirichletAllocation(5, random_state=1, max_iter=2).fit(drawn.counts[:400])
    parts = [compare_models(model, other, drawn.counts[start::10]) for start in range(10)]
    found = np.mean([part.error for part in parts])
    spread = np.std([part.difference for part in parts])
    assert 0.4 < found / spread < 2.5


def test_words_that_tell_a_pair_apart(model, drawn):
    changed = drop_topic(model, 0)  # a copy, whose first topic gets another word
    parameters = changed._state.posterior
    parameters._values[7, 0] += 500.0
    parameters._sums[0] += 500.0
    pair = next(p for p in compare_models(model, changed, drawn.counts[400:]).pairs if p.b == 0)
    assert pair.a == 1
    assert pair.more_in_b[0] == "w7"
    assert pair.shared < 0.95


def test_what_cannot_be_compared_is_refused(model, drawn):
    narrow = LatentDirichletAllocation(2, max_iter=1).fit(drawn.counts[:, :50])
    with pytest.raises(ValueError, match="a has 200 words and b 50"):
        compare_models(model, narrow, drawn.counts)
    words = [f"v{v}" for v in range(200)]
    other = LatentDirichletAllocation(2, max_iter=1).fit(
        Corpus(sparse.csr_matrix(drawn.counts), words)
    )
    with pytest.raises(ValueError, match="different words"):
        compare_models(model, other, drawn.counts)
    with pytest.raises(ValueError, match="whole counts"):
        compare_models(model, model, drawn.counts * 0.3)
    with pytest.raises(ValueError, match="two words or more"):
        compare_models(model, model, np.eye(3, 200, dtype=int))
    with pytest.raises(ValueError, match="two documents of two words or more"):  # one has no error
        compare_models(model, model, drawn.counts[:1])
    with pytest.raises(ValueError, match="least_shared must be from 0 to 1; got 2"):
        compare_models(model, model, drawn.counts, least_shared=2)
