"""A span that was marked is drawn and named, and nothing in it is a finding."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from testkit.worker_runs import status
from tests.report.pages import page_of

from cliffwatch.analysis.marks import Mark, left_out, marks_in
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventLog, EventType
from cliffwatch.journal.conclusion import Conclusion
from cliffwatch.journal.state import change_state, mend_verdict
from cliffwatch.model.run_state import RunState, Verdict, VerdictName
from cliffwatch.report.build import build

SLOW = range(120, 180)


def mark(start: float, end: float, text: str = "pulled a drive") -> Event:
    return Event(LOAD_START + 5, EventType.NOTE, "marked", {"start": start, "end": end, "message": text, "by": "ann"})


def latency(index: int) -> dict[str, Histogram]:
    milliseconds = 12_000 if index in SLOW else 2
    return {"write": Histogram.from_values({milliseconds * 1_000_000: 100})}


PLAN = JournalPlan(windows=360, latency=latency)


def verdict_of(directory: Path, *events: Event) -> tuple[str, Sequence[str], list[str], str]:
    journal = make_journal(directory, replace(PLAN, events=events))
    document = build(journal).document
    kinds: list[str] = [finding["kind"] for finding in document["findings"]]
    return document["verdict"]["name"], document["verdict"]["reasons"], kinds, page_of(journal)


def test_what_is_marked_is_not_judged_and_what_is_not_is(tmp_path: Path) -> None:
    width = 10.0
    slow = (LOAD_START + SLOW.start * width, LOAD_START + SLOW.stop * width)
    name, reasons, kinds, _ = verdict_of(tmp_path / "plain")
    assert name == "degraded"
    assert kinds
    assert any("An operation took 12 s" in reason for reason in reasons)
    name, reasons, kinds, page = verdict_of(tmp_path / "marked", mark(slow[0] - width, slow[1] + width))
    assert (name, kinds) == ("pass", [])
    assert not any("An operation took" in reason for reason in reasons)
    assert any(reason.startswith("Left out of the judgement, as it was marked: 10m20s") for reason in reasons), reasons
    assert "marked: pulled a drive" in page
    (span,) = re.findall(r'"disturbed":\[\[([\d.]+),([\d.]+),"pulled a drive"\]\]', page)
    assert float(span[1]) - float(span[0]) == 620.0
    name, _, kinds, _ = verdict_of(tmp_path / "elsewhere", mark(LOAD_START + 100, LOAD_START + 200))
    assert name == "degraded"
    assert kinds


@pytest.mark.parametrize("detail", [{}, {"start": 5.0}, {"start": 9.0, "end": 9.0}, {"start": "a", "end": []}])
def test_a_damaged_mark_marks_nothing(detail: dict[str, object]) -> None:
    assert marks_in([Event(1.0, EventType.NOTE, "marked", detail)]) == []


def test_marks_are_named_in_their_order() -> None:
    marks = marks_in([mark(LOAD_START + 300, LOAD_START + 360, "b"), mark(LOAD_START + 60, LOAD_START + 90, "a")])
    assert marks[0] == Mark(LOAD_START + 60, LOAD_START + 90, "a")
    assert left_out(marks, LOAD_START) == (
        "Left out of the judgement, as it was marked: 30 s from 1m on (a); 1m from 5m on (b)."
    )
    assert left_out([], LOAD_START) == ""


def test_a_mark_that_comes_after_the_end_counts_and_mends_the_verdict(tmp_path: Path) -> None:
    journal = make_journal(tmp_path / "run", PLAN)
    log = EventLog(journal)
    change_state(log, RunState.FINISHED, LOAD_START, {"verdict": "degraded", "reasons": ["a cliff"], "findings": []})
    assert mend_verdict(log, Conclusion(Verdict(VerdictName.PASS, ("a",))), LOAD_START) is False
    start = LOAD_START + SLOW.start * 10.0 - 10.0
    log.append(mark(start, start + 620.0))
    document = build(journal).document
    assert (document["verdict"]["name"], document["findings"]) == ("pass", [])
    for is_first in (True, False):
        assert mend_verdict(log, build(journal).conclusion, LOAD_START) is is_first
    assert status(journal).verdict is VerdictName.PASS
