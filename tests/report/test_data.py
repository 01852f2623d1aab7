"""What goes into a report."""

import numpy as np
import pytest
from scipy import sparse

from on_disk import on_disk
from tempering import LatentDirichletAllocation, PoissonMixture, load
from tempering.inference import History
from tempering.inference.run import Record
from tempering.report import collect
from tempering.report.data import POINTS, fit_curves
from tempering.report.page import render
from tempering.report.tables import ABOUT, BINS, EXAMPLES, share_table
from tempering.workbench import TopicShares

OTHER_SHARES = TopicShares(["sea"], np.array([3]), np.full((2, 1, 2), 0.5))


def record(step, elbo=np.nan, phase="tempered"):
    return Record(
        step, step / 10, 100 * step, 2.0 - step / 1e4, 0.5, 0.1, elbo, elbo, 1.0, phase, None
    )


def test_curves_are_thinned_and_keep_their_ends():
    history = History(
        [record(i, -float(i) if i % 3 == 0 else np.nan, "final" if i >= 4000 else "tempered")
         for i in range(1, 5001)]
    )  # fmt: skip
    curves = fit_curves(history, [(100, -7.0), (200, -6.5)])
    assert len(curves["temperature"]) == POINTS
    assert curves["temperature"][0] == (100, 1.9999)
    assert curves["temperature"][-1] == (500_000, 1.5)
    assert curves["elbo"][0] == (300, -3)
    assert curves["elbo"][-1] == (499_800, -4998)
    assert all(seen == -100 * elbo for seen, elbo in curves["elbo"])
    assert curves["validation"] == [(100, -7.0), (200, -6.5)]
    assert curves["final_start"] == 400_000


@pytest.mark.parametrize("history", [None, History()])
def test_no_history_gives_no_curves(history):
    curves = fit_curves(history)
    assert curves == {"temperature": [], "elbo": [], "validation": [], "final_start": None}


def test_the_facts_are_those_of_the_fit(fitted, report):
    assert report.facts["documents"] == report.facts["read"] == fitted.X.shape[0]
    assert report.facts["vocabulary"] == fitted.X.shape[1]
    assert report.facts["tokens"] == fitted.X.sum()
    assert collect(fitted.model).facts["tokens"] == pytest.approx(fitted.X.sum(), rel=0.15)
    assert report.facts["passes"] == 8
    assert dict(report.parameters)["tempering"] == "'annealing'"
    assert float(dict(report.parameters)["doc_topic_prior_"]) == pytest.approx(0.2)
    assert len(report.curves["elbo"]) == 8


def test_documents_are_called_and_quoted_by_their_place(fitted, report):
    proportions = fitted.model.transform(fitted.X)
    temperatures = fitted.model.document_temperatures(fitted.X)
    for document in report.documents:
        d = fitted.names.index(document["name"])
        assert fitted.texts[d].startswith(document["text"].removesuffix(" …"))
        assert document["length"] == fitted.X[[d]].sum()
        assert document["temperature"] == pytest.approx(temperatures[d], rel=1e-3)
        ids, parts = zip(*document["topics"])
        assert ids[0] == proportions[d].argmax()
        np.testing.assert_allclose(parts, proportions[d, list(ids)], rtol=1e-2)
    hottest = [report.documents[i]["temperature"] for i in report.temperatures["hottest"]]
    assert hottest == sorted(hottest, reverse=True)
    assert hottest[0] == pytest.approx(temperatures.max(), rel=1e-3)
    assert sum(report.temperatures["counts"]) == fitted.X.shape[0]
    assert len(report.temperatures["edges"]) == BINS + 1


def test_topics_have_examples_coherence_and_spread(fitted, report):
    proportions = fitted.model.transform(fitted.X)
    coherence = fitted.model.coherence(fitted.X)
    for topic in report.topics:
        k = topic["id"]
        assert 1 <= len(topic["documents"]) <= EXAMPLES
        for i in topic["documents"]:
            d = fitted.names.index(report.documents[i]["name"])
            assert proportions[d, k] >= np.quantile(proportions[:, k], 0.8)
        assert topic["coherence"] == pytest.approx(coherence[k], rel=1e-2)
        assert topic["spread"] == pytest.approx(np.mean(proportions[:, k] >= ABOUT), rel=1e-2)


def test_without_texts_a_document_is_its_telling_words(fitted):
    report = collect(fitted.model, fitted.X, vocabulary=fitted.vocabulary)
    document = report.documents[0]
    d = int(document["name"].removeprefix("Document "))
    present = {fitted.vocabulary[v] for v in fitted.X[[d]].indices}
    shown = document["text"].split(" · ")
    assert set(shown) <= present
    assert len(shown) == min(18, len(present))


