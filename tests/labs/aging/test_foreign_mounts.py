"""A mount that lies over a drive's own, and is not part of it: it is named, and nothing is taken down."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testkit.loops import command, helper, loop_drive, mounted
from tests.labs.aging.machine import CLOCK, SMALL, State

from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.aging.lifecycle import AttachRequest, clean, detach
from cliffwatch.machine.mounts import mount_of


@contextmanager
def foreign_mount(directory: Path) -> Iterator[Path]:
    """A tmpfs with a file in it; it is there for the whole block, else the test fails."""
    command("mount", "-t", "tmpfs", "foreign", directory)
    try:
        (directory / "file").write_text("precious")
        yield directory
        assert (directory / "file").read_text() == "precious"
    finally:
        if mount_of(directory).source == "foreign":
            command("umount", directory)


@pytest.mark.parametrize("below", ["files", "flash", "files/directory"])
def test_a_mount_over_a_drive_is_named_and_the_drive_stays_whole(state: State, below: str) -> None:
    drive = state.attach(AttachRequest(SMALL))
    directory = state.place().directory / below
    if below == "files/directory":
        directory.mkdir()
    with foreign_mount(directory):
        for attempt in (state.detach, lambda: detach(state.directory, "one", CLOCK, delete=True)):
            with pytest.raises(Problem) as refused:
                attempt()
            assert refused.value.code is Code.CONFLICT
            assert f"foreign (tmpfs) at {directory}; unmount it with: umount {directory}" in refused.value.detail
        assert state.drive().url == drive.url
    assert state.drive() == drive


def test_a_mount_where_a_detached_drive_was_is_left(state: State) -> None:
    state.attach(AttachRequest(SMALL))
    state.detach()
    with foreign_mount(state.place().flash) as flash:
        state.detach()
        with pytest.raises(Problem, match=f"something else is mounted at {flash}; unmount it with: umount {flash}"):
            detach(state.directory, "one", CLOCK, delete=True)
    assert detach(state.directory, "one", CLOCK, delete=True) == []


@pytest.mark.alone(why="drives that other tests have killed are taken down, too, and named")
def test_a_mount_over_a_dead_drive_is_left_by_clean(state: State) -> None:
    state.attach(AttachRequest(SMALL))
    state.kill_server()
    with foreign_mount(state.place().files) as files:
        done = state.command("drive", "clean")
        assert done.returncode == 2, done.stderr
        assert f"foreign (tmpfs) at {files}; unmount it with: umount {files}" in done.stderr
        assert state.place().flash in {Path(each) for each in state.remains() if each.startswith("/")}
    assert clean(state.directory, CLOCK) == ["detached the drive one"]
    assert detach(state.directory, "one", CLOCK, delete=True) == []


def test_a_mount_below_a_bind_mount_over_a_directory_above_is_named(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    command("mount", "--bind", state.directory, state.directory)
    try:
        with (
            foreign_mount(state.place().files) as files,
            pytest.raises(Problem, match=rf"foreign \(tmpfs\) at {files}"),
        ):
            state.detach()
        with pytest.raises(Problem, match=f"unmount it with: umount {state.directory}, then"):
            state.detach()
    finally:
        command("umount", state.directory)
    assert state.drive() == drive


def test_a_second_mount_of_a_drive_s_directory_is_named_and_stays(state: State, tmp_path: Path) -> None:
    drive = state.attach(AttachRequest(SMALL))
    (state.place().files / "directory").mkdir()
    with mounted(state.place().files / "directory", tmp_path / "second", "--bind") as second:
        with pytest.raises(Problem, match=f"is mounted at {second} too; unmount it with: umount {second}, then"):
            state.detach()
        assert state.drive() == drive
        assert mount_of(second).mount_point == second
    state.detach()


@pytest.mark.alone(why="a namespace that copies all mounts keeps the drives of other tests from being detached")
def test_the_drive_of_another_mount_namespace_under_the_same_path_is_another(state: State) -> None:
    state.attach(AttachRequest(SMALL))
    state.detach()
    code = (
        "import subprocess\n"
        "from pathlib import Path\n"
        "subprocess.run(['mount', '-t', 'tmpfs', 'other', sys.argv[1]], check=True)\n"
        "from tests.labs.aging.machine import SMALL, State\n"
        "from cliffwatch.labs.aging.lifecycle import AttachRequest\n"
        "state = State(Path(sys.argv[1])).make()\n"
        "state.attach(AttachRequest(SMALL))\n"
    )
    namespace = ("unshare", "--mount", "--propagation", "private")
    end = "\nimport atexit\natexit.register(state.close)\n"
    with helper(code + end, state.directory, before=namespace):
        loops = set(state.remains())
        assert state.drive().device is None
        assert clean(state.directory, CLOCK) == []
        state.attach()
        state.detach()
        assert set(state.remains()) == loops
    assert state.remains() == []


@pytest.mark.alone(why="drives that other tests have killed are taken down, too, and named")
def test_a_mount_whose_name_is_no_text_keeps_nothing_from_being_cleaned(state: State, tmp_path: Path) -> None:
    drive = state.attach(AttachRequest(SMALL))
    odd = Path(os.fsdecode(os.fsencode(state.place().files) + b"/in\xff'"))
    odd.mkdir()
    with foreign_mount(odd):
        with pytest.raises(Problem) as refused:
            state.detach()
        (typed,) = re.findall(r"unmount it with: (umount .*), then try again", refused.value.detail)
        assert state.drive() == drive
        assert clean(state.directory, CLOCK) == []
    command("mount", "-t", "tmpfs", "foreign", odd)
    command("bash", "-c", typed)
    odd.rmdir()
    state.kill_server()
    with foreign_mount_elsewhere(tmp_path):
        assert clean(state.directory, CLOCK) == ["detached the drive one"]


@contextmanager
def foreign_mount_elsewhere(directory: Path) -> Iterator[None]:
    odd = Path(os.fsdecode(os.fsencode(directory) + b"/\xff"))
    odd.mkdir()
    with foreign_mount(odd):
        yield


def test_content_that_is_attached_under_its_own_name_is_neither_served_nor_deleted(
    state: State, tmp_path: Path
) -> None:
    state.attach(AttachRequest(SMALL))
    state.detach()
    with loop_drive(state.place().content) as other, mounted(other.node, tmp_path / "files") as files:
        (files / "file").write_text("precious")
        for attempt in (state.attach, lambda: detach(state.directory, "one", CLOCK, delete=True)):
            with pytest.raises(Problem, match=f"is attached as {other.node} too; .*: losetup --detach") as refused:
                attempt()
            assert refused.value.code is Code.CONFLICT
        assert state.remains() == [other.name]
        assert (files / "file").read_text() == "precious"
    mount_point = state.attach().mount_point
    assert mount_point is not None
    assert (mount_point / "file").read_text() == "precious"


def test_a_disk_that_was_detached_in_use_goes_with_its_mount(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    command("losetup", "--detach", f"/dev/{drive.device}")
    state.detach()
    assert state.remains() == []
