"""Progress: what the lines say, and how often."""

import io
from typing import Any

import pytest
from rich.console import Console

from cliffwatch.base.clock import SystemClock, VirtualClock
from cliffwatch.cli.live import EventSeen, KeepAlive, RunNotice, RunSeen, WindowSeen
from cliffwatch.cli.progress import (
    BarDisplay,
    LineDisplay,
    Notices,
    Picture,
    display_for,
    run_figures,
    span_seconds,
    update_text,
)
from cliffwatch.cli.runs import _facts_of


def run(**more: Any) -> dict[str, Any]:
    return {"id": "a", "state": "running", "phase": "soak", "elapsed_seconds": 30, "planned_seconds": 120} | more


def window(**more: Any) -> dict[str, Any]:
    return {
        "seq": 3,
        "start": "2026-11-21T07:00:00Z",
        "end": "2026-11-21T07:00:10Z",
        "phase": "soak",
        "counters": {"operations": 5000, "bytes": 10 * 1024**2, "errors": 2},
        "latency": {"write": {"p50": 0.0012, "p99": 0.0345}, "sync": {"p50": 0.1, "p99": 0.2}},
    } | more


def test_a_line_has_phase_time_latency_throughput_and_errors() -> None:
    clock = VirtualClock(100.0)
    picture = Picture(clock)
    picture.take(RunSeen(run()))
    clock.sleep(30.0)
    picture.take(WindowSeen(window()))
    assert picture.line() == (
        "soak  50 %  elapsed 1m  remaining 1m  write p50 1.2 ms  p99 34.5 ms  1.0 MiB/s  operations 500 /s  errors 2"
    )


def test_while_no_window_comes_the_line_says_for_how_long() -> None:
    clock = VirtualClock(100.0)
    picture = Picture(clock)
    picture.take(RunSeen(run()))
    picture.take(WindowSeen(window()))
    seconds = span_seconds(window())
    clock.sleep(3 * seconds)
    assert "no window" not in picture.line()
    clock.sleep(38.0 - 3 * seconds)
    assert "no window for 38 s, before: write p50 1.2 ms" in picture.line()
    picture.take(WindowSeen(window()))
    assert "no window" not in picture.line()


def test_a_finished_run_is_shown_by_its_own_figures_and_not_by_its_last_window() -> None:
    figures = {
        "latency": "write",
        "p50_seconds": 0.001,
        "p99_seconds": 0.02,
        "max_seconds": None,
        "operations_per_second": 200.0,
        "bytes_per_second": 1024.0**2,
    }
    picture = Picture(VirtualClock(0.0))
    picture.take(WindowSeen(window()))
    picture.take(RunSeen(run(state="finished", elapsed_seconds=120, figures=None)))
    assert "write p50 1.2 ms  p99 34.5 ms" in picture.line()
    picture.take(RunSeen(run(state="finished", elapsed_seconds=120, figures=figures)))
    assert picture.line() == (
        "finished  100 %  elapsed 2m  whole run: write p50 1 ms  p99 20 ms  max –  1.0 MiB/s  operations 200 /s"
    )


def test_a_run_that_goes_on_is_shown_with_its_last_window() -> None:
    going = _facts_of(run(engine="storage", last_window=window()))
    assert going["figures"] == "last window: write p50 1.2 ms  p99 34.5 ms  1.0 MiB/s  operations 500 /s"
    assert "so far" not in going
    assert _facts_of(run(engine="storage", standing="No finding."))["so far"] == "No finding."
    assert _facts_of(run(engine="storage", last_window=None))["figures"] == "–"


def test_a_percentile_at_the_end_of_fio_s_scale_is_at_least_that() -> None:
    far = window(latency={"write": {"p50": 0.001, "p99": 17.2}})
    for engine, words in (("fio", "p50 1 ms  p99 at least 17.2 s"), ("storage", "p50 1 ms  p99 17.2 s")):
        picture = Picture(VirtualClock(0.0))
        picture.take(RunSeen(run(engine=engine)))
        picture.take(WindowSeen(far))
        assert words in picture.line()
        figures = {"latency": "write", "p50_seconds": 0.001, "p99_seconds": 17.2, "max_seconds": 40.0}
        figures |= {"operations_per_second": 1.0, "bytes_per_second": 1.0}
        assert words in run_figures(figures, engine)


