"""The wall clock is set while a run goes on: its time line is not."""

import os
from pathlib import Path

import pytest
from testkit.waiting import wait_until
from testkit.worker_runs import assert_no_window_twice, events, names, queue_run, start_worker, status, window_count

from cliffwatch.journal import JournalReader
from cliffwatch.model.run_state import VerdictName

WINDOW_SECONDS, WINDOWS = 0.5, 12
#: Each Python process that has this beside its modules reads the wall clock as far off as the file says.
OFF = """
import os, time
machine = time.time
def off():
    with open(os.environ["CLOCK_OFF"]) as file:
        return machine() + float(file.read())
time.time = off
"""


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the seconds that the wall clock of the processes started from now on is off."""
    modules, off = tmp_path / "modules", tmp_path / "off"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(OFF)
    set_clock(off, 0.0)
    monkeypatch.setenv("CLOCK_OFF", str(off))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(modules), os.environ.get("PYTHONPATH")))))
    return off


def set_clock(off: Path, seconds: float) -> None:
    unfinished = off.with_suffix(".unfinished")
    unfinished.write_text(str(seconds))
    unfinished.replace(off)


@pytest.mark.parametrize("seconds", [3600.0, -3600.0], ids=["ahead", "back"])
def test_a_clock_that_is_set_in_mid_run_moves_no_window_and_loses_none(
    tmp_path: Path, clock: Path, seconds: float
) -> None:
    phases = {"soak": f"{WINDOWS * WINDOW_SECONDS:g}s"}
    journal = queue_run(tmp_path / "run", window=f"{WINDOW_SECONDS:g}s", phases=phases)
    worker = start_worker(journal)
    try:
        wait_until(lambda: window_count(journal) >= 3, "a third window")
        set_clock(clock, seconds)
        assert worker.wait(90) == 0
    finally:
        worker.kill()
    (jump,) = [event for event in events(journal) if event.name == "wall_clock_jumped"]
    assert jump.detail["seconds"] == pytest.approx(seconds, abs=1.0)
    windows = list(JournalReader(journal).windows())
    assert_no_window_twice(journal)
    assert len(windows) == WINDOWS
    first = round(windows[0].start / WINDOW_SECONDS)
    for number, window in enumerate(windows, start=first):
        # A relative tolerance would be longer than the step.
        assert abs(window.start - number * WINDOW_SECONDS) < 0.001
        assert abs(window.end - (number + 1) * WINDOW_SECONDS) < 0.001
    assert names(journal, "gap") == []
    assert status(journal).verdict is VerdictName.PASS, status(journal).reasons
