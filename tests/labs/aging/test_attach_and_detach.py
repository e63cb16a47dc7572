"""An aging drive as a disk of this machine: what is attached, what is kept, and that all of it goes away again."""

import os
from pathlib import Path

import pytest
from testkit.loops import command
from tests.labs.aging.machine import CLOCK, SMALL, State, metric

from cliffwatch.base.errors import Code, Problem
from cliffwatch.gate import examine
from cliffwatch.labs.aging.description import FileSystem
from cliffwatch.labs.aging.lifecycle import AttachRequest, clean
from cliffwatch.machine.mounts import mount_of
from cliffwatch.model.target import DeviceTarget, DirectoryTarget


def write_and_delete(directory: Path, size_bytes: int = 32 * 1024**2) -> None:
    path = directory / "file"
    with path.open("wb") as file:
        file.write(os.urandom(size_bytes))
        os.fsync(file.fileno())
    path.unlink()
    command("sync", "--file-system", directory)


@pytest.mark.parametrize(("file_system", "size"), [(FileSystem.EXT4, "64MiB"), (FileSystem.XFS, "320MiB")])
def test_a_drive_is_a_disk_with_a_file_system_that_stays_when_it_is_detached(
    state: State, file_system: FileSystem, size: str
) -> None:
    drive = state.attach(AttachRequest(SMALL | {"capacity": size}, file_system))
    assert drive.mount_point is not None
    assert mount_of(drive.mount_point).file_system == file_system
    assert Path(f"/sys/block/{drive.device}/loop/dio").read_text() == "1\n"
    (drive.mount_point / "kept").write_bytes(b"x" * 4_000_000)
    command("sync", "--file-system", drive.mount_point)
    written = metric(drive, "media_written_bytes_total")
    assert written > 4_000_000
    assert state.command("drive", "detach", "one").returncode == 0
    assert state.remains() == []
    again = state.attach()
    assert again.mount_point is not None
    assert (again.mount_point / "kept").read_bytes() == b"x" * 4_000_000
    assert metric(again, "media_written_bytes_total") >= written, "an aged drive stays aged"
    assert again.serial == drive.serial


def test_attaching_an_attached_drive_returns_it_unchanged(state: State) -> None:
    first = state.attach(AttachRequest(SMALL))
    assert state.attach() == first
    # Dead drives of other state directories are taken down, where this machine has some.
    assert not [said for said in clean(state.directory, CLOCK) if said.endswith("the drive one")]
    assert state.drive() == first


def test_a_state_directory_may_be_behind_a_link(state: State) -> None:
    link = state.directory.with_name("link")
    link.symlink_to(state.directory)
    linked = State(link)
    drive = linked.attach(AttachRequest(SMALL))
    assert drive.mount_point == state.place().files
    assert state.drive() == linked.drive() == drive
    linked.detach()
    assert state.remains() == []


def test_a_deleted_drive_is_gone_as_if_it_had_never_been(state: State) -> None:
    state.attach(AttachRequest(SMALL))
    assert state.command("drive", "detach", "one", "--delete").returncode == 0
    assert state.remains() == []
    assert list((state.directory / "drives").iterdir()) == []


@pytest.mark.parametrize("discard", [True, False])
def test_the_drive_receives_trim_where_it_is_enabled(state: State, discard: bool) -> None:
    drive = state.attach(AttachRequest(SMALL, discard=discard))
    assert drive.mount_point is not None
    write_and_delete(drive.mount_point)
    trimmed = metric(drive, "trimmed_bytes_total")
    assert trimmed > 30_000_000 if discard else trimmed == 0


def test_the_unpartitioned_share_is_left_alone(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL, unpartitioned=0.25))
    assert drive.mount_point is not None
    assert drive.size_bytes == 64 * 1024**2
    room = os.statvfs(drive.mount_point)
    assert 0.6 * drive.size_bytes < room.f_blocks * room.f_frsize <= 0.75 * drive.size_bytes


def test_the_gate_lets_a_run_write_to_the_mounted_drive_and_knows_which_drive_it_is(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    found = examine(DirectoryTarget(path=str(drive.mount_point)), "run-1")
    assert found.objections == ()
    (below,) = found.drives
    assert below.name == drive.device
    assert below.identities == (drive.identity,)


def test_the_gate_lets_a_run_write_to_the_whole_drive_when_nothing_is_mounted(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL, FileSystem.NONE))
    assert drive.mount_point is None
    sentence = f"erase backing file {drive.identity}"
    found = examine(DeviceTarget(identity=drive.identity, confirmation=sentence), "run-1")
    assert found.objections == ()


def test_a_drive_in_use_stays_and_its_user_is_named(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    assert drive.mount_point is not None
    with (drive.mount_point / "open").open("w"), pytest.raises(Problem) as refused:
        state.detach()
    assert refused.value.code is Code.CONFLICT
    assert f"process {os.getpid()} (" in refused.value.detail
    assert state.drive() == drive


def test_the_list_shows_what_is_attached_and_what_is_not(state: State) -> None:
    assert "no aging drives" in state.command("drive", "aging").stderr
    drive = state.attach(AttachRequest(SMALL))
    listed = state.command("drive", "aging").stdout
    assert all(str(each) in listed for each in ("one", drive.serial, drive.device, drive.mount_point, drive.url))
    state.detach()
    (row,) = state.command("drive", "aging").stdout.splitlines()[1:]
    assert row.split() == ["one", drive.serial, "–", "–", "–", "–"]
