"""Runs of the synthetic engine, executed by real worker processes."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from cliffwatch.base import durable
from cliffwatch.journal import Event, EventLog, JournalReader, files
from cliffwatch.journal.state import RunStatus, change_state, status_of
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.order import RunOrder
from cliffwatch.model.request import Submission
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import AnyTarget, SyntheticTarget
from cliffwatch.model.workload import format_workload, workload_from
from cliffwatch.part.freezes import WORKER_FROZEN

PATIENCE_SECONDS = 60.0
ATTEMPTS = 3


def queue_run(
    directory: Path,
    load: dict[str, Any] | None = None,
    target: AnyTarget | None = None,
    submission: Submission | None = None,
    more_targets: tuple[AnyTarget, ...] = (),
    drives: PrometheusDrives | None = None,
    **changes: Any,
) -> Path:
    """Write a run's journal in state `starting`, as the service does for a worker; the synthetic engine by default."""
    document = {
        "version": 1,
        "name": "synthetic",
        "engine": "synthetic",
        "window": "100ms",
        "phases": {"soak": "1s"},
        "load": {"operations_per_second": 1000} | (load or {}),
    }
    workload = workload_from(document | ({"load": load} if "engine" in changes else {}) | changes)
    directory.mkdir(parents=True, exist_ok=True)
    order = RunOrder(
        run_id=directory.name,
        workload=workload,
        target=target or SyntheticTarget(name=directory.name),
        created_at=time.time(),
        created_by="test",
        more_targets=more_targets,
        drives=drives,
    )
    durable.write_json_durably(directory / files.ORDER, order.to_document())
    durable.write_durably(directory / files.WORKLOAD, format_workload(workload))
    log = EventLog(directory)
    detail = submission.to_detail() if submission else {"target_key": str(order.target)}
    change_state(log, RunState.QUEUED, time.time(), detail)
    change_state(log, RunState.STARTING, time.time())
    return directory


def start_worker(directory: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "cliffwatch.coordinator", str(directory)])


def execute_run(directory: Path) -> RunStatus:
    """Run a worker to its end; returns the run's status. Raises AssertionError unless the exit status is 0."""
    assert start_worker(directory).wait(PATIENCE_SECONDS) == 0
    return status(directory)


def status(directory: Path) -> RunStatus:
    found = status_of(events(directory))
    assert found is not None
    return found


def events(directory: Path) -> list[Event]:
    return [stored.event for stored in JournalReader(directory).events()]


def names(directory: Path, type_: str) -> list[str]:
    return [event.name for event in events(directory) if event.type == type_]


def window_count(directory: Path) -> int:
    return sum(1 for _ in JournalReader(directory).windows())


def report(directory: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((directory / files.REPORT_JSON).read_text())
    return document


def undisturbed(attempt: Callable[[int], Sequence[Path]]) -> Sequence[Path]:
    """Call `attempt(number)`, which executes runs, until no worker was late; returns the journals of the last attempt.

    On a very busy machine a worker's timer may be late by seconds, which it rightly records as a gap. Raises
    AssertionError after ATTEMPTS such attempts.
    """
    for number in range(ATTEMPTS):
        journals = attempt(number)
        if not any(WORKER_FROZEN in names(journal, "gap") for journal in journals):
            return journals
    raise AssertionError(f"in {ATTEMPTS} attempts this machine kept a worker from running for seconds")


def assert_no_window_twice(directory: Path) -> None:
    windows = list(JournalReader(directory).windows())
    assert [window.seq for window in windows] == list(range(len(windows)))
    for before, after in pairwise(windows):
        assert after.start >= before.end - 1e-6
