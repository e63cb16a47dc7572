"""/drives: the block devices of the service's machine, and what the safety gate says to each."""

from fastapi import APIRouter
from pydantic import BaseModel

from cliffwatch.api.context import API_PREFIX, Context, Reader
from cliffwatch.api.pages import Page
from cliffwatch.api.runs import ObjectionBody
from cliffwatch.drives.examination import device_objections
from cliffwatch.drives.inventory import Drive, list_drives

router = APIRouter(prefix=API_PREFIX, tags=["drives"])


class DriveBody(BaseModel):
    """A whole block device; null where the kernel does not say.

    `identities` are what a target may name it by. `objections` are the reasons not to overwrite it; a missing
    confirmation is not among them. `members` are the names of the drives below an array or a mapped device.
    """

    name: str
    node: str
    size_bytes: int
    logical_block_bytes: int
    model: str | None
    firmware: str | None
    serial: str | None
    wwn: str | None
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


@router.get("/drives")
def show_drives(services: Context, caller: Reader) -> Page[DriveBody]:
    """All drives, on one page, by name."""
    return Page(items=[_show(drive) for drive in list_drives()], next_page=None)


def _show(drive: Drive) -> DriveBody:
    try:
        objections = [ObjectionBody(code=item.code, message=item.message) for item in device_objections(drive)]
    except OSError as error:
        message = f"{drive.name} cannot be looked at: {error.strerror}; try again"
        objections = [ObjectionBody(code="target_changed", message=message)]
    return DriveBody(
        name=drive.name,
        node=str(drive.node),
        size_bytes=drive.size_bytes,
        logical_block_bytes=drive.logical_block_bytes,
        model=drive.model,
        firmware=drive.firmware,
        serial=drive.serial,
        wwn=drive.wwn,
        rotational=drive.rotational,
        discard=drive.discard,
        read_only=drive.read_only,
        scheduler=drive.scheduler,
        queue_depth=drive.queue_depth,
        backing_file=None if drive.backing_file is None else str(drive.backing_file),
        raid_level=drive.raid_level,
        chunk_bytes=drive.chunk_bytes,
        members=[member.name for member in drive.members],
        identities=list(drive.identities),
        objections=objections,
    )
