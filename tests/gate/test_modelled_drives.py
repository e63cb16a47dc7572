"""A modelled drive's file and the one that keeps its content: the same blocks under two identities."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testkit.emulated import ServedDrive, served_drive
from testkit.loops import MIB, LoopDrive, attached_at, codes, command, helper, loop_drive, message_of, mounted
from tests.gate.fuse import fuse_file

from cliffwatch.gate import examine
from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.modelled import DriveContents, server_descriptor

#: Each test has a size that no other has, as in the tests of relays.
OPEN = "os.open(sys.argv[1], os.O_RDWR)"
SMALL = ("--timing", "off", "--channels", "2", "--dies-per-channel", "2", "--pages-per-block", "64")


@contextmanager
def modelled(directory: Path, capacity_mib: int) -> Iterator[tuple[ServedDrive, LoopDrive]]:
    """A modelled drive with its content in `directory`, and the loop device over it."""
    with (
        served_drive(directory, "--capacity", f"{capacity_mib}MiB", *SMALL) as served,
        loop_drive(served.file) as drive,
    ):
        yield served, drive


def test_a_mount_says_which_file_keeps_the_content_and_the_server_has_it_locked(tmp_path: Path) -> None:
    with modelled(tmp_path, 64) as (served, _):
        content = FileIdentity.of((tmp_path / "content").stat())
        assert DriveContents.read().of(FileIdentity.of(served.file.stat())) == content
        assert DriveContents.read().of(content) == content
        descriptor = server_descriptor(content)
        assert descriptor is not None
        assert descriptor.is_relative_to(f"/proc/{served.pid}")


def test_a_modelled_drive_that_only_its_server_writes_to_is_free(tmp_path: Path) -> None:
    with modelled(tmp_path / "one", 65) as (_, one), modelled(tmp_path / "two", 65) as (_, two):
        assert examine(one.target(), "r1").objections == ()
        assert examine(two.target(), "r1").objections == ()


def test_a_mount_from_the_content_of_a_modelled_drive_marks_it_as_in_use(tmp_path: Path) -> None:
    with modelled(tmp_path, 66) as (_, drive):
        content = tmp_path / "content"
        offset_bytes = 32 * MIB
        command("mkfs.ext4", "-q", "-E", f"offset={offset_bytes}", content, "16m")
        with attached_at(content, offset_bytes) as node, mounted(node, tmp_path / "files"):
            examination = examine(drive.target(), "r1")
            assert "mounted" in codes(examination)
            assert f"{drive.file} and {content}, which are one modelled drive" in message_of(examination, "mounted")


def test_a_writer_to_the_content_of_a_modelled_drive_counts(tmp_path: Path) -> None:
    with modelled(tmp_path, 67) as (_, drive):
        with helper(OPEN, tmp_path / "content") as process_id:
            examination = examine(drive.target(), "r1")
            assert codes(examination) == {"in_use"}
            assert f"process {process_id} " in message_of(examination, "in_use")
        with loop_drive(tmp_path / "content") as twin, helper(OPEN, twin.node) as process_id:
            examination = examine(drive.target(), "r1")
            assert "in_use" in codes(examination)
            assert f"process {process_id} " in message_of(examination, "in_use")
            assert "one modelled drive and its content" in message_of(examination, "in_use")
        assert examine(drive.target(), "r1").objections == ()


def test_a_modelled_drive_keeps_the_loop_device_over_its_content_from_being_written(tmp_path: Path) -> None:
    with modelled(tmp_path, 68) as (served, drive), loop_drive(tmp_path / "content") as twin:
        with mounted_file_system(drive, tmp_path / "files"):
            messages = [each.message for each in examine(twin.target(), "r1").objections]
        assert any(f"process {served.pid} " in each for each in messages)
        assert any(f"{drive.name} is mounted at" in each for each in messages)


@contextmanager
def mounted_file_system(drive: LoopDrive, point: Path) -> Iterator[Path]:
    command("mkfs.ext4", "-q", drive.node)
    with mounted(drive.node, point) as files:
        yield files


@pytest.mark.parametrize("user_id", [0, 1000])
@pytest.mark.parametrize("source", ["cliffwatch-drive", "cliffwatch-drive:{device}:12", "cliffwatch-drive:x"])
def test_only_a_mount_of_roots_that_names_a_file_is_believed(tmp_path: Path, user_id: int, source: str) -> None:
    size_bytes = 48 * MIB
    another = FileIdentity.of(tmp_path.stat()).major_minor
    with (
        loop_drive(tmp_path / "drive.img", size_bytes) as drive,
        fuse_file(tmp_path / "fuse", size_bytes, source.format(device=another), user_id) as file,
        helper(OPEN, file),
    ):
        is_believed = user_id == 0 and source.endswith("12")
        assert codes(examine(drive.target(), "r1")) == (set() if is_believed else {"in_use"})
