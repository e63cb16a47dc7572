"""What the load generators write as a histogram is what the service reads: both are held against one golden file."""

from pathlib import Path

import pytest

from cliffwatch.base.histogram import HIGHEST_NANOSECONDS, Histogram

GOLDEN = Path(__file__).parents[3] / "load/measure/tests/data/histogram.txt"


def test_golden_histogram_holds_what_the_load_generator_counted() -> None:
    read = Histogram.decode(GOLDEN.read_text().strip())
    counted = Histogram.from_values({500: 1, 12_345: 10, 3_500_000_000: 2, HIGHEST_NANOSECONDS: 1})
    limits = [1e-6, 12.2e-6, 12.8e-6, 3.4, 3.6, 3590.0, 3610.0]
    assert read.cumulative_counts(limits) == counted.cumulative_counts(limits) == [1, 1, 11, 11, 13, 13, 14]
    assert read.percentiles_seconds() == counted.percentiles_seconds()
    assert read.max_seconds == pytest.approx(3600, rel=1e-3)
    merged = Histogram()
    merged.merge(read)
    merged.merge(counted)
    assert merged.count == 28
