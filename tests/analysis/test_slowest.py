"""The slowest operation of a run, and from when on it is a stall that no run passes with."""

from dataclasses import replace

import pytest
from tests.analysis.sound_run import SOUND

from cliffwatch.analysis.coverage import Gap
from cliffwatch.analysis.stalls import LONGEST_SECONDS, Slowest, slowest_in
from cliffwatch.analysis.verdict import judge
from cliffwatch.journal import JournalWindow
from cliffwatch.model.run_state import VerdictName


def window(number: int, longest: float, phase: str = "soak") -> JournalWindow:
    latency: dict[str, dict[str, float | None]] = {
        "append": {"count": 9, "max": longest},
        "append_service": {"count": 9, "max": 0.1},
        "sync": {"max": None},
    }
    start = 100.0 + 10 * number
    return JournalWindow(number, start, start + 10, phase, {"operations": 9}, {}, latency, (0, 0))


def test_the_slowest_operation_is_that_of_any_judged_window() -> None:
    windows = [window(0, 50.0, "warm_up"), window(1, 0.2), window(2, 12.0), window(3, 11.0)]
    assert slowest_in(windows, []) == Slowest(12.0, 130.0)
    assert slowest_in(windows[:1], []) is None


def test_the_slowest_operation_is_not_one_due_before_or_in_a_gap() -> None:
    windows = [window(0, 0.2), window(3, 15.0), window(5, 11.0)]
    assert slowest_in(windows, [Gap(110.0, 130.0, "engine_frozen")]) == Slowest(11.0, 160.0)


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        ({"slowest": Slowest(LONGEST_SECONDS, 90.0)}, VerdictName.DEGRADED, "An operation took 10 s, 1m30s into"),
        (
            {"slowest": Slowest(LONGEST_SECONDS, 90.0, at_least=True)},
            VerdictName.DEGRADED,
            "An operation took at least 10 s, 1m30s into the load",
        ),
        ({"unfinished_seconds": LONGEST_SECONDS}, VerdictName.DEGRADED, "The load ended in a stall: the oldest"),
        ({"slowest": Slowest(LONGEST_SECONDS - 0.1, 90.0)}, VerdictName.PASS, "operations without an error"),
        ({"unfinished_seconds": LONGEST_SECONDS - 0.1}, VerdictName.PASS, "The load ended in a stall: the oldest"),
    ],
)
def test_from_ten_seconds_on_it_is_a_stall(change: dict[str, object], name: VerdictName, words: str) -> None:
    verdict = judge(replace(SOUND, **change))  # type: ignore[arg-type]  # fields by name
    assert verdict.name is name
    assert any(words in reason for reason in verdict.reasons), verdict.reasons
