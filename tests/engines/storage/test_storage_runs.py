"""Runs of the storage engine, executed by a real worker."""

import os
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import MIB, command, loop_drive, mounted
from testkit.storage_engine import SMALL
from testkit.waiting import wait_until
from testkit.worker_runs import events, execute_run, names, queue_run, start_worker, status, window_count

from cliffwatch.analysis.asked_rate import asked_rate
from cliffwatch.coordinator.restarts import losses_of
from cliffwatch.journal import EventLog, EventType, JournalReader
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.model.target import DirectoryTarget

LOAD: dict[str, Any] = SMALL | {"fill_ratio": 0.5}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    place = tmp_path / "target"
    place.mkdir()
    return place


def queue(journal: Path, target: Path, load: dict[str, Any], soak: str = "12s") -> Path:
    place = DirectoryTarget(path=str(target))
    return queue_run(journal, load, place, engine="storage", window="1s", phases={"soak": soak})


@pytest.mark.gate(why="smoke of the storage engine")
def test_a_run_fills_appends_verifies_and_leaves_nothing(tmp_path: Path, target: Path) -> None:
    journal = queue(tmp_path / "storage-run", target, LOAD)
    finished = execute_run(journal)
    assert finished.verdict is VerdictName.PASS, finished.reasons
    recorded = names(journal, "engine")
    assert [name for name in recorded if name in ("prepared", "storage", "verified")] == [
        "prepared",
        "storage",
        "verified",
    ]
    windows = list(JournalReader(journal).windows())
    assert len(windows) == 12
    assert {"append", "append_service", "sync", "write"} <= set(windows[5].latency)
    asked = asked_rate(windows)
    assert asked is not None
    assert {window.gauges["requested_operations_per_second"] for window in windows} == {asked.asked}
    assert asked.reached <= 1.05 * asked.asked
    assert sum(window.counters["segments_deleted"] for window in windows) > 0
    written = sum(window.counters["written_bytes"] for window in windows)
    assert sum(window.counters["device_written_bytes"] for window in windows) >= 0.9 * written
    assert list(target.iterdir()) == []


def test_a_run_whose_worker_was_asked_to_end_is_finished_by_the_next(tmp_path: Path, target: Path) -> None:
    """As when a container stops: the engine ends and reports `load_ended`, and the run goes on."""
    journal = queue(tmp_path / "run", target, LOAD | {"fill_ratio": 0})
    worker = start_worker(journal)
    wait_until(lambda: window_count(journal) >= 2, "a second window")
    worker.terminate()
    assert worker.wait(60) == 0
    interrupted = status(journal)
    assert interrupted.state is RunState.INTERRUPTED
    assert "load_ended" in names(journal, "engine")
    assert losses_of(events(journal), window_count(journal)).ended is False
    change_state(EventLog(journal), RunState.STARTING, interrupted.since)
    finished = execute_run(journal)
    assert finished.state is RunState.FINISHED
    [gap] = [event for event in events(journal) if event.type is EventType.GAP]
    assert gap.name == "worker_interrupted"
    assert window_count(journal) > 2
    assert list(target.iterdir()) == []


def test_a_volume_that_fills_up_fails_the_run_and_keeps_its_journal(tmp_path: Path, target: Path) -> None:
    with loop_drive(tmp_path / "image", 64 * MIB) as drive:
        command("mkfs.ext4", "-q", "-m", "0", drive.node)
        with mounted(drive.node, target):
            journal = queue(tmp_path / "full-run", target, LOAD | {"retention_size": "32MiB", "fill_ratio": 0})
            with (target / "other-data").open("wb") as other:
                # The plan says 32 MiB at most and the gate sees them free; then they are not.
                prepared = os.fork()
                if prepared == 0:
                    _fill_once_there_are_segments(target, other.fileno())
            finished = execute_run(journal)
            os.waitpid(prepared, 0)
            assert list(target.iterdir()) == [target / "other-data"] or not list(target.glob("cliffwatch-*/log"))
    assert finished.verdict is VerdictName.FAILED
    assert any("the volume is full" in reason for reason in finished.reasons), finished.reasons
    assert "died" not in names(journal, "engine")
    assert list(JournalReader(journal).windows())
    assert [event.detail["how"] for event in events(journal) if event.name == "load_ended" and "how" in event.detail]


def _fill_once_there_are_segments(target: Path, descriptor: int) -> None:
    """Take all space of the volume as soon as a second of load is on it; ends the process."""
    try:
        while sum(path.stat().st_size for path in target.glob("cliffwatch-*/log/*/*.log")) < 4_000_000:
            os.sched_yield()
        for step in range(64 * 16):
            os.posix_fallocate(descriptor, step * MIB // 16, MIB // 16)
    except OSError:
        pass
    finally:
        os._exit(0)


def test_facts_say_which_program_it_was(tmp_path: Path, target: Path) -> None:
    journal = queue(tmp_path / "facts-run", target, SMALL, soak="1s")
    execute_run(journal)
    assert "cliffwatch-load" in str(JournalReader(journal).facts())
