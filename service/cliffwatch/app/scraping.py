"""Prometheus scrape targets of live runs: their workers, and the targets that their workloads add."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.base.errors import Problem
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.run_state import ACTIVE
from cliffwatch.model.workload import Workload, workload_from
from cliffwatch.stack.components import HOST
from cliffwatch.store.database import Database
from cliffwatch.store.queries import unfinished_runs

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScrapedWorker:
    """Metrics endpoint of a live worker; `window_seconds` is its run's window length."""

    run_id: str
    address: str
    window_seconds: float


@dataclass(frozen=True, slots=True)
class ScrapedTarget:
    """Scrape target of a workload; `window_seconds` is the shortest window of the runs that name it."""

    job: str
    path: str
    address: str
    window_seconds: float


def scraped_workers(database: Database) -> list[ScrapedWorker]:
    """Metrics endpoints of the workers that are alive and have a metrics port."""
    found = []
    for directory, workload in _live(database):
        heartbeat = Heartbeat.read(directory)
        # The port of a worker that died may belong to another process by now.
        if heartbeat is None or heartbeat.metrics_port is None or not heartbeat.worker.is_alive():
            continue
        found.append(ScrapedWorker(directory.name, f"{HOST}:{heartbeat.metrics_port}", workload.window))
    return found


def scraped_targets(database: Database) -> list[ScrapedTarget]:
    """Scrape targets of live runs' workloads, each once, by job, path and address."""
    windows: dict[tuple[str, str, str], float] = {}
    for _, workload in _live(database):
        for entry in workload.scrape:
            for address in entry.targets:
                key = (entry.job, entry.path, address)
                windows[key] = min(windows.get(key, workload.window), workload.window)
    return [ScrapedTarget(*key, window_seconds) for key, window_seconds in sorted(windows.items())]


def _live(database: Database) -> Iterator[tuple[Path, Workload]]:
    """Journal directories of live runs, with their workloads. An unreadable journal is logged and skipped."""
    with database.snapshot() as session:
        directories = [Path(row.directory) for row in unfinished_runs(session) if row.state in ACTIVE]
    for directory in directories:
        try:
            yield directory, workload_from(JournalReader(directory).document(files.ORDER)["workload"])
        except (Problem, KeyError) as problem:
            _LOG.warning("run %s cannot be discovered: %s", directory.name, problem)
