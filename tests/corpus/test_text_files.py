"""Text of real files: other encodings, bad records, nulls, delimiters, lines, links."""

import errno
import gzip
import json
import os
import warnings

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from tempering.corpus import CorpusError, Document, open_corpus, read, read_texts, write
from tempering.corpus.files import reading

TEXTS = ["red green", "", "blue"]


def write_csv(folder, texts):
    path = folder / "a.csv"
    path.write_text("\n".join(["key,text", *(f'{i},"{t or ""}"' for i, t in enumerate(texts))]))
    return path


def write_json(folder, texts):
    path = folder / "a.jsonl"
    rows = [json.dumps({"key": str(i), "text": text}) for i, text in enumerate(texts)]
    path.write_text("\n\n".join(rows))
    return path


def write_parquet(folder, texts):
    path = folder / "a.parquet"
    table = {"key": range(len(texts)), "text": pyarrow.array(texts, pyarrow.string())}
    parquet.write_table(pyarrow.table(table), path, row_group_size=2)
    return path


def write_lines(folder, texts):
    path = folder / "a.txt"
    path.write_text("".join(f"{text or ''}\n" for text in texts))
    return path


KINDS = [write_csv, write_json, write_parquet, write_lines]


@pytest.mark.parametrize("make", KINDS)
def test_documents_are_numbered_by_record_from_zero(tmp_path, make):
    documents = list(read_texts(make(tmp_path, TEXTS)))
    assert documents == [Document(str(i), text) for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize("make", KINDS)
def test_a_value_that_is_missing_is_an_empty_text(tmp_path, make):
    path = make(tmp_path, ["red green", None, "blue"])
    assert [document.text for document in read_texts(path)] == TEXTS
    assert read(path).shape[0] == 3


def test_a_name_that_is_missing_is_the_number_of_the_record(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "red", "id": "x"}\n{"text": "blue", "id": null}\n')
    assert [document.name for document in read_texts(tmp_path / "a.jsonl", None, "id")] == [
        "x",
        "1",
    ]


BAD = {
    "a.csv": (
        b"text,n\nred,1\nb\xffd,2\none,2,3\nshort\nblue,4\n",
        ["0", "4"],
        3,
        "line 3: it is not",
    ),
    "b.csv": (b'text,n\nred,1\n"b"x,2\nblue,3\n', ["0", "2"], 1, "line 3: it is no CSV"),
    "a.jsonl": (
        b'{"text": "red"}\n{"text": \n{"other": 1}\n{"text": 3}\n[]\n{"text": "\xff"}\n\n'
        b'{"text": "blue"}\n',
        ["0", "6"],
        5,
        "line 2: it is no JSON",
    ),
    "a.txt": (b"red\nb\xffd\nblue\n", ["0", "2"], 1, "line 2: it is not UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("packed", [False, True])
def test_bad_records_end_the_reading_or_are_skipped_and_counted(tmp_path, name, packed):
    content, names, n_bad, first = BAD[name]
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(CorpusError, match=first):
        list(read_texts(path))
    texts = read_texts(path, on_error="skip")
    with pytest.warns(UserWarning, match=f"{n_bad} bad records were skipped. The first: .*{first}"):
        documents = list(texts)
    assert texts.skipped == n_bad
    assert documents == [Document(names[0], "red"), Document(names[1], "blue")]
    with pytest.warns(UserWarning, match="skipped"):
        assert read(path, on_error="skip").shape == (2, 2)


def test_bad_texts_of_parquet_are_skipped(tmp_path):
    raw = pyarrow.array([b"red", b"b\xffd", b"blue"], pyarrow.binary())
    text = pyarrow.StringArray.from_buffers(3, *raw.buffers()[1:])
    parquet.write_table(pyarrow.table({"text": text}), tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match=r"row group 0, row 1 \(from 0\)"):
        read(tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="1 bad records"):
        assert read(tmp_path / "a.parquet", on_error="skip").names == ["0", "2"]


def test_all_bad_is_an_error(tmp_path):
    (tmp_path / "a.jsonl").write_text("no\nJSON\n")
    with pytest.raises(CorpusError, match="nothing is left: 2 bad records"):
        read(tmp_path / "a.jsonl", on_error="skip")


def test_a_file_of_bad_records_is_skipped_if_others_of_its_folder_are_good(tmp_path):
    for name, content in {"a": "no JSON", "b": '{"text": "red"}', "c": "[]\n3"}.items():
        (tmp_path / f"{name}.jsonl").write_text(content)
    texts = read_texts(tmp_path, on_error="skip")
    with pytest.warns(UserWarning, match="3 bad records were skipped") as told:
        assert list(texts) == [Document("b.jsonl:0", "red")]
    assert len(told) == 1
    assert texts.skipped == 3
    assert "a.jsonl, line 1: it is no JSON" in texts.first_skipped
    (tmp_path / "b.jsonl").unlink()
    with pytest.raises(CorpusError, match="nothing is left: 3 bad records"):
        read(tmp_path, on_error="skip")


def test_nothing_is_said_of_good_files(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = read_texts(write_csv(tmp_path, TEXTS), on_error="skip")
        assert len(list(texts)) == 3
    assert (texts.skipped, texts.first_skipped) == (0, None)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig", "shift_jis"])
@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl", "folder/a.txt"])
def test_other_encodings(tmp_path, encoding, name):
    word = "テスト" if encoding == "shift_jis" else "café"
    content = json.dumps({"text": word}, ensure_ascii=False) if "json" in name else word
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((f"text\n{content}" if "csv" in name else content).encode(encoding))
    source = path.parent if "folder" in name else path
    (document,) = read_texts(source, encoding=encoding)
    assert document.text == word
    assert open_corpus(source, encoding=encoding).vocabulary == [word]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.txt.gz"])
def test_a_file_that_is_cut_off_is_no_bad_record(tmp_path, name):
    """All that was behind the cut would be left out, and told as one record."""
    rng = np.random.default_rng(0)
    rows = (f"w{number}" for number in rng.integers(10**9, size=2000))
    lines = (json.dumps({"text": row}) if "json" in name else row for row in rows)
    packed = gzip.compress("\n".join(["text"] * ("csv" in name) + list(lines)).encode())
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    for on_error in ("fail", "skip"):
        with pytest.raises(CorpusError, match="it is damaged, or of another format"):
            read(tmp_path / name, on_error=on_error)


def test_a_table_in_another_encoding_is_told_of_it(tmp_path):
    """As a spreadsheet saves "Unicode text"."""
    path = tmp_path / "a.csv"
    path.write_bytes("id,text\r\n1,café\r\n".encode("utf-16"))
    with pytest.raises(CorpusError, match=r"line 1: it is not UTF-8 .*; name another encoding"):
        read(path)
    assert read(path, encoding="utf-16").vocabulary == ["café"]


def test_other_delimiters(tmp_path):
    for name in ("a.csv", "a.txt", "a.data"):
        (tmp_path / name).write_text('n;text\n1;"red; green"\n2;blue, too\n')
        documents = list(read_texts(tmp_path / name, delimiter=";"))
        assert [document.text for document in documents] == ["red; green", "blue, too"]
        assert read(tmp_path / name, delimiter=";").shape[0] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "ignore"}, 'on_error must be "fail" or "skip"; got \'ignore\''),
        ({"encoding": "klingon"}, "encoding must be one that Python knows.* got 'klingon'"),
        ({"encoding": "rot13"}, "encoding must be one that Python knows"),
        ({"delimiter": ", "}, "delimiter must be one character"),
        ({"delimiter": '"'}, "delimiter must be one character"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once(tmp_path, options, message):
    path = write_csv(tmp_path, TEXTS)
    for reader in (read_texts, read, open_corpus):
        with pytest.raises(CorpusError, match=message):
            reader(path, **options)


def test_a_file_of_lines(tmp_path):
    (tmp_path / "a.txt").write_text("sun sea\r\n\r\nsnow\u2028ice\r\n")
    texts = [document.text for document in read_texts(tmp_path / "a.txt")]
    assert texts == ["sun sea", "", "snow\u2028ice"]
    assert read(tmp_path / "a.txt").shape[0] == 3
    (tmp_path / "notes.md").write_text("sun sea\nsnow\n")
    assert read(tmp_path / "notes.md", format="lines").names == ["0", "1"]
    with pytest.raises(CorpusError, match=r"neither name nor content tell.*lines"):
        read(tmp_path / "notes.md")


def test_counts_that_are_called_txt_are_no_text(tmp_path):
    (tmp_path / "a.txt").write_text("2\n3\n1\n1 1 4\n")
    assert read(tmp_path / "a.txt").counts.toarray().tolist() == [[4, 0, 0], [0, 0, 0]]
    (tmp_path / "b.txt").write_text("2 0:3 1:4\n")
    assert read(tmp_path / "b.txt").counts.toarray().tolist() == [[3, 4]]
    (tmp_path / "c.txt").write_text("2024 was: a year\n")
    assert "year" in read(tmp_path / "c.txt").vocabulary


def test_errors_quote_little_of_a_document(tmp_path):
    long = "word " * 2000
    cases = {
        "a.csv": f'"{long}"\n"{long}"\n',
        "b.csv": f"{long},b\n" * 3,
        "a.jsonl": json.dumps({long: long}) + "\n",
        "b.jsonl": long + "\n",
        "docword.a.txt": long,
        "a.ldac": long,
        "a.svmlight": long,
        "a.mtx": long,
        "a.xyz": long,
    }
    for name, content in cases.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(CorpusError) as raised:
            read(tmp_path / name)
        assert len(str(raised.value).replace(str(tmp_path), "")) < 400, name


def test_every_text_of_a_folder_is_read_gzipped_or_in_capitals(tmp_path):
    for name, text in (("a.txt", "red"), ("B.TXT", "green")):
        (tmp_path / name).write_text(text)
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"blue"))
    (tmp_path / "notes.md").write_text("no text")
    assert sorted(document.text for document in read_texts(tmp_path)) == ["blue", "green", "red"]
    (tmp_path / "B.TXT").rename(tmp_path / "B.CSV")
    (tmp_path / "B.CSV").write_text("text\ngrey\n")
    assert read(tmp_path / "B.CSV").vocabulary == ["grey"]
    write(tmp_path / "D.PARQUET", read(tmp_path / "B.CSV"))
    assert read(tmp_path / "D.PARQUET").vocabulary == ["grey"]


def test_links_out_of_a_folder_are_not_followed(tmp_path):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("red")
    (folder / "deep" / "b.txt").symlink_to(folder / "a.txt")
    os.mkfifo(folder / "pipe.txt")
    assert [document.name for document in read_texts(folder)] == ["a.txt", "deep/b.txt"]
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "c.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(CorpusError, match=r"c\.txt: it is a link that leads out of the folder"):
        read(folder)
    (folder / "d.txt").symlink_to(folder / "nothing.txt")
    with pytest.warns(UserWarning, match="2 bad records were skipped"):
        assert read(folder, on_error="skip").vocabulary == ["red"]


def test_rejects_two_columns_with_the_name_that_is_read(tmp_path):
    table = pyarrow.table([["red"], ["1"], ["blue"]], names=["text", "key", "text"])
    parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("text,key,text\nred,1,blue\n")
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(CorpusError, match="2 columns are named 'text'; rename all but one"):
            list(read_texts(tmp_path / name))
        # Columns that are not read may have any names.
        assert list(read_texts(tmp_path / name, column="key")) == [Document("0", "1")]


def test_an_error_of_the_system_names_the_file(tmp_path):
    with (
        pytest.raises(OSError, match=r"Input/output error: '.*a\.csv'"),
        reading(tmp_path / "a.csv"),
    ):
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_other_columns_come_with_their_documents(tmp_path, name):
    """Also where bad records are skipped."""
    path = tmp_path / name
    rows = [{"text": f"word{i}", "when": f"199{i}", "n": "x"} for i in range(3)]
    if name == "t.parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), path)
    elif name == "t.jsonl":
        lines = [json.dumps(row) for row in rows]
        lines.insert(1, "no json")
        lines.append(json.dumps({"text": "word3"}))
        path.write_text("\n".join(lines))
    else:
        lines = ["text,when,n", *(",".join(row.values()) for row in rows)]
        lines.insert(2, "one field")
        path.write_text("\n".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = list(read_texts(path, others=["when"], on_error="skip").records)
    assert [(r.document.text, *r.others) for r in records[:3]] == [
        ("word0", "1990"),
        ("word1", "1991"),
        ("word2", "1992"),
    ]
    if name == "t.jsonl":
        assert records[3].others == [None]


@pytest.mark.parametrize("asked", [{"column": "x"}, {"name_column": "x"}, {"others": ["x"]}])
def test_what_has_no_columns_is_asked_for_none(tmp_path, asked):
    """A .txt beside tables, such as a README, would be read in their place."""
    write_csv(tmp_path, TEXTS)
    (tmp_path / "a.txt").write_text("sun")
    message = r"it has no columns \(its .txt files are the documents\), so that there is no 'x'"
    with pytest.raises(CorpusError, match=message):
        read_texts(tmp_path, **asked)
    with pytest.raises(CorpusError, match="it has no columns, so that there is no 'x'"):
        read_texts(tmp_path / "a.txt", **asked)


@pytest.mark.parametrize("make", KINDS[:3])
def test_a_folder_of_tables_is_read_in_the_order_of_its_files(tmp_path, make):
    table = make(tmp_path, ["red green", "blue"])
    folder = tmp_path / "many"
    folder.mkdir()
    for part in ("b", "a"):
        (folder / f"{part}{table.suffix}").write_bytes(table.read_bytes())
    documents = list(read_texts(folder))
    assert [document.text for document in documents] == ["red green", "blue"] * 2
    assert documents[2].name == f"b{table.suffix}:0"
    assert [document.name for document in read_texts(folder, name_column="key")][2] == "0"
    assert read(folder).counts.toarray().tolist() == [[0, 1, 1], [1, 0, 0]] * 2


def test_a_folder_of_tables_of_two_kinds_is_refused(tmp_path):
    write_csv(tmp_path, TEXTS)
    write_json(tmp_path, TEXTS)
    with pytest.raises(CorpusError, match=r"\.csv and \.jsonl"):
        list(read_texts(tmp_path))
