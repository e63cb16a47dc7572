"""The safety gate in front of block devices: real loop devices, and on them what shows that a device is in use."""

import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, codes, command, helper, hold, loop_drive, mounted
from tests.machine.trees import empty_tree

from cliffwatch.base.errors import Code, Problem
from cliffwatch.gate import (
    OBJECTIONS,
    Objection,
    confirmation_sentence,
    device_objections,
    examine,
    objections_to_plan,
    require_clear,
)
from cliffwatch.machine.inventory import drive_at
from cliffwatch.model.plan import LoadPlan, PlannedWrite
from cliffwatch.model.target import DeviceTarget


def plan_of(path: Path, size_bytes: int) -> LoadPlan:
    return LoadPlan(writes=(PlannedWrite(path, size_bytes),), command=("true",), direct=True)


def write_at(node: Path, offset: int, content: bytes) -> None:
    with node.open("r+b") as device:
        device.seek(offset)
        device.write(content)


def write_partition_table(node: Path, label: str) -> None:
    command("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", node, text=f"label: {label}\nsize=8MiB\n")


def write_md_superblock(node: Path) -> None:
    """A member of an array with metadata 1.2, as drivers/md/md.c lays it out: this needs no md driver."""
    block = bytearray(256)
    struct.pack_into("<II", block, 0, 0xA92B4EFC, 1)
    struct.pack_into("<Q", block, 144, 8)
    total = sum(struct.unpack("<64I", block))
    struct.pack_into("<I", block, 216, ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF)
    write_at(node, 4096, bytes(block))


def write_zfs_uberblocks(node: Path) -> None:
    for index in range(8):
        write_at(node, (128 + index) * 1024, struct.pack("<Q", 0x00BAB10C))


def write_lvm_label(node: Path) -> None:
    command("pvcreate", "--quiet", "--yes", node)


def encrypt(node: Path) -> None:
    quick = ("--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000")
    command("cryptsetup", "luksFormat", "--batch-mode", *quick, node, "-", text="passphrase")


SIGNATURES: dict[str, tuple[Callable[[Path], object], str]] = {
    "gpt": (lambda node: write_partition_table(node, "gpt"), "partition_table"),
    "dos": (lambda node: write_partition_table(node, "dos"), "partition_table"),
    "ext4": (lambda node: command("mkfs.ext4", "-q", node), "filesystem_signature"),
    "xfs": (lambda node: command("mkfs.xfs", "-q", node), "filesystem_signature"),
    "vfat": (lambda node: command("mkfs.vfat", node), "filesystem_signature"),
    "LVM2_member": (write_lvm_label, "member_signature"),
    "linux_raid_member": (write_md_superblock, "member_signature"),
    "zfs_member": (write_zfs_uberblocks, "member_signature"),
    "crypto_LUKS": (encrypt, "member_signature"),
    "swap": (lambda node: command("mkswap", "-q", node), "other_signature"),
}


def test_a_clean_confirmed_drive_passes_and_not_a_byte_of_it_changes(drive: LoopDrive) -> None:
    write_at(drive.node, 12 * MIB, b"remains of an earlier run")
    before = drive.digest()
    examination = examine(drive.target(), "r1")
    assert examination.objections == ()
    assert (examination.path, examination.is_device) == (drive.node, True)
    assert examination.target_key.split("+")[0] == f"drive:{examination.drives[0].major_minor}"
    assert drive.digest() == before


@pytest.mark.parametrize("kind", SIGNATURES)
def test_a_signature_is_objected_to_and_not_a_byte_changes(kind: str, tmp_path: Path) -> None:
    write, code = SIGNATURES[kind]
    # XFS is made on nothing smaller, and ZFS looked for on nothing below 64 MiB.
    with loop_drive(tmp_path / "drive.img", 320 * MIB if kind == "xfs" else 64 * MIB) as drive:
        write(drive.node)
        before = drive.digest()
        examination = examine(drive.target(), "r1")
        assert codes(examination) == {code}
        assert kind in examination.objections[0].message
        assert drive.digest() == before


def test_a_partition_that_the_kernel_knows_counts_after_the_table_was_wiped(drive: LoopDrive) -> None:
    drive.make_partition()
    command("wipefs", "--all", "--force", "--quiet", drive.node)
    write_at(drive.node, 0, bytes(MIB))
    assert codes(examine(drive.target(), "r1")) == {"partition_table"}


