"""The drives of the machine, as the API and the pages show them."""

from dataclasses import asdict

from pydantic import BaseModel

from cliffwatch.app.drives import ExaminedDrive
from cliffwatch.http.context import Services
from cliffwatch.http.plan_resource import ObjectionBody


class DriveHealthBody(BaseModel):
    """A drive's health by the newest data in Prometheus; null where it is not reported.

    `answers` is false if the drive was polled and did not answer. Ratios are from 0 to 1; only `percentage_used_ratio`
    may exceed 1. `write_amplification` is that of the last ten minutes.
    """

    answers: bool | None
    temperature_celsius: float | None
    percentage_used_ratio: float | None
    spare_ratio: float | None
    free_blocks_ratio: float | None
    media_errors: int | None
    write_amplification: float | None


class DriveBody(BaseModel):
    """A whole block device; values that the kernel does not report are null.

    `identities` are the names by which a target may refer to it. `objections` are the reasons not to overwrite it; a
    missing confirmation is not among them. `members` are the names of the drives below an array or a mapped device.
    `health` is null if no watcher reports it.
    """

    name: str
    node: str
    size_bytes: int
    logical_block_bytes: int
    model: str | None
    firmware: str | None
    serial: str | None
    wwn: str | None
    kind: str
    rotational: bool | None
    discard: bool
    read_only: bool
    scheduler: str | None
    queue_depth: int | None
    backing_file: str | None
    raid_level: str | None
    chunk_bytes: int | None
    members: list[str]
    identities: list[str]
    objections: list[ObjectionBody]
    health: DriveHealthBody | None


def listed_drives(services: Services) -> tuple[list[DriveBody], str | None]:
    """All drives, sorted by name, and the reason if no drive's health is known."""
    examined = services.drives.ask()
    return [_drive_body(each) for each in examined.drives], examined.without_health


def _drive_body(examined: ExaminedDrive) -> DriveBody:
    drive = examined.drive
    return DriveBody(
        name=drive.name,
        node=str(drive.node),
        size_bytes=drive.size_bytes,
        logical_block_bytes=drive.logical_block_bytes,
        model=drive.model,
        firmware=drive.firmware,
        serial=drive.serial,
        wwn=drive.wwn,
        kind=drive.kind,
        rotational=drive.rotational,
        discard=drive.discard,
        read_only=drive.read_only,
        scheduler=drive.scheduler,
        queue_depth=drive.queue_depth,
        backing_file=None if drive.backing_file is None else str(drive.backing_file),
        raid_level=drive.raid_level,
        chunk_bytes=drive.chunk_bytes,
        members=[member.name for member in drive.members],
        identities=list(examined.names),
        objections=[
            ObjectionBody(code=item.code, meaning=item.meaning, message=item.message) for item in examined.objections
        ],
        health=None if examined.health is None else DriveHealthBody.model_validate(asdict(examined.health)),
    )
