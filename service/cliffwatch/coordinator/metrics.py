"""Prometheus metrics of a worker: its run, its counters, and its latencies. docs/metrics.md explains each."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from cliffwatch.base.histogram import QUANTILES, Histogram
from cliffwatch.coordinator.detection_metrics import DetectionFigures, detection_metrics
from cliffwatch.journal.windows import QUANTILE_NAMES, JournalWindow
from cliffwatch.model.phase import Phase
from cliffwatch.model.window import EngineWindow
from cliffwatch.part.lines import DriveBelow

#: Upper bounds of the classic histogram buckets: 2^-15 s (30.5 µs) … 2^6 s.
BUCKETS_SECONDS = tuple(2.0**power for power in range(-15, 7))
#: Gauges of windows that are exported unchanged, as `cliffwatch_…`, where the engine has them.
WINDOW_GAUGES = {
    "schedule_debt_seconds": "How far the client itself is behind its schedule; absent when the engine has none.",
    "oldest_outstanding_seconds": "How long the oldest operation has been due; absent when the engine cannot know.",
    "requested_operations_per_second": "Operations that the workload asks for at the moment; absent when it asks none.",
    "requested_bytes_per_second": "Bytes that the workload asks for at the moment; absent when it asks for none.",
    "growth_left_bytes": "How much more of its volume the load may take up; absent when its engine does not say.",
    "backlog_records": "Records acknowledged and not yet read; absent when the engine has no consumers.",
    "backlog_bytes": "Bytes acknowledged and not yet read; absent when the engine has no consumers.",
}
#: Other names that engines use for these gauges.
OTHER_NAMES = {"target_rate": "requested_operations_per_second"}


@dataclass(frozen=True, slots=True)
class RunFileSystem:
    """A file system that the run fills: `role` is `target` or `journal`."""

    mount_point: str
    role: str


@dataclass(slots=True)
class WorkerFigures:
    """The state that the metrics are made of; the worker writes it, a scrape reads it, both under `lock`."""

    run_id: str
    workload: str
    engine: str
    target: str
    start: float
    window_seconds: float
    end: float | None = None
    devices: tuple[DriveBelow, ...] = ()
    file_systems: tuple[RunFileSystem, ...] = ()
    phase: str = Phase.PREPARE.value
    progress_ratio: float = 0.0
    windows: int = 0
    journal_windows: int = 0
    last_window_end: float | None = None
    engine_restarts: int = 0
    counters: dict[str, int] = field(default_factory=lambda: {"operations": 0, "bytes": 0, "errors": 0})
    gauges: dict[str, float] = field(default_factory=dict)
    detection: DetectionFigures | None = None
    detection_failed: bool = False
    latency: dict[str, Histogram] = field(default_factory=dict)
    window_latency: dict[str, dict[str, float | None]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def observe(self, window: EngineWindow, committed: JournalWindow) -> None:
        """Add a committed window."""
        with self.lock:
            self.windows += 1
            self.journal_windows = committed.seq + 1
            self.last_window_end = committed.end
            for name in self.counters:
                self.counters[name] += window.counters.get(name, 0)
            gauges = {OTHER_NAMES.get(name, name): value for name, value in window.gauges.items()}
            self.gauges = {name: gauges[name] for name in WINDOW_GAUGES if name in gauges}
            for operation, histogram in window.latency.items():
                self.latency.setdefault(operation, Histogram()).merge(histogram)
            self.window_latency = committed.latency

    def detect(self, detection: DetectionFigures | None, failed: bool) -> None:
        """Set detection's figures; None while it has not caught up, or when it failed."""
        with self.lock:
            self.detection, self.detection_failed = detection, failed

    def plan(self, start: float, end: float) -> None:
        """Set the load's planned start and end, in seconds since the epoch."""
        with self.lock:
            self.start, self.end = start, end

    def settle(self, devices: tuple[DriveBelow, ...], file_systems: tuple[RunFileSystem, ...]) -> None:
        """Set the drives and file systems below the run; Prometheus rules use them to find its share of host series."""
        with self.lock:
            self.devices, self.file_systems = devices, file_systems

    def move(self, phase: str, progress_ratio: float) -> None:
        with self.lock:
            self.phase, self.progress_ratio = phase, progress_ratio


