"""Drives that are one set of blocks under two names: whoever writes to one of them overwrites the other.

Two loop devices over one file; one logical unit or NVMe namespace reached through two controllers where no multipath
driver has joined its paths.
"""

from dataclasses import dataclass
from pathlib import Path

from cliffwatch.drives.backing import Loop, read_loops
from cliffwatch.drives.inventory import Drive, list_drives
from cliffwatch.drives.sysfs import SYS, device_directory


@dataclass(frozen=True, slots=True)
class Twin:
    """Another name of the blocks of `original`; `reason` says what the two have in common."""

    drive: Drive
    original: Drive
    reason: str


@dataclass(frozen=True, slots=True)
class Twins:
    """`unknown` are loop devices that may lie on the same file: neither the kernel nor the file can be asked."""

    known: tuple[Twin, ...]
    unknown: tuple[Loop, ...] = ()


def twins_of(drive: Drive, sys: Path = SYS) -> Twins:
    """Other names of the drive's blocks, and of those of the drives below it, which themselves are none."""
    own = {drive.major_minor, *_below(drive)}
    others = [other for other in list_drives(sys) if other.major_minor not in own]
    file_backed = [leaf for leaf in drive.leaves if leaf.backing_file is not None]
    loops = {loop.major_minor: loop for loop in read_loops(sys)} if file_backed else {}
    found: dict[str, Twin] = {}
    for leaf in drive.leaves:
        for other in others:
            reason = _same_file(leaf, other, loops) or _same_hardware(leaf, other, sys)
            if reason is not None:
                found.setdefault(other.major_minor, Twin(other, leaf, reason))
    # Of a target of this kind, too, nothing is proven while nobody can say what it lies on.
    unknown = [loop for number, loop in loops.items() if loop.backing is None and number not in own]
    return Twins(tuple(found.values()), tuple(unknown))


def _below(drive: Drive) -> set[str]:
    return {each for member in drive.members for each in (member.major_minor, *_below(member))}


def _same_file(one: Drive, other: Drive, loops: dict[str, Loop]) -> str | None:
    mine, its = loops.get(one.major_minor), loops.get(other.major_minor)
    if mine is None or its is None or mine.backing is None or mine.backing != its.backing:
        return None
    return f"{one.name} and {other.name} are loop devices over one file, {mine.backing_file}"


def _same_hardware(one: Drive, other: Drive, sys: Path) -> str | None:
    if one.wwn and other.wwn:
        return f"{one.name} and {other.name} have one WWN, {one.wwn}" if one.wwn == other.wwn else None
    if one.serial and one.serial == other.serial and one.size_bytes == other.size_bytes:
        # Namespaces of one controller share its serial, and are different blocks.
        if _hardware(one, sys) is not None and _hardware(one, sys) == _hardware(other, sys):
            return None
        return f"{one.name} and {other.name} have one serial, {one.serial}, and one size"
    return None


def _hardware(drive: Drive, sys: Path) -> Path | None:
    directory = device_directory(drive.major_minor, sys) / "device"
    return directory.resolve() if directory.exists() else None