def test_a_mounted_drive_is_named_with_its_mount_point(drive: LoopDrive, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", drive.node)
    with mounted(drive.node, tmp_path / "with space") as mount_point:
        examination = examine(drive.target(), "r1")
    assert {"mounted", "in_use", "filesystem_signature"} == codes(examination)
    assert str(mount_point) in next(each.message for each in examination.objections if each.code == "mounted")


def test_a_mounted_partition_makes_the_whole_drive_mounted(drive: LoopDrive, tmp_path: Path) -> None:
    partition = drive.make_partition()
    command("mkfs.ext4", "-q", partition)
    with mounted(partition, tmp_path / "mounted"):
        assert {"mounted", "in_use", "partition_table"} == codes(examine(drive.target(), "r1"))


def test_a_loop_device_whose_file_is_on_the_drive_is_what_is_mounted(drive: LoopDrive, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", drive.node)
    with mounted(drive.node, tmp_path / "outer") as outer, loop_drive(outer / "inner.img", 8 * MIB) as inner:
        command("mkfs.ext4", "-q", inner.node)
        with mounted(inner.node, tmp_path / "inner") as mount_point, helper("os.open(sys.argv[1], 2)", inner.node):
            messages = [each.message for each in examine(drive.target(), "r1").objections]
    above = f"{inner.name} ({inner.file}) on {drive.name}"
    assert f"{drive.name} is mounted at {outer}; unmount it" in messages
    assert f"{above} is mounted at {mount_point}, so {drive.name} is in use; unmount it" in messages
    assert any(f"has {drive.name}, or what lies on it, open for writing" in each for each in messages)


@pytest.mark.alone(why="a namespace that copies all mounts keeps the drives of other tests from being detached")
def test_a_mount_in_another_namespace_is_named_with_a_process_that_sees_it(drive: LoopDrive, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", drive.node)
    code = "import subprocess; subprocess.run(['mount', sys.argv[1], sys.argv[2]], check=True)"
    with helper(code, drive.node, tmp_path, before=("unshare", "--mount")) as process_id:
        examination = examine(drive.target(), "r1")
        namespace = Path(f"/proc/{process_id}/ns/mnt").readlink()
    assert codes(examination) == {"mounted", "in_use", "filesystem_signature"}
    message = next(each.message for each in examination.objections if each.code == "mounted")
    assert f"{tmp_path} in the mount namespace {namespace} of process {process_id} (" in message


def test_a_mount_whose_name_is_no_text_hides_none_and_is_shown(drive: LoopDrive, tmp_path: Path) -> None:
    """Any user may make such a mount in a namespace of their own."""
    command("mkfs.ext4", "-q", drive.node)
    with mounted(drive.node, tmp_path / os.fsdecode(b"x\xff\xc2\x85")):
        examination = examine(drive.target(), "r1")
    message = next(each.message for each in examination.objections if each.code == "mounted")
    assert f"is mounted at {tmp_path}/x\ufffd" in message
    assert message.encode().decode() == message


def test_a_file_system_before_the_offset_of_a_loop_device_is_detected(drive: LoopDrive, tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(32 * MIB)
    command("mkfs.ext4", "-q", image)
    node = Path(command("losetup", "--find", "--show", "--offset", str(MIB), image).strip())
    try:
        examination = examine(LoopDrive(node, image).target(), "r1")
    finally:
        command("losetup", "--detach", node)
    assert codes(examination) == {"filesystem_signature"}
    assert f"{image}, the file behind {node.name}" in examination.objections[0].message


def test_a_file_system_that_lies_on_files_may_lie_on_that_of_a_loop_device(drive: LoopDrive, tmp_path: Path) -> None:
    """Where EROFS is mounted from files, mountinfo has one of them, and none of those with the data."""
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "swaps").write_text("Filename Type Size Used Priority\n")
    mounts = Path("/proc/self/mountinfo").read_bytes()
    (proc / "self" / "mountinfo").write_bytes(mounts)
    assert device_objections(drive_at(drive_number(drive)), proc=proc) == []
    line = b"999 1 0:99 / /mnt/image ro,relatime - erofs /images/meta.img ro,user_xattr\n"
    (proc / "self" / "mountinfo").write_bytes(mounts + line)
    (objection,) = device_objections(drive_at(drive_number(drive)), proc=proc)
    assert objection.code == "in_use"
    assert "/mnt/image is an EROFS file system that lies on files" in objection.message


def drive_number(drive: LoopDrive) -> str:
    return Path(f"/sys/block/{drive.name}/dev").read_text().strip()


def test_an_active_swap_area_is_objected_to(drive: LoopDrive) -> None:
    drive.file.chmod(0o600)
    with drive.file.open("r+b") as file:
        file.write(bytes(32 * MIB))
    command("mkswap", "-q", drive.node)
    command("swapon", drive.node)
    try:
        assert codes(examine(drive.target(), "r1")) == {"swap", "in_use", "other_signature"}
    finally:
        command("swapoff", drive.node)


def test_a_drive_that_another_process_has_exclusively_is_in_use(drive: LoopDrive) -> None:
    with helper("os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)", drive.node):
        assert codes(examine(drive.target(), "r1")) == {"in_use"}
    assert examine(drive.target(), "r1").objections == ()


FOR_AN_INSTANT = """
import threading
descriptor = os.open(sys.argv[1], int(sys.argv[2]))
threading.Timer(0.2, os.close, [descriptor]).start()
"""


@pytest.mark.parametrize("flags", [os.O_RDONLY | os.O_EXCL, os.O_RDWR], ids=["exclusively", "for writing"])
def test_a_process_that_only_looks_whether_a_drive_is_free_does_not_make_it_in_use(
    drive: LoopDrive, flags: int
) -> None:
    with helper(FOR_AN_INSTANT, drive.node, str(flags)):
        assert examine(drive.target(), "r1").objections == ()


def test_a_process_that_writes_without_a_claim_is_named(drive: LoopDrive) -> None:
    with helper("os.open(sys.argv[1], os.O_RDWR)", drive.node) as process_id:
        examination = examine(drive.target(), "r1")
    assert codes(examination) == {"in_use"}
    assert f"process {process_id} " in examination.objections[0].message


def test_a_process_that_only_reads_is_no_objection(drive: LoopDrive) -> None:
    with helper("os.open(sys.argv[1], os.O_RDONLY)", drive.node):
        assert examine(drive.target(), "r1").objections == ()


def test_a_loop_device_on_a_partition_holds_the_drive(drive: LoopDrive) -> None:
    with loop_drive(drive.make_partition()):
        assert codes(examine(drive.target(), "r1")) == {"partition_table", "holder_loop"}


def test_a_loop_device_over_a_drive_is_no_target(drive: LoopDrive) -> None:
    with loop_drive(drive.node) as above:
        assert codes(examine(above.target(), "r1")) == {"backed_by_device"}


def test_a_mount_above_a_loop_device_on_the_drive_is_found(drive: LoopDrive, tmp_path: Path) -> None:
    with loop_drive(drive.node) as above:
        command("mkfs.ext4", "-q", above.node)
        with mounted(above.node, tmp_path / "mounted"):
            assert {"holder_loop", "mounted"} <= codes(examine(drive.target(), "r1"))


def test_a_partition_is_no_target(drive: LoopDrive) -> None:
    partition = drive.make_partition()
    target = DeviceTarget(identity=str(partition), confirmation=f"erase {partition}")
    assert codes(examine(target, "r1")) == {"is_partition", "partition_table"}


def test_a_name_by_id_is_what_it_leads_to(drive: LoopDrive, tmp_path: Path) -> None:
    """Links as udev makes them in /dev/disk/by-id: of a whole drive, which is a kernel's name, and of a part of it."""
    links = tmp_path / "disk" / "by-id"
    links.mkdir(parents=True)
    whole, part = links / "ata-Example_4TB_S1", links / "ata-Example_4TB_S1-part1"
    whole.symlink_to(drive.node)
    with pytest.raises(Problem) as refusal:
        examine(DeviceTarget(identity=str(whole), confirmation=f"erase {whole}"), "r1")
    assert refusal.value.code is Code.TARGET_MISSING
    assert f"{drive.name}: {drive.file}" in refusal.value.faults[0].message
    part.symlink_to(drive.make_partition())
    examination = examine(DeviceTarget(identity=str(part), confirmation=f"erase {part}"), "r1")
    assert codes(examination) == {"is_partition", "partition_table"}
    assert f"{part} is a partition of {drive.name};" in examination.objections[0].message
    assert examination.drives[0].node == drive.node


def test_a_read_only_drive_is_objected_to(tmp_path: Path) -> None:
    with loop_drive(tmp_path / "drive.img", read_only=True) as drive:
        assert codes(examine(drive.target(), "r1")) == {"read_only"}


def test_an_identity_of_two_drives_is_ambiguous(drive: LoopDrive) -> None:
    with loop_drive(drive.file) as twin:
        examination = examine(drive.target(), "r1")
    assert codes(examination) == {"identity_ambiguous"}
    assert drive.name in examination.objections[0].message
    assert twin.name in examination.objections[0].message


@pytest.mark.parametrize("typed", ["", "erase", "Erase backing file {file}", "erase backing file {file} "])
def test_only_the_exact_sentence_confirms(drive: LoopDrive, typed: str) -> None:
    target = DeviceTarget(identity=str(drive.file), confirmation=typed.format(file=drive.file))
    examination = examine(target, "r1")
    assert codes(examination) == {"confirmation_missing"}
    assert confirmation_sentence(examination) == f"erase backing file {drive.file}"
    assert confirmation_sentence(examination) in examination.objections[0].message


@pytest.mark.parametrize("spelling", ["/dev/{name}", "/dev/disk/by-id/../../{name}"])
def test_a_kernel_name_is_no_identity_and_the_refusal_says_what_to_write(drive: LoopDrive, spelling: str) -> None:
    Path("/dev/disk/by-id").mkdir(parents=True, exist_ok=True)
    identity = spelling.format(name=drive.name)
    with pytest.raises(Problem) as refusal:
        examine(DeviceTarget(identity=identity), "r1")
    assert refusal.value.code is Code.TARGET_MISSING
    assert refusal.value.faults[0].field == "target.identity"
    message = refusal.value.faults[0].message
    assert message == f"kernel names such as {identity} move between drives; write device:{drive.file}, which stays"


def test_a_link_by_id_names_the_drive_that_it_leads_to(drive: LoopDrive, tmp_path: Path) -> None:
    links = Path("/dev/disk/by-id")
    links.mkdir(parents=True, exist_ok=True)
    link = links / f"cliffwatch-{tmp_path.parent.name}-{tmp_path.name}"
    link.symlink_to(drive.node)
    try:
        asked = examine(DeviceTarget(identity=str(link)), "r1")
        assert codes(asked) == {"confirmation_missing"}
        assert asked.drives[0].name == drive.name
        confirmed = DeviceTarget(identity=str(link), confirmation=f"erase {link}")
        with hold(examine(confirmed, "r1")) as path:
            assert path == drive.node
        link.unlink()
        link.symlink_to(drive.make_partition())
        assert "is_partition" in codes(examine(confirmed, "r1"))
    finally:
        link.unlink()
    with pytest.raises(Problem, match="names no drive; write device: and a serial"):
        examine(DeviceTarget(identity=str(link)), "r1")


def test_a_plan_may_fill_the_drive_and_no_more(drive: LoopDrive) -> None:
    examination = examine(drive.target(), "r1")
    assert objections_to_plan(examination, plan_of(drive.node, 32 * MIB), 0.0) == []
    too_large = objections_to_plan(examination, plan_of(drive.node, 32 * MIB + 1), 0.0)
    assert codes(too_large) == {"device_too_small"}
    with pytest.raises(Problem) as refusal:
        require_clear(too_large)
    assert refusal.value.code is Code.SPACE_INSUFFICIENT


def test_a_plan_may_write_to_the_examined_drive_only(drive: LoopDrive) -> None:
    examination = examine(drive.target(), "r1")
    assert codes(objections_to_plan(examination, plan_of(Path("/dev/null"), 1), 0.0)) == {"outside_target"}


def test_a_sparse_backing_file_may_not_eat_its_volume_s_reserve(volume: Path) -> None:
    with loop_drive(volume / "drive.img", 200 * MIB) as drive:
        examination = examine(drive.target(), "r1")
        assert objections_to_plan(examination, plan_of(drive.node, 8 * MIB), 0.05) == []
        assert codes(objections_to_plan(examination, plan_of(drive.node, 100 * MIB), 0.05)) == {"reserve"}


def test_a_backing_file_that_was_deleted_proves_no_space(drive: LoopDrive) -> None:
    drive.file.unlink()
    examination = examine(DeviceTarget(identity=f"{drive.file} (deleted)"), "r1")
    assert codes(objections_to_plan(examination, plan_of(drive.node, MIB), 0.0)) == {"reserve"}
    # The fixture detaches by node.
    assert drive.node.exists()


def test_examination_in_a_container_notes_that_outside_processes_are_not_seen(drive: LoopDrive, tmp_path: Path) -> None:
    proc = empty_tree(tmp_path).proc
    (proc / "self" / "ns").mkdir()
    for number, is_said in ((4026531836, False), (4026532201, True)):
        (proc / "self" / "ns" / "pid").unlink(missing_ok=True)
        (proc / "self" / "ns" / "pid").symlink_to(f"pid:[{number}]")
        examination = examine(drive.target(), "r1", proc=proc)
        assert examination.objections == ()
        assert any("PID namespace" in note for note in examination.notes) is is_said


def test_every_reason_is_a_fault_of_its_own_with_a_field() -> None:
    objections = [Objection(code, f"because of {code}") for code in OBJECTIONS]
    with pytest.raises(Problem) as refusal:
        require_clear(objections)
    assert refusal.value.code is Code.TARGET_UNSAFE
    assert [fault.message for fault in refusal.value.faults] == [each.message for each in objections]
    assert all(fault.field.startswith(("target", "workload.load")) for fault in refusal.value.faults)
    require_clear([])


def test_a_node_of_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    node = tmp_path / "node"
    os.mknod(node, 0o600 | stat.S_IFBLK, os.makedev(250, 77))
    with pytest.raises(Problem) as refused:
        examine(DeviceTarget(identity=str(node), confirmation=""), "r1")
    assert refused.value.code is Code.TARGET_MISSING
    (fault,) = refused.value.faults
    assert fault.message == f"{node} is a node of the block device 250:77, and this machine has none of that number"
