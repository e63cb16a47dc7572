"""A cliff is about the same operation live and in the report, also where that operation is noisy."""

import random
from pathlib import Path

import numpy as np
import pytest
from testkit.recorded_runs import JournalPlan
from tests.analysis.executed_run import ExecutedRun, execute_plan

from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import EventType

CLIFF, WINDOWS, OPERATIONS = 115, 160, 200
FACTS = {"target": {"kind": "directory"}, "drives": [{"name": "nvme0n1", "major_minor": "259:0", "serial": "S1"}]}
#: Of each operation: its healthy p99, by how much it rises, and how much its windows scatter.
NOISY = {"write": (0.003, 20, 0.8), "read": (0.0013, 140, 0.1)}
#: A rise within what the noisy baseline does by itself: the reads are what fell.
WITHIN_ITS_BAND = {"write": (0.003, 1.6, 0.8), "read": (0.0013, 140, 0.1)}


def _plan(made: dict[str, tuple[float, float, float]], delay: int = 0) -> JournalPlan:
    """`delay`: by how many windows the writes rise later."""

    def latency(index: int) -> dict[str, Histogram]:
        histograms = {}
        for place, (operation, (healthy, times, scatter)) in enumerate(sorted(made.items())):
            since = CLIFF + (delay if operation == "write" else 0)
            middle = healthy * random.Random(f"{operation} {index}").lognormvariate(0, scatter)
            middle *= times if index >= since else 1
            histogram = histograms[operation] = Histogram()
            spread = np.random.default_rng(3 * index + place).lognormal(np.log(middle), 0.2, OPERATIONS)
            histogram.record_many(np.rint(spread * 1e9).astype(np.int64))
        return histograms

    def counters(index: int) -> dict[str, int]:
        written = {"written_bytes": OPERATIONS * 16_384, "device_written_bytes": OPERATIONS * 16_384}
        slow = 30.0 if index >= CLIFF else 0.4
        return written | {"device_write_operations": 200, "device_write_milliseconds": round(200 * slow)}

    return JournalPlan(
        windows=WINDOWS,
        window_seconds=1.0,
        warm_up_windows=15,
        baseline_windows=45,
        target="directory:/data",
        run_id="run",
        facts=FACTS,
        counters=counters,
        latency=latency,
    )


def _summaries(executed: ExecutedRun) -> tuple[str, str, str]:
    """What is said when the cliff is raised, what is said of it last, and what the report says."""
    (raised,) = executed.events_named(EventType.FINDING, "cliff")
    updates = executed.events_named(EventType.NOTE, "finding_updated")
    (found,) = [each for each in executed.report.document["findings"] if each["degrades"]]
    return raised["summary"], [raised, *updates][-1]["summary"], found["sentence"]


@pytest.mark.parametrize(("made", "first"), [(NOISY, "write"), (WITHIN_ITS_BAND, "read")])
def test_raised_findings_name_the_same_operation_as_the_report(
    tmp_path: Path, made: dict[str, tuple[float, float, float]], first: str
) -> None:
    said = _summaries(execute_plan(tmp_path, _plan(made)))
    assert all(f"{first} p99 rose" in each for each in said), said
    assert all(("so did the read p99" in each) == (first == "write") for each in said[:2]), said


def test_an_operation_that_joins_later_is_told_by_an_update(tmp_path: Path) -> None:
    executed = execute_plan(tmp_path, _plan({"write": (0.003, 20, 0.2), "read": (0.0013, 140, 0.1)}, delay=14))
    raised, last, reported = _summaries(executed)
    assert raised.startswith("The read p99 rose")
    assert last.startswith("The write p99 rose")
    assert "; so did the read p99 (" in last
    assert "write p99 rose" in reported
    # Its alert stays the one that was sent.
    shown = [{series for series, _ in figures.sizes} for figures in executed.figures if figures and figures.sizes]
    assert shown[0] == shown[-1] == {"read.p99"}
