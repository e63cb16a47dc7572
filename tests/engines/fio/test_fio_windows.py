"""Cumulative snapshots made into windows: on the grid, nothing lost, nothing twice, nothing invented."""

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.fio.conftest import START, MakeContext, MakeDocument

from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.fio.output import MESSAGES_LIMIT, FioTranslator, SnapshotClock
from cliffwatch.engines.fio.snapshot import LAST_BIN_NANOSECONDS, Snapshot, read_snapshot
from cliffwatch.engines.fio.stream import OutputStream
from cliffwatch.model.window import EngineEnd, EngineEvent, EngineRecord, EngineWindow

FAST, SLOW = 100_000, 3_000_000


def windows_of(records: list[EngineRecord]) -> list[EngineWindow]:
    return [record for record in records if isinstance(record, EngineWindow)]


def events_of(records: list[EngineRecord]) -> list[EngineEvent]:
    return [record for record in records if isinstance(record, EngineEvent)]


def lines_of(records: list[EngineRecord]) -> list[tuple[float, float]]:
    """Bounds of the windows, since START."""
    return [(window.start - START, window.end - START) for window in windows_of(records)]


def total(windows: list[EngineWindow]) -> tuple[Counter[str], dict[str, Histogram]]:
    counters: Counter[str] = Counter()
    latency: dict[str, Histogram] = {}
    for window in windows:
        counters.update(window.counters)
        for name, histogram in window.latency.items():
            latency.setdefault(name, Histogram()).merge(histogram)
    return counters, latency


def test_each_interval_becomes_a_window_with_its_own_latencies(context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context())
    records = translator.feed(document(1.15, 1.0, write={FAST: 10}, sync={FAST: 10}), START + 1.15)
    records += translator.feed(document(2.15, 2.0, write={FAST: 10, SLOW: 5}, sync={FAST: 15}), START + 2.15)
    first, second = windows_of(records)
    assert lines_of(records) == [(0, 1), (1, 2)]
    assert first.counters == {
        "operations": 10,
        "bytes": 40960,
        "errors": 0,
        "written_bytes": 40960,
        "read_bytes": 0,
        "write_operations": 10,
        "read_operations": 0,
        "sync_operations": 10,
    }
    assert second.counters["operations"] == 5
    assert second.latency["write"].percentiles_seconds([0.01])[0] == pytest.approx(SLOW / 1e9, rel=0.001)
    assert "read" not in second.latency
    assert first.gauges["measured_seconds"] == 1.0


def test_the_first_window_says_how_little_of_it_was_measured(context: MakeContext, document: MakeDocument) -> None:
    records = FioTranslator(context()).feed(document(1.15, 0.85, write={FAST: 3}), START + 1.15)
    (window,) = windows_of(records)
    assert window.gauges["measured_seconds"] == pytest.approx(0.85)


def test_reports_before_the_first_io_make_no_window(context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context())
    records = [record for at in (1.2, 2.2, 3.2) for record in translator.feed(document(at, 0), START + at)]
    assert records == []
    records = translator.feed(document(4.2, 0.9, write={FAST: 3}), START + 4.2)
    assert lines_of(records) == [(3, 4)]
    # Ten seconds were asked for, and begin where the first I/O does.
    assert [event.detail for event in events_of(records)] == [{"start": START + 3}]
    records = translator.feed(document(12.2, 8.9, write={FAST: 6}), START + 12.2)
    assert lines_of(records) == [(4, 12)]


def test_a_window_that_completed_nothing_says_how_old_the_oldest_io_is_at_least(
    context: MakeContext, document: MakeDocument
) -> None:
    """Where the job paces itself more slowly than that, or in a way that is not known, fio cannot report it."""

    def ages(pause_seconds: float | None) -> list[float | None]:
        translator = FioTranslator(context(), pause_seconds)
        records = [
            record
            for at, count in ((1.15, 5), (2.15, 5), (3.15, 5), (4.15, 6))
            for record in translator.feed(document(at, at - 0.15, write={FAST: count}), START + at)
        ]
        windows = windows_of(records)
        assert [window.counters["operations"] for window in windows] == [5, 0, 0, 1]
        return [window.gauges.get("oldest_outstanding_seconds") for window in windows]

    assert ages(0.0) == ages(0.1) == [None, 1.0, 2.0, None]
    assert ages(0.5) == ages(None) == [None] * 4


