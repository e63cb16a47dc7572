"""Target key: the drives or the file system that a target uses. Runs whose keys overlap must not run at the same time.

`drive:7:0+on:8:0` is a loop device whose file is on the drive 8:0. What is written to it is written there, too, so it
overlaps with any target on 8:0 itself; but not with another loop device whose file is there.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from cliffwatch.machine.backing import FileIdentity, Loop, read_loops
from cliffwatch.machine.inventory import Drive, Volume, drive_at, list_drives, volume_of
from cliffwatch.machine.sysfs import device_directory, major_minor_order
from cliffwatch.machine.twins import twins_of

#: Prefix of a drive or file system that holds the file behind a loop device of the target.
_BELOW = "on:"


def targets_overlap(one_key: str, other_key: str) -> bool:
    """Whether two target keys have a drive in common or, without drives, the same file system or server; or one is of
    a loop device whose file is where the other target is."""
    mine, its = _places(one_key), _places(other_key)
    mine_below, its_below = (
        {each.removeprefix(_BELOW) for each in places if each.startswith(_BELOW)} for places in (mine, its)
    )
    # Of the places below, only those of one key are compared with the other key's own.
    own, its_own = ({each for each in places if not each.startswith(_BELOW)} for places in (mine, its))
    return bool(own & its_own or mine_below & its_own or its_below & own)


def combined_key(keys: Sequence[str]) -> str:
    """Target key of a run with several targets: the only key as it is, or all of them as a JSON array."""
    return keys[0] if len(keys) == 1 else json.dumps(sorted(set(keys)), separators=(",", ":"))


def key_of_volume(volume: Volume, directory: FileIdentity, sys: Path, proc: Path) -> str:
    """Target key of a directory on a volume; of its file system where no drive is known below that."""
    return key_of_drives(volume.drives, sys, proc) or f"file_system:{directory.major_minor}"


def key_of_drives(drives: Iterable[Drive], sys: Path, proc: Path) -> str:
    """Target key: the major:minor of the drives, of their other device names, and of other drives on the same flash,
    and what the files behind loop devices are on.

    With all of them, the keys of two runs on a drive overlap even if a device name appears or disappears meanwhile.
    """
    loops = {loop.major_minor: loop for loop in read_loops(sys)}
    found: dict[str, Drive] = {}
    below: set[str] = set()
    waiting = list(drives)
    while waiting:
        drive = waiting.pop()
        if drive.major_minor in found:
            continue
        found[drive.major_minor] = drive
        waiting += [*siblings_of(drive, sys), *(twin.drive for twin in twins_of(drive, sys).known)]
        if drive.major_minor in loops:
            below |= _holding(loops[drive.major_minor], sys, proc)
    if not found:
        return ""
    return "drive:" + "+".join([*sorted(found, key=major_minor_order), *(_BELOW + each for each in sorted(below))])


def siblings_of(drive: Drive, sys: Path) -> list[Drive]:
    """Other block devices on the same flash as a drive: further namespaces of its NVMe controller."""
    hardware = device_directory(drive.major_minor, sys) / "device"
    if not hardware.exists():
        return []
    return [
        other
        for other in list_drives(sys)
        if other.major_minor != drive.major_minor
        and (device_directory(other.major_minor, sys) / "device").resolve() == hardware.resolve()
    ]


def _holding(loop: Loop, sys: Path, proc: Path) -> set[str]:
    """Places, as in a target key, that hold the file or device behind a loop device, down to the last."""
    if loop.backing is None:
        return set()  # The gate refuses a device whose file is unknown.
    device = loop.backing.block_device or loop.backing.file.major_minor
    try:
        key = key_of_drives(drive_at(device, sys).leaves, sys, proc)
    except OSError:
        key = _key_by_name(loop, loop.backing.file, sys, proc)
    return {place.removeprefix(_BELOW) for place in _places(key)}


def _key_by_name(loop: Loop, file: FileIdentity, sys: Path, proc: Path) -> str:
    """Target key of the directory of a loop device's file, on a file system without a device number, as btrfs."""
    alone = f"file_system:{file.major_minor}"
    try:
        directory = loop.backing_file.resolve(strict=True).parent
        if FileIdentity.of(loop.backing_file.stat()) != file:
            return alone
        return key_of_volume(volume_of(directory, sys, proc), FileIdentity.of(directory.stat()), sys, proc)
    except (OSError, RuntimeError):
        return alone


def _places(key: str) -> set[str]:
    if key.startswith("["):
        return set().union(*map(_places, json.loads(key)))
    kind, _, rest = key.partition(":")
    return set(rest.split("+")) if kind == "drive" else {key}
