"""A drive that this machine exports is in use, by whichever name configfs has it. Real drives below a made configfs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, loop_drive

from cliffwatch.gate import examine

EXPORTS = {
    "nvmet": ("nvmet/subsystems/nqn.2026-01.test/namespaces/1/device_path", "the nvmet subsystem nqn.2026-01.test"),
    "lio": ("target/core/iblock_0/disk0/udev_path", "the LIO storage object iblock_0/disk0"),
}


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[LoopDrive]:
    with loop_drive(tmp_path / "drive.img", 8 * MIB) as made:
        yield made


@pytest.fixture
def sys_with_configfs(tmp_path: Path) -> Path:
    """This kernel's own /sys, and a configfs, which it may not have."""
    place = tmp_path / "sys"
    (place / "kernel" / "config").mkdir(parents=True)
    for entry in Path("/sys").iterdir():
        if entry.name != "kernel":
            (place / entry.name).symlink_to(entry)
    return place


def messages(drive: LoopDrive, sys: Path) -> list[str]:
    return [each.message for each in examine(drive.target(), "r1", sys=sys).objections]


@pytest.mark.parametrize("kind", EXPORTS)
@pytest.mark.parametrize("by", ["node", "link", "file"])
def test_a_drive_that_is_exported_is_in_use(
    drive: LoopDrive, tmp_path: Path, sys_with_configfs: Path, kind: str, by: str
) -> None:
    assert messages(drive, sys_with_configfs) == []
    link = tmp_path / "by-id"
    link.symlink_to(drive.node)
    attribute, words = EXPORTS[kind]
    path = sys_with_configfs / "kernel" / "config" / attribute
    path.parent.mkdir(parents=True)
    exported = {"node": drive.node, "link": link, "file": drive.file}[by]
    path.write_text(f"{exported}\n")
    (message,) = messages(drive, sys_with_configfs)
    assert words in message
    assert "remove that" in message
    path.write_text("(null)\n")
    assert messages(drive, sys_with_configfs) == []
