"""Measurements of a run before and after an onset: windows, events and telemetry as `Measures` and layer times."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt

import numpy as np

from cliffwatch.analysis.causes.measures import UNKNOWN_CHANGE, Change, Measures, NearbyEvent
from cliffwatch.analysis.causes.thresholds import DEVICE_ROSE
from cliffwatch.analysis.finding import OF_RETURN, Finding
from cliffwatch.analysis.layers import LayerTimes
from cliffwatch.base.histogram import Histogram
from cliffwatch.journal import Event, EventType, JournalReader
from cliffwatch.model.database import SAMPLES
from cliffwatch.model.drive_id import mean_request_seconds
from cliffwatch.model.part_names import split_part
from cliffwatch.model.phase import Phase
from cliffwatch.report.checkpoints import Checkpoints
from cliffwatch.report.collect import Collected
from cliffwatch.report.judged_by import judged_by
from cliffwatch.report.onset_spans import (
    RunDrive,
    Spans,
    SpanSource,
    Windows,
    device_latency,
    drives_of,
    rate_of,
    slowed_drive,
    spans_around,
)
from cliffwatch.report.schema.findings import JudgedByDocument
from cliffwatch.telemetry.catalogue import (
    AVAILABLE_BYTES,
    DEVICE_LATENCY,
    FREE_BLOCKS,
    HOST_WRITTEN,
    LIMIT_EXCEEDED,
    MEDIA_WRITTEN,
    QUEUE_TIME,
    TEMPERATURE,
)
from cliffwatch.telemetry.reader import Samples

#: Number of windows before the client's onset in which a slowdown of the drive can have caused it.
_LEAD_WINDOWS = 60
#: Share of written bytes that the page cache may absorb for device requests to be comparable with operations.
_UNABSORBED = 0.1
#: Text for each limit of a cloud's volume, by its name in the drive exporter.
_LIMITS = {
    "volume_iops": "the volume's limit of IOPS",
    "volume_throughput": "the volume's limit of throughput",
    "instance_iops": "the instance's limit of IOPS",
    "instance_throughput": "the instance's limit of throughput",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """All data from which the cause and the layer of one finding are derived; `drive` is the drive that slowed down.

    `before` and `after` are the merged histograms of both spans, by latency name; `judged_by` is the amount of data in
    each span.
    """

    measures: Measures
    layers_before: LayerTimes
    layers_after: LayerTimes
    drive: RunDrive | None
    before: dict[str, Histogram]
    after: dict[str, Histogram]
    judged_by: tuple[JudgedByDocument, JudgedByDocument]


def compare_around(run: Collected, finding: Finding, operation: str | None) -> Comparison:
    """Measures before and after the onset of a finding about the latency `operation`."""
    spans = spans_around(run.windows, finding)
    drive = slowed_drive(spans, drives_of(run))
    source = SpanSource(run, spans, drive)
    latencies = [_latencies(run, windows) for windows in (spans.before, spans.after)]
    of_operation = [each.get(operation or "") for each in latencies]
    of_service = [each.get(f"{operation}_service") for each in latencies]
    reads = operation is not None and split_part(operation)[1].startswith("read")
    layers = [
        _layer_times(source, index, of_operation[index], of_service[index], "read" if reads else "write")
        for index in (0, 1)
    ]
    measures = _measures(source, run, finding, layers)
    write_latency = measures.device_write_latency_seconds
    slowed = drive if write_latency.rose(DEVICE_ROSE) else None
    basis = (judged_by(run, spans.before), judged_by(run, spans.after))
    return Comparison(measures, layers[0], layers[1], slowed, latencies[0], latencies[1], basis)


def _measures(source: SpanSource, run: Collected, finding: Finding, layers: list[LayerTimes]) -> Measures:
    limit = source.mean("host_dirty_limit_bytes").after
    exceeded_limit, exceeded = _limit_exceeded(source)
    before, after = source.spans.words
    return Measures(
        span_before=before,
        span_after=after,
        operations_per_second=source.rate("operations"),
        engine_written_bytes_per_second=source.rate("written_bytes"),
        service_latency_seconds=Change(layers[0].service_seconds, layers[1].service_seconds),
        schedule_debt_seconds=source.highest("schedule_debt_seconds"),
        engine_cpu_throttled_ratio=_thousandth(
            source.rate("engine_throttled_milliseconds", zero_with="engine_cpu_milliseconds")
        ),
        engine_cpu_waiting_ratio=_thousandth(source.rate("engine_waiting_milliseconds")),
        cpu_busy_ratio=source.mean("host_cpu_busy_ratio"),
        cpu_pressure_ratio=source.mean("host_cpu_pressure_ratio"),
        cpu_steal_ratio=source.mean("host_cpu_steal_ratio"),
        dirty_bytes=source.mean("host_dirty_bytes"),
        writeback_bytes=source.mean("host_writeback_bytes"),
        dirty_limit_bytes=limit if limit else None,
        device_write_latency_seconds=device_latency(source, "write"),
        device_operations_per_second=source.change(_device_requests),
        device_written_bytes_per_second=source.rate("device_written_bytes"),
        device_read_bytes_per_second=source.rate("device_read_bytes"),
        other_bytes_per_second=UNKNOWN_CHANGE
        if _is_of_database(source.spans)
        else source.change(lambda windows: _other_bytes(run, windows)),
        other_operations_per_second=UNKNOWN_CHANGE
        if _is_of_database(source.spans)
        else _other_operations(source.spans),
        queue_depth=source.mean("device_queue_depth"),
        write_amplification=source.change(lambda windows: _amplification(source, windows)),
        free_blocks_ratio=source.level(FREE_BLOCKS),
        temperature_celsius=source.level(TEMPERATURE),
        limit_exceeded_ratio=exceeded,
        exceeded_limit=exceeded_limit,
        device_lead_seconds=_lead(run.windows, finding, device_latency(source, "write")),
        deletions_per_second=source.rate("segments_deleted"),
        discarded_bytes_per_second=source.rate("device_discarded_bytes", zero_with="device_written_bytes"),
        stored_growth_bytes_per_second=source.change(lambda windows: _growth(source, windows)),
        checkpoint_ratio=_checkpoints(run, finding, source.spans),
        leader_changes_per_second=source.rate_since("leader_changes"),
        disconnects_per_second=source.rate_since("disconnects"),
        round_trip_seconds=source.mean("round_trip_seconds"),
        nearby_events=_nearby_events(run.events, finding.onset),
    )


def _thousandth(change: Change) -> Change:
    """Convert milliseconds per second to a ratio."""
    return Change(*(None if value is None else value / 1000 for value in (change.before, change.after)))


def _device_requests(windows: Windows) -> float | None:
    writes, reads = (rate_of(windows, f"device_{kind}_operations") for kind in ("write", "read"))
    return None if writes is None else writes + (reads or 0.0)


def _own_bytes(windows: Windows, kind: str) -> float:
    """Bytes per second that the engine reports, or that the kernel charges to its process if these are more."""
    return max(rate_of(windows, name) or 0.0 for name in (f"{kind}_bytes", f"engine_{kind}_bytes"))


def _other_bytes(run: Collected, windows: Windows) -> float | None:
    """Bytes per second that the drives moved beyond what the run asked for.

    The run's own bytes that were still in the page cache when the span began are subtracted, too.
    """
    total, seconds = 0.0, sum(window.seconds for window in windows)
    for kind in ("written", "read"):
        device = rate_of(windows, f"device_{kind}_bytes")
        if device is None or seconds <= 0:
            return None
        left = _left_in_cache(run.windows, windows[0].start) if kind == "written" else 0.0
        total += max(0.0, device - _own_bytes(windows, kind) - left / seconds)
    return total


def _left_in_cache(windows: Windows, moment: float) -> float:
    """Bytes that the run had written by `moment` and the drives had not; at most the dirty and write-back bytes."""
    before = [window for window in windows if window.end <= moment + 1e-6]
    if not before:
        return 0.0
    gauges = before[-1].gauges
    dirty = gauges.get("host_dirty_bytes", 0.0) + gauges.get("host_writeback_bytes", 0.0)
    own = sum(max(w.counters.get("written_bytes", 0), w.counters.get("engine_written_bytes", 0)) for w in before)
    return min(dirty, max(0.0, own - sum(w.counters.get("device_written_bytes", 0) for w in before)))


def _other_operations(spans: Spans) -> Change:
    """Requests per second that the run's own operations do not explain, if each takes as many as before the onset.

    Unknown where the page cache absorbed part of the writes: requests and operations then have little in common.
    """
    if not spans.before or not spans.after:
        return UNKNOWN_CHANGE
    requests = [_device_requests(windows) for windows in (spans.before, spans.after)]
    operations = [rate_of(windows, "operations") for windows in (spans.before, spans.after)]
    own, device = _own_bytes(spans.before, "written"), rate_of(spans.before, "device_written_bytes")
    if requests[0] is None or requests[1] is None or not operations[0] or operations[1] is None or device is None:
        return UNKNOWN_CHANGE
    if own > 0 and device < own * (1 - _UNABSORBED):
        return UNKNOWN_CHANGE
    return Change(0.0, max(0.0, requests[1] - operations[1] * requests[0] / operations[0]))


def _amplification(source: SpanSource, windows: Windows) -> float | None:
    media = source.increase(windows, source.samples(MEDIA_WRITTEN))
    host = source.increase(windows, source.samples(HOST_WRITTEN))
    return media / host if media is not None and host else None


def _limit_exceeded(source: SpanSource) -> tuple[str, Change]:
    """Text of the cloud volume's limit that was exceeded longest since the onset, and the share of time in which it was
    exceeded."""
    found = []
    for limit, words in _LIMITS.items():
        change = source.change(partial(source.rate_of_samples, samples=source.samples(LIMIT_EXCEEDED, limit=limit)))
        found.append((change.after or 0.0, words, change))
    _, words, change = max(found, key=lambda each: each[0])
    return words, change


def _is_of_database(spans: Spans) -> bool:
    """Whether a database was loaded: the server is a process of its own, and what it writes is the run's."""
    return any(SAMPLES in window.counters for window in (*spans.before, *spans.after))


