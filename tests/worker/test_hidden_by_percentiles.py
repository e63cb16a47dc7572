"""What percentiles hide is reported while a run goes on: a load that stands still, one that fades, rare spikes."""

from pathlib import Path

import pytest
from tests.worker.journal_by_hand import HOUR, START, WINDOW_SECONDS, Journal

from cliffwatch.analysis.finding import FindingKind, LimitedBy
from cliffwatch.analysis.journal_series import ENDED_NOTE, UPDATED_NOTE
from cliffwatch.coordinator.detection import Detection
from cliffwatch.journal import Event, EventType

STALLED_FROM = START + HOUR * WINDOW_SECONDS


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def healthy_for_an_hour(journal: Journal) -> Detection:
    detection = journal.detection()
    for _ in range(HOUR):
        detection.take(journal.commit())
    return detection


def undone(events: list[Event]) -> list[dict[str, object]]:
    return [event.detail["undone"] for event in events]


def stand_still(journal: Journal, detection: Detection, windows: range) -> None:
    for number in windows:
        detection.take(journal.commit(rate=0.0, oldest_seconds=WINDOW_SECONDS * number))


def test_a_stall_is_raised_in_its_first_window_grows_and_ends(journal: Journal) -> None:
    detection = healthy_for_an_hour(journal)
    stand_still(journal, detection, range(1, 2))
    (raised,) = journal.events_named(EventType.FINDING, "stall")
    assert (raised.detail["onset"], raised.detail["baseline"]) == (STALLED_FROM, pytest.approx(1000, rel=0.01))
    assert raised.detail["undone"] == {
        "seconds": 10.0,
        "times": 1,
        "oldest_outstanding_seconds": 10.0,
        "limited_by": "target",
    }
    assert raised.detail["summary"].startswith("Nothing has been completed for 10 s, after 1,000 operations per second")
    stand_still(journal, detection, range(2, 7))
    assert detection.figures is not None
    assert detection.figures.undone == {(FindingKind.STALL, LimitedBy.TARGET): 60.0}
    updates = undone(journal.events_named(EventType.NOTE, UPDATED_NOTE))
    assert [each["seconds"] for each in updates] == [20.0, 30.0, 40.0, 50.0, 60.0]
    for _ in range(5):
        detection.take(journal.commit())
    (ended,) = journal.events_named(EventType.NOTE, ENDED_NOTE)
    assert ended.detail["until"] == STALLED_FROM + 60
    assert ended.detail["undone"]["seconds"] == 60.0
    assert detection.figures.undone == {}
    assert not detection.has_failed


def test_a_later_stall_is_shown_for_as_long_as_it_has_lasted_itself(journal: Journal) -> None:
    detection = healthy_for_an_hour(journal)
    for _ in range(5):
        stand_still(journal, detection, range(1, 4))
        for _ in range(60):
            detection.take(journal.commit())
    stand_still(journal, detection, range(1, 3))
    assert len(journal.events_named(EventType.FINDING, "stall")) == 3
    assert detection.figures is not None
    assert detection.figures.undone == {(FindingKind.STALL, LimitedBy.TARGET): 20.0}
    last = journal.events_named(EventType.NOTE, UPDATED_NOTE)[-1].detail["undone"]
    # Recorded again when it has grown by a fifth.
    assert (last["times"], last["seconds"]) == (4, pytest.approx(3 * 30.0 + 20.0, rel=0.2))
    detection.take(journal.commit())
    over = journal.events_named(EventType.NOTE, ENDED_NOTE)
    assert [event.detail["undone"]["times"] for event in over] == [1, 1, 1, 2, 3, 4]
    journal.detection().catch_up(60.0)
    assert journal.events_named(EventType.NOTE, ENDED_NOTE) == over


def test_another_worker_goes_on_with_the_stall_and_reports_nothing_twice(journal: Journal) -> None:
    stand_still(journal, healthy_for_an_hour(journal), range(1, 5))
    before = journal.events_named(EventType.FINDING)
    taken_over = journal.detection()
    taken_over.catch_up(60.0)
    assert journal.events_named(EventType.FINDING) == before
    stand_still(journal, taken_over, range(5, 7))
    assert taken_over.figures is not None
    assert taken_over.figures.undone == {(FindingKind.STALL, LimitedBy.TARGET): 60.0}
    assert journal.events_named(EventType.FINDING) == before
    assert not taken_over.has_failed


def test_a_load_that_fades_is_raised_as_the_client_s(journal: Journal) -> None:
    detection = healthy_for_an_hour(journal)
    for _ in range(HOUR):
        detection.take(journal.commit(rate=0.3))
    (raised,) = journal.events_named(EventType.FINDING)
    assert (raised.name, raised.detail["undone"]["limited_by"]) == ("shortfall", "client")
    assert raised.detail["onset"] == pytest.approx(STALLED_FROM, abs=60)
    # An hour of windows, of which the first ten minutes were waited for.
    assert raised.at - STALLED_FROM == pytest.approx(600, abs=60)
    assert detection.figures is not None
    assert detection.figures.undone[FindingKind.SHORTFALL, LimitedBy.CLIENT] == pytest.approx(3600, abs=60)


@pytest.mark.parametrize("windows", [5, 24, 400])
def test_a_load_that_fades_right_after_a_short_baseline_is_raised(journal: Journal, windows: int) -> None:
    detection = journal.detection()
    for _ in range(windows):
        detection.take(journal.commit(phase="baseline"))
    for _ in range(10):
        detection.take(journal.commit())
    for _ in range(HOUR):
        detection.take(journal.commit(rate=0.3))
    (raised,) = journal.events_named(EventType.FINDING)
    assert (raised.name, raised.detail["baseline"]) == ("shortfall", pytest.approx(1000, rel=0.01))


def test_less_work_of_slower_operations_is_not_raised_besides(journal: Journal) -> None:
    detection = healthy_for_an_hour(journal)
    for _ in range(4 * HOUR):
        detection.take(journal.commit())
    for _ in range(HOUR):
        detection.take(journal.commit(20.0, rate=0.05))
    assert {event.name for event in journal.events_named(EventType.FINDING)} == {"cliff"}


def test_rare_spikes_are_raised_from_the_fourth_on_and_once(journal: Journal) -> None:
    detection = journal.detection()
    for index in range(3 * HOUR):
        detection.take(journal.commit(20.0 if index % 60 == 40 else 1.0, device_times=1.0))
    (raised,) = journal.events_named(EventType.FINDING)
    assert (raised.name, raised.detail["series"]) == ("spikes", "publish.p99")
    assert raised.detail["recurrence"] == {
        "times": 4,
        "length_seconds": 10.0,
        "spacing_seconds": 600.0,
        "least_seconds": 600.0,
        "most_seconds": 600.0,
        "is_from_start": True,
        "next_expected": raised.detail["onset"] + 4 * 600.0,
    }
    assert ", 4 times, 10 s each, 10m apart, from the start (" in raised.detail["summary"]
    assert detection.figures is not None
    assert detection.figures.active == {("publish.p99", FindingKind.SPIKES)}
    taken_over = journal.detection()
    taken_over.catch_up(60.0)
    for index in range(HOUR):
        taken_over.take(journal.commit(20.0 if index % 60 == 40 else 1.0, device_times=1.0))
    assert journal.events_named(EventType.FINDING) == [raised]
    assert not taken_over.has_failed
