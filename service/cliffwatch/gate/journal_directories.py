"""Detect a target that holds the runs' journals: a run must not overwrite its own evidence."""

from pathlib import Path

from cliffwatch.gate.objections import Objection
from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.inventory import Drive, Volume, devices_of, volume_of
from cliffwatch.machine.mounts import Mount, mount_of
from cliffwatch.machine.twins import twins_of
from cliffwatch.machine.usage import layers_above


def directory_with_journals(real: Path, journals: Path, proc: Path) -> list[Objection]:
    """Objection to a directory that is the journals' directory, or inside it, under any name. Raises OSError."""
    kept = FileIdentity.of(journals.stat())
    is_below = kept in [FileIdentity.of(path.stat()) for path in (real, *real.parents)]
    if not is_below and not _is_mounted_from(real, journals, proc):
        return []
    message = f"{real} is where the journals of all runs are kept; name a directory that is not in {journals}"
    return [Objection("journals", message)]


def _is_mounted_from(real: Path, journals: Path, proc: Path) -> bool:
    """Whether `real` is the journals' directory or a part of it, seen at another path through a bind mount."""
    (mount, path), (kept, above) = _in_file_system(real, proc), _in_file_system(journals, proc)
    return mount.major_minor == kept.major_minor and path.is_relative_to(above)


def _in_file_system(directory: Path, proc: Path) -> tuple[Mount, Path]:
    """Mount of a directory, and the directory's path from the root of its file system, not of the mount."""
    mount = mount_of(directory, proc)
    return mount, mount.root / directory.resolve().relative_to(mount.mount_point)


def drive_with_journals(drive: Drive, journals: Path, sys: Path, proc: Path) -> list[Objection]:
    """Objection to a drive with the journals on it, or on a device above it, under any name. Raises OSError."""
    below = set(devices_of(mount_of(journals, proc), sys))
    names = [drive, *(twin.drive for twin in twins_of(drive, sys).known)]
    layers = {layer.major_minor for each in names for layer in layers_above(each.major_minor, sys)}
    if not below & layers:
        return []
    message = f"{drive.name} holds the journals of all runs: {journals} is on it; use a drive of its own for the test"
    return [Objection("holds_journals", message)]


def notes_on_journals(real: Path, volume: Volume, journals: Path, sys: Path, proc: Path) -> list[str]:
    """A note if the load and the journals share a file system or a drive, else empty. Raises OSError."""
    shared = {drive.major_minor for drive in volume.drives}
    if real.stat().st_dev == journals.stat().st_dev:
        what = "file system: what fills it stops both, and their syncs are in what is measured"
    elif shared & {drive.major_minor for drive in volume_of(journals, sys, proc).drives}:
        what = "drive: their syncs are in what is measured"
    else:
        return []
    return [f"the journals of all runs are on the same {what}; for a result that counts, use a drive of its own"]