def _checkpoints(run: Collected, finding: Finding, spans: Spans) -> Change:
    """Share of the time in which the database wrote a checkpoint. For spikes it is compared between all of the time and
    the spikes, since both are in the spans around the first one."""
    if not _is_of_database(spans) or not spans.before or not spans.after:
        return UNKNOWN_CHANGE
    written = Checkpoints(run.events)
    before, after = list(spans.before), list(spans.after)
    if finding.kind in OF_RETURN:
        operation, _, quantile = finding.series.rpartition(".")
        between = sqrt(max(finding.baseline, 1e-9) * max(finding.level, 1e-9))
        before = [window for window in run.windows if window.phase != Phase.WARM_UP]
        after = [window for window in before if (window.latency.get(operation, {}).get(quantile) or 0.0) > between]
    if not after:
        return UNKNOWN_CHANGE
    return Change(written.ratio(before), written.ratio(after))


def _growth(source: SpanSource, windows: Windows) -> float | None:
    """Growth of stored bytes per second: from the engine's segment counters, else from the file system's free space."""
    begun, written = rate_of(windows, "segments_begun"), rate_of(windows, "written_bytes")
    if begun and written is not None:
        deleted = rate_of(windows, "segments_deleted") or 0.0
        return written * (1 - deleted / begun)
    rises = []
    for samples in source.samples(AVAILABLE_BYTES):
        inside = (samples.times >= windows[0].start - 1e-6) & (samples.times <= windows[-1].end + 1e-6)
        times, values = samples.times[inside], samples.values[inside]
        if len(times) > 1:
            rises.append(float((values[0] - values[-1]) / (times[-1] - times[0])))
    return max(rises, default=None)


