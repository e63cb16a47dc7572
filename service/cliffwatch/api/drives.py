"""/drives: the block devices of the service's machine, their health, and the safety gate's objections to each."""

from fastapi import APIRouter

from cliffwatch.http.context import API_PREFIX, Context, Reader
from cliffwatch.http.drive_resource import DriveBody, listed_drives
from cliffwatch.http.paging import Page
from cliffwatch.http.route import ApiRoute

router = APIRouter(prefix=API_PREFIX, route_class=ApiRoute, tags=["drives"])


@router.get("/drives")
def show_drives(services: Context, caller: Reader) -> Page[DriveBody]:
    """All drives, on one page, sorted by name."""
    listed, _ = listed_drives(services)
    return Page(items=listed, next_page=None)
