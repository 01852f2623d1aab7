"""Which topics come again."""

import json
import re

import numpy as np
import pytest
from scipy import sparse

from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus, open_source, write
from tempering.datasets import make_lda
from tempering.report import collect
from tempering.report.page import render
from tempering.workbench import topics_across_seeds


@pytest.fixture(scope="module")
def documents():
    """Documents of three topics, and others of words that have none."""
    drawn = make_lda(200, n_topics=3, n_words=90, document_length=40, eta=0.05, seed=1)
    noise = np.random.default_rng(0).poisson(0.6, size=(150, 60))
    return sparse.csr_matrix(sparse.block_diag([drawn.counts, noise]))


@pytest.mark.slow
def test_topics_come_again_and_noise_does_not(documents):
    model = LatentDirichletAllocation(6, random_state=0, init="random", max_iter=20).fit(documents)
    shared = topics_across_seeds(model, documents, 3, resample=True)
    noisy = model.components_[:, 90:].sum(axis=1) / model.components_.sum(axis=1)
    assert shared.shape == (6,)
    assert np.all((shared >= 0) & (shared <= 1))
    assert shared[noisy < 0.2].min() > 0.1 + shared[noisy > 0.8].mean()
    again = topics_across_seeds(model, documents, 3, resample=True)
    np.testing.assert_array_equal(shared, again)


def test_a_source_over_other_words_is_refused(documents, tmp_path):
    model = LatentDirichletAllocation(2, random_state=0, max_iter=2).fit(documents)
    pytest.importorskip("pyarrow")
    write(tmp_path / "corpus.parquet", Corpus(sparse.csr_array(documents[:, :100])))
    with pytest.raises(ValueError, match="X has 100 columns, but topics has 150"):
        topics_across_seeds(model, open_source(tmp_path / "corpus.parquet"), 1)
    with pytest.raises(ValueError, match=r"resample=True draws .* in memory.*X\.sample"):
        topics_across_seeds(model, open_source(tmp_path / "corpus.parquet"), 1, resample=True)


def test_led_topics_come_again(documents):
    corpus = Corpus(documents, [f"w{v}" for v in range(150)])
    model = LatentDirichletAllocation(3, random_state=0, seed_topics={"a": ["w3"]}).fit(corpus)
    assert topics_across_seeds(model, corpus, 1).min() > 0.8


def test_the_report_shows_it(documents):
    model = LatentDirichletAllocation(2, random_state=0, max_iter=2).fit(documents)
    report = collect(model, stability=[0.25, 0.75])
    told = {topic["id"]: topic["stability"] for topic in report.topics}
    assert told == {0: 0.25, 1: 0.75}
    page = render(report)
    assert "comes again in other fits" in page
    assert json.dumps(0.75) in re.sub(r"\s", "", page)
    assert "stability" not in collect(model).topics[0]
    for wrong in ([0.5], [0.5, 1.5], ["a", "b"]):
        with pytest.raises(ValueError, match="stability must be from 0 to 1, one number for each"):
            collect(model, stability=wrong)


def test_numbers_that_cannot_be_are_named(documents):
    model = LatentDirichletAllocation(2, random_state=0, max_iter=2).fit(documents)
    with pytest.raises(ValueError, match="n_seeds must be at least 1, and whole; got 0"):
        topics_across_seeds(model, documents, 0)