@pytest.mark.parametrize(
    ("gauges", "said"),
    [
        ({"oldest_outstanding_seconds": 12.0}, "stalled, oldest operation due for 12 s"),
        ({}, "nothing completed"),
        ({"oldest_outstanding_seconds": 0.0}, "latency p50 –  p99 –"),
    ],
)
def test_a_window_in_which_nothing_was_completed_is_told_as_a_stall(gauges: dict[str, float], said: str) -> None:
    picture = Picture(VirtualClock(0.0))
    picture.take(RunSeen(run()))
    picture.take(WindowSeen(window(counters={"operations": 0, "bytes": 0}, latency={}, gauges=gauges)))
    assert f"  {said}  0 B/s  operations 0 /s  errors 0" in picture.line()


def test_errors_add_up_over_windows_and_a_broken_total_is_not_made_up() -> None:
    picture = Picture(VirtualClock(0.0))
    picture.take(RunSeen(run(planned_seconds=None)))
    assert "no window yet" in picture.line()
    picture.take(WindowSeen(window()))
    picture.take(WindowSeen(window(seq=4, latency={})))
    assert "remaining" not in picture.line()
    assert "latency p50 –  p99 –" in picture.line()
    assert picture.line().endswith("errors 4")


def test_of_a_run_that_was_stopped_early_nothing_remains() -> None:
    picture = Picture(VirtualClock(0.0))
    picture.take(RunSeen(run(state="finished", elapsed_seconds=11.0, planned_seconds=80.0)))
    assert picture.line().startswith("finished  14 %  elapsed 11 s  no window yet")


def test_a_phase_is_written_as_on_the_pages() -> None:
    picture = Picture(VirtualClock(0.0))
    picture.take(RunSeen(run(phase="warm_up")))
    assert picture.line().startswith("warm-up  ")


def test_a_phase_once_reached_is_not_left_backwards() -> None:
    picture = Picture(VirtualClock(0.0))
    picture.take(RunSeen(run(phase="warm_up")))
    picture.take(EventSeen({"type": "phase", "name": "soak", "detail": {}}))
    picture.take(WindowSeen(window(phase="baseline")))
    assert picture.phase == "soak"


def test_time_stands_still_while_no_load_runs() -> None:
    clock = VirtualClock(0.0)
    picture = Picture(clock)
    picture.take(RunSeen(run(state="interrupted")))
    clock.sleep(50.0)
    assert picture.elapsed_seconds == 30
    assert picture.phase == "interrupted"


def test_elapsed_never_passes_what_was_planned() -> None:
    clock = VirtualClock(0.0)
    picture = Picture(clock)
    picture.take(RunSeen(run()))
    clock.sleep(500.0)
    assert (picture.elapsed_seconds, picture.remaining_seconds, picture.ratio) == (120, 0, 1)


def test_without_a_terminal_there_is_a_line_every_ten_seconds_and_at_each_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = VirtualClock(0.0)
    display = LineDisplay(clock)
    for seconds, update in (
        (0, RunSeen(run(state="starting", phase="prepare"))),
        (1, RunSeen(run(phase="baseline"))),
        (1, KeepAlive()),
        (7, KeepAlive()),
        (2, KeepAlive()),
        (1, WindowSeen(window())),
    ):
        clock.sleep(seconds)
        display.show(update)
    said = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert said == ["starting", "baseline", "baseline", "soak"]


def test_the_standing_verdict_is_printed_at_each_change_of_phase_and_every_ten_minutes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = VirtualClock(0.0)
    display = LineDisplay(clock)
    for seconds, phase, standing in (
        (0, "baseline", "Nothing is judged yet."),
        (60, "baseline", "Nothing is judged still."),
        (60, "soak", "No finding."),
        (599, "soak", "No finding in 10m."),
        (1, "soak", "No cliff."),
        (1, "soak", ""),
    ):
        clock.sleep(seconds)
        display.show(RunSeen(run(phase=phase, planned_seconds=7200, standing=standing)))
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("No")]
    assert said == ["Nothing is judged yet.", "No finding.", "No cliff."]


