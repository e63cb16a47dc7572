"""One set of blocks under two names: a use of the other name is a use of the target."""

import fcntl
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from testkit.loops import MIB, LoopDrive, codes, command, helper, hold, loop_drive, message_of, mounted, reserved_node
from tests.machine.trees import Tree, empty_tree, nvme, write

from cliffwatch.base.errors import Problem
from cliffwatch.gate import Examination, blocks_of, examine, is_same_device, targets_overlap
from cliffwatch.model.target import DeviceTarget


@contextmanager
def hard_link(drive: LoopDrive, directory: Path) -> Iterator[Path]:
    other = directory / "other.img"
    other.hardlink_to(drive.file)
    yield other


@contextmanager
def bind_mount(drive: LoopDrive, directory: Path) -> Iterator[Path]:
    other = directory / "other.img"
    other.touch()
    command("mount", "--bind", drive.file, other)
    try:
        yield other
    finally:
        command("umount", other)


NAMES: dict[str, Callable[[LoopDrive, Path], AbstractContextManager[Path]]] = {
    "hard link": hard_link,
    "bind mount": bind_mount,
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_file_that_is_mounted_by_another_name_is_not_overwritten(drive: LoopDrive, tmp_path: Path, kind: str) -> None:
    command("mkfs.ext4", "-q", drive.node)
    with (
        NAMES[kind](drive, tmp_path) as other,
        mounted(drive.node, tmp_path / "mounted") as mount_point,
        loop_drive(other) as twin,
    ):
        # As a new label over the old one: nothing on the device itself says any more that it is in use.
        command("wipefs", "--all", "--force", "--quiet", twin.node)
        examination = examine(twin.target(), "r1")
        assert {"mounted", "in_use"} <= codes(examination)
        message = message_of(examination, "mounted")
        assert all(str(each) in message for each in (drive.name, twin.name, mount_point))
        with pytest.raises(Problem), hold(examination):
            raise AssertionError("the target was held")


@pytest.mark.parametrize("kind", NAMES)
def test_runs_on_two_loop_devices_of_one_file_take_turns(drive: LoopDrive, tmp_path: Path, kind: str) -> None:
    with NAMES[kind](drive, tmp_path) as other:
        alone = examine(drive.target(), "r1")
        with loop_drive(other) as twin:
            second = examine(twin.target(), "r2")
            assert second.objections == ()
            assert targets_overlap(alone.target_key, second.target_key)
            with hold(second):
                assert codes(examine(drive.target(), "r1")) == {"in_use"}
                # The file cannot be mounted by its other name while the run goes on.
                with pytest.raises(OSError, match="busy"):
                    os.open(drive.node, os.O_RDONLY | os.O_EXCL)
    assert examine(drive.target(), "r1").objections == ()


def test_a_mount_by_another_name_after_the_examination_is_seen_by_the_last_look(
    drive: LoopDrive, tmp_path: Path
) -> None:
    other = tmp_path / "other.img"
    other.hardlink_to(drive.file)
    with loop_drive(other) as twin:
        examination = examine(twin.target(), "r1")
        assert examination.objections == ()
        command("mkfs.ext4", "-q", "-F", drive.node)
        with mounted(drive.node, tmp_path / "mounted"):
            command("wipefs", "--all", "--force", "--quiet", twin.node)
            with pytest.raises(Problem, match="safety gate"), hold(examination):
                raise AssertionError("the target was held")


def test_loop_devices_of_different_files_have_nothing_to_do_with_each_other(drive: LoopDrive, tmp_path: Path) -> None:
    with loop_drive(tmp_path / "other.img") as other, helper("os.open(sys.argv[1], os.O_RDWR)", other.file):
        examination = examine(drive.target(), "r1")
        assert examination.objections == ()
        assert not targets_overlap(examination.target_key, examine(other.target(), "r2").target_key)


@pytest.mark.parametrize("kind", NAMES)
def test_a_virtual_machine_on_the_backing_file_is_named(drive: LoopDrive, tmp_path: Path, kind: str) -> None:
    with NAMES[kind](drive, tmp_path) as other:
        with helper("os.open(sys.argv[1], os.O_RDWR)", other) as process_id:
            examination = examine(drive.target(), "r1")
        assert codes(examination) == {"in_use"}
        assert f"process {process_id} " in message_of(examination, "in_use")
        assert str(drive.file) in message_of(examination, "in_use")
        with helper("os.open(sys.argv[1], os.O_RDONLY)", other):
            assert examine(drive.target(), "r1").objections == ()


def test_a_private_mapping_is_no_use(drive: LoopDrive) -> None:
    with drive.file.open("rb") as file, mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_COPY):
        assert examine(drive.target(), "r1").objections == ()


