"""Build report.json: a run as one document, whose fields report.schema.json describes.

It is a function of the journal alone, so building it again gives the same bytes. Fields that do not apply are absent.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from cliffwatch.analysis.asked_rate import asked_rate
from cliffwatch.analysis.stalls import Stall, stalls_in
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventType, JournalWindow
from cliffwatch.journal.annotated import annotations_in
from cliffwatch.journal.windows import summarise
from cliffwatch.model.drill import VariantName, variant_of
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.order import RunOrder
from cliffwatch.model.phase import JUDGED_PHASES, LOAD_PHASES
from cliffwatch.model.run_state import RunState, Verdict
from cliffwatch.model.shown_drives import drives_of_parts
from cliffwatch.model.target import shown_targets
from cliffwatch.model.workload import format_workload
from cliffwatch.report.alerts import AlertSpan, alert_spans
from cliffwatch.report.charts.curve import worst_curve
from cliffwatch.report.charts.layers import layers_document
from cliffwatch.report.collect import Collected, marked_in, share_of
from cliffwatch.report.course import course_of
from cliffwatch.report.findings import ReportedFinding, unconfirmed, window_seconds_of
from cliffwatch.report.findings_document import findings_document, limits_document
from cliffwatch.report.judged_by import judged_by
from cliffwatch.report.latency import HOUR_SECONDS, LatencyGroup
from cliffwatch.report.limits.judged import Judged
from cliffwatch.report.parts_document import curve_document, parts_document
from cliffwatch.report.phases import phase_bounds
from cliffwatch.report.quantiles import quantiles_document
from cliffwatch.report.raised import restated
from cliffwatch.report.schema.latency import LatencyOfOperation, Percentiles
from cliffwatch.report.schema.report import (
    FORMAT_VERSION,
    AlertDocument,
    CoverageDocument,
    Direction,
    EventDocument,
    PhaseSpan,
    Rates,
    ReportDevice,
    ReportDocument,
    Reproduction,
    Run,
    StallDocument,
    Throughput,
    Totals,
    WatchingCost,
)
from cliffwatch.report.steady_section import steadiness_of, steady_document
from cliffwatch.report.timestamps import timestamp
from cliffwatch.report.transactions import transactions_document

#: More events than this are counted and not listed; events.jsonl holds them all.
EVENT_LIMIT = 2000


def document_of(
    run: Collected, verdict: Verdict, found: Sequence[ReportedFinding] = (), limits: Sequence[Judged] = ()
) -> ReportDocument:
    """Build the whole report document. Raises nothing for a journal that `collect` could read."""
    zero = run.load.start if run.load else 0.0
    phases = _phases(run)
    latency = _latency(run)
    events, omitted = _events(run, restated(run.events, found, window_seconds_of(run)))
    body: ReportDocument = {
        "format_version": FORMAT_VERSION,
        "run": _run(run),
        "verdict": {"name": verdict.name.value, "reasons": list(verdict.reasons)},
        "headline": verdict.reasons[0] if verdict.reasons else "No reason was recorded.",
        "phases": phases,
        "latency": latency,
        "totals": _totals(run),
        "throughput": _throughput(run),
        "findings": findings_document(found, zero),
        "unconfirmed": [_event(event, run) for event in unconfirmed(run, found)][:EVENT_LIMIT],
        "limits": limits_document(limits, zero),
        "alerts": [_alert(span, run) for span in alert_spans(run.events)][:EVENT_LIMIT],
        "facts": run.facts,
        "journal_faults": [{"file": fault.file, "line": fault.line, "message": fault.message} for fault in run.faults],
        "watching_cost": _watching_cost(run),
        "layers": layers_document(run, latency, primary_latency(list(latency))),
        "events": events,
    }
    if curve := worst_curve(run.windows):
        body["curve"] = curve_document(curve)
    if omitted:
        body["events_omitted"] = omitted
    if parts := parts_document(run.order, run.windows, latency, drives_of_parts(run.facts)):
        body["parts"] = parts
    if quantiles := quantiles_document(run):
        body["quantiles"] = quantiles
    if (transactions := transactions_document(run)) is not None:
        body["transactions"] = transactions
    if (steadiness := steadiness_of(run)) is not None:
        body["steady"] = steady_document(run, steadiness, zero)
    if run.coverage is not None:
        body["coverage"] = _coverage(run)
        judged = [window for window in run.windows if window.phase in JUDGED_PHASES]
        body["verdict"]["judged_by"] = judged_by(run, judged)
    if stalls := stalls_in(run.windows):
        body["stalls"] = [_stall(run, stall) for stall in stalls]
    if (device := _device(run)) is not None:
        body["device"] = device
    if run.order is not None:
        body["reproduction"] = _reproduction(
            run.order, run.workload_yaml, variant_of(annotations_in(run.events).labels)
        )
    if not body["findings"] and (course := course_of(latency)) is not None:
        body["course"] = course
    return body


def _run(run: Collected) -> Run:
    body: Run = {"id": run.run_id}
    if run.order is not None:
        workload = run.order.workload
        body["workload"] = {"name": workload.name, "description": workload.description, "engine": workload.engine}
        body["target"] = shown_targets(run.order.parts.values())
        body["created_by"] = run.order.created_by
        body["created"] = timestamp(run.order.created_at)
        body["window_seconds"] = workload.window
    if run.status is not None and run.status.started_at is not None:
        body["started"] = timestamp(run.status.started_at)
    if run.load is not None:
        body["load_start"] = timestamp(run.load.start)
        body["load_asked_end"] = timestamp(run.load.asked_end)
    # The moment the report was due, not the one at which it was made: a report must not depend on when it is made.
    reporting = run.last_event(EventType.STATE, RunState.REPORTING)
    if reporting is not None:
        body["finished"] = timestamp(reporting.at)
    return body


def _coverage(run: Collected) -> CoverageDocument:
    assert run.coverage is not None, "called for runs with a load"
    coverage = run.coverage
    body: CoverageDocument = {
        "asked_seconds": round(coverage.asked_seconds, 3),
        "measured_seconds": round(coverage.measured_seconds, 3),
        "ratio": round(coverage.ratio, 6),
        "windows": len(run.windows),
        "partial_windows": coverage.partial_windows,
        "partial_seconds": round(coverage.partial_seconds, 3),
        "gaps": [
            {
                "start": timestamp(gap.start),
                "end": timestamp(gap.end),
                "start_seconds": _elapsed(run, gap.start),
                "end_seconds": _elapsed(run, gap.end),
                "seconds": round(gap.seconds, 3),
                "reason": gap.reason,
            }
            for gap in coverage.gaps
        ],
    }
    if run.judged is not None:
        body["judged_ratio"] = round(run.judged.ratio, 6)
    if (marked := marked_in(run)) is not None:
        body["unmarked_ratio"] = round(marked.judged_ratio, 6)
    return body


def _stall(run: Collected, stall: Stall) -> StallDocument:
    body: StallDocument = {
        "start": timestamp(stall.start),
        "start_seconds": _elapsed(run, stall.start),
        "end_seconds": _elapsed(run, stall.end),
        "windows": stall.windows,
    }
    if stall.oldest_seconds is not None:
        body["oldest_outstanding_seconds"] = stall.oldest_seconds
    return body


def _phases(run: Collected) -> list[PhaseSpan]:
    """Phases in order of start: with planned bounds where an event has them, else the bounds of their windows."""
    bounds = phase_bounds(run.events)
    measured: dict[str, list[JournalWindow]] = {}
    for window in run.windows:
        measured.setdefault(window.phase, []).append(window)
    for name, windows in measured.items():
        bounds.setdefault(name, (windows[0].start, windows[-1].end))
    for name, (start, end) in bounds.items():
        # A load that ended early ends its phases.
        if run.load is not None and name in LOAD_PHASES and start < run.load.asked_end < end:
            bounds[name] = (start, run.load.asked_end)
    return [
        {
            "name": name,
            "start": timestamp(start),
            "end": timestamp(end),
            "start_seconds": _elapsed(run, start),
            "end_seconds": _elapsed(run, end),
            "windows": len(measured.get(name, ())),
            "measured_seconds": round(sum(window.seconds for window in measured.get(name, ())), 3),
        }
        for name, (start, end) in sorted(bounds.items(), key=lambda item: item[1][0])
    ]


def _latency(run: Collected) -> dict[str, LatencyOfOperation]:
    """Percentiles by latency name: of the whole load, each phase and each hour, from histograms merged over each."""
    whole = _merge(run.latency, lambda group: "load")
    phases = _merge(run.latency, lambda group: group.phase)
    hours = _merge(run.latency, lambda group: str(group.hour))
    body: dict[str, LatencyOfOperation] = {}
    for name, histogram in sorted(whole.get("load", {}).items()):
        body[name] = {
            "load": _percentiles(histogram),
            "phases": [
                {"phase": phase, **_percentiles(histograms[name])}
                for phase, histograms in phases.items()
                if name in histograms
            ],
            "hours": [
                {"hour": int(hour), "start_seconds": int(hour) * HOUR_SECONDS, **_percentiles(histograms[name])}
                for hour, histograms in sorted(hours.items(), key=lambda item: int(item[0]))
                if name in histograms
            ],
        }
    return body


def _merge(groups: Iterable[LatencyGroup], key: Callable[[LatencyGroup], str]) -> dict[str, dict[str, Histogram]]:
    merged: dict[str, dict[str, Histogram]] = {}
    for group in groups:
        into = merged.setdefault(key(group), {})
        for name, histogram in group.histograms.items():
            into.setdefault(name, Histogram()).merge(histogram)
    return merged


def _percentiles(histogram: Histogram) -> Percentiles:
    """Count, and in seconds p50…p9999 and max, which are absent when nothing was counted."""
    summary = summarise(histogram)
    known = {f"{name}_seconds": value for name, value in summary.items() if name != "count" and value is not None}
    body = cast(Percentiles, {"count": histogram.count, **known})
    if histogram.overflow:
        body["overflow"] = histogram.overflow
    return body


def _totals(run: Collected) -> Totals:
    debts = [
        window.gauges["schedule_debt_seconds"] for window in run.windows if "schedule_debt_seconds" in window.gauges
    ]
    body: Totals = {"counters": _sums(run.windows)}
    if debts:
        body["schedule_debt_max_seconds"] = max(debts)
    return body


def _sums(windows: Iterable[JournalWindow]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for window in windows:
        for name, count in window.counters.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def _throughput(run: Collected) -> Throughput:
    """Rates of the load and of each phase, per second of measured time (without gaps); target and achieved rate."""
    phases: dict[str, list[JournalWindow]] = {}
    for window in run.windows:
        phases.setdefault(window.phase, []).append(window)
    body: Throughput = {"phases": [{"phase": name, **_rates(windows)} for name, windows in phases.items()]}
    if run.windows:
        body["load"] = _rates(run.windows)
    if (rate := asked_rate(run.windows)) is not None:
        body["asked"] = {
            "operations_per_second": round(rate.asked, 4),
            "reached_operations_per_second": round(rate.reached, 4),
            "reached_ratio": round(rate.ratio, 4),
        }
    return body


def _rates(windows: list[JournalWindow]) -> Rates:
    seconds = sum(window.seconds for window in windows)
    sums = _sums(windows)
    body: Rates = {"measured_seconds": round(seconds, 3), "errors": sums.get("errors", 0)}
    if seconds > 0:
        body["operations_per_second"] = round(sums.get("operations", 0) / seconds, 3)
        if "bytes" in sums:
            body["bytes_per_second"] = round(sums["bytes"] / seconds, 3)
    return body


def _device(run: Collected) -> ReportDevice | None:
    """Bytes of the engine and of the device over all windows; the device's include the flush after them."""
    body: ReportDevice = {}
    if (written := _direction(run, "written")) is not None:
        body["written"] = written
    if (read := _direction(run, "read")) is not None:
        body["read"] = read
    return body or None


