"""SNIA's rule: five rounds, range at most 20 %, slope at most 10 % of the mean."""

from collections.abc import Sequence

import pytest

from cliffwatch.analysis.steady_state import Round, SteadyWatch, assess, unsteadiness
from cliffwatch.journal import JournalWindow
from cliffwatch.model.steady import ROUNDS


def window(index: int, operations: int, write_milliseconds: int = 0, seconds: float = 10.0) -> JournalWindow:
    counters = {"operations": operations}
    if write_milliseconds:
        counters |= {"device_write_operations": 1000, "device_write_milliseconds": write_milliseconds}
    start = index * 10.0
    return JournalWindow(index, start, start + 10, "warm_up", counters, {"measured_seconds": seconds}, {}, (0, 0))


def rounds(*values: float) -> list[Round]:
    return [Round(index, index + 1.0, {"operations_per_second": value}) for index, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ((100, 100, 100, 100, 100), ""),
        ((90, 110, 92, 108, 100), ""),
        ((88, 111, 100, 100, 100), "varied by 23 %"),
        ((95, 97, 100, 103, 106), "rose by 11 %"),
        ((106, 103, 100, 97, 95), "fell by 11 %"),
        ((96, 98, 100, 102, 104), ""),
        ((500, 400, 100, 100, 100, 100, 100), ""),
        ((100, 100, 100, 100), "4 rounds and the rule needs 5"),
        ((0, 0, 0, 0, 0), "were zero"),
    ],
)
def test_the_last_five_rounds_are_judged_by_range_and_slope(values: Sequence[float], fault: str) -> None:
    found = unsteadiness(rounds(*values))
    assert (fault in found) if fault else found == ""


def test_it_is_reached_at_the_end_of_the_first_five_steady_rounds() -> None:
    falling = [3000, 2400, 1900, 1500, 1300, 1150, 1080, 1040, 1020, 1010, 1000, 1000]
    windows = [window(index, falling[index // 3]) for index in range(len(falling) * 3)]
    found = assess(windows, 0.0, 30.0)
    assert found.at == 330.0
    assert len(found.rounds) == 11
    assert found.why_not == ""
    watch = SteadyWatch(0.0, 30.0)
    assert next(each.end for each in windows if watch.feed(each) is not None) == 330.0


def test_a_fixed_rate_is_not_steady_while_the_drive_s_writes_slow_down() -> None:
    windows = [window(index, 1000, write_milliseconds=1000 + 100 * index) for index in range(30)]
    found = assess(windows, 0.0, 30.0)
    assert found.at is None
    assert "the write latency at the block layer varied" in found.why_not
    assert assess([window(index, 1000, 1000) for index in range(30)], 0.0, 30.0).at == 150.0


def test_a_round_that_was_not_measured_makes_it_begin_anew() -> None:
    windows = [window(index, 1000) for index in range(40) if index not in (6, 7)]
    assert assess(windows, 0.0, 30.0).at == 240.0
    partly = [window(index, 1000 if index != 6 else 700, seconds=10.0 if index != 6 else 7.0) for index in range(40)]
    assert assess(partly, 0.0, 30.0).at == 30.0 * ROUNDS


def test_windows_before_the_phase_do_not_count_towards_steady_state() -> None:
    windows = [window(index, 1000) for index in range(40)]
    assert assess(windows, 100.0, 30.0).at == 250.0
