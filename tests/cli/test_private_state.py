"""Nobody but its owner reads what the service keeps, nor holds a lock of it."""

import os
import stat
from pathlib import Path

import yaml
from tests.cli.machine import Machine

from cliffwatch.base.privacy import tighten

#: What others may look at, and why: nothing.
OPEN_TO_OTHERS: frozenset[str] = frozenset()
WORKLOAD = {"version": 1, "name": "short", "engine": "synthetic", "window": "100ms", "phases": {"soak": "500ms"}}


def left_open(directory: Path) -> list[str]:
    return [
        str(path.relative_to(directory))
        for path in [directory, *directory.rglob("*")]
        if not path.is_symlink() and path.lstat().st_mode & 0o077 and path.name not in OPEN_TO_OTHERS
    ]


def test_nothing_of_a_service_and_its_runs_is_open_to_others(idle: Machine) -> None:
    # As a version before this one left it, under the usual umask.
    (idle.state / "runs" / "old").mkdir(parents=True)
    (idle.state / "runs" / "old" / "worker.lock").touch()
    (idle.state / "cliffwatch.sqlite3").touch(0o644)
    document = idle.directory / "short.yaml"
    document.write_text(yaml.safe_dump(WORKLOAD))
    before = os.umask(0o022)
    try:
        done = idle.run("up")
        assert done.returncode == 0, done.stderr
    finally:
        os.umask(before)
    done = idle.run("run", "start", str(document), "--target", "synthetic:nowhere", "--id", "one", "--wait")
    assert done.returncode == 0, done.stderr
    assert (idle.state / "runs" / "one" / "report.html").exists()
    assert left_open(idle.state) == []


def test_programs_beside_the_state_stay_what_they_were(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "program"
    program.parent.mkdir()
    program.touch()
    program.chmod(0o750)
    tighten(tmp_path, tmp_path / "runs")
    assert stat.S_IMODE(program.stat().st_mode) == 0o750
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
