"""Drives that are one set of blocks under two names: a write to one of them overwrites the other.

Two loop devices over one file, or over a modelled drive's file and the one that keeps its content; one logical unit or
NVMe namespace reached through two controllers where no multipath driver has joined its paths. A file on an overlay, on
FUSE or on a network's file system may be a file of another file system too, under another device and inode, and nothing
says of which: where one of two files is on one, they are the same unless both are as long as their devices say, and not
equally long.
"""

from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.backing import Loop, opened, read_loops
from cliffwatch.machine.inventory import Drive, list_drives
from cliffwatch.machine.modelled import DriveContents, server_descriptor
from cliffwatch.machine.relays import UNKNOWN, Relay, relay_by_mounts, relay_by_type
from cliffwatch.machine.sysfs import PROC, SYS, device_directory, read_text

#: wwid_show of the kernel's drivers/nvme/host/sysfs.c, for a namespace without UUID, NGUID and EUI64.
_MADE_UP = "nvme."


@dataclass(frozen=True, slots=True)
class Twin:
    """Device that shares its blocks with `original` under another name; `reason` says how they are related."""

    drive: Drive
    original: Drive
    reason: str


@dataclass(frozen=True, slots=True)
class Twins:
    """Loop devices that may lie on the same file: of those that are `unknown`, neither the kernel nor the file can be
    asked; of those that are `relayed`, or whose twin is, the answer proves nothing."""

    known: tuple[Twin, ...]
    unknown: tuple[Loop, ...] = ()
    relayed: tuple[Loop, ...] = ()


def twins_of(drive: Drive, sys: Path = SYS, proc: Path = PROC) -> Twins:
    """Other names of the drive's blocks, and of those of the drives below it, which themselves are none."""
    own = {drive.major_minor, *_below(drive)}
    others = [other for other in list_drives(sys) if other.major_minor not in own]
    file_backed = [leaf for leaf in drive.leaves if leaf.backing_file is not None]
    loops = {loop.major_minor: loop for loop in read_loops(sys)} if file_backed else {}
    contents = DriveContents.read(proc) if file_backed else DriveContents({})
    found: dict[str, Twin] = {}
    for leaf in drive.leaves:
        for other in others:
            reason = _same_file(leaf, other, loops, contents) or _same_hardware(leaf, other, sys)
            if reason is not None:
                found.setdefault(other.major_minor, Twin(other, leaf, reason))
    # Here, too, nothing is proven of a loop device while what it lies on cannot be determined.
    unknown = [loop for number, loop in loops.items() if loop.backing is None and number not in own]
    strangers = [loop for number, loop in loops.items() if number not in own]
    mine = [loops[leaf.major_minor] for leaf in file_backed if leaf.major_minor in loops]
    relayed = [loop for loop in strangers if any(_may_be_one_file(each, loop, contents, proc) for each in mine)]
    return Twins(tuple(found.values()), tuple(unknown), tuple(relayed))


def _below(drive: Drive) -> set[str]:
    return {each for member in drive.members for each in (member.major_minor, *_below(member))}


def _same_file(one: Drive, other: Drive, loops: dict[str, Loop], contents: DriveContents) -> str | None:
    mine, its = loops.get(one.major_minor), loops.get(other.major_minor)
    if mine is None or its is None or mine.backing is None or its.backing is None:
        return None
    if mine.backing == its.backing:
        return f"{one.name} and {other.name} are loop devices over one file, {mine.backing_file}"
    if contents.of(mine.backing.file) == contents.of(its.backing.file):
        files = f"{mine.backing_file} and {its.backing_file}"
        return (
            f"{one.name} and {other.name} are loop devices over {files}, which are one modelled drive and its content"
        )
    return None


def _may_be_one_file(one: Loop, other: Loop, contents: DriveContents, proc: Path) -> bool:
    """Whether the files could be one that a file system shows under another device and inode."""
    if one.backing is None or other.backing is None:
        return False
    mine, its = contents.of(one.backing.file), contents.of(other.backing.file)
    if mine == its:
        return False  # It is known that they are.
    if one.backing.block_device is not None or other.backing.block_device is not None:
        return False
    if None not in (one.end_bytes, other.end_bytes) and one.end_bytes != other.end_bytes:
        return False
    if mine.device == its.device:
        return relay_of_loop(one, contents, proc).gives_inodes
    return any(relay_of_loop(each, contents, proc).is_relayed for each in (one, other))


def relay_of_loop(loop: Loop, contents: DriveContents, proc: Path = PROC) -> Relay:
    """Whether the file behind the loop device, which is known, may be another one's; of a modelled drive, the file that
    keeps its content."""
    assert loop.backing is not None, "what a loop device lies on is known here"
    content = contents.of(loop.backing.file)
    listed = relay_by_mounts(content.device, proc)
    if listed is not None:
        return listed
    if content != loop.backing.file:
        server = server_descriptor(content, proc)
        return UNKNOWN if server is None else relay_by_type(server)
    # Its name may lead to something else by now.
    with opened(loop.backing_file, loop.backing.file) as descriptor:
        return UNKNOWN if descriptor is None else relay_by_type(descriptor)


def _same_hardware(one: Drive, other: Drive, sys: Path) -> str | None:
    if _are_apart(one, other, sys):
        return None
    if one.wwn and other.wwn:
        return f"{one.name} and {other.name} have one WWN, {one.wwn}" if one.wwn == other.wwn else None
    if one.serial and one.serial == other.serial and one.size_bytes == other.size_bytes:
        # Namespaces of one controller share its serial, and are different blocks.
        if _hardware(one, sys) is not None and _hardware(one, sys) == _hardware(other, sys):
            return None
        return f"{one.name} and {other.name} have one serial, {one.serial}, and one size"
    return None


def _are_apart(one: Drive, other: Drive, sys: Path) -> bool:
    """Whether two NVMe drives are two, whatever their makers called them.

    A namespace is shared within its subsystem only, which the kernel names. And one for which it made a WWN up, of the
    controller's serial and model, has no identity of its own, without which none is shared.
    """
    mine, its = _hardware(one, sys), _hardware(other, sys)
    if mine is None or its is None or mine == its:
        return False
    subsystems = [read_text(hardware / "subsysnqn") for hardware in (mine, its)]
    if None not in subsystems and subsystems[0] != subsystems[1]:
        return True
    return all(drive.wwn is not None and drive.wwn.startswith(_MADE_UP) for drive in (one, other))


def _hardware(drive: Drive, sys: Path) -> Path | None:
    directory = device_directory(drive.major_minor, sys) / "device"
    return directory.resolve() if directory.exists() else None
