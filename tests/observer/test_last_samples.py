"""Which sample of a gauge is a window's."""

import numpy as np
import pytest

from cliffwatch.observer.system import last_within
from cliffwatch.telemetry.prometheus import PrometheusAnswer


@pytest.mark.parametrize(
    ("times", "values", "expected"),
    [
        ([101.0, 105.0, 109.0], [1.0, 2.0, 3.0], 3.0),
        ([100.0, 110.0], [1.0, 2.0], 2.0),
        ([100.0], [1.0], None),
        ([110.5], [1.0], None),
        ([], [], None),
        ([105.0, 109.0], [2.0, float("nan")], 2.0),
        ([105.0], [float("inf")], None),
    ],
)
def test_the_last_one_after_its_begin_and_up_to_its_end(
    times: list[float], values: list[float], expected: float | None
) -> None:
    answer = PrometheusAnswer({}, np.array([round(time * 1000) for time in times], dtype=np.int64), np.array(values))
    assert last_within(answer, 100.0, 110.0) == expected