def test_a_late_report_makes_one_window_of_all_the_intervals_it_covers(
    context: MakeContext, document: MakeDocument
) -> None:
    translator = FioTranslator(context())
    translator.feed(document(1.1, 1.0, write={FAST: 10}), START + 1.1)
    records = translator.feed(document(4.1, 4.0, write={FAST: 10, SLOW: 2}), START + 4.1)
    assert lines_of(records) == [(1, 4)]
    assert windows_of(records)[0].counters["operations"] == 2
    assert windows_of(records)[0].gauges["measured_seconds"] == 3.0
    assert events_of(records) == [EngineEvent(START + 4, "snapshot_late", {"windows": 3})]


def test_a_report_too_soon_after_a_late_one_goes_into_the_next_window(
    context: MakeContext, document: MakeDocument
) -> None:
    translator = FioTranslator(context())
    reports = [(1.1, 1), (3.9, 2), (4.1, 3), (5.1, 4)]
    records = [
        record
        for at, count in reports
        for record in translator.feed(document(at, at - 0.1, write={FAST: count}), START + at)
    ]
    assert lines_of(records) == [(0, 1), (1, 4), (4, 5)]
    assert [window.counters["operations"] for window in windows_of(records)] == [1, 1, 2]


def test_a_timer_that_a_stall_moved_keeps_giving_a_window_each(context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context(seconds=20))
    records = [
        record
        for count, at in enumerate([1.1, 4.55, 5.55, 6.55, 7.5, 8.6, 9.55], start=1)
        for record in translator.feed(document(at, at - 0.1, write={FAST: count}), START + at)
    ]
    assert lines_of(records) == [(0, 1), (1, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)]


def test_jitter_between_two_lines_moves_no_window(context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context(seconds=20))
    records = [
        record
        for count, at in enumerate([1.5, 2.52, 3.48, 4.5, 5.47, 6.53], start=1)
        for record in translator.feed(document(at, at - 0.4, write={FAST: count}), START + at)
    ]
    assert lines_of(records) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]
    assert [event.name for event in events_of(records)] == ["begun"]


def test_a_report_that_came_late_does_not_make_the_next_window_less_measured(
    context: MakeContext, document: MakeDocument
) -> None:
    translator = FioTranslator(context(seconds=20))
    records = [
        record
        for count, at in enumerate([1.1, 2.18, 3.1, 4.15, 5.1], start=1)
        for record in translator.feed(document(at, at - 0.2, write={FAST: count}), START + at)
    ]
    assert [window.gauges["measured_seconds"] for window in windows_of(records)] == [0.9, 1.0, 1.0, 1.0, 1.0]


def test_the_last_report_closes_the_last_window_once(context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context(seconds=3))
    reports = [(1.15, 10), (2.15, 20), (3.15, 30), (3.2, 31)]
    records = [
        record
        for at, count in reports
        for record in translator.feed(document(at, at - 0.15, write={FAST: count}), START + at)
    ]
    records += translator.finish(0)
    assert lines_of(records) == [(0, 1), (1, 2), (2, 3)]
    assert [window.counters["operations"] for window in windows_of(records)] == [10, 10, 11]
    assert records[-1] == EngineEnd("completed")


def test_fio_output_after_a_stop_is_a_window_with_a_short_measured_time(
    context: MakeContext, document: MakeDocument
) -> None:
    translator = FioTranslator(context())
    records = translator.feed(document(1.15, 1.0, write={FAST: 10}), START + 1.15)
    records += translator.feed(document(1.35, 1.2, write={FAST: 12}), START + 1.35)
    records += translator.finish(128)
    assert lines_of(records) == [(0, 1), (1, 2)]
    assert windows_of(records)[1].counters["operations"] == 2
    assert windows_of(records)[1].gauges["measured_seconds"] == pytest.approx(0.2)
    assert records[-1] == EngineEnd("completed")


@pytest.mark.parametrize("lost", ["fewer", "gone"])
def test_counts_that_went_back_are_an_event_and_not_a_window(
    lost: str, context: MakeContext, document: MakeDocument
) -> None:
    translator = FioTranslator(context())
    translator.feed(document(1.1, 1.0, write={FAST: 10, SLOW: 2}), START + 1.1)
    less = {FAST: 9, SLOW: 9} if lost == "fewer" else {FAST: 20}
    records = translator.feed(document(2.1, 2.0, write=less), START + 2.1)
    assert records == [EngineEvent(START + 2, "counters_went_back", {"what": "latencies of write", "since": START + 1})]
    records = translator.feed(
        document(3.1, 3.0, write={value: count + 1 for value, count in less.items()}), START + 3.1
    )
    assert lines_of(records) == [(2, 3)]
    assert windows_of(records)[0].counters["operations"] == len(less)


