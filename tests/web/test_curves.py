"""What live pages draw of a journal: gaps stay gaps."""

from pathlib import Path

import pytest
from testkit.recorded_runs import LOAD_START, JournalPlan, make_journal

from cliffwatch.analysis.stalls import stall_of
from cliffwatch.journal import JournalWindow
from cliffwatch.web.curves import columns_of


def test_windows_that_are_missing_leave_a_row_of_nothing(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=6, missing={2, 3}))
    series = columns_of(directory, LOAD_START)
    columns = dict(zip(series["names"], series["columns"], strict=True))
    assert columns["elapsed"] == pytest.approx([10, 20, 20.001, 50, 60])
    assert [value is None for value in columns["p99"]] == [False, False, True, False, False]
    assert columns["operations_per_second"][2] is None
    assert series["last_window"] == 3


@pytest.mark.parametrize(
    ("operations", "gauges", "stall"),
    [
        (100, {"oldest_outstanding_seconds": 9.0}, None),
        (0, {"oldest_outstanding_seconds": 9.0}, 9.0),
        (0, {"oldest_outstanding_seconds": 0.0}, None),
        (0, {}, 0.0),
    ],
)
def test_a_window_in_which_nothing_was_completed_is_a_stall(
    operations: int, gauges: dict[str, float], stall: float | None
) -> None:
    window = JournalWindow(0, LOAD_START, LOAD_START + 10, "soak", {"operations": operations}, gauges, {}, (0, 0))
    assert stall_of(window) == stall
