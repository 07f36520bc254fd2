"""Files are whole or absent, whatever fails."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dpfit.errors import StorageError
from dpfit.files.atomic import check_writable, write_atomically, written_atomically


@pytest.mark.parametrize("overwrite", [False, True])
def test_failure_leaves_nothing(tmp_path: Path, overwrite: bool) -> None:
    """A block that fails leaves the folder as it was."""
    target = tmp_path / "x"
    if overwrite:
        target.write_bytes(b"old")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail() -> None:
        with written_atomically(str(target), overwrite=overwrite) as stream:
            stream.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_taken_name_is_refused(tmp_path: Path) -> None:
    """Without overwriting, a name taken even while the block ran keeps its file."""
    target = tmp_path / "x"

    def be_late() -> None:
        with written_atomically(str(target), overwrite=False) as stream:
            stream.write(b"mine")
            target.write_bytes(b"theirs")

    with pytest.raises(StorageError, match="x: exists"):
        be_late()
    assert target.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["x"]


def test_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hard links do not exist a new file is written all the same, and none is replaced."""

    def refuse(*args: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    target = tmp_path / "x"
    write_atomically(str(target), b"new", overwrite=False)
    assert target.read_bytes() == b"new"
    with pytest.raises(StorageError, match="exists"):
        write_atomically(str(target), b"newer", overwrite=False)
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("name", ["x" * 250, "数" * 84, "é" * 125])
def test_longest_names(tmp_path: Path, name: str) -> None:
    """Any name that the file system takes is a name that can be written."""
    write_atomically(str(tmp_path / name), b"1", overwrite=False)
    write_atomically(str(tmp_path / name), b"2", overwrite=True)
    assert (tmp_path / name).read_bytes() == b"2"


def test_mode_and_link_are_kept(tmp_path: Path) -> None:
    """A replaced file keeps its mode, a link stays a link, a new file obeys the umask."""
    old = os.umask(0o027)
    try:
        write_atomically(str(tmp_path / "x"), b"1", overwrite=False)
    finally:
        os.umask(old)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640
    (tmp_path / "x").chmod(0o604)
    (tmp_path / "link").symlink_to("x")
    write_atomically(str(tmp_path / "link"), b"2", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "x").read_bytes() == b"2"
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o604


def test_check_leaves_no_trace(tmp_path: Path) -> None:
    """Looking whether a target can be written changes nothing, and finds what would fail."""
    (tmp_path / "there").touch()
    check_writable(str(tmp_path / "new"), overwrite=False)
    check_writable(str(tmp_path / "there"), overwrite=True)
    check_writable(os.devnull, overwrite=False)
    for path, overwrite in (("there", False), (".", True), ("no/folder", True)):
        with pytest.raises(StorageError):
            check_writable(str(tmp_path / path), overwrite=overwrite)
    assert os.listdir(tmp_path) == ["there"]
