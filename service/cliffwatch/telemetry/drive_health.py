"""Current health of the machine's drives, queried from Prometheus.

The drive exporter and the emulated drive use the same names (docs/metrics.md), so one query covers both.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cliffwatch.model.drives import PrometheusDrives
from cliffwatch.model.settings import Settings
from cliffwatch.telemetry.address import PrometheusAddress, address_of
from cliffwatch.telemetry.drives import drive_name
from cliffwatch.telemetry.prometheus import Prometheus, PrometheusAnswer, QueryFailed

#: Time limit of a query, since a page waits for its answer.
_PATIENCE_SECONDS = 2.0
_AMPLIFICATION_SPAN = "10m"
_MEDIA_WRITTEN = "cliffwatch_drive_media_written_bytes_total"
_HOST_WRITTEN = "cliffwatch_drive_host_written_bytes_total"
_AMPLIFICATION = f"increase({_MEDIA_WRITTEN}[{{span}}]) / (increase({_HOST_WRITTEN}[{{span}}]) > 0)"

#: PromQL by the field of DriveHealth that it fills; each series has the label `device`.
_QUESTIONS: Mapping[str, str] = {
    "answers": "cliffwatch_drive_up",
    "temperature_celsius": "cliffwatch_drive_temperature_celsius",
    "percentage_used_ratio": "cliffwatch_drive_percentage_used_ratio",
    "spare_ratio": "cliffwatch_drive_spare_ratio",
    "free_blocks_ratio": "cliffwatch_drive_free_blocks_ratio",
    "media_errors": "cliffwatch_drive_media_errors_total",
    # Of a drive that is there: the next one may have the name of one that is gone.
    "write_amplification": f"({_AMPLIFICATION.format(span=_AMPLIFICATION_SPAN)}) and {_MEDIA_WRITTEN}",
}
_FIELD = "field"


def kernel_name(labels: Mapping[str, str]) -> str:
    """Kernel name of a drive, from the labels of its series."""
    return labels.get("device", "")


@dataclass(frozen=True, slots=True)
class DriveSource:
    """Prometheus that has the drives' series, None where telemetry is off; `name_of(labels)` is a drive's name."""

    server: PrometheusAddress | None
    name_of: Callable[[Mapping[str, str]], str] = kernel_name

    @classmethod
    def of(cls, settings: Settings, drives: PrometheusDrives | None = None) -> "DriveSource":
        """Source for the drives of this machine, or for `drives` of other hosts. Raises Problem(bad_request)."""
        if drives is None:
            return cls(address_of(settings))
        return cls(address_of(settings, drives.server), drive_name)


@dataclass(frozen=True, slots=True)
class DriveHealth:
    """One drive's health; a field is None where not reported. `answers` is 0 where the drive does not answer.

    Ratios are shares of one; `percentage_used_ratio` may exceed one. `free_blocks_ratio` is the share of free blocks.
    `media_errors` are those since the drive was made. `write_amplification` is over the last ten minutes.
    """

    answers: float | None = None
    temperature_celsius: float | None = None
    percentage_used_ratio: float | None = None
    spare_ratio: float | None = None
    free_blocks_ratio: float | None = None
    media_errors: float | None = None
    write_amplification: float | None = None


def drive_health(source: DriveSource, wall_seconds: float) -> dict[str, DriveHealth]:
    """Health of the drives that report any, by name. Raises QueryFailed with a sentence for people."""
    query = " or ".join(
        f'label_replace({expression}, "{_FIELD}", "{field}", "", "")' for field, expression in _QUESTIONS.items()
    )
    reported: dict[str, dict[str, float]] = {}
    for answer in _ask(source.server, query, wall_seconds):
        device, field = source.name_of(answer.labels), answer.labels.get(_FIELD, "")
        if device and field in _QUESTIONS and len(answer.values):
            reported.setdefault(device, {})[field] = float(answer.values[-1])
    return {device: DriveHealth(**values) for device, values in reported.items()}


def drives_with_media_bytes(source: DriveSource, wall_seconds: float) -> set[str]:
    """Names of the drives that report bytes written to their media, from which write amplification is computed.

    Raises QueryFailed with a sentence for people.
    """
    return {source.name_of(answer.labels) for answer in _ask(source.server, _MEDIA_WRITTEN, wall_seconds)}


def write_amplification(source: DriveSource, wall_seconds: float, span_seconds: float) -> dict[str, float]:
    """Write amplification by the drive's name, over the last `span_seconds`. Raises QueryFailed."""
    answers = _ask(source.server, _AMPLIFICATION.format(span=f"{max(1, round(span_seconds))}s"), wall_seconds)
    return {source.name_of(answer.labels): float(answer.values[-1]) for answer in answers if len(answer.values)}


@dataclass(frozen=True, slots=True)
class BytesWritten:
    """Bytes that were written to a drive (`host`), and that it wrote to its media."""

    host: float
    media: float

    @property
    def amplification(self) -> float:
        return self.media / self.host


def read_bytes_written(
    prometheus: Prometheus, source: DriveSource, selector: str, until: float, span_seconds: float
) -> dict[str, dict[float, BytesWritten]]:
    """Counted bytes by drive and by time of the scrape (seconds since the epoch), of the last `span_seconds` before
    `until`. Drives that do not report both counters are absent. Raises QueryFailed."""
    query = f'{{__name__=~"{_HOST_WRITTEN}|{_MEDIA_WRITTEN}",{selector}}}[{max(1, round(span_seconds))}s]'
    read: dict[str, dict[float, dict[str, float]]] = {}
    for answer in prometheus.query_samples(query, until):
        of_drive = read.setdefault(source.name_of(answer.labels), {})
        for moment, value in zip(answer.times.tolist(), answer.values.tolist(), strict=True):
            of_drive.setdefault(moment / 1000, {})[answer.name] = value
    return {
        drive: {
            moment: BytesWritten(counted[_HOST_WRITTEN], counted[_MEDIA_WRITTEN])
            for moment, counted in of_drive.items()
            if len(counted) == 2
        }
        for drive, of_drive in read.items()
    }


def _ask(server: PrometheusAddress | None, query: str, wall_seconds: float) -> list[PrometheusAnswer]:
    if server is None:
        raise QueryFailed("telemetry is turned off: CLIFFWATCH_PROMETHEUS_URL is empty")
    prometheus = Prometheus(server, time.monotonic() + _PATIENCE_SECONDS)
    try:
        return prometheus.query(query, wall_seconds)
    finally:
        prometheus.close()
