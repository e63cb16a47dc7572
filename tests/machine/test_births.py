import os
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from testkit.loops import MIB, command, loop_drive, mounted

from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.births import birth_of


@pytest.fixture
def timeless(tmp_path: Path) -> Iterator[Path]:
    """A volume whose inodes have no room for a time of birth."""
    with loop_drive(tmp_path / "old.img", 16 * MIB) as drive:
        command("mkfs.ext4", "-q", "-I", "128", drive.node)
        with mounted(drive.node, tmp_path / "old") as mount_point:
            yield mount_point


def born(file: Path) -> str | None:
    return birth_of(file, FileIdentity.of(file.stat()))


def test_the_time_is_the_one_that_stat_shows_and_stays_when_the_file_changes(volume: Path) -> None:
    file = volume / "file"
    file.touch()
    first = born(file)
    assert first is not None
    shown = subprocess.run(["stat", "-c", "%W", file], capture_output=True, text=True, check=True).stdout
    moment = datetime.fromisoformat(first.removeprefix("born ")[:19] + "+00:00")
    assert moment.timestamp() == int(shown)
    file.write_bytes(b"data")
    os.utime(file, (0, 0))
    assert born(file.rename(volume / "moved")) == first


@pytest.mark.parametrize("kind", ["volume", "timeless"])
def test_a_file_that_has_the_number_of_a_removed_one_is_another(kind: str, request: pytest.FixtureRequest) -> None:
    file: Path = request.getfixturevalue(kind) / "file"
    file.touch()
    first, status = born(file), file.stat()
    assert first is not None
    assert first.split()[0] == ("born" if kind == "volume" else "generation")
    file.unlink()
    # Times of birth are as coarse as the kernel's clock.
    time.sleep(0.02)
    file.touch()
    assert file.stat().st_ino == status.st_ino
    assert born(file) != first


def test_a_name_that_leads_to_another_file_says_nothing_of_this_one(volume: Path) -> None:
    for name in ("one", "other"):
        (volume / name).touch()
    assert birth_of(volume / "other", FileIdentity.of((volume / "one").stat())) is None
    assert birth_of(volume / "none", FileIdentity.of((volume / "one").stat())) is None
