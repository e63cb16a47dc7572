"""The rate of a load that others make: less work is no finding, none at all is one."""

import pytest

from cliffwatch.analysis.finding import FindingKind
from cliffwatch.analysis.journal_series import sample_of, series_of
from cliffwatch.analysis.online.work_judge import WorkJudge
from cliffwatch.journal import JournalWindow


def windows(rates: list[int], gauges: dict[str, float]) -> list[JournalWindow]:
    return [
        JournalWindow(
            seq=seq,
            start=10.0 * seq,
            end=10.0 * (seq + 1),
            phase="soak",
            counters={"operations": 10 * rate},
            gauges=gauges,
            latency={"publish": {"p50": 0.002, "p99": 0.004}} if rate else {},
            latency_range=(0, 0),
        )
        for seq, rate in enumerate(rates)
    ]


def kinds(rates: list[int], gauges: dict[str, float]) -> set[FindingKind]:
    found = windows(rates, gauges)
    judge = WorkJudge(series_of(found[0]), 10.0)
    return {finding.kind for window in found for finding in judge.feed(sample_of(window), True)}


@pytest.mark.parametrize(
    ("gauges", "found"), [({}, {FindingKind.SHORTFALL}), ({"observed_series": 3.0}, set())], ids=["made", "observed"]
)
def test_less_than_half_as_much_is_a_shortfall_of_a_load_that_the_run_makes(
    gauges: dict[str, float], found: set[FindingKind]
) -> None:
    assert kinds([100] * 400 + [30] * 200, gauges) == found


@pytest.mark.parametrize("gauges", [{}, {"observed_series": 3.0}], ids=["made", "observed"])
def test_nothing_at_all_is_a_stall_of_either(gauges: dict[str, float]) -> None:
    assert kinds([100] * 400 + [0] * 3 + [100] * 10, gauges) == {FindingKind.STALL}