def test_gaps_alerts_findings_and_notes_are_progress_lines() -> None:
    gap = EventSeen({"type": "gap", "name": "engine_died", "detail": {"seconds": 2.5, "segments": [1]}})
    assert update_text(gap) == "gap: not measured for 2.5 s: the engine died"
    detail = {
        "status": "firing",
        "severity": "warning",
        "summary": "The queue is full.",
        "starts_at": 1.5,
        "labels": {},
    }
    alert = EventSeen({"type": "alert", "name": "QueueFull", "detail": detail})
    assert update_text(alert) == "alert: QueueFull (firing, warning): The queue is full."
    finding = {"kind": "cliff", "onset": 1.5, "summary": "The publish p99 fell off a cliff."}
    said = update_text(EventSeen({"type": "finding", "name": "cliff", "detail": finding}))
    assert said == "finding: The publish p99 fell off a cliff."
    for name, said in (("finding_updated", "finding, updated: "), ("finding_ended", "finding, over: ")):
        assert (
            update_text(EventSeen({"type": "note", "name": name, "detail": finding})) == f"{said}{finding['summary']}"
        )
    assert update_text(EventSeen({"type": "state", "name": "running", "detail": {}})) is None
    watchers = {"there": ["prometheus", "ebpf_exporter"], "without": {"drive_exporter": "there is no NVMe drive"}}
    said = update_text(EventSeen({"type": "note", "name": "watchers", "detail": watchers}))
    assert said == "note: watchers up: prometheus, ebpf exporter; unavailable: drive exporter (there is no NVMe drive)"
    down = EventSeen(
        {"type": "note", "name": "watcher_down", "detail": {"watcher": "a", "reason": "its process is gone"}}
    )
    assert update_text(down) == "note: watcher a is down: its process is gone"
    levels = EventSeen({"type": "note", "name": "baseline", "detail": {"start": 1.0, "levels": {"write.p99": 0.001}}})
    assert update_text(levels) is None
    verified = EventSeen({"type": "engine", "name": "verified", "detail": {"complete": False, "lost": 0}})
    assert update_text(verified) == "engine: verified: complete no, lost 0"
    assert update_text(RunNotice("the service answers again")) == "the service answers again"


def test_a_terminal_gets_a_bar_and_notices_above_it() -> None:
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=100, legacy_windows=False)
    clock = VirtualClock(0.0)
    with BarDisplay(clock, console) as display:
        display.show(RunSeen(run(standing="No finding in 1m of soak.")))
        display.show(WindowSeen(window()))
        display.show(RunNotice("the service answers again"))
        display.show(RunNotice("a\x1b[2J\u202eb"))
    text = terminal.getvalue()
    assert "a\\u001b[2J\\u202eb" in text
    assert "the service answers again" in text
    assert "25 %" in text
    assert "p99 34.5 ms" in text
    assert "No finding in 1m of soak." in text


def test_output_that_is_no_terminal_gets_lines() -> None:
    assert isinstance(display_for(SystemClock()), LineDisplay)


def test_a_finding_is_stated_again_when_its_size_changed_by_a_factor_or_it_is_about_another_series() -> None:
    key = {"kind": "cliff", "series": "read.p99", "onset": 1.5}
    notices = Notices()
    said: list[str | None] = []
    sizes = [("read", 10, 12), ("read", 13, 15), ("read", 17, 19), ("read", 21, 23)]
    sizes += [("read", 22, 60), ("write", 22, 60)]
    for index, (operation, ratio, worst) in enumerate(sizes):
        detail = {"series": f"{operation}.p99", "ratio": ratio, "worst_ratio": worst, "onset": 1.5, "raised": key}
        type_, name = ("note", "finding_updated") if index else ("finding", "cliff")
        event = {"type": type_, "name": name, "detail": detail | {"summary": f"{operation} {ratio} {worst}"}}
        said.append(notices.text(EventSeen(event)))
    assert [text for text in said if text] == [
        "finding: read 10 12",
        "finding, updated: read 21 23",
        "finding, updated: read 22 60",
        "finding, updated: write 22 60",
    ]
    # What says no size is never held back.
    other = EventSeen({"type": "note", "name": "finding_updated", "detail": {"summary": "Once more."}})
    assert [notices.text(other), notices.text(other)] == ["finding, updated: Once more."] * 2
