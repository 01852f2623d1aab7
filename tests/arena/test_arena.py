"""A small arena: two programs on tiny corpora, and a page of what came of them."""

import gzip
import json
import math
import time

import numpy as np
import pytest
from scipy import sparse

from arena import runner
from arena.__main__ import main, parse
from arena.corpora import DRAWN, EIGHT, corpus_of, named, open_corpus
from arena.page import write_page
from arena.programs import PROGRAMS, Task
from arena.runner import Folder, run_corpus
from arena.scores import measure
from arena.tables import beside_published, cells, losses, tally


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Sixty documents about two things, in scipy's format, with labels."""
    rng = np.random.default_rng(0)
    topics = np.repeat([[0.19, 0.01], [0.01, 0.19]], 5, axis=1)
    counts = np.array([rng.multinomial(20, topics[d % 2]) for d in range(60)])
    path = tmp_path_factory.mktemp("corpus") / "things.npz"
    sparse.save_npz(path, sparse.csr_array(counts))
    (path.parent / "things.labels.txt").write_text("sea\nsnow\n" * 30)
    return path


@pytest.fixture(scope="module")
def finished(labelled, tmp_path_factory):
    """The folder of a run of two programs."""
    out = tmp_path_factory.mktemp("arena")
    main([*given(labelled, out), "--seeds", "1", "--programs", "tempering", "scikit-learn"])
    return out


def given(corpus, out):
    task = ["--corpora", f"{corpus}:40", "--topics", "2", "--jobs", "2", "--out", str(out)]
    return [*task, "--limit", "3000"]  # the kernels may have to be compiled, on a busy machine


@pytest.mark.slow  # real programs, in processes of their own
def test_every_cell_is_scored_by_all_measures_that_the_corpus_allows(finished):
    rows = Folder(finished).rows()
    fitted = [row for row in rows if row["program"] != "unigram"]
    found = sorted((row["program"], row["seed"]) for row in fitted)
    assert found == [("scikit-learn", 0), ("tempering", 0)]
    level = next(row["nats"] for row in rows if row["program"] == "unigram")
    for row in fitted:
        assert "error" not in row
        assert row["documents"] == 40
        assert row["nats"] == max(row[f"nats {prior}"] for prior in ("0.03", "0.1", "0.3", "1"))
        assert row["nats"] > level + 0.3
        assert row["purity"] == row["label nmi"] == 1.0
        assert row["cpu s"] > 0
        assert row["peak MB"] > 10


@pytest.mark.slow  # real programs, in processes of their own
def test_the_topics_of_a_seed_are_compared_with_those_of_the_seeds_before(finished, labelled):
    folder = Folder(finished)
    own, other = (np.load(folder.topics(row)) for row in folder.rows() if row["K"] == 2)
    corpus = open_corpus(f"{labelled}:40")
    assert "stability" not in measure(corpus, own, [])
    assert measure(corpus, own, [own[::-1]])["stability"] == pytest.approx(1.0)
    assert measure(corpus, own, [own, other])["stability"] < 1.0


