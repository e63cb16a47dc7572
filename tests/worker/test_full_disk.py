"""A journal's disk that is full makes a run wait, not die, and what could not be kept is a gap."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.small_disk import SmallDisk, small_disk
from testkit.waiting import wait_until
from testkit.worker_runs import (
    assert_no_window_twice,
    events,
    execute_run,
    names,
    queue_run,
    report,
    start_worker,
    status,
    window_count,
)

from cliffwatch.coordinator import commit
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader
from cliffwatch.model.run_state import RunState, VerdictName

FULL_SECONDS = 3.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 16 << 20) as made:
        yield made


def test_a_run_outlives_a_full_disk_and_loses_no_window(disk: SmallDisk) -> None:
    directory = queue_run(disk.path / "patient", window="500ms", phases={"soak": "8s"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    disk.fill()
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() - begun >= FULL_SECONDS, "the disk's time")
    kept = window_count(directory)
    assert worker.poll() is None
    disk.free()
    assert worker.wait(90) == 0
    assert kept < 16
    assert window_count(directory) == 16
    assert_no_window_twice(directory)
    assert names(directory, "gap") == []
    assert "disk_was_full" in names(directory, "journal")
    assert "interrupted" not in names(directory, "state")
    reader = JournalReader(directory)
    assert all(reader.histograms(window)["publish"].count == 500 for window in reader.windows())
    assert (list(reader.events()) != [], reader.faults) == (True, [])
    assert status(directory).verdict is VerdictName.PASS
    assert report(directory)["verdict"]["name"] == "pass"


def test_a_load_that_ends_on_a_full_disk_waits_for_room(disk: SmallDisk) -> None:
    directory = queue_run(disk.path / "late", window="1s", phases={"soak": "6s"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    heartbeat = Heartbeat.read(directory)
    assert heartbeat is not None
    assert heartbeat.engine is not None
    engine = heartbeat.engine
    disk.fill()
    wait_until(lambda: not engine.is_alive(), "the engine's end")
    assert worker.poll() is None
    disk.free()
    assert worker.wait(90) == 0
    finished = status(directory)
    assert (finished.state, finished.verdict) == (RunState.FINISHED, VerdictName.PASS), finished.reasons
    assert window_count(directory) == 6


def test_windows_that_a_disk_never_had_room_for_are_a_gap_that_says_so(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(without_patience(disk.path / "impatient")))
    directory = queue_run(disk.path / "lost", window="500ms", phases={"soak": "5s"})
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    disk.fill()
    wait_until(lambda: bool(no_longer_grows(directory)), "the engine's end")
    time.sleep(FULL_SECONDS)  # the journal cannot say that it was given up, which takes no time here
    disk.free()
    assert worker.wait(90) == 0
    assert names(directory, "gap") == [commit.JOURNAL_FULL]
    assert "disk_was_full" in names(directory, "journal")
    assert [gap["reason"] for gap in report(directory)["coverage"]["gaps"]] == [commit.JOURNAL_FULL]
    assert status(directory).verdict is VerdictName.INVALID


def without_patience(directory: Path) -> Path:
    """For PYTHONPATH: workers that do not wait for room once the load is over."""
    directory.mkdir()
    change = "from cliffwatch.coordinator import commit\ncommit.PATIENCE_SECONDS = 0.0\n"
    (directory / "sitecustomize.py").write_text(change)
    return directory


def test_windows_that_memory_has_no_room_for_are_a_gap(disk: SmallDisk) -> None:
    """In virtual time hours pass while the disk is full."""
    directory = queue_run(
        disk.path / "lost", {"time": "virtual"}, window="10s", phases={"soak": "6h", "cool_down": "0s"}
    )
    worker = start_worker(directory)
    wait_until(lambda: window_count(directory) >= 2, "a second window")
    disk.fill()
    wait_until(lambda: bool(no_longer_grows(directory)), "the engine's end")
    disk.free()
    assert worker.wait(90) == 0
    gaps = [event for event in events(directory) if event.name == commit.JOURNAL_FULL]
    measured = window_count(directory) * 10.0
    assert sum(gap.detail["seconds"] for gap in gaps) == pytest.approx(6 * 3600 - measured)
    assert status(directory).verdict is VerdictName.INVALID


def no_longer_grows(directory: Path) -> bool:
    heartbeat = Heartbeat.read(directory)
    return heartbeat is not None and (heartbeat.engine is None or not heartbeat.engine.is_alive())


def test_a_disk_that_is_full_from_the_start_costs_a_worker_and_not_the_run(disk: SmallDisk) -> None:
    # In virtual time, since on a busy machine a short load may be over before its engine starts.
    directory = queue_run(disk.path / "early", {"time": "virtual"}, window="10s", phases={"soak": "10m"})
    disk.fill()
    assert start_worker(directory).wait(60) != 0
    disk.free()
    assert execute_run(directory).verdict is VerdictName.PASS
