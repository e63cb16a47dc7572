"""What a run measured before and after an onset: windows, events and telemetry as `Measures` and layer times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from cliffwatch.detect.causes.measures import UNKNOWN_CHANGE, Change, Happening, Measures
from cliffwatch.detect.causes.weigh import DEVICE_ROSE
from cliffwatch.detect.finding import Finding, Kind
from cliffwatch.detect.layers import LayerTimes
from cliffwatch.histogram import Histogram
from cliffwatch.journal import Event, EventType, JournalReader, JournalWindow
from cliffwatch.report.collect import Collected
from cliffwatch.telemetry.increases import sum_of_increases
from cliffwatch.telemetry.reader import Samples
from cliffwatch.telemetry.series import (
    AVAILABLE_BYTES,
    DEVICE_LATENCY,
    FREE_BLOCKS,
    HOST_WRITTEN,
    MEDIA_WRITTEN,
    QUEUE_TIME,
    TEMPERATURE,
)

#: Windows on each side of an onset that are compared, and those next to it that are left out, since it lies in them.
SPAN_WINDOWS, GUARD_WINDOWS = 30, 1
#: How long before the client a drive may have slowed down and still be what the client felt.
_LEAD_WINDOWS = 60
#: The page cache took no more than this share of what was written: requests can be held against operations.
_UNABSORBED = 0.1
#: Counters of engines that delete what is older than their retention.
_DELETIONS = ("deleted_segments", "segments_deleted", "deleted_files", "files_deleted")

Windows = Sequence[JournalWindow]


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive below the target, as the kernel and its maker name it; `serial` is empty where there is none."""

    name: str
    major_minor: str
    serial: str


