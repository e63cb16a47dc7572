"""Detection beside a run: what is recorded of findings, once, and that nothing of it can end the run."""

import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from testkit.waiting import wait_until
from testkit.worker_runs import events, execute_run, queue_run, start_worker, status, window_count
from tests.conftest import BROKEN_ON_PURPOSE
from tests.worker.journal_by_hand import HOUR, START, WINDOW_SECONDS, Journal

from cliffwatch.analysis.finding import FindingKind, Sample
from cliffwatch.analysis.journal_series import BASELINE_NOTE, ENDED_NOTE
from cliffwatch.analysis.online import run_detector as detector_module
from cliffwatch.analysis.online.detector import OnlineDetector
from cliffwatch.analysis.preprocessing import Mask
from cliffwatch.analysis.thresholds import NOTICE_MASK
from cliffwatch.coordinator.detection import FAILED_NOTE, Detection
from cliffwatch.coordinator.live_marks import LiveMarks
from cliffwatch.journal import Event, EventLog, EventType, JournalReader
from cliffwatch.journal.events import MARKED
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState

#: Runs in virtual time with a cliff in their middle, and with one after their first third.
LONG = {"warm_up": "1h", "baseline": "1h", "soak": "22h"}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


@pytest.fixture
def broken_journal(tmp_path: Path) -> Journal:
    directory = tmp_path / BROKEN_ON_PURPOSE
    directory.mkdir()
    return Journal(directory)


def keys(found: list[Event]) -> list[tuple[str, str, float]]:
    return [(event.detail["kind"], event.detail["series"], event.detail["onset"]) for event in found]


def lived_through(journal: Journal, healthy: int = 5 * HOUR, fallen: int = HOUR) -> Detection:
    """Detection as of a run that was healthy and then fell off a cliff."""
    detection = journal.detection()
    for index in range(healthy + fallen):
        detection.take(journal.commit(1.0 if index < healthy else 50.0))
    return detection


def test_a_cliff_is_reported_with_all_that_is_known_of_it(journal: Journal) -> None:
    detection = lived_through(journal)
    assert not detection.has_failed
    cliff = next(
        event for event in journal.events_named(EventType.FINDING, "cliff") if event.detail["series"] == "publish.p99"
    )
    onset = START + 5 * HOUR * WINDOW_SECONDS
    assert cliff.detail["onset"] == pytest.approx(onset, abs=12 * WINDOW_SECONDS)
    assert onset < cliff.detail["detected"] <= onset + 30 * WINDOW_SECONDS
    assert cliff.detail["baseline"] == pytest.approx(0.004, rel=0.05)
    assert cliff.detail["level"] == pytest.approx(0.2, rel=0.2)
    assert cliff.detail["ratio"] == pytest.approx(cliff.detail["level"] / cliff.detail["baseline"], rel=1e-3)
    assert 0 < cliff.detail["confidence"] <= 1
    assert (cliff.detail["operation"], cliff.detail["quantile"]) == ("publish", 0.99)
    assert cliff.detail["corroborated_by"] == ["device.write_latency"]
    assert cliff.detail["summary"].startswith("The publish p99 rose ")


def test_the_baseline_level_of_every_series_is_recorded(journal: Journal) -> None:
    lived_through(journal)
    levels: dict[str, float] = {}
    for note in journal.events_named(EventType.NOTE, BASELINE_NOTE):
        assert START <= note.detail["start"] < note.detail["end"] <= journal.windows[-1].end
        levels |= note.detail["levels"]
    assert levels["publish.p99"] == pytest.approx(0.004, rel=0.05)
    assert levels["device.write_latency"] == pytest.approx(0.001, rel=0.05)


def test_gauges_show_the_baseline_the_ratio_and_what_lasts(journal: Journal) -> None:
    figures = lived_through(journal).figures
    assert figures is not None
    assert figures.baselines["publish.p99"] == pytest.approx(0.004, rel=0.05)
    assert figures.ratios["publish.p99", "fast"] == pytest.approx(50, rel=0.1)
    assert ("publish.p99", FindingKind.CLIFF) in figures.active
    assert figures.ratios["device.write_latency", "fast"] == pytest.approx(50, rel=0.1)


@pytest.mark.parametrize("healthy_hours_seen", [3, 5, 6])
def test_a_worker_that_takes_over_reports_what_was_not_reported_and_nothing_twice(
    journal: Journal, tmp_path: Path, healthy_hours_seen: int
) -> None:
    """The first worker dies `healthy_hours_seen` hours after the start; the cliff is at hour 5, the end at 6."""
    whole = tmp_path / "whole"
    whole.mkdir()
    undisturbed = Journal(whole)
    lived_through(undisturbed)

    first = journal.detection()
    for index in range(6 * HOUR):
        window = journal.commit(1.0 if index < 5 * HOUR else 50.0)
        if index < healthy_hours_seen * HOUR:
            first.take(window)
    second = journal.detection()
    assert second.figures is None, "it has not caught up"
    second.catch_up(float("inf"))
    assert second.figures is not None
    found = journal.events_named(EventType.FINDING)
    assert keys(found) == keys(undisturbed.events_named(EventType.FINDING))
    assert len(set(keys(found))) == len(found) > 0
    noted = [note.detail["levels"] for note in journal.events_named(EventType.NOTE, BASELINE_NOTE)]
    assert sum("publish.p99" in levels for levels in noted) == 1

    third = journal.detection()
    third.catch_up(float("inf"))
    assert journal.events_named(EventType.FINDING) == found
    assert third.figures == second.figures


