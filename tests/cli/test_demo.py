"""``tempering demo``."""

import json

import pytest

import tempering
from tempering.cli import demo


@pytest.mark.slow
def test_the_demo_shows_what_tempering_is_for(command, tmp_path, monkeypatch):
    monkeypatch.setenv("TEMPERING_CACHE", str(tmp_path / "cache"))
    result = command("demo", "--out", tmp_path / "demo", "--json")
    plain, tempered = result["fits"]["plain SVI"], result["fits"]["tempered"]
    assert tempered["completion_gibbs"] > plain["completion_gibbs"] + 0.2
    assert tempered["npmi"] > plain["npmi"] + 0.05
    assert tempering.load(tmp_path / "demo" / "model").n_components == result["n_topics"]
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "Docstrings of the installed packages" in page


def test_a_file_in_the_way_of_the_demo_is_told_at_once(command, tmp_path, monkeypatch):
    (tmp_path / "demo").write_text("")

    def reads():
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
    monkeypatch.setattr("tempering.datasets.load_docstrings", lambda: corpus)
    monkeypatch.setattr("tempering.cli.demo.N_TOPICS", 4)
    monkeypatch.setattr("tempering.cli.demo.PASSES", 2)
    out = tmp_path / "demo"
    for _ in range(2):  # a second run replaces what the first made
        printed = command("demo", "--out", out).stdout
    for expected in ("360 documents; scored on 40 others", "plain SVI", "held-out nats a word"):
        assert expected in printed
    assert (out / "report.html").as_uri() in printed
    assert list(tempering.load(out / "model").vocabulary_) == made.vocabulary
    scores = json.loads((out / "model" / "validation.json").read_text())
    assert scores["n_documents"] == 40
    assert "text of d" in (out / "report.html").read_text()


def test_lines_of_its_tables_end_where_their_text_ends(capsys):
    scores = {"completion_gibbs": -7.0, "npmi": 0.1, "seconds": 1.0}
    numbers = {"n_topics": 2, "passes": 3, "n_documents": 4, "n_test_documents": 5}
    demo._print_scores({**numbers, "fits": {"tempered": scores}})
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("tempered  ")
    assert lines == [line.rstrip() for line in lines]
