"""Catalogue of collected Prometheus series, and what each is for: the table `SERIES`."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from string import Template

from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.telemetry.drives import drive_name
from cliffwatch.telemetry.prometheus import PrometheusAnswer


class SeriesSubject(StrEnum):
    """What a series is about, such as drives; the series is not queried for a run without any."""

    RUN = "run"
    DEVICES = "devices"
    FILE_SYSTEMS = "file_systems"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class CollectedSeries:
    """A series to collect. In its PromQL `expression`, `$run`, `$devices` and `$mount_points` stand for quoted label
    values or patterns, and `$range` for one step."""

    name: str
    subject: SeriesSubject
    unit: str
    purpose: str
    expression: str


def _of(
    job: str, subject: SeriesSubject, metric: str, unit: str, purpose: str, *, name: str, more: str = ""
) -> CollectedSeries:
    matchers = {
        SeriesSubject.RUN: "run_id=$run",
        SeriesSubject.DEVICES: f'job="{job}",device=~$devices',
        SeriesSubject.FILE_SYSTEMS: f'job="{job}",mountpoint=~$mount_points',
        SeriesSubject.MACHINE: f'job="{job}"',
    }[subject]
    return CollectedSeries(name, subject, unit, purpose, f"last_over_time({metric}{{{matchers}{more}}}[$range])")


def _worker(metric: str, unit: str, purpose: str) -> CollectedSeries:
    name = metric.removeprefix("cliffwatch_")
    return _of("cliffwatch-worker", SeriesSubject.RUN, metric, unit, purpose, name=name)


def _disk(metric: str, unit: str, purpose: str) -> CollectedSeries:
    return _of("node", SeriesSubject.DEVICES, metric, unit, purpose, name=metric)


def _block(metric: str, unit: str, purpose: str) -> CollectedSeries:
    return _of("ebpf", SeriesSubject.DEVICES, f"ebpf_exporter_cliffwatch_{metric}", unit, purpose, name=metric)


def _drive(metric: str, unit: str, purpose: str) -> CollectedSeries:
    return _of("drive", SeriesSubject.DEVICES, f"cliffwatch_{metric}", unit, purpose, name=metric)


def _machine(metric: str, unit: str, purpose: str) -> CollectedSeries:
    return _of("node", SeriesSubject.MACHINE, metric, unit, purpose, name=metric)


DEVICE_LATENCY = "block_device_latency_seconds_bucket"
QUEUE_TIME = "block_queue_seconds_bucket"
IN_FLIGHT = "block_requests_in_flight"
WEIGHTED_TIME = "node_disk_io_time_weighted_seconds_total"
#: The kernel's time and count by operation, from which a mean can be computed, but no percentile.
DISK_TIME = {"read": "node_disk_read_time_seconds_total", "write": "node_disk_write_time_seconds_total"}
DISK_COUNT = {"read": "node_disk_reads_completed_total", "write": "node_disk_writes_completed_total"}
#: Series from which the report's layers are computed.
LAYER_SERIES = (DEVICE_LATENCY, QUEUE_TIME, WEIGHTED_TIME, *DISK_TIME.values(), *DISK_COUNT.values())
HOST_WRITTEN = "drive_host_written_bytes_total"
MEDIA_WRITTEN = "drive_media_written_bytes_total"
FREE_BLOCKS = "drive_free_blocks_ratio"
TEMPERATURE = "drive_temperature_celsius"
LIMIT_EXCEEDED = "drive_limit_exceeded_seconds_total"
AVAILABLE_BYTES = "node_filesystem_avail_bytes"
#: Series by which causes are distinguished, besides those of the layers.
CAUSE_SERIES = (HOST_WRITTEN, MEDIA_WRITTEN, FREE_BLOCKS, TEMPERATURE, LIMIT_EXCEEDED, AVAILABLE_BYTES)

SERIES: tuple[CollectedSeries, ...] = (
    _worker("cliffwatch_operations_total", "operations", "the client's throughput on the devices' time axis"),
    _worker("cliffwatch_bytes_total", "bytes", "the client's throughput on the devices' time axis"),
    _worker("cliffwatch_errors_total", "operations", "operations that failed"),
    _worker("cliffwatch_window_latency_seconds", "seconds", "the client's latency, exact, beside the devices'"),
    _worker("cliffwatch_schedule_debt_seconds", "seconds", "distinguishes a late client from a slow device"),
    _disk(DISK_COUNT["read"], "requests", "mean size and mean time of reads"),
    _disk(DISK_COUNT["write"], "requests", "mean size and mean time of writes"),
    _disk("node_disk_read_bytes_total", "bytes", "what the devices read"),
    _disk("node_disk_written_bytes_total", "bytes", "what the devices wrote"),
    _disk(DISK_TIME["read"], "seconds", "mean time of a read where no histogram is"),
    _disk(DISK_TIME["write"], "seconds", "mean time of a write where no histogram is"),
    _disk("node_disk_discards_completed_total", "requests", "discards, which give a drive free blocks"),
    _disk("node_disk_io_time_seconds_total", "seconds", "share of the time that a device had work"),
    _disk(WEIGHTED_TIME, "request seconds", "mean queue depth: its increase per second"),
    _of(
        "node",
        SeriesSubject.FILE_SYSTEMS,
        AVAILABLE_BYTES,
        "bytes",
        "how full the file system was",
        name=AVAILABLE_BYTES,
    ),
    _machine("node_memory_Dirty_bytes", "bytes", "writes that the page cache holds back"),
    _machine("node_memory_Writeback_bytes", "bytes", "writes from the page cache under way"),
    _machine("node_memory_MemAvailable_bytes", "bytes", "memory that was left for the page cache"),
    _machine("node_pressure_io_waiting_seconds_total", "seconds", "time in which some task waited for I/O"),
    _machine("node_pressure_cpu_waiting_seconds_total", "seconds", "time in which some task waited for a processor"),
    CollectedSeries(
        "node_cpu_seconds_total",
        SeriesSubject.MACHINE,
        "seconds",
        "what the processors did, all of them together, by mode",
        'sum without (cpu) (last_over_time(node_cpu_seconds_total{job="node"}[$range]))',
    ),
    _block(DEVICE_LATENCY, "requests", "percentiles of device latency, by device and operation"),
    _block(QUEUE_TIME, "requests", "percentiles of queue time, by device and operation"),
    _block(IN_FLIGHT, "requests", "requests that the driver had at that moment"),
    _block("block_errors_total", "requests", "requests that failed"),
    _drive(HOST_WRITTEN, "bytes", "what the host wrote to the drive"),
    _drive(MEDIA_WRITTEN, "bytes", "what the drive wrote to flash: write amplification"),
    _drive(FREE_BLOCKS, "ratio", "free blocks left before garbage collection is urgent"),
    _drive(TEMPERATURE, "degrees Celsius", "throttling by heat"),
    _drive(LIMIT_EXCEEDED, "seconds", "a cloud's volume that is asked for more than its limits allow"),
    _drive("drive_spare_ratio", "ratio", "a drive that wears out"),
    _drive("drive_percentage_used_ratio", "ratio", "a drive that wears out"),
    _drive("drive_media_errors_total", "errors", "a drive that fails"),
    CollectedSeries(
        "up",
        SeriesSubject.MACHINE,
        "0 or 1",
        "whether each exporter could be scraped",
        'last_over_time(up{job=~"node|ebpf|drive"}[$range])',
    ),
)


@dataclass(frozen=True, slots=True)
class SeriesScope:
    """Scope of a run's series: its id, its drives' names, its file systems' mount points.

    `drives` selects drives of other hosts, named HOST/DEVICE; None for drives of this machine.
    """

    run_id: str
    devices: Sequence[str]
    mount_points: Sequence[str]
    drives: PrometheusDrives | None = None

    def series(self) -> list[CollectedSeries]:
        """Each series whose subject the run has."""
        return [series for series in SERIES if self._has(series.subject)]

    def query(self, series: CollectedSeries, range_milliseconds: int) -> str:
        """PromQL of a series for this run."""
        values = {
            "run": json.dumps(self.run_id),
            "devices": any_of(self.devices),
            "mount_points": any_of(self.mount_points),
            "range": f"{range_milliseconds}ms",
        }
        expression = series.expression
        if self.drives is not None and series.subject is SeriesSubject.DEVICES:
            expression = f"{expression.partition('{')[0]}{{{self.drives.selector.replace('$', '$$')}}}[$range])"
        return Template(expression).substitute(values)

    def own(self, series: CollectedSeries, answers: list[PrometheusAnswer]) -> list[PrometheusAnswer]:
        """Answers without those of other drives; drives of other hosts get HOST/DEVICE as their label `device`."""
        if self.drives is None or series.subject is not SeriesSubject.DEVICES:
            return answers
        named = [replace(each, labels=each.labels | {"device": drive_name(each.labels)}) for each in answers]
        return [each for each in named if each.labels["device"] in self.devices]

    def _has(self, subject: SeriesSubject) -> bool:
        known = {SeriesSubject.DEVICES: self.devices, SeriesSubject.FILE_SYSTEMS: self.mount_points}
        return len(known.get(subject, "1")) > 0


def any_of(names: Sequence[str]) -> str:
    """Quoted PromQL string with a regular expression that matches just these names."""
    return json.dumps("|".join(re.escape(name) for name in names), ensure_ascii=False)
