"""Data of the report's charts: one column per measure, one row per window, compact enough for a 36 h run.

A gap between windows is a row of None, so that no line is drawn across time that was not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cliffwatch.analysis.coverage import GAP_TOLERANCE
from cliffwatch.analysis.finding import Finding, Role
from cliffwatch.analysis.journal_series import ENDED_NOTE, UPDATED_NOTE
from cliffwatch.analysis.marks import marks_in
from cliffwatch.analysis.stalls import stalls_in
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import four_digits
from cliffwatch.journal import Event, EventType, JournalWindow
from cliffwatch.journal.event_text import event_text, gap_words
from cliffwatch.model.operation import primary_latency
from cliffwatch.model.run_state import RunState
from cliffwatch.report.alerts import alert_spans
from cliffwatch.report.charts.evidence import evidence_columns
from cliffwatch.report.charts.heat import HeatMap
from cliffwatch.report.charts.layers import LAYERS, Layers
from cliffwatch.report.charts.levels import levels_of
from cliffwatch.report.charts.percentile_curve import curves_of
from cliffwatch.report.collect import Collected
from cliffwatch.report.findings import ReportedFinding
from cliffwatch.report.schema.report import ReportDocument

#: The latency measures that are charted, by their keys in a window.
CHARTED = ("p50", "p99", "p999", "max")
#: Maximum number of marks: more would hide the chart; the list of events below it has the rest.
MARK_LIMIT = 500
#: Maximum number of characters of a mark; the table of events has the whole text.
TEXT_LIMIT = 160
#: Engine events of an ordinary run get no mark; of state changes, only _MARKED_STATES do.
_ORDINARY = frozenset({"started", "exited", "worker_cost", "load_ended"})
_MARKED_STATES = frozenset({RunState.STOPPING.value, RunState.INTERRUPTED.value})
_MARKED_TYPES = frozenset({EventType.CLOCK, EventType.JOURNAL, EventType.NOTE})

Column = list[float | int | None]


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """Chart columns of one length: `elapsed` holds the middle of each window in seconds since the load began.

    `latency` maps a latency name to its charted measures in microseconds; `rates` maps a counter to its increments per
    measured second. `marks` are (elapsed seconds, type, text). `layers` maps what was measured below the client to
    microseconds, or for `queue_depth` to requests. `evidence` maps `device_write_latency` to microseconds,
    `write_amplification` and `clean_blocks` to ratios. `findings` are the chart marks of each finding, and
    `heat` is the heat map of the drives' latency.
    """

    elapsed: list[float | int]
    latency: dict[str, dict[str, Column]]
    rates: dict[str, Column]
    marks: list[tuple[float, str, str]]
    layers: dict[str, Column]
    #: Start, end (elapsed seconds) and text of each marked span.
    disturbed: list[tuple[float, float, str]] = field(default_factory=list)
    #: (start, end) in elapsed seconds, and the age of the oldest operation in seconds where it is known.
    stalls: list[tuple[float, float, float | None]] = field(default_factory=list)
    #: Age of the oldest operation at the end of each stalled window, in microseconds; None for other windows.
    outstanding: Column = field(default_factory=list)
    evidence: dict[str, Column] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    heat: HeatMap | None = None
    #: Heat map of the primary latency.
    spread: HeatMap | None = None
    #: Latency name → phase → its merged histogram.
    curves: dict[str, dict[str, Histogram]] = field(default_factory=dict)


def series_of(run: Collected, found: Sequence[ReportedFinding] = ()) -> ChartSeries:
    """Chart columns of all windows of a run, rounded to four significant digits."""
    zero = run.load.start if run.load else 0.0
    rows: list[JournalWindow | None] = []
    elapsed: list[float | int] = []
    end: float | None = None
    for window in run.windows:
        if end is not None and window.start - end > (window.end - window.start) * GAP_TOLERANCE:
            rows.append(None)
            elapsed.append(_plain(round((end + window.start) / 2 - zero, 3)))
        rows.append(window)
        elapsed.append(_plain(round((window.start + window.end) / 2 - zero, 3)))
        end = window.end
    names = dict.fromkeys(name for window in run.windows for name in window.latency)
    latency = {name: {measure: _latencies(rows, name, measure) for measure in CHARTED} for name in names}
    return ChartSeries(
        elapsed=elapsed,
        latency={name: columns for name, columns in latency.items() if any(map(any, columns.values()))},
        rates=_rates(rows),
        marks=_marks(run, zero),
        disturbed=[
            (round(mark.start - zero, 3), round(mark.end - zero, 3), mark.text[:TEXT_LIMIT])
            for mark in marks_in(run.events)[:MARK_LIMIT]
        ],
        layers=_layers(run, rows, primary_latency(sorted(names))),
        stalls=[
            (round(stall.start - zero, 3), round(stall.end - zero, 3), stall.oldest_seconds)
            for stall in stalls_in(run.windows)
        ],
        outstanding=[
            None if row is None or not row.stalled else _microseconds(row.oldest_outstanding_seconds) for row in rows
        ],
        evidence={
            name: [_or_none(value * (1e6 if name == "device_write_latency" else 1)) for value in column]
            for name, column in evidence_columns(rows, run.telemetry).items()
        },
        findings=[_drawn(each, zero) for each in found],
        heat=_heat(run, primary_latency(sorted(names))),
        spread=run.spread,
        curves=curves_of(run.latency),
    )


def _or_none(value: float) -> float | int | None:
    return None if np.isnan(value) else _short(value)


def _drawn(found: ReportedFinding, zero: float) -> dict[str, Any]:
    """Chart marks of a finding: the onset as a line with text, the baseline as a band on the latency's chart."""
    finding, series = found.finding, found.series
    body: dict[str, Any] = {
        "at": round(finding.onset - zero, 3),
        "kind": finding.kind.value,
        "text": found.sentence,
        "degrades": found.degrades,
    }
    if finding.until is not None:
        body["until"] = round(finding.until - zero, 3)
    if series.role is Role.LATENCY:
        body |= {"latency": series.operation, "baseline": _short(finding.baseline * 1e6)}
        body |= _band("baseline_band", finding)
    elif series.role is Role.DEVICE_LATENCY:
        body["device_baseline"] = _short(finding.baseline * 1e6)
        body |= _band("device_baseline_band", finding)
    return body


