"""Drives that their makers gave one name, or none: each stays itself, and can be named or says why not."""

from pathlib import Path

import pytest
from tests.machine.trees import Tree, empty_tree

from cliffwatch.base.errors import Code, Problem
from cliffwatch.machine import inventory
from cliffwatch.machine.inventory import drive_by_identity, drives_by_identity, list_drives, names_of
from cliffwatch.machine.twins import twins_of

#: As a cloud gives it to each of its local SSDs.
MADE_UP = "nvme.1ae0-6e766d655f63617264-6e766d655f63617264-00000001"
EUI = "eui.0025385b01000033"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return empty_tree(tmp_path)


def nvme(tree: Tree, number: int, serial: str, wwid: str, subsystem: str | None = None) -> None:
    hardware = {"model": "Example", "serial": serial, "firmware_rev": "1"}
    hardware |= {} if subsystem is None else {"subsysnqn": subsystem}
    bus = f"pci0000:00/0000:00:0{number}.0/nvme/nvme{number}"
    tree.disk(f"nvme{number}n1", f"259:{number}", 1 << 38, bus, {"wwid": wwid}, hardware)


def twins(tree: Tree) -> list[str]:
    return [twin.drive.name for drive in list_drives(tree.sys) for twin in twins_of(drive, tree.sys, tree.proc).known]


def test_drives_with_a_wwn_that_the_kernel_made_up_are_two(tree: Tree) -> None:
    nvme(tree, 0, "nvme_card", MADE_UP)
    nvme(tree, 1, "nvme_card", MADE_UP)
    assert twins(tree) == []


def test_drives_of_two_subsystems_are_two_though_a_batch_has_one_eui(tree: Tree) -> None:
    nvme(tree, 0, "A1", EUI, "nqn.2026-01.example:a1")
    nvme(tree, 1, "A2", EUI, "nqn.2026-01.example:a2")
    assert twins(tree) == []


def test_two_controllers_of_one_subsystem_reach_one_namespace(tree: Tree) -> None:
    nvme(tree, 0, "A1", EUI, "nqn.2026-01.example:a1")
    nvme(tree, 1, "A1", EUI, "nqn.2026-01.example:a1")
    assert twins(tree) == ["nvme1n1", "nvme0n1"]


@pytest.mark.parametrize("zeros", ["eui.0000000000000000", "uuid.00000000-0000-0000-0000-000000000000", "0000"])
def test_zeros_are_no_identity(tree: Tree, zeros: str) -> None:
    nvme(tree, 0, "A1", zeros)
    nvme(tree, 1, "A2", zeros)
    assert [drive.identities for drive in list_drives(tree.sys)] == [("A1",), ("A2",)]
    assert twins(tree) == []


def test_a_shared_name_says_what_to_write_for_each(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvme(tree, 0, "nvme_card", MADE_UP)
    nvme(tree, 1, "nvme_card", MADE_UP)
    with pytest.raises(Problem, match=r"names nvme0n1 and nvme1n1; nothing names nvme0n1 and nvme1n1 alone") as refusal:
        drive_by_identity("nvme_card", tree.sys)
    assert refusal.value.code is Code.TARGET_UNSAFE
    assert "name a directory on it instead" in str(refusal.value)
    links = tmp_path / "by-path"
    links.mkdir()
    for number in (0, 1):
        (links / f"pci-0000:00:0{number}.0-nvme-1").write_text("")
    monkeypatch.setattr(inventory, "BY_PATH", f"{links}/")
    monkeypatch.setattr(inventory, "device_number", lambda path: f"259:{str(path)[-10]}")
    first = f"{links}/pci-0000:00:00.0-nvme-1"
    assert names_of(list_drives(tree.sys))["259:0"] == [first]
    with pytest.raises(Problem, match=f"write device:{first} for nvme0n1 or device:"):
        drive_by_identity("nvme_card", tree.sys)


def test_a_link_by_path_names_the_drive_that_it_leads_to(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    nvme(tree, 0, "nvme_card", MADE_UP)
    nvme(tree, 1, "nvme_card", MADE_UP)
    monkeypatch.setattr(inventory, "device_number", lambda _: "259:1")
    found = drives_by_identity("/dev/disk/by-path/pci-0000:00:01.0-nvme-1", tree.sys)
    assert [drive.name for drive in found] == ["nvme1n1"]


def test_names_that_two_drives_have_name_neither(tree: Tree) -> None:
    nvme(tree, 0, "A1", "eui.1")
    nvme(tree, 1, "A1", "eui.2")
    assert names_of(list_drives(tree.sys)) == {"259:0": ["eui.1"], "259:1": ["eui.2"]}
