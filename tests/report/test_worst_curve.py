"""The small curve of a run that is over: few points, and none of the worst left out."""

from pathlib import Path

from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal
from tests.report.documents import document_of

from cliffwatch.base.histogram import Histogram
from cliffwatch.report.charts.curve import CURVE_POINTS, CurvePoint, curve_in, worst_curve

MILLISECOND = 1_000_000
SLOW, STALLED = 1234, 2001


def journal(directory: Path) -> Path:
    """A run of 3,000 windows, of which one is slow, and in one nothing was completed."""

    def latency(index: int) -> dict[str, Histogram]:
        milliseconds = 300 if index == SLOW else 2
        return {} if index == STALLED else {"publish": Histogram.from_values({milliseconds * MILLISECOND: 100})}

    plan = JournalPlan(
        windows=3000,
        latency=latency,
        counters=lambda index: {"operations": 0 if index == STALLED else 100, "errors": 0},
        gauges=lambda index: {"oldest_outstanding_seconds": 9.0} if index == STALLED else {},
    )
    return make_journal(directory, plan)


def test_the_worst_window_and_a_stall_of_a_long_run_are_points_of_its_curve(tmp_path: Path) -> None:
    curve = curve_in(dict(document_of(journal(tmp_path / "run"))))
    assert len(curve) <= 2 * CURVE_POINTS + 2
    assert curve == sorted(curve)
    (slow,) = [point for point in curve if point.p99 is not None and point.p99 > 0.1]
    assert slow.at == LOAD_START + 10 * (SLOW + 1)
    assert [point for point in curve if point.stall is not None] == [
        CurvePoint(LOAD_START + 10 * (STALLED + 1), None, 9.0)
    ]
    assert (curve[0].at, curve[-1].at) == (LOAD_START + 10, LOAD_START + 30_000)


def test_a_run_without_windows_has_no_curve() -> None:
    assert worst_curve([]) == []
    assert curve_in({}) == []
