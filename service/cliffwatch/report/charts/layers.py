"""Charts of the layers below the client, on the client's time axis: drive latency, queue time and queue depth.

Computed from the series collected from Prometheus: percentiles from eBPF histograms, or, where only the kernel's
totals exist, a mean, which is labelled as a mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from cliffwatch.base.units import six_digits
from cliffwatch.journal import EventType
from cliffwatch.report.charts.heat import HeatMap, heat_map
from cliffwatch.report.collect import Collected
from cliffwatch.report.latency import HOUR_SECONDS
from cliffwatch.report.schema.findings import LayerRow
from cliffwatch.report.schema.findings import Layers as LayersDocument
from cliffwatch.report.schema.latency import LatencyOfOperation, Percentiles
from cliffwatch.telemetry.catalogue import DEVICE_LATENCY, DISK_COUNT, DISK_TIME, QUEUE_TIME, WEIGHTED_TIME
from cliffwatch.telemetry.collection import MISSING
from cliffwatch.telemetry.increases import quantile, sum_of_increases
from cliffwatch.telemetry.reader import Floats, Samples, Telemetry

#: Samples that enclose a window may be farther apart than its length by this much, or by two steps if that is more.
SLACK_SECONDS = 15.0
#: The columns that can be charted: their names, and whether they are latencies in seconds.
LAYERS = {"device_p99": True, "queue_p99": True, "device_mean": True, "queue_depth": False}
_UNNAMED = "No drive was watched: --drives names those of the brokers' hosts for the next run (docs/remote-drives.md)."


@dataclass(frozen=True, slots=True)
class Layers:
    """Telemetry of the layers below the client, for reads or for writes (`operation`), on the target's `drives`."""

    telemetry: Telemetry
    operation: Literal["read", "write"]
    drives: tuple[str, ...]

    @classmethod
    def of(cls, run: Collected, primary: str | None) -> "Layers | None":
        """Layers of a run, for reads if its `primary` latency is of reads, else writes; None without drives' series."""
        if run.telemetry is None:
            return None
        operation: Literal["read", "write"] = "read" if primary is not None and primary.startswith("read") else "write"
        layers = cls(run.telemetry, operation, ())
        names = (DEVICE_LATENCY, WEIGHTED_TIME, DISK_COUNT[operation])
        found = [samples for name in names for samples in layers._samples(name)]
        drives = tuple(sorted({samples.labels.get("device", "") for samples in found}))
        return cls(run.telemetry, operation, drives) if drives else None

    def columns(self, starts: Floats, ends: Floats, longest_seconds: float) -> dict[str, Floats]:
        """Columns by their names in `LAYERS`, with a value per span: seconds, or queued requests; NaN if unknown."""
        span = (starts, ends, longest_seconds)
        columns = {
            "device_p99": quantile(self._samples(DEVICE_LATENCY), 0.99, *span),
            "queue_p99": quantile(self._samples(QUEUE_TIME), 0.99, *span),
        }
        with np.errstate(divide="ignore", invalid="ignore"):
            time, _ = sum_of_increases(self._samples(DISK_TIME[self.operation]), *span)
            count, _ = sum_of_increases(self._samples(DISK_COUNT[self.operation]), *span)
            if np.isnan(columns["device_p99"]).all():
                columns["device_mean"] = np.where(count > 0, time / count, np.nan)
            waited, seconds = sum_of_increases(self._samples(WEIGHTED_TIME), *span)
            columns["queue_depth"] = waited / seconds
        return {name: column for name, column in columns.items() if not np.isnan(column).all()}

    def of_windows(self, starts: Floats, ends: Floats) -> dict[str, Floats]:
        """Columns of drive and queue, a value per window; a window that was not measured has NaN as start and end."""
        known = ~np.isnan(starts)
        if not known.any():
            return {}
        longest = float(np.max(ends[known] - starts[known])) + max(SLACK_SECONDS, 2 * self.telemetry.step_seconds)
        found = self.columns(starts[known], ends[known], longest)
        columns = {}
        for name, values in found.items():
            columns[name] = np.full(len(starts), np.nan)
            columns[name][known] = values
        return columns

    def heat(self, zero: float, seconds: float) -> HeatMap | None:
        """Heat map of the operation's device latency over a load of `seconds` that began at `zero`."""
        return heat_map(self._samples(DEVICE_LATENCY), zero, seconds)

    def _samples(self, name: str) -> list[Samples]:
        """Samples of a series for this operation, or with no operation label; buckets without a bound are left out."""
        found = self.telemetry.of(name)
        if name.endswith("_bucket"):
            found = tuple(samples for samples in found if _has_bound(samples))
        return [samples for samples in found if samples.labels.get("operation", self.operation) == self.operation]


