"""A drive in use where the command cannot see it: the process is named, and nothing is taken down by half."""

import os
import signal
import time
from pathlib import Path

import pytest
from testkit.emulated import served_drive
from testkit.loops import command, helper
from tests.labs.aging.machine import CLOCK, SMALL, State

from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.aging.description import FileSystem
from cliffwatch.labs.aging.lifecycle import AttachRequest, clean

#: A mount namespace of its own, which begins with a copy of all mounts, as a container's or a service's does.
COPY = ("unshare", "--mount", "--propagation", "private")


@pytest.mark.alone(why="a namespace that copies all mounts keeps the drives of other tests from being detached")
@pytest.mark.parametrize("file_system", [FileSystem.EXT4, FileSystem.NONE])
def test_a_mount_in_another_namespace_is_named_and_the_drive_stays_whole(state: State, file_system: FileSystem) -> None:
    drive = state.attach(AttachRequest(SMALL, file_system))
    started = time.monotonic()
    with helper("", before=COPY) as process_id, pytest.raises(Problem) as refused:
        state.detach()
    assert time.monotonic() - started < 60, "it must not wait for a process that keeps its mounts"
    assert refused.value.code is Code.CONFLICT
    assert f"of process {process_id} (" in refused.value.detail
    assert "in the mount namespace mnt:[" in refused.value.detail
    assert str(drive.mount_point or state.place().flash) in refused.value.detail
    assert state.drive() == drive
    state.detach()
    assert state.remains() == []


@pytest.mark.alone(why="a namespace that copies all mounts keeps the drives of other tests from being detached")
def test_a_process_that_uses_the_drive_here_is_named_beside_a_mount_elsewhere(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    assert drive.mount_point is not None
    used = "os.open(sys.argv[1], os.O_RDONLY)"
    with (
        helper("", before=COPY) as elsewhere,
        helper(used, drive.mount_point) as here,
        pytest.raises(Problem) as refused,
    ):
        state.detach()
    assert f"of process {elsewhere} (" in refused.value.detail
    assert f"; end process {here} (" in refused.value.detail


@pytest.mark.alone(why="a namespace that copies all mounts keeps the drives of other tests from being detached")
def test_a_drive_that_was_taken_down_by_half_is_orphaned_and_its_users_are_named(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    whole = state.attach(AttachRequest(SMALL), "two")
    with helper("", before=COPY) as process_id:
        command("umount", drive.mount_point or Path())
        command("losetup", "--detach", f"/dev/{drive.device}")
        with pytest.raises(Problem) as refused:
            clean(state.directory, CLOCK)
        assert f"of process {process_id} (" in refused.value.detail
    assert clean(state.directory, CLOCK) == ["detached the drive one"]
    assert state.drive("two") == whole
    state.detach("two")
    assert state.remains() == []


def test_a_process_that_has_the_disk_itself_open_is_named(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL, FileSystem.NONE))
    with helper("os.open(sys.argv[1], os.O_RDONLY)", f"/dev/{drive.device}") as process_id:
        with pytest.raises(Problem) as refused:
            state.detach()
        assert f"process {process_id} (" in refused.value.detail
    assert clean(state.directory, CLOCK) == ["detached the drive one"]
    assert state.remains() == []


@pytest.mark.parametrize("module", ["cliffwatch.coordinator", "cliffwatch.worker"])
def test_a_run_is_named_with_the_command_that_stops_it_and_its_processes_are_not(state: State, module: str) -> None:
    drive = state.attach(AttachRequest(SMALL))
    # The command line of a worker, and a child of its as an engine is.
    code = """
import subprocess
os.chdir(sys.argv[1])
engine = subprocess.Popen(["sleep", "60"])
import atexit; atexit.register(engine.wait); atexit.register(engine.kill)
"""
    worker = (drive.mount_point or Path(), "-m", module, "/state/runs/my-run")
    with helper(code, *worker), pytest.raises(Problem) as refused:
        state.detach()
    files = state.place().files
    assert refused.value.detail == (
        f"{files} cannot be unmounted (umount: {files}: target is busy); "
        "run my-run works on it; stop it with: cliffwatch run stop my-run"
    )
    state.detach()


def test_a_stopped_server_is_named_and_not_waited_for(state: State) -> None:
    drive = state.attach(AttachRequest(SMALL))
    pid = state.server()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Problem, match=f"process {pid}, which serves the drive one, is stopped; .*kill -CONT {pid}"):
            state.detach()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert state.drive() == drive
    state.detach()


@pytest.mark.alone(why="drives that other tests have killed are taken down, too, and named")
def test_a_stopped_drive_of_another_directory_is_no_dead_one(state: State, tmp_path: Path) -> None:
    with served_drive(tmp_path / "other", "--capacity", "64MiB", "--timing", "off") as other:
        os.kill(other.pid, signal.SIGSTOP)
        try:
            assert clean(state.directory, CLOCK) == []
        finally:
            os.kill(other.pid, signal.SIGCONT)
        assert other.file.stat().st_size > 0
