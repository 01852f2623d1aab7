"""Words that stick together, found in text."""

import math

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from tempering import LatentDirichletAllocation, load
from tempering.corpus import CorpusError, from_texts, model_vectorizer, read
from tempering.corpus.counting import LEAST_COUNT, LEAST_NPMI, sticks_together


def city_texts():
    """ "new york" and "hong kong" are names; all else meets by chance."""
    rng = np.random.default_rng(0)
    others = [f"word{chr(97 + i)}" for i in range(20)]
    texts = []
    for i in range(60):
        words = list(rng.choice(others, size=12))
        if i % 3 == 0:
            words[3:3] = ["New", "York"]
        if i % 5 == 0:
            words[7:7] = ["Hong", "Kong"]
        texts.append(" ".join(words))
    return texts


def test_names_are_found_and_chance_is_not():
    texts = city_texts()
    corpus = from_texts(texts, phrases=True)
    assert [word for word in corpus.vocabulary if " " in word] == ["hong kong", "new york"]
    column = corpus.vocabulary.index("new york")
    assert corpus.counts[:, [column]].sum() == 20
    # Single words count as they did.
    plain = from_texts(texts)
    single = [corpus.vocabulary.index(word) for word in plain.vocabulary]
    np.testing.assert_array_equal(corpus.counts[:, single].toarray(), plain.counts.toarray())


def test_a_file_and_a_model_know_them(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(city_texts()))
    corpus = read(path, phrases=True)
    model = LatentDirichletAllocation(2, max_iter=1, random_state=0).fit(corpus)
    model.save(tmp_path / "model")
    counter = model_vectorizer(load(tmp_path / "model"))
    again = from_texts(["York is new", "in New York"], vectorizer=counter)
    column = corpus.vocabulary.index("new york")
    assert again.counts[:, [column]].toarray().ravel().tolist() == [0, 1]


def test_the_measure_is_that_of_the_docstring():
    words = ["a", "b", "a b", "c"]
    for n in range(LEAST_COUNT - 1, 40):
        counts = np.array([60, 50, n, 900])
        total = 1010
        npmi = math.log(n * total / (60 * 50)) / -math.log(n / total)
        assert sticks_together(words, counts)[2] == (n >= LEAST_COUNT and npmi >= LEAST_NPMI)


def test_nothing_to_compare_is_no_phrase():
    assert sticks_together(["a b", "a"], [9, 20]).tolist() == [False, True]
    assert sticks_together(["a b", "a", "b"], [40, 20, 20]).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"phrases": "yes"}, "phrases must be True or False; got 'yes'"),
        ({"phrases": True, "texts": [["new", "york"]]}, "lists of words, .* join the words"),
        ({"phrases": True, "vectorizer": CountVectorizer()}, r"set its ngram_range to \(1, 2\)"),
    ],
)
def test_what_cannot_be_is_named(options, problem):
    with pytest.raises(CorpusError, match=problem):
        from_texts(**{"texts": ["the cat"], **options})
