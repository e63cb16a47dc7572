"""Names of parts: given, or from the drive below a target or from the target itself; unique and fit for a series."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.journals import order_of

from cliffwatch.model.part_names import ONLY_PART, PART_NAME, part_names
from cliffwatch.model.target import DirectoryTarget, parse_target

NVME = "device:nvme-SAMSUNG_MZQL23T8HCLS_S64HNX0T500123"


@pytest.mark.parametrize(
    ("target", "drives", "name"),
    [
        ("directory:/mnt/data", ["nvme3n1"], "nvme3n1"),
        ("directory:/mnt/data", ["sda", "sdb"], "data"),
        ("directory:/", [], "part"),
        (NVME, ["nvme0n1"], "nvme0n1"),
        (NVME, [], "nvme-samsung-mzql23t8hcls-s64hnx"),
        ("device:/var/lib/images/one.img", [], "one"),
        ("broker:kafka-1.example:9092,kafka-2.example:9092", [], "kafka-1"),
        ("broker:127.0.0.1:9092", [], "broker"),
        ("postgres://bench@db-7.example:5432/bench", [], "db-7"),
        ("postgres://bench@127.0.0.1:5432/bench", [], "postgres"),
        ("synthetic:one", [], "one"),
        ("synthetic:local", [], "local-2"),
    ],
)
def test_a_part_is_named_for_its_drive_or_target(target: str, drives: list[str], name: str) -> None:
    assert part_names([parse_target(target)], [drives]) == (name,)


def test_a_name_that_is_taken_gets_a_number_and_a_given_one_stays() -> None:
    targets = [parse_target("directory:/a/data")] * 4
    assert part_names(targets, [[]] * 4, [None, "data", None]) == ("data-2", "data", "data-3", "data-4")


@given(paths=st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=16))
def test_names_are_unique_and_fit(paths: list[str]) -> None:
    targets = [DirectoryTarget.model_construct(path=f"/{path}") for path in paths]
    names = part_names(targets, [[]] * len(targets))
    assert len(set(names)) == len(names)
    assert ONLY_PART not in names
    assert all(re.fullmatch(PART_NAME, name) for name in names)


def test_parts_of_earlier_versions_are_numbered() -> None:
    parts = order_of("synthetic:one", "synthetic:two").parts
    assert {name: str(target) for name, target in parts.items()} == {
        "part-1": "synthetic:one",
        "part-2": "synthetic:two",
    }
