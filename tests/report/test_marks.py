"""A span that was marked is drawn and named, and nothing in it is a finding."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from testkit.worker_runs import status
from tests.report.pages import page_of

from cliffwatch.analysis.marks import Mark, left_out, marks_in, words_of
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


PLAN = JournalPlan(windows=900, latency=latency)


def verdict_of(directory: Path, *events: Event) -> tuple[str, Sequence[str], list[str], str]:
    journal = make_journal(directory, replace(PLAN, events=events))
    document = build(journal).document
    kinds: list[str] = [finding["kind"] for finding in document["findings"]]
    return document["verdict"]["name"], document["verdict"]["reasons"], kinds, page_of(journal)


def test_a_marked_span_is_not_judged_and_the_rest_of_the_run_is(tmp_path: Path) -> None:
    width = 10.0
    slow = (LOAD_START + SLOW.start * width, LOAD_START + SLOW.stop * width)
    name, reasons, kinds, _ = verdict_of(tmp_path / "plain")
    assert name == "degraded"
    assert kinds
    assert any("An operation took 12 s" in reason for reason in reasons)
    name, reasons, kinds, page = verdict_of(tmp_path / "marked", mark(slow[0] - width, slow[1] + width))
    assert (name, kinds) == ("pass", [])
    assert not any("An operation took" in reason for reason in reasons)
    assert reasons[0] == (
        "93.11 % of the requested time was judged: 10m20s from 19m50s on left out by ann (pulled a drive)."
    )
    assert "marked: pulled a drive" in page
    (span,) = re.findall(r'"disturbed":\[\[([\d.]+),([\d.]+),"pulled a drive"\]\]', page)
    assert float(span[1]) - float(span[0]) == 620.0
    name, _, kinds, _ = verdict_of(tmp_path / "elsewhere", mark(LOAD_START + 100, LOAD_START + 200))
    assert name == "degraded"
    assert kinds


@pytest.mark.parametrize("detail", [{}, {"start": 5.0}, {"start": 9.0, "end": 9.0}, {"start": "a", "end": []}])
def test_a_damaged_mark_marks_nothing(detail: dict[str, object]) -> None:
    assert marks_in([Event(1.0, EventType.NOTE, "marked", detail)]) == []


def test_marks_are_named_in_their_order_and_clipped_to_the_judged_time() -> None:
    marks = marks_in([mark(LOAD_START + 300, LOAD_START + 9e9, "b"), mark(LOAD_START + 60, LOAD_START + 90, "a")])
    assert marks[0] == Mark(LOAD_START + 60, LOAD_START + 90, "a", "ann")
    found = left_out(marks, LOAD_START, LOAD_START, LOAD_START + 360)
    assert found.judged_ratio == pytest.approx(0.75)
    assert [words_of(each) for each in found.marks] == [
        "30 s from 1m on left out by ann (a)",
        "1m from 5m on left out by ann (b)",
    ]
    assert left_out(marks, LOAD_START, LOAD_START + 100, LOAD_START + 200).marks == ()


@given(
    spans=st.lists(st.tuples(st.integers(-50, 150), st.integers(1, 80)), max_size=8),
    more=st.tuples(st.integers(-50, 150), st.integers(1, 80)),
)
def test_judged_ratio_is_the_share_of_time_outside_marks(spans: list[tuple[int, int]], more: tuple[int, int]) -> None:
    def judged(marked: list[tuple[int, int]]) -> float:
        marks = [Mark(float(start), float(start + length), "x") for start, length in marked]
        return left_out(marks, 0.0, 0.0, 100.0).judged_ratio

    outside = sum(not any(start <= second < start + length for start, length in spans) for second in range(100))
    assert judged(spans) == pytest.approx(outside / 100)
    assert judged([*spans, more]) <= judged(spans) + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_marks_make_no_pass_of_a_cliff_but_where_all_of_it_and_little_else_is_marked(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    end = LOAD_START + PLAN.windows * 10.0
    marks = []
    for _ in range(chance.randint(1, 12)):
        start = chance.uniform(LOAD_START - 3600, end)
        marks.append(mark(start, start + chance.choice([30.0, 600.0, 3600.0, 1e9])))
    name, _, _, _ = verdict_of(tmp_path / "run", *marks)
    spans = [(event.moment("start") or 0.0, event.moment("end") or 0.0) for event in marks]
    seconds = [LOAD_START + second for second in range(PLAN.windows * 10)]
    outside = [at for at in seconds if not any(begin <= at < until for begin, until in spans)]
    is_slow_left = any(SLOW.start <= (at - LOAD_START) // 10 < SLOW.stop for at in outside)
    if name == "pass":
        assert len(outside) >= 0.9 * len(seconds)
        assert not is_slow_left


@pytest.mark.parametrize("begin", [10.0, 350.0, 1200.0])
def test_a_cliff_that_marks_leave_out_for_the_most_part_does_not_pass(tmp_path: Path, begin: float) -> None:
    """All of the run but some minutes is marked, beyond its end."""
    name, reasons, kinds, _ = verdict_of(tmp_path / "marked", mark(LOAD_START + begin, LOAD_START + 7e9, "quiet"))
    assert (name, kinds) == ("invalid", [])
    assert "can be judged, less than the 90 % that a verdict needs" in reasons[0]
    assert "left out by ann (quiet)" in reasons[0]
    assert "e+" not in reasons[0]


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
