"""A model and its words: remembered from a corpus, kept on disk, held against other corpora."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_array_equal

import tempering
from tempering import LatentDirichletAllocation
from tempering.corpus import Corpus, CorpusError, from_texts, open_source, write
from tempering.evaluation import npmi, split_documents

TEXTS = ["sun sea sand sun", "snow ice frost ice", "sea sand sun", "ice snow snow frost"] * 10


@pytest.fixture(scope="module")
def corpus():
    return from_texts(TEXTS)


def new_model(**options):
    return LatentDirichletAllocation(2, max_iter=2, random_state=0, **options)


@pytest.fixture(scope="module")
def model(corpus):
    return new_model().fit(corpus)


def test_the_words_of_the_corpus_are_those_of_the_topics(corpus, model, tmp_path):
    plain = new_model().fit(corpus.counts)
    assert_array_equal(model.components_, plain.components_)
    assert model.topics(3) == plain.topics(3, corpus.vocabulary)
    assert {word for topic in model.topics(3) for word in topic} == set(corpus.vocabulary)
    model.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert loaded.topics(3) == model.topics(3)
    assert loaded.counting_ == model.counting_ == corpus.counting.as_dict()
    assert_array_equal(loaded.transform(corpus), model.transform(corpus.counts))


def test_a_corpus_and_its_counts_are_alike_everywhere(corpus, model):
    counts = corpus.counts
    assert_array_equal(model.transform(corpus), model.transform(counts))
    assert_array_equal(model.document_temperatures(corpus), model.document_temperatures(counts))
    assert model.score(corpus) == model.score(counts)
    assert model.perplexity(corpus) == model.perplexity(counts)
    assert_array_equal(model.coherence(corpus, 2), model.coherence(counts, 2))
    assert_array_equal(npmi(model.components_, corpus, 2), npmi(model.components_, counts, 2))
    halves = split_documents(corpus), split_documents(counts)
    assert_array_equal(halves[0].observed.toarray(), halves[1].observed.toarray())
    streams = new_model().partial_fit(corpus), new_model().partial_fit(counts)
    assert_array_equal(streams[0].components_, streams[1].components_)
    assert streams[0].topics(1) == streams[1].topics(1, corpus.vocabulary)
    assert_array_equal(new_model().fit_transform(corpus), model.transform(counts))


def test_other_words_are_refused_by_name(corpus, model):
    others = [*corpus.vocabulary[:-1], "zebra"]
    with pytest.raises(ValueError, match=r"column 5 of the corpus is 'zebra', but 'sun' in the"):
        model.transform(Corpus(corpus.counts, others))
    fewer = Corpus(corpus.counts[:, :4], corpus.vocabulary[:4])
    for ask in (model.transform, model.score, model.partial_fit):
        with pytest.raises(
            ValueError, match=r"the corpus has 4 words, but the model 6.*vectorizer"
        ):
            ask(fewer)
    # Without words there is nothing to compare.
    assert_array_equal(model.transform(Corpus(corpus.counts)), model.transform(corpus))


def test_a_corpus_without_documents_is_refused_as_one(corpus, model):
    empty = Corpus(corpus.counts[:0], corpus.vocabulary)
    for ask in (new_model().fit, new_model().partial_fit, model.transform, model.score):
        with pytest.raises(ValueError, match=r"a document.*; got Corpus\(0 documents × 6 words"):
            ask(empty)


def test_what_says_not_how_words_were_counted_is_refused(corpus):
    with pytest.raises(CorpusError, match="counting must be a WordCounting or None; got 3"):
        Corpus(corpus.counts, corpus.vocabulary, counting=3)


def test_a_dictionary_is_no_list_of_words(corpus, model):
    words = {word: column for column, word in enumerate(corpus.vocabulary)}
    with pytest.raises(ValueError, match=r"must be a list of words; got \{'frost': 0"):
        model.topics(2, words)


def test_words_of_another_fit_are_forgotten(corpus):
    model = new_model().fit(corpus)
    assert list(model.vocabulary_) == corpus.vocabulary
    model.fit(corpus.counts[:, :4])
    assert not hasattr(model, "vocabulary_")
    assert not hasattr(model, "counting_")
    assert all(isinstance(word, int) for topic in model.topics(2) for word in topic)


def test_a_corpus_that_streams_tells_its_words(corpus, tmp_path):
    write(tmp_path / "a.parquet", corpus)
    model = new_model().fit(open_source(tmp_path / "a.parquet", batch_size=8))
    assert {word for topic in model.topics(3) for word in topic} == set(corpus.vocabulary)
    write(tmp_path / "b.parquet", Corpus(corpus.counts[:, :4]))
    model.fit(open_source(tmp_path / "b.parquet", batch_size=8))
    assert isinstance(model.topics(1)[0][0], int)


def test_a_data_frame_tells_its_words(corpus, tmp_path):
    frame = pandas.DataFrame(corpus.counts.toarray(), columns=corpus.vocabulary)
    model = new_model().fit(frame)
    model.save(tmp_path / "model")
    loaded = tempering.load(tmp_path / "model")
    assert loaded.topics(3) == model.topics(3) == new_model().fit(corpus).topics(3)
    assert_array_equal(loaded.transform(frame), model.transform(frame))
    with pytest.raises(ValueError, match="column 0 of the corpus is 'zebra', but 'frost'"):
        loaded.transform(Corpus(corpus.counts, ["zebra", *corpus.vocabulary[1:]]))


def test_a_frame_may_have_columns_called_as_parts_of_a_corpus_are():
    frame = pandas.DataFrame(np.eye(4, dtype=int), columns=["counts", "vocabulary", "names", "sea"])
    assert set(new_model().fit(frame).topics(4)[0]) == set(frame.columns)


def test_records_of_text_are_told_how_to_be_counted():
    with pytest.raises(ValueError, match=r"got texts\. Count their words first"):
        new_model().fit([{"text": "sun and sea"}, {"text": "ice"}])
