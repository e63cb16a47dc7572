"""Journals of every kind of run that a report can be made of, in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from testkit.recorded_runs import LOAD_START, Ending, GapEvent, JournalPlan, at_window, make_journal
from tests.report.telemetry_files import write_telemetry

from cliffwatch.app.alerts import Alert
from cliffwatch.base import durable
from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.pgbench.readings import TOTALS
from cliffwatch.journal import Event, EventLog, EventType, files
from cliffwatch.model.database import (
    CHECKPOINT_BEGUN,
    CHECKPOINT_COMPLETED,
    CLIENT,
    CPU,
    DATA,
    LOCK,
    OTHER,
    SAMPLES,
    WAL,
)
from cliffwatch.model.run_state import RunState

#: The cliff of runs that have one is after so many windows of 10 s.
WINDOWS, CLIFF = 150, 90
OPERATIONS, BYTES = 1000, 1000 * 16_384
DRIVE: dict[str, Any] = {
    "name": "nvme0n1",
    "major_minor": "259:0",
    "serial": "S1AGING",
    "model": "Example 4TB",
    "size_bytes": 4 << 40,
}
DRIVE_FACTS: dict[str, Any] = {
    "kernel": "6.1.0",
    "target": {"kind": "directory"},
    "drives": [DRIVE],
    "file_system": {"mount_point": "/data", "type": "xfs"},
}
LATENCIES = {
    "fio": ("write", "sync"),
    "storage": ("append", "append_service", "sync", "write"),
    "kafka": ("publish", "publish_service", "end_to_end"),
    "pgbench": ("transaction", "transaction_service"),
    "synthetic": ("publish", "publish_service"),
}
TARGETS = {
    "fio": "directory:/data",
    "storage": "directory:/data",
    "kafka": "broker:127.0.0.1:9092",
    "pgbench": "postgres://soak@127.0.0.1:5432/soak",
    "synthetic": "synthetic:nothing",
}
#: Other places for the same load, and what is found there: servers on this machine, and a drive without a file system.
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "local_broker": (
        "broker:127.0.0.1:9092@/data",
        {"kernel": "6.1.0", "target": {"kind": "broker"}, "drives": [DRIVE]},
    ),
    "local_database": (
        "postgres://soak@127.0.0.1:5432/soak@/data",
        {"kernel": "6.1.0", "target": {"kind": "postgres"}, "drives": [DRIVE]},
    ),
    "device": (
        "device:S1AGING",
        {"kernel": "6.1.0", "target": {"kind": "device", "path": "/dev/nvme0n1"}, "drives": [DRIVE]},
    ),
}
#: Engines that write to a drive themselves.
ON_DRIVES = ("fio", "storage")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run. `verdict` is what its report says; `shape` what happened to it, one of `SHAPES`.

    `place`: one of `PLACES`, where it is not where such an engine usually runs.
    """

    engine: str
    verdict: str
    shape: str = "whole"
    telemetry: bool = False
    limits: bool = False
    place: str = ""

    def __str__(self) -> str:
        extra = [name for name in ("telemetry", "limits") if getattr(self, name)]
        return "-".join([self.engine, self.verdict, self.shape, *extra, *([self.place] if self.place else [])])

    @property
    def on_drive(self) -> bool:
        """Whether a drive below the target is watched."""
        return self.engine in ON_DRIVES or bool(self.place)

    @property
    def target(self) -> str:
        return PLACES[self.place][0] if self.place else TARGETS[self.engine]

    @property
    def facts(self) -> dict[str, Any]:
        if self.place:
            return PLACES[self.place][1]
        return DRIVE_FACTS if self.on_drive else {"target": {"kind": self.engine}, "drives": []}


def write_journal(directory: Path, kind: Kind) -> Path:
    """The journal of a run of that kind."""
    plan = SHAPES[kind.shape](_plan(kind))
    make_journal(directory, plan)
    if kind.telemetry and kind.on_drive:
        _write_telemetry(directory, cliff=kind.shape == "cliff")
    if kind.shape == "refused":
        detail = {"verdict": "failed", "reasons": ["The load did not start: nothing may be written to /data."]}
        EventLog(directory).append(Event(LOAD_START, EventType.STATE, RunState.FINISHED.value, detail))
    if kind.shape == "imported":
        durable.write_json_durably(directory / files.IMPORTED, {"at": LOAD_START + 9e5, "by": "tests", "manifest": {}})
    return directory


def _plan(kind: Kind) -> JournalPlan:
    held, broken = ("p99 <= 10s over any 5m", "no cliff"), ("p99 <= 1ms over any 5m", "no cliff")
    return JournalPlan(
        windows=WINDOWS,
        warm_up_windows=6,
        baseline_windows=24,
        target=kind.target,
        engine=kind.engine,
        description="Batches of 16 KiB, as a log writes them.",
        facts=kind.facts,
        latency=_latency(kind),
        counters=_counters(kind),
        gauges=_gauges(kind),
        limits=() if not kind.limits else broken if kind.verdict == "degraded" else held,
        events=_checkpoints() if kind.engine == "pgbench" else (),
    )


