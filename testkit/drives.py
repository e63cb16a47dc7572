"""Fixtures for loop drives and mounted volumes; a directory's conftest.py imports those that its tests use."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, command, loop_drive, mounted


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[LoopDrive]:
    """A clean loop device of 32 MiB."""
    with loop_drive(tmp_path / "drive.img") as attached:
        yield attached


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """Mount point of an ext4 file system of 64 MiB on its own loop device."""
    with loop_drive(tmp_path / "volume.img", 64 * MIB) as attached:
        command("mkfs.ext4", "-q", "-m", "0", attached.node)
        with mounted(attached.node, tmp_path / "volume") as mount_point:
            yield mount_point