def _direction(run: Collected, kind: str) -> Direction | None:
    device = run.device_counter(f"device_{kind}_bytes")
    if device is None:
        return None
    engine = run.counter(f"{kind}_bytes")
    body: Direction = {"engine_bytes": engine, "device_bytes": device}
    if engine:
        body["ratio"] = round(device / engine, 6)
    if (share := share_of(run, kind)) is not None:
        body["process_bytes"] = share.charged_bytes
    body["windows"] = sum(f"device_{kind}_bytes" in window.counters for window in run.windows)
    return body


def _events(run: Collected, events: Sequence[Event]) -> tuple[list[EventDocument], int]:
    """Events in order, and the number omitted beyond EVENT_LIMIT. Events of engines are omitted first, since only their
    number is unbounded."""
    reported = [event for event in events if (event.type, event.name) != (EventType.STATE, RunState.FINISHED)]
    ranked = sorted(range(len(reported)), key=lambda index: (reported[index].type is EventType.ENGINE, index))
    listed = [_event(reported[index], run) for index in sorted(ranked[:EVENT_LIMIT])]
    return listed, len(reported) - len(listed)


def _event(event: Event, run: Collected) -> EventDocument:
    body: EventDocument = {
        "at": timestamp(event.happened_at),
        "type": event.type.value,
        "name": event.name,
        "detail": event.detail,
    }
    if run.load is not None:
        body["at_seconds"] = _elapsed(run, event.happened_at)
    return body


