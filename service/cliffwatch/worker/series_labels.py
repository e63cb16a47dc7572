"""What is below a run, as other exporters name it: drives by their kernel names, file systems by their mount points."""

from pathlib import Path

from cliffwatch.gate import Examination
from cliffwatch.machine.mounts import mount_of
from cliffwatch.worker.metrics import RunDevice, RunFileSystem


def devices_below(examination: Examination) -> tuple[RunDevice, ...]:
    """The drives at the bottom of the run's target; none when the kernel ties it to no device."""
    return tuple(RunDevice(drive.name, drive.queue_depth, drive.major_minor) for drive in examination.drives)


def file_systems_of(examination: Examination, journal: Path) -> tuple[RunFileSystem, ...]:
    """The file systems that the run's load and its journal fill. One that cannot be found out is left out."""
    found = []
    if examination.volume is not None:
        found.append(RunFileSystem(str(examination.volume.mount_point), "target"))
    try:
        found.append(RunFileSystem(str(mount_of(journal).mount_point), "journal"))
    except OSError:
        # A mount that went away: the journal records it when it cannot be written.
        return tuple(found)
    return tuple(found)
