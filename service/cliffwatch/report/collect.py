"""Collect all input of a report from a journal, reading it once.

A journal may be whole, still growing, cut short by a kill at any moment, or damaged. Nothing here raises because of
that: what cannot be read is listed in `faults`, and its fields are None or empty.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from cliffwatch.analysis.asked_rate import asked_rate
from cliffwatch.analysis.coverage import Coverage, Gap, MeasuredInterval, measure_coverage
from cliffwatch.analysis.marks import LeftOut, left_out, mark_of, marks_in
from cliffwatch.analysis.reached_drive import UNCHARGED, Share
from cliffwatch.analysis.run_evidence import LoadEnd, RunEvidence
from cliffwatch.analysis.stalls import Slowest, slowest_in
from cliffwatch.base.errors import Problem
from cliffwatch.base.regular_files import read_regular
from cliffwatch.journal import Event, EventType, JournalFault, JournalReader, JournalWindow, ends_load, files
from cliffwatch.journal.events import TARGET_DISPLACED, is_found_at_end
from cliffwatch.journal.state import RunStatus, status_of
from cliffwatch.model.order import RunOrder
from cliffwatch.model.phase import JUDGED_PHASES
from cliffwatch.model.run_state import RunState, Verdict
from cliffwatch.model.window import BEGUN
from cliffwatch.report.charts.heat import HeatMap
from cliffwatch.report.gaps import recorded_gaps
from cliffwatch.report.latency import LatencyGroup, latency_counts, read_latency
from cliffwatch.telemetry import reader as telemetry
from cliffwatch.telemetry.catalogue import CAUSE_SERIES, LAYER_SERIES
from cliffwatch.telemetry.reader import Telemetry

T = TypeVar("T")

#: Window length assumed where order.json cannot be read; detection and the minimum length of a gap depend on it.
WINDOW_SECONDS_ASSUMED = 10.0


@dataclass(frozen=True, slots=True)
class LoadSpan:
    """The interval of load that the run was requested to measure, in seconds since the epoch.

    `start` is the zero of the report's elapsed time. `asked_end` is earlier than the planned end for a run that was
    stopped, and for a run whose journal records no end of the load.
    """

    start: float
    asked_end: float


@dataclass(frozen=True, slots=True)
class Collected:
    """Content of a journal for the report. `events` end with the event that finished the run.

    `judged` is the coverage of the load after the warm-up; None where no load came after it. `spread` is the heat map
    of the primary latency over the load.
    """

    directory: Path
    order: RunOrder | None
    workload_yaml: str
    facts: dict[str, Any]
    events: list[Event]
    status: RunStatus | None
    windows: list[JournalWindow]
    load: LoadSpan | None
    coverage: Coverage | None
    judged: Coverage | None
    latency: list[LatencyGroup]
    spread: HeatMap | None
    faults: list[JournalFault]
    telemetry: Telemetry | None

    @property
    def run_id(self) -> str:
        return self.order.run_id if self.order else self.directory.name

    def last_event(self, kind: EventType, name: str) -> Event | None:
        return _last_event(self.events, kind, name)

    def load_end(self) -> Event | None:
        """Last event in which a worker, or the service, records the end of the load; None without one."""
        return _last_load_end(self.events)

    def counter(self, name: str) -> int:
        return sum(window.counters.get(name, 0) for window in self.windows)

    def device_counter(self, name: str) -> int | None:
        """Sum of a device counter over all windows and the flush after them; None when no window has it."""
        found = [window.counters[name] for window in self.windows if name in window.counters]
        if not found:
            return None
        flushed = sum(
            round(event.number(name) or 0)
            for event in self.events
            if event.type is EventType.DEVICE and event.name == "flushed"
        )
        return sum(found) + flushed


def collect(directory: Path) -> Collected:
    """Read a journal. Raises FileNotFoundError when there is no such directory."""
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is not a run's directory")
    reader = JournalReader(directory)
    order = order_in(reader)
    facts = _facts(reader)
    events = events_until_finished(reader)
    windows = as_far_as_readable(reader, files.WINDOWS, reader.windows())
    if not windows and _has_latencies(directory / files.LATENCY):
        reader.faults.append(JournalFault(files.WINDOWS, 0, f"holds no window, and {files.LATENCY} holds latencies"))
    status = status_in(events, reader.faults)
    load = load_of(order, events, status, (windows[0].start, windows[-1].end) if windows else None)
    window_seconds = order.workload.window if order else WINDOW_SECONDS_ASSUMED
    coverage = judged = None
    if load is not None:
        intervals = [MeasuredInterval(window.start, window.end, window.seconds) for window in windows]
        gaps = recorded_gaps(events)
        coverage = measure_coverage(intervals, load.start, load.asked_end, window_seconds, gaps)
        begin = warm_up_end(order, events, load)
        first = first_measured(events, gaps, next(iter(intervals), None))
        if first is not None and begin <= load.start == intervals[0].start:
            begin, intervals[0] = first.start, first
        if begin < load.asked_end:
            judged = measure_coverage(intervals, begin, load.asked_end, window_seconds, gaps)
    span = (load.start, load.asked_end - load.start) if load else (0.0, 0.0)
    latency, spread = read_latency(reader, windows, *span)
    return Collected(
        directory=directory,
        order=order,
        workload_yaml=_workload_yaml(directory),
        facts=facts,
        events=events,
        status=status,
        windows=windows,
        load=load,
        coverage=coverage,
        judged=judged,
        latency=latency,
        spread=spread,
        faults=reader.faults,
        telemetry=telemetry.read(directory, (*LAYER_SERIES, *CAUSE_SERIES)),
    )


def evidence_of(run: Collected) -> RunEvidence:
    """Evidence for the verdict from the journal, not from analysis (which adds findings, limits, client bottleneck)."""
    ended = run.load_end()
    deaths = [str(event.detail.get("message", "")) for event in run.events if event.name == "died"]
    recorded, read = latency_counts(run.windows, run.latency)
    return RunEvidence(
        load_end=_load_end(ended),
        message=str(ended.detail.get("message", "")) if ended else "",
        deaths=len(deaths),
        death=deaths[-1] if deaths else "",
        coverage=run.coverage,
        judged=run.judged,
        has_warm_up=run.order is None or run.order.workload.phases.longest_warm_up > 0,
        windows=len(run.windows),
        target_kind=run.order.target.kind if run.order else "",
        drives_elsewhere=run.order is not None and run.order.drives is not None,
        has_drive=_has_drive(run.facts),
        operations=run.counter("operations"),
        errors=run.counter("errors"),
        skipped=run.counter("skipped"),
        due=run.counter("operations") + run.counter("errors") + run.counter("skipped"),
        written_bytes=run.counter("written_bytes"),
        read_bytes=run.counter("read_bytes"),
        device_written_bytes=run.device_counter("device_written_bytes"),
        device_read_bytes=run.device_counter("device_read_bytes"),
        written_share=share_of(run, "written"),
        read_share=share_of(run, "read"),
        drives=len(run.facts["drives"]) if _has_drive(run.facts) else 1,
        recorded_latencies=recorded,
        lost_latencies=recorded - read,
        journal_faults=len(run.faults),
        unfinished_seconds=_unfinished_seconds(run.windows),
        slowest=_slowest(run),
        rate=asked_rate(run.windows),
        marked=marked_in(run),
        displaced=_displaced(run),
    )


def marked_in(run: Collected) -> LeftOut | None:
    """Share of a run's judged time outside its marks; None without a mark in it."""
    if run.load is None:
        return None
    begin = warm_up_end(run.order, run.events, run.load)
    found = left_out(marks_in(run.events), run.load.start, begin, run.load.asked_end)
    return found if found.marks else None