@pytest.mark.slow  # real programs, in processes of their own
def test_a_cell_that_is_there_is_not_run_again(finished, labelled, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a finished cell was run")

    lines = (finished / "results.jsonl").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_run_cell", refuse)
        main([*given(labelled, finished), "--seeds", "1", "--programs", "scikit-learn"])
        assert (finished / "results.jsonl").read_bytes() == lines
        with pytest.raises(AssertionError, match="finished cell"):
            main([*given(labelled, finished), "--seeds", "2", "--programs", "tempering"])


@pytest.mark.slow  # real programs, in processes of their own
def test_a_line_that_was_cut_short_is_a_cell_to_run_again(finished, tmp_path):
    rows = Folder(finished).rows()
    folder = Folder(tmp_path)
    for row in rows:
        folder.add(row)
    whole = folder.file.read_bytes()
    folder.file.write_bytes(whole[:-20])
    assert folder.rows() == rows[:-1]
    folder.add(rows[-1])
    assert folder.rows() == rows


@pytest.mark.slow  # real programs, in processes of their own
def test_the_page_has_every_cell_and_every_loss(finished):
    page = (finished / "arena.html").read_text()
    for name in ("things", "tempering", "scikit-learn", "unigram", "BERTopic", "0.167"):
        assert name in page
    assert "<!-- " not in page
    assert page.count("<circle") == 4  # two programs in two pictures
    assert "http" not in page


def test_topics_of_few_words_are_scored_by_all_of_them():
    counts = sparse.csr_array(np.tile([[3, 2, 0, 0], [0, 0, 1, 4]], (20, 1)))
    corpus = corpus_of("small", counts, 30)._replace(texts=[[0, 1], [2, 3]] * 20)
    found = measure(corpus, np.array([[0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.2, 0.8]]) + 1e-3, [])
    # Of the six pairs of words, two are always together, and four never.
    assert found["npmi"] == pytest.approx((2 - 4) / 6)
    assert found["diversity"] == 0.5  # four words, in both
    assert math.isfinite(found["c_v"] + found["c_npmi"])


def test_documents_without_words_may_come_first(tmp_path):
    counts = np.zeros((80, 6), int)
    counts[60:] = np.tile([[3, 2, 1, 0, 0, 0], [0, 0, 0, 1, 4, 1]], (10, 1))
    run = PROGRAMS["tempering"].run(Task(sparse.csr_array(counts), 2, 0, 1, tmp_path))
    next(run)
    assert np.shape(next(run)) == (2, 6)


@pytest.mark.parametrize(("weight", "told"), [("0", "all 0"), ("nan", "no numbers")])
def test_topics_that_are_none_are_a_failed_fit(labelled, tmp_path, monkeypatch, weight, told):
    command = tmp_path / "mallet"
    lines = "".join(f"{k}\\t{word}\\t{weight}\\n" for k in range(2) for word in range(10))
    command.write_text(f"#!/bin/sh\nprintf '{lines}' > weights\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    cell = {"K": 2, "threads": 1, "program": "MALLET", "seed": 0}
    folder = Folder(tmp_path / "out")
    *_, row = run_corpus(f"{labelled}:40", [[cell]], folder, 1, 1, 3000)
    assert told in row["error"]


def test_corpora_of_any_alphabet_have_topics_of_their_own(tmp_path):
    folder = Folder(tmp_path)
    task = {"documents": 9, "K": 20, "threads": 1, "program": "tempering", "seed": 0}
    found = {folder.topics({**task, "corpus": name}) for name in ("новости", "新闻", "short, few")}
    assert len(found) == 3
    assert tmp_path / "topics" / "short-few-9-20-1-tempering-0.npy" in found


def row(program, seed, nats, **more):
    task = {"corpus": "BBC_News", "documents": 9, "K": more.pop("K", 20), "threads": 1}
    return {**task, "program": program, "seed": seed, "nats": nats, "cpu s": 2.0, **more}


def test_losses_have_a_margin_and_its_error():
    rows = [row("tempering", 0, -7.0), row("tempering", 1, -7.2)]
    rows += [row("tomotopy", 0, -6.8), row("tomotopy", 1, -6.9), row("truth", 0, -5.0)]
    (loss,) = losses(cells(rows))
    assert (loss.other.program, loss.measure) == ("tomotopy", "nats")
    assert loss.margin == pytest.approx(0.25)
    # Deviations of 0.141 and 0.071, over two seeds each.
    assert loss.error == pytest.approx(math.sqrt(0.02 / 2 + 0.005 / 2))
    assert loss.is_clear
    assert ("tomotopy", "nats", 1, 0, 0) in tally(cells(rows))


def test_fewer_seconds_are_ahead_and_one_seed_is_never_clear(tmp_path):
    rows = [row("tempering", 0, -7.0), row("gensim", 0, -7.5, **{"cpu s": 1.0})]
    (loss,) = losses(cells([{**own, "version": "1"} for own in rows]))
    assert (loss.measure, loss.margin, loss.is_clear) == ("cpu s", 1.0, False)
    page = write_page([{**own, "version": "1"} for own in rows], tmp_path / "page.html")
    assert "one seed" in page.read_text()


def test_published_numbers_stand_beside_the_mean_over_the_same_numbers_of_topics():
    rows = [row("tempering", 0, -7.0, K=k, c_npmi=k / 100) for k in (10, 20, 50)]
    found = list(beside_published(cells(rows)))
    assert ("BBC_News", "c_npmi", "BERTopic", 0.167) in [own[:4] for own in found]
    assert all(own[4].startswith("published") for own in found[:3])
    assert found[3][3:] == (pytest.approx(0.15), "measured, K = [10, 20]")


def test_drawn_corpora_have_eight_shapes_and_ten_hard_ones():
    assert len(EIGHT) == 8
    hard = [name for name, own in DRAWN.items() if own["alpha"] == 1.0 or own["eta"] == 0.5]
    assert len(hard) == 10
    corpus = open_corpus("blurred, short, few", 10)
    assert corpus.train.shape == (100, 2000)
    assert corpus.test.shape == (50, 2000)
    assert corpus.truth.shape == (20, 2000)


def test_a_corpus_of_octis_keeps_its_parts_and_the_order_of_its_words(tmp_path):
    lines = ["sun sea\u2028sun\ttrain\ta", "ice\tval\tb", "sea ice sea\ttest\ta", "sun\ttrain\tb"]
    path = tmp_path / "tiny.tsv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert named([str(tmp_path)]) == [str(path)]
    corpus = open_corpus(str(path))
    assert corpus.train.toarray().tolist() == [[2, 1, 0], [1, 0, 0]]
    assert corpus.test.toarray().tolist() == [[0, 2, 1]]
    assert corpus.labels.tolist() == ["a"]
    assert sorted(corpus.texts) == [[0], [0, 1, 0], [1, 2, 1], [2]]


def test_what_cannot_be_run_is_refused_before_any_work(tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"must hold files.*'no-such'"):
        main(["--corpora", "no-such", "--out", str(tmp_path / "new")])
    with pytest.raises(SystemExit):
        main(["--seeds", "-1"])
    assert "--seeds must be at least 1; got -1." in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("option", "least"), [("seeds", "at least 1"), ("limit", "above 0")])
def test_none_of_something_is_not_taken_for_the_usual_number(capsys, option, least):
    with pytest.raises(SystemExit):
        parse([f"--{option}", "0"])
    assert f"--{option} must be {least}; got 0." in capsys.readouterr().err


def test_corpora_are_refused_that_cannot_be_told_apart_or_read(labelled, tmp_path):
    path = tmp_path / "things.npz"
    sparse.save_npz(path, sparse.csr_array(np.full((5, 3), 0.5)))
    with pytest.raises(SystemExit, match=r"different names.*: rename one"):
        named([f"{labelled}:40", str(path)])
    assert named([f"{path}:3", f"{path}:4"]) == [f"{path}:3", f"{path}:4"]
    for number in ("many", "-3", "1.5"):
        with pytest.raises(SystemExit, match=f"file:documents, a number.*things.npz:{number}"):
            named([f"{path}:{number}"])
    with pytest.raises(SystemExit, match="things has counts that are not whole"):
        open_corpus(str(path))


def test_other_documents_of_one_name_are_not_taken_for_those_before(labelled, tmp_path):
    group = [{"K": 2, "program": "scikit-learn", "seed": 0, "threads": 1}]
    folder = Folder(tmp_path)
    first = next(run_corpus(f"{labelled}:40", [group], folder, 1, 1, 1.0))
    assert next(run_corpus(f"{labelled}:40", [group], folder, 1, 1, 1.0)) == first
    other = tmp_path / "things.npz"
    sparse.save_npz(other, sparse.load_npz(labelled)[::-1])
    with pytest.raises(SystemExit, match=r"other documents of the name 'things'.*--out"):
        list(run_corpus(f"{other}:40", [group], folder, 1, 1, 1.0))


def test_an_interrupt_starts_no_other_fit(labelled, tmp_path, monkeypatch):
    started = []

    def interrupted(corpus, counts, row, folder, limit):
        started.append(row["seed"])
        time.sleep(0.1)
        return {**row, "error": "KeyboardInterrupt"}

    monkeypatch.setattr(runner, "_run_cell", interrupted)
    cell = {"K": 2, "program": "scikit-learn", "threads": 1}
    groups = [[{**cell, "seed": seed}] for seed in range(50)]
    rows = run_corpus(f"{labelled}:40", groups, Folder(tmp_path), 1, 1, 1.0)
    while next(rows)["program"] == "unigram":
        pass
    with pytest.raises(KeyboardInterrupt):
        rows.throw(KeyboardInterrupt())
    assert len(started) < 25


@pytest.mark.slow  # real programs, in processes of their own
def test_a_program_that_fails_is_told_and_tried_again(labelled, tmp_path, capsys):
    alone = ["--seeds", "1", "--programs", "scikit-learn", "--limit", "0.001"]
    main([*given(labelled, tmp_path), *alone])
    (failed,) = [row for row in Folder(tmp_path).rows() if "error" in row]
    assert failed["error"] == "stopped after 0.001 seconds"
    assert "stopped after" in capsys.readouterr().out
    assert "stopped after" in (tmp_path / "arena.html").read_text()
    assert json.loads((tmp_path / "results.jsonl").read_text().splitlines()[-1]) == failed
