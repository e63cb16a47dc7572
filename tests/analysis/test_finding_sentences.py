"""A finding is stated in the same words live, in tables and in the report, which adds when, where and why."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from testkit.recorded_runs import JournalPlan
from tests.analysis.executed_run import execute_plan

from cliffwatch.analysis.causes import Cause, Diagnosis, Suspect
from cliffwatch.analysis.finding import Finding, FindingKind, Role, Series
from cliffwatch.analysis.wording import Circumstances, sentence_of
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import EventType

P99 = Series("append.p99", Role.LATENCY, "append", 0.99)
SYNC = Series("sync.p99", Role.LATENCY, "sync", 0.99)
KNOWN = {each.name: each for each in (P99, SYNC)}
FINDING = Finding(FindingKind.CLIFF, 3600.0, P99.name, 0.005, 0.05, 10.0, 0.9, corroborated_by=(SYNC.name,))
COLLECTION = Suspect(Cause.GARBAGE_COLLECTION, "drive garbage collection", 5.0, 0.9, ("Writes took longer.",))
#: The latency is that of a healthy run, and 30 times as much in between.
RISES, FALLS, WINDOWS = 110, 400, 500


@pytest.mark.parametrize("kind", FindingKind)
def test_the_report_says_what_was_said_live_and_adds_when(kind: FindingKind) -> None:
    finding = replace(FINDING, kind=kind)
    live = sentence_of(finding, P99, None, KNOWN)
    said = sentence_of(finding, P99, None, KNOWN, Circumstances("1:00:00"))
    begun, _, statement = said.removesuffix(".").partition(": ")
    assert begun == f"{kind.value.capitalize()} at 1:00:00"
    assert statement in live.replace("Nothing", "nothing")


def test_the_levels_are_said_live_and_are_beside_the_sentence_in_the_report() -> None:
    assert sentence_of(FINDING, P99) == "The append p99 rose 10× (5 ms to 50 ms)."
    assert "ms" not in sentence_of(FINDING, P99, None, KNOWN, Circumstances("1:00:00"))


def test_an_operation_is_named_in_words() -> None:
    both = Series("end_to_end.p99", Role.LATENCY, "end_to_end", 0.99)
    finding = replace(FINDING, series=both.name, corroborated_by=())
    assert sentence_of(finding, both).startswith("The end to end p99 rose 10×")


def test_the_report_adds_where_and_why() -> None:
    where = Circumstances("1:00:00", "nvme0n1", Diagnosis(COLLECTION, None, ""))
    expected = "Cliff at 1:00:00: append p99 rose 10× on nvme0n1; likely cause: drive garbage collection (90 % sure)."
    assert sentence_of(FINDING, P99, None, KNOWN, where) == expected


def test_a_recovery_reads_alike_live_and_in_the_report(tmp_path: Path) -> None:
    def latency(index: int) -> dict[str, Histogram]:
        slow = 30 if RISES <= index < FALLS else 1
        histogram = Histogram()
        spread = np.random.default_rng(index).lognormal(np.log(0.004 * slow), 0.3, 200)
        histogram.record_many(np.rint(spread * 1e9).astype(np.int64))
        return {"append": histogram}

    plan = JournalPlan(
        windows=WINDOWS, window_seconds=1.0, warm_up_windows=20, baseline_windows=50, run_id="run", latency=latency
    )
    executed = execute_plan(tmp_path, plan)
    (live,) = executed.events_named(EventType.FINDING, "recovery")
    (reported,) = [each for each in executed.report.document["findings"] if each["kind"] == "recovery"]
    for sentence in (live["summary"], reported["sentence"]):
        assert "append p99 came back to " in sentence
    assert live["summary"].endswith(" is healthy).")
