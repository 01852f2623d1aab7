"""Counts of text are those of scikit-learn, from any source, in memory that does not grow."""

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from pyarrow import parquet
from sklearn.feature_extraction.text import CountVectorizer

from tempering.corpus import (
    Corpus,
    CorpusError,
    Document,
    WordCounting,
    from_texts,
    open_corpus,
    read,
    read_texts,
    write,
)
from tempering.corpus import text_counts as tally_module
from tempering.inference import BlockSource

WORDS = ["apple", "banana", "cherry", "date", "elder", "fig", "grape", "the", "and", "x"]


def make_texts(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, 12))) for _ in range(n)]


def assert_like_sklearn(corpus, vectorizer, texts):
    expected = vectorizer.fit_transform(texts)
    assert corpus.vocabulary == vectorizer.get_feature_names_out().tolist()
    assert_array_equal(corpus.counts.toarray(), expected.toarray())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stop_words": "english"},
        {"min_df": 20, "max_df": 0.5},
        {"min_df": 0.2, "max_df": 120},
        {"max_features": 4},
        {"max_features": 3, "min_df": 0.1},
        {"ngram_range": (1, 2), "max_features": 30},
        {"analyzer": "char_wb", "ngram_range": (2, 3), "max_features": 50},
        {"binary": True},
        {"lowercase": False, "token_pattern": r"[a-z]+"},
        {"vocabulary": ["fig", "date", "nothing"]},
    ],
)
def test_counts_are_those_of_sklearn(options):
    texts = make_texts()
    corpus = from_texts(iter(texts), vectorizer=CountVectorizer(**options))
    assert_like_sklearn(corpus, CountVectorizer(**options), texts)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.text("abcdé XY.,", max_size=30), min_size=1, max_size=12),
    st.integers(1, 3),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_counts_of_any_text_are_those_of_sklearn(texts, min_df, max_features):
    options = {"min_df": min_df, "max_features": max_features}
    try:
        CountVectorizer(**options).fit(texts)
    except ValueError:
        with pytest.raises(CorpusError):
            from_texts(texts, vectorizer=CountVectorizer(**options))
        return
    corpus = from_texts(texts, vectorizer=CountVectorizer(**options))
    assert_like_sklearn(corpus, CountVectorizer(**options), texts)


def test_the_vectorizer_stays_as_it_was():
    vectorizer = CountVectorizer(min_df=2)
    from_texts(make_texts(), vectorizer=vectorizer)
    assert not hasattr(vectorizer, "vocabulary_")


def test_counts_go_to_disk(tmp_path):
    texts = make_texts(3000)
    source = from_texts(texts, out=tmp_path / "a.parquet")
    assert isinstance(source, BlockSource)
    corpus = read(tmp_path / "a.parquet")
    assert_like_sklearn(corpus, WordCounting().vectorizer(), texts)
    assert source.n_tokens == corpus.n_tokens


def test_out_is_checked_before_the_work(tmp_path, monkeypatch):
    def never():
        raise AssertionError("texts were read")
        yield

    (tmp_path / "there.parquet").write_text("something")
    # There is no option to overwrite, so none is named.
    with pytest.raises(
        FileExistsError, match=r"exists already: choose another path, or remove it\.$"
    ):
        from_texts(never(), out=tmp_path / "there.parquet")
    with pytest.raises(CorpusError, match=r"out must end in \.parquet, which streams"):
        from_texts(never(), out=tmp_path / "a.npz")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'tempering\[data\]'"):
        from_texts(never(), out=tmp_path / "a.parquet")


def test_every_kind_of_iterable():
    texts = make_texts(50)
    expected = from_texts(texts)
    tokens = [WordCounting().vectorizer().build_analyzer()(text) for text in texts]
    kinds = {
        "iterator": iter(texts),
        "function": lambda: iter(texts),
        "bytes": [text.encode() for text in texts],
        "words": tokens,
        "documents": [Document(str(i), text) for i, text in enumerate(texts)],
    }
    for kind, given_texts in kinds.items():
        corpus = from_texts(given_texts)
        assert corpus.vocabulary == expected.vocabulary, kind
        assert_array_equal(corpus.counts.toarray(), expected.counts.toarray())
    rows = [{"body": text, "id": i, "label": 1} for i, text in enumerate(texts)]
    corpus = from_texts(rows, column="body", name_column="id")
    assert_array_equal(corpus.counts.toarray(), expected.counts.toarray())
    assert corpus.names == [str(i) for i in range(50)]
    assert from_texts(kinds["documents"]).names == corpus.names
    rows = [{"text": "sea", "id": "a"}, {"text": "sun", "id": None}, {"text": "sun"}]
    assert from_texts(rows, name_column="id").names == ["a", "1", "2"]


