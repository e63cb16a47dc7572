"""/discovery/drives: Prometheus HTTP service discovery of the aging drives."""

from fastapi import APIRouter

from cliffwatch.http.context import Context, Reader
from cliffwatch.http.target_group import DISCOVERY_PREFIX, SHORTEST_INTERVAL_SECONDS, TargetGroup, pace
from cliffwatch.labs.aging.lifecycle import aging_drives

router = APIRouter(prefix=DISCOVERY_PREFIX, tags=["discovery"])
DRIVE_JOB = "drive"


@router.get("/drives")
def discover_drives(services: Context, caller: Reader) -> list[TargetGroup]:
    """The aging drives that are attached as disks, by their kernel names, often enough for the shortest windows."""
    return [
        TargetGroup(
            targets=[drive.url.removeprefix("http://")],
            labels={"job": DRIVE_JOB, "device": drive.device, **pace(SHORTEST_INTERVAL_SECONDS)},
        )
        for drive in aging_drives(services.settings.state_directory)
        if drive.url is not None and drive.device is not None
    ]