def _displaced(run: Collected) -> tuple[str, float] | None:
    """Message that the run's directory was moved, if during the load, and seconds since the load's start; else None."""
    noted = (event for event in run.events if event.type is EventType.NOTE and event.name == TARGET_DISPLACED)
    first = next(noted, None)
    if first is None or run.load is None:
        return None
    return str(first.detail.get("message", "")), max(0.0, first.at - run.load.start)


def _unfinished_seconds(windows: Sequence[JournalWindow]) -> float | None:
    """Age of the oldest operation at the end of a load that ended in a stall; else None."""
    return windows[-1].oldest_outstanding_seconds if windows and windows[-1].stalled else None


def _slowest(run: Collected) -> Slowest | None:
    """The slowest operation; when it completed in seconds since the load's start."""
    if run.load is None or run.coverage is None:
        return None
    marks = [mark.gap for mark in marks_in(run.events)]
    slowest = slowest_in(run.windows, [*run.coverage.gaps, *marks])
    return None if slowest is None else replace(slowest, at=max(0.0, slowest.at - run.load.start))


def share_of(run: Collected, direction: str) -> Share | None:
    """Bytes `written` or `read`: as the engine counts them, as charged to its process, and as the device counts them.

    Only windows with charged bytes count: an engine's last window seldom has any, because its process is gone when they
    are read. Without drive counters, the device's bytes are 0. None where no window has charged bytes, and on file
    systems whose I/O is not charged to the process.
    """
    volume = run.facts.get("file_system")
    if isinstance(volume, dict) and str(volume.get("type")) in UNCHARGED:
        return None
    charged, device = f"engine_{direction}_bytes", f"device_{direction}_bytes"
    known = [window.counters for window in run.windows if charged in window.counters]
    known = [counters for counters in known if device in counters] or known
    if not known:
        return None
    cancelled = sum(each.get("engine_cancelled_bytes", 0) for each in known) if direction == "written" else 0
    return Share(
        engine_bytes=sum(each.get(f"{direction}_bytes", 0) for each in known),
        charged_bytes=max(0, sum(each[charged] for each in known) - cancelled),
        device_bytes=sum(each.get(device, 0) for each in known),
    )


