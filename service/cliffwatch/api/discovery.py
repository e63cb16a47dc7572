"""/discovery: what Prometheus is to scrape for the runs that are live, in the form of its HTTP service discovery."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from cliffwatch.base.errors import Problem
from cliffwatch.base.units import format_duration
from cliffwatch.http.context import API_PREFIX, Context, Reader, Services
from cliffwatch.journal import JournalReader, files
from cliffwatch.labs.aging.lifecycle import aging_drives
from cliffwatch.model.state import ACTIVE, RunState
from cliffwatch.model.workload import Workload, workload_from
from cliffwatch.stack.components import HOST
from cliffwatch.store.queries import unfinished_runs
from cliffwatch.worker.heartbeat import Heartbeat

router = APIRouter(prefix=f"{API_PREFIX}/discovery", tags=["discovery"])
_LOG = logging.getLogger(__name__)
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
    groups = []
    for directory, workload in _live(services):
        heartbeat = Heartbeat.read(directory)
        # The port of a worker that died may be somebody else's by now.
        if heartbeat is None or heartbeat.metrics_port is None or not heartbeat.worker.is_alive():
            continue
        labels = {"job": WORKER_JOB, "run_id": directory.name, **_pace(workload.window)}
        groups.append(TargetGroup(targets=[f"{HOST}:{heartbeat.metrics_port}"], labels=labels))
    return groups


@router.get("/targets")
def discover_targets(services: Context, caller: Reader) -> list[TargetGroup]:
    """What the workloads of live runs add. What several of them name is scraped once, as often as the fastest needs."""
    windows: dict[tuple[str, str, str], float] = {}
    for _, workload in _live(services):
        for entry in workload.scrape:
            for target in entry.targets:
                key = (entry.job, entry.path, target)
                windows[key] = min(windows.get(key, workload.window), workload.window)
    return [
        TargetGroup(targets=[target], labels={"job": job, "__metrics_path__": path, **_pace(window)})
        for (job, path, target), window in sorted(windows.items())
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


def _live(services: Services) -> Iterator[tuple[Path, Workload]]:
    """The journals of live runs, with their workloads. One that cannot be read hides no other."""
    with services.database.snapshot() as session:
        directories = [Path(row.directory) for row in unfinished_runs(session) if RunState(row.state) in ACTIVE]
    for directory in directories:
        try:
            yield directory, workload_from(JournalReader(directory).document(files.ORDER)["workload"])
        except (Problem, KeyError) as problem:
            _LOG.warning("run %s cannot be discovered: %s", directory.name, problem)


def _pace(window_seconds: float) -> dict[str, str]:
    interval = format_duration(min(max(window_seconds, SHORTEST_INTERVAL_SECONDS), LONGEST_INTERVAL_SECONDS))
    return {"__scrape_interval__": interval, "__scrape_timeout__": interval}
