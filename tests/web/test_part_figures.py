"""Figures of the parts of a run on its page: the slow one stands out, and what was not measured is a dash."""

from pathlib import Path

import pytest
from testkit.journals import order_of

from cliffwatch.journal import JournalReader
from cliffwatch.web.part_figures import PartFigure, parts_now, parts_reported

pytestmark = pytest.mark.gate(why="neither a browser nor a service")


def test_a_part_that_is_slower_than_the_others_stands_out() -> None:
    parts = [
        {"name": "nvme1n1", "target": "directory:/mnt/b", "p99_seconds": 0.012, "ratio_to_others": 3.0},
        {"name": "nvme0n1", "target": "directory:/mnt/a", "p99_seconds": 0.004, "ratio_to_others": 0.5},
        {"name": "nvme2n1", "target": "directory:/mnt/c"},
    ]
    assert parts_reported({"parts": parts}) == [
        PartFigure("nvme1n1", "p99 12 ms", "3.0× the others, soak, directory:/mnt/b", is_bad=True),
        PartFigure("nvme0n1", "p99 4 ms", "soak, directory:/mnt/a", is_bad=False),
        PartFigure("nvme2n1", "–", "soak, directory:/mnt/c", is_bad=False),
    ]


def test_a_run_with_one_target_or_without_a_window_has_none(tmp_path: Path) -> None:
    assert parts_reported({}) == []
    for targets in (("synthetic:one",), ("synthetic:one", "synthetic:two")):
        assert parts_now(order_of(*targets), JournalReader(tmp_path)) == []