@dataclass(frozen=True, slots=True)
class Spans:
    """The windows that are compared. Either may be empty."""

    before: Windows
    after: Windows


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything about one finding that its cause and its layer are told from; `drive` is the one that slowed down."""

    measures: Measures
    layers_before: LayerTimes
    layers_after: LayerTimes
    drive: Drive | None


def drives_of(run: Collected) -> list[Drive]:
    """The drives that the facts name."""
    found = run.facts.get("drives")
    drives = []
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            identity = each.get("serial") or each.get("wwn") or each.get("backing_file") or ""
            drives.append(Drive(each["name"], str(each.get("major_minor", "")), str(identity)))
    return drives


def spans_around(windows: Windows, finding: Finding) -> Spans:
    """Shortly before and after the onset; for a drift, before it began and at its end."""
    until = float("inf") if finding.until is None else finding.until
    loaded = [window for window in windows if window.phase != "warm_up"]
    before = [window for window in loaded if window.end <= finding.onset + 1e-6]
    after = [window for window in windows if window.start >= finding.onset - 1e-6 and window.end <= until + 1e-6]
    if finding.kind is Kind.DRIFT:
        return Spans(before[:SPAN_WINDOWS], after[-SPAN_WINDOWS:])
    guarded = before[-SPAN_WINDOWS - GUARD_WINDOWS : -GUARD_WINDOWS] if len(before) > GUARD_WINDOWS else before
    rest = after[GUARD_WINDOWS : SPAN_WINDOWS + GUARD_WINDOWS] if len(after) > GUARD_WINDOWS else after
    return Spans(guarded, rest)


def compare_around(run: Collected, finding: Finding, operation: str | None) -> Comparison:
    """Measures before and after the onset of a finding about the latency `operation`."""
    spans = spans_around(run.windows, finding)
    drive = _slowed_drive(spans, drives_of(run))
    source = _Source(run, spans, drive)
    latencies = [_latencies(run, windows) for windows in (spans.before, spans.after)]
    of_operation = [each.get(operation or "") for each in latencies]
    of_service = [each.get(f"{operation}_service") for each in latencies]
    reads = operation is not None and operation.startswith("read")
    layers = [
        _layer_times(source, index, of_operation[index], of_service[index], "read" if reads else "write")
        for index in (0, 1)
    ]
    measures = _measures(source, run, finding, layers)
    write_latency = measures.device_write_latency_seconds
    return Comparison(measures, layers[0], layers[1], drive if write_latency.rose(DEVICE_ROSE) else None)


class _Source:
    """Quantities over both spans, from windows first and from telemetry where windows do not have them."""

    def __init__(self, run: Collected, spans: Spans, drive: Drive | None) -> None:
        self.spans = spans
        self.drive = drive
        self._telemetry = run.telemetry

    def change(self, of_windows: Callable[[Windows], float | None]) -> Change:
        return Change(*(of_windows(windows) if windows else None for windows in (self.spans.before, self.spans.after)))

    def rate(self, *names: str, zero_with: str = "") -> Change:
        """Of the first counter that is there, per second; 0 where only `zero_with` is."""
        return self.change(lambda windows: _rate(windows, names, zero_with))

    def mean(self, name: str) -> Change:
        """Of a gauge."""
        return self.change(lambda windows: _mean([w.gauges[name] for w in windows if name in w.gauges]))

    def highest(self, name: str) -> Change:
        return self.change(lambda windows: max((w.gauges[name] for w in windows if name in w.gauges), default=None))

    def samples(self, name: str, **labels: str) -> list[Samples]:
        """Of the drive that slowed down, or of all; of the labels given."""
        found = self._telemetry.of(name) if self._telemetry is not None else ()
        if self.drive is not None:
            labels |= {"device": self.drive.name}
        return [
            samples
            for samples in found
            if all(samples.labels.get(key, wanted) == wanted for key, wanted in labels.items())
        ]

    def level(self, name: str) -> Change:
        """The mean of what a gauge of telemetry was over each span; the lowest of several drives."""
        found = self.samples(name)

        def of_windows(windows: Windows) -> float | None:
            start, end = windows[0].start, windows[-1].end
            means = [
                _mean(list(samples.values[(samples.times >= start - 1e-6) & (samples.times <= end + 1e-6)]))
                for samples in found
            ]
            return min((mean for mean in means if mean is not None), default=None)

        return self.change(of_windows)

    def increase(self, windows: Windows, samples: list[Samples]) -> float | None:
        """What counters of telemetry counted over a span, cut to the time of which there are samples."""
        found = [each for each in samples if len(each.times) > 1]
        if not found or self._telemetry is None:
            return None
        first = max(each.times[0] for each in found)
        last = min(each.times[-1] for each in found)
        start, end = max(windows[0].start, first), min(windows[-1].end, last)
        if end <= start:
            return None
        total, _ = sum_of_increases(found, np.array([start]), np.array([end]), np.inf)
        return None if np.isnan(total[0]) else float(total[0])


def _measures(source: _Source, run: Collected, finding: Finding, layers: list[LayerTimes]) -> Measures:
    limit = source.mean("host_dirty_limit_bytes").after
    return Measures(
        operations_per_second=source.rate("operations"),
        engine_written_bytes_per_second=source.rate("written_bytes"),
        engine_read_bytes_per_second=source.rate("read_bytes"),
        latency_seconds=Change(layers[0].client_seconds, layers[1].client_seconds),
        service_latency_seconds=Change(layers[0].service_seconds, layers[1].service_seconds),
        schedule_debt_seconds=source.highest("schedule_debt_seconds"),
        engine_cpu_ratio=_thousandth(source.rate("engine_cpu_milliseconds")),
        engine_cpu_throttled_ratio=_thousandth(source.rate("engine_throttled_milliseconds")),
        engine_cpu_waiting_ratio=_thousandth(source.rate("engine_waiting_milliseconds")),
        cpu_steal_ratio=source.mean("host_cpu_steal_ratio"),
        dirty_bytes=source.mean("host_dirty_bytes"),
        writeback_bytes=source.mean("host_writeback_bytes"),
        dirty_limit_bytes=limit if limit else None,
        device_write_latency_seconds=_device_latency(source, "write"),
        device_read_latency_seconds=_device_latency(source, "read"),
        device_operations_per_second=source.change(_device_requests),
        device_written_bytes_per_second=source.rate("device_written_bytes"),
        device_read_bytes_per_second=source.rate("device_read_bytes"),
        other_bytes_per_second=source.change(_other_bytes),
        other_operations_per_second=_other_operations(source.spans),
        queue_depth=source.mean("device_queue_depth"),
        write_amplification=source.change(lambda windows: _amplification(source, windows)),
        free_blocks_ratio=source.level(FREE_BLOCKS),
        temperature_celsius=source.level(TEMPERATURE),
        device_lead_seconds=_lead(run.windows, finding, _device_latency(source, "write")),
        deletions_per_second=source.rate(*_DELETIONS),
        discarded_bytes_per_second=source.rate("device_discarded_bytes", zero_with="device_written_bytes"),
        stored_growth_bytes_per_second=source.change(lambda windows: _growth(source, windows)),
        happenings=_happenings(run.events, finding.onset),
    )


def _rate(windows: Windows, names: tuple[str, ...], zero_with: str = "") -> float | None:
    seconds = sum(window.seconds for window in windows)
    if seconds <= 0:
        return None
    for name in names:
        found = [window.counters[name] for window in windows if name in window.counters]
        if found:
            return sum(found) / seconds
    return 0.0 if any(zero_with in window.counters for window in windows) else None


def _mean(values: Sequence[float]) -> float | None:
    return float(sum(values) / len(values)) if values else None


def _thousandth(change: Change) -> Change:
    """Milliseconds a second as a ratio."""
    return Change(*(None if value is None else value / 1000 for value in (change.before, change.after)))


def _quotient(windows: Windows, over: str, under: str) -> float | None:
    above = [window.counters.get(over, 0) for window in windows if under in window.counters]
    below = [window.counters[under] for window in windows if under in window.counters]
    return sum(above) / sum(below) if sum(below) > 0 else None


def _device_latency(source: _Source, operation: str) -> Change:
    """Mean seconds of a request, of the drive that slowed down where windows tell drives apart."""
    prefixes = [f"{source.drive.major_minor}."] if source.drive is not None else []

    def of_windows(windows: Windows) -> float | None:
        for prefix in [*prefixes, "device_"]:
            found = _quotient(windows, f"{prefix}{operation}_milliseconds", f"{prefix}{operation}_operations")
            if found is not None:
                return found / 1000
        return None

    return source.change(of_windows)


def _slowed_drive(spans: Spans, drives: list[Drive]) -> Drive | None:
    """The drive whose writes slowed down most; the only one where there is one."""
    if len(drives) == 1:
        return drives[0]

    def ratio(drive: Drive) -> float:
        names = (f"{drive.major_minor}.write_milliseconds", f"{drive.major_minor}.write_operations")
        before, after = (_quotient(windows, *names) for windows in (spans.before, spans.after))
        return after / before if before and after else 0.0

    worst = max(drives, key=ratio, default=None)
    return worst if worst is not None and ratio(worst) > DEVICE_ROSE else None


def _device_requests(windows: Windows) -> float | None:
    writes, reads = (_rate(windows, (f"device_{kind}_operations",)) for kind in ("write", "read"))
    return None if writes is None else writes + (reads or 0.0)


def _own_bytes(windows: Windows, kind: str) -> float:
    """What the engine says that it moved, or what the kernel charges to its process where that is more."""
    return max(_rate(windows, (name,)) or 0.0 for name in (f"{kind}_bytes", f"engine_{kind}_bytes"))


def _other_bytes(windows: Windows) -> float | None:
    """What the drives moved beyond what the run asked for, a second."""
    total = 0.0
    for kind in ("written", "read"):
        device = _rate(windows, (f"device_{kind}_bytes",))
        if device is None:
            return None
        total += max(0.0, device - _own_bytes(windows, kind))
    return total


def _other_operations(spans: Spans) -> Change:
    """Requests that the run's own operations do not account for, at as many for each as there were before.

    Not told where the page cache took part of what was written: requests and operations then have little in common.
    """
    if not spans.before or not spans.after:
        return UNKNOWN_CHANGE
    requests = [_device_requests(windows) for windows in (spans.before, spans.after)]
    operations = [_rate(windows, ("operations",)) for windows in (spans.before, spans.after)]
    own, device = _own_bytes(spans.before, "written"), _rate(spans.before, ("device_written_bytes",))
    if requests[0] is None or requests[1] is None or not operations[0] or operations[1] is None or device is None:
        return UNKNOWN_CHANGE
    if own > 0 and device < own * (1 - _UNABSORBED):
        return UNKNOWN_CHANGE
    return Change(0.0, max(0.0, requests[1] - operations[1] * requests[0] / operations[0]))


def _amplification(source: _Source, windows: Windows) -> float | None:
    media = source.increase(windows, source.samples(MEDIA_WRITTEN))
    host = source.increase(windows, source.samples(HOST_WRITTEN))
    return media / host if media is not None and host else None


def _growth(source: _Source, windows: Windows) -> float | None:
    """Bytes by which the target's file system fills up, a second: the fall of what it has available."""
    rises = []
    for samples in source.samples(AVAILABLE_BYTES):
        inside = (samples.times >= windows[0].start - 1e-6) & (samples.times <= windows[-1].end + 1e-6)
        times, values = samples.times[inside], samples.values[inside]
        if len(times) > 1:
            rises.append(float((values[0] - values[-1]) / (times[-1] - times[0])))
    return max(rises, default=None)


