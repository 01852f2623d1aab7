"""The command as a process: Ctrl-C and resume, exit codes, start-up."""

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

from tempering.cli.app import main
from tempering.cli.validation import read_scores
from tempering.corpus import Corpus, write

COMMAND = [sys.executable, "-m", "tempering"]


def start(*arguments, **environment):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # Python would else choose what it can write by the locale.
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )


def finish(process):
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def fit_into(files, out):
    return ["fit", files.counts, "-k", 4, "--passes", 25, "--out", out]


@pytest.fixture(scope="module")
def whole(command, files, tmp_path_factory):
    """Where the same fit went that nothing happened to, and what it told."""
    out = tmp_path_factory.mktemp("uninterrupted") / "whole"
    return out, command(*fit_into(files, out), "--json")


@pytest.mark.skipif(os.name != "posix", reason="SIGINT is sent as POSIX does")
def test_ctrl_c_keeps_the_fit_and_the_same_command_ends_in_the_same_bits(
    command, files, whole, tmp_path
):
    interrupted = tmp_path / "interrupted"
    arguments = fit_into(files, interrupted)
    process = start(*arguments)
    for line in process.stderr:
        if line.startswith("pass 2 of 25"):
            break
    process.send_signal(signal.SIGINT)
    code, output, errors = finish(process)
    assert code == 130
    assert output == ""
    assert "Traceback" not in errors
    last = errors.splitlines()[-1]
    assert last.startswith("tempering: interrupted; ")
    assert last.endswith("holds the fit. To go on from there, give the same command.")
    kept = tmp_path / "interrupted.checkpoint"
    assert any(kept.glob("checkpoint-*"))
    assert not interrupted.exists()

    resumed = command(*arguments, "--json")
    assert resumed["resumed"]
    assert not kept.exists()
    expected, uninterrupted = whole
    assert not uninterrupted["resumed"]
    name = "model.safetensors"
    assert (interrupted / name).read_bytes() == (expected / name).read_bytes()
    assert resumed["held_out_score"] == uninterrupted["held_out_score"]
    # The scores from before the interruption are there.
    (_, first), (_, second) = read_scores(interrupted), read_scores(expected)
    assert first[:1] == second[:1]
    assert len(first) == len(second) == 20


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGTERM is sent as POSIX does")
def test_sigterm_keeps_the_fit_and_another_fit_into_the_same_model_is_refused(
    command, files, whole, tmp_path
):
    ended = tmp_path / "ended"
    arguments = fit_into(files, ended)
    process = start(*arguments)
    for line in process.stderr:
        if line.startswith("pass 2 of 25"):
            break
    process.send_signal(signal.SIGSTOP)  # so that it does not end before the second has begun
    refused = command(*arguments, code=1)
    process.send_signal(signal.SIGCONT)
    (line,) = refused.output.splitlines()
    assert f"ended.checkpoint is in use by process {process.pid} on " in line
    assert line.endswith("another --out.")

    process.send_signal(signal.SIGTERM)
    code, output, errors = finish(process)
    assert (code, output) == (143, "")
    last = errors.splitlines()[-1]
    assert last.startswith("tempering: terminated; ")
    assert last.endswith("holds the fit. To go on from there, give the same command.")
    assert command(*arguments, "--json")["resumed"]
    assert not (tmp_path / "ended.checkpoint").exists()
    name = "model.safetensors"
    assert (ended / name).read_bytes() == (whole[0] / name).read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="SIGTERM is sent as POSIX does")
def test_sigterm_leaves_nothing_behind_of_text_that_is_counted(tmp_path):
    texts, aside = tmp_path / "posts.txt", tmp_path / "aside"
    texts.write_text("a few words that are counted\n" * 300_000)
    aside.mkdir()
    process = start("convert", texts, tmp_path / "posts.npz", "--jobs", 1, TMPDIR=str(aside))
    while not any(aside.iterdir()) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert finish(process) == (143, "", "tempering: terminated.\n")
    assert not any(aside.iterdir())
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["aside", "posts.txt"]


