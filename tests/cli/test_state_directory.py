"""The state directory: its owner alone reads it and locks its files, and a network share is warned of."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.cli.machine import Machine
from tests.labs.aging.machine import State

from cliffwatch.base.privacy import tighten
from cliffwatch.machine.mounts import mount_of

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
    done = idle.run("up")
    assert done.returncode == 0, done.stderr
    done = idle.run("run", "start", str(document), "--target", "synthetic:nowhere", "--id", "one", "--wait")
    assert done.returncode == 0, done.stderr
    assert (idle.state / "runs" / "one" / "report.html").exists()
    assert left_open(idle.state) == []


@pytest.mark.parametrize("command", ["index rebuild", "token create --name lost --local"])
def test_state_created_by_a_command_before_the_first_service_is_private(idle: Machine, command: str) -> None:
    done = idle.run(*command.split())
    assert done.returncode == 0, done.stderr
    assert (idle.state / "cliffwatch.sqlite3").exists()
    assert left_open(idle.state) == []


def test_a_drive_that_is_attached_before_the_first_service_is_its_owner_s_alone(idle: Machine) -> None:
    State(idle.state).make()
    idle.state.chmod(0o700)
    done = idle.run("drive", "attach", "one", "--capacity", "64MiB", "--file-system", "ext4", "--set", "timing=off")
    try:
        assert done.returncode == 0, done.stderr
        mounted = idle.state / "drives" / "one" / "files"
        # What is in there is a file system of its own, behind doors that are closed.
        assert [path for path in left_open(idle.state) if not (idle.state / path).is_relative_to(mounted)] == []
    finally:
        idle.run("drive", "detach", "one", "--delete")


def test_programs_beside_the_state_stay_what_they_were(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "program"
    program.parent.mkdir()
    program.touch()
    program.chmod(0o750)
    tighten(tmp_path, tmp_path / "runs")
    assert stat.S_IMODE(program.stat().st_mode) == 0o750
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_state_directory_on_a_network_share_is_warned_of_when_the_service_is_up(
    idle: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = replace(mount_of(idle.directory), file_system="nfs4")
    monkeypatch.setattr("cliffwatch.app.state_place.mount_of", lambda path, proc: shared)
    assert f"warning: the state directory {idle.state} is on a network share (nfs4)" in idle.run("up").stderr


@pytest.mark.gate(why="two services on one directory of runs would start two runs on one target")
def test_a_second_service_on_one_directory_of_runs_does_not_start(idle: Machine, tmp_path: Path) -> None:
    idle.run("up")
    runs, other = idle.state / "runs", {"CLIFFWATCH_STATE_DIRECTORY": str(tmp_path / "other")}
    second = idle.run("serve", CLIFFWATCH_LISTEN_PORT="0", CLIFFWATCH_RUNS_DIRECTORY=str(runs), **other)
    assert second.returncode == 2
    assert f"another service uses the runs directory {runs}" in second.stderr
    assert "CLIFFWATCH_RUNS_DIRECTORY" in second.stderr
    assert "Traceback" not in second.stderr
    idle.run("down")
