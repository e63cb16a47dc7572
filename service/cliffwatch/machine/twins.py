"""Drives that are one set of blocks under two names: a write to one of them overwrites the other.

Twins are two loop devices over one file, or over a modelled drive's file and its content file; or one logical unit or
NVMe namespace reached through two controllers where no multipath driver has joined its paths. A file on an overlay, on
FUSE or on a network file system may be stored as another file, with another device and inode, and nothing shows which.
So if the file of one loop device is on such a file system, the file of any other may be the same, unless both devices
reach to the end of their files, and the files differ in length.
"""

from dataclasses import dataclass
from pathlib import Path

from cliffwatch.machine.backing import Loop, opened, read_loops
from cliffwatch.machine.inventory import Drive, list_drives
from cliffwatch.machine.modelled import DriveContents, server_descriptor
from cliffwatch.machine.relays import UNKNOWN, Relay, relay_by_mounts, relay_by_type
from cliffwatch.machine.sysfs import PROC, SYS, device_directory, read_text

#: Prefix of a WWN that the kernel makes up for a namespace without UUID, NGUID and EUI64: wwid_show in
#: drivers/nvme/host/sysfs.c.
_MADE_UP = "nvme."


@dataclass(frozen=True, slots=True)
class Twin:
    """Device that shares its blocks with `original` under another name; `reason` says how they are related."""

    drive: Drive
    original: Drive
    reason: str


@dataclass(frozen=True, slots=True)
class Twins:
    """Twins of a drive: `known` ones, and loop devices that may have the same backing file as the drive.

    The backing files of `unknown` ones cannot be determined. The backing file of a `relayed` one, or the drive's, may
    be stored in another file system, so that different inodes prove nothing.
    """

    known: tuple[Twin, ...]
    unknown: tuple[Loop, ...] = ()
    relayed: tuple[Loop, ...] = ()


def twins_of(drive: Drive, sys: Path = SYS, proc: Path = PROC) -> Twins:
    """Other devices with the blocks of the drive, or of the drives below it; these drives themselves do not count."""
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
    # A loop device whose backing file cannot be determined may be a twin, too.
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
    """Whether the files of two loop devices may be one file that a relaying file system shows as two."""
    if one.backing is None or other.backing is None:
        return False
    mine, its = contents.of(one.backing.file), contents.of(other.backing.file)
    if mine == its:
        return False  # A known twin, which `_same_file` reports.
    if one.backing.block_device is not None or other.backing.block_device is not None:
        return False
    if None not in (one.end_bytes, other.end_bytes) and one.end_bytes != other.end_bytes:
        return False
    if mine.device == its.device:
        return relay_of_loop(one, contents, proc).gives_inodes
    return any(relay_of_loop(each, contents, proc).is_relayed for each in (one, other))


def relay_of_loop(loop: Loop, contents: DriveContents, proc: Path = PROC) -> Relay:
    """Whether the file behind a loop device (if a modelled drive, its content file) may be stored in another file
    system. Call this only for a loop device whose `backing` is known."""
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
    """Whether two NVMe drives are certainly different ones, even if their makers gave them equal identities.

    A namespace is shared only within its subsystem, which the kernel names (subsysnqn). A namespace whose WWN the
    kernel made up from the controller's serial and model has no identity of its own, so it cannot be shared.
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