def test_a_lock_on_the_backing_file_counts_when_its_holder_cannot_be_seen(drive: LoopDrive, tmp_path: Path) -> None:
    # As in a container, whose /proc has none of the host's processes. QEMU locks so.
    proc = empty_tree(tmp_path / "container").proc
    with drive.file.open("rb") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 100, 1, 0))
        examination = examine(drive.target(), "r1", proc=proc)
        assert codes(examination) == {"in_use"}
        assert "has a lock on" in message_of(examination, "in_use")
    assert examine(drive.target(), "r1", proc=proc).objections == ()


def test_a_swap_file_is_not_overwritten_through_a_loop_device(tmp_path: Path) -> None:
    file = tmp_path / "swap.img"
    file.write_bytes(bytes(32 * MIB))
    file.chmod(0o600)
    command("mkswap", "-q", file)
    command("swapon", file)
    try:
        with loop_drive(file) as drive:
            assert "swap" in codes(examine(drive.target(), "r1"))
    finally:
        command("swapoff", file)


def test_a_loop_device_over_a_file_on_the_target_is_above_it(drive: LoopDrive, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", drive.node)
    with (
        mounted(drive.node, tmp_path / "below") as below,
        loop_drive(below / "inner.img", 8 * MIB) as inner,
    ):
        command("mkfs.ext4", "-q", inner.node)
        with mounted(inner.node, tmp_path / "inner") as mount_point:
            examination = examine(drive.target(), "r1")
            assert {"mounted", "holder_loop", "in_use"} <= codes(examination)
            assert any(str(mount_point) in each.message for each in examination.objections)
            assert f"{inner.name} ({inner.file}) on {drive.name}" in message_of(examination, "holder_loop")


def test_a_device_is_the_same_under_another_number_and_another_over_a_file_made_anew(volume: Path) -> None:
    file = volume / "drive.img"
    with reserved_node() as node, loop_drive(file, 8 * MIB, node) as drive:
        first = examine(drive.target(), "r1").blocks or ""
    inode = file.stat().st_ino
    with loop_drive(file) as drive:
        again = examine(drive.target(), "r1").blocks or ""
    assert is_same_device(first, again)
    file.unlink()
    with loop_drive(file, 8 * MIB) as drive:
        assert file.stat().st_ino == inode
        anew = examine(drive.target(), "r1").blocks or ""
    assert not is_same_device(first, anew)
    # As it was written down before it was asked when a file was made.
    old = f"file {inode} of {os.major(file.stat().st_dev)}:{os.minor(file.stat().st_dev)} {8 * MIB} bytes"
    assert is_same_device(old, first)
    assert not is_same_device(old, first.replace(str(inode), "1"))
    assert not is_same_device(first, old)


def test_a_file_whose_birth_cannot_be_known_is_said_to_be_so(tmp_path: Path) -> None:
    # The kernel tells which file it is, and nothing is found by its name.
    with mounted("tmpfs", tmp_path / "hidden", "-t", "tmpfs") as hidden, loop_drive(hidden / "drive.img") as drive:
        command("mount", "-t", "tmpfs", "tmpfs", hidden)
        try:
            examination = examine(drive.target(), "r1")
        finally:
            command("umount", hidden)
    assert codes(examination) == {"backing_unknown"}
    assert "of unknown birth" in (examination.blocks or "")
    assert any("cannot be known" in note for note in examination.notes)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return empty_tree(tmp_path)


#: What a drive without a node adds: nothing can be read from it, and it cannot be claimed.
NO_PROOF = {"signatures_unknown", "in_use"}


def examined(tree: Tree, identity: str, word: str = "serial") -> Examination:
    target = DeviceTarget(identity=identity, confirmation=f"erase {word} {identity}")
    return examine(target, "r1", sys=tree.sys, proc=tree.proc)


def path_to_namespace(tree: Tree, number: int, serial: str, wwid: str = "eui.0025384100000001") -> Path:
    """One of several controllers through which a shared namespace is reached, without native multipath."""
    hardware = {"model": "SHARED", "serial": serial, "firmware_rev": "1"}
    bus = f"pci0000:00/nvme{number}"
    return tree.disk(f"nvme{number}n1", f"259:{number * 4}", 1 << 40, bus, {"wwid": wwid}, hardware)


def test_a_namespace_that_is_mounted_through_another_controller_is_in_use(tree: Tree) -> None:
    path_to_namespace(tree, 0, "S0")
    path_to_namespace(tree, 1, "S1")
    tree.mount(40, "259:4", "/data", "ext4", "/dev/nvme1n1")
    examination = examined(tree, "S0")
    assert codes(examination) == {"mounted", *NO_PROOF}
    message = message_of(examination, "mounted")
    assert all(each in message for each in ("nvme0n1", "nvme1n1", "eui.0025384100000001", "/data"))
    assert targets_overlap(examination.target_key, examined(tree, "S1").target_key)


def test_a_mapped_device_over_another_path_holds_the_drive(tree: Tree) -> None:
    path_to_namespace(tree, 0, "S0")
    mapped = tree.disk("dm-0", "252:0", 1 << 40, attributes={"dm/uuid": "LVM-abc"})
    tree.stack(mapped, [tree.partition(path_to_namespace(tree, 1, "S1"), 1, "259:5")])
    assert codes(examined(tree, "S0")) == {"holder_dm", *NO_PROOF}
    assert "dm-0 (LVM-abc) on nvme1n1p1" in message_of(examined(tree, "S0"), "holder_dm")


def test_paths_below_a_multipath_target_are_its_own(tree: Tree) -> None:
    paths = [path_to_namespace(tree, number, f"S{number}") for number in range(2)]
    multipath = tree.disk("dm-0", "252:0", 1 << 40, attributes={"dm/uuid": "mpath-eui.0025384100000001"})
    tree.stack(multipath, paths)
    assert codes(examined(tree, "mpath-eui.0025384100000001", "uuid")) == NO_PROOF
    path_to_namespace(tree, 2, "S2")
    tree.mount(40, "259:8", "/data", "ext4", "/dev/nvme2n1")
    assert codes(examined(tree, "mpath-eui.0025384100000001", "uuid")) == {"mounted", *NO_PROOF}


def test_drives_of_one_serial_and_size_are_one_when_no_name_distinguishes_them(tree: Tree) -> None:
    for name, number, serial_of in (("sda", "8:0", "wwid"), ("sdb", "8:16", "none")):
        attributes = {"serial": "DISK-1"} | ({"wwid": "naa.5"} if serial_of == "wwid" else {})
        tree.disk(name, number, 1 << 40, attributes=attributes)
    tree.mount(40, "8:16", "/data", "ext4", "/dev/sdb")
    assert "mounted" in codes(examined(tree, "naa.5", "wwn"))


def test_a_drive_is_made_of_the_same_whatever_number_it_has(tree: Tree, tmp_path: Path) -> None:
    path_to_namespace(tree, 0, "S0")
    later = empty_tree(tmp_path / "later")
    path_to_namespace(later, 0, "S1", "eui.0025384100000002")
    path_to_namespace(later, 3, "S0")
    first, again, other = (
        blocks_of(DeviceTarget(identity=serial, confirmation=""), sys=place.sys) or ""
        for place, serial in ((tree, "S0"), (later, "S0"), (later, "S1"))
    )
    assert is_same_device(first, again)
    assert not is_same_device(first, other)


def test_namespaces_of_one_drive_are_not_one_another(tree: Tree) -> None:
    nvme(tree, 0, "S0")
    size_bytes = 1_920_383_410_176
    tree.disk("nvme0n2", "259:3", size_bytes, "pci0000:00/nvme0", {"wwid": "eui.second"}, {"serial": "S0"})
    tree.mount(40, "259:3", "/data", "ext4", "/dev/nvme0n2")
    assert "mounted" not in codes(examined(tree, "eui.36344730540000250025384100000001", "wwn"))


def test_a_drive_behind_bcache_is_held(tree: Tree) -> None:
    write(nvme(tree, 0, "S0") / "bcache" / "state", "clean")
    examination = examined(tree, "S0")
    assert codes(examination) == {"holder_other", *NO_PROOF}
    assert "bcache" in message_of(examination, "holder_other")


def test_a_file_that_grew_after_it_was_attached_is_still_the_same(tmp_path: Path) -> None:
    """The older device ends where the file did then: its size does not show which file it is."""
    below, above, work = (tmp_path / name for name in ("below", "above", "work"))
    for directory in (below, above, work):
        directory.mkdir()
    layers = f"lowerdir={below},upperdir={above},workdir={work}"
    with (
        loop_drive(above / "one.img", 16 * MIB) as used,
        mounted("none", tmp_path / "both", "-t", "overlay", "-o", layers) as both,
    ):
        # A size that no other drive of the tests has, since each of that size is refused meanwhile.
        os.truncate(used.file, 41 * MIB)
        with loop_drive(both / "one.img") as grown:
            assert "on an overlay" in message_of(examine(grown.target(), "r1"), "in_use")
            assert "on an overlay" in message_of(examine(used.target(), "r1"), "in_use")


def relaying(tmp_path: Path, file: Path, file_system: str, source: str) -> Tree:
    """A machine on which the file system that `file` is on relays another one's files."""
    tree = empty_tree(tmp_path / "relaying")
    device = file.stat().st_dev
    tree.mount(40, f"{os.major(device)}:{os.minor(device)}", str(file.parent), file_system, source)
    return tree


# Stands for file systems that a test machine lacks: what counts is that they have no device, and what they are called.
@pytest.mark.parametrize("file_system", ["fuse.bindfs", "nfs4", "9p"])
def test_a_file_that_a_file_system_relays_may_be_that_of_another(
    drive: LoopDrive, tmp_path: Path, file_system: str
) -> None:
    with mounted("none", tmp_path / "memory", "-t", "tmpfs") as memory, loop_drive(memory / "one.img") as relayed:
        tree = relaying(tmp_path, relayed.file, file_system, "server:/files")
        for each in (drive, relayed):
            examination = examine(each.target(), "r1", proc=tree.proc)
            assert codes(examination) == {"in_use"}
            assert "gives a file another identity" in message_of(examination, "in_use")
        assert examine(drive.target(), "r1").objections == ()


def test_a_name_of_its_own_gives_a_file_on_fuse_an_inode_of_its_own(tmp_path: Path) -> None:
    with (
        mounted("none", tmp_path / "memory", "-t", "tmpfs") as memory,
        loop_drive(memory / "one.img") as one,
        loop_drive(memory / "two.img") as two,
    ):
        for file_system, is_doubted in (("fuse.sshfs", True), ("nfs4", False)):
            tree = relaying(tmp_path / file_system, one.file, file_system, "server:/files")
            objections = examine(one.target(), "r1", proc=tree.proc).objections
            # Any other loop device of this machine may be the file that is relayed.
            assert any(each.message.startswith(f"{two.name} lies on") for each in objections) is is_doubted


def test_the_drive_that_the_journals_are_on_is_no_target(drive: LoopDrive, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", drive.node)
    other = tmp_path / "other.img"
    other.hardlink_to(drive.file)
    with mounted(drive.node, tmp_path / "state") as state, loop_drive(other) as twin:
        for target in (drive.target(), twin.target()):
            examination = examine(target, "r1", journals=state)
            assert "holds_journals" in codes(examination)
            assert f"{state} is on it" in message_of(examination, "holds_journals")
    with loop_drive(tmp_path / "unrelated.img") as unrelated:
        assert examine(unrelated.target(), "r1", journals=tmp_path).objections == ()
