"""Journals made by hand, as the service and a worker would have written them."""

import json
from pathlib import Path
from typing import Any

from cliffwatch.base import durable
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventLog, EventType, WindowLog, files
from cliffwatch.journal.checksum import opened, sealed
from cliffwatch.journal.state import change_state
from cliffwatch.model.order import RunOrder
from cliffwatch.model.request import Submission
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import SyntheticTarget, parse_target
from cliffwatch.model.window import EngineWindow
from cliffwatch.model.workload import Workload, format_workload, workload_from

START = 1_790_000_000.0


def synthetic_workload(name: str = "steady", **changes: Any) -> Workload:
    """Workload of the synthetic engine: one minute in windows of one second."""
    document = {"version": 1, "name": name, "engine": "synthetic", "window": "1s", "phases": {"soak": "1m"}}
    return workload_from(document | changes)


def order_of(*targets: str, part_names: tuple[str, ...] = ()) -> RunOrder:
    """Order of a run on these targets, as `--target` takes them."""
    first, *more = map(parse_target, targets)
    return RunOrder(
        run_id="one",
        workload=synthetic_workload(),
        target=first,
        created_at=START,
        created_by="tester",
        more_targets=tuple(more),
        part_names=part_names,
    )


def rewritten(line: bytes, **fields: Any) -> bytes:
    """A journal line with these fields of its JSON object replaced and its checksum computed anew."""
    return sealed(json.dumps(json.loads(opened(line)) | fields)).encode()


def queue(
    runs_directory: Path,
    run_id: str,
    *,
    workload: Workload | None = None,
    at: float = START,
    submission: Submission | None = None,
    schedule_id: str | None = None,
) -> Path:
    """Write the journal of a queued run; returns its directory."""
    order = RunOrder(
        run_id=run_id,
        workload=workload or synthetic_workload(),
        target=SyntheticTarget(name="nowhere"),
        created_at=at,
        created_by="tester",
        schedule_id=schedule_id,
    )
    directory = runs_directory / run_id
    directory.mkdir(parents=True)
    durable.write_json_durably(directory / files.ORDER, order.model_dump(mode="json"))
    durable.write_durably(directory / files.WORKLOAD, format_workload(order.workload))
    given = submission or Submission(target_key="synthetic:nowhere", request_digest="0" * 64)
    change_state(EventLog(directory), RunState.QUEUED, at, given.to_detail())
    return directory


def start(directory: Path, at: float = START + 1) -> None:
    """Change the state of a queued run to `running`; its load lasts a minute."""
    log = EventLog(directory)
    change_state(log, RunState.STARTING, at)
    log.append(Event(at, EventType.PHASE, "prepare"))
    change_state(log, RunState.RUNNING, at + 1, {"load_start": at + 1, "load_stop": at + 61})
    log.append(Event(at + 1, EventType.PHASE, "soak"))


def measure(directory: Path, count: int, first: float = START + 2) -> None:
    """Commit `count` windows of one second."""
    log = WindowLog(directory, first)
    try:
        begin = first if log.last is None else log.last.end
        for number in range(count):
            histogram = Histogram()
            histogram.record(2_000_000, 1000)
            window = EngineWindow(
                start=begin + number,
                end=begin + number + 1,
                counters={"operations": 1000, "bytes": 16_384_000, "errors": 0},
                gauges={"schedule_debt_seconds": 0.0},
                latency={"write": histogram},
            )
            log.append(window, "soak")
    finally:
        log.close()


def find(directory: Path, name: str = "cliff", at: float = START + 30) -> None:
    """Append a finding event."""
    EventLog(directory).append(Event(at, EventType.FINDING, name, {"ratio": 40.0}))


def finish(directory: Path, verdict: str = "pass", at: float = START + 65) -> None:
    """Change the state of a running run to `reporting` and then to `finished`."""
    log = EventLog(directory)
    change_state(log, RunState.REPORTING, at)
    change_state(log, RunState.FINISHED, at + 1, {"verdict": verdict, "reasons": ["as it was made"]})
