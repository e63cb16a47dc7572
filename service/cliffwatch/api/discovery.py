"""/discovery: what Prometheus is to scrape for the runs that are live, in the form of its HTTP service discovery."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from cliffwatch.app.scraping import scraped_targets, scraped_workers
from cliffwatch.base.units import format_duration
from cliffwatch.http.context import API_PREFIX, Context, Reader
from cliffwatch.labs.aging.lifecycle import aging_drives

router = APIRouter(prefix=f"{API_PREFIX}/discovery", tags=["discovery"])
WORKER_JOB = "cliffwatch-worker"
DRIVE_JOB = "drive"
#: A scrape follows the run's window, within these.
SHORTEST_INTERVAL_SECONDS, LONGEST_INTERVAL_SECONDS = 1.0, 10.0


class TargetGroup(BaseModel):
    """Addresses to scrape, and the labels that they share. Labels in `__` are instructions and become no label."""

    targets: Annotated[list[str], Field(min_length=1)]
    labels: dict[str, str]


@router.get("/workers")
def discover_workers(services: Context, caller: Reader) -> list[TargetGroup]:
    """The metrics of the workers that live now."""
    return [
        TargetGroup(
            targets=[worker.address],
            labels={"job": WORKER_JOB, "run_id": worker.run_id, **_pace(worker.window_seconds)},
        )
        for worker in scraped_workers(services.database)
    ]


@router.get("/targets")
def discover_targets(services: Context, caller: Reader) -> list[TargetGroup]:
    """What the workloads of live runs add. What several of them name is scraped once, as often as the fastest needs."""
    return [
        TargetGroup(
            targets=[target.address],
            labels={"job": target.job, "__metrics_path__": target.path, **_pace(target.window_seconds)},
        )
        for target in scraped_targets(services.database)
    ]


@router.get("/drives")
def discover_drives(services: Context, caller: Reader) -> list[TargetGroup]:
    """The aging drives that are attached as disks, by their kernel names, often enough for the shortest windows."""
    return [
        TargetGroup(
            targets=[drive.url.removeprefix("http://")],
            labels={"job": DRIVE_JOB, "device": drive.device, **_pace(SHORTEST_INTERVAL_SECONDS)},
        )
        for drive in aging_drives(services.settings.state_directory)
        if drive.url is not None and drive.device is not None
    ]


def _pace(window_seconds: float) -> dict[str, str]:
    interval = format_duration(min(max(window_seconds, SHORTEST_INTERVAL_SECONDS), LONGEST_INTERVAL_SECONDS))
    return {"__scrape_interval__": interval, "__scrape_timeout__": interval}
