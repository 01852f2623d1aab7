"""``tempering fit``: what it learns, keeps, prints and refuses."""

import time

import numpy as np
import pytest

import tempering
from tempering import load
from tempering.cli.options import FOUND_TOPICS
from tempering.cli.validation import POINTS, RemainingRows, Validation, n_validation, read_scores
from tempering.corpus import CorpusError, write
from tempering.corpus.parquet import ParquetRows
from tempering.inference import ArraySource, BlockSource


def test_it_finds_the_topics_and_saves_a_model_with_words_and_scores(files):
    for topic in files.fitted["topics"]:
        assert len({word[0] for word in topic["words"]}) == 1
    assert sum(topic["share"] for topic in files.fitted["topics"]) == pytest.approx(1, abs=1e-4)
    model = tempering.load(files.model)
    assert list(model.vocabulary_) == files.corpus.vocabulary
    assert files.fitted["n_validation_documents"] == 20
    # Each word is one of 20 at best.
    assert -np.log(80) < files.fitted["held_out_score"] < -np.log(20) + 0.1
    n_documents, scores = read_scores(files.model)
    assert n_documents == 20
    assert len(scores) == POINTS
    assert scores[-1] == (380 * 10, files.fitted["held_out_score"])
    assert [seen for seen, _ in scores] == sorted({seen for seen, _ in scores})
    # The checkpoints have done their work.
    assert not files.model.with_name("model.checkpoint").exists()


def test_the_model_is_that_of_the_estimator_on_the_documents_that_are_not_kept(files):
    rng = np.random.default_rng(0)
    kept = rng.choice(400, size=20, replace=False)
    training = files.corpus.counts[np.setdiff1d(np.arange(400), kept)]
    lda = tempering.LatentDirichletAllocation(4, random_state=0).fit(training)
    np.testing.assert_array_equal(lda.components_, tempering.load(files.model).components_)


def test_what_is_printed_for_people(command, files, tmp_path):
    result = command("fit", files.counts, "-k", "4", "--out", tmp_path / "m", "--passes", "2")
    assert "Held-out score: −" in result.stdout
    assert "20 documents that the fit did not see" in result.stdout
    assert f"tempering report {tmp_path / 'm'} {files.counts}" in result.stdout
    assert "400 documents, 80 words" in result.stderr
    assert "pass 2 of 2" in result.stderr
    assert "T 1.00  held-out −" in result.stderr


def test_a_streamed_corpus_gives_the_same_topics(command, files, tmp_path):
    path = tmp_path / "small.parquet"
    write(path, files.corpus)
    fitted = command("fit", path, "-k", 4, "--out", tmp_path / "model", "--json")
    assert fitted["n_validation_documents"] == 20
    for topic in fitted["topics"]:
        assert len({word[0] for word in topic["words"]}) == 1
    assert fitted["held_out_score"] == pytest.approx(files.fitted["held_out_score"], abs=0.02)


