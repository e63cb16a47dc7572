"""What an array or a mapped device is made of is in use: overwriting the target overwrites that, too.

The mapped devices are made up, since not every kernel has the driver; what they lie on is real where a process, a loop
device or an export has to be found on it.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from testkit.loops import LoopDrive, codes, helper, loop_drive
from tests.machine.trees import Tree, empty_tree, nvme, write

from cliffwatch.gate import Examination, examine
from cliffwatch.gate.device_gate import not_exclusive
from cliffwatch.machine.sysfs import PROC, number_of
from cliffwatch.model.target import DeviceTarget

#: What a device without a node adds: nothing can be read from it, and it cannot be claimed.
NO_PROOF = {"signatures_unknown", "in_use"}
#: Of the right length: 32 signs name an LVM group, 32 more a volume of it.
GROUP, OTHER_GROUP = "g" * 32, "h" * 32


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return empty_tree(tmp_path / "tree")


def mapped(tree: Tree, number: int, uuid: str, lowers: list[Path]) -> Path:
    directory = tree.disk(f"dm-{number}", f"252:{number}", 1 << 40, attributes={"dm/uuid": uuid})
    tree.stack(directory, lowers)
    return directory


def examined(tree: Tree, uuid: str, proc: Path | None = None) -> Examination:
    target = DeviceTarget(identity=uuid, confirmation=f"erase uuid {uuid}")
    return examine(target, "r1", sys=tree.sys, proc=proc or tree.proc)


def real_loop(tree: Tree, loop: LoopDrive) -> Path:
    """A loop device of this machine, in the tree."""
    number = number_of(loop.node.stat())
    assert number is not None
    return tree.disk(loop.name, number, 1 << 25, attributes={"loop/backing_file": str(loop.file)})


@contextmanager
def open_for_writing(tree: Tree, part: LoopDrive) -> Iterator[str]:
    with helper("descriptor = os.open(sys.argv[1], os.O_RDWR)", part.node):
        yield f"has {part.name} open for writing"


@contextmanager
def exported(tree: Tree, part: LoopDrive) -> Iterator[str]:
    write(tree.sys / "kernel" / "config" / "target/core/iblock_0/disk0/udev_path", str(part.node))
    yield f"{part.name} is exported as the LIO storage object iblock_0/disk0"


@contextmanager
def loop_over_it(tree: Tree, part: LoopDrive) -> Iterator[str]:
    with loop_drive(part.node) as upper:
        real_loop(tree, upper)
        yield f"{upper.name} ({part.node}) on {part.name} is in use"


USES: dict[str, Callable[[Tree, LoopDrive], AbstractContextManager[str]]] = {
    "open for writing": open_for_writing,
    "exported": exported,
    "below a loop device": loop_over_it,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("depth", [1, 2])
def test_an_unclaimed_use_of_an_underlying_device_is_named(tree: Tree, drive: LoopDrive, use: str, depth: int) -> None:
    below = real_loop(tree, drive)
    for number in range(depth - 1):
        below = mapped(tree, 50 + number, f"CW-{50 + number}", [below])
    mapped(tree, 1, "CW-1", [below])
    assert codes(examined(tree, "CW-1", PROC)) == NO_PROOF
    with USES[use](tree, drive) as words:
        messages = [each.message for each in examined(tree, "CW-1", PROC).objections]
        assert any(f"dm-1 lies on {drive.name}: " in each and words in each for each in messages), messages


def test_a_second_mapped_device_over_a_part_is_in_use_and_so_is_what_is_mounted_from_it(tree: Tree) -> None:
    part = nvme(tree, 0, "S0")
    mapped(tree, 1, "CW-1", [part])
    assert codes(examined(tree, "CW-1")) == NO_PROOF
    mapped(tree, 2, "CW-2", [part])
    tree.mount(40, "252:2", "/data", "ext4", "/dev/mapper/u")
    examination = examined(tree, "CW-1")
    assert codes(examination) == {"holder_dm", "mounted", *NO_PROOF}
    messages = [each.message for each in examination.objections]
    assert "dm-1 lies on nvme0n1: dm-2 (CW-2) on nvme0n1 is in use; take it down first" in messages
    assert (
        "dm-1 lies on nvme0n1: dm-2 (CW-2) on nvme0n1 is mounted at /data, so nvme0n1 is in use; unmount it" in messages
    )


def test_an_array_of_partitions_leaves_the_other_partitions_to_others(tree: Tree) -> None:
    disk = nvme(tree, 0, "S0")
    mine, other = tree.partition(disk, 1, "259:1"), tree.partition(disk, 2, "259:2")
    mapped(tree, 1, "CW-1", [mine])
    tree.mount(40, "259:2", "/", "ext4", "/dev/nvme0n1p2")
    mapped(tree, 2, "CW-2", [other])
    assert codes(examined(tree, "CW-1")) == NO_PROOF
    # A use of the whole disk is a use of the partition.
    mapped(tree, 3, "CW-3", [disk])
    assert codes(examined(tree, "CW-1")) == {"holder_dm", *NO_PROOF}


@pytest.mark.parametrize(
    ("mine", "its", "shared"),
    [
        (f"LVM-{GROUP}{'1' * 32}", f"LVM-{GROUP}{'2' * 32}", ""),
        (f"LVM-{GROUP}{'1' * 32}", f"LVM-{GROUP}{'2' * 32}", f"LVM-{GROUP}{'3' * 32}-tpool"),
        (f"LVM-{GROUP}{'1' * 32}", f"LVM-{GROUP}{'2' * 32}", "mpath-36001405"),
        ("part1-mpath-36001405", "part2-mpath-36001405", "mpath-36001405"),
    ],
    ids=["volumes of a group", "of a thin pool", "of a group on a multipath", "partitions of a multipath"],
)
def test_a_neighbour_that_shares_no_block_may_be_in_use(tree: Tree, mine: str, its: str, shared: str) -> None:
    part = nvme(tree, 0, "S0")
    below = mapped(tree, 9, shared, [part]) if shared else part
    mapped(tree, 1, mine, [below])
    mapped(tree, 2, its, [below])
    tree.mount(40, "252:2", "/", "ext4", "/dev/mapper/root")
    assert codes(examined(tree, mine)) == NO_PROOF


@pytest.mark.parametrize(
    ("mine", "its", "shared"),
    [
        (f"LVM-{GROUP}{'1' * 32}", f"LVM-{OTHER_GROUP}{'2' * 32}", ""),
        (f"LVM-{GROUP}{'1' * 32}", f"LVM-{GROUP}{'2' * 32}", f"LVM-{GROUP}{'1' * 32}-real"),
        ("CW-1", f"LVM-{GROUP}{'2' * 32}", ""),
        ("part1-mpath-36001405", "part2-mpath-36001406", "mpath-36001405"),
    ],
    ids=["another group", "a snapshot", "a group on what is mapped", "partitions of another device"],
)
def test_a_neighbour_of_which_that_is_not_known_may_not(tree: Tree, mine: str, its: str, shared: str) -> None:
    part = nvme(tree, 0, "S0")
    below = mapped(tree, 9, shared, [part]) if shared else part
    mapped(tree, 1, mine, [below])
    mapped(tree, 2, its, [below])
    tree.mount(40, "252:2", "/data", "ext4", "/dev/mapper/data")
    assert codes(examined(tree, mine)) == {"holder_dm", "mounted", *NO_PROOF}


def test_a_container_of_arrays_holds_its_members_without_a_block_of_its_own(tree: Tree) -> None:
    members = [nvme(tree, number, f"S{number}") for number in range(2)]
    array = tree.disk("md126", "9:126", 1 << 40, attributes={"md/level": "raid1", "md/uuid": "abc"})
    tree.stack(array, members)
    tree.stack(tree.disk("md127", "9:127", attributes={"md/level": "container"}), members)
    assert codes(examined(tree, "abc")) == NO_PROOF


def test_a_part_that_a_bcache_is_made_of_is_no_objection_to_the_bcache(tree: Tree) -> None:
    part = nvme(tree, 0, "S0")
    write(part / "bcache" / "state", "clean")
    above = tree.disk("bcache0", "252:128", 1 << 40, attributes={"dm/uuid": "B-1"})
    tree.stack(above, [part])
    assert codes(examined(tree, "B-1")) == NO_PROOF


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.EBUSY, "stop what uses it"), (errno.EACCES, "root may open"), (errno.ENXIO, "is there and well")],
)
def test_the_remedy_for_a_device_that_cannot_be_opened_depends_on_the_errno(number: int, remedy: str) -> None:
    assert remedy in not_exclusive(Path("/dev/vdz"), OSError(number, os.strerror(number))).message