def test_bags_of_words():
    bags = [[], [(0, 2), (3, 1)], [(1, 4), (1, 1)]]
    corpus = from_texts(iter(bags), dictionary=dict(enumerate("abcd")))
    assert corpus.counts.toarray().tolist() == [[0, 0, 0, 0], [2, 0, 0, 1], [0, 5, 0, 0]]
    assert (corpus.vocabulary, corpus.dtype) == (["a", "b", "c", "d"], np.int32)
    assert from_texts([[(2, 0.5)]]).counts.toarray().tolist() == [[0, 0, 0.5]]
    pairs = (zip([0, 1], [2, 3]) for _ in range(2))
    assert from_texts(pairs).counts.toarray().tolist() == [[2, 3], [2, 3]]
    assert from_texts([[(0, 3e9)]]).counts.toarray().tolist() == [[3e9]]
    with pytest.raises(CorpusError, match="word 3 is out of range: there are 3"):
        from_texts(bags, dictionary=dict(enumerate("abc")))
    with pytest.raises(CorpusError, match="must have the numbers 0 to 1; 0 is missing"):
        from_texts(bags, dictionary={1: "a", 2: "b"})


def test_gensim_corpora():
    gensim = pytest.importorskip("gensim")
    words = [[], *[text.split() for text in make_texts(50)], []]
    dictionary = gensim.corpora.Dictionary(words)
    bags = [dictionary.doc2bow(text) for text in words]
    corpus = from_texts(bags, dictionary=dictionary)
    expected = gensim.matutils.corpus2csc(bags, num_terms=len(dictionary)).T
    assert_array_equal(corpus.counts.toarray(), expected.toarray())
    assert corpus.vocabulary == [dictionary[i] for i in range(len(dictionary))]
    assert corpus.dtype == np.int32
    weights = list(gensim.models.TfidfModel(bags)[bags])
    corpus = from_texts(iter(weights))
    expected = gensim.matutils.corpus2csc(weights, num_terms=len(dictionary)).T
    assert_array_equal(corpus.counts.toarray(), expected.toarray())
    assert corpus.vocabulary is None
    assert_array_equal(from_texts(words[1:-1]).counts.sum(), sum(map(len, words)))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one string", "not one string"),
        (len, "texts must be an iterable.*or a function without arguments.*; got <built-in"),
        ([], "not one word to count in the 0 documents"),
        (["", "a"], "not one word to count in the 2 documents"),
        (["good", None], r"document 1 \(from 0\): it should be text.* NoneType"),
        (["good", 3.5], r"document 1 \(from 0\): it should be text.* float"),
        ([b"good", b"b\xffd"], r"document 1 \(from 0\): it is not utf-8"),
        ([{"body": "x"}], r"document 0 \(from 0\): there is no column 'text' among 'body'"),
        (
            pd.DataFrame({"text": [np.array(["sun", "sea"])]}),
            r"document 0 \(from 0\): column 'text' should be text; it is of type ndarray",
        ),
        ([{"text": 3}], r"document 0 \(from 0\): column 'text' should be text; it is of type int"),
        (
            [[(0, 1)], [(0, -1)]],
            r"document 1 \(from 0\): a count must be finite, not negative.* got -1",
        ),
        ([[(0, 1)], [(-1, 1)]], r"document 1 \(from 0\): word -1 is out of range"),
        ([[(0, 1)], [(0, 1, 2)]], r"document 1 \(from 0\): it should be a list of pairs"),
        ([[(0, 1)], [(0, "x")]], r"document 1 \(from 0\): it should be a list of pairs"),
        ([[(0, 1)], ["word"]], r"document 1 \(from 0\): it should be a list of pairs"),
    ],
)
def test_what_is_no_text_is_refused(texts, message):
    with pytest.raises(CorpusError, match=message):
        from_texts(texts)


def test_a_vectorizer_s_pattern_is_checked_before_the_work():
    with pytest.raises(CorpusError, match=r"token_pattern must be a regular expression; got '\('"):
        from_texts(["cat"], vectorizer=CountVectorizer(token_pattern="("))


def test_vocabularies_without_words_are_refused():
    with pytest.raises(CorpusError, match="none of the 2 words is left"):
        from_texts(["and", "the"] * 3, vectorizer=CountVectorizer(min_df=4))
    with pytest.raises(
        CorpusError, match=r"max_df=0\.1 means fewer documents than min_df=2, .*: lower"
    ):
        from_texts(["and the"] * 3, vectorizer=CountVectorizer(min_df=2, max_df=0.1))
    with pytest.raises(ValueError, match="min_df"):
        from_texts(["and the"], vectorizer=CountVectorizer(min_df=-1))


def test_rare_words_are_given_up_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(tally_module, "MOST_DISTINCT", 3000)
    texts = [f"common once{i} {WORDS[i % 7]}" for i in range(20_000)]
    options = {"min_df": 100, "max_features": 8}
    with pytest.warns(UserWarning, match="more than 3000 different words"):
        corpus = from_texts(texts, vectorizer=CountVectorizer(**options))
    assert_like_sklearn(corpus, CountVectorizer(**options), texts)


