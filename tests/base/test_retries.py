"""Pauses between attempts grow, and no further than they may."""

from cliffwatch.base.retries import growing_pause_seconds


def test_a_pause_doubles_with_each_failure_up_to_the_longest() -> None:
    pauses = [growing_pause_seconds(failures, 1.5, 10.0) for failures in range(1, 6)]
    assert pauses == [1.5, 3.0, 6.0, 10.0, 10.0]
    assert growing_pause_seconds(100_000, 1.5, 10.0) == 10.0
