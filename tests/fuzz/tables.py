"""What holds of every table of windows that was read."""

import math

from cliffwatch.analysis.table import Table


def require_sound(table: Table) -> None:
    assert math.isfinite(table.window_seconds)
    assert table.window_seconds > 0
    assert isinstance(table.errors, int)
    for sample, seconds in zip(table.samples, table.measured, strict=True):
        assert 0 <= sample.start < sample.end < math.inf
        assert 0 <= seconds <= sample.end - sample.start + 1e-6
        assert all(math.isfinite(value) and value >= 0 for value in sample.values.values())
    assert all(0 <= start < end < math.inf for start, end in table.gaps)
    assert all(math.isfinite(notice.at) for notice in table.notices)
