"""Response time of the API's list and show of runs, with 1,000 finished and 10 live runs on SQLite."""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench.figures import Figure
from testkit.service import Service

from cliffwatch.engines.synthetic import SyntheticLoad, histogram_of
from cliffwatch.journal import Event, EventLog, EventType, WindowLog, files
from cliffwatch.journal.state import change_state
from cliffwatch.model.order import RunOrder
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import SyntheticTarget
from cliffwatch.model.window import EngineWindow
from cliffwatch.model.workload import format_workload, workload_from

FINISHED_RUNS = 1000
LIVE_RUNS = 10
REQUESTS = 1000


def finished_journal(directory: Path, created_at: float) -> None:
    """Write the journal of a passed run of ten minutes with 10 s windows."""
    workload = workload_from(
        {"version": 1, "name": "bench", "engine": "synthetic", "window": "10s", "phases": {"soak": "10m"}}
    )
    directory.mkdir(parents=True)
    order = RunOrder(
        run_id=directory.name,
        workload=workload,
        target=SyntheticTarget(name="bench"),
        created_at=created_at,
        created_by="bench",
    )
    (directory / files.ORDER).write_text(order.model_dump_json())
    (directory / files.WORKLOAD).write_text(format_workload(workload))
    events = EventLog(directory)
    change_state(events, RunState.QUEUED, created_at, {"target_key": "synthetic:bench"})
    change_state(events, RunState.STARTING, created_at)
    change_state(events, RunState.RUNNING, created_at, {"load_start": created_at, "load_stop": created_at + 600})
    windows = WindowLog(directory, created_at)
    histogram = histogram_of(SyntheticLoad(), 1000, 0.0, np.random.default_rng(1))
    for number in range(60):
        start = created_at + 10 * number
        windows.append(
            EngineWindow(start, start + 10, {"operations": 1000, "bytes": 1, "errors": 0}, {}, {"publish": histogram}),
            "soak",
        )
    windows.close()
    events.append(Event(created_at + 600, EventType.ENGINE, "load_ended", {"how": "completed", "message": ""}))
    change_state(events, RunState.REPORTING, created_at + 600)
    change_state(events, RunState.FINISHED, created_at + 601, {"verdict": "pass", "reasons": []})


def start_live(service: Service, number: int) -> str:
    body = {
        "workload": {
            "version": 1,
            "name": "bench",
            "engine": "synthetic",
            "window": "1s",
            "phases": {"soak": "1h"},
        },
        "target": {"kind": "synthetic", "name": f"live-{number}"},
    }
    answer: dict[str, Any] = service.client.post("/api/v1/runs", json=body).raise_for_status().json()
    return str(answer["id"])


def p99_milliseconds(service: Service, paths: list[str]) -> float:
    for path in paths[:20]:
        service.client.get(path).raise_for_status()
    seconds = []
    for number in range(REQUESTS):
        started = time.perf_counter()
        service.client.get(paths[number % len(paths)]).raise_for_status()
        seconds.append(time.perf_counter() - started)
    return float(np.percentile(seconds, 99)) * 1000


def figures() -> list[Figure]:
    base = Path(tempfile.mkdtemp(prefix="cliffwatch-bench-"))
    with Service(base / "state") as service:
        for number in range(FINISHED_RUNS):
            finished_journal(base / "state/runs" / f"finished-{number:04}", 1_790_000_000.0 + 1000 * number)
        service.rebuild_index()
        live = [start_live(service, number) for number in range(LIVE_RUNS)]
        for run_id in live:
            service.wait_for(run_id, "running")
        finished = [f"finished-{number:04}" for number in range(0, FINISHED_RUNS, 10)]
        listing = p99_milliseconds(service, ["/api/v1/runs", "/api/v1/runs?limit=100", "/api/v1/runs?state=running"])
        showing = p99_milliseconds(service, [f"/api/v1/runs/{run_id}" for run_id in [*live * 10, *finished]])
        for run_id in live:
            service.client.post(f"/api/v1/runs/{run_id}/stop", json={"force": False}).raise_for_status()
        for run_id in live:
            service.wait_for(run_id, "finished")
    shutil.rmtree(base)
    return [
        Figure("API, 1,000 finished and 10 live runs: list, p99", listing, "ms", 30),
        Figure("API, 1,000 finished and 10 live runs: show, p99", showing, "ms", 30),
    ]