class RunCollector(Collector):
    """Prometheus collector of a run; makes all metrics anew for each scrape."""

    def __init__(self, figures: WorkerFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        with self._figures.lock:
            metrics = [*self._run(), *self._surroundings(), *self._counters(), *self._latency()]
            run_id, detection = self._figures.run_id, self._figures.detection
            drives = {str(device.id): device.labels for device in self._figures.devices}
        yield from metrics
        yield from detection_metrics(run_id, detection, drives)

    def _gauge(self, name: str, help_text: str, value: float | None) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily(f"cliffwatch_{name}", help_text, labels=["run_id"])
        if value is not None:
            gauge.add_metric([self._figures.run_id], value)
        return gauge

    def _run(self) -> Iterator[Metric]:
        figures = self._figures
        labels = ["run_id", "workload", "engine", "target"]
        info = GaugeMetricFamily("cliffwatch_run_info", "The run that this worker executes; always 1.", labels=labels)
        info.add_metric([figures.run_id, figures.workload, figures.engine, figures.target], 1)
        yield info
        yield self._gauge(
            "run_start_timestamp_seconds",
            "When the run's load began, or will begin, in seconds since the epoch.",
            figures.start,
        )
        yield self._gauge(
            "run_end_timestamp_seconds",
            "When the run's load is planned to end, in seconds since the epoch; absent until it is planned.",
            figures.end,
        )
        yield self._gauge("run_window_seconds", "Length of the run's windows.", figures.window_seconds)
        phase = GaugeMetricFamily(
            "cliffwatch_run_phase", "1 for the phase that the run is in.", labels=["run_id", "phase"]
        )
        for each in Phase:
            phase.add_metric([figures.run_id, each.value], float(each == figures.phase))
        yield phase
        yield self._gauge("run_progress_ratio", "Share of the planned load time that is over.", figures.progress_ratio)
        yield self._gauge(
            "last_window_timestamp_seconds",
            "End of the newest committed window, in seconds since the epoch.",
            figures.last_window_end,
        )
        yield self._gauge(
            "journal_windows",
            "Windows in the run's journal, whichever worker committed them; absent before this worker's first.",
            figures.journal_windows or None,
        )
        for name, help_text in WINDOW_GAUGES.items():
            yield self._gauge(name, help_text, figures.gauges.get(name))
        yield self._gauge(
            "detection_running",
            "1 while the run's windows are searched for findings, 0 once that has failed.",
            float(not figures.detection_failed),
        )

    def _surroundings(self) -> Iterator[Metric]:
        figures = self._figures
        info = GaugeMetricFamily(
            "cliffwatch_device_info", "A drive that the run watches; always 1.", labels=["run_id", "device"]
        )
        queue = GaugeMetricFamily(
            "cliffwatch_device_queue_requests",
            "Requests that the block layer queues for a drive below the run's target.",
            labels=["run_id", "device"],
        )
        for device in figures.devices:
            about = {"run_id": figures.run_id} | device.labels
            info.add_sample(info.name, about, 1)
            if device.queue_requests is not None:
                queue.add_sample(queue.name, about, device.queue_requests)
        yield info
        yield queue
        file_system = GaugeMetricFamily(
            "cliffwatch_file_system_info",
            "A file system that the run fills: its target or its journal; always 1.",
            labels=["run_id", "mountpoint", "role"],
        )
        for filled in figures.file_systems:
            file_system.add_metric([figures.run_id, filled.mount_point, filled.role], 1)
        yield file_system

    def _counters(self) -> Iterator[Metric]:
        figures = self._figures
        texts = {
            "operations": "Operations that the engine completed.",
            "bytes": "Bytes that the engine's operations moved.",
            "errors": "Operations that failed.",
        }
        values = [(name, text, figures.counters[name]) for name, text in texts.items()]
        values.append(("windows", "Windows committed to the journal by this worker.", figures.windows))
        values.append(("engine_restarts", "Times that this worker started the engine again.", figures.engine_restarts))
        for name, text, value in values:
            counter = CounterMetricFamily(f"cliffwatch_{name}", text, labels=["run_id"])
            counter.add_metric([figures.run_id], value)
            yield counter

    def _latency(self) -> Iterator[Metric]:
        figures = self._figures
        whole = HistogramMetricFamily(
            "cliffwatch_latency_seconds",
            "Latency of operations since this worker began.",
            labels=["run_id", "operation"],
        )
        for operation, histogram in sorted(figures.latency.items()):
            counts = histogram.cumulative_counts(BUCKETS_SECONDS)
            buckets = [(repr(limit), count) for limit, count in zip(BUCKETS_SECONDS, counts, strict=True)]
            buckets.append(("+Inf", histogram.count))
            whole.add_metric([figures.run_id, operation], buckets, histogram.sum_seconds())
        yield whole
        # A summary of the newest window alone: its quantiles are exact, and it has no sum or count.
        name = "cliffwatch_window_latency_seconds"
        window = Metric(name, "Exact latency quantiles of the newest committed window.", "summary")
        for operation, summary in sorted(figures.window_latency.items()):
            for quantile, quantile_name in zip(QUANTILES, QUANTILE_NAMES, strict=True):
                if (value := summary[quantile_name]) is not None:
                    labels = {"run_id": figures.run_id, "operation": operation, "quantile": str(quantile)}
                    window.add_sample(name, labels, value)
        yield window


def serve_metrics(figures: WorkerFigures) -> int | None:
    """Serve the metrics on a free port of 127.0.0.1, in a thread; returns the port, None if none could be opened.

    The worker's own CPU time and memory are included, under the standard names of Prometheus exporters.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(RunCollector(figures))
    try:
        server, _ = start_http_server(0, addr="127.0.0.1", registry=registry)
    except OSError:
        return None
    return server.server_port