def _checkpoints() -> tuple[Event, ...]:
    """A checkpoint of two minutes every five minutes."""
    events = []
    for begun in range(100, WINDOWS * 10, 300):
        events.append(Event(LOAD_START + begun, EventType.ENGINE, CHECKPOINT_BEGUN, {"requested": False}))
        events.append(Event(LOAD_START + begun + 120, EventType.ENGINE, CHECKPOINT_COMPLETED, {"seconds": 120.0}))
    return tuple(events)


def _latency(kind: Kind) -> Callable[[int], dict[str, Histogram]]:
    def of_window(index: int) -> dict[str, Histogram]:
        if is_stalled(kind, index):
            return {}
        noise = np.random.default_rng(index)
        median = (0.03 if kind.shape == "cliff" and index >= CLIFF else 0.001) * float(np.exp(noise.normal(0, 0.05)))
        values = np.rint(noise.lognormal(np.log(median), 0.45, OPERATIONS) * 1e9).astype(np.int64)
        histogram = Histogram()
        histogram.record_many(values)
        return dict.fromkeys(LATENCIES[kind.engine], histogram)

    return of_window


def _counters(kind: Kind) -> Callable[[int], dict[str, int]]:
    def of_window(index: int) -> dict[str, int]:
        stalled = is_stalled(kind, index)
        counters = {"operations": 0, "bytes": 0} if stalled else {"operations": OPERATIONS, "bytes": BYTES}
        counters["errors"] = int(kind.shape == "errors" and index % 9 == 0)
        if kind.engine == "pgbench":
            del counters["bytes"]
            counters |= dict.fromkeys(TOTALS, 40) | dict.fromkeys((WAL, DATA, LOCK, CLIENT, CPU, OTHER), 8)
            counters[SAMPLES] = 40
        if not kind.on_drive:
            return counters
        if kind.engine in ON_DRIVES:
            counters["written_bytes"] = counters["bytes"]
        if kind.shape == "unwatched":
            return counters
        moved = 0 if stalled or kind.shape == "cached" else BYTES
        slow = kind.shape == "cliff" and index >= CLIFF
        return counters | {
            # Servers write what their client sent.
            "engine_written_bytes": moved if kind.engine in ON_DRIVES else 0,
            "device_written_bytes": moved,
            "device_read_bytes": 0,
            "device_write_operations": moved // 16_384,
            "device_write_milliseconds": 0 if moved == 0 else 29_000 if slow else 900,
            "device_read_operations": 0,
            "device_read_milliseconds": 0,
        }

    return of_window


def _gauges(kind: Kind) -> Callable[[int], dict[str, float]]:
    """fio knows nothing of an age while it completes something."""
    waited = 0

    def of_window(index: int) -> dict[str, float]:
        nonlocal waited
        waited = waited + 1 if is_stalled(kind, index) else 0
        return {} if kind.engine == "fio" and not waited else {"oldest_outstanding_seconds": 10.0 * waited}

    return of_window


def is_stalled(kind: Kind, index: int) -> bool:
    """Whether nothing was completed in a window: of stalls, one that ends and one that lasts to the load's end."""
    return (kind.shape == "stalls" and (40 <= index < 46 or index >= WINDOWS - 5)) or kind.shape == "all_stalled"


def _whole(plan: JournalPlan) -> JournalPlan:
    return plan


def _gaps(plan: JournalPlan) -> JournalPlan:
    missing = {20, 21, 50, 52, 100}
    return replace(plan, missing=missing, gaps=(GapEvent(20, 21, "engine_restarted"), GapEvent(50, 50, "clock")))


def _one_window(plan: JournalPlan) -> JournalPlan:
    return replace(plan, windows=1, warm_up_windows=0, baseline_windows=0)


def _no_window(plan: JournalPlan) -> JournalPlan:
    return replace(plan, missing=range(WINDOWS))


def _stopped(plan: JournalPlan) -> JournalPlan:
    asked = Event(at_window(plan, 60) + 3, EventType.STATE, RunState.STOPPING.value)
    return replace(plan, missing=range(61, WINDOWS), events=(*plan.events, asked), ending=Ending("stopped"))


def _stopped_at_once(plan: JournalPlan) -> JournalPlan:
    asked = Event(LOAD_START - 1, EventType.STATE, RunState.STOPPING.value)
    return replace(plan, missing=range(WINDOWS), events=(*plan.events, asked), ending=Ending("stopped"))


def _resumed(plan: JournalPlan) -> JournalPlan:
    lost = at_window(plan, 70)
    events = (
        Event(lost + 1, EventType.STATE, RunState.INTERRUPTED.value),
        Event(lost + 2, EventType.STATE, RunState.STARTING.value),
        Event(lost + 5, EventType.STATE, RunState.RUNNING.value),
    )
    return replace(plan, missing={70}, gaps=(GapEvent(70, 70, "worker_interrupted"),), events=(*plan.events, *events))


