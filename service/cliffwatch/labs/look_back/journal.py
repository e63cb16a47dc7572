"""Make a finished run of a system's past: its journal, as if it had been observed live, and its report."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import repeat
from pathlib import Path

from cliffwatch.base import durable
from cliffwatch.base.version import VERSION
from cliffwatch.coordinator.remote_drives import drive_facts
from cliffwatch.coordinator.reporting import judge_run
from cliffwatch.journal import Event, EventLog, EventType, WindowLog, files
from cliffwatch.journal.conclusion import Conclusion
from cliffwatch.journal.state import change_state
from cliffwatch.labs.look_back.drives import past_intervals
from cliffwatch.labs.look_back.systems import System
from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.order import RunOrder
from cliffwatch.model.phase import Phase
from cliffwatch.model.run_state import RunState
from cliffwatch.model.target import ObservedTarget
from cliffwatch.model.timeline import Timeline
from cliffwatch.model.workload import format_workload
from cliffwatch.observer.bounded import BoundedQueries
from cliffwatch.observer.past import windows_of_the_past
from cliffwatch.observer.system import ObservedSystem
from cliffwatch.part.interval import Interval
from cliffwatch.telemetry.address import PrometheusAddress

_NAME_IN_ID = 42
_UNFINISHED = ".look-back-"
#: Reason of a gap of which Prometheus has no samples.
NOT_SCRAPED = "not_scraped"


def look_back(
    system: System,
    prometheus: BoundedQueries,
    server: PrometheusAddress,
    runs_directory: Path,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Path, Conclusion]:
    """Make the run in `runs_directory`: all of it or nothing. `progress` is called with the number of windows read.

    Raises QueryFailed, and OSError where the run cannot be written.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(system.start))
    run_id = f"{system.name[:_NAME_IN_ID].rstrip('-')}-{stamp}-{secrets.token_hex(2)}"
    runs_directory.mkdir(parents=True, exist_ok=True)
    # The service looks into no directory whose name begins with a dot.
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=runs_directory) as pending:
        directory = Path(pending) / run_id
        directory.mkdir(mode=0o700)
        _write_order(directory, run_id, system)
        log = EventLog(directory)
        timeline = Timeline.plan(system.start, system.workload.phases, system.workload.window)
        for event in _beginning(timeline):
            log.append(event)
        for start, end in _write_windows(directory, system, prometheus, server, progress):
            detail = {"start": start, "end": end, "seconds": end - start}
            log.append(Event(end, EventType.GAP, NOT_SCRAPED, detail))
        stop = timeline.load_stop
        log.append(Event(stop, EventType.ENGINE, "load_ended", {"how": "completed", "message": ""}))
        change_state(log, RunState.REPORTING, stop)

        def record(type_: EventType, name: str, /, **detail: object) -> None:
            log.append(Event(stop, type_, name, detail))

        conclusion = judge_run(directory, record, time.sleep)
        change_state(log, RunState.FINISHED, stop, conclusion.detail())
        durable.sync_directory(directory)
        directory.rename(runs_directory / run_id)
    durable.sync_directory(runs_directory)
    return runs_directory / run_id, conclusion


def _write_order(directory: Path, run_id: str, system: System) -> None:
    order = RunOrder(
        run_id=run_id,
        workload=system.workload,
        target=ObservedTarget(name=system.name),
        created_at=time.time(),
        created_by="look back",
        drives=None if system.hosts is None else PrometheusDrives(selector=system.hosts.selector),
    )
    durable.write_json_durably(directory / files.ORDER, order.to_document())
    durable.write_durably(directory / files.WORKLOAD, format_workload(order.workload))
    facts = {
        "version": 1,
        "target": {"kind": "observed", "key": str(order.target), "path": None},
        "drives": [] if system.hosts is None else [drive_facts(each) for each in system.hosts.drives],
        "versions": {"cliffwatch": VERSION},
        "warnings": [],
    }
    durable.write_json_durably(directory / files.FACTS, facts)


def _beginning(timeline: Timeline) -> list[Event]:
    start = timeline.load_start
    load = {"load_start": start, "load_stop": timeline.load_stop}
    return [
        Event(start, EventType.STATE, RunState.QUEUED.value),
        Event(start, EventType.STATE, RunState.STARTING.value),
        Event(start, EventType.STATE, RunState.RUNNING.value, load),
        *(
            Event(begin, EventType.PHASE, name.value, {"start": begin, "end": end})
            for name, begin, end in timeline.bounds()
        ),
    ]


def _write_windows(
    directory: Path,
    system: System,
    prometheus: BoundedQueries,
    server: PrometheusAddress,
    progress: Callable[[int], None],
) -> list[tuple[float, float]]:
    """Write the windows; returns start and end of each gap between them."""
    gaps: list[tuple[float, float]] = []
    length = system.workload.window
    observed = ObservedSystem(system.load, server)
    # The whole run is renamed into place once it is on the disk.
    log = WindowLog(directory, system.start, is_durable=False)
    try:
        bounds = (system.start, system.stop)
        windows = windows_of_the_past(observed, prometheus, system.scraped, bounds, length, system.chunk)
        drives: Iterable[Interval] = repeat(Interval())
        if system.hosts is not None:
            drives = past_intervals(system.hosts, prometheus, bounds, length)
        for number, (window, interval) in enumerate(zip(windows, drives, strict=False), 1):
            end = system.start + number * length
            if window is not None:
                interval.add_to(window)
                log.append(window, Phase.SOAK.value)
            elif gaps and gaps[-1][1] == end - length:
                gaps[-1] = (gaps[-1][0], end)
            else:
                gaps.append((end - length, end))
            if number % system.chunk == 0:
                progress(number)
    finally:
        log.close()
        observed.close()
    return gaps
