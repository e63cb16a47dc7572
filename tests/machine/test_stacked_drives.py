"""The gate on stacks that need drivers this machine may lack: arrays, volume groups, namespaces."""

import os
import stat
from pathlib import Path

import pytest
from testkit.loops import codes
from tests.machine.trees import Tree, empty_tree, nvme

from cliffwatch.gate import Examination, examine
from cliffwatch.model.target import DeviceTarget


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return empty_tree(tmp_path)


#: What a drive without a node adds: nothing can be read from it, and it cannot be claimed.
NO_PROOF = {"signatures_unknown", "in_use"}


def examined(tree: Tree, serial: str = "S0") -> Examination:
    target = DeviceTarget(identity=serial, confirmation=f"erase serial {serial}")
    return examine(target, "r1", sys=tree.sys, proc=tree.proc)


def message_of(examination: Examination, code: str) -> str:
    return next(objection.message for objection in examination.objections if objection.code == code)


def test_without_proof_there_is_no_yes(tree: Tree) -> None:
    nvme(tree, 0, "S0")
    assert codes(examined(tree)) == NO_PROOF


def test_compressed_memory_that_writes_back_to_a_drive_holds_it(tree: Tree, tmp_path: Path) -> None:
    """It is no holder that sysfs lists: only `backing_dev` of the zram says which device it took."""
    nvme(tree, 0, "S0")
    number = nvme(tree, 1, "S1") / "dev"
    major, minor = map(int, number.read_text().split(":"))
    node = tmp_path / "backing"
    os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(major, minor))
    tree.disk("zram0", "252:0", attributes={"backing_dev": str(node)})
    tree.disk("zram1", "252:1", attributes={"backing_dev": "none"})
    assert codes(examined(tree, "S0")) == NO_PROOF
    examination = examined(tree, "S1")
    assert codes(examination) == {"holder_other", *NO_PROOF}
    assert "zram0 on nvme1n1" in message_of(examination, "holder_other")


def test_a_member_of_an_array_has_a_holder(tree: Tree) -> None:
    array = tree.disk("md127", "9:127", attributes={"md/level": "raid1"})
    tree.stack(array, [nvme(tree, 0, "S0")])
    examination = examined(tree)
    assert codes(examination) == {"holder_md", *NO_PROOF}
    assert message_of(examination, "holder_md").startswith("md127 (raid1) on nvme0n1 is in use")


@pytest.mark.parametrize("uuid", ["LVM-abc", "CRYPT-LUKS2-abc-data", "mpath-36001405"])
def test_a_mapped_partition_that_is_mounted_is_the_drive_s_fault(tree: Tree, uuid: str) -> None:
    partition = tree.partition(nvme(tree, 0, "S0"), 1, "259:1")
    mapped = tree.disk("dm-0", "252:0", attributes={"dm/uuid": uuid})
    tree.stack(mapped, [partition])
    tree.mount(40, "252:0", "/var/lib/data", "xfs", "/dev/mapper/data")
    examination = examined(tree)
    assert codes(examination) == {"holder_dm", "mounted", "partition_table", *NO_PROOF}
    assert message_of(examination, "holder_dm").startswith(f"dm-0 ({uuid}) on nvme0n1p1 is in use")
    assert "/var/lib/data" in message_of(examination, "mounted")


def test_a_file_system_three_layers_up_is_found(tree: Tree) -> None:
    partition = tree.partition(nvme(tree, 0, "S0"), 1, "259:1")
    array, logical = tree.disk("md0", "9:0"), tree.disk("dm-0", "252:0")
    tree.stack(array, [partition])
    tree.stack(logical, [array])
    tree.mount(40, "252:0", "/data", "ext4", "/dev/mapper/data")
    assert {"holder_md", "holder_dm", "mounted"} <= codes(examined(tree))


def test_other_holders_count(tree: Tree) -> None:
    tree.stack(tree.disk("bcache0", "251:0"), [nvme(tree, 0, "S0")])
    assert "holder_other" in codes(examined(tree))


def test_any_drive_of_a_mounted_btrfs_is_mounted(tree: Tree) -> None:
    devices = tree.sys / "fs" / "btrfs" / "uuid" / "devices"
    devices.mkdir(parents=True)
    for number in range(2):
        directory = nvme(tree, number, f"S{number}")
        (devices / directory.name).symlink_to(directory)
    tree.mount(40, "0:36", "/data", "btrfs", "/dev/nvme1n1")
    assert "mounted" in codes(examined(tree, "S0"))
    assert "mounted" in codes(examined(tree, "S1"))


def test_a_mounted_array_on_another_drive_is_no_objection(tree: Tree) -> None:
    nvme(tree, 0, "S0")
    array = tree.disk("md0", "9:0")
    tree.stack(array, [nvme(tree, 1, "S1")])
    tree.mount(40, "9:0", "/data", "ext4", "/dev/md0")
    assert codes(examined(tree)) == NO_PROOF


def test_an_array_is_a_target_whose_key_is_its_drives(tree: Tree) -> None:
    array = tree.disk("md0", "9:0", 1024 * 1024, attributes={"md/level": "raid0", "md/uuid": "uuid-of-the-array"})
    tree.stack(array, [nvme(tree, 10, "S10"), nvme(tree, 2, "S2", firmware="OLDER")])
    target = DeviceTarget(identity="uuid-of-the-array", confirmation="erase uuid uuid-of-the-array")
    examination = examine(target, "r1", sys=tree.sys, proc=tree.proc)
    assert codes(examination) == NO_PROOF
    assert examination.target_key == "drive:259:8+259:40"
    assert examination.notes == ("the drives differ in firmware: nvme2n1 OLDER, nvme10n1 GDC5602Q",)


def test_namespaces_of_one_controller_share_a_key(tree: Tree) -> None:
    nvme(tree, 0, "S0")
    tree.disk("nvme0n2", "259:3", 1024 * 1024, "pci0000:00/nvme0", {"wwid": "eui.second"}, {"serial": "S0"})
    nvme(tree, 1, "S1")
    first, second = examined(tree, "eui.36344730540000250025384100000001"), examined(tree, "eui.second")
    assert first.target_key == second.target_key == "drive:259:0+259:3"
    assert first.notes == ("nvme0n1 and nvme0n2 share one drive: each slows the other",)
    assert examined(tree, "S1").target_key == "drive:259:4"