def _has_bound(samples: Samples) -> bool:
    """Whether the label `le`, the bound of a bucket, is a number: telemetry may come from an untrusted bundle."""
    try:
        return not np.isnan(float(samples.labels.get("le", "nan")))
    except ValueError:
        return False


def layers_document(run: Collected, latency: Mapping[str, LatencyOfOperation], primary: str | None) -> LayersDocument:
    """The report's `layers`: rows for the load, its phases and its hours, or `missing`, the reason why there are none.

    `latency` is the report's field of that name; its latency `primary` is compared with the layers.
    """
    layers = Layers.of(run, primary)
    body: LayersDocument = {}
    if run.telemetry is not None:
        zero = run.load.start if run.load else run.telemetry.start
        body["gaps"] = [
            {"start_seconds": round(gap.start - zero, 3), "end_seconds": round(gap.end - zero, 3), "reason": gap.reason}
            for gap in run.telemetry.gaps
        ]
        body["faults"] = list(run.telemetry.faults)
    if layers is None or run.load is None:
        body["missing"] = _why_missing(run)
        return body
    body["operation"], body["drives"] = layers.operation, list(layers.drives)
    body["rows"] = _rows(run, layers, latency.get(primary or ""))
    return body


def _why_missing(run: Collected) -> str:
    if run.load is None:
        return "The load did not start."
    if run.facts.get("drives") == []:
        is_broker = run.order is not None and run.order.target.kind == "broker"
        return _UNNAMED if is_broker else "No drive is below the target."
    if run.telemetry is not None and run.telemetry.gaps:
        return f"No telemetry of Prometheus was collected: {run.telemetry.gaps[0].reason}."
    reported = run.last_event(EventType.NOTE, MISSING)
    if reported is not None:
        return f"No telemetry of Prometheus was collected: {reported.detail.get('reason')}."
    if run.telemetry is not None:
        return "Prometheus had no series of the run's drives: no exporter watched them."
    return "Nothing was collected from Prometheus."


def _rows(run: Collected, layers: Layers, client: LatencyOfOperation | None) -> list[LayerRow]:
    """Rows of the layers: load, phases and hours. Each spans its windows, clipped to the time with samples."""
    spans: list[tuple[dict[str, Any], Percentiles | None, float, float]] = []

    def add(key: dict[str, Any], latency: Percentiles | None, wanted: list[tuple[float, float]]) -> None:
        if wanted:
            spans.append((key, latency, wanted[0][0], wanted[-1][1]))

    zero = run.load.start if run.load else 0.0
    bounds = [(window.start, window.end, window.phase) for window in run.windows]
    add({"span": "load"}, None if client is None else client["load"], [(start, end) for start, end, _ in bounds])
    of_phase = {} if client is None else {row["phase"]: row for row in client["phases"]}
    for phase in dict.fromkeys(phase for _, _, phase in bounds):
        within = [(start, end) for start, end, other in bounds if other == phase]
        add({"span": "phase", "phase": phase}, of_phase.get(phase), within)
    of_hour = {} if client is None else {row["hour"]: row for row in client["hours"]}
    hours: dict[int, list[tuple[float, float]]] = {}
    for start, end, _ in bounds:
        hours.setdefault(max(0, int((start - zero + 1e-6) // HOUR_SECONDS)), []).append((start, end))
    for hour, within in hours.items() if len(hours) > 1 else ():
        add({"span": "hour", "hour": hour}, of_hour.get(hour), within)
    starts, ends = (np.array([span[place] for span in spans], dtype=np.float64) for place in (2, 3))
    columns = layers.columns(*_within(layers.telemetry, starts, ends), np.inf) if spans else {}
    rows = []
    for index, (key, latency, _, _) in enumerate(spans):
        row = dict(key)
        if latency is not None and "p99_seconds" in latency:
            row["client_p99_seconds"] = latency["p99_seconds"]
        for name, column in columns.items():
            if not np.isnan(column[index]):
                row[f"{name}_seconds" if LAYERS[name] else name] = six_digits(column[index])
        rows.append(cast(LayerRow, row))
    return rows


def _within(telemetry: Telemetry, starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Starts and ends of spans, clipped to the time in which all series have samples."""
    found = [samples.times for series in telemetry.series.values() for samples in series if len(samples.times) > 1]
    if not found:
        return ends, starts
    first, last = max(times[0] for times in found), min(times[-1] for times in found)
    return np.maximum(starts, first), np.minimum(ends, last)
