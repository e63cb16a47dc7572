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
    """A whole block device. `names` are what a target may name it and no other by, `objections` the reasons not to
    overwrite it; `health` is None where none is known."""

    drive: Drive
    names: tuple[str, ...]
    objections: tuple[Objection, ...]
    health: DriveHealth | None


@dataclass(frozen=True, slots=True)
class ExaminedDrives:
    """All drives by name. `without_health` is why the health of none is known, if so."""

    drives: tuple[ExaminedDrive, ...]
    without_health: str | None


def examined_drives(source: DriveSource, now: float, questions: Questions) -> ExaminedDrives:
    """Look at every drive of the machine, and ask Prometheus for its health."""
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
