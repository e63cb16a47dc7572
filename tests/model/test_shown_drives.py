"""Drives of a run in one line."""

from typing import Any

import pytest

from cliffwatch.model.shown_drives import shown_drives

NVME = {"name": "nvme0n1", "model": "Example 4TB", "serial": "S1"}


@pytest.mark.parametrize(
    ("drives", "words"),
    [
        (None, ""),
        ("damaged", ""),
        ([], ""),
        (["damaged", {}], ""),
        ([NVME], "nvme0n1 (Example 4TB, S1)"),
        ([{"name": "sda", "model": None, "serial": None, "wwn": "0x5"}], "sda (0x5)"),
        ([{"name": "loop0", "backing_file": "/x/drive"}], "loop0 (/x/drive)"),
        ([{"name": "sda"}], "sda"),
        ([NVME | {"instance": "broker-1"}], "nvme0n1 of broker-1 (Example 4TB, S1)"),
        ([{"name": f"sd{letter}"} for letter in "abc"], "sda, sdb, sdc"),
        ([{"name": f"sd{letter}"} for letter in "abcde"], "sda, sdb, sdc and 2 more"),
    ],
)
def test_the_drives_of_a_run_are_named_in_one_line(drives: Any, words: str) -> None:
    assert shown_drives({"drives": drives}) == words
