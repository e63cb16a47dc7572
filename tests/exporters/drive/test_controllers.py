"""Which drives there are, by a tree like /sys."""

from pathlib import Path

from cliffwatch_drive_exporter.controllers import Controller, find_controllers
from tests.exporters.drive.exporter import Machine


def test_a_drive_goes_by_its_disk(machine: Machine) -> None:
    machine.add(10, "LAST")
    machine.add(2, "FIRST", disk="nvme7c2n1")
    assert find_controllers(machine.sys) == [
        Controller("nvme2", "nvme7n1", "FIRST"),
        Controller("nvme10", "nvme10n1", "LAST"),
    ]


def test_a_drive_with_several_disks_is_one_drive(machine: Machine) -> None:
    machine.add(0, "MANY", disk="nvme0n2")
    for name in ("nvme0n1", "nvme0n10", "hwmon3", "power"):
        (machine.sys / "class" / "nvme" / "nvme0" / name).mkdir()
    assert find_controllers(machine.sys) == [Controller("nvme0", "nvme0n1", "MANY")]


def test_two_controllers_of_the_same_disk_are_one_drive(machine: Machine) -> None:
    machine.add(0, "DUAL", disk="nvme0c0n1")
    machine.add(1, "DUAL", disk="nvme0c1n1")
    assert find_controllers(machine.sys) == [Controller("nvme0", "nvme0n1", "DUAL")]


def test_a_controller_without_a_disk_goes_by_its_own_name(machine: Machine) -> None:
    (machine.sys / "class" / "nvme" / "nvme3").mkdir()
    assert find_controllers(machine.sys) == [Controller("nvme3", "nvme3", "")]


def test_a_machine_without_nvme_has_none(tmp_path: Path) -> None:
    assert find_controllers(tmp_path) == []
