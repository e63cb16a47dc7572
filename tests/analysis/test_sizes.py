"""One cliff has one size: baseline, level, worst and ratio are the same live, in the metrics and in the report."""

import random
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import pytest
from testkit.recorded_runs import LOAD_START, JournalPlan, at_window, make_journal
from tests.analysis.executed_run import ExecutedRun, execute_plan

from cliffwatch.analysis.sizes import before_rise, recent_baseline
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_latency, format_ratio
from cliffwatch.journal import EventType, JournalReader
from cliffwatch.report.build import Report, build
from cliffwatch.report.html import render

WARM_UP, BASELINE, CLIFF, WINDOWS = 30, 60, 150, 330
OPERATIONS = 300
FACTS = {"target": {"kind": "directory"}, "drives": [{"name": "nvme0n1", "major_minor": "259:0", "serial": "S1"}]}


def append_seconds(index: int) -> float:
    """A noisy baseline that rises a little in the soak; a cliff that eases after 15 windows and comes back worse."""
    noise = random.Random(1000 + index).lognormvariate
    if index < CLIFF:
        return 0.06 * noise(0, 0.5) * (2.0 if index < WARM_UP else 1.0 if index < WARM_UP + BASELINE else 1.4)
    since = index - CLIFF
    return (8.0 if since < 15 else 1.2 if since < 40 else 25.0 if since < 110 else 12.0) * noise(0, 0.25)


def histogram(p99: float, seed: int) -> Histogram:
    found = Histogram()
    spread = np.random.default_rng(seed).lognormal(np.log(p99 / 3), 0.45, OPERATIONS)
    found.record_many(np.rint(spread * 1e9).astype(np.int64))
    return found


def latency(index: int) -> dict[str, Histogram]:
    """`sync` falls five windows after `append`; `read` never does."""
    p99 = {"append": append_seconds(index), "sync": 0.2 * append_seconds(max(0, index - 5)), "read": 0.004}
    return {name: histogram(value, 7 * index + place) for place, (name, value) in enumerate(p99.items())}


def counters(index: int) -> dict[str, int]:
    written = {"written_bytes": OPERATIONS * 16_384, "device_written_bytes": OPERATIONS * 16_384}
    slow = 17.5 if index >= CLIFF - 2 else 0.1
    return written | {"device_write_operations": 200, "device_write_milliseconds": round(200 * slow)}


PLAN = JournalPlan(
    windows=WINDOWS,
    window_seconds=1.0,
    warm_up_windows=WARM_UP,
    baseline_windows=BASELINE,
    target="directory:/data",
    facts=FACTS,
    latency=latency,
    counters=counters,
)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> ExecutedRun:
    return execute_plan(tmp_path_factory.mktemp("sizes"), PLAN)


def the_finding(report: Report) -> dict[str, Any]:
    (found,) = [each for each in report.document["findings"] if each["degrades"]]
    return dict(found)


def test_the_report_the_last_live_finding_and_the_metrics_say_the_same(executed: ExecutedRun) -> None:
    (raised,) = executed.events_named(EventType.FINDING, "cliff")
    last = executed.events_named(EventType.NOTE, "finding_updated")[-1]
    figures = executed.figures[-1]
    assert figures is not None
    ((series, _), size), *others = figures.sizes.items()
    assert not others
    found = the_finding(executed.report)
    assert found["series"] == series == raised["series"] == last["series"] == "append.p99"
    for name, exact in (("baseline", size.baseline.level), ("level", size.level), ("worst", size.worst)):
        assert found[name] == last[name] == pytest.approx(exact, rel=1e-5)
    for name, exact in (("ratio", size.ratio), ("worst_ratio", size.worst_ratio)):
        assert found[name] == pytest.approx(last[name], rel=1e-5)
        assert last[name] == pytest.approx(exact, rel=1e-5)
    times = format_ratio(found["ratio"]).rstrip("×")
    assert f"rose {times}× on " in found["sentence"]
    assert f"rose {times}× (" in last["summary"]


def test_at_the_moment_at_which_it_is_raised_the_metrics_say_what_the_finding_says(executed: ExecutedRun) -> None:
    (raised,) = executed.events_named(EventType.FINDING, "cliff")
    figures = executed.figures[round(raised["detected"] - LOAD_START) - 1]
    assert figures is not None
    (size,) = figures.sizes.values()
    assert raised["ratio"] == pytest.approx(size.ratio, rel=1e-5)
    assert raised["level"] == pytest.approx(size.level, rel=1e-5)


def test_the_figures_are_those_of_the_definition(executed: ExecutedRun) -> None:
    """Worked out once more from the windows of the journal, by the words of docs/detection.md."""
    (raised,) = executed.events_named(EventType.FINDING, "cliff")
    onset = round(raised["onset"] - LOAD_START)
    found = the_finding(executed.report)
    healthy = executed.p99("append", lambda seq: WARM_UP <= seq < WARM_UP + BASELINE)
    since = executed.p99("append", lambda seq: seq >= onset)
    assert found["baseline"] == pytest.approx(median(healthy), rel=0.03)
    assert (found["baseline_start_seconds"], found["baseline_end_seconds"]) == (WARM_UP, WARM_UP + BASELINE)
    assert found["level"] == pytest.approx(median(since[:60]), rel=0.03)
    assert found["worst"] == pytest.approx(max(median(since[at : at + 11]) for at in range(len(since) - 10)), rel=1e-4)
    assert found["ratio"] == pytest.approx(found["level"] / found["baseline"], rel=1e-3)


