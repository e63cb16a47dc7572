"""A workload's limits held against what a run measured, and what the verdict makes of it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from tests.report.documents import document_of
from tests.report.pages import page_of
from tests.report.telemetry_files import write_telemetry

from cliffwatch.base.histogram import Histogram
from cliffwatch.report.limits.results import times_more

MILLISECOND = 1_000_000
BYTES = 1000 * 16_384


def slow_in(windows: range, share: int = 20) -> Callable[[int], dict[str, Histogram]]:
    """Of 1,000 latencies of 2 ms in each window, `share` take 50 ms in some windows."""

    def latency(index: int) -> dict[str, Histogram]:
        slow = share if index in windows else 0
        return {"publish": Histogram.from_values({2 * MILLISECOND: 1000 - slow, 50 * MILLISECOND: slow})}

    return latency


def judged(directory: Path, plan: JournalPlan, *limits: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The document and its limits, of a run of 60 windows of 10 s whose first six are warm-up."""
    plan = replace(plan, windows=60, warm_up_windows=6, limits=limits)
    document = document_of(make_journal(directory, plan))
    return document, document["limits"]


def test_a_span_that_breaks_a_limit_is_listed_with_its_worst_value_and_degrades(tmp_path: Path) -> None:
    document, (row,) = judged(tmp_path, JournalPlan(latency=slow_in(range(30, 34))), "p99 <= 20ms over any 1m")
    assert not row["held"]
    (span,) = row["broken"]
    # 20 of each window's 1,000 are slow: a minute of six windows is above one in a hundred from the fourth of them on.
    assert (span["start_seconds"], span["window_end_seconds"]) == (330.0, 340.0)
    assert (span["end_seconds"], span["worst"]) == (360.0, "50 ms")
    assert document["verdict"]["name"] == "degraded"
    assert '"p99 <= 20ms over any 1m" was broken from 0:05:30 to 0:06:00 (50 ms at worst)' in document["headline"]


def test_a_limit_over_a_long_span_is_broken_at_the_cliff_and_not_a_span_before_it(tmp_path: Path) -> None:
    """40 % are slow from the window 45 on: one such window is enough to break any five minutes that end with it."""
    plan = JournalPlan(latency=slow_in(range(45, 60), share=400))
    document, (row,) = judged(tmp_path, plan, "p99 <= 20ms over any 5m")
    (span,) = row["broken"]
    assert span["start_seconds"] == 450.0
    assert "from 0:07:30 to" in " ".join(document["verdict"]["reasons"])


def stalled_in(windows: range, plan: JournalPlan, age_seconds: float = 10.0) -> JournalPlan:
    """In some windows nothing is completed, and the oldest operation is `age_seconds` older at the end of each."""
    latency = plan.latency
    assert latency is not None
    return replace(
        plan,
        latency=lambda index: {} if index in windows else latency(index),
        counters=lambda index: {"operations": 0, "bytes": 0} if index in windows else {},
        gauges=lambda index: {
            "oldest_outstanding_seconds": age_seconds * (1 + index - windows.start) if index in windows else 0.0
        },
    )


def test_a_stall_is_measured_and_breaks_the_limit_that_its_operations_break(tmp_path: Path) -> None:
    """Of six windows five are stalled: what is completed behind them was due in them."""
    plan = stalled_in(range(30, 35), JournalPlan(latency=slow_in(range(35, 36), share=900)))
    document, (row,) = judged(tmp_path, plan, "p99 <= 20ms over any 1m")
    (span,) = row["broken"]
    assert (span["start_seconds"], span["end_seconds"]) == (350.0, 410.0)
    assert document["verdict"]["name"] == "degraded"


def test_where_nothing_is_completed_the_oldest_operation_breaks_a_limit_by_its_age(tmp_path: Path) -> None:
    plan = stalled_in(range(30, 42), JournalPlan(latency=slow_in(range(0))))
    limits = ("p99 <= 30s over any 1m", "max <= 45s", "p99 of publish <= 30s over any 1m", "p99 <= 200s over any 1m")
    _, (p99, longest, of_an_operation, high) = judged(tmp_path, plan, *limits)
    # The minute that ends with the window 35 holds nothing but what waits, for 60 s by then and 120 s at the end.
    assert [(span["start_seconds"], span["end_seconds"]) for span in p99["broken"]] == [(350.0, 420.0)]
    assert [span["worst"] for span in longest["broken"]] == ["120 s"]
    # Which operation it is that waits is not recorded.
    assert (of_an_operation["held"], high["held"]) == (True, True)


def test_a_maximum_over_the_whole_load_names_the_windows_that_broke_it(tmp_path: Path) -> None:
    slow = slow_in(range(30, 32))
    again = slow_in(range(40, 41))
    plan = JournalPlan(latency=lambda index: again(index) if index == 40 else slow(index))
    document, (row,) = judged(tmp_path, plan, "max <= 20ms")
    spans = [(span["start_seconds"], span["window_end_seconds"], span["end_seconds"]) for span in row["broken"]]
    assert spans == [(300.0, 310.0, 320.0), (400.0, 410.0, 410.0)]
    assert any("was broken from 0:05:00 to 0:05:20" in reason for reason in document["verdict"]["reasons"])


def test_a_limit_over_the_whole_load_is_said_to_be_broken_over_all_of_it(tmp_path: Path) -> None:
    document, (row,) = judged(tmp_path, JournalPlan(latency=slow_in(range(6, 60))), "p99 <= 20ms")
    (span,) = row["broken"]
    assert span["worst"] == "50 ms"
    assert "window_end_seconds" not in span
    assert 'The limit "p99 <= 20ms" was broken over the whole load (50 ms).' in document["verdict"]["reasons"]