def recorded_verdict(run: Collected) -> Verdict | None:
    """Verdict from the service on a run without an end of load, such as one that never left the queue; else None."""
    status = run.status
    if status is None or status.verdict is None or run.load_end() is not None:
        return None
    return Verdict(status.verdict, status.reasons)


def _has_drive(facts: dict[str, Any]) -> bool | None:
    """Whether the facts name a drive below the target; None when they have no list of drives."""
    drives = facts.get("drives")
    return len(drives) > 0 if isinstance(drives, list) else None


def order_in(reader: JournalReader) -> RunOrder | None:
    """Read order.json; None, and a fault in `reader.faults`, when it is missing, damaged or invalid."""
    try:
        return RunOrder.model_validate(reader.document(files.ORDER))
    except Problem as problem:
        reader.faults.append(JournalFault(files.ORDER, 1, problem.detail))
    except ValidationError as error:
        reader.faults.append(JournalFault(files.ORDER, 1, f"not an order: {error.error_count()} fields are wrong"))
    return None


def as_far_as_readable(reader: JournalReader, file: str, items: Iterable[T]) -> list[T]:
    """Items of a journal file up to its first read error, which is added to `reader.faults`."""
    found: list[T] = []
    try:
        for item in items:
            found.append(item)
    except OSError as error:
        reader.faults.append(JournalFault(file, 0, f"cannot be read: {error.strerror}"))
    return found


