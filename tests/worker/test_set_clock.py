"""The wall clock is set, or the machine sleeps, while a run goes on: its time line is as it was."""

import os
import signal
from pathlib import Path

import pytest
from testkit.waiting import wait_until
from testkit.worker_runs import (
    assert_no_window_twice,
    events,
    names,
    queue_run,
    start_worker,
    status,
    undisturbed,
    window_count,
)

from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader
from cliffwatch.model.run_state import VerdictName

WINDOW_SECONDS, WINDOWS = 0.5, 12
#: Each Python process that has this beside its modules reads the wall clock as far off as the file says, and the clock
#: that goes on while the machine sleeps as far as its second word says.
OFF = """
import os, time
wall, any_clock = time.time, time.clock_gettime
def off(which):
    with open(os.environ["CLOCK_OFF"]) as file:
        return float(file.read().split()[which])
time.time = lambda: wall() + off(0)
time.clock_gettime = lambda clock: any_clock(clock) + (off(1) if clock == time.CLOCK_BOOTTIME else 0.0)
"""


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the seconds that the clocks of the processes started from now on are off."""
    modules, off = tmp_path / "modules", tmp_path / "off"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(OFF)
    set_clock(off, 0.0)
    monkeypatch.setenv("CLOCK_OFF", str(off))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(modules), os.environ.get("PYTHONPATH")))))
    return off


def set_clock(off: Path, seconds: float, slept: float = 0.0) -> None:
    unfinished = off.with_suffix(".unfinished")
    unfinished.write_text(f"{seconds} {slept}")
    unfinished.replace(off)


def run_with_clock(tmp_path: Path, clock: Path, seconds: float, slept: float = 0.0) -> Path:
    """The journal of a run during which the clock is set by so much."""

    def attempt(number: int) -> list[Path]:
        set_clock(clock, 0.0)
        phases = {"soak": f"{WINDOWS * WINDOW_SECONDS:g}s"}
        journal = queue_run(tmp_path / f"run-{number}", window=f"{WINDOW_SECONDS:g}s", phases=phases)
        worker = start_worker(journal)
        try:
            wait_until(lambda: window_count(journal) >= 3, "a third window")
            set_clock(clock, seconds, slept)
            assert worker.wait(90) == 0
        finally:
            worker.kill()
        return [journal]

    (journal,) = undisturbed(attempt)
    return journal


@pytest.mark.parametrize("seconds", [3600.0, -3600.0], ids=["ahead", "back"])
def test_a_clock_that_is_set_in_mid_run_moves_no_window_and_loses_none(
    tmp_path: Path, clock: Path, seconds: float
) -> None:
    journal = run_with_clock(tmp_path, clock, seconds)
    assert shifts(journal) == {"wall_clock_jumped": pytest.approx(seconds, abs=1.0)}
    assert_no_window_twice(journal)
    assert places_on_the_grid(journal) == list(range(WINDOWS))
    assert names(journal, "gap") == []
    assert status(journal).verdict is VerdictName.PASS, status(journal).reasons


def test_a_machine_that_sleeps_in_mid_run_moves_no_window_and_loses_none(tmp_path: Path, clock: Path) -> None:
    """The monotonic clock stands still meanwhile, and the wall clock is found ahead of it."""
    journal = run_with_clock(tmp_path, clock, 3600.0, slept=3600.0)
    assert shifts(journal) == {"machine_suspended": pytest.approx(3600.0, abs=1.0)}
    assert_no_window_twice(journal)
    assert places_on_the_grid(journal) == list(range(WINDOWS))
    assert names(journal, "gap") == []
    assert status(journal).verdict is VerdictName.PASS, status(journal).reasons


@pytest.mark.parametrize("seconds", [3600.0, -3600.0], ids=["ahead", "back"])
def test_an_engine_that_is_started_after_the_clock_was_set_has_the_time_of_its_worker(
    tmp_path: Path, clock: Path, seconds: float
) -> None:
    journal = queue_run(tmp_path / "run", window=f"{WINDOW_SECONDS:g}s", phases={"soak": "10s"})
    worker = start_worker(journal)
    try:
        wait_until(lambda: window_count(journal) >= 3, "a third window")
        set_clock(clock, seconds)
        heartbeat = Heartbeat.read(journal)
        assert heartbeat is not None
        assert heartbeat.engine is not None
        heartbeat.engine.send(signal.SIGKILL)
        assert worker.wait(90) == 0
    finally:
        worker.kill()
    assert "engine_restarted" in names(journal, "gap")
    assert_no_window_twice(journal)
    places = places_on_the_grid(journal)
    assert places[-1] == 19
    assert set(places) < set(range(20))
    assert len(places) > 10


def shifts(journal: Path) -> dict[str, object]:
    """Seconds by what moved the clock."""
    return {event.name: event.detail["seconds"] for event in events(journal) if event.type == "clock"}


def places_on_the_grid(journal: Path) -> list[int]:
    """Of each window, how many of its length it lies behind the first one."""
    windows = list(JournalReader(journal).windows())
    first = windows[0].start
    places = [round((window.start - first) / WINDOW_SECONDS) for window in windows]
    for place, window in zip(places, windows, strict=True):
        # A relative tolerance would be longer than the step.
        assert abs(window.start - first - place * WINDOW_SECONDS) < 0.001
        assert abs(window.end - window.start - WINDOW_SECONDS) < 0.001
    assert abs(first / WINDOW_SECONDS - round(first / WINDOW_SECONDS)) < 0.002
    return places
