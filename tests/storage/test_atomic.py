"""Files and directories appear whole, or not at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tempering.storage.atomic import atomic_directory, atomic_file, check_free


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "deep" / "counts.npz"
    with atomic_file(path) as aside:
        assert aside.parent == path.parent
        assert aside.name.endswith("counts.npz")
        aside.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["counts.npz"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(error):
        with atomic_file(path) as aside:
            aside.write_text("half of the n")
            raise error

    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)
    with pytest.raises(FileNotFoundError, match="nothing was written"), atomic_file(path):
        pass
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_directory_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "model"
    with atomic_directory(path) as aside:
        (aside / "inner").mkdir()
        (aside / "inner" / "a").write_text("a")
        assert not path.exists()
    assert (path / "inner" / "a").read_text() == "a"
    for how in ("overwrite=True", "--overwrite"):
        with pytest.raises(FileExistsError, match=f"model exists already: pass {how} to replace"):
            check_free(path, False, how)
    check_free(path, True)
    check_free(tmp_path / "other", False)
    with atomic_directory(path) as aside:
        (aside / "b").write_text("b")
    assert os.listdir(path) == ["b"]
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_directory_takes_the_place_of_a_link(tmp_path):
    (tmp_path / "other").mkdir()
    for target in ("nowhere", "other"):
        path = tmp_path / f"to {target}"
        path.symlink_to(tmp_path / target)
        with atomic_directory(path) as aside:
            (aside / "a").write_text("a")
        assert not path.is_symlink()
        assert os.listdir(path) == ["a"]
    assert sorted(os.listdir(tmp_path)) == ["other", "to nowhere", "to other"]
    assert os.listdir(tmp_path / "other") == []


def test_a_path_in_no_folder_is_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("a")
    with pytest.raises(OSError, match=r"b/c cannot be written, as .*/a is no folder: choose"):
        check_free(tmp_path / "a" / "b" / "c", True)
    check_free(tmp_path / "new" / "c", False)
    check_free(Path(tmp_path.anchor), True)
    # Who runs the tests as root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OSError, match=r"c cannot be written, as .* is read-only: choose"):
        check_free(tmp_path / "new" / "c", False)


def test_an_error_leaves_the_old_directory_and_nothing_else(tmp_path):
    path = tmp_path / "model"
    with atomic_directory(path) as aside:
        (aside / "a").write_text("a")

    def fail():
        with atomic_directory(path) as aside:
            (aside / "b").write_text("b")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert os.listdir(path) == ["a"]
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="directories are flushed on POSIX alone")
def test_all_is_on_the_disk_before_it_gets_its_name_which_then_lasts(tmp_path, monkeypatch):
    flushed = []

    def fsync(descriptor):
        flushed.append((os.fstat(descriptor).st_ino, path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    path = tmp_path / "file"
    with atomic_file(path) as aside:
        aside.write_text("new")
    assert flushed == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]
    flushed.clear()
    path = tmp_path / "model"
    with atomic_directory(path) as aside:
        (aside / "a").write_text("a")
    within = [((path / "a").stat().st_ino, False), (path.stat().st_ino, False)]
    assert flushed == [*within, (tmp_path.stat().st_ino, True)]


def test_other_errors_of_the_system_stay_as_they_are(tmp_path):
    with pytest.raises(PermissionError, match="not mine"), atomic_file(tmp_path / "file"):
        raise PermissionError(errno.EACCES, "not mine")


@pytest.mark.skipif(os.name != "posix", reason="limits of processes are for POSIX")
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_full_disk_is_told_and_nothing_is_left(tmp_path, kind):
    """The limit of a process on the size of its files stands for the disk's end."""
    code = f"""
import resource
from pathlib import Path
from tempering.storage.atomic import atomic_{kind}
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    with atomic_{kind}({str(tmp_path / "thing")!r}) as aside:
        (aside if {kind == "file"} else aside / "inner").write_bytes(bytes(20_000))
except OSError as error:
    print(error.errno, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(errno.EFBIG))
    assert f"no room to write {tmp_path / 'thing'}" in done.stdout
    assert "Make room" in done.stdout
    assert os.listdir(tmp_path) == []