@pytest.mark.parametrize("left_out", [[], [0, 1, 2], [50, 51, 399], list(range(100, 250))])
def test_what_remains_of_a_stream(files, tmp_path, monkeypatch, left_out):
    """Row by row against the matrix without those rows, whatever the row groups."""
    monkeypatch.setattr("tempering.corpus.parquet.BLOCK_SIZE", 60)
    path = tmp_path / "corpus.parquet"
    write(path, files.corpus)
    left_out = np.array(left_out, int)
    counts = files.corpus.counts
    expected = counts[np.setdiff1d(np.arange(400), left_out)].toarray()
    rows = RemainingRows(ParquetRows(path), left_out, counts.sum() - counts[left_out].sum())
    remaining = BlockSource(rows, 64, window_blocks=4)
    assert remaining.shape == expected.shape
    assert remaining.n_tokens == expected.sum()
    swept = [batch.data.toarray() for batch in remaining.sweep()]
    np.testing.assert_array_equal(np.concatenate(swept), expected)
    for start, stop in ((0, 1), (49, 52), (60, 60), (90, 200)):
        rows = remaining.files.rows(start, stop).toarray()
        np.testing.assert_array_equal(rows, expected[start:stop])
    batches = remaining.batches(0)
    n_batches = -(-len(expected) // 64)
    seen = np.concatenate([next(batches).data.toarray() for _ in range(n_batches)])
    in_order = np.lexsort(seen.T), np.lexsort(expected.T)
    np.testing.assert_array_equal(seen[in_order[0]], expected[in_order[1]])
    drawn = remaining.sample(30, np.random.default_rng(1)).toarray()
    same = ArraySource(expected).sample(30, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, same)


def test_text_of_a_folder_and_of_a_table(command, tmp_path, written_proportions):
    rng = np.random.default_rng(0)
    vocabulary = {"sea": "wave salt tide boat harbour", "hill": "rock summit path ridge valley"}
    folder = tmp_path / "texts"
    folder.mkdir()
    lines = ["name,body"]
    for i in range(60):
        words = vocabulary["sea" if i % 2 else "hill"].split()
        text = " ".join(rng.choice(words, size=20)) + " the of and"
        (folder / f"{i:02d}.txt").write_text(text)
        lines.append(f"t{i},{text}")
    table = tmp_path / "texts.csv"
    table.write_text("\n".join(lines) + "\n")
    expected = {frozenset(words.split()) for words in vocabulary.values()}
    for arguments in ([folder], [table, "--column", "body", "--id", "name"]):
        out = tmp_path / f"model-{arguments[0].name}"
        fitted = command("fit", *arguments, "-k", 2, "--passes", 40, "--out", out, "--json")
        assert fitted["n_words"] == 10
        assert {frozenset(topic["words"][:5]) for topic in fitted["topics"]} == expected
    # The same words serve for text that comes later.
    proportions = tmp_path / "proportions.csv"
    command("transform", tmp_path / "model-texts", folder, "--out", proportions)
    names, found = written_proportions(proportions)
    sides = found.argmax(axis=1)
    assert names[0] == "00.txt"
    assert len(set(sides[::2])) == len(set(sides[1::2])) == 1
    assert sides[0] != sides[1]


def test_an_existing_model_is_not_replaced_unless_asked(command, files, tmp_path):
    arguments = ["fit", files.counts, "-k", "2", "--passes", "1", "--out", tmp_path / "model"]
    command(*arguments)
    before = tempering.load(tmp_path / "model")
    again = command(*arguments, "--seed", "1", code=1)
    assert "exists already: pass --overwrite" in again.stderr
    command(*arguments, "--seed", "1", "--overwrite")
    after = tempering.load(tmp_path / "model")
    assert not np.array_equal(before.components_, after.components_)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "file").write_text("precious")
    for asked in ([], ["--overwrite"]):
        refused = command(*arguments[:-1], folder, *asked, code=1)
        assert "is not a saved model" in refused.stderr
        assert "--overwrite" not in refused.stderr
    assert (folder / "file").exists()


def test_no_validation_and_plain_svi(command, files, tmp_path):
    out = tmp_path / "plain"
    fitted = command(
        *("fit", files.counts, "-k", 2, "--out", out, "--validation", 0, "--passes", 1),
        *("--tempering", "none", "--batch-size", 50, "--jobs", 1, "--json"),
    )
    assert fitted["held_out_score"] is None
    model = tempering.load(out)
    assert model.tempering is None
    assert model.batch_size == 50
    assert len(model.history_) == 8
    assert read_scores(out) == (0, [])


@pytest.mark.parametrize(
    ("validation", "expected"), [(None, 50), (0.0, 0), (0.25, 250), (1.0, 1), (30.0, 30)]
)
def test_how_many_documents_are_kept(validation, expected):
    assert n_validation(1000, validation, 50_000) == expected
    assert n_validation(10**7, None, 10**8) == 1000
    # 100,000 words are enough: each score visits them all.
    assert n_validation(10**4, None, 10**7) == 100


def test_nothing_is_left_to_fit():
    with pytest.raises(CorpusError, match="leaves nothing to fit"):
        n_validation(100, 100, 1000)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.npz", "-k", "2"], 1, "nowhere.npz does not exist"),
        (["CORPUS"], 2, "Missing option '--topics'"),
        (["CORPUS", "-k", "0"], 2, "--topics"),
        (["CORPUS", "-k", "2", "--tempering", "warm"], 2, "'warm' is not one of"),
        (["", "-k", "2"], 2, "it must name a file or a folder"),
        (["CORPUS", "-k", "2", "--min-df", "few"], 2, "'few' is neither a whole number"),
        (["CORPUS", "-k", "2", "--min-df", "-1"], 2, "'-1' is neither a whole number of 1 or"),
        (["CORPUS", "-k", "2000000"], 1, "--topics 2000000 is more than"),
        (["CORPUS", "-k", "2", "--validation", "500"], 1, "leaves nothing to fit"),
        (["CORPUS", "-k", "2", "--validation", "inf"], 1, "--validation inf leaves nothing"),
        (["CORPUS", "-k", "2", "--format", "xls"], 1, "format must be one of"),
        (["CORPUS", "-k", "2", "--out", ""], 2, "'--out': it must name a directory"),
        (["CORPUS", "-k", "2", "--out", "/"], 2, "'--out': it must name a directory"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    command, files, tmp_path, monkeypatch, arguments, code, message
):
    monkeypatch.chdir(tmp_path)
    given = [files.counts if argument == "CORPUS" else argument for argument in arguments]
    result = command("fit", *given, code=code)
    assert message in result.stderr
    assert "Traceback" not in result.output
    if code == 1:
        assert result.stderr.splitlines()[-1].startswith("tempering: ")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told_in_good_time(command, files, tmp_path):
    address = "tcp://127.0.0.1:1"
    arguments = ["fit", files.counts, "-k", "2", "--out", tmp_path / "m", "--scheduler", address]
    started = time.monotonic()
    refused = command(*arguments, code=1)
    assert time.monotonic() - started < 30
    assert f"--scheduler {address}: no Dask scheduler answers" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_fit_is_refused_in_the_words_of_the_command(
    command, files, tmp_path
):
    keeping = tempering.Checkpoint(tmp_path / "m.checkpoint", every_steps=1)
    other = tempering.LatentDirichletAllocation(3, max_iter=1, random_state=0)
    other.fit(files.corpus.counts, checkpoint=keeping)
    arguments = ["fit", files.counts, "-k", "4", "--out", tmp_path / "m", "--passes", "1"]
    refused = command(*arguments, code=1)
    assert "belongs to other data" in refused.stderr
    assert "resume=False is --restart" in refused.stderr
    command(*arguments, "--restart")
    assert tempering.load(tmp_path / "m").n_components == 4


