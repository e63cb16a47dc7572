"""At the end of a run a live finding states what the report states: start, size and the latency that it is about."""

import random
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select
from testkit.recorded_runs import JournalPlan
from tests.analysis.executed_run import ExecutedRun, execute_plan

from cliffwatch.analysis.journal_series import key_in
from cliffwatch.app.index import index_run
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventLog, EventType
from cliffwatch.model.run_state import RunState
from cliffwatch.store.database import open_database, upgrade
from cliffwatch.store.models import FindingRow

WARM_UP, BASELINE, CLIFF, WINDOWS, OPERATIONS = 20, 50, 110, 260, 200
FACTS = {"target": {"kind": "directory"}, "drives": [{"name": "nvme0n1", "major_minor": "259:0", "serial": "S1"}]}


def _latency(rises: dict[str, int], index: int) -> dict[str, Histogram]:
    """Each operation is 30 times as slow from the window on that `rises` names."""
    histograms = {}
    for place, (operation, since) in enumerate(sorted(rises.items())):
        histogram = histograms[operation] = Histogram()
        noise = random.Random(f"{operation} {index}").lognormvariate(0, 0.2)
        middle = 0.004 * noise * (30 if index >= since else 1)
        spread = np.random.default_rng(3 * index + place).lognormal(np.log(middle), 0.3, OPERATIONS)
        histogram.record_many(np.rint(spread * 1e9).astype(np.int64))
    return histograms


def _counters(index: int) -> dict[str, int]:
    written = {"written_bytes": OPERATIONS * 16_384, "device_written_bytes": OPERATIONS * 16_384}
    slow = 8.0 if index >= CLIFF - 3 else 0.2
    return written | {"device_write_operations": 200, "device_write_milliseconds": round(200 * slow)}


PLAN = JournalPlan(
    windows=WINDOWS,
    window_seconds=1.0,
    warm_up_windows=WARM_UP,
    baseline_windows=BASELINE,
    target="directory:/data",
    run_id="run",
    facts=FACTS,
    counters=_counters,
)
#: Which operation falls when; `write` is part of `append`.
RISES = {
    "together": {"append": CLIFF, "sync": CLIFF, "write": CLIFF},
    "append first": {"append": CLIFF, "sync": CLIFF + 9, "write": CLIFF + 20},
    "write first": {"append": CLIFF + 25, "sync": CLIFF + 20, "write": CLIFF},
}


@pytest.fixture(scope="module", params=RISES.values(), ids=list(RISES))
def executed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ExecutedRun:
    rises = request.param
    return execute_plan(
        tmp_path_factory.mktemp("executed"), replace(PLAN, latency=lambda index: _latency(rises, index))
    )


def test_the_event_that_ends_the_run_carries_what_was_raised_as_the_report_has_it(executed: ExecutedRun) -> None:
    report = executed.report
    (raised,) = executed.events_named(EventType.FINDING, "cliff")
    (found,) = [each for each in report.document["findings"] if each["degrades"]]
    (again,) = report.conclusion.findings
    assert key_in(again) == key_in(raised)
    assert again["onset"] == pytest.approx(datetime.fromisoformat(found["onset"]).timestamp(), abs=1e-3)
    assert (again["series"], again["operation"], again["summary"]) == (
        found["series"],
        found["operation"],
        found["sentence"],
    )
    for name in ("baseline", "level", "worst", "ratio", "worst_ratio"):
        assert again[name] == pytest.approx(found[name], rel=1e-4), name


def test_the_last_live_update_is_already_of_that_latency_with_that_size(executed: ExecutedRun) -> None:
    (found,) = [each for each in executed.report.document["findings"] if each["degrades"]]
    (raised,) = executed.events_named(EventType.FINDING, "cliff")
    last = [*executed.events_named(EventType.NOTE, "finding_updated"), raised][:-1][-1:] or [raised]
    assert key_in(last[0]) == key_in(raised)
    assert last[0]["series"] == found["series"] == "append.p99"
    for name in ("baseline", "level", "ratio"):
        assert last[0][name] == pytest.approx(found[name], rel=1e-4), name


def test_the_index_has_a_finding_as_the_journal_states_it_last(executed: ExecutedRun, tmp_path: Path) -> None:
    report = executed.report
    log = EventLog(executed.directory)
    url = f"sqlite:///{tmp_path / 'index.db'}"
    upgrade(url)
    database = open_database(url)

    def indexed() -> dict[str, object]:
        with database.session() as session:
            index_run(session, executed.directory)
        with database.session() as session:
            return dict(session.scalars(select(FindingRow)).one().detail)

    (raised,) = executed.events_named(EventType.FINDING, "cliff")
    updates = executed.events_named(EventType.NOTE, "finding_updated")
    assert indexed()["ratio"] == (updates[-1] if updates else raised)["ratio"]
    (again,) = report.conclusion.findings
    detail = {"verdict": "degraded", "reasons": [], "findings": list(report.conclusion.findings)}
    log.append(Event(executed.events[-1].at + 60, EventType.STATE, RunState.FINISHED.value, detail))
    assert {name: indexed()[name] for name in ("series", "onset", "ratio", "summary")} == {
        name: again[name] for name in ("series", "onset", "ratio", "summary")
    }