def test_bytes_that_went_back_are_an_event_too(context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context())
    translator.feed(document(1.1, 1.0, write={FAST: 1}), START + 1.1)
    same_bins_fewer_bytes = document(2.1, 2.0, write={FAST: 1}).replace(b'"io_bytes": 4096', b'"io_bytes": 96')
    (event,) = translator.feed(same_bins_fewer_bytes, START + 2.1)
    assert isinstance(event, EngineEvent)
    assert (event.name, event.detail["what"]) == ("counters_went_back", "bytes by 4000")


def test_a_latency_beyond_fio_s_scale_is_kept_at_its_true_length_and_reported(
    context: MakeContext, document: MakeDocument
) -> None:
    translator = FioTranslator(context())
    translator.feed(document(1.1, 1.0, write={FAST: 10}), START + 1.1)
    bins = {FAST: 10, LAST_BIN_NANOSECONDS: 2}
    records = translator.feed(document(2.1, 2.0, write=bins, longest=26_000_000_000), START + 2.1)
    (window,) = windows_of(records)
    assert window.latency["write"].count == 2
    assert window.latency["write"].max_seconds == pytest.approx(26, rel=0.001)
    assert events_of(records) == [EngineEvent(START + 2, "latency_beyond_scale", {"operation": "write", "count": 2})]


def test_messages_are_events_up_to_a_limit_and_explain_a_failure(context: MakeContext) -> None:
    translator = FioTranslator(context())
    text = "".join(f"fio: trouble {number}\n" for number in range(MESSAGES_LIMIT + 7))
    records = translator.feed(text.encode(), START + 1)
    assert len(records) == MESSAGES_LIMIT
    assert records[0] == EngineEvent(START + 1, "fio_message", {"message": "fio: trouble 0"})
    dropped, end = translator.finish(1)
    assert dropped == EngineEvent(START + 1, "fio_messages_dropped", {"count": 7})
    assert isinstance(end, EngineEnd)
    assert end.status == "failed"
    assert end.message.startswith("fio exited with status 1: ")
    assert end.message.endswith(f"fio: trouble {MESSAGES_LIMIT + 6}")


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (0, EngineEnd("failed", "fio ended 10 s before the load's end, as if its jobs were done")),
        (128, EngineEnd("completed")),
        (-2, EngineEnd("completed")),
        (-9, EngineEnd("failed", "fio was killed by signal 9")),
        (3, EngineEnd("failed", "fio exited with status 3")),
    ],
)
def test_the_exit_status_is_the_end(status: int, end: EngineEnd, context: MakeContext) -> None:
    assert FioTranslator(context()).finish(status) == [end]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(22, "a larger `bs`, or direct=0"), (1, "libaio instead"), (38, "another `ioengine`"), (13, "owner and modes")],
)
def test_an_error_that_stays_is_not_tried_again_and_says_what_to_change(
    number: int, remedy: str, context: MakeContext
) -> None:
    translator = FioTranslator(context())
    said = f"fio: pid=7, err={number}/file:io_u.c:1845, func=io_u error, error=what the system says\n".encode()
    translator.feed(said, START + 0.1)
    *_, end = translator.finish(1)
    assert isinstance(end, EngineEnd)
    assert (end.status, end.restart) == ("failed", False)
    assert remedy in end.message


def test_an_error_of_the_drive_and_one_after_work_was_done_are_tried_again(
    context: MakeContext, document: MakeDocument
) -> None:
    lost = b"fio: pid=7, err=5/file:io_u.c:1845, func=io_u error, error=Input/output error\n"
    invalid = lost.replace(b"err=5", b"err=22")
    for before, said in ((b"", lost), (document(1.05, 1.0, write={FAST: 3}), invalid)):
        translator = FioTranslator(context())
        translator.feed(before, START + 1.05)
        translator.feed(said, START + 1.1)
        *_, end = translator.finish(1)
        assert isinstance(end, EngineEnd)
        assert end.restart


@pytest.mark.parametrize("output", [b'{\n  "jobs" : 3\n}\n', b"{\n}\n", b'{\n  "a" : oops\n}\n'])
def test_unintelligible_fio_output_is_an_event(output: bytes, context: MakeContext) -> None:
    (event,) = FioTranslator(context()).feed(output, START + 1)
    assert isinstance(event, EngineEvent)
    assert event.name == "output_not_understood"


