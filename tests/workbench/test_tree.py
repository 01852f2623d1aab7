"""The tree of topics joins those that were made alike."""

import numpy as np
import pytest

from tempering import LatentDirichletAllocation
from tempering.workbench import hierarchy, rename_topics


@pytest.fixture(scope="module")
def model():
    """Six topics in three pairs: half of the words of a pair's topics are the same."""
    rng = np.random.default_rng(0)
    topics = np.zeros((6, 90))
    for k in range(6):
        start = 30 * (k // 2)
        topics[k, start : start + 10] = 0.05
        topics[k, start + 10 * (k % 2 + 1) : start + 10 * (k % 2 + 2)] = 0.05
    kinds = rng.integers(0, 6, 600)
    X = np.array([rng.multinomial(60, topics[kind]) for kind in kinds])
    model = LatentDirichletAllocation(6, random_state=0).fit(X)
    found = (model.components_ / model.components_.sum(axis=1, keepdims=True)) @ topics.T
    return rename_topics(model, [f"topic {k}" for k in found.argmax(axis=1)])


def test_pairs_are_joined_first(model):
    tree = hierarchy(model)
    assert sorted(tree.labels) == [f"topic {k}" for k in range(6)]
    groups = [{int(tree.labels[k][-1]) // 2 for k in group} for group in tree.cut(3)]
    assert sorted(map(sorted, groups)) == [[0], [1], [2]]
    # Half of the words in common: √(1 − 1/2); none: 1.
    assert np.allclose(tree.linkage[:3, 2], np.sqrt(0.5), atol=0.05)
    assert np.allclose(tree.linkage[3:, 2], 1, atol=0.05)


def test_every_cut_has_as_many_groups_as_asked_for(model):
    tree = hierarchy(model)
    for n_groups in range(1, 7):
        groups = tree.cut(n_groups)
        assert len(groups) == n_groups
        assert sorted(k for group in groups for k in group) == list(range(6))
    with pytest.raises(ValueError, match="n_groups must be a whole number from 1 to 6"):
        tree.cut(7)


def test_the_picture(model):
    pytest.importorskip("matplotlib")
    axis = hierarchy(model).plot().axes[0]
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert sorted(names) == [f"topic {k}" for k in range(6)]


def test_one_topic_makes_no_tree():
    model = LatentDirichletAllocation(1, random_state=0).fit(np.ones((20, 3), int))
    with pytest.raises(ValueError, match="two topics at least"):
        hierarchy(model)
