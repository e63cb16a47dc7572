"""The service as a background process: one that cannot be recorded, and one that ends while `up` waits for it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from testkit.loops import mounted
from tests.cli.machine import PATIENCE_SECONDS, Machine

from cliffwatch.base.errors import Problem
from cliffwatch.cli.daemon import find_daemon, start_daemon


def test_a_service_that_could_not_be_found_again_is_not_left_running(tmp_path: Path) -> None:
    with mounted("tmpfs", tmp_path / "state", "-t", "tmpfs", "-o", "size=256k,mode=700") as state:
        room = os.statvfs(state)
        (state / "full").write_bytes(bytes(room.f_bavail * room.f_frsize))
        before = children()
        with pytest.raises(Problem, match="takes nothing: No space left on device; make room there"):
            start_daemon(state, "http://127.0.0.1:1", ["serve", "--listen-port", "1"])
        assert children() == before


def children() -> set[str]:
    """The processes that this one started and that are there."""
    listed = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return set(" ".join(listed).split())


def test_a_service_that_ends_while_up_waits_for_it_is_started_again(idle: Machine) -> None:
    idle.run("up")
    daemon = find_daemon(idle.state)
    assert daemon is not None
    assert daemon.process.send(signal.SIGSTOP)
    again = idle.start("up")
    with pytest.raises(subprocess.TimeoutExpired):
        again.wait(2.0)
    assert daemon.process.send(signal.SIGKILL)
    _, said = again.communicate(timeout=PATIENCE_SECONDS)
    assert again.returncode == 0, said
    assert "the service is ready at" in said
    restarted = find_daemon(idle.state)
    assert restarted is not None
    assert restarted != daemon