def _has_latencies(path: Path) -> bool:
    """Whether a histogram log has a line besides its comments and its header of column names."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return any(not line.startswith((b"#", b'"')) for line in file)


def _workload_yaml(directory: Path) -> str:
    """Workload document as it can be submitted again; empty when it cannot be read or is not text."""
    try:
        return read_regular(directory / files.WORKLOAD).decode()
    except (OSError, UnicodeDecodeError):
        return ""


def _facts(reader: JournalReader) -> dict[str, Any]:
    try:
        return reader.facts()
    except Problem as problem:
        reader.faults.append(JournalFault(files.FACTS, 1, problem.detail))
        return {}


def events_until_finished(reader: JournalReader) -> list[Event]:
    """Events up to the one that finished the run, without findings added by a report, so that a report made again is
    the same. All marks are included, since a mark applies to the span that it names, whenever it was made."""
    events: list[Event] = []
    is_over = False
    for stored in as_far_as_readable(reader, files.EVENTS, reader.events()):
        if mark_of(stored.event) is not None:
            events.insert(len(events) - is_over, stored.event)
        elif not is_over and not is_found_at_end(stored.event):
            events.append(stored.event)
        is_over |= stored.event.type is EventType.STATE and stored.event.name == RunState.FINISHED
    return events


def status_in(events: Sequence[Event], faults: list[JournalFault]) -> RunStatus | None:
    """Status of a run from its events; events that cannot be applied are skipped and added to `faults`."""
    skipped: list[str] = []
    status = status_of(events, skipped)
    faults += [JournalFault(files.EVENTS, 0, message) for message in skipped]
    return status


def _last_event(events: Sequence[Event], kind: EventType, name: str) -> Event | None:
    return next((event for event in reversed(events) if event.type is kind and event.name == name), None)


def _last_load_end(events: Sequence[Event]) -> Event | None:
    return next((event for event in reversed(events) if ends_load(event)), None)


def _load_end(ended: Event | None) -> LoadEnd | None:
    if ended is None:
        return None
    try:
        return LoadEnd(str(ended.detail.get("how")))
    except ValueError:
        return LoadEnd.FAILED


def load_of(
    order: RunOrder | None, events: Sequence[Event], status: RunStatus | None, measured: tuple[float, float] | None
) -> LoadSpan | None:
    """Interval of load, if any; `measured`: start of the first window and end of the last, None without windows."""
    planned = (status.load_start, status.load_stop) if status else (None, None)
    start, stop = planned
    if start is None or stop is None:
        if measured is None:
            return None
        # The event that began the load is damaged; the windows show that it did begin.
        start = measured[0]
        stop = start + order.workload.phases.load_seconds if order else measured[1]
    ended = _last_load_end(events)
    how = _load_end(ended)
    last_end = measured[1] if measured else start
    if how is LoadEnd.STOPPED and ended is not None:
        asked = [event.at for event in events if event.type is EventType.STATE and event.name == RunState.STOPPING]
        return LoadSpan(start, max(start, min(stop, ended.at, max([last_end, *asked[:1]]))))
    if how is LoadEnd.FAILED and ended is not None:
        return LoadSpan(start, max(start, min(stop, max(last_end, ended.at))))
    if how is None:
        return LoadSpan(start, max(start, min(stop, max(last_end, events[-1].at if events else last_end))))
    return LoadSpan(start, stop)


def warm_up_end(order: RunOrder | None, events: Sequence[Event], load: LoadSpan) -> float:
    """End of the warm-up, within the load: start of the first judged phase (baseline or soak), else the planned end."""
    judged = (event for event in events if event.type is EventType.PHASE and event.name in JUDGED_PHASES)
    found = [start for event in judged if (start := event.moment("start")) is not None]
    planned = load.start + (order.workload.phases.longest_warm_up if order else 0.0)
    return min(max(min(found, default=planned), load.start), load.asked_end)


def first_measured(
    events: Sequence[Event], gaps: Sequence[Gap], first: MeasuredInterval | None
) -> MeasuredInterval | None:
    """First window without the time that its first engine took to begin, which must not count as missing.

    None where no engine reports that it began in this window, or where a recorded gap overlaps the window.
    """
    reported = (event.moment("start") for event in events if event.type is EventType.ENGINE and event.name == BEGUN)
    start = next((start for start in reported if start is not None), None)
    if first is None or start != first.start or any(gap.start < first.end and gap.end > first.start for gap in gaps):
        return None
    return MeasuredInterval(first.end - first.seconds, first.end, first.seconds)
