"""`cliffwatch soak TARGET`: the workload that is chosen, the plan in five lines, and what is asked before it starts."""

import os
import pty
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from testkit.kafka_broker import start_cluster
from testkit.loops import MIB, loop_drive
from testkit.postgres import running_server
from tests.cli.machine import PATIENCE_SECONDS, Machine

from cliffwatch.base.errors import Problem
from cliffwatch.cli.main import COMMANDS
from cliffwatch.cli.soak_workload import Sizes, plan_lines, soak_workload
from cliffwatch.engines.registry import engine_of, load_of
from cliffwatch.engines.storage.load import StorageLoad
from cliffwatch.model.target import parse_target
from cliffwatch.model.workload import workload_from

GIB = 1 << 30
TARGETS = ("directory:/mnt/test", "device:S1", "broker:10.0.0.1:9092", "postgres://soak@10.0.0.1/soak", "synthetic:one")


def target(text: str) -> dict[str, Any]:
    return parse_target(text).model_dump(mode="json")


@given(
    text=st.sampled_from(TARGETS),
    seconds=st.integers(120, 90 * 86_400),
    free=st.none() | st.integers(0, 1 << 50),
    drive=st.none() | st.integers(1, 1 << 50),
)
def test_the_workload_is_valid_for_its_target_and_lasts_as_long_as_asked(
    text: str, seconds: int, free: int | None, drive: int | None
) -> None:
    workload = workload_from(soak_workload(target(text), seconds, Sizes(free, drive)))
    assert parse_target(text).kind in engine_of(workload).target_kinds
    load = load_of(workload)
    assert workload.phases.load_seconds == pytest.approx(seconds)
    assert workload.phases.soak >= 0.7 * seconds
    assert workload.phases.baseline > 0
    if isinstance(load, StorageLoad) and free is not None:
        assert load.retention_size is not None
        assert load.retention_size <= max(free / 2, 64 << 20)


@pytest.mark.parametrize(
    ("text", "seconds", "message"),
    [("synthetic:one", 119.0, "too short to judge"), ("observed:orders", 600.0, "loaded by others")],
)
def test_a_target_or_length_that_cannot_be_soaked_is_refused_with_the_remedy(
    text: str, seconds: float, message: str
) -> None:
    with pytest.raises(Problem) as caught:
        soak_workload(target(text), seconds, Sizes())
    assert message in caught.value.faults[0].message


def plan(written: int | None, drives: int | None, kind: str = "directory", **fields: Any) -> dict[str, Any]:
    lasts = "warm-up 30 s, baseline 2m, soak 7m30s"
    body = {"target": {"kind": kind}, "written_bytes": written, "drive_bytes": drives, "planned_seconds": 600.0}
    return body | {"lasts": lasts, "writes": [{"path": "/mnt/test/f", "size_bytes": GIB}]} | fields


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (
            plan(10 * GIB, 500 * GIB),
            [
                "writes     10.0 GiB in all; 1.0 GiB of it are kept until the end",
                "lasts      10m: warm-up 30 s, baseline 2m, soak 7m30s",
                "drives     2 % of their size (500.0 GiB) is written; drives are rated for 550 to 5,500 times",
                "will show  whether latency stays healthy for 7m30s of soak; no cliff that comes once the drive was "
                "written over, which takes --for 9h",
                "in the way nothing",
            ],
        ),
        (
            plan(30 * GIB, 10 * GIB),
            [
                "drives     3.0× their size (10.0 GiB) is written; drives are rated for 550 to 5,500 times",
                "will show  whether latency stays healthy for 7m30s of soak, also once the drive was written over",
            ],
        ),
        (
            plan(None, 500 * GIB, "postgres"),
            [
                "drives     500.0 GiB; how much of it is written is not known",
                "will show  whether latency stays healthy for 7m30s of soak; whether the drive is written over depends "
                "on how fast the target is",
            ],
        ),
        (
            plan(None, None, "broker", objections=[{"code": "brokers_unreachable", "message": "no answer"}]),
            [
                "writes     as much as the target takes",
                "drives     none is watched below this target",
                "will show  whether latency stays healthy for 7m30s of soak; not whether a drive is the reason, since "
                "none is watched",
                "in the way no answer",
            ],
        ),
    ],
)
def test_the_plan_says_what_will_be_known_and_what_not(given: dict[str, Any], lines: list[str]) -> None:
    found = plan_lines(given)
    assert len(found) == 5
    assert [line for line in lines if line not in found] == []


