"""Which events of a run account for time that was not measured."""

import pytest

from cliffwatch.analysis.coverage import UNEXPLAINED, Gap, MeasuredInterval, measure_coverage
from cliffwatch.journal import Event, EventType
from cliffwatch.journal.event_text import event_text
from cliffwatch.report.gaps import LOAD_FAILED, recorded_gaps


@pytest.mark.parametrize(("how", "reason"), [("failed", LOAD_FAILED), ("stopped", UNEXPLAINED)])
def test_the_gap_at_the_end_of_a_failed_load_is_explained_by_the_failure(how: str, reason: str) -> None:
    windows = [MeasuredInterval(0, 10, 10), MeasuredInterval(20, 30, 10)]
    ended = Event(34.0, EventType.ENGINE, "load_ended", {"how": how, "message": "the drive is gone"})
    coverage = measure_coverage(windows, 0, 60, 10, recorded_gaps([ended]))
    assert coverage.gaps == (Gap(10, 20, UNEXPLAINED), Gap(30, 60, reason))


def test_a_gap_that_was_recorded_keeps_its_reason() -> None:
    detail = {"start": 10.0, "end": 20.0, "seconds": 10.0}
    gap = Event(20.0, EventType.GAP, "engine_restarted", detail)
    damaged = Event(20.0, EventType.GAP, "engine_restarted", {"start": "soon", "end": 20.0})
    assert recorded_gaps([gap, damaged]) == [Gap(10.0, 20.0, "engine_restarted")]
    assert "the load could not go on" in event_text("gap", LOAD_FAILED, detail)
