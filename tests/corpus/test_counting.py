"""How text becomes words: one default everywhere, and what a model can keep of it."""

import json
import re
from itertools import pairwise

import numpy as np
import pandas
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from tempering import LatentDirichletAllocation
from tempering.corpus import (
    Corpus,
    CorpusError,
    WordCounting,
    from_texts,
    model_vectorizer,
    read,
)

TEXTS = [
    "The 3 cats of 1984 sat on 12,000 mats, and B2B buyers paid 99.50.",
    "A dog sat down; the cats ran. Nobody ran with the dog in 1984!",
]


def plain_words(text):
    """Letters and digits, two or more, in lower case."""
    return [word for word in re.findall(r"\w+", text.lower()) if len(word) > 1]


def telling_words(text):
    words = plain_words(text)
    return [word for word in words if word not in ENGLISH_STOP_WORDS and not word.isdigit()]


def test_stop_words_and_numbers_are_left_out_of_texts_and_of_files_alike(tmp_path):
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.txt").write_text(text)
    expected = sorted({word for text in TEXTS for word in telling_words(text)})
    assert "b2b" in expected
    for corpus in (from_texts(TEXTS), read(tmp_path)):
        assert corpus.vocabulary == expected
        assert corpus.n_tokens == sum(len(telling_words(text)) for text in TEXTS)
    everything = sorted({word for text in TEXTS for word in plain_words(text)})
    for corpus in (
        from_texts(TEXTS, stop_words=None, keep_numbers=True),
        read(tmp_path, stop_words=None, keep_numbers=True),
    ):
        assert corpus.vocabulary == everything
    assert "1984" not in from_texts(TEXTS, stop_words=None).vocabulary
    assert "sat" not in from_texts(TEXTS, stop_words=["sat"]).vocabulary


def test_two_answers_to_one_question_are_refused():
    for options in ({"stop_words": None}, {"keep_numbers": True}):
        with pytest.raises(CorpusError, match="a vectorizer says itself"):
            from_texts(TEXTS, vectorizer=CountVectorizer(), **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stop_words": ["cats", "dog"], "ngram_range": (1, 2)},
        {"lowercase": False, "stop_words": None},
        {"token_pattern": r"[a-z]+", "strip_accents": "unicode"},
        {"analyzer": "char_wb", "ngram_range": (2, 3)},
        {"binary": True, "max_features": 5},
    ],
)
def test_settings_that_went_through_json_count_new_text_alike(options):
    vectorizer = CountVectorizer(**options)
    corpus = from_texts(TEXTS, vectorizer=vectorizer)
    values = json.loads(json.dumps(corpus.counting.as_dict()))
    again = WordCounting(**values)
    assert again == corpus.counting
    new = ["Cats sat; the DOG café 1984 sat sat"]
    counted = from_texts(new, vectorizer=again.vectorizer(corpus.vocabulary))
    expected = vectorizer.fit(TEXTS).transform(new).toarray()
    assert_array_equal(counted.counts.toarray(), expected)


def test_words_that_follow_each_other_pass_over_what_is_left_out():
    corpus = from_texts(TEXTS, vectorizer=WordCounting(ngrams=(2, 2)).vectorizer())
    expected = {f"{a} {b}" for text in TEXTS for a, b in pairwise(telling_words(text))}
    assert corpus.vocabulary == sorted(expected)


