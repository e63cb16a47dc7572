"""How far a value is from a limit's bound, in words."""

import pytest

from cliffwatch.model.limits import parse_limit
from cliffwatch.report.limits.margin import margin


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("p99 <= 10ms", None, ""),
        ("p99 <= 10ms", 0.004, "60 % below the bound"),
        ("p99 <= 10ms", 0.04, "4.0× the bound"),
        ("p99 <= 10ms", 0.26, "26× the bound"),
        ("throughput >= 10MB/s", 5e6, "50 % below the bound"),
        ("throughput >= 10MB/s", 2e10, "2,000× the bound"),
    ],
)
def test_a_margin_is_a_share_or_a_ratio(limit: str, value: float | None, words: str) -> None:
    assert margin(parse_limit(limit), value) == words
