"""One process at a time in a directory."""

import os
import subprocess
import sys
import threading

import pytest

from tempering.storage.atomic import InUse, alone_in

HOLD = """
import sys
from tempering.storage.atomic import alone_in
with alone_in(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(folder):
    """A process that holds the directory until it is killed, or its standard input closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def take(folder):
    with alone_in(folder):
        pass


def test_another_process_is_refused_and_named(tmp_path):
    other = hold(tmp_path / "kept")
    with pytest.raises(InUse, match=rf"kept is in use by process {other.pid} on .*another direct"):
        take(tmp_path / "kept")
    assert (tmp_path / "kept" / "lock").exists()
    other.communicate()
    take(tmp_path / "kept")


def test_what_a_killed_process_left_stops_nobody(tmp_path):
    other = hold(tmp_path / "kept")
    other.kill()
    other.communicate()
    assert (tmp_path / "kept" / "lock").exists()
    with alone_in(tmp_path / "kept"):
        assert f"process {os.getpid()}" in (tmp_path / "kept" / "lock").read_text()
    assert os.listdir(tmp_path / "kept") == []


def test_a_thread_may_ask_again_and_others_may_not(tmp_path):
    refused = []

    def work():
        try:
            take(tmp_path)
        except InUse as error:
            refused.append(str(error))

    with alone_in(tmp_path):
        take(tmp_path)
        assert (tmp_path / "lock").exists()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert f"another thread of this process ({os.getpid()})" in refused[0]
    work()
    assert len(refused) == 1


def test_a_directory_that_stays_empty_is_removed_if_it_was_made(tmp_path):
    take(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    take(tmp_path / "old")
    assert (tmp_path / "old").exists()
    with alone_in(tmp_path / "new"):
        (tmp_path / "new" / "file").touch()
    assert os.listdir(tmp_path / "new") == ["file"]