def test_other_processes_count_the_same(monkeypatch):
    monkeypatch.setattr(tally_module, "TEXTS_OF_A_BLOCK", 3)
    monkeypatch.setattr(tally_module, "BLOCKS_COUNTED_HERE", 1)
    texts = [f"red word{i} word{i * i % 7} blue" for i in range(40)]
    alone, together = (from_texts(texts, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert together.vocabulary == alone.vocabulary
    assert_array_equal(together.counts.toarray(), alone.counts.toarray())
    texts[30] = b"caf\xe9"
    with pytest.raises(CorpusError, match=r"document 30 \(from 0\): it is not utf-8"):
        from_texts(texts, n_jobs=2)


def test_a_folder_of_text_files(tmp_path):
    texts = {"b.txt": "beta beta", "a.txt": "alpha\nomega", "deep/c.txt": "gamma", "no.md": "no"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    corpus = read(tmp_path)
    assert corpus.names == ["a.txt", "b.txt", "deep/c.txt"]
    assert corpus.vocabulary == ["alpha", "beta", "gamma", "omega"]
    (tmp_path / "z.txt").write_bytes(b"fine\nb\xffd\n")
    with pytest.raises(CorpusError, match=r"z\.txt, line 2: it is not UTF-8"):
        read(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"files of text of one kind.*none of them"):
        read(tmp_path / "empty")


TEXTS = ["red, green", 'a "quoted"\nline', "ünïcode words", "x" * 200_000 + " long"]


def write_table(folder):
    with open(folder / "a.csv", "w", encoding="utf-8-sig", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["key", "body"])
        rows.writerows(enumerate(TEXTS))
    return folder / "a.csv"


def write_json(folder):
    rows = [json.dumps({"key": i, "body": text}) for i, text in enumerate(TEXTS)]
    path = folder / "a.jsonl.gz"
    path.write_bytes(gzip.compress(("\n".join(rows) + "\n\n").encode()))
    return path


def write_parquet(folder):
    table = pyarrow.table({"key": range(len(TEXTS)), "body": TEXTS})
    parquet.write_table(table, folder / "a.parquet", row_group_size=3)
    return folder / "a.parquet"


@pytest.mark.parametrize("make", [write_table, write_json, write_parquet])
def test_tables_of_text(tmp_path, make):
    path = make(tmp_path)
    documents = list(read_texts(path, "body", "key"))
    assert documents == [Document(str(i), text) for i, text in enumerate(TEXTS)]
    write(tmp_path / "counts.npz", open_corpus(path, column="body", name_column="key"))
    corpus = read(tmp_path / "counts.npz")
    assert_like_sklearn(corpus, WordCounting().vectorizer(), TEXTS)
    assert corpus.names == ["0", "1", "2", "3"]
    with pytest.raises(CorpusError, match=r"no column 'text' among 'body', 'key'; name the column"):
        read(path)
    with pytest.raises(CorpusError, match=r"no column 'name' among"):
        read(path, column="body", name_column="name")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "line 1: the header is missing"),
        ("a.csv", b"text,b\nx,y\nz\n", "line 3: it has 1 fields, but the header has 2"),
        ("a.csv", b'text\n"open\nnever closed\n', "line 2: it is no CSV"),
        ("a.csv", b"text\nfine\nb\xffd\n", "line 3: it is not UTF-8"),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', "line 2: it is no JSON"),
        ("a.jsonl", b'{"text": "a"}\n["text"]\n', "line 2: it should be an object"),
        ("a.jsonl", b'{"text": "a"}\n{"text": 3}\n', "line 2: column 'text' should be text"),
        ("a.jsonl", b"[" * 100_000 + b"\n", "line 1: it is no JSON"),
        ("a.parquet", b"PAR1 nothing", "damaged, or of another format"),
    ],
)
def test_broken_tables_are_named_with_the_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=message) as raised:
        write(tmp_path / "out.npz", open_corpus(tmp_path / name))
    assert name in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_parquet_file_without_text_in_the_column(tmp_path):
    parquet.write_table(pyarrow.table({"text": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match=r"row group 0, row 0 \(from 0\): column 'text'"):
        read(tmp_path / "a.parquet")


MEASURE = """
import sys
import numpy as np
from tempering.corpus import from_texts

path, n_documents = sys.argv[1], int(sys.argv[2])
words = [f"word{i}" for i in range(3000)]

def texts():
    rng = np.random.default_rng(0)
    for _ in range(n_documents):
        yield {"text": " ".join(words[i] for i in rng.integers(0, 3000, 20)), "id": rng.integers(9)}

source = from_texts(texts(), name_column="id", out=path)
assert source.shape == (n_documents, 3000)
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_memory_does_not_grow_with_the_number_of_texts(tmp_path):
    def peak(n_documents):
        path = tmp_path / str(n_documents) / "a.parquet"
        command = [sys.executable, "-c", MEASURE, str(path), str(n_documents)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    small, large = peak(20_000), peak(200_000)
    print(f"peak memory: {small} kB for 20,000 texts, {large} kB for 200,000")
    assert large < 1.15 * small


def test_texts_stay_with_a_corpus():
    corpus = from_texts(["sun sea", "sea"])
    kept = Corpus(corpus.counts, corpus.vocabulary, None, ["sun sea", "sea"])
    assert kept.texts == ["sun sea", "sea"]
