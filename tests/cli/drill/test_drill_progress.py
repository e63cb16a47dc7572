"""What is said while a drill goes on, and what is kept to judge it by."""

from pathlib import Path
from typing import Any

import pytest

from cliffwatch.base.clock import VirtualClock
from cliffwatch.cli.drill.progress import DrillProgress, DriveFigures, DriveMeter, WindowFigures
from cliffwatch.cli.live import EventSeen, RunSeen, WindowSeen
from cliffwatch.labs.aging.lifecycle import AgingDrive

MIB = 1024.0**2
RUN: dict[str, Any] = {"state": "running", "phase": "soak", "elapsed_seconds": 7.0, "planned_seconds": 60.0}


class Meter(DriveMeter):
    """A drive that counts what it is given."""

    def __init__(self, *figures: DriveFigures | None) -> None:
        self._figures = iter(figures)

    def read(self) -> DriveFigures | None:
        return next(self._figures)


def window(seconds: float, phase: str = "soak", **p99: float) -> WindowSeen:
    latency = {name: {"p50": value / 2, "p99": value} for name, value in p99.items()}
    counters = {"bytes": int(20 * MIB), "operations": 320}
    return WindowSeen(
        {"seq": 1, "start": seconds, "end": seconds + 1, "phase": phase, "counters": counters, "latency": latency}
    )


def test_a_line_shows_the_client_and_the_drive_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    clock = VirtualClock(0.0)
    course = DrillProgress(Meter(DriveFigures(0, 0, 0.5), DriveFigures(10 * MIB, 27 * MIB, 0.006)), clock)
    course.take(RunSeen(RUN))
    course.take(window(0, append=0.004))
    clock.sleep(5)
    course.take(window(5, append=2.5, sync=0.001))
    last = capsys.readouterr().err.splitlines()[-1]
    shown = "12 s soak p99 2.5 s 20.0 MiB/s write amplification 2.70 (last 10 s) free blocks 0.6 %"
    assert last.split() == shown.split()
    assert course.windows == [WindowFigures("soak", 0.004), WindowFigures("soak", 2.5)]
    assert course.amplifications == [("soak", 2.7)]


def test_write_amplification_is_that_of_the_last_seconds_only() -> None:
    clock = VirtualClock(0.0)
    figures = [DriveFigures(step * MIB, (step if step < 20 else 20 + 3 * (step - 20)) * MIB, 0.1) for step in range(40)]
    course = DrillProgress(Meter(*figures), clock)
    for second in range(40):
        course.take(window(second, append=0.004))
        clock.sleep(1)
    assert [value for _, value in course.amplifications][:10] == [1.0] * 10
    assert course.amplifications[-1][1] == 3.0


def test_a_drive_that_does_not_answer_costs_its_figures_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    course = DrillProgress(Meter(None), VirtualClock(0.0))
    course.take(window(0, append=0.004))
    assert course.amplifications == []
    assert "write amplification" not in capsys.readouterr().err
    assert [each.p99_seconds for each in course.windows] == [0.004]


def test_a_drive_that_is_gone_does_not_answer() -> None:
    drive = AgingDrive("gone", "S1", Path("/nonexistent"), "loop7", 1, None, "http://127.0.0.1:9", False)
    assert DriveMeter(drive).read() is None


def test_alerts_are_shown_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    course = DrillProgress(Meter(), VirtualClock(0.0))
    detail = {"status": "firing", "severity": "critical", "summary": "The run's latency fell off a cliff."}
    course.take(EventSeen({"type": "alert", "name": "CliffwatchLatencyCliff", "detail": detail}))
    assert capsys.readouterr().err == (
        "  alert: CliffwatchLatencyCliff (firing, critical): The run's latency fell off a cliff.\n"
    )


def test_a_stall_is_said_in_the_place_of_what_was_completed_meanwhile(capsys: pytest.CaptureFixture[str]) -> None:
    course = DrillProgress(Meter(DriveFigures(0, 0, 0.5)), VirtualClock(0.0))
    seen = window(0, write=0.07)
    seen.window["counters"]["operations"] = 0
    seen.window["gauges"] = {"oldest_outstanding_seconds": 12.0}
    course.take(RunSeen(RUN))
    course.take(seen)
    assert "stalled, oldest operation due for 12 s" in course._line()
    assert [each.p99_seconds for each in course.windows] == [None]


def test_a_window_without_latency_has_none() -> None:
    course = DrillProgress(Meter(None), VirtualClock(0.0))
    course.take(window(0))
    assert [each.p99_seconds for each in course.windows] == [None]