def test_what_cannot_be_kept_is_not_pretended():
    own = CountVectorizer(tokenizer=str.split, token_pattern=None)
    assert from_texts(TEXTS, vectorizer=own).counting is None

    class Other(CountVectorizer):
        def build_analyzer(self):
            return str.split

    assert from_texts(TEXTS, vectorizer=Other()).counting is None
    # Words that are given as words were made by somebody else.
    tokens = from_texts([["the", "1984"], ["sea"]])
    assert tokens.counting is None
    assert tokens.vocabulary == ["1984", "sea", "the"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stop_words": "german"}, "stop_words must be 'english', a list of words, or None"),
        ({"stop_words": [1]}, "stop_words must be"),
        ({"token_pattern": "("}, "token_pattern must be a regular expression"),
        ({"token_pattern": "(a)(b)"}, "one group at most"),
        ({"ngrams": (2, 1)}, r"ngrams must be two whole numbers .* got \(2, 1\)"),
        ({"ngrams": (1, 10**6)}, "from 1 to 10"),
        ({"ngrams": 2}, "ngrams must be"),
        ({"analyzer": "os.system"}, "analyzer must be one of 'word', 'char', 'char_wb'"),
        ({"lowercase": "yes"}, "lowercase must be one of"),
        ({"strip_accents": "all"}, "strip_accents must be one of"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(CorpusError, match=message):
        WordCounting(**settings)


def test_a_model_counts_new_text_as_that_of_its_fit(tmp_path):
    import tempering

    vectorizer = WordCounting(stop_words=["sat"], ngrams=(1, 2)).vectorizer()
    corpus = from_texts(TEXTS * 20, vectorizer=vectorizer)
    LatentDirichletAllocation(2, max_iter=1, random_state=0).fit(corpus).save(tmp_path / "model")
    model = tempering.load(tmp_path / "model")
    again = from_texts(TEXTS, vectorizer=model_vectorizer(model))
    assert_array_equal(again.counts.toarray(), corpus.counts[:2].toarray())
    assert model.transform(again).shape == (2, 2)
    model.counting_ = {"stop_words": None, "run": "this"}
    with pytest.raises(CorpusError, match="counting_ of the model is damaged"):
        model_vectorizer(model)


def test_words_with_capitals_are_counted_as_they_are():
    corpus = from_texts([["Sun", "sea"], ["Ice", "snow"]] * 10)
    model = LatentDirichletAllocation(2, max_iter=2, random_state=0).fit(corpus)
    new = from_texts(["The Sun, the Ice and snow"], vectorizer=model_vectorizer(model))
    assert dict(zip(new.vocabulary, new.counts.toarray()[0])) == {
        "Ice": 1,
        "Sun": 1,
        "sea": 0,
        "snow": 1,
    }


def test_a_model_without_words_cannot_count():
    model = LatentDirichletAllocation(2, max_iter=1, random_state=0).fit(np.eye(4, dtype=int))
    with pytest.raises(CorpusError, match="the model has no words to count"):
        model_vectorizer(model)


def test_of_a_data_frame_the_column_is_counted():
    frame = pandas.DataFrame({"text": TEXTS, "key": ["a", "b"]}, index=[7, 8])
    expected = from_texts(TEXTS)
    corpus = from_texts(frame, name_column="key")
    assert corpus.vocabulary == expected.vocabulary
    assert corpus.names == ["a", "b"]
    renamed = frame.rename(columns={"text": "review"})
    assert_array_equal(
        from_texts(renamed, column="review").counts.toarray(), expected.counts.toarray()
    )
    with pytest.raises(CorpusError, match=r"no column 'text' among 'key', 'review'.*--column"):
        from_texts(renamed)
    with pytest.raises(CorpusError, match=r"no column 'id' among"):
        from_texts(frame, name_column="id")
    with pytest.raises(CorpusError, match=r"pass its list of texts, as texts\['text'\]"):
        from_texts({"text": TEXTS})


def test_a_corpus_is_shown_in_a_line():
    corpus = from_texts([f"word{i} sea" for i in range(2000)])
    assert repr(corpus) == "Corpus(2,000 documents × 2,001 words, 4,000 tokens)"
    halves = Corpus(corpus.counts * 0.5)
    assert repr(halves) == "Corpus(2,000 documents × 2,001 words, 2,000.0 tokens)"


def test_of_a_table_of_arrow_the_column_is_counted():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"review": TEXTS, "key": ["a", "b"]})
    corpus = from_texts(table, column="review", name_column="key")
    assert_array_equal(corpus.counts.toarray(), from_texts(TEXTS).counts.toarray())
    assert corpus.names == ["a", "b"]


@pytest.mark.parametrize("form", [None, "numpy", "pandas", "arrow", "polars"])
def test_a_data_set_of_hugging_face_goes_in_as_it_is(form):
    datasets = pytest.importorskip("datasets.arrow_dataset")
    if form == "polars":
        pytest.importorskip("polars")
    whole = datasets.Dataset.from_dict({"text": TEXTS, "key": ["a", "b"]}).with_format(form)
    expected = from_texts(TEXTS)
    for given in (whole, whole.to_iterable_dataset()):
        corpus = from_texts(given, name_column="key")
        assert_array_equal(corpus.counts.toarray(), expected.counts.toarray())
        assert corpus.names == ["a", "b"]
    with pytest.raises(ValueError, match=r"got texts\. Count their words first: .*from_texts"):
        LatentDirichletAllocation(2).fit(whole.with_format(None))


def test_what_is_in_memory_is_not_a_path():
    frame = pandas.DataFrame({"text": TEXTS})
    with pytest.raises(CorpusError, match=r"path must be .* got DataFrame: .*from_texts"):
        read(frame)
    with pytest.raises(CorpusError, match=r"as texts\['train'\]"):
        from_texts({"train": TEXTS, "test": TEXTS})


def test_proportions_come_as_a_frame():
    X = np.random.default_rng(0).poisson(1.0, size=(12, 6))
    frame = pandas.DataFrame(X, columns=list("abcdef"), index=[f"d{i}" for i in range(12)])
    model = LatentDirichletAllocation(3, max_iter=2, random_state=0).set_output(transform="pandas")
    shown = model.fit_transform(frame)
    assert list(shown.index) == list(frame.index)
    assert list(shown.columns) == list(model.get_feature_names_out())
