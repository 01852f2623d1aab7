"""``tempering demo``."""

import json
import re
from itertools import pairwise

import pytest

import tempering
from tempering.cli import demo
from tempering.cli.printing import minus


def test_each_fit_changes_one_thing():
    fits = list(demo.ladder().values())
    for before, after in pairwise(fits):
        assert sum(before[name] != after[name] for name in after) == 1
        assert before.keys() == after.keys()
    assert fits[0]["tempering"] is fits[2]["tempering"] is None
    assert fits[3]["tempering"] is not None


@pytest.mark.slow
def test_the_demo_shows_what_each_change_adds(command, tmp_path, monkeypatch):
    monkeypatch.setenv("TEMPERING_CACHE", str(tmp_path / "cache"))
    result = command("demo", "--out", tmp_path / "demo", "--json")
    scores = [fit["held_out_score"] for fit in result["fits"].values()]
    assert scores[1] > scores[0] + 0.2
    assert scores[2] > scores[1] + 0.2
    assert scores[3] > scores[2] - 0.02
    assert tempering.load(tmp_path / "demo" / "model").n_components == result["n_topics"]
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "Docstrings of NumPy, SciPy and scikit-learn" in page


def test_a_file_in_the_way_of_the_demo_is_told_at_once(command, tmp_path, monkeypatch):
    (tmp_path / "demo").write_text("")

    def reads(packages):
        raise AssertionError("the corpus is read before the folder is made")

    monkeypatch.setattr("tempering.datasets.load_docstrings", reads)
    assert str(tmp_path / "demo") in command("demo", "--out", tmp_path / "demo", code=1).stderr
    assert "'--out': it must name" in command("demo", "--out", "", code=2).stderr


@pytest.mark.slow
def test_what_the_demo_prints(command, files, tmp_path, monkeypatch):
    """On a small corpus, in place of one that takes a while to read."""
    from tempering.corpus import Corpus

    made = files.corpus
    texts = [f"text of {name}" for name in made.names]
    corpus = Corpus(made.counts, made.vocabulary, made.names, texts)
    monkeypatch.setattr("tempering.datasets.load_docstrings", lambda packages: corpus)
    monkeypatch.setattr("tempering.cli.demo.N_TOPICS", 4)
    monkeypatch.setattr("tempering.cli.demo.PASSES", 2)
    out = tmp_path / "demo"
    for _ in range(2):  # a second run replaces what the first made
        printed = command("demo", "--out", out).stdout
    for expected in ("360 documents; scored on 40 others", *demo.ladder(), "held-out score"):
        assert expected in printed
    assert (out / "report.html").as_uri() in printed
    assert list(tempering.load(out / "model").vocabulary_) == made.vocabulary
    scores = json.loads((out / "model" / "validation.json").read_text())
    assert scores["n_documents"] == 40
    page = (out / "report.html").read_text()
    assert "text of d" in page
    # One score: in the table, with the model and in the report.
    score = scores["scores"][-1][1]
    assert f"{minus(score)}  " in re.search(r"^\+ heat .*$", printed, re.MULTILINE)[0]
    assert f",{score:.6f}".rstrip("0") in page


def test_lines_of_its_tables_end_where_their_text_ends(capsys):
    first = {"held_out_score": -7.0, "npmi": 0.1, "seconds": 1.0}
    numbers = {"n_topics": 2, "passes": 3, "n_documents": 4, "n_test_documents": 5}
    fits = {"plain": first, "+ heat": {**first, "held_out_score": -7.002}}
    demo._print_scores({**numbers, "fits": fits})
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].split() == ["+", "heat", "−7.002", "−0.002", "0.10", "1.0"]
    assert lines == [line.rstrip() for line in lines]