def _band(name: str, finding: Finding) -> dict[str, Any]:
    """Band in which nine of ten of the baseline's windows lay, in microseconds, as field `name`; empty if unknown."""
    if finding.size is None:
        return {}
    baseline = finding.size.baseline
    return {name: [_short(bound * 1e6) for bound in (baseline.low, baseline.high)]}


def _latencies(rows: list[JournalWindow | None], name: str, measure: str) -> Column:
    return [None if row is None else _microseconds(row.latency.get(name, {}).get(measure)) for row in rows]


def _microseconds(seconds: float | None) -> float | int | None:
    return None if seconds is None else _short(seconds * 1e6)


def _rates(rows: list[JournalWindow | None]) -> dict[str, Column]:
    """Rates per measured second. Device writes and reads are added up in one column, as in the engine's `bytes`."""
    sources = {
        "bytes": ("bytes",),
        "operations": ("operations",),
        "device_bytes": ("device_written_bytes", "device_read_bytes"),
        "errors": ("errors",),
    }
    rates = {name: [_rate(row, counters) for row in rows] for name, counters in sources.items()}
    if not any(rates["errors"]):
        del rates["errors"]
    return {name: column for name, column in rates.items() if any(entry is not None for entry in column)}


def _rate(row: JournalWindow | None, counters: tuple[str, ...]) -> float | int | None:
    if row is None or row.seconds <= 0:
        return None
    found = [row.counters[name] for name in counters if name in row.counters]
    return _short(sum(found) / row.seconds) if found else None


def _layers(run: Collected, rows: list[JournalWindow | None], primary: str | None) -> dict[str, Column]:
    layers = Layers.of(run, primary)
    if layers is None:
        return {}
    starts, ends = (
        np.array([np.nan if row is None else getattr(row, bound) for row in rows], dtype=np.float64)
        for bound in ("start", "end")
    )
    return {
        name: [None if np.isnan(value) else _short(value * (1e6 if LAYERS[name] else 1)) for value in column]
        for name, column in layers.of_windows(starts, ends).items()
    }


def _heat(run: Collected, primary: str | None) -> HeatMap | None:
    layers = Layers.of(run, primary)
    if layers is None or run.load is None:
        return None
    return layers.heat(run.load.start, run.load.asked_end - run.load.start)


def _marks(run: Collected, zero: float) -> list[tuple[float, str, str]]:
    if run.load is None:
        return []
    marks = [(event.at, event.type.value, _text(event)) for event in run.events if _is_marked(event)]
    marks += [(mark.start, "mark", f"marked: {mark.text}"[:TEXT_LIMIT]) for mark in marks_in(run.events)]
    # Alerts are marked at the time at which they started to fire, not at which they were received.
    marks += [
        (span.start, EventType.ALERT.value, f"alert: {span.name} {span.summary}") for span in alert_spans(run.events)
    ]
    inside = sorted(mark for mark in marks if zero <= mark[0] <= run.load.asked_end)
    return [(round(at - zero, 3), kind, text) for at, kind, text in inside[:MARK_LIMIT]]


def _is_marked(event: Event) -> bool:
    if event.type is EventType.STATE:
        return event.name in _MARKED_STATES
    # A finding is drawn at its onset, as the whole run shows it.
    if event.name in (UPDATED_NOTE, ENDED_NOTE):
        return False
    return event.type in _MARKED_TYPES or (event.type is EventType.ENGINE and event.name not in _ORDINARY)


def _text(event: Event) -> str:
    words = event_text(event.type.value, event.name, event.detail)
    return f"{event.type.value}: {words if len(words) <= TEXT_LIMIT else words[: TEXT_LIMIT - 1] + '…'}"


def _short(number: float) -> float | int:
    """Round to four significant digits, to an int where whole: `12.0` takes two bytes more than `12`."""
    return _plain(four_digits(number))


def _plain(number: float) -> float | int:
    return int(number) if number == int(number) else number


def as_data(series: ChartSeries, document: ReportDocument) -> dict[str, Any]:
    """Chart data for the page's script: the series, with levels, phases and gaps from the document."""
    coverage = document.get("coverage", {})
    return {
        "elapsed": series.elapsed,
        "latency": series.latency,
        "rates": series.rates,
        "marks": series.marks,
        "disturbed": series.disturbed,
        "stalls": series.stalls,
        "outstanding": series.outstanding if any(series.outstanding) else [],
        "layers": series.layers,
        "evidence": series.evidence,
        "findings": series.findings,
        "levels": [
            {"latency": level.latency, "at": _short(level.seconds * 1e6), "kind": level.kind, "words": level.words}
            for level in levels_of(document)
        ],
        "end": coverage.get("asked_seconds", 0),
        "phases": [[phase["name"], phase["start_seconds"], phase["end_seconds"]] for phase in document["phases"]],
        "gaps": [
            [gap["start_seconds"], gap["end_seconds"], gap_words(gap["reason"])] for gap in coverage.get("gaps", ())
        ],
    }