def test_percentiles_are_of_the_merged_span_and_not_of_its_windows(tmp_path: Path) -> None:
    """2 % of one window are slow, which is 0.33 % of a minute: the minute's p99 holds, a window's does not."""
    _, rows = judged(
        tmp_path,
        JournalPlan(latency=slow_in(range(30, 31))),
        "p99 <= 20ms over any 1m",
        "p99 <= 20ms over any 10s",
        "max <= 20ms over any 1m",
        "p99.9 <= 20ms over any 1m",
        "p99 <= 20ms",
    )
    assert [row["held"] for row in rows] == [True, False, False, False, True]


def test_the_warm_up_is_not_judged(tmp_path: Path) -> None:
    document, (row,) = judged(tmp_path, JournalPlan(latency=slow_in(range(6), share=900)), "p50 <= 5ms over any 10s")
    warm_up = 6
    assert row == {
        "limit": "p50 <= 5ms over any 10s",
        "held": True,
        "windows": 60 - warm_up,
        "operations": 540_000,
        "margin": "at least 60 % below the bound",
        "broken": [],
    }
    assert document["verdict"]["name"] == "pass"
    words = "Judged by the 54 windows after the warm-up, in which 540,000 operations were completed."
    assert words in page_of(tmp_path)


def test_throughput_below_its_limit_is_reported_with_the_lowest_rate(tmp_path: Path) -> None:
    plan = JournalPlan(counters=lambda index: {"bytes": BYTES * (2 if index in range(40, 52) else 10)})
    _, rows = judged(tmp_path, plan, "throughput >= 10MB/s over any 1m", "throughput >= 10MB/s")
    (span,) = rows[0]["broken"]
    assert span["worst"] == "3.1 MiB/s"
    assert (span["start_seconds"], span["end_seconds"]) == (420.0, 550.0)
    assert rows[1]["held"]


def test_limits_without_enough_measurements_are_not_held(tmp_path: Path) -> None:
    missing = set(range(6, 60, 3))
    document, rows = judged(
        tmp_path,
        JournalPlan(missing=missing),
        "write amplification <= 2",
        "p99 of sync <= 1s",
        "p99 <= 1s over any 1m",
        "throughput >= 1KB/s over any 1m",
    )
    assert [row["held"] for row in rows] == [False] * 4
    assert "media bytes were not recorded" in rows[0]["unjudged"]
    assert "no latency 'sync'" in rows[1]["unjudged"]
    assert "nine tenths" in rows[2]["unjudged"]
    assert "nine tenths" in rows[3]["unjudged"]
    assert document["verdict"]["name"] == "invalid"
    assert any("could not be judged" in reason for reason in document["verdict"]["reasons"])


def test_a_limit_did_not_hold_while_nothing_was_measured(tmp_path: Path) -> None:
    plan = JournalPlan(missing=range(20, 40))
    document, (row, broken) = judged(tmp_path, plan, "p99 <= 20ms over any 1m", "p99 <= 1ms over any 1m")
    assert not row["held"]
    assert "held in what was measured, which is 62.96 % of the time" in row["unjudged"]
    assert document["verdict"]["name"] == "invalid"
    assert broken["broken"], "what was broken is not mended by what was not measured"


@pytest.mark.parametrize(("limit", "held"), [("<= 2", True), ("<= 1.5", False), ("<= 2 over any 1m", False)])
def test_write_amplification_is_that_of_the_span(tmp_path: Path, limit: str, held: bool) -> None:
    plan = JournalPlan(windows=60, warm_up_windows=6, limits=(f"write amplification {limit}",))
    directory = make_journal(tmp_path, plan)
    media = np.concatenate([[0.0], np.cumsum([4.0 if index in range(40, 52) else 1.0 for index in range(60)])])
    series = {
        ("drive_host_written_bytes_total", "nvme0n1"): np.arange(61) * 1e6,
        ("drive_media_written_bytes_total", "nvme0n1"): media * 1e6,
    }
    write_telemetry(directory, LOAD_START, 10.0, {name: values.tolist() for name, values in series.items()})
    (row,) = document_of(directory)["limits"]
    assert row["held"] is held
    assert [span["worst"] for span in row["broken"]] == ([] if held else ["1.67" if "any" not in limit else "4.00"])


def test_no_cliff_holds_while_there_is_none(tmp_path: Path) -> None:
    _, rows = judged(tmp_path, JournalPlan(), "no cliff", "no degradation")
    assert [row["held"] for row in rows] == [True, True]


@pytest.mark.parametrize(("count", "said"), [(1, "once more"), (2, "2 times more"), (1200, "1,200 times more")])
def test_how_often_a_limit_was_broken_besides(count: int, said: str) -> None:
    assert times_more(count) == said


@pytest.mark.parametrize(
    ("limit", "slow", "said"),
    [
        ("p99 <= 20ms", range(60), "The baseline as a whole did not keep it either (50 ms)."),
        ("p99 <= 20ms", range(30, 60), ""),
        (
            "operations >= 5000/s over any 1m",
            range(30, 60),
            "The baseline as a whole did not keep it either (1,000 /s).",
        ),
    ],
)
def test_a_limit_that_the_baseline_had_broken_already_is_said_to_be_so(
    tmp_path: Path, limit: str, slow: range, said: str
) -> None:
    document, _ = judged(tmp_path, JournalPlan(latency=slow_in(slow), baseline_windows=12), limit)
    (reason,) = (reason for reason in document["verdict"]["reasons"] if reason.startswith("The limit"))
    assert reason.partition("). ")[2] == said
