"""The commands that look at models and corpora."""

import csv
import json
import re

import numpy as np
import pytest
from scipy import sparse

import tempering
from tempering.corpus import Corpus, read, write

COMMANDS = ["fit", "topics", "transform", "evaluate", "report", "convert", "info", "demo"]
COMMANDS += ["datasets list", "datasets fetch", "datasets docstrings", "datasets synthetic"]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_has_an_example(command, name):
    text = command(*name.split(), "--help").stdout
    assert f"    tempering {name}" in text
    assert "--json" in text


@pytest.mark.parametrize("name", ["info", "topics", "report", "convert"])
def test_a_variable_that_is_not_set_is_not_this_folder(command, name):
    refused = command(name, "", *["a.npz"] * (name == "convert"), code=2)
    assert "it must name a file or a folder; got ''." in refused.stderr


@pytest.mark.parametrize("name", ["demo", "datasets synthetic x.npz"])
def test_a_seed_that_is_too_large_is_named_as_the_option(command, name):
    refused = command(*name.split(), "--seed", 99999999999999999999, code=2)
    assert "'--seed'" in refused.stderr
    assert "4294967295" in refused.stderr


def test_the_overview_lists_every_command(command):
    text = command("--help").stdout
    for name in COMMANDS:
        assert f"\n  {name.split()[0]} " in text
    # Each with a whole sentence.
    assert "..." not in text[text.index("Commands:") :]


