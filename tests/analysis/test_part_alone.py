"""A finding of a run with several parts names the part that is affected alone."""

import numpy as np
import pytest

from cliffwatch.analysis.csv_table import read_table
from cliffwatch.analysis.finding import Finding
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.sizes import restated
from cliffwatch.analysis.table import Table
from cliffwatch.analysis.wording import Circumstances, sentence_of

PARTS, WINDOWS, CHANGED = ("nvme0n1", "nvme1n1", "nvme2n1"), 2400, 1500


def table_of(*slow: str) -> Table:
    """Three drives, of which some are six times as slow from a window on; `append` is of all of them together."""
    random = np.random.default_rng(5)
    levels = {part: 0.005 * np.exp(random.normal(0, 0.08, WINDOWS)) for part in PARTS}
    for part in slow:
        levels[part][CHANGED:] *= 6
    columns = {"append": np.maximum.reduce(list(levels.values())), **{f"{part}/append": levels[part] for part in PARTS}}
    rows = np.column_stack(list(columns.values())).tolist()
    lines = [f"{10 * index}," + ",".join(f"{value:.6g}" for value in row) for index, row in enumerate(rows)]
    return read_table([",".join(["elapsed_seconds", *(f"{name}.p99" for name in columns)]), *lines])


def found_in(table: Table, mode: str) -> Finding:
    find = analysis if mode == "offline" else replay
    (found,) = find(table.series, table.samples, table.notices, table.window_seconds)
    # During a run, a finding is stated for the series that it turns out to be about.
    return restated(found, {one.name: one for one in table.series})


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize(
    ("slow", "series"),
    [
        (("nvme1n1",), "nvme1n1/append.p99"),
        (("nvme0n1", "nvme2n1"), "append.p99"),
        (PARTS, "append.p99"),
    ],
)
def test_the_part_that_is_slow_alone_is_the_subject(mode: str, slow: tuple[str, ...], series: str) -> None:
    table = table_of(*slow)
    found = found_in(table, mode)
    assert found.series == series
    assert found.ratio == pytest.approx(6, rel=0.25)
    if len(slow) == 1:
        known = {one.name: one for one in table.series}
        sentence = sentence_of(found, known[series], None, known, Circumstances("4:10:00", "nvme1n1"))
        assert sentence == f"Cliff at 4:10:00: nvme1n1/append p99 rose {found.ratio:.1f}×."