def _alert(span: AlertSpan, run: Collected) -> AlertDocument:
    body: AlertDocument = {
        "name": span.name,
        "severity": span.severity,
        "summary": span.summary,
        "description": span.description,
        "start": timestamp(span.start),
        "received": timestamp(span.received),
    }
    if run.load is not None:
        body["start_seconds"] = _elapsed(run, span.start)
    if span.end is not None:
        body["end"] = timestamp(span.end)
        body["seconds"] = round(max(0.0, span.end - span.start), 3)
    return body


def _watching_cost(run: Collected) -> WatchingCost:
    event = run.last_event(EventType.ENGINE, "worker_cost")
    cpu_seconds = event.number("cpu_seconds") if event is not None else None
    resident = event.number("max_resident_bytes") if event is not None else None
    body: WatchingCost = {}
    if cpu_seconds is not None and cpu_seconds >= 0:
        body["cpu_seconds"] = cpu_seconds
    if resident is not None and resident >= 0:
        body["max_resident_bytes"] = round(resident)
    return body


def _reproduction(order: RunOrder, workload_yaml: str, drill: VariantName | None) -> Reproduction:
    """`drill`: variant of the drill that the run is of, if any. The drive of a drill is deleted after it."""
    words = ["cliffwatch run start workload.yaml"]
    words += [f"--target {shlex.quote(str(each))}" for each in order.parts.values()]
    if drill is not None:
        words = ["cliffwatch drill --workload workload.yaml", f"--variant {drill}"]
    return {"workload_yaml": workload_yaml or format_workload(order.workload), "command": " ".join(words)}


def _elapsed(run: Collected, moment: float) -> float:
    """Seconds since the load began; negative before it."""
    return round(moment - (run.load.start if run.load else moment), 3)
