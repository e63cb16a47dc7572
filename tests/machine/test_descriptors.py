"""Directories are opened without following a link anywhere on the way, with openat2 and where there is none."""

import errno
import os
from pathlib import Path

import pytest

from cliffwatch.machine import descriptors
from cliffwatch.machine.descriptors import name_of, open_beneath, open_directory


@pytest.fixture(params=["openat2", "part by part"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "part by part":
        # What a kernel without it answers, of a system call that no kernel has.
        monkeypatch.setattr(descriptors, "_OPENAT2", 10_000)


def test_a_directory_is_opened_by_its_plain_path(tmp_path: Path) -> None:
    place = tmp_path / "one" / "two"
    place.mkdir(parents=True)
    opened = open_directory(place)
    try:
        assert os.path.samestat(os.fstat(opened), place.stat())
        assert name_of(opened) == place
        place.rename(tmp_path / "moved")
        assert name_of(opened) == tmp_path / "moved"
    finally:
        os.close(opened)


@pytest.mark.parametrize("path", ["link", "link/below", "one/link", "../escape", "one/../../escape", "pipe", "file"])
def test_a_link_pipe_file_or_escaping_path_is_refused_as_a_directory(tmp_path: Path, path: str) -> None:
    inside = tmp_path / "inside"
    for directory in (inside / "one", tmp_path / "escape" / "below"):
        directory.mkdir(parents=True)
    (inside / "link").symlink_to(tmp_path / "escape")
    (inside / "one" / "link").symlink_to(tmp_path / "escape")
    os.mkfifo(inside / "pipe")
    (inside / "file").touch()
    parent = open_directory(inside)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 a list is counted, nothing is joined
    try:
        with pytest.raises(OSError, match=r".") as refusal:
            open_beneath(parent, Path(path))
        assert refusal.value.errno in {errno.ELOOP, errno.ENOTDIR, errno.EXDEV}
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 likewise
    finally:
        os.close(parent)
