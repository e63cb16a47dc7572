"""Journals for tests, written by the same code as a worker's."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cliffwatch.base import durable
from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.synthetic import SyntheticLoad, histogram_of
from cliffwatch.journal import Event, EventLog, EventType, WindowLog, files
from cliffwatch.model.order import RunOrder
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import parse_target
from cliffwatch.model.timeline import Timeline
from cliffwatch.model.window import EngineWindow
from cliffwatch.model.workload import format_workload, workload_from

#: 2026-09-21 15:00:00 UTC, on the grid of every window length that divides an hour.
LOAD_START = 1_790_002_800.0

CountersOf = Callable[[int], dict[str, int]]
GaugesOf = Callable[[int], dict[str, float]]
LatencyOf = Callable[[int], dict[str, Histogram]]
QuantilesOf = Callable[[int], dict[str, dict[str, float]]]


@dataclass(frozen=True, slots=True)
class Ending:
    """How the load ended; the run's last state is then `reporting`. `how` None: the worker was killed under load."""

    how: str | None = "completed"
    message: str = ""


@dataclass(frozen=True, slots=True)
class GapEvent:
    """A gap that the worker records: the windows `first` to `last` inclusive were not measured, for this reason."""

    first: int
    last: int
    reason: str


@dataclass(frozen=True, slots=True)
class JournalPlan:
    """Content of a journal. Windows are numbered from the load's start; those in `missing` are not written."""

    windows: int = 30
    window_seconds: float = 10.0
    missing: Collection[int] = ()
    gaps: tuple[GapEvent, ...] = ()
    warm_up_windows: int = 0
    baseline_windows: int = 0
    cool_down: bool = True
    target: str = "synthetic:nothing"
    run_id: str = "run-1"
    description: str = ""
    engine: str = "synthetic"
    load: SyntheticLoad = field(default_factory=SyntheticLoad)
    counters: CountersOf | None = None
    #: Whether windows count bytes, which some engines do not.
    counts_bytes: bool = True
    #: Gauges besides the schedule debt.
    gauges: GaugesOf | None = None
    latency: LatencyOf | None = None
    #: Latencies of which only quantiles are known.
    quantiles: QuantilesOf | None = None
    facts: dict[str, Any] | None = field(default_factory=lambda: {"target": {"kind": "synthetic"}, "drives": []})
    flushed: dict[str, int] | None = None
    #: Further events, merged by time with those of the run itself.
    events: tuple[Event, ...] = ()
    ending: Ending = field(default_factory=Ending)
    limits: tuple[str, ...] = ()
    #: Windows of `warm_up_windows` in which the warm-up may wait for the drive's steady state.
    steady_windows: int = 0


def make_journal(directory: Path, plan: JournalPlan | None = None) -> Path:
    """Write a run's journal into `directory`, which need not exist. Returns the directory."""
    plan = plan or JournalPlan()
    directory.mkdir(parents=True, exist_ok=True)
    order = _order(plan)
    durable.write_json_durably(directory / files.ORDER, order.model_dump(mode="json"))
    durable.write_durably(directory / files.WORKLOAD, format_workload(order.workload))
    if plan.facts is not None:
        durable.write_json_durably(directory / files.FACTS, plan.facts)
    timeline = Timeline.plan(LOAD_START, order.workload.phases, plan.window_seconds)
    _write_windows(directory, plan, timeline)
    log = EventLog(directory)
    for event in sorted([*_events(plan, timeline), *plan.events], key=lambda event: event.at):
        log.append(event)
    return directory


def at_window(plan: JournalPlan, index: int) -> float:
    """When window `index` starts, in seconds since the epoch."""
    return LOAD_START + index * plan.window_seconds


def _order(plan: JournalPlan) -> RunOrder:
    def length(windows: int) -> str:
        return f"{round(windows * plan.window_seconds * 1000)}ms"

    steady = {"maximum": length(plan.steady_windows), "round": length(6)} if plan.steady_windows else None
    phases = {
        "warm_up": length(plan.warm_up_windows - plan.steady_windows),
        "steady": steady,
        "baseline": length(plan.baseline_windows),
        "soak": length(plan.windows - plan.warm_up_windows - plan.baseline_windows),
    }
    workload = workload_from(
        {
            "version": 1,
            "name": "steady-append",
            "description": plan.description,
            "engine": plan.engine,
            "window": length(1),
            "phases": phases,
            "load": plan.load.model_dump(mode="json", exclude_none=True) if plan.engine == "synthetic" else {},
            "limits": list(plan.limits),
        }
    )
    return RunOrder(
        run_id=plan.run_id,
        workload=workload,
        target=parse_target(plan.target),
        created_at=LOAD_START - 8,
        created_by="tests",
    )


def _write_windows(directory: Path, plan: JournalPlan, timeline: Timeline) -> None:
    noise = np.random.default_rng(plan.load.seed)
    operations = round(plan.load.operations_per_second * plan.window_seconds)
    log = WindowLog(directory, LOAD_START)
    for index in range(plan.windows):
        if index in plan.missing:
            continue
        start = at_window(plan, index)
        if plan.latency is not None:
            latency = plan.latency(index)
        else:
            latency = {"publish": histogram_of(plan.load, operations, start - LOAD_START, noise)}
        counters = {"operations": operations, "bytes": operations * plan.load.operation_bytes, "errors": 0}
        if not plan.counts_bytes:
            del counters["bytes"]
        if plan.counters is not None:
            counters |= plan.counters(index)
        gauges = {"schedule_debt_seconds": 0.0} | (plan.gauges(index) if plan.gauges is not None else {})
        quantiles = plan.quantiles(index) if plan.quantiles is not None else {}
        window = EngineWindow(start, at_window(plan, index + 1), counters, gauges, latency, quantiles)
        log.append(window, timeline.phase_at(start))
    log.close()


def _events(plan: JournalPlan, timeline: Timeline) -> list[Event]:
    def state(at: float, name: RunState, detail: dict[str, Any] | None = None) -> Event:
        return Event(at, EventType.STATE, name.value, detail or {})

    start, stop = timeline.load_start, timeline.load_stop
    events = [
        state(start - 8, RunState.QUEUED),
        state(start - 7, RunState.STARTING),
        Event(start - 6, EventType.PHASE, "prepare"),
        state(start - 3, RunState.RUNNING, {"load_start": start, "load_stop": stop}),
    ]
    for name, begin, end in timeline.bounds():
        events.append(Event(begin, EventType.PHASE, name, {"start": begin, "end": end}))
    for gap in plan.gaps:
        begin, end = at_window(plan, gap.first), at_window(plan, gap.last + 1)
        detail = {"start": begin, "end": end, "seconds": end - begin}
        events.append(Event(end, EventType.GAP, gap.reason, detail))
    if plan.ending.how is None:
        return events
    if plan.cool_down:
        events.append(Event(stop, EventType.PHASE, "cool_down", {"start": stop, "end": stop + 2}))
    if plan.flushed is not None:
        events.append(Event(stop + 1, EventType.DEVICE, "flushed", plan.flushed | {"seconds": 1.0}))
    cost = {"cpu_seconds": 1.5, "max_resident_bytes": 80_000_000}
    ending = {"how": plan.ending.how, "message": plan.ending.message}
    events += [
        Event(stop + 2, EventType.ENGINE, "worker_cost", cost),
        Event(stop + 2, EventType.ENGINE, "load_ended", ending),
        state(stop + 2, RunState.REPORTING),
    ]
    return events