def _failed(plan: JournalPlan) -> JournalPlan:
    ending = Ending("failed", "the engine died 6 times; the last time: no space left on device")
    died = Event(at_window(plan, 80), EventType.ENGINE, "died", {"message": "no space left on device"})
    return replace(plan, missing=range(80, WINDOWS), ending=ending, events=(*plan.events, died))


def _killed(plan: JournalPlan) -> JournalPlan:
    return replace(plan, missing=range(90, WINDOWS), ending=Ending(None))


def _refused(plan: JournalPlan) -> JournalPlan:
    return replace(plan, missing=range(WINDOWS), ending=Ending(None))


def _marked(plan: JournalPlan) -> JournalPlan:
    """Alerts, notes, and a clock that jumped."""
    labels = {"alertname": "CliffwatchLatencyCliff", "severity": "critical", "run_id": plan.run_id}
    started = at_window(plan, 95)
    summary, description = "p99 fell off a cliff", "It is 30× the baseline."
    alert = Alert(
        labels["alertname"], "firing", "66a9", started, None, labels["severity"], summary, description, labels
    )
    events = (
        Event(at_window(plan, 30) + 2, EventType.NOTE, "seen", {"text": "a label that is long " * 9}),
        Event(at_window(plan, 31) + 2, EventType.CLOCK, "wall_clock_jumped", {"seconds": -3.5}),
        alert.event(at_window(plan, 96)),
    )
    return replace(plan, events=(*plan.events, *events))


#: What can happen to a run: what it makes of the plan of a whole one.
SHAPES: dict[str, Callable[[JournalPlan], JournalPlan]] = {
    "whole": _whole,
    "imported": _whole,
    "cliff": _marked,
    "errors": _whole,
    "cached": _whole,
    "unwatched": _whole,
    "stalls": _whole,
    "all_stalled": _whole,
    "gaps": _gaps,
    "one_window": _one_window,
    "no_window": _no_window,
    "stopped": _stopped,
    "stopped_at_once": _stopped_at_once,
    "resumed": _resumed,
    "failed": _failed,
    "killed": _killed,
    "refused": _refused,
}


def _write_telemetry(directory: Path, cliff: bool) -> None:
    """What exporters of the drive and of the kernel knew, of each moment from the load's start to its end."""

    def total(before: float, after: float) -> list[float]:
        return [0.0, *np.cumsum([after if cliff and index >= CLIFF else before for index in range(WINDOWS)]).tolist()]

    series = {
        "drive_host_written_bytes_total": total(BYTES, BYTES),
        "drive_media_written_bytes_total": total(1.02 * BYTES, 3.2 * BYTES),
        "drive_free_blocks_ratio": [max(0.02, 0.6 - 0.006 * moment) for moment in range(WINDOWS + 1)],
        "node_disk_writes_completed_total": total(OPERATIONS, OPERATIONS),
        "node_disk_write_time_seconds_total": total(0.9, 29.0),
        "node_disk_io_time_weighted_seconds_total": total(1.0, 31.0),
    }
    write_telemetry(directory, LOAD_START, 10.0, {(name, DRIVE["name"]): values for name, values in series.items()})


_EVERY_ENGINE = tuple(LATENCIES)
#: Each engine with each verdict; then what else can be different, on the engine that has most to show of it.
KINDS: tuple[Kind, ...] = (
    *(
        Kind(engine, verdict, shape, telemetry=telemetry, limits=limits)
        for (engine, telemetry), (verdict, shape, limits) in product(
            zip(_EVERY_ENGINE, (True, False, False, False, False), strict=True),
            (
                ("pass", "whole", False),
                ("degraded", "cliff", True),
                ("invalid", "gaps", False),
                ("failed", "failed", True),
                ("stopped", "stopped", False),
            ),
        )
    ),
    *(Kind("storage", "pass", "whole", telemetry, limits) for telemetry, limits in ((True, True), (True, False))),
    Kind("storage", "degraded", "cliff", telemetry=True),
    Kind("fio", "degraded", "whole", limits=True),
    Kind("fio", "degraded", "errors", telemetry=True),
    Kind("fio", "invalid", "cached", telemetry=True),
    Kind("fio", "invalid", "unwatched"),
    Kind("storage", "degraded", "stalls", telemetry=True),
    Kind("kafka", "degraded", "stalls", limits=True),
    Kind("fio", "failed", "all_stalled"),
    Kind("fio", "failed", "no_window"),
    Kind("synthetic", "pass", "one_window"),
    Kind("storage", "pass", "one_window", telemetry=False),
    Kind("storage", "stopped", "stopped_at_once"),
    Kind("synthetic", "failed", "refused"),
    Kind("fio", "pass", "imported", telemetry=True),
    Kind("kafka", "pass", "imported"),
    Kind("storage", "pass", "resumed", telemetry=True, limits=True),
    Kind("kafka", "invalid", "killed"),
    Kind("synthetic", "invalid", "killed"),
    *(
        Kind(engine, verdict, shape, telemetry=True, place=place)
        for engine, place in (("kafka", "local_broker"), ("pgbench", "local_database"), ("fio", "device"))
        for verdict, shape in (("pass", "whole"), ("degraded", "cliff"))
    ),
)
