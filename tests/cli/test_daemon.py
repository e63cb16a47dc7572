"""A service in the background that cannot be recorded is not left running."""

import os
from pathlib import Path

import pytest
from testkit.loops import mounted

from cliffwatch.base.errors import Problem
from cliffwatch.cli.daemon import start_daemon


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
