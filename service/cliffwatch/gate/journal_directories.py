"""The journals of all runs, and a target that is where they are: a run must not overwrite what is to prove it."""

from pathlib import Path

from cliffwatch.gate.objections import Objection
from cliffwatch.machine.backing import FileIdentity
from cliffwatch.machine.inventory import Drive, Volume, devices_of, volume_of
from cliffwatch.machine.mounts import mount_of
from cliffwatch.machine.twins import twins_of
from cliffwatch.machine.usage import layers_above


def directory_with_journals(real: Path, journals: Path) -> list[Objection]:
    """Whether the directory is that of the journals, or in it, by whichever name. Raises OSError."""
    kept = FileIdentity.of(journals.stat())
    if kept not in [FileIdentity.of(path.stat()) for path in (real, *real.parents)]:
        return []
    message = f"{real} is where the journals of all runs are kept; name a directory that is not in {journals}"
    return [Objection("journals", message)]


def drive_with_journals(drive: Drive, journals: Path, sys: Path, proc: Path) -> list[Objection]:
    """Whether the journals are on the drive, or on what lies on it, by whichever name. Raises OSError."""
    below = set(devices_of(mount_of(journals, proc), sys))
    names = [drive, *(twin.drive for twin in twins_of(drive, sys).known)]
    layers = {layer.major_minor for each in names for layer in layers_above(each.major_minor, sys)}
    if not below & layers:
        return []
    message = f"{drive.name} holds the journals of all runs: {journals} is on it; use a drive of its own for the test"
    return [Objection("holds_journals", message)]


def notes_on_journals(real: Path, volume: Volume, journals: Path, sys: Path, proc: Path) -> list[str]:
    """What the load and the journals do to each other when they share a file system, or a drive. Raises OSError."""
    shared = {drive.major_minor for drive in volume.drives}
    if real.stat().st_dev == journals.stat().st_dev:
        what = "file system: what fills it stops both, and their syncs are in what is measured"
    elif shared & {drive.major_minor for drive in volume_of(journals, sys, proc).drives}:
        what = "drive: their syncs are in what is measured"
    else:
        return []
    return [f"the journals of all runs are on the same {what}; for a result that counts, use a drive of its own"]