def test_topics(command, files):
    rows = command("topics", files.model, "--words", 3, "--json")["topics"]
    model = tempering.load(files.model)
    shares = [row["share"] for row in rows]
    assert shares == sorted(shares, reverse=True)
    for row in rows:
        assert row["words"] == model.topics(3)[row["topic"]]
    printed = command("topics", files.model).stdout.splitlines()
    assert len(printed) == 5
    assert printed[1].split()[0] == str(rows[0]["topic"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_transform(command, files, tmp_path, suffix, written_proportions):
    out = tmp_path / f"proportions.{suffix}"
    told = command("transform", files.model, files.counts, "--out", out, "--json")
    assert told == {"out": str(out), "n_documents": 400, "n_topics": 4}
    if suffix == "csv":
        assert out.open().readline() == "doc_id,topic_0,topic_1,topic_2,topic_3\n"
        names, found = written_proportions(out)
    else:
        from pyarrow import parquet

        table = parquet.read_table(out)
        names = table.column("doc_id").to_pylist()
        found = np.stack([table.column(f"topic_{k}").to_numpy() for k in range(4)], axis=1)
    assert names == files.corpus.names
    expected = tempering.load(files.model).transform(files.corpus.counts)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    refused = command("transform", files.model, files.counts, "--out", out, code=1)
    assert "exists already" in refused.stderr
    command("transform", files.model, files.counts, "--out", out, "--overwrite")


def test_transform_refuses_a_format_it_cannot_write(command, files, tmp_path):
    out = tmp_path / "proportions.xls"
    refused = command("transform", files.model, files.counts, "--out", out, code=1)
    assert "must end in .csv, .parquet; got" in refused.stderr


def test_evaluate(command, files):
    scores = command("evaluate", files.model, files.counts, "--json")
    model = tempering.load(files.model)
    counts = files.corpus.counts
    how = {"inference": "gibbs", "alpha": 5 / 4}
    assert scores["score"] == pytest.approx(model.completion_score(counts, **how), abs=1e-6)
    assert scores["npmi"] == pytest.approx(model.coherence(counts).mean())
    assert scores["n_documents"] == 400
    few = command("evaluate", files.model, files.counts, "--documents", 50, "--json")
    assert few["n_documents"] == 50
    printed = command("evaluate", files.model, files.counts).stdout
    assert "nats a word" in printed
    # Of fewer words than asked for, all of them, as elsewhere.
    few = command("evaluate", files.model, files.counts, "--words", 999, "--json")
    assert few["npmi"] == pytest.approx(model.coherence(counts, n_words=80).mean())


def test_evaluate_does_not_know_the_documents_of_a_stream(command, files, tmp_path):
    write(tmp_path / "all.parquet", files.corpus)
    command("fit", tmp_path / "all.parquet", "-k", 4, "--passes", 2, "--out", tmp_path / "model")
    scored = command("evaluate", tmp_path / "model", files.counts, "--json")
    assert (scored["kind"], scored["n_looked_up"]) == ("score", 0)


def test_evaluate_distinguishes_training_from_held_out_documents(command, files, tmp_path):
    kept = np.sort(np.random.default_rng(0).choice(400, size=20, replace=False))
    counts, words = files.corpus.counts, files.corpus.vocabulary
    parts = {
        "held-out score": counts[kept],
        # In another order.
        "training score": counts[np.setdiff1d(np.arange(400), kept)[::-1]],
        "score, in part on training documents": counts,
    }
    model = tmp_path / "model"
    write(tmp_path / "all.npz", files.corpus)
    command("fit", tmp_path / "all.npz", "-k", 4, "--passes", 2, "--out", model)
    for kind, documents in parts.items():
        path = tmp_path / "part.npz"
        write(path, Corpus(documents, words), overwrite=True)
        told = command("evaluate", model, path, "--json")
        n = documents.shape[0]
        assert (told["kind"], told["n_looked_up"]) == (kind, n)
        assert told["n_fitted"] == (0 if kind == "held-out score" else 380)
        printed = command("evaluate", model, path).stdout
        assert re.search(rf"documents of the fit +{told['n_fitted']} of {n}", printed)
        assert re.search(rf"{kind} +−[\d.]+ nats a word", printed)
    # The score of the documents that were kept out is that of the fit.
    write(tmp_path / "kept.npz", Corpus(counts[kept], words))
    score = command("evaluate", model, tmp_path / "kept.npz", "--json")["score"]
    assert score == pytest.approx(command("info", model, "--json")["held_out_score"], abs=1e-6)


def test_evaluate_does_not_call_a_score_what_it_may_not_be(command, files, tmp_path):
    model = tempering.load(files.model).partial_fit(files.corpus.counts)
    model.save(tmp_path / "model")
    told = command("evaluate", tmp_path / "model", files.counts, "--json")
    assert (told["kind"], told["n_looked_up"]) == ("score", 0)
    assert "not known" in command("evaluate", tmp_path / "model", files.counts).stdout


def test_words_of_another_corpus_are_refused(command, files, tmp_path):
    counts = files.corpus.counts
    others = [*files.corpus.vocabulary[:-1], "zebra"]
    write(tmp_path / "others.npz", Corpus(counts, others))
    refused = command("evaluate", files.model, tmp_path / "others.npz", code=1)
    assert "column 79 is 'zebra', but 'd79' in the model" in refused.stderr
    write(tmp_path / "more.npz", Corpus(sparse.csr_array(np.ones((3, 81), int))))
    refused = command("evaluate", files.model, tmp_path / "more.npz", code=1)
    assert "has 81 words, but the model 80" in refused.stderr


def test_a_format_that_ends_at_its_last_word_is_widened(command, files, tmp_path):
    few = Corpus(files.corpus.counts[:, :60][:20])
    write(tmp_path / "few.ldac", few)
    out = tmp_path / "few.csv"
    command("transform", files.model, tmp_path / "few.ldac", "--out", out)
    wide = np.zeros((20, 80), int)
    wide[:, :60] = few.counts.toarray()
    expected = tempering.load(files.model).transform(wide)
    rows = list(csv.reader(out.open()))[1:]
    np.testing.assert_allclose(np.array(rows, float)[:, 1:], expected, rtol=1e-5)


def report_data(path):
    text = path.read_text()
    start = text.index(">", text.index('type="application/json"')) + 1
    return json.loads(text[start : text.index("</script>", start)])


@pytest.mark.parametrize("name", ["corpus.npz", "corpus.parquet"])
def test_report(command, files, tmp_path, name):
    write(tmp_path / name, files.corpus)
    out = tmp_path / "report.html"
    command("report", files.model, tmp_path / name, "--out", out, "--title", "Four", "--json")
    data = report_data(out)
    assert data["title"] == "Four"
    assert data["facts"]["given"] == 400
    assert len(data["curves"]["validation"]) == 20
    assert data["documents"][0]["name"].startswith("d")


@pytest.mark.parametrize("name", ["corpus.npz", "corpus.parquet"])
def test_report_tells_which_topics_come_again(command, files, tmp_path, name):
    """Also of what streams; without words, a file may end before the last word of the model."""
    write(tmp_path / name, Corpus(files.corpus.counts[:, :75]))
    out = tmp_path / "report.html"
    command("report", files.model, tmp_path / name, "--refits", 1, "--out", out)
    assert min(topic["stability"] for topic in report_data(out)["topics"]) > 0.7


def test_report_without_documents(command, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = command("report", files.model)
    assert (tmp_path / "report.html").as_uri() in result.stdout
    assert report_data(tmp_path / "report.html")["documents"] == []


@pytest.mark.parametrize("command_name", ["report", "transform"])
def test_reports_a_missing_model_before_a_file_in_the_way(command, files, tmp_path, command_name):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    refused = command(command_name, tmp_path / "none", files.counts, "--out", out, code=1)
    assert "config.json" in refused.stderr
    assert "exists already" not in refused.stderr
    refused = command("report", files.model, files.counts, "--out", out, code=1)
    assert "is not a report of this fit" in refused.stderr
    assert "--overwrite" not in refused.stderr


def test_convert_there_and_back(command, files, tmp_path):
    path = files.counts
    for name in ("a.parquet", "docword.b.txt.gz", "d.npz"):
        told = command("convert", path, tmp_path / name, "--json")
        assert (told["n_documents"], told["n_words"]) == (400, 80)
        path = tmp_path / name
    corpus = read(path)
    np.testing.assert_array_equal(corpus.counts.toarray(), files.corpus.counts.toarray())
    assert corpus.vocabulary == files.corpus.vocabulary
    assert corpus.names == files.corpus.names
    refused = command("convert", files.counts, path, code=1)
    assert "exists already" in refused.stderr
    assert "--overwrite" in refused.stderr


@pytest.mark.parametrize("value", ["", "xls"])
def test_convert_names_the_option_of_a_format_that_is_none(command, files, tmp_path, value):
    refused = command("convert", files.counts, tmp_path / "x.npz", "--format", value, code=1)
    assert "format must be one of npz" in refused.stderr
    assert f"got {value!r}" in refused.stderr


def test_convert_text(command, tmp_path):
    lines = [{"body": f"the cat {word}"} for word in ("sat", "sat", "ran", "ran")]
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "texts.npz"
    command("convert", source, out, "--column", "body", "--max-df", "1.0")
    assert read(out).vocabulary == ["cat", "ran", "sat"]
    everything = ["--stop-words", "none", "--min-df", 1, "--overwrite"]
    command("convert", source, out, "--column", "body", *everything)
    assert read(out).vocabulary == ["ran", "sat"]
    refused = command("convert", source, tmp_path / "x.npz", code=1)
    assert "there is no column 'text'" in refused.stderr
    assert not (tmp_path / "x.npz").exists()


def test_info(command, files, tmp_path):
    here = command("info", "--json")
    assert here["tempering"] == tempering.__version__
    assert here["numpy"] == np.__version__
    model = command("info", files.model, "--json")
    assert model["estimator"] == "LatentDirichletAllocation"
    assert model["parameters"]["n_components"] == 4
    assert model["held_out_score"] == files.fitted["held_out_score"]
    corpus = command("info", files.counts, "--json")
    assert corpus["tokens"] == files.corpus.n_tokens
    assert (corpus["documents"], corpus["words"], corpus["empty_documents"]) == (400, 80, 0)
    assert corpus["first_name"] == "d0"
    assert "LatentDirichletAllocation" in command("info", files.model).stdout
    assert "does not exist" in command("info", tmp_path / "nothing", code=1).stderr


def test_lines_in_a_pipe_end_where_their_text_ends(command, files):
    for arguments in (["info", files.model], ["topics", files.model]):
        lines = command(*arguments).stdout.splitlines()
        assert lines == [line.rstrip() for line in lines]


def test_a_model_that_is_damaged_or_of_another_kind(command, files, tmp_path):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text("{")
    assert "config.json" in command("topics", damaged, code=1).stderr
    mixture = tempering.BayesianGaussianMixture(2, random_state=0).fit(np.eye(6)[:, :2])
    mixture.save(tmp_path / "mixture")
    refused = command("topics", tmp_path / "mixture", code=1)
    assert "is a BayesianGaussianMixture; this command is for topic models" in refused.stderr


def test_data_sets(command, tmp_path, monkeypatch):
    assert command("datasets", "list", "--json")["fetch"]["kos"]["n_documents"] == 3430
    assert "docstrings" in command("datasets", "list").stdout
    out = tmp_path / "drawn.parquet"
    told = command(
        "datasets", "synthetic", "--documents", 50, "--words", 30, "--out", out, "--json"
    )
    assert (told["n_documents"], told["n_words"]) == (50, 30)
    assert read(out).shape == (50, 30)
    refused = command("datasets", "fetch", "imdb", code=1)
    assert "must be one of kos, nips" in refused.stderr
    # Before gigabytes are fetched.
    monkeypatch.setattr("tempering.datasets.fetch_uci", None)
    refused = command("datasets", "fetch", "pubmed", "--out", out, code=1)
    assert "exists already" in refused.stderr


def test_weights_are_scored_without_samples(command, files, tmp_path):
    """There are no tokens whose topics could be drawn."""
    path = tmp_path / "weights.npz"
    write(path, Corpus(files.corpus.counts * 0.5, files.corpus.vocabulary))
    told = command("evaluate", files.model, path, "--json")
    assert told["inference"] == "vi"
    assert -5 < told["score"] < 0


def test_a_model_without_columns_is_described(command, tmp_path):
    model = tempering.GaussianHMM(2)
    model.startprob_, model.transmat_ = [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]
    model.means_, model.covars_ = [[0.0], [1.0]], [[1.0], [1.0]]
    model.save(tmp_path / "model")
    told = command("info", tmp_path / "model", "--json")
    assert (told["estimator"], told["columns"]) == ("GaussianHMM", None)