def test_a_reader_that_was_held_up_moves_no_window(context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context())
    records = translator.feed(document(1.1, 1.0, write={FAST: 1}), START + 1.1)
    late = b"".join(document(at, at - 0.1, write={FAST: round(at)}) for at in (2.1, 3.1, 4.1))
    records += translator.feed(late, START + 4.4)
    assert lines_of(records) == [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize("step", [-3600.0, -0.7, 3600.0])
def test_a_wall_clock_that_is_set_moves_no_window(step: float, context: MakeContext, document: MakeDocument) -> None:
    translator = FioTranslator(context())
    records = []
    for count in range(1, 7):
        at = count + 0.1
        fio_at = at + (step if count > 3 else 0)
        records += translator.feed(document(fio_at, at - 0.1, write={FAST: count}), START + at)
    assert lines_of(records) == [(line, line + 1) for line in range(6)]


def test_a_clock_takes_the_shortest_delay_for_the_true_one() -> None:
    clock = SnapshotClock(0.5)
    delays = [0.3, 0.1, 2.0]
    placed = [clock.place(Snapshot(float(at), float(at)), at + delay) for at, delay in enumerate(delays)]
    assert placed == [0.3, 1.1, 2.1]


BINS = st.dictionaries(st.sampled_from([5_000, FAST, 250_000, SLOW, LAST_BIN_NANOSECONDS]), st.integers(1, 50))
REPORTS = st.lists(st.tuples(BINS, BINS, BINS, st.floats(0.02, 3.5)), min_size=1, max_size=25)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(reports=REPORTS, startup=st.floats(0, 0.9))
def test_windows_sum_to_fio_s_total_whatever_its_timer_does(
    reports: list[Any], startup: float, context: MakeContext, document: MakeDocument
) -> None:
    translator = FioTranslator(context(seconds=30))
    so_far: dict[str, Counter[int]] = {"write": Counter({FAST: 1}), "read": Counter(), "sync": Counter()}
    at, records = startup, []
    for write, read, sync, later in reports:
        at += later
        for name, bins in (("write", write), ("read", read), ("sync", sync)):
            so_far[name].update(bins)
        runtime = max(0.001, at - startup)
        records += translator.feed(
            document(at, runtime, **{name: dict(bins) for name, bins in so_far.items()}), START + at
        )
    records += translator.finish(0)
    windows = windows_of(records)
    counters, latency = total(windows)
    for name, bins in so_far.items():
        assert counters[f"{name}_operations"] == bins.total()
        assert (latency[name].count if name in latency else 0) == bins.total()
        for value, count in bins.items():
            assert latency[name].cumulative_counts([value * 1.2 / 1e9])[0] == sum(
                other for nanoseconds, other in bins.items() if nanoseconds <= value
            ), (value, count)
    assert counters["bytes"] == 4096 * (so_far["write"].total() + so_far["read"].total())
    # The clock learns the true delay as it goes, so the span is known only as well as the timestamps are.
    assert sum(window.gauges["measured_seconds"] for window in windows) <= at - startup + 0.1
    for earlier, later_window in itertools.pairwise(windows):
        assert earlier.end == later_window.start
    for window in windows:
        assert window.start < window.end
        assert (window.start - START) % 1 == (window.end - START) % 1 == 0
        assert window.start >= START
        assert window.end <= START + 30
        assert 0 <= window.gauges["measured_seconds"] <= window.end - window.start
        assert min(window.counters.values()) >= 0


@pytest.mark.parametrize("name", ["three_seconds", "interrupted"])
def test_windows_of_real_output_sum_to_its_last_report(
    name: str, request: pytest.FixtureRequest, context: MakeContext
) -> None:
    output: bytes = request.getfixturevalue(name)
    reports = [piece for piece in OutputStream().feed(output) if isinstance(piece, dict)]
    begun = int(reports[0]["timestamp_ms"] / 1000) - 1.0
    translator = FioTranslator(context(start=begun))
    records = translator.feed(output, reports[-1]["timestamp_ms"] / 1000) + translator.finish(0)
    counters, latency = total(windows_of(records))
    (job,) = reports[-1]["jobs"]
    assert counters["write_operations"] == job["write"]["total_ios"] > 0
    assert counters["read_operations"] == job["read"]["total_ios"] > 0
    assert counters["sync_operations"] == job["sync"]["lat_ns"]["N"] > 0
    assert counters["written_bytes"] == job["write"]["io_bytes"]
    assert counters["read_bytes"] == job["read"]["io_bytes"]
    assert latency["write"].count == job["write"]["total_ios"]
    assert latency["write"].max_seconds == pytest.approx(job["write"]["lat_ns"]["max"] / 1e9, rel=0.02)


def test_completion_latency_stands_in_where_fio_did_not_bin_the_total(three_seconds: bytes) -> None:
    report = next(piece for piece in OutputStream().feed(three_seconds) if isinstance(piece, dict))
    (job,) = report["jobs"]
    expected = read_snapshot(report).write
    job["write"]["clat_ns"], job["write"]["lat_ns"] = job["write"]["lat_ns"], {}
    assert read_snapshot(report).write == expected