def newest_checkpoint(folder):
    """Its number, which is that of the step where each step writes one; 0 before the first."""
    names = [path.stem for path in folder.glob("checkpoint-*")]
    return max((int(name.removeprefix("checkpoint-")) for name in names), default=0)


def kill_after(arguments, folder, n_checkpoints, seconds):
    """Kill the command so long after it has written so many checkpoints; its exit code."""
    process = start(*arguments)
    last = newest_checkpoint(folder) + n_checkpoints
    while newest_checkpoint(folder) < last and process.poll() is None:
        time.sleep(0.001)
    time.sleep(seconds)
    process.kill()
    process.communicate()
    return process.returncode


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is for POSIX")
@pytest.mark.parametrize("name", ["small.npz", "small.parquet"])
def test_a_killed_command_given_again_ends_in_the_same_bits(files, tmp_path, name):
    """A checkpoint after each of 360 steps, so that many of the moments are within a write."""
    write(tmp_path / name, files.corpus)
    options = ["-k", 4, "--passes", 60, "--batch-size", 64, "--checkpoint-minutes", 0, "--json"]
    arguments = ["fit", tmp_path / name, *options, "--out"]
    whole, killed, kept = tmp_path / "whole", tmp_path / "killed", tmp_path / "killed.checkpoint"
    code, output, errors = finish(start(*arguments, whole))
    assert code == 0, errors
    expected = json.loads(output)
    assert expected["n_documents"] == 400
    rng = np.random.default_rng(0)
    within_a_write = 0
    # The first before anything is kept.
    for n_checkpoints in (0, *rng.integers(1, 60, size=5)):
        code = kill_after([*arguments, killed], kept, n_checkpoints, rng.uniform(0, 0.03))
        assert code == -signal.SIGKILL
        within_a_write += any(kept.glob(".partial-*"))
    assert newest_checkpoint(kept) > 0
    code, output, errors = finish(start(*arguments, killed))
    assert code == 0, errors
    again = json.loads(output)
    assert again["resumed"]
    assert not expected["resumed"]
    for result in ("held_out_score", "topics"):
        assert again[result] == expected[result]
    model = "model.safetensors"
    assert (killed / model).read_bytes() == (whole / model).read_bytes()
    assert not kept.exists()
    print(f"6 kills of the command on {name}, {within_a_write} within the write of a checkpoint")


def test_a_warning_is_one_line(command, tmp_path):
    """Few documents cannot distinguish many topics."""
    counts = sparse.csr_array(np.tile([3, 2, 1], (4, 1)))
    write(tmp_path / "few.npz", Corpus(counts))
    said = command("fit", tmp_path / "few.npz", "-k", 5, "--out", tmp_path / "m").output
    few, alike = [line for line in said.splitlines() if line.startswith("tempering: w")]
    assert few.startswith("tempering: warning: --topics 5 is more than the 4 documents of X")
    assert alike.startswith("tempering: warning: topics that are copies: 3 = 4.")


def test_exit_codes_of_errors(command, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["tempering", "topics", "nowhere"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    output, errors = capfd.readouterr()
    assert output == ""
    assert errors.startswith("tempering: ")
    assert len(errors.splitlines()) == 1
    assert "Missing argument" in command("topics", code=2).output
    assert "No such command 'nonsense'" in command("nonsense", code=2).output


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_stops_gets_no_traceback(files):
    process = start("topics", files.model, "--words", 80)
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)
    assert errors == ""


def test_a_terminal_that_knows_few_characters(files, monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))
    arguments = ["tempering", "evaluate", str(files.model), str(files.counts)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    sys.stdout.flush()
    assert b" nats a word" in shown.getvalue()
    assert b"?" in shown.getvalue()  # a minus sign, which ASCII has not


def test_the_help_loads_nothing_heavy():
    code = (
        "import sys, tempering.cli.app; "
        "heavy = {'numpy', 'scipy', 'numba', 'sklearn', 'matplotlib', 'pyarrow'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.skipif(os.name != "posix", reason="closed by a shell of POSIX")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_is_none(files, closed):
    """As of what starts programs without a terminal."""
    line = shlex.join([*COMMAND, "topics", str(files.model)])
    ended = subprocess.run(f"{line} {closed}", shell=True, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
