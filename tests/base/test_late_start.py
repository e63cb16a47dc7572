"""When a load begins whose engine was not ready in time."""

import pytest

from cliffwatch.engines.late_start import begin_of
from cliffwatch.model.window import BEGUN


@pytest.mark.parametrize("now", [90.0, 100.0])
def test_an_engine_that_is_ready_begins_as_planned(now: float) -> None:
    begin = begin_of(now, 100.0, 160.0, 10.0, may_move=True)
    assert (begin.start, begin.stop, begin.event) == (100.0, 160.0, None)


def test_the_first_engine_of_a_run_moves_the_load_to_a_later_line_of_the_grid() -> None:
    begin = begin_of(112.5, 100.0, 160.0, 10.0, may_move=True)
    assert (begin.start, begin.stop) == (120.0, 180.0)
    assert begin.event is not None
    assert (begin.event.name, begin.event.detail) == (BEGUN, {"start": 120.0, "late_seconds": 12.5})


def test_an_engine_that_goes_on_with_a_load_ends_when_that_was_to() -> None:
    begin = begin_of(112.5, 100.0, 160.0, 10.0, may_move=False)
    assert (begin.start, begin.stop, begin.event) == (120.0, 160.0, None)
