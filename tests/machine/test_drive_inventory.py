"""The inventory: what the kernel says of loop devices, and of drives that only fixture trees have."""

import os
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, loop_drive
from tests.machine.trees import Tree, empty_tree, mount_id_of, nvme, write

from cliffwatch.base.errors import Code, Problem
from cliffwatch.machine.inventory import Drive, drive_by_identity, list_drives, member_differences, volume_of
from cliffwatch.machine.usage import layers_above


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return empty_tree(tmp_path)


def volume_on(tree: Tree, major_minor: str, file_system: str = "ext4", source: str = "/dev/data") -> tuple[Drive, ...]:
    """The drives below the tests' directory if it were on a file system of `major_minor`."""
    tree.mount(mount_id_of(tree.sys), major_minor, "/data", file_system, source)
    return volume_of(tree.sys, tree.sys, tree.proc).drives


def test_an_attached_loop_device_is_listed_with_its_file(drive: LoopDrive) -> None:
    found = {each.name: each for each in list_drives()}[drive.name]
    status = drive.node.stat()
    assert found.node == drive.node
    assert found.major_minor == f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    assert found.size_bytes == 32 * MIB
    assert found.backing_file == drive.file
    assert found.identities == (str(drive.file),)
    assert found.logical_block_bytes in {512, 4096}
    assert not found.read_only
    assert found == drive_by_identity(str(drive.file))


def test_a_loop_device_without_a_file_is_not_listed(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "drive.img") as drive:
        pass
    assert drive.file not in [each.backing_file for each in list_drives()]
    assert all(each.size_bytes > 0 for each in list_drives())


def test_partitions_are_no_drives(drive: LoopDrive) -> None:
    partition = drive.make_partition()
    names = [each.name for each in list_drives()]
    assert drive.name in names
    assert partition.name not in names


def test_an_nvme_drive_is_described(tree: Tree) -> None:
    nvme(tree, 0, "S64GNE0R123456")
    assert list_drives(tree.sys) == [
        Drive(
            name="nvme0n1",
            node=Path("/dev/nvme0n1"),
            major_minor="259:0",
            size_bytes=1_920_383_410_176,
            logical_block_bytes=512,
            discard=True,
            read_only=False,
            model="SAMSUNG MZQL21T9HCJR",
            firmware="GDC5602Q",
            serial="S64GNE0R123456",
            wwn="eui.36344730540000250025384100000001",
            rotational=False,
            scheduler="none",
            queue_depth=1023,
            disk_sequence=7,
        )
    ]


def test_a_name_with_a_slash_is_the_same_everywhere(tree: Tree) -> None:
    """The kernel's own, by which exporters and /proc/diskstats know it, and not what sysfs makes of it."""
    disk = tree.disk("cciss!c0d0", "104:0", MIB, "pci0000:00/cciss0")
    tree.partition(disk, 1, "104:1")
    [found] = list_drives(tree.sys)
    assert (found.name, found.node) == ("cciss/c0d0", Path("/dev/cciss/c0d0"))
    drive, partition = layers_above("104:0", tree.sys)
    assert (drive.name, partition.name, partition.below) == ("cciss/c0d0", "cciss/c0d0p1", "cciss/c0d0")


@pytest.mark.parametrize("name", ["vda", "xvdb"])
def test_a_disk_of_a_virtual_machine_is_no_hard_disk_whatever_it_says(tree: Tree, name: str) -> None:
    tree.disk(name, "252:0", 1 << 30, "virtio0", {"queue/rotational": "1"}, {"serial": "S1"})
    assert drive_by_identity("S1", tree.sys).kind == "virtual disk"


def test_a_scsi_drive_has_its_serial_in_vital_product_data(tree: Tree) -> None:
    hardware = {"model": "ST4000NM0035-1V4", "rev": "TN05", "wwid": "naa.5000c500a1b2c3d4"}
    attributes = {"queue/scheduler": "none [mq-deadline]", "queue/rotational": "1", "queue/discard_max_bytes": "0"}
    tree.disk("sda", "8:0", 4_000_787_030_016, "ata1/0:0:0:0", attributes, hardware)
    page = tree.sys / "devices" / "ata1" / "0:0:0:0" / "vpd_pg80"
    page.write_bytes(b"\x00\x80\x00\x14" + b"            ZC1ABCDE")
    found = drive_by_identity("ZC1ABCDE", tree.sys)
    assert (found.firmware, found.wwn, found.scheduler) == ("TN05", "naa.5000c500a1b2c3d4", "mq-deadline")
    assert (found.rotational, found.discard, found.kind) == (True, False, "hard disk")
    assert found.identities == ("ZC1ABCDE", "naa.5000c500a1b2c3d4")


def test_memory_media_and_hidden_paths_are_left_out(tree: Tree) -> None:
    for minor, name in enumerate(["ram0", "zram0", "sr0", "fd0"]):
        tree.disk(name, f"1:{minor}", MIB)
    tree.disk("nvme0c0n1", "259:9", MIB, attributes={"hidden": "1"})
    tree.disk("sdz", "65:144", 0)
    assert list_drives(tree.sys) == []