def test_the_command_alone_prints_the_command_for_what_people_have(idle: Machine) -> None:
    done = idle.run()
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("      cliffwatch ")]
    assert shown == ["soak", "observe", "analyze", "drill"]
    assert set(shown) <= set(COMMANDS)


def test_nothing_is_started_without_an_answer(machine: Machine) -> None:
    done = machine.run("soak", "synthetic:unasked")
    assert (done.returncode, "there is no terminal to ask; give --yes" in done.stderr) == (2, True)
    assert machine.data("run", "list", "--workload", "soak-synthetic-10m") == []


def test_the_workload_that_was_chosen_can_be_saved_and_changed(machine: Machine) -> None:
    done = machine.run("soak", "synthetic:saved", "--for", "1h", "--save", "saved.yaml", "--dry-run")
    assert done.returncode == 0, done.stderr
    saved = machine.directory / "saved.yaml"
    document = yaml.safe_load(saved.read_text())
    document["load"] = {"time": "virtual", "cliff_after": "30m"}
    saved.write_text(yaml.safe_dump(document))
    done = machine.run("run", "start", "saved.yaml", "--target", "synthetic:saved", "--wait")
    assert done.stdout.startswith("verdict: degraded")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kept.yaml", "kept.yaml: File exists; name another file"),
        ("none/new.yaml", "none/new.yaml: No such file or directory; name a file that can be written"),
    ],
)
def test_a_workload_is_saved_to_a_new_file_only(machine: Machine, name: str, message: str) -> None:
    kept = machine.directory / "kept.yaml"
    kept.write_text("mine")
    done = machine.run("soak", "synthetic:unsaved", "--save", name, "--dry-run")
    assert (done.returncode, f"--save: {message}" in done.stderr) == (2, True)
    assert kept.read_text() == "mine"


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04"], ids=["no", "nothing", "end of input"])
def test_a_soak_is_not_started_without_a_yes(machine: Machine, answer: bytes) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as terminal, os.fdopen(theirs, "rb") as stdin:
        asked = machine.start("soak", "synthetic:refused", stdin=stdin.fileno())
        terminal.write(answer)
        _, err = asked.communicate(timeout=PATIENCE_SECONDS)
    assert (asked.returncode, "[y/N]" in err, "Traceback" in err) == (1, True, False)
    assert machine.data("run", "list", "--workload", "soak-synthetic-10m") == []


def test_a_target_that_is_refused_says_what_is_in_the_way(machine: Machine) -> None:
    done = machine.run("soak", "/etc", "--yes")
    assert done.returncode == 2
    assert "in the way /etc is in /etc, which is the operating system's" in done.stdout
    assert "the target is refused" in done.stderr


def soaked(machine: Machine, text: str, *arguments: str) -> str:
    """Soak a target for two minutes; returns what was printed to stdout."""
    done = machine.run("soak", text, "--for", "2m", "--yes", *arguments)
    assert done.returncode in (0, 1), done.stderr
    assert "verdict: pass" in done.stdout or "verdict: degraded" in done.stdout, done.stdout
    return done.stdout


@pytest.mark.real(why="two minutes of load")
def test_a_directory_is_soaked_without_a_workload(machine: Machine, tmp_path: Path) -> None:
    soaked(machine, str(tmp_path))
    (run,) = machine.data("run", "list", "--workload", "soak-directory-2m")
    assert (run["state"], run["target"]["path"]) == ("finished", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real(why="two minutes of load on a drive")
def test_a_drive_is_soaked_without_a_workload(machine: Machine, tmp_path: Path) -> None:
    with loop_drive(tmp_path / "drive", 256 * MIB) as drive:
        target = f"device:{drive.file}"
        sentence = machine.data("soak", target, "--dry-run")["confirmation"]
        assert "8.9× their size (256.0 MiB) is written" in soaked(machine, target, "--confirm", sentence)


@pytest.mark.real(why="two minutes of load on a broker")
def test_a_broker_is_soaked_without_a_workload(machine: Machine, tmp_path: Path) -> None:
    cluster = start_cluster(tmp_path)
    try:
        assert "none is watched below this target" in soaked(machine, f"broker:{cluster.bootstrap}")
    finally:
        cluster.stop()


@pytest.mark.real(why="two minutes of load on a server")
def test_a_database_is_soaked_without_a_workload(machine: Machine) -> None:
    with running_server() as server:
        soaked(machine, f"postgres://{server.user}@127.0.0.1:{server.port}/postgres")
