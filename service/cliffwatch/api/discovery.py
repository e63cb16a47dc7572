"""/discovery: Prometheus HTTP service discovery of the live runs' workers and of their workloads' scrape targets."""

from fastapi import APIRouter

from cliffwatch.app.scraping import scraped_targets, scraped_workers
from cliffwatch.http.context import Context, Reader
from cliffwatch.http.target_group import DISCOVERY_PREFIX, TargetGroup, pace

router = APIRouter(prefix=DISCOVERY_PREFIX, tags=["discovery"])
WORKER_JOB = "cliffwatch-worker"


@router.get("/workers")
def discover_workers(services: Context, caller: Reader) -> list[TargetGroup]:
    """Scrape targets: the metrics of all live workers."""
    return [
        TargetGroup(
            targets=[worker.address],
            labels={"job": WORKER_JOB, "run_id": worker.run_id, **pace(worker.window_seconds)},
        )
        for worker in scraped_workers(services.database)
    ]


@router.get("/targets")
def discover_targets(services: Context, caller: Reader) -> list[TargetGroup]:
    """Scrape targets that the workloads of live runs name, each listed once, with the shortest interval."""
    return [
        TargetGroup(
            targets=[target.address],
            labels={"job": target.job, "__metrics_path__": target.path, **pace(target.window_seconds)},
        )
        for target in scraped_targets(services.database)
    ]