def _lead(windows: Windows, finding: Finding, latency: Change) -> float | None:
    """By how many seconds the drive's writes slowed down before the onset: from when on none was fast any more."""
    if latency.values is None or not latency.rose(DEVICE_ROSE):
        return None
    between = sqrt(max(latency.values[0], 1e-9) * latency.values[1])
    near = [window for window in windows if window.end <= finding.onset + 1e-6][-_LEAD_WINDOWS:]
    slow_since = finding.onset
    for window in reversed(near):
        took = _quotient([window], "device_write_milliseconds", "device_write_operations")
        if took is None or took / 1000 < between:
            break
        slow_since = window.start
    return finding.onset - slow_since


def _happenings(events: Sequence[Event], onset: float) -> tuple[Happening, ...]:
    """What engines and the run itself told; `engine_` before what the worker says of its engine."""
    own = {"started", "died", "exited", "killed"}
    found = []
    for event in events:
        if event.type in (EventType.ENGINE, EventType.GAP):
            name = f"engine_{event.name}" if event.name in own else event.name
            found.append(Happening(name, event.at - onset))
    return tuple(found)


def _latencies(run: Collected, windows: Windows) -> dict[str, Histogram]:
    merged: dict[str, dict[str, Histogram]] = JournalReader(run.directory).merged(windows, lambda window: "span")
    return merged.get("span", {})


