"""The machine's drives, each with kernel attributes, reasons not to overwrite it, and health."""

from dataclasses import dataclass
from functools import partial

from cliffwatch.base.questions import Questions, Unanswered
from cliffwatch.gate import Objection, device_objections
from cliffwatch.machine.inventory import Drive, list_drives, names_of
from cliffwatch.telemetry.drive_health import DriveHealth, DriveSource, drive_health
from cliffwatch.telemetry.prometheus import QueryFailed


@dataclass(frozen=True, slots=True)
class ExaminedDrive:
    """A whole block device with the reasons not to overwrite it (`objections`).

    `names` identify this drive and no other, and can be given as a target; `health` is None where it is unknown.
    """

    drive: Drive
    names: tuple[str, ...]
    objections: tuple[Objection, ...]
    health: DriveHealth | None


@dataclass(frozen=True, slots=True)
class ExaminedDrives:
    """All drives, in order of their names. `without_health` is why no drive's health is known, else None."""

    drives: tuple[ExaminedDrive, ...]
    without_health: str | None


def examined_drives(source: DriveSource, now: float, questions: Questions) -> ExaminedDrives:
    """Examine every drive of the machine, and query Prometheus for its health."""
    try:
        known, reason = drive_health(source, now), None
    except QueryFailed as error:
        known, reason = {}, str(error)
    drives = list_drives()
    names = names_of(drives)
    examined = [
        ExaminedDrive(drive, tuple(names[drive.major_minor]), _objections(drive, questions), known.get(drive.name))
        for drive in drives
    ]
    return ExaminedDrives(tuple(examined), reason)


def _objections(drive: Drive, questions: Questions) -> tuple[Objection, ...]:
    try:
        return tuple(questions.ask(drive.name, partial(device_objections, drive)))
    except Unanswered as error:
        return (Objection("silent", f"{error}; the kernel's log says more"),)
    except OSError as error:
        message = f"{drive.name} cannot be examined: {error.strerror}; try again"
        return (Objection("target_changed", message),)