def test_an_unknown_identity_is_answered_with_the_known_ones(tree: Tree) -> None:
    nvme(tree, 0, "S64GNE0R123456")
    with pytest.raises(Problem) as refusal:
        drive_by_identity("S64GNE0R12345", tree.sys)
    assert refusal.value.code is Code.TARGET_MISSING
    assert "nvme0n1: S64GNE0R123456, eui.3634473054000025" in refusal.value.faults[0].message


def test_a_serial_of_two_namespaces_is_refused_and_the_wwn_of_one_is_not(tree: Tree) -> None:
    nvme(tree, 0, "S64GNE0R123456")
    second = {"wwid": "eui.second"}
    tree.disk("nvme0n2", "259:1", MIB, "pci0000:00/nvme0", second, {"serial": "S64GNE0R123456"})
    with pytest.raises(Problem, match="nvme0n1 and nvme0n2"):
        drive_by_identity("S64GNE0R123456", tree.sys)
    assert drive_by_identity("eui.second", tree.sys).name == "nvme0n2"


def test_a_striped_array_has_its_members_level_and_chunk(tree: Tree) -> None:
    members = [tree.partition(nvme(tree, number, f"S{number}"), 1, f"259:{number * 4 + 1}") for number in range(4)]
    array = tree.disk("md0", "9:0", 4 * 1_920_383_410_176, attributes={"md/level": "raid10", "md/chunk_size": "524288"})
    write(array / "md" / "uuid", "5f0c3c9e-6b3e-4b57-8f6e-1c2d3e4f5a6b")
    tree.stack(array, members)
    found = drive_by_identity("5f0c3c9e-6b3e-4b57-8f6e-1c2d3e4f5a6b", tree.sys)
    assert (found.raid_level, found.chunk_bytes) == ("raid10", 524_288)
    assert [member.name for member in found.members] == ["nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"]


def test_a_volume_finds_the_drives_below_lvm_on_an_array_on_partitions(tree: Tree) -> None:
    members = [tree.partition(nvme(tree, number, f"S{number}"), 1, f"259:{number * 4 + 1}") for number in (10, 2)]
    array = tree.disk("md0", "9:0", MIB, attributes={"md/level": "raid0", "md/chunk_size": "524288"})
    tree.stack(array, members)
    logical = tree.disk("dm-0", "252:0", MIB, attributes={"dm/uuid": "LVM-abc", "dm/name": "data-kafka"})
    tree.stack(logical, [array])
    assert [leaf.name for leaf in volume_on(tree, "252:0")] == ["nvme2n1", "nvme10n1"]
    device = volume_of(tree.sys, tree.sys, tree.proc).device
    assert device is not None
    assert (device.name, device.uuid, device.members[0].raid_level) == ("dm-0", "LVM-abc", "raid0")


def test_a_volume_on_a_partition_is_on_its_drive(tree: Tree) -> None:
    tree.partition(nvme(tree, 0, "S0"), 2, "259:2")
    assert [leaf.serial for leaf in volume_on(tree, "259:2")] == ["S0"]


def test_a_btrfs_of_two_drives_is_found_by_the_one_that_the_mount_names(tree: Tree) -> None:
    for number in range(3):
        directory = nvme(tree, number, f"S{number}")
        if number != 1:
            devices = tree.sys / "fs" / "btrfs" / "8c2c8d0e-uuid" / "devices"
            devices.mkdir(parents=True, exist_ok=True)
            (devices / directory.name).symlink_to(directory)
    assert [leaf.serial for leaf in volume_on(tree, "0:36", "btrfs", "/dev/nvme2n1")] == ["S0", "S2"]
    assert volume_of(tree.sys, tree.sys, tree.proc).major_minor is None


def test_network_file_systems_have_no_drive(tree: Tree) -> None:
    assert volume_on(tree, "0:50", "nfs4", "server:/export") == ()


def test_mount_points_and_options_are_read_as_the_kernel_escapes_them(tree: Tree) -> None:
    tree.mount(mount_id_of(tree.sys), "0:50", "/mnt/with\\040space\\134", "tmpfs", "none")
    volume = volume_of(tree.sys, tree.sys, tree.proc)
    assert volume.mount_point == Path("/mnt/with space\\")
    assert volume.mount_options == ("rw", "noatime", "discard")
    assert not volume.read_only


def test_unlike_members_are_named_by_what_differs(tree: Tree) -> None:
    nvme(tree, 0, "S0")
    nvme(tree, 1, "S1", firmware="GDC5902Q")
    alike, unlike = list_drives(tree.sys)
    assert member_differences([alike, alike]) == []
    assert member_differences([alike, unlike]) == ["the drives differ in firmware: nvme0n1 GDC5602Q, nvme1n1 GDC5902Q"]
    assert member_differences([]) == []