def test_the_band_is_where_most_windows_of_the_baseline_are(executed: ExecutedRun) -> None:
    found, series = the_finding(executed.report), executed.report.series
    healthy = executed.p99("append", lambda seq: WARM_UP <= seq < WARM_UP + BASELINE)
    inside = [found["baseline_low"] <= value <= found["baseline_high"] for value in healthy]
    assert 0.85 <= sum(inside) / len(inside) < 1.0
    low, *_, high = quantiles(healthy, n=20, method="inclusive")
    assert found["baseline_low"] == pytest.approx(low, rel=0.02)
    assert found["baseline_high"] == pytest.approx(high, rel=0.02)
    (drawn,) = [each for each in series.findings if each["degrades"]]
    assert drawn["baseline_band"] == pytest.approx(
        [found["baseline_low"] * 1e6, found["baseline_high"] * 1e6], rel=1e-3
    )
    column = series.latency["append"]["p99"][WARM_UP : WARM_UP + BASELINE]
    assert sum(drawn["baseline_band"][0] <= (value or 0.0) <= drawn["baseline_band"][1] for value in column) >= 51


def test_a_fall_that_eases_and_comes_back_is_one_finding_that_reports_its_worst(executed: ExecutedRun) -> None:
    found = the_finding(executed.report)
    assert found["onset_seconds"] == pytest.approx(CLIFF, abs=3)
    assert found["worst"] == pytest.approx(25.0, rel=0.2)
    last = executed.events_named(EventType.NOTE, "finding_updated")[-1]["summary"]
    assert "; at worst 2" in last
    assert f" s, {found['worst_ratio']:,.0f}×)" in last


def test_an_operation_that_falls_a_few_windows_later_belongs_to_it_with_its_own_ratio(executed: ExecutedRun) -> None:
    (affected,) = the_finding(executed.report)["affected"]
    assert affected["series"] == "sync.p99"
    (raised,) = executed.events_named(EventType.FINDING, "cliff")
    onset = round(raised["onset"] - LOAD_START)
    healthy = executed.p99("sync", lambda seq: WARM_UP <= seq < WARM_UP + BASELINE)
    since = executed.p99("sync", lambda seq: seq >= onset)
    assert affected["ratio"] == pytest.approx(median(since[:60]) / median(healthy), rel=0.05)
    last = executed.events_named(EventType.NOTE, "finding_updated")[-1]
    assert f"so did the sync p99 ({format_ratio(affected['ratio'])})" in last["summary"]


def test_a_row_of_the_sizes_states_the_worst_only_where_it_is_above_the_level(executed: ExecutedRun) -> None:
    report = executed.report
    (affected,) = the_finding(report)["affected"]

    def at_worst() -> str:
        rows = render(report.document, report.series).partition('<th scope="row">sync p99</th>')[2]
        return rows.partition('data-label="at worst">')[2].partition("</td>")[0]

    assert affected["worst"] > affected["level"]
    assert at_worst() == f"{format_latency(affected['worst'])} ({format_ratio(affected['worst_ratio'])})"
    affected["worst"] = affected["level"]
    assert at_worst() == "–"


def test_a_run_without_a_baseline_yet_is_reported_against_what_it_was_before_the_onset(tmp_path: Path) -> None:
    plan = replace(PLAN, warm_up_windows=0, baseline_windows=0)
    found = the_finding(build(make_journal(tmp_path, plan)))
    windows = list(JournalReader(tmp_path).windows())
    before = [window.latency["append"]["p99"] or 0.0 for window in windows[: round(found["onset_seconds"])]]
    assert found["baseline"] == pytest.approx(median(before), rel=0.05)
    assert at_window(plan, 0) == windows[0].start


LOW, HIGH, HIGHER = [0.0, 0.1, -0.1] * 10, [1.0, 1.1, 0.9] * 10, [3.0, 3.1, 2.9] * 10


@pytest.mark.parametrize(
    ("levels", "healthy"),
    [
        (LOW + LOW, 60),
        (LOW + HIGH, 30),
        (LOW + HIGH + HIGHER, 30),
        (LOW + LOW + HIGH[:6], 60),
        (LOW + LOW + HIGH[:5], 65),
        (LOW[:12] + HIGH + HIGH, 12),
        (LOW[:6] + HIGH + HIGH, 66),
        (LOW + HIGH[:-1], 59),
        (HIGH + LOW, 60),
        (LOW + HIGH + LOW, 90),
        (LOW[:20] + HIGH[:6] + LOW[:10] + HIGHER, 36),
        (LOW + [0.3 + each for each in LOW], 60),
        ([], 0),
    ],
)
def test_a_baseline_is_what_came_before_a_rise_that_lasts_to_its_end(levels: list[float], healthy: int) -> None:
    assert before_rise(np.array(levels)) == healthy


def test_a_baseline_of_recent_windows_leaves_out_what_rose() -> None:
    recent = recent_baseline("p99", [(float(start), level) for start, level in enumerate(LOW + HIGH)])
    assert recent is not None
    assert recent.level == pytest.approx(1.0)
    assert recent.end == 29.0
