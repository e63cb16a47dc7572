"""What is counted since a run's start, where an exporter came up after it."""

from pathlib import Path

import pytest
from dashboards.builder.promql import at_start
from tests.dashboards.evaluation import assert_value

#: Start of the load, in seconds.
START = 60


@pytest.mark.parametrize(
    ("values", "at"),
    [
        (f"0+10x{START - 1} 600+10x100", 600),
        # The first scrape is 7 s after the start.
        (f"_x{START + 7} 670+10x100", 670),
        (f"_x{START + 90} 1500+10x100", None),
    ],
    ids=["before", "just after", "long after"],
)
def test_the_first_count_in_the_minute_after_a_start_is_taken_for_that_of_the_start(
    tmp_path: Path, values: str, at: int | None
) -> None:
    series = 'bytes_total{device="sda"}'
    assert_value(tmp_path / "test.yaml", {series: values}, at_start(series, str(START)), "150s", at)