def _layer_times(
    source: _Source, index: int, client: Histogram | None, service: Histogram | None, operation: str
) -> LayerTimes:
    windows = (source.spans.before, source.spans.after)[index]
    count = client.count if client is not None else 0
    requests = sum(window.counters.get(f"device_{operation}_operations", 0) for window in windows)
    is_watched = any(f"device_{operation}_operations" in window.counters for window in windows)
    change = _device_latency(source, operation)
    whole = change.before if index == 0 else change.after
    queue = _queue_share(source, windows, operation) if windows else None
    return LayerTimes(
        client_seconds=_histogram_mean(client),
        service_seconds=_histogram_mean(service),
        queue_seconds=None if whole is None or queue is None else whole * queue,
        device_seconds=None if whole is None else whole * (1 - (queue or 0.0)),
        requests_per_operation=requests / count if count and is_watched else None,
    )


def _histogram_mean(histogram: Histogram | None) -> float | None:
    return histogram.sum_seconds() / histogram.count if histogram is not None and histogram.count else None


def _queue_share(source: _Source, windows: Windows, operation: str) -> float | None:
    """Share of a request's time in the block layer's queue, by eBPF's histograms; their buckets' middles stand in."""
    queue, device = (
        _bucket_mean(source, windows, source.samples(name, operation=operation))
        for name in (QUEUE_TIME, DEVICE_LATENCY)
    )
    return queue / (queue + device) if queue is not None and device is not None and queue + device > 0 else None


def _bucket_mean(source: _Source, windows: Windows, buckets: list[Samples]) -> float | None:
    by_bound: dict[float, list[Samples]] = {}
    for samples in buckets:
        by_bound.setdefault(float(samples.labels["le"]), []).append(samples)
    total, counted, below, lower = 0.0, 0.0, 0.0, 0.0
    for bound in sorted(by_bound):
        cumulative = source.increase(windows, by_bound[bound])
        if cumulative is None:
            return None
        inside = max(0.0, cumulative - below)
        middle = lower if np.isinf(bound) else sqrt(lower * bound) if lower > 0 else bound / 2
        total, counted, below, lower = total + inside * middle, counted + inside, max(below, cumulative), bound
    return total / counted if counted > 0 else None