def _lead(windows: Windows, finding: Finding, latency: Change) -> float | None:
    """Seconds from when the drive's writes slowed down to the onset; None where they did not."""
    if latency.values is None or not latency.rose(DEVICE_ROSE):
        return None
    between = sqrt(max(latency.values[0], 1e-9) * latency.values[1])
    near = [window for window in windows if window.end <= finding.onset + 1e-6][-_LEAD_WINDOWS:]
    slow_since = finding.onset
    for window in reversed(near):
        took = mean_request_seconds(window.counters)
        if took is None or took < between:
            break
        slow_since = window.start
    return finding.onset - slow_since


def _nearby_events(events: Sequence[Event], onset: float) -> tuple[NearbyEvent, ...]:
    """Engine events and gaps with their time from the onset; the worker's events on its engine get prefix `engine_`."""
    own = {"started", "died", "exited", "killed"}
    found = []
    for event in events:
        if event.type in (EventType.ENGINE, EventType.GAP):
            name = f"engine_{event.name}" if event.name in own else event.name
            found.append(NearbyEvent(name, event.at - onset))
    return tuple(found)


def _latencies(run: Collected, windows: Windows) -> dict[str, Histogram]:
    merged: dict[str, dict[str, Histogram]] = JournalReader(run.directory).merged(windows, lambda window: "span")
    return merged.get("span", {})


def _layer_times(
    source: SpanSource, index: int, client: Histogram | None, service: Histogram | None, operation: str
) -> LayerTimes:
    windows = (source.spans.before, source.spans.after)[index]
    count = client.count if client is not None else 0
    requests = sum(window.counters.get(f"device_{operation}_operations", 0) for window in windows)
    is_watched = any(f"device_{operation}_operations" in window.counters for window in windows)
    change = device_latency(source, operation)
    whole = change.before if index == 0 else change.after
    queue = _queue_share(source, windows, operation) if windows else None
    return LayerTimes(
        client_seconds=_histogram_mean(client),
        service_seconds=_histogram_mean(service),
        queue_seconds=None if whole is None or queue is None else whole * queue,
        device_seconds=None if whole is None else whole * (1 - (queue or 0.0)),
        requests_per_operation=requests / count if count and is_watched else None,
        span=source.spans.words[index],
    )


def _histogram_mean(histogram: Histogram | None) -> float | None:
    return histogram.sum_seconds() / histogram.count if histogram is not None and histogram.count else None


def _queue_share(source: SpanSource, windows: Windows, operation: str) -> float | None:
    """Share of a request's time in the block layer's queue, from eBPF histograms, each bucket valued at its middle."""
    queue, device = (
        _bucket_mean(source, windows, source.samples(name, operation=operation))
        for name in (QUEUE_TIME, DEVICE_LATENCY)
    )
    return queue / (queue + device) if queue is not None and device is not None and queue + device > 0 else None


def _bucket_mean(source: SpanSource, windows: Windows, buckets: list[Samples]) -> float | None:
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