def test_catching_up_takes_turns_with_the_run_and_goes_on_to_the_end(journal: Journal) -> None:
    for _ in range(4 * HOUR):
        journal.commit()
    detection = journal.detection()
    turns = 0
    while detection.figures is None:
        detection.take(journal.commit())
        detection.catch_up(0.02)
        turns += 1
    assert turns > 1
    assert detection.figures.baselines["publish.p99"] == pytest.approx(0.004, rel=0.05)
    alone = journal.detection()
    alone.catch_up(float("inf"))
    assert alone.figures == detection.figures


def test_a_latency_that_appears_late_is_watched_too(journal: Journal) -> None:
    detection = journal.detection()
    for index in range(9 * HOUR):
        fallen = 1.0 if index < 8 * HOUR else 50.0
        others = {} if index < HOUR else {"end_to_end": fallen}
        detection.take(journal.commit(1.0, others, device_times=fallen))
        detection.catch_up(float("inf"))
    assert not detection.has_failed
    found = keys(journal.events_named(EventType.FINDING))
    assert ("cliff", "end_to_end.p99") in {(kind, series) for kind, series, _ in found}
    assert len(set(found)) == len(found)


def test_events_of_the_run_reach_the_detector_in_the_same_order_live_and_when_caught_up_with(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked_until: list[int] = []

    class Watched(Mask):
        def is_masked(self, sample: Sample) -> bool:
            is_masked = super().is_masked(sample)
            masked_until.append(self.masked_until)
            return is_masked

    monkeypatch.setattr(detector_module, "Mask", Watched)
    live = journal.detection()

    def record_event(name: str, type_: EventType, **detail: Any) -> None:
        live.notice(journal.record_event(type_, name, **detail))

    for index in range(20):
        window = journal.commit()
        if index == 6:
            record_event("engine_restarted", EventType.GAP, start=window.start, end=window.start)
        live.take(window)
        if index == 10:
            record_event("died", EventType.ENGINE)
    as_it_happened = list(masked_until)
    assert as_it_happened == [0] * 6 + [6 + NOTICE_MASK] * 5 + [11 + NOTICE_MASK] * 9
    masked_until.clear()
    journal.detection().catch_up(float("inf"))
    assert masked_until == as_it_happened


def test_a_gap_right_after_a_cliff_does_not_make_a_second_one_of_it(journal: Journal) -> None:
    detection = lived_through(journal, fallen=12)
    assert len(keys(journal.events_named(EventType.FINDING, "cliff"))) == 1
    journal.missed += 3
    end = journal.windows[-1].end
    detection.notice(journal.record_event(EventType.GAP, "worker_interrupted", start=end, end=end + 3 * WINDOW_SECONDS))
    for _ in range(2 * HOUR):
        detection.take(journal.commit(50.0))
    assert len(keys(journal.events_named(EventType.FINDING))) == 1


def mark(journal: Journal, start: float, end: float) -> None:
    journal.record_event(EventType.NOTE, MARKED, start=start, end=end, message="pulled a drive", by="operator")


def test_windows_of_a_span_already_marked_raise_no_finding(journal: Journal) -> None:
    detection = journal.detection()
    for _ in range(5 * HOUR):
        detection.take(journal.commit())
    end = journal.windows[-1].end
    mark(journal, end, end + HOUR * WINDOW_SECONDS)
    for index in range(3 * HOUR):
        detection.take(journal.commit(50.0 if index < HOUR else 1.0))
        detection.catch_up(float("inf"))
    assert not detection.has_failed
    assert detection.figures is not None
    assert journal.events_named(EventType.FINDING) == []


def test_findings_of_a_span_marked_afterwards_are_ended(journal: Journal) -> None:
    detection = lived_through(journal)
    raised = keys(journal.events_named(EventType.FINDING))
    assert raised
    end = journal.windows[-1].end
    mark(journal, end - HOUR * WINDOW_SECONDS, end)
    for _ in range(2 * HOUR):
        detection.take(journal.commit())
        detection.catch_up(float("inf"))
    assert not detection.has_failed
    assert detection.figures is not None
    assert not detection.figures.active
    over = journal.events_named(EventType.NOTE, ENDED_NOTE)
    assert set(keys(over)) == set(raised)
    assert {event.detail["until"] for event in over} == {end}
    assert keys(journal.events_named(EventType.FINDING)) == raised, "nothing new is found without what was marked"


def test_a_finding_whose_series_recovers_is_recorded_as_ended_once(journal: Journal) -> None:
    detection = lived_through(journal)
    for _ in range(3 * HOUR):
        detection.take(journal.commit())
    assert detection.figures is not None
    assert not detection.figures.active
    recorded = keys(journal.events_named(EventType.NOTE, ENDED_NOTE))
    assert len(set(recorded)) == len(recorded)
    assert set(recorded) <= set(keys(journal.events_named(EventType.FINDING)))
    over = recorded or keys(journal.events_named(EventType.FINDING, "recovery"))
    assert "publish.p99" in {series for _, series, _ in over}


def test_a_drift_is_forecast_against_the_workloads_limit(journal: Journal) -> None:
    detection = journal.detection("p99 <= 10ms over any 10m")
    growth, hours = 1.05, 18
    for index in range(hours * HOUR):
        drifted = growth ** (max(0, index - 5 * HOUR) / HOUR)
        detection.take(journal.commit(drifted))
    figures = detection.figures
    assert figures is not None
    assert ("publish.p99", FindingKind.DRIFT) in figures.active
    forecast = figures.forecasts["publish.p99"]
    assert forecast.limit == 0.010
    left_hours = math.log(0.010 / (0.004 * growth ** (hours - 5))) / math.log(growth)
    assert forecast.likely == pytest.approx(left_hours * 3600, rel=0.1)
    assert forecast.early < forecast.likely < forecast.late


def test_a_detector_that_fails_says_so_once_and_is_left_alone(
    broken_journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = broken_journal
    detection = lived_through(journal, healthy=20, fallen=0)

    def fail(*_: object) -> list[Any]:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(OnlineDetector, "feed", fail)
    for _ in range(5):
        detection.take(journal.commit())
        detection.catch_up(1.0)
    assert detection.has_failed
    assert detection.figures is None
    (note,) = journal.events_named(EventType.NOTE)
    assert note.name == FAILED_NOTE
    assert note.detail["message"] == "ZeroDivisionError: division by zero"
    assert note.detail["where"].startswith("test_detection.py:")


@pytest.mark.real(why="a run of several seconds")
def test_a_run_whose_detector_fails_is_measured_to_its_end(tmp_path: Path) -> None:
    broken = (
        "import sys\n"
        "from cliffwatch.analysis.online import detector\n"
        "from cliffwatch.coordinator import __main__ as worker\n"
        "def fail(self, *given): raise RuntimeError('broken on purpose')\n"
        "detector.OnlineDetector.feed = fail\n"
        "sys.exit(worker.main(sys.argv[1:]))"
    )
    directory = queue_run(tmp_path / BROKEN_ON_PURPOSE, {"time": "virtual"}, window="10s", phases={"soak": "10m"})
    done = subprocess.run([sys.executable, "-c", broken, str(directory)], check=False)
    assert done.returncode == 0
    assert window_count(directory) == 60
    assert status(directory).state is RunState.FINISHED
    failures = [event for event in events(directory) if event.name == FAILED_NOTE]
    assert [event.detail["message"] for event in failures] == ["RuntimeError: broken on purpose"]


@pytest.fixture
def killed_after_its_cliff(tmp_path: Path) -> Path:
    """A run in virtual time whose worker was killed as soon as it had recorded the cliff."""
    directory = queue_run(tmp_path / "killed", {"time": "virtual", "cliff_after": "8h"}, window="30s", phases=LONG)
    worker = start_worker(directory)
    try:
        wait_until(lambda: "cliff" in [e.name for e in events(directory) if e.type == "finding"], "the cliff")
    finally:
        worker.send_signal(signal.SIGKILL)
        assert worker.wait(300) == -signal.SIGKILL
    change_state(EventLog(directory), RunState.INTERRUPTED, status(directory).since)
    change_state(EventLog(directory), RunState.STARTING, status(directory).since)
    return directory


@pytest.mark.real(why="a run of several seconds")
def test_a_run_that_was_killed_after_its_cliff_reports_it_no_second_time(killed_after_its_cliff: Path) -> None:
    directory = killed_after_its_cliff
    before = window_count(directory)
    execute_run(directory)
    assert window_count(directory) > before
    found = [event for event in events(directory) if event.type is EventType.FINDING]
    cliffs = [event for event in found if event.detail["series"] == "publish.p99" and event.name == "cliff"]
    assert len(cliffs) == 1
    assert len(set(keys(found))) == len(found)
    load_start = status(directory).load_start
    assert load_start is not None
    assert cliffs[0].detail["onset"] == pytest.approx(load_start + 8 * 3600, abs=600)
    last = JournalReader(directory).last_window()
    assert last is not None
    assert last.end == pytest.approx(load_start + 24 * 3600)


def test_marks_of_a_journal_that_is_away_are_none_until_it_is_back(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    marks = LiveMarks(directory)
    assert marks.look() == []
    EventLog(directory).append(Event(START, EventType.NOTE, MARKED, {"start": START, "end": START + 60}))
    assert len(marks.look()) == 1
    away = directory.rename(tmp_path / "away")
    assert marks.look() == []
    away.rename(directory)
    assert marks.covers(Journal(directory).commit(1.0))
