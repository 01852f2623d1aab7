"""Text from a file to topics and back: what is counted, remembered, printed and refused."""

import csv
import json
import os
import re
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import tempering
from tempering.cli import printing
from tempering.cli.printing import cleaned
from tempering.corpus import read

SUBJECTS = ["wave salt tide boat harbour", "rock summit path ridge valley"]


def make_texts():
    rng = np.random.default_rng(0)
    subjects = [SUBJECTS[i % 2].split() for i in range(40)]
    return [" 1984 the ".join(rng.choice(words, size=20)) for words in subjects]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same texts as a table, as JSON lines and as files."""
    folder = tmp_path_factory.mktemp("texts")
    texts = make_texts()
    with open(folder / "posts.csv", "w", newline="") as file:
        csv.writer(file).writerows([["key", "body"], *((f"p{i}", t) for i, t in enumerate(texts))])
    rows = ({"key": f"p{i}", "body": text} for i, text in enumerate(texts))
    (folder / "posts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "many").mkdir()
    for number, text in enumerate(texts):
        (folder / "many" / f"{number:02d}.txt").write_text(text)
    return folder


def fit(command, path, out, *options):
    return command("fit", path, "-k", 2, "--passes", 2, "--out", out, *options)


@pytest.fixture(scope="module")
def model(command, folder):
    """A model of single words and pairs of them, counted in a way of its own."""
    out = folder / "model"
    options = ["--column", "body", "--ngrams", "2", "--stop-words", folder / "left-out.txt"]
    (folder / "left-out.txt").write_text("The\n\nboat\n")
    fit(command, folder / "posts.csv", out, *options, "--keep-numbers", "--max-df", "1.0")
    return out


@pytest.mark.parametrize("name", ["posts.csv", "posts.jsonl"])
def test_the_printed_next_step_works(command, folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.symlink(folder / name, f"my {name}")
    printed = fit(command, f"my {name}", "m", "--column", "body", "--id", "key").stdout
    step = shlex.split(printed[printed.index("Look at it: ") :].removeprefix("Look at it: "))
    assert step[:2] == ["tempering", "report"]
    command(*step[1:])
    before = Path("report.html").read_bytes()
    assert b'"p1"' in before
    # The same step does not replace the page, but says how to; the next fit's has another place.
    assert "--overwrite" in command(*step[1:], code=1).stderr
    assert Path("report.html").read_bytes() == before
    printed = fit(command, f"my {name}", "n", "--column", "body").stdout
    again = shlex.split(printed[printed.index("Look at it: ") :].removeprefix("Look at it: "))
    assert "--overwrite" not in again
    command(*again[1:])
    assert b'"p1"' not in Path("report-2.html").read_bytes()
    assert Path("report.html").read_bytes() == before


def test_a_missing_column_is_told_with_the_option(command, folder, tmp_path):
    refused = command("fit", folder / "posts.csv", "-k", 2, "--out", tmp_path / "m", code=1)
    assert re.search("no column 'text' among 'body', 'key'.*--column", refused.stderr)


def test_new_text_is_counted_as_that_of_the_fit(
    command, folder, model, tmp_path, written_proportions
):
    fitted = tempering.load(model)
    words = list(fitted.vocabulary_)
    assert "1984" in words
    assert "boat" not in words
    assert any(re.fullmatch(r"\w+ 1984", word) for word in words)
    # Counted by hand, as the options say.
    rows = []
    for text in make_texts():
        tokens = [word for word in text.split() if word not in ("the", "boat")]
        pairs = [f"{a} {b}" for a, b in pairwise(tokens)]
        rows.append([(tokens + pairs).count(word) for word in words])
    expected = fitted.transform(np.array(rows))
    out = tmp_path / "p.csv"
    command("transform", model, folder / "posts.jsonl", "--column", "body", "--out", out)
    np.testing.assert_allclose(written_proportions(out)[1], expected, rtol=1e-5)
    scores = command("evaluate", model, folder / "many", "--json")
    expected = fitted.completion_score(np.array(rows), inference="gibbs", alpha=5 / 2)
    assert scores["score"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["posts.npz", "posts.mtx.gz", "posts.parquet"])
def test_counts_remember_how_the_text_was_counted(
    command, folder, tmp_path, name, written_proportions
):
    """Through a conversion to counts, of counts, and a fit to them."""
    pattern = r"(?u)\b[a-df-z0-9]{2,}\b"  # no word with an e: neither "tide" nor "the"
    options = ["--ngrams", "2", "--token-pattern", pattern, "--max-df", "1.0"]
    command("convert", folder / "posts.csv", tmp_path / "a.npz", "--column", "body", *options)
    command("convert", tmp_path / "a.npz", tmp_path / name)
    fit(command, folder / "posts.csv", tmp_path / "of text", "--column", "body", *options)
    fit(command, tmp_path / name, tmp_path / "of counts")
    of_text, of_counts = (tempering.load(tmp_path / part) for part in ("of text", "of counts"))
    assert of_counts.counting_ == of_text.counting_
    assert of_counts.counting_["token_pattern"] == pattern
    out = tmp_path / "p.csv"
    told = command("transform", tmp_path / "of counts", folder / "many", "--out", out)
    assert "warning" not in told.stderr
    np.testing.assert_allclose(
        written_proportions(out)[1], of_counts.transform(read(tmp_path / name)), rtol=1e-5
    )


def test_settings_of_another_corpus_are_neither_taken_nor_left(command, files, folder, tmp_path):
    out, beside = tmp_path / "posts.npz", tmp_path / "posts.counting.txt"
    command("convert", folder / "posts.csv", out, "--column", "body")
    assert read(out).counting.ngrams == (1, 1)
    out.unlink()
    (tmp_path / "posts.vocab.txt").unlink()
    (tmp_path / "posts.documents.txt").unlink()
    refused = command("convert", files.counts, out, code=1)
    assert "posts.counting.txt exists already" in refused.stderr
    command("convert", files.counts, out, "--overwrite")
    assert not beside.exists()
    assert read(out).counting is None
    for damaged in ("", "[]", '{"odd": 1}', '{"ngrams": [3, 1]}', "{"):
        beside.write_text(damaged)
        assert "posts.counting.txt" in command("info", out, code=1).stderr


@pytest.mark.parametrize("name", ["posts.csv", "posts.jsonl"])
def test_ids_are_those_of_a_column(command, folder, model, tmp_path, name):
    out = tmp_path / "p.csv"
    command("transform", model, folder / name, "--column", "body", "--id", "key", "--out", out)
    assert [row[0] for row in csv.reader(out.open())] == ["doc_id", *(f"p{i}" for i in range(40))]


def test_a_model_of_counts_says_that_it_guesses(command, files, folder, tmp_path):
    text = tmp_path / "new"
    text.mkdir()
    (text / "a.txt").write_text(" ".join(files.corpus.vocabulary))
    told = command("transform", files.model, text, "--out", tmp_path / "p.csv")
    assert "does not know how its words were counted" in told.stderr


def test_options_for_text(command, folder, tmp_path):
    def words(*options):
        command("convert", folder / "many", tmp_path / "a.npz", "--overwrite", *options)
        return read(tmp_path / "a.npz").vocabulary

    every = sorted(" ".join(SUBJECTS).split())
    common = ["--max-df", "1.0"]
    assert words(*common) == every
    assert words(*common, "--keep-numbers") == ["1984", *every]
    assert words(*common, "--stop-words", "none") == sorted([*every, "the"])
    assert words(*common, "--token-pattern", "[a-t]+(?= )", "--ngrams", "1") != every
    assert all(" " in word for word in words(*common, "--ngrams", "2,2"))
    for options, message in (
        (["--stop-words", "german"], "must be english, none, or a file"),
        (["--token-pattern", "("], "must be a regular expression"),
        (["--ngrams", "2,1"], "must be two whole numbers"),
        (["--min-df", "0.9"], "--max-df 0.5 means fewer documents than --min-df 0.9"),
        (["--token-pattern", "9{9}"], f"{folder / 'many'}: there is not one word to count"),
    ):
        refused = command("convert", folder / "many", tmp_path / "b.npz", *options, code=1)
        assert message in refused.stderr
    for options in (
        ["--ngrams", "two"],
        ["--token-pattern", "a", "--keep-numbers"],
        ["--max-df", "2."],
        ["--max-df", "0"],
        ["--phrases", "--ngrams", "1"],
    ):
        refused = command("convert", folder / "many", tmp_path / "b.npz", *options, code=2)
        assert options[0] in refused.stderr


def test_options_for_text_are_in_vain_for_counts(command, files, tmp_path):
    options = ["--min-df", "3", "--ngrams", "2", "--keep-numbers", "--id", "key"]
    told = command("convert", files.counts, tmp_path / "a.npz", *options)
    expected = "--id, --ngrams, --keep-numbers, --min-df have no effect"
    assert expected in " ".join(told.stderr.split())
    for arguments in (
        ["transform", files.model, files.counts, "--out", tmp_path / "p.csv"],
        ["evaluate", files.model, files.counts],
        ["info", files.counts],
        ["fit", files.counts, "-k", 2, "--passes", 1, "--out", tmp_path / "m"],
    ):
        told = command(*arguments, "--column", "text")
        assert "--column has no effect" in told.stderr, arguments
        assert "no effect" not in command(*arguments, *_again(arguments)).stderr


def _again(arguments):
    return ["--overwrite"] if "--out" in arguments else []


def test_words_cannot_command_the_terminal(command, tmp_path):
    evil = "\x1b]0;owned\x07\x9b2j\u202e"
    texts = [f"wave{evil} tide{evil} salt", f"rock{evil} path ridge"] * 10
    rows = ({"text": text, f"id{evil}": "a"} for text in texts)
    source = tmp_path / "evil.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--token-pattern", "[^ ]+", "--stop-words", "none", "--min-df", "1"]
    fitted = fit(command, source, tmp_path / "m", *options)
    assert f"wave{evil}" in tempering.load(tmp_path / "m").vocabulary_
    printed = [fitted, command("topics", tmp_path / "m"), command("info", tmp_path / "m")]
    printed.append(command("info", source))
    missing = command("info", source, "--column", f"none{evil}", code=1)
    for result in (*printed, missing):
        for text in (result.stdout, result.stderr):
            assert text == cleaned(text)
    assert "wave]0;owned2j" in printed[1].stdout
    # Machines get the words as they are.
    rows = command("topics", tmp_path / "m", "--json")["topics"]
    assert any(f"wave{evil}" in row["words"] for row in rows)


@pytest.mark.parametrize("number", [*range(32), 127, 155, 0x202E, 0x2066])
def test_what_a_terminal_obeys_is_left_out(number):
    kept = chr(number) if chr(number) in "\t\n" else ""
    assert cleaned(f"a{chr(number)}b") == f"a{kept}b"


@pytest.mark.parametrize("width", [29, 30, 31, 32])
def test_a_narrow_terminal_shows_every_word(monkeypatch, capsys, width):
    words = ["训练", "模型", "网络", "深度", "语言", "参数", "算法", "数据", "优化"]
    monkeypatch.setattr(printing, "console", lambda: printing.CleanConsole(width=width))
    printing.print_topics([{"topic": 0, "share": 1.0, "words": words}])
    assert capsys.readouterr().out.split()[5:] == words


def test_words_that_belong_together_are_told_apart(command, model):
    assert re.search(r"\w+, \w+", command("topics", model).stdout)


def test_records_that_cannot_be_read_are_skipped_and_counted(command, tmp_path):
    source = tmp_path / "posts.csv"
    lines = ["id;body", *(f"{i};{text}" for i, text in enumerate(make_texts()))]
    lines[3] = "3;one;too many"
    source.write_bytes("\n".join(lines).encode() + "\n99;caf\xe9 wave\n".encode("latin-1"))
    options = ["--column", "body", "--delimiter", ";"]
    out = tmp_path / "counts.npz"
    refused = command("convert", source, out, *options, code=1)
    assert "line 4" in refused.stderr
    assert not out.exists()
    told = command("convert", source, out, *options, "--on-error", "skip", "--id", "id")
    assert "2 bad records were skipped" in told.stderr
    assert read(out).shape[0] == 39
    latin = ["--encoding", "latin-1", "--min-df", "1", "--overwrite"]
    told = command("convert", source, out, *options, "--on-error", "skip", *latin)
    assert "1 bad record" in told.stderr
    assert "café" in read(out).vocabulary
    fitted = fit(command, source, tmp_path / "m", *options, "--on-error", "skip")
    # The report reads the texts once more, and tells of them once.
    printed = " ".join(fitted.stdout.split())
    assert "--delimiter ';' --out" in printed.replace("--on-error skip ", "")
    report = command(
        "report", tmp_path / "m", source, *options, "--on-error", "skip", "--out", tmp_path / "r"
    )
    assert report.stderr.count("were skipped") == 1


@pytest.mark.parametrize("name", ["posts.csv", "posts.jsonl", "posts.parquet", "posts.txt"])
def test_rows_are_numbered_from_nought(command, folder, model, tmp_path, name):
    source = folder / name
    if name == "posts.parquet":
        source = tmp_path / name
        parquet.write_table(pyarrow.table({"body": make_texts()}), source)
    if name == "posts.txt":
        source = tmp_path / name
        source.write_text("".join(f"{text}\n" for text in make_texts()))
    options = [] if name == "posts.txt" else ["--column", "body"]
    command("transform", model, source, *options, "--out", tmp_path / "p.csv")
    rows = list(csv.reader((tmp_path / "p.csv").open()))
    assert [row[0] for row in rows[1:]] == [str(number) for number in range(40)]
    assert command("info", source, *options, "--json")["documents"] == 40
