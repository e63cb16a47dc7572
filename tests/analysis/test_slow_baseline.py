"""A declared baseline that was slower than the run after it: the verdict says so, and what it hides."""

import pytest
from testkit.soaks.trouble import verdict_on

from cliffwatch.analysis.csv_table import read_table
from cliffwatch.model.run_state import Verdict, VerdictName

WINDOWS, BASELINE = 720, 90


def verdict_of(rows: list[str], columns: str) -> Verdict:
    lines = [f"{index * 10},{row}" for index, row in enumerate(rows)]
    return verdict_on(read_table([f"elapsed_seconds,{columns}", *lines]), "offline")


@pytest.mark.parametrize(
    ("baseline", "soak", "is_said"),
    [(0.585, 0.0777, True), (0.0105, 0.0100, False), (0.0140, 0.0100, False), (0.0160, 0.0100, True)],
)
def test_a_baseline_that_was_slower_than_the_soak_is_said(baseline: float, soak: float, is_said: bool) -> None:
    rows = [
        f"{'baseline' if index < BASELINE else 'soak'},{baseline if index < BASELINE else soak:.6f},900.0"
        for index in range(WINDOWS)
    ]
    verdict = verdict_of(rows, "phase,p99,operations_per_second")
    said = [reason for reason in verdict.reasons if reason.startswith("The baseline was slow")]
    assert verdict.name is VerdictName.PASS
    assert bool(said) == is_said
    if baseline == 0.585:
        assert "the p99 of its median window was 585 ms, and later 77.7 ms for 1h, so" in said[0]


def test_a_short_soak_is_not_said_to_have_lasted_an_hour() -> None:
    rows = [f"{'baseline' if index < 30 else 'soak'},{0.5 if index < 30 else 0.1},900.0" for index in range(75)]
    (said,) = [each for each in verdict_of(rows, "phase,p99,operations_per_second").reasons if "was slow" in each]
    assert "and later 100 ms for 7m30s, so" in said


def test_without_a_declared_baseline_nothing_is_said_of_one() -> None:
    rows = [f"{0.585 if index < BASELINE else 0.0777:.6f},900.0" for index in range(WINDOWS)]
    assert not any("baseline" in reason for reason in verdict_of(rows, "p99,operations_per_second").reasons)


def test_a_soak_that_became_slower_has_no_slow_baseline() -> None:
    rows = [
        f"{'baseline' if index < BASELINE else 'soak'},{0.01 if index < 400 else 0.2:.6f},900.0"
        for index in range(WINDOWS)
    ]
    verdict = verdict_of(rows, "phase,p99,operations_per_second")
    assert verdict.name is VerdictName.DEGRADED
    assert not any("baseline was slow" in reason for reason in verdict.reasons)