def test_a_traceback_is_there_for_the_asking(command):
    result = command("--traceback", "topics", "nowhere", code=1)
    assert "Traceback" in result.stderr
    assert "nowhere" in result.stderr.splitlines()[-1]


@pytest.mark.slow
def test_the_number_of_topics_is_found(command, files, tmp_path):
    fitted = command("fit", files.counts, "--topics", "auto", "--out", tmp_path / "a", "--json")
    assert fitted["n_topics"] == len(fitted["topics"]) == 5  # the least of the range; there are 4
    # From the middle of the range; 33 is clearly worse than 17, so that more are not waited for.
    assert {trial["n_topics"] for trial in fitted["tried"]} >= {5, 10, 17, 33}
    assert all(trial["n_topics"] < 57 for trial in fitted["tried"])
    assert not (tmp_path / "a.checkpoint").exists()
    given = command("fit", files.counts, "--topics", "5", "--out", tmp_path / "b", "--json")
    assert given["tried"] == []
    first, second = (load(tmp_path / name) for name in "ab")
    np.testing.assert_array_equal(first.components_, second.components_)


def test_topics_are_joined_to_find_their_number(command, files, tmp_path):
    fitted = command("fit", files.counts, "--topics", "hdp", "--out", tmp_path / "a", "--json")
    assert fitted["n_topics"] == len(fitted["topics"]) == 4


def test_a_fit_that_goes_on_does_not_look_for_the_number_again(
    command, files, tmp_path, monkeypatch
):
    """A number that is not the answer is in the checkpoint: it is taken."""
    out = ("--out", tmp_path / "model", "--checkpoint-minutes", "0")

    def interrupt(self, report):
        if report.record.step > 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Validation, "__call__", interrupt)
        command("fit", files.counts, "--topics", "7", *out, code=130)
    (tmp_path / "model.checkpoint" / FOUND_TOPICS).write_text('{"asked": "auto", "n_topics": 7}')
    told = command("fit", files.counts, "--topics", "hdp", *out, code=2)
    assert "was begun with --topics auto" in told.stderr
    fitted = command("fit", files.counts, "--topics", "auto", *out, "--json")
    assert (fitted["n_topics"], fitted["resumed"], fitted["tried"]) == (7, True, [])


def test_a_stream_finds_the_number_of_topics(command, files, tmp_path):
    write(tmp_path / "small.parquet", files.corpus)
    fitted = command(
        "fit", tmp_path / "small.parquet", "--topics", "auto", "--out", tmp_path / "a", "--json"
    )
    assert fitted["n_topics"] == 5


@pytest.mark.parametrize("number", ["0", "-3", "many", "2.5"])
def test_no_number_of_topics(command, files, tmp_path, number):
    result = command("fit", files.counts, "--topics", number, "--out", tmp_path / "m", code=2)
    assert "neither a whole number of 1 or more, nor" in result.output


def test_phrases_of_text(command, tmp_path):
    path = tmp_path / "lines.txt"
    fill = ["sun", "sea", "snow", "ice", "wind", "rain"]
    lines = [f"{fill[i % 6]} new york {fill[i // 6 % 6]} {fill[i // 2 % 6]}" for i in range(36)]
    path.write_text("\n".join([*lines, *(" ".join(fill[i % 3 :]) for i in range(80))]))
    command("fit", path, "--topics", 2, "--passes", 1, "--phrases", "--out", tmp_path / "model")
    words = list(tempering.load(tmp_path / "model").vocabulary_)
    assert "new york" in words
    assert "york sun" not in words
