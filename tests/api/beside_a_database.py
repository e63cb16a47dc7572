"""Runs of a service whose database is in trouble."""

from pathlib import Path
from typing import Any

from testkit.service import Service
from testkit.worker_runs import window_count

WORKLOAD = {
    "version": 1,
    "name": "beside-a-database",
    "engine": "synthetic",
    "window": "200ms",
    "phases": {"soak": "12s", "cool_down": "0s"},
    "load": {"operations_per_second": 100},
}


def submit(service: Service, name: str, **changes: Any) -> str:
    order = {"workload": WORKLOAD | changes, "target": {"kind": "synthetic", "name": name}}
    run_id: str = service.client.post("/api/v1/runs", json=order).raise_for_status().json()["id"]
    return run_id


def windows_of(service: Service, run_id: str) -> int:
    return window_count(directory_of(service, run_id))


def directory_of(service: Service, run_id: str) -> Path:
    return service.state_directory / "runs" / run_id
