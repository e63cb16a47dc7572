"""A finished run has the findings of its report wherever findings are shown, however they were found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from testkit.databases import indexed
from testkit.recorded_runs import JournalPlan, at_window, make_journal
from tests.report.cliff_run import CLIFF, PLAN, counters, latency
from tests.report.documents import document_of
from tests.report.finishing import finish, judge_at_end

from cliffwatch.journal import Event, EventLog, EventType, JournalReader
from cliffwatch.journal.conclusion import unanalysed
from cliffwatch.journal.state import change_state, mend_verdict
from cliffwatch.model.run_state import RunState, VerdictName
from cliffwatch.report.process import make_report
from cliffwatch.store.models import FindingRow


def _raised(index: int, kind: str = "cliff") -> Event:
    """As detection raises it, an odd minute after it began."""
    detail = {"kind": kind, "series": "write.p99", "onset": at_window(PLAN, index), "summary": "The write p99 rose 5×."}
    return Event(at_window(PLAN, index + 12), EventType.FINDING, kind, detail)


def _findings_in_index(directory: Path) -> list[dict[str, Any]]:
    with indexed(directory).session() as session:
        return [dict(row.detail) for row in session.scalars(select(FindingRow).order_by(FindingRow.event_id))]


def _finding_events(directory: Path) -> list[Event]:
    return [each.event for each in JournalReader(directory).events() if each.event.type is EventType.FINDING]


def _journal(tmp_path: Path, *events: Event, plan: JournalPlan = PLAN) -> Path:
    return make_journal(tmp_path / "run-1", replace(plan, events=events))


def test_a_cliff_that_only_the_whole_run_shows_is_in_every_list_of_findings(tmp_path: Path) -> None:
    directory = _journal(tmp_path)
    before = document_of(directory)
    (found,) = before["findings"]
    detail = finish(directory)
    assert [each["summary"] for each in detail["findings"]] == [found["sentence"]]
    assert [each["summary"] for each in _findings_in_index(directory)] == [found["sentence"]]
    (event,) = _finding_events(directory)
    assert (event.name, event.detail["found_at_end"]) == (found["kind"], True)
    assert event.detail["onset"] == pytest.approx(at_window(PLAN, CLIFF), abs=30)
    # A report made again is the same: what it found is no sign that anything was raised.
    assert document_of(directory) == before


def test_a_cliff_that_was_raised_is_restated_and_not_listed_twice(tmp_path: Path) -> None:
    directory = _journal(tmp_path, _raised(CLIFF))
    detail = finish(directory)
    (finding,) = detail["findings"]
    assert finding["raised"]["onset"] == at_window(PLAN, CLIFF)
    assert [each["summary"] for each in _findings_in_index(directory)] == [finding["summary"]]
    assert len(_finding_events(directory)) == 1


def test_two_findings_that_were_raised_at_once_are_each_restated_by_their_own(tmp_path: Path) -> None:
    other = _raised(CLIFF, "spikes")
    directory = _journal(tmp_path, _raised(CLIFF), other)
    detail = finish(directory)
    assert [each["raised"]["kind"] for each in detail["findings"]] == ["cliff"]
    assert [each["raised"]["kind"] for each in detail["unconfirmed"]] == ["spikes"]


def test_a_finding_not_confirmed_by_the_whole_run_is_marked_as_unconfirmed(tmp_path: Path) -> None:
    steady = replace(PLAN, latency=lambda index: latency(index % 100), counters=lambda _: counters()(0))
    directory = _journal(tmp_path, _raised(200), plan=steady)
    detail = finish(directory)
    assert detail["verdict"] == "pass"
    assert "findings" not in detail
    (refuted,) = detail["unconfirmed"]
    assert refuted["summary"] == "Not confirmed by the whole run: the write p99 rose 5×."
    (row,) = _findings_in_index(directory)
    assert (row["confirmed"], row["summary"]) == (False, refuted["summary"])


def test_a_worker_that_takes_over_the_reporting_records_no_finding_twice(tmp_path: Path) -> None:
    directory = _journal(tmp_path)
    assert judge_at_end(directory) == judge_at_end(directory)
    assert len(_finding_events(directory)) == 1


def test_a_verdict_that_comes_later_brings_its_findings_along(tmp_path: Path) -> None:
    directory = _journal(tmp_path)
    log = EventLog(directory)
    change_state(log, RunState.FINISHED, at_window(PLAN, PLAN.windows) + 9, unanalysed(directory, "killed").detail())
    assert _findings_in_index(directory) == []
    made = make_report(directory)
    assert made.conclusion is not None
    assert made.conclusion.verdict.name is VerdictName.DEGRADED
    assert mend_verdict(log, made.conclusion, at_window(PLAN, PLAN.windows) + 99)
    (row,) = _findings_in_index(directory)
    assert row["summary"] == made.conclusion.findings[0]["summary"]
