"""What tests that were killed leave on the machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.killed_sessions import clear_killed_sessions
from testkit.loops import command, has_file, loop_drive, mounted


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("lock", ["ended", "none"])
def test_mounts_and_loop_devices_of_a_killed_session_are_removed_and_reported(tmp_path: Path, lock: str) -> None:
    session = tmp_path / "pytest-of-root" / "pytest-7"
    (session / "popen-gw0").mkdir(parents=True)
    if lock == "ended":
        (session / ".lock").write_text(str(ended_process()))
    command("mount", "-t", "tmpfs", "none", session / "popen-gw0")
    file = session / "popen-gw0" / "drive.img"
    file.write_bytes(bytes(2 * 1024 * 1024))
    node = Path(command("losetup", "--find", "--show", file).strip())
    said = clear_killed_sessions(tmp_path)
    assert said == [f"losetup --detach {node}", f"umount --lazy {session / 'popen-gw0'}"]
    assert not (session / "popen-gw0").is_mount()
    assert not has_file(node, file)
    assert clear_killed_sessions(tmp_path) == []


def test_mounts_and_loop_devices_of_a_running_session_are_kept(tmp_path: Path) -> None:
    session = tmp_path / "pytest-of-root" / "pytest-7"
    session.mkdir(parents=True)
    (session / ".lock").write_text(str(os.getpid()))
    with mounted("none", session / "memory", "-t", "tmpfs") as memory, loop_drive(memory / "drive.img", 2 << 20):
        assert clear_killed_sessions(tmp_path) == []


def test_mounts_and_loop_devices_of_no_test_session_are_kept(tmp_path: Path) -> None:
    with mounted("none", tmp_path / "memory", "-t", "tmpfs") as memory, loop_drive(memory / "drive.img", 2 << 20):
        assert clear_killed_sessions(tmp_path) == []