def test_a_corpus_on_disk_gives_the_same_documents(fitted, tmp_path):
    common = {"names": fitted.names, "texts": fitted.texts, "max_documents": 100}
    stored = collect(fitted.model, on_disk(tmp_path, fitted.X), **common)
    in_memory = collect(fitted.model, fitted.X, **common)
    assert stored.documents == in_memory.documents
    assert stored.facts["read"] == 100
    lengths = {name: fitted.X[[d]].sum() for d, name in enumerate(fitted.names)}
    assert all(each["length"] == lengths[each["name"]] for each in stored.documents)


def test_empty_documents_are_left_out(fitted):
    X = sparse.vstack([sparse.csr_array((3, fitted.X.shape[1]), dtype=int), fitted.X], format="csr")
    report = collect(fitted.model, X)
    assert report.facts["read"] == X.shape[0] - 3
    assert sum(report.temperatures["counts"]) == X.shape[0] - 3
    assert not {"Document 0", "Document 1", "Document 2"} & {d["name"] for d in report.documents}


def test_a_model_alone_makes_a_report():
    X = np.random.default_rng(0).poisson(1.0, size=(20, 1))
    model = LatentDirichletAllocation(n_components=1, batch_size=10, total_samples=20)
    report = collect(model.partial_fit(X))
    assert report.documents == []
    assert report.temperatures is None
    assert report.words["text"] == ["word 0"]
    assert report.topics[0]["prevalence"] == 1.0
    assert "documents" not in report.topics[0]


def test_the_groups_that_differ_most_are_told_with_the_luck_of_being_chosen():
    """Of 20 groups that are alike the extremes differ; most of their ratios hold the true 1."""
    rng = np.random.default_rng(0)
    n_groups, n_topics = 20, 400
    found = 1.0 + 0.05 * rng.normal(size=(n_groups, n_topics))
    draws = found + 0.05 * rng.normal(size=(100, n_groups, n_topics))
    shares = TopicShares([*range(n_groups)], np.ones(n_groups, int), draws)
    table = share_table(shares, "by_group", n_topics, in_order=False)
    ends = np.array([contrast[2:] for contrast in table["contrasts"]])
    held = np.mean((ends[:, 0] <= 1.0) & (ends[:, 1] >= 1.0))
    assert 0.9 <= held < 1


def test_a_saved_model_brings_its_words(fitted, tmp_path):
    fitted.model.save(tmp_path / "model", vocabulary=fitted.vocabulary)
    loaded = load(tmp_path / "model")
    ours = collect(fitted.model, fitted.X, vocabulary=fitted.vocabulary)
    assert collect(loaded, fitted.X) == ours


@pytest.mark.slow
def test_a_hundred_topics_make_a_small_page():
    rng = np.random.default_rng(0)
    X = sparse.random_array((600, 12_000), density=0.004, rng=rng).tocsr()
    model = LatentDirichletAllocation(n_components=100, total_samples=600, random_state=0)
    model.partial_fit(X)
    texts = ["long words of some document " * 40] * X.shape[0]
    vocabulary = [f"a-rather-long-word-{v}" for v in range(X.shape[1])]
    page = render(collect(model, X, vocabulary=vocabulary, texts=texts))
    assert len(page.encode()) < 3_000_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary": ["one", "two"]}, "vocabulary has 2 words; the estimator was fitted to 120"),
        ({"over_time": [1, 2]}, "over_time must be what tempering.workbench.topics_over_time"),
        ({"by_group": OTHER_SHARES}, "by_group has shares of 2 topics, but the model has 5"),
        ({"n_held_out": -1}, "n_held_out must be at least 0, and whole"),
        ({"names": ["one"]}, "names has 1 entries, X has 300 documents"),
        ({"texts": iter("ab")}, "texts must be a list"),
        ({"X": None, "texts": ["a"]}, "X is missing"),
        ({"max_documents": 0}, "max_documents must be at least 1, and whole; got 0"),
        ({"X": np.zeros((4, 120))}, "every document is empty"),
    ],
)
def test_bad_arguments_are_named(fitted, changes, message):
    with pytest.raises(ValueError, match=message):
        collect(fitted.model, **{"X": fitted.X, **changes})


def test_another_model_is_refused():
    with pytest.raises(ValueError, match="model must be a LatentDirichletAllocation; got Poisson"):
        collect(PoissonMixture(2, random_state=0).fit([[1, 2], [3, 4], [0, 9]]))
