"""A file is there whole or not at all, and a path that is no plain file is not destroyed."""

import os
import stat
from pathlib import Path

import pytest

from cliffwatch.base.durable import output_file, replacement, write_durably


def test_a_file_has_its_name_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with output_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_there_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(TypeError), output_file(path) as file:
        file.writelines([b"new", "not bytes"])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    full = tmp_path / "full"
    os.mknod(full, stat.S_IFCHR | 0o600, os.makedev(1, 7))
    with pytest.raises(OSError, match="No space left"), output_file(full) as file:
        file.write(b"new")
    assert stat.S_ISCHR(full.stat().st_mode)


def test_a_link_is_written_through_and_stays_a_link(tmp_path: Path) -> None:
    link, path = tmp_path / "link", tmp_path / "a"
    link.symlink_to(path)
    with output_file(link) as file:
        file.write(b"new")
    assert (link.is_symlink(), path.read_text()) == (True, "new")


def test_a_durable_file_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "a", []
    path.write_text("old")

    def sync(descriptor: int) -> None:
        synced = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append((synced.name.startswith(".a."), synced == tmp_path, path.read_text()))

    monkeypatch.setattr("os.fsync", sync)
    write_durably(path, "new")
    assert seen == [(True, False, "old"), (False, True, "new")]


def test_a_disk_that_refuses_keeps_the_old_content_and_nothing_of_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_durably(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("is_private", "mode"), [(True, 0o600), (False, 0o644)])
def test_a_private_file_is_its_owners_alone_whatever_the_umask(tmp_path: Path, is_private: bool, mode: int) -> None:
    path = tmp_path / "a"
    path.touch(0o666)
    before = os.umask(0o022)
    try:
        with replacement(path, is_private=is_private) as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode
