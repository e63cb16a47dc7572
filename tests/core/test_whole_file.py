"""A file is there whole or not at all, and what is no plain file is not destroyed."""

import os
import stat
from pathlib import Path

import pytest

from cliffwatch.whole_file import whole_file


def test_a_file_has_its_name_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_there_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"new", "not bytes"])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    full = tmp_path / "full"
    os.mknod(full, stat.S_IFCHR | 0o600, os.makedev(1, 7))
    with pytest.raises(OSError, match="No space left"), whole_file(full) as file:
        file.write(b"new")
    assert stat.S_ISCHR(full.stat().st_mode)


def test_a_link_is_written_through_and_stays_a_link(tmp_path: Path) -> None:
    link, path = tmp_path / "link", tmp_path / "a"
    link.symlink_to(path)
    with whole_file(link) as file:
        file.write(b"new")
    assert (link.is_symlink(), path.read_text()) == (True, "new")
